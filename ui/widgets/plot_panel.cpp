#include "ui/widgets/plot_panel.h"

#include <QStackedLayout>
#include <QToolButton>
#include <QVBoxLayout>

#include "ui/theme/theme.h"
#include "ui/widgets/export_button.h"
#include "ui/widgets/plot_table_model.h"
#include "ui/widgets/table_view.h"

namespace neuroshard::ui {
namespace {
constexpr QSize picture_size{1200, 600};
constexpr qreal picture_scale = 2;
}  // namespace

PlotPanel::PlotPanel(const Theme& theme, const QString& title, const QString& file_name, QWidget* parent)
    : Card(title, parent), theme_(theme), file_name_(file_name) {
  plot_ = new PlotWidget(theme, title, this);
  model_ = new PlotTableModel(this);
  faces_ = new QStackedLayout;
  faces_->addWidget(plot_);
  body()->addLayout(faces_, 1);
  build_controls();
  connect(plot_, &PlotWidget::data_changed, this, [this] {
    if (table_shown()) fill_table();
    const bool some = !plot_->empty();
    for (QToolButton* button : {log_, twin_, export_}) button->setEnabled(some);
  });
  connect(plot_->view(), &PlotView::zoom_changed, all_, &QWidget::setVisible);
}

void PlotPanel::build_controls() {
  const auto add = [this](const char* icon, const QString& text) {
    auto* button = new QToolButton(this);
    button->setIcon(theme_.icon(QString::fromLatin1(icon)));
    button->setToolTip(text);
    button->setAccessibleName(tr("%1: %2").arg(title(), text));
    add_control(button);
    return button;
  };
  all_ = add("zoom-fit", tr("Show all"));
  all_->hide();
  connect(all_, &QToolButton::clicked, plot_->view(), &PlotView::show_all);
  log_ = add("log-axis", tr("Logarithmic axis"));
  log_->setCheckable(true);
  connect(log_, &QToolButton::toggled, plot_, &PlotWidget::set_log_y);
  twin_ = add("table", tr("As a table"));
  twin_->setCheckable(true);
  connect(twin_, &QToolButton::toggled, this, &PlotPanel::show_table);
  export_ = new ExportButton(
      theme_, title(), file_name_, [this] { return csv(); },
      [this] { return plot_->to_image(picture_size, picture_scale); }, this);
  add_control(export_);
  for (QToolButton* button : {log_, twin_, export_}) button->setEnabled(false);
}

bool PlotPanel::table_shown() const {
  return table_ != nullptr && faces_->currentWidget() == table_;
}

void PlotPanel::show_table(bool shown) {
  if (shown && table_ == nullptr) {
    table_ = new TableView(tr("%1, as a table").arg(title()), this);
    table_->setModel(model_);
    table_->set_file_name(file_name_);
    faces_->addWidget(table_);
  }
  if (shown) fill_table();
  faces_->setCurrentWidget(shown ? static_cast<QWidget*>(table_) : plot_);
  twin_->setChecked(shown);
}

void PlotPanel::fill_table() {
  model_->set_series(plot_->series(), plot_->options());
}

QString PlotPanel::csv() const {
  model_->set_series(plot_->series(), plot_->options());
  return model_->csv();
}

}  // namespace neuroshard::ui
