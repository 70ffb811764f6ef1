#include "ui/pages/compare_dialog.h"

#include <QDialogButtonBox>
#include <QGridLayout>
#include <QHeaderView>
#include <QLabel>
#include <QScrollArea>
#include <QSortFilterProxyModel>
#include <QVBoxLayout>

#include "ui/models/comparison_model.h"
#include "ui/text/format.h"
#include "ui/theme/theme.h"
#include "ui/widgets/bar_chart.h"
#include "ui/widgets/card.h"
#include "ui/widgets/chart_style.h"
#include "ui/widgets/export_button.h"
#include "ui/widgets/table_view.h"

namespace neuroshard::ui {
namespace {

QString change(const std::optional<double>& first, const std::optional<double>& second) {
  if (!first || !second) return Format::dash();
  const double by = *second - *first;
  return (by > 0 ? QStringLiteral("+") : QString()) + Format::significant(by, 3);
}

QWidget* facts(const node::CheckpointComparison& c) {
  auto* card = new Card(CompareDialog::tr("Side by side"));
  auto* grid = new QGridLayout;
  grid->setHorizontalSpacing(3 * grid_step);
  int row = 0;
  const auto line = [&](const QString& what, const QString& first, const QString& second, const QString& by) {
    const char* role = row == 0 ? "caption" : nullptr;
    grid->addWidget(make_label(what, "muted"), row, 0);
    grid->addWidget(make_label(first, role), row, 1, Qt::AlignRight);
    grid->addWidget(make_label(second, role), row, 2, Qt::AlignRight);
    grid->addWidget(make_label(by, role), row, 3, Qt::AlignRight);
    ++row;
  };
  line({}, CompareDialog::tr("First"), CompareDialog::tr("Second"), CompareDialog::tr("Change"));
  const auto steps = static_cast<double>(c.second.step) - static_cast<double>(c.first.step);
  line(CompareDialog::tr("Step"), Format::integer(c.first.step), Format::integer(c.second.step),
       (steps > 0 ? QStringLiteral("+") : QString()) + Format::si(steps));
  line(CompareDialog::tr("Saved"), Format::date_time(c.first.at), Format::date_time(c.second.at), {});
  line(CompareDialog::tr("Loss"), Format::loss(c.first.loss), Format::loss(c.second.loss),
       change(c.first.loss, c.second.loss));
  line(CompareDialog::tr("Held-out loss"), Format::loss(c.first.held_out_loss),
       Format::loss(c.second.held_out_loss), change(c.first.held_out_loss, c.second.held_out_loss));
  line(CompareDialog::tr("Size"), Format::bytes(c.first.bytes), Format::bytes(c.second.bytes), {});
  grid->setColumnStretch(4, 1);
  card->body()->addLayout(grid);
  QLabel* total =
      make_paragraph(CompareDialog::tr("All weights: a distance of %1, which is %2 of the norm of the first.")
                         .arg(Format::significant(c.distance, 4), Format::percent(c.relative)),
                     "strong");
  total->setObjectName(QStringLiteral("compare_total"));
  card->body()->addWidget(total);
  return card;
}

QWidget* chart(const Theme& theme, const node::CheckpointComparison& c) {
  QStringList names;
  std::vector<double> values;
  for (const LayerDistance& layer : distance_by_layer(c.slots)) {
    names << QString::fromStdString(layer.name);
    values.push_back(layer.relative);
  }
  auto* card = new Card(CompareDialog::tr("Distance by layer"));
  card->set_caption(CompareDialog::tr(
      "norm of the difference divided by the norm of the weights; layers include their experts"));
  auto* bars = new BarChart(theme, CompareDialog::tr("Distance by layer"), CompareDialog::tr("Layer"),
                            CompareDialog::tr("relative"));
  bars->setObjectName(QStringLiteral("compare_chart"));
  bars->set_whole_numbers(false);
  bars->set_names_upright(true);
  bars->set_bars(names, values);
  card->add_control(new ExportButton(
      theme, CompareDialog::tr("Distance by layer"),
      QStringLiteral("distance-%1-%2").arg(c.first.step).arg(c.second.step), [bars] { return bars->csv(); },
      [bars, &theme] { return picture_of(*bars, theme); }));
  auto* scroll = new QScrollArea;
  scroll->setWidgetResizable(true);
  scroll->setFocusPolicy(Qt::NoFocus);
  scroll->setMinimumHeight(260);
  scroll->setWidget(bars);
  // The card shows through.
  scroll->viewport()->setAutoFillBackground(false);
  bars->setAutoFillBackground(false);
  card->body()->addWidget(scroll);
  return card;
}

}  // namespace

CompareDialog::CompareDialog(const Theme& theme, const node::CheckpointComparison& comparison,
                             QWidget* parent)
    : QDialog(parent) {
  setObjectName(QStringLiteral("compare_dialog"));
  setAttribute(Qt::WA_DeleteOnClose);
  setWindowTitle(tr("Steps %1 and %2")
                     .arg(Format::integer(comparison.first.step), Format::integer(comparison.second.step)));
  resize(760, 720);
  auto* column = new QVBoxLayout(this);
  column->setSpacing(2 * grid_step);
  column->addWidget(facts(comparison));
  column->addWidget(chart(theme, comparison));
  auto* table = new TableView(tr("Distances of all parts of the model"), this);
  table->setObjectName(QStringLiteral("compare_table"));
  auto* sorted = new QSortFilterProxyModel(table);
  sorted->setSourceModel(new ComparisonModel(comparison.slots, table));
  sorted->setSortRole(ComparisonModel::SortRole);
  table->setModel(sorted);
  table->set_file_name(
      QStringLiteral("distances-%1-%2").arg(comparison.first.step).arg(comparison.second.step));
  table->setSortingEnabled(true);
  table->sortByColumn(ComparisonModel::Slot, Qt::AscendingOrder);
  table->horizontalHeader()->setSectionResizeMode(QHeaderView::Stretch);
  table->setMinimumHeight(140);
  column->addWidget(table, 1);
  auto* buttons = new QDialogButtonBox(QDialogButtonBox::Close, this);
  connect(buttons, &QDialogButtonBox::rejected, this, &QDialog::reject);
  column->addWidget(buttons);
}

}  // namespace neuroshard::ui
