#include "ui/pages/partition_dialog.h"

#include <QDragEnterEvent>
#include <QLabel>
#include <QMimeData>
#include <QPushButton>
#include <QScrollArea>
#include <QStackedLayout>
#include <QStandardItemModel>
#include <QToolButton>
#include <QVBoxLayout>
#include <chrono>
#include <cmath>
#include <utility>

#include "ui/pages/grid_twin.h"
#include "ui/pages/partition_bars.h"
#include "ui/pages/partition_form.h"
#include "ui/pages/partition_picture.h"
#include "ui/pages/partition_words.h"
#include "ui/text/format.h"
#include "ui/theme/theme.h"
#include "ui/widgets/card.h"
#include "ui/widgets/empty_state.h"
#include "ui/widgets/table_view.h"

namespace neuroshard::ui {
namespace {

constexpr int picture_height = 380;

QToolButton* tool(const Theme& theme, const char* icon, const QString& name, QWidget* parent) {
  auto* button = new QToolButton(parent);
  button->setIcon(theme.icon(QString::fromLatin1(icon)));
  button->setToolTip(name);
  button->setAccessibleName(name);
  return button;
}

TableView* make_table(const QString& name, const char* object, const QStringList& heads,
                      QStandardItemModel** model, QWidget* parent) {
  auto* table = new TableView(name, parent);
  table->setObjectName(QString::fromLatin1(object));
  *model = new QStandardItemModel(table);
  (*model)->setHorizontalHeaderLabels(heads);
  table->setModel(*model);
  return table;
}

// The program names its options; here they are boxes.
QString in_our_words(QString why) {
  const std::pair<const char*, QString> names[] = {
      {"--bandwidth BYTES/S", PartitionDialog::tr("the bandwidth above")},
      {"--input-shape", PartitionDialog::tr("input shapes above")},
      {"--dim", PartitionDialog::tr("sizes above")},
      {"--memory", PartitionDialog::tr("the memory above")},
      {"--k", PartitionDialog::tr("the number of blocks")}};
  for (const auto& [option, words] : names) why.replace(QString::fromLatin1(option), words);
  return why;
}

}  // namespace

PartitionDialog::PartitionDialog(const Theme& theme, const QString& program, QWidget* parent)
    : QDialog(parent), theme_(theme), job_(program) {
  setObjectName(QStringLiteral("partition_dialog"));
  setAttribute(Qt::WA_DeleteOnClose);
  setWindowTitle(tr("Cut a model into blocks"));
  setAcceptDrops(true);
  resize(1080, 800);
  auto* outer = new QVBoxLayout(this);
  outer->setContentsMargins(0, 0, 0, 0);
  auto* scroll = new QScrollArea(this);
  scroll->setWidgetResizable(true);
  scroll->setFrameShape(QFrame::NoFrame);
  scroll->setFocusPolicy(Qt::NoFocus);
  auto* content = new QWidget(scroll);
  auto* column = new QVBoxLayout(content);
  column->setContentsMargins(2 * grid_step, 2 * grid_step, 2 * grid_step, 2 * grid_step);
  column->setSpacing(2 * grid_step);
  form_ = new PartitionForm(theme, content);
  connect(form_, &PartitionForm::cut_asked, this, &PartitionDialog::cut);
  connect(form_, &PartitionForm::stop_asked, this, &PartitionDialog::stop);
  column->addWidget(form_);
  empty_ =
      new EmptyState(theme, QStringLiteral("network"), tr("No model yet"),
                     tr("Open a model file. NeuroShard cuts its graph into one block per computer. It shows "
                        "the load of each block and how far the cut is at most from the best one."),
                     content);
  empty_->set_action(tr("Open a model …"));
  connect(empty_, &EmptyState::action_clicked, form_, &PartitionForm::open_file);
  column->addWidget(empty_, 1000);
  results_ = new QWidget(content);
  auto* results = new QVBoxLayout(results_);
  results->setContentsMargins(0, 0, 0, 0);
  results->setSpacing(2 * grid_step);
  results->addWidget(make_result());
  results->addWidget(make_load());
  results->addWidget(make_picture(), 1);
  results_->hide();
  column->addWidget(results_, 1000);
  column->addStretch(1);  // while there is neither
  scroll->setWidget(content);
  outer->addWidget(scroll);
  connect(&job_, &PartitionJob::done, this, &PartitionDialog::show_report);
  connect(&job_, &PartitionJob::failed, this, [this](const QString& why) {
    rest();
    form_->tell(in_our_words(why), "danger");
  });
  connect(&job_, &PartitionJob::cancelled, this, [this] {
    rest();
    form_->tell(tr("Stopped before there was a result."), "muted");
  });
  tick_.setInterval(250);
  connect(&tick_, &QTimer::timeout, this, [this] {
    form_->tell(tr("Reading and searching, %1 so far; the search itself takes %2 at most.")
                    .arg(Format::duration(std::chrono::seconds(static_cast<int>(job_.seconds()))),
                         Format::duration(std::chrono::seconds(form_->request().time_limit))),
                "muted");
  });
  if (program.isEmpty()) {
    form_->disable(
        tr("neuroshardd was not found beside this app. Install it, or run \"neuroshardd partition\" on a "
           "computer that has it."));
  }
}

Card* PartitionDialog::make_result() {
  auto* card = new Card(tr("Quality of the cut"), this);
  const auto paragraph = [&](const char* role, const char* name) {
    QLabel* label = make_paragraph({}, role, card);
    label->setObjectName(QString::fromLatin1(name));
    label->setTextInteractionFlags(Qt::TextSelectableByMouse | Qt::TextSelectableByKeyboard);
    card->body()->addWidget(label);
    return label;
  };
  headline_ = paragraph("strong", "partition_headline");
  proof_ = paragraph(nullptr, "partition_proof");
  origin_ = paragraph("muted", "partition_origin");
  return card;
}

Card* PartitionDialog::make_load() {
  auto* card = new Card(tr("Load of each block"), this);
  QToolButton* twin = make_twin_button(theme_, tr("Load of each block"), card);
  twin->setObjectName(QStringLiteral("partition_load_twin"));
  bars_ = new PartitionBars(theme_, card);
  block_table_ =
      make_table(tr("Load of each block, as a table"), "partition_block_table",
                 {tr("Block"), tr("First node"), tr("Nodes"), tr("In all"), tr("Receives"), tr("Computes"),
                  tr("Streams"), tr("Sends"), tr("Parameters"), tr("Values at once")},
                 &block_rows_, card);
  add_twin(card, twin, bars_, block_table_);
  return card;
}

Card* PartitionDialog::make_picture() {
  auto* card = new Card(tr("The cut graph"), this);
  picture_ = new PartitionPicture(theme_, card);
  const auto zoom = [&](const char* icon, const QString& name, auto action) {
    QToolButton* button = tool(theme_, icon, name, card);
    connect(button, &QToolButton::clicked, this, action);
    card->add_control(button);
  };
  zoom("zoom-out", tr("Smaller"), [this] { picture_->set_zoom(picture_->zoom() / 1.25); });
  zoom("plus", tr("Larger"), [this] { picture_->set_zoom(picture_->zoom() * 1.25); });
  zoom("zoom-fit", tr("Fit"), [this] { picture_->fit(true); });
  QToolButton* twin = make_twin_button(theme_, tr("The cut graph"), card);
  twin->setObjectName(QStringLiteral("partition_graph_twin"));
  node_table_ =
      make_table(tr("Nodes of the cut graph"), "partition_node_table",
                 {tr("Block"), tr("Node"), tr("Operation"), tr("Work"), tr("Parameters"), tr("Output")},
                 &node_rows_, card);
  picture_->setMinimumHeight(picture_height);
  add_twin(card, twin, picture_, node_table_);
  return card;
}

void PartitionDialog::cut() {
  if (job_.running()) return;
  form_->show_running(true);
  form_->tell({}, "muted");
  empty_->hide();
  results_->hide();
  tick_.start();
  job_.start(form_->request());
}

void PartitionDialog::stop() {
  if (!job_.running()) return;
  tick_.stop();
  form_->tell(tr("Stopping …"), "muted");
  job_.stop();
}

void PartitionDialog::rest() {
  tick_.stop();
  form_->show_running(false);
  empty_->setVisible(results_->isHidden());
}

void PartitionDialog::show_report(const PartitionReport& report) {
  results_->show();
  rest();
  form_->tell({}, "muted");
  const QString cost = cost_text(report.bottleneck, report.unit);
  QString headline =
      report.blocks.size() == 1
          ? tr("One block, which takes %1").arg(cost)
          : tr("%1 blocks; the slowest takes %2").arg(Format::integer(report.blocks.size()), cost);
  if (std::isfinite(report.per_second))
    headline += tr(": %1 requests per second").arg(Format::significant(report.per_second, 4));
  headline_->setText(headline);
  const QString bound = cost_text(report.lower_bound, report.unit);
  QString proof =
      report.proved
          ? tr("Proved optimal: no cut is faster than %1 (%2).").arg(bound, report.certificate)
          : tr("Gap %1: no cut is faster than %2 (%3), so a better one could save that much at most.")
                .arg(std::isfinite(report.gap)
                         ? QLocale().toString(100 * report.gap, 'f', 2) + QStringLiteral("\u00a0%")
                         : Format::dash(),
                     bound, report.certificate);
  if (report.interrupted && !report.proved)
    proof += u' ' + tr("The search was stopped after %1; a longer search may find a better cut.")
                        .arg(Format::duration(std::chrono::seconds(static_cast<int>(report.seconds))));
  proof_->setText(proof);
  origin_->setText(tr("%1 nodes, %2 edges; %3")
                       .arg(Format::integer(static_cast<std::uint64_t>(report.nodes)),
                            Format::integer(static_cast<std::uint64_t>(report.edges)),
                            convention_text(report.convention)));
  bars_->set_report(report);
  picture_->set_report(report);
  fill_tables(report);
}

void PartitionDialog::fill_tables(const PartitionReport& report) {
  const auto cost = [&](double value) { return cost_text(value, report.unit); };
  std::vector<QStringList> rows;
  for (const PartitionBlock& block : report.blocks) {
    rows.push_back({block.peer, block.first_node, Format::integer(static_cast<std::uint64_t>(block.nodes)),
                    cost(block.cost), cost(block.in), cost(block.work), cost(block.overflow), cost(block.out),
                    size_text(block.param_bytes), size_text(block.peak_bytes)});
    rows.back()[0] = tr("%1 (%2)").arg(rows.size()).arg(block.peer);
  }
  fill_rows(*block_rows_, rows, 2);
  rows.clear();
  for (const PartitionBox& box : report.layout.boxes)
    rows.push_back({QString::number(box.block + 1), box.id, box.op, cost(box.work),
                    size_text(box.param_bytes), size_text(box.output_bytes)});
  fill_rows(*node_rows_, rows, 3);
  block_table_->resizeColumnsToContents();
  node_table_->resizeColumnsToContents();
}

void PartitionDialog::dragEnterEvent(QDragEnterEvent* event) {
  const QList<QUrl> urls = event->mimeData()->urls();
  if (urls.size() == 1 && urls[0].isLocalFile()) event->acceptProposedAction();
}

void PartitionDialog::dropEvent(QDropEvent* event) {
  form_->set_model(event->mimeData()->urls().value(0).toLocalFile());
  event->acceptProposedAction();
}

Card* make_partition_card(const Theme& theme, const QString& program, QWidget* parent) {
  auto* card = new Card(PartitionDialog::tr("Cut a model"), parent);
  card->body()->addWidget(
      make_paragraph(PartitionDialog::tr("See how your own model could be split. NeuroShard cuts a model "
                                         "file into one block per computer and proves how good the cut is."),
                     nullptr, card));
  auto* open = new QPushButton(PartitionDialog::tr("Cut a model into blocks …"), card);
  open->setObjectName(QStringLiteral("open_partition"));
  QObject::connect(open, &QPushButton::clicked, card, [card, &theme, program] {
    (new PartitionDialog(theme, program, card->window()))->show();
  });
  card->body()->addWidget(open, 0, Qt::AlignLeft);
  card->body()->addStretch(1);
  return card;
}

}  // namespace neuroshard::ui
