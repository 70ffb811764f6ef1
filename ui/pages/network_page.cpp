#include "ui/pages/network_page.h"

#include <QHeaderView>
#include <QLabel>
#include <QStandardItemModel>
#include <QVBoxLayout>
#include <algorithm>

#include "core/node/network_view.h"
#include "core/node/node.h"
#include "ui/bridge/bridge.h"
#include "ui/pages/capacity_card.h"
#include "ui/pages/grid_twin.h"
#include "ui/pages/invite_dialog.h"
#include "ui/pages/network_cards.h"
#include "ui/pages/partition_dialog.h"
#include "ui/text/format.h"
#include "ui/text/rounds_text.h"
#include "ui/theme/theme.h"
#include "ui/widgets/card.h"
#include "ui/widgets/card_grid.h"
#include "ui/widgets/cell_grid.h"
#include "ui/widgets/chart_style.h"
#include "ui/widgets/donut.h"
#include "ui/widgets/export_button.h"
#include "ui/widgets/table_view.h"

namespace neuroshard::ui {
namespace {

constexpr int page_margin = 16, column_width = 380, most_rows = 64, look_ms = 2'000;

class Words {
  Q_DECLARE_TR_FUNCTIONS(neuroshard::ui::NetworkPage)
};

QString slot_name(const node::SlotEntry& slot) {
  if (slot.kind == "embed") return Words::tr("Embedding");
  if (slot.kind == "head") return Words::tr("Head");
  if (slot.kind == "layer") return Words::tr("Layer %1").arg(slot.layer);
  return Words::tr("Layer %1, expert %2").arg(slot.layer).arg(slot.expert);
}

QString no_cell() {
  return Words::tr("Select a cell with the mouse or the arrow keys to see its details.");
}

QString no_map() {
  return Words::tr("The map appears once a model is loaded: start training, or wait while it loads.");
}

QString no_memory() {
  return Words::tr("Shown once a model is loaded.");
}

QString replicas_text(const node::SlotEntry& slot) {
  return slot.replicas ? Format::integer(*slot.replicas) : Format::dash();
}

}  // namespace

GridContent layer_map(const std::vector<node::SlotEntry>& entries) {
  std::uint32_t layers = 0, experts = 0;
  for (const node::SlotEntry& slot : entries) {
    if (slot.kind == "layer" || slot.kind == "expert")
      layers = std::max(layers, std::min(slot.layer, node::max_layers - 1) + 1);
    if (slot.kind == "expert") experts = std::max(experts, std::min(slot.expert, node::max_experts - 1) + 1);
  }
  GridContent content;
  content.columns << Words::tr("Emb");
  for (std::uint32_t layer = 0; layer < layers; ++layer) content.columns << QString::number(layer);
  content.columns << Words::tr("Head");
  content.rows << Words::tr("Shared");
  for (std::uint32_t expert = 0; expert < std::min<std::uint32_t>(experts, most_rows); ++expert)
    content.rows << Words::tr("Expert %1").arg(expert);
  const auto columns = static_cast<std::size_t>(content.columns.size());
  content.cells.resize(columns * static_cast<std::size_t>(content.rows.size()));
  for (const node::SlotEntry& slot : entries) {
    const bool end = slot.kind == "embed" || slot.kind == "head";
    if (!end && (slot.layer >= layers || slot.expert >= node::max_experts)) continue;
    const std::size_t row = slot.kind == "expert" ? slot.expert + 1u : 0u;
    const std::size_t column = slot.kind == "embed" ? 0 : end ? columns - 1 : slot.layer + 1u;
    if (row * columns + column >= content.cells.size()) continue;
    GridCell& cell = content.cells[row * columns + column];
    cell.text = replicas_text(slot);
    cell.outlined = slot.mine;
    cell.description =
        Words::tr("%1: %2 parameters, %3; %4; held by %5 in the network")
            .arg(slot_name(slot), Format::si(static_cast<double>(slot.parameters)), Format::bytes(slot.bytes),
                 slot.mine ? Words::tr("held here") : Words::tr("not held here"), replicas_text(slot));
  }
  return content;
}

std::vector<SharePart> memory_by_kind(const std::vector<node::SlotEntry>& entries) {
  const std::pair<const char*, QString> kinds[] = {{"embed", Words::tr("Embedding")},
                                                   {"layer", Words::tr("Layers, shared part")},
                                                   {"expert", Words::tr("Experts")},
                                                   {"head", Words::tr("Head")}};
  std::vector<SharePart> parts;
  for (const auto& [kind, name] : kinds) {
    std::uint64_t bytes = 0;
    for (const node::SlotEntry& slot : entries)
      if (slot.mine && slot.kind == kind) bytes += slot.bytes;
    if (bytes > 0) parts.push_back({name, static_cast<double>(bytes), Format::bytes(bytes)});
  }
  return parts;
}

NetworkPage::NetworkPage(const Context& context, QWidget* parent) : Page(context, parent) {
  auto* column = new QVBoxLayout(this);
  column->setContentsMargins(page_margin, 12, page_margin, page_margin);
  column->setSpacing(12);
  network_ = new NetworkCards(theme(), sections(), this);
  column->addWidget(network_);
  connect(network_, &NetworkCards::test_wanted, this, [this] { ask_network(true); });
  connect(network_, &NetworkCards::invite_wanted, this, &NetworkPage::invite);
  timer_.setInterval(look_ms);
  connect(&timer_, &QTimer::timeout, this, [this] { ask_network(false); });
  sections().add([this, column] { column->addWidget(make_map()); });
  sections().add([this, column] {
    auto* grid = new CardGrid(column_width, this);
    grid->add(make_memory());
    capacity_ = new CapacityCard(theme(), bridge(), this);
    grid->add(capacity_);
    grid->add(make_partition_card(theme(), this->context().core_program));
    column->addWidget(grid);
    column->addStretch(1);
  });
  connect(&bridge(), &Bridge::attached_changed, this, [this] { asked_parameters_ = 0; });
}

Card* NetworkPage::make_map() {
  auto* card = new Card(tr("Layer map"), this);
  card->set_caption(tr("outlined in green: held here; the number: how many nodes hold it"));
  QToolButton* twin = make_twin_button(theme(), tr("Layer map"), card);
  card->add_control(new ExportButton(
      theme(), tr("Layer map"), QStringLiteral("layer-map"), [this] { return table_->csv(); },
      [this] { return picture_of(*map_, theme()); }, card));
  auto* picture = new QWidget(card);
  auto* inside = new QVBoxLayout(picture);
  inside->setContentsMargins(0, 0, 0, 0);
  map_ = new CellGrid(theme(), tr("Layer map"), picture);
  map_->setObjectName(QStringLiteral("layer_map"));
  detail_ = make_paragraph(no_map(), "muted", picture);
  inside->addWidget(map_);
  inside->addWidget(detail_);
  connect(map_, &CellGrid::current_changed, this, [this](int row, int cell) {
    if (row < 0) return detail_->setText(no_cell());
    const GridContent& content = map_->content();
    detail_->setText(
        content
            .cells[static_cast<std::size_t>(row) * static_cast<std::size_t>(content.columns.size()) +
                   static_cast<std::size_t>(cell)]
            .description);
  });
  table_ = new TableView(tr("Layer map, as a table"), card);
  model_ = new QStandardItemModel(table_);
  model_->setHorizontalHeaderLabels(
      {tr("Slot"), tr("Held here"), tr("Nodes"), tr("Parameters"), tr("Memory")});
  table_->setModel(model_);
  table_->set_file_name(QStringLiteral("layer-map"));
  table_->setMinimumHeight(280);
  add_twin(card, twin, picture, table_);
  part_ = make_paragraph({}, "", card);
  part_->setObjectName(QStringLiteral("part"));
  part_->hide();
  card->body()->addWidget(part_);
  path_ = make_paragraph({}, "", card);
  path_->setObjectName(QStringLiteral("part_path"));
  path_->setToolTip(tr(
      "Means of the last micro-batches. A node computes the forward pass and the gradient for the part "
      "before. The line takes the time there and back; a micro-batch waits while the node has other work."));
  path_->hide();
  card->body()->addWidget(path_);
  summary_ = make_paragraph({}, "caption", card);
  card->body()->addWidget(summary_);
  return card;
}

Card* NetworkPage::make_memory() {
  auto* card = new Card(tr("Memory of my part"), this);
  memory_ = new Donut(theme(), tr("Memory by kind of slot"), card);
  memory_->setObjectName(QStringLiteral("memory_by_kind"));
  memory_->hide();
  memory_note_ = make_paragraph(no_memory(), "muted", card);
  card->body()->addWidget(memory_);
  card->body()->addWidget(memory_note_);
  card->body()->addStretch(1);
  card->add_control(new ExportButton(
      theme(), tr("Memory by kind of slot"), QStringLiteral("memory-by-kind"),
      [this] { return csv_of(memory_->parts()); }, [this] { return picture_of(*memory_, theme()); }, card));
  return card;
}

void NetworkPage::shown() {
  asked_parameters_ = 0;
  ask();
  ask_network(false);
  timer_.start();
}

void NetworkPage::hidden() {
  timer_.stop();
}

void NetworkPage::ask_network(bool test) {
  if ((asking_network_ && !test) || !bridge().attached()) return;
  asking_network_ = true;
  bridge().query<node::NetworkView>(
      this,
      [test](node::Node& node, node::Reply<node::NetworkView> reply) -> Expected<void> {
        if (test) NS_RETURN_IF_ERROR(node.test_reachability());
        return node.query_network(std::move(reply));
      },
      [this](const Expected<node::NetworkView>& view) {
        asking_network_ = false;
        if (!view.ok()) return network_->show_problem(QString::fromStdString(view.error().message));
        invitation_ = QString::fromStdString(view->invitation);
        can_let_vote_ = view->can_let_vote;
        votes_by_invitation_ = view->votes_by_invitation;
        network_->show_view(*view, clock().wall_now(), bridge().may_steer());
      });
}

void NetworkPage::invite() {
  if (invitation_.isEmpty()) return;
  const auto snapshot = bridge().snapshot();
  const QString network = snapshot ? QString::fromStdString(snapshot->program.network) : QString();
  // Only a link with a vote is made by the core at that moment.
  const bool with_vote = can_let_vote_ && bridge().may_steer();
  auto* dialog = new InviteDialog({invitation_, network, with_vote, votes_by_invitation_}, window());
  connect(dialog, &InviteDialog::vote_requested, dialog, [this, dialog] {
    bridge().query<node::Invitation>(
        dialog,
        [](node::Node& node, node::Reply<node::Invitation> reply) {
          return node.query_invitation(/*with_vote=*/true, std::move(reply));
        },
        [dialog](const Expected<node::Invitation>& made) {
          if (made.ok()) return dialog->show_vote(*made);
          dialog->show_problem(QString::fromStdString(made.error().message));
        });
  });
  dialog->begin();
  dialog->open();
}

void NetworkPage::refresh(const node::Snapshot& snapshot) {
  if (is_another_core(snapshot)) {
    clear_slots();
    asked_parameters_ = 0;
    invitation_.clear();
    ask_network(false);
  }
  const auto& part = snapshot.rounds.part;
  const std::vector<std::uint32_t> holders = part ? part->holders : std::vector<std::uint32_t>();
  const std::uint32_t number = part ? part->number : 0;
  const bool changed =
      snapshot.model.parameters != asked_parameters_ || holders != asked_holders_ || number != asked_part_;
  if (changed && !asking_) {
    asked_parameters_ = snapshot.model.parameters;
    asked_holders_ = holders;
    asked_part_ = number;
    ask();
  }
  network_->show_snapshot(snapshot);
  if (capacity_ != nullptr) capacity_->show_snapshot(snapshot);
  if (part_ == nullptr) return;
  part_->setText(RoundsWords::part(snapshot.rounds));
  part_->setVisible(part.has_value());
  const QString path = RoundsWords::path(snapshot);
  path_->setText(path);
  path_->setVisible(!path.isEmpty());
}

void NetworkPage::ask() {
  if (asking_ || !bridge().attached()) return;
  asking_ = true;
  bridge().query<std::vector<node::SlotEntry>>(
      this,
      [](node::Node& node, node::Reply<std::vector<node::SlotEntry>> reply) {
        return node.query_slots(std::move(reply));
      },
      [this](const Expected<std::vector<node::SlotEntry>>& answer) {
        asking_ = false;
        if (!answer.ok()) return;
        answer->empty() ? clear_slots() : show_slots(*answer);
      });
}

void NetworkPage::clear_slots() {
  map_->set_content({});
  detail_->setText(no_map());
  model_->setRowCount(0);
  memory_->set_parts({});
  memory_->hide();
  memory_note_->setText(no_memory());
  summary_->clear();
}

void NetworkPage::show_slots(const std::vector<node::SlotEntry>& entries) {
  if (map_->content().rows.isEmpty()) detail_->setText(no_cell());
  map_->set_content(layer_map(entries));
  std::vector<QStringList> rows;
  std::uint64_t mine = 0, parameters = 0, bytes = 0;
  for (const node::SlotEntry& slot : entries) {
    rows.push_back({slot_name(slot), slot.mine ? tr("yes") : tr("no"), replicas_text(slot),
                    Format::si(static_cast<double>(slot.parameters)), Format::bytes(slot.bytes)});
    if (!slot.mine) continue;
    ++mine;
    parameters += slot.parameters;
    bytes += slot.bytes;
  }
  fill_rows(*model_, rows, 2);
  memory_->set_parts(memory_by_kind(entries));
  memory_->show();
  memory_note_->setText(tr("Memory of the slots held here: weights, gradients and moments."));
  summary_->setText(tr("%1 of %2 slots are held here: %3 parameters, %4 with gradients and moments.")
                        .arg(Format::integer(mine), Format::integer(entries.size()),
                             Format::si(static_cast<double>(parameters)), Format::bytes(bytes)));
}

}  // namespace neuroshard::ui
