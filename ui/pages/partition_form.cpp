#include "ui/pages/partition_form.h"

#include <QDoubleSpinBox>
#include <QFileDialog>
#include <QFileInfo>
#include <QHBoxLayout>
#include <QLabel>
#include <QLineEdit>
#include <QProgressBar>
#include <QPushButton>
#include <QSpinBox>
#include <QVBoxLayout>

#include "ui/theme/theme.h"
#include "ui/widgets/card_grid.h"

namespace neuroshard::ui {
namespace {

constexpr int most_blocks = 1024, longest_search = 3600, usual_search = 8,
              usual_megabytes = 125;  // gigabit Ethernet
constexpr int limit_width = 190, most_limits = 4;
constexpr double most_gib = 1e6, most_megabytes = 1e6, gib = 1024.0 * 1024 * 1024, megabyte = 1e6;

template <class Box>
Box* limit_box(const QString& name, const char* object, QWidget* parent) {
  auto* box = new Box(parent);
  box->setObjectName(QString::fromLatin1(object));
  box->setAccessibleName(name);
  return box;
}

}  // namespace

PartitionForm::PartitionForm(const Theme& theme, QWidget* parent) : Card(tr("Model"), parent) {
  auto* row = new QHBoxLayout;
  model_ = new QLineEdit(this);
  model_->setObjectName(QStringLiteral("partition_model"));
  model_->setAccessibleName(tr("File of the model"));
  model_->setPlaceholderText(
      tr("TorchScript (.pt), ONNX (.onnx), a graph (.json, .pb), or one of ours: model:solo"));
  model_->setClearButtonEnabled(true);
  connect(model_, &QLineEdit::textChanged, this, &PartitionForm::adapt_to_model);
  connect(model_, &QLineEdit::returnPressed, this, &PartitionForm::submit);
  auto* open = new QPushButton(theme.icon(QStringLiteral("folder")), tr("Open …"), this);
  open->setObjectName(QStringLiteral("partition_open"));
  open->setAutoDefault(false);
  connect(open, &QPushButton::clicked, this, &PartitionForm::open_file);
  row->addWidget(model_, 1);
  row->addWidget(open);
  body()->addLayout(row);
  auto* more = new QHBoxLayout;
  details_name_ = make_label({}, "muted", this);
  details_ = new QLineEdit(this);
  details_->setObjectName(QStringLiteral("partition_details"));
  details_name_->setBuddy(details_);
  more->addWidget(details_name_);
  more->addWidget(details_, 1);
  body()->addLayout(more);
  trust_ = make_paragraph(tr("A TorchScript model is a program. NeuroShard runs it with your rights to read "
                             "its sizes. Open it only if you trust its source."),
                          "warning", this);
  body()->addWidget(trust_);
  body()->addLayout(make_limits());
  progress_ = new QProgressBar(this);
  progress_->setRange(0, 0);
  progress_->setTextVisible(false);
  progress_->setFixedHeight(6);
  progress_->setAccessibleName(tr("The model is being partitioned"));
  body()->addWidget(progress_);
  state_ = make_paragraph({}, "muted", this);
  state_->setObjectName(QStringLiteral("partition_state"));
  state_->setTextInteractionFlags(Qt::TextSelectableByMouse | Qt::TextSelectableByKeyboard);
  state_->hide();
  body()->addWidget(state_);
  show_running(false);
  adapt_to_model();
}

QHBoxLayout* PartitionForm::make_limits() {
  auto* row = new QHBoxLayout;
  row->setSpacing(2 * grid_step);
  // Beside each other, or two by two where that is too wide.
  auto* grid = new CardGrid(limit_width, this, most_limits);
  row->addWidget(grid, 1);
  const auto add = [&](const QString& name, QWidget* box, const QString& hint) {
    auto* field = new QWidget(grid);
    auto* column = new QVBoxLayout(field);
    column->setContentsMargins(0, 0, 0, 0);
    column->setSpacing(2);
    QLabel* label = make_label(name, "caption", field);
    label->setBuddy(box);
    box->setToolTip(hint);
    column->addWidget(label);
    column->addWidget(box);
    grid->add(field);
  };
  blocks_ = limit_box<QSpinBox>(tr("Blocks"), "partition_blocks", this);
  blocks_->setRange(1, most_blocks);
  blocks_->setValue(4);
  add(tr("Blocks, at most"), blocks_, tr("One per computer"));
  memory_ = limit_box<QDoubleSpinBox>(tr("Memory of each computer"), "partition_memory", this);
  memory_->setRange(0, most_gib);
  memory_->setDecimals(1);
  memory_->setSuffix(tr(" GiB"));
  memory_->setSpecialValueText(tr("no limit"));
  add(tr("Memory of each"), memory_, tr("Parameters and values that are held at once must fit"));
  bandwidth_ = limit_box<QDoubleSpinBox>(tr("Bandwidth of each computer"), "partition_bandwidth", this);
  bandwidth_->setRange(0, most_megabytes);
  bandwidth_->setDecimals(1);
  bandwidth_->setSuffix(tr(" MB/s"));
  bandwidth_->setSpecialValueText(tr("as in the file"));
  add(tr("Bandwidth of each"), bandwidth_,
      tr("Bandwidth in each direction. A graph file may give its own transfer times"));
  connect(bandwidth_, &QDoubleSpinBox::editingFinished, this, [this] { bandwidth_chosen_ = true; });
  time_ = limit_box<QSpinBox>(tr("Seconds to search"), "partition_time", this);
  time_->setRange(1, longest_search);
  time_->setValue(usual_search);
  time_->setSuffix(tr(" s"));
  add(tr("Search, at most"), time_, tr("The search ends early when the cut is proved to be the best"));
  stop_ = new QPushButton(tr("Stop"), this);
  stop_->setObjectName(QStringLiteral("partition_stop"));
  stop_->setAutoDefault(false);
  connect(stop_, &QPushButton::clicked, this, &PartitionForm::stop_asked);
  cut_ = new QPushButton(tr("Cut"), this);
  cut_->setObjectName(QStringLiteral("partition_cut"));
  cut_->setProperty("role", QStringLiteral("primary"));
  cut_->setDefault(true);
  connect(cut_, &QPushButton::clicked, this, &PartitionForm::submit);
  row->addWidget(stop_, 0, Qt::AlignBottom);
  row->addWidget(cut_, 0, Qt::AlignBottom);
  return row;
}

PartitionForm::Kind PartitionForm::kind() const {
  const QString end = QFileInfo(model_->text()).suffix().toLower();
  if (end == QLatin1String("pt") || end == QLatin1String("pth") || end == QLatin1String("ts"))
    return Kind::TorchScript;
  return end == QLatin1String("onnx") ? Kind::Onnx : Kind::Other;
}

// A TorchScript model wants shapes, an ONNX model may want sizes; others bring everything.
void PartitionForm::adapt_to_model() {
  const Kind now = kind();
  const bool script = now == Kind::TorchScript;
  details_->setVisible(now != Kind::Other);
  details_name_->setVisible(now != Kind::Other);
  trust_->setVisible(script);
  details_name_->setText(script ? tr("Input shapes") : tr("Sizes"));
  details_->setAccessibleName(details_name_->text());
  details_->setPlaceholderText(script ? tr("one per tensor, with spaces: 1x3x224x224 8x128:int64:50000")
                                      : tr("of open dimensions, with spaces: batch=8"));
  details_->setToolTip(details_->placeholderText());
  // A graph file may say what its transfers take; a model never does.
  const bool graph = model_->text().endsWith(QLatin1String(".json"), Qt::CaseInsensitive);
  if (!bandwidth_chosen_) bandwidth_->setValue(graph ? 0 : usual_megabytes);
}

void PartitionForm::set_model(const QString& path) {
  model_->setText(path);
}

PartitionRequest PartitionForm::request() const {
  PartitionRequest wanted;
  wanted.graph = model_->text().trimmed();
  wanted.blocks = blocks_->value();
  wanted.memory_bytes = memory_->value() * gib;
  wanted.bandwidth = bandwidth_->value() * megabyte;
  wanted.time_limit = time_->value();
  const QStringList words = details_->text().split(u' ', Qt::SkipEmptyParts);
  if (kind() == Kind::TorchScript) wanted.input_shapes = words;
  if (kind() == Kind::Onnx) wanted.dimensions = words;
  return wanted;
}

void PartitionForm::open_file() {
  auto* dialog = new QFileDialog(this, tr("Open a model"));
  dialog->setAttribute(Qt::WA_DeleteOnClose);
  dialog->setFileMode(QFileDialog::ExistingFile);
  dialog->setNameFilters({tr("Models and graphs (*.pt *.pth *.ts *.onnx *.json *.pb)"), tr("All files (*)")});
  connect(dialog, &QFileDialog::fileSelected, this, [this](const QString& path) {
    set_model(path);
    model_->setFocus();
    // Shapes are needed first.
    if (kind() != Kind::TorchScript) submit();
  });
  dialog->open();
}

void PartitionForm::submit() {
  if (running_ || !cut_->isEnabled()) return;
  if (model_->text().trimmed().isEmpty()) {
    tell(tr("Open a model file first."), "muted");
    return;
  }
  Q_EMIT cut_asked();
}

void PartitionForm::disable(const QString& why) {
  cut_->setEnabled(false);
  tell(why, "danger");
}

void PartitionForm::show_running(bool running) {
  running_ = running;
  progress_->setVisible(running);
  stop_->setVisible(running);
  stop_->setEnabled(running);
  cut_->setVisible(!running);
}

void PartitionForm::tell(const QString& text, const char* role) {
  set_role(state_, "role", QString::fromLatin1(role));
  state_->setText(text);
  state_->setVisible(!text.isEmpty());
}

}  // namespace neuroshard::ui
