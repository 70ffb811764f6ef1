#include "ui/pages/network_cards.h"

#include <QHeaderView>
#include <QLabel>
#include <QPushButton>
#include <QSortFilterProxyModel>
#include <QStandardItemModel>
#include <QVBoxLayout>

#include "ui/models/peer_model.h"
#include "ui/pages/grid_twin.h"
#include "ui/pages/sections.h"
#include "ui/text/format.h"
#include "ui/text/state_text.h"
#include "ui/theme/theme.h"
#include "ui/widgets/card.h"
#include "ui/widgets/card_grid.h"
#include "ui/widgets/empty_state.h"
#include "ui/widgets/plot_panel.h"
#include "ui/widgets/plot_widget.h"
#include "ui/widgets/table_view.h"

namespace neuroshard::ui {
namespace {

constexpr int column_width = 480;  // room for an address and a sentence about it
constexpr int table_height = 240, source_height = 140;

QString text(const std::string& from) {
  return QString::fromStdString(from);
}

QString reach_text(const std::string& reach) {
  if (reach == "public") return NetworkCards::tr("Others can reach this node");
  if (reach == "mapped") return NetworkCards::tr("Others can reach this node, through the router");
  if (reach == "punchable" || reach == "relayed only") return NetworkCards::tr("Others can't dial this node");
  return NetworkCards::tr("Not known yet");
}

QLabel* paragraph(const char* name, const char* role, QVBoxLayout* into) {
  QLabel* label = make_paragraph({}, role);
  label->setObjectName(QLatin1String(name));
  label->setTextInteractionFlags(Qt::TextSelectableByMouse | Qt::TextSelectableByKeyboard);
  into->addWidget(label);
  return label;
}

void show_line(QLabel* label, const QString& line) {
  label->setText(line);
  label->setVisible(!line.isEmpty());
}

}  // namespace

NetworkCards::NetworkCards(const Theme& theme, Sections& sections, QWidget* parent) : QWidget(parent) {
  auto* column = new QVBoxLayout(this);
  column->setContentsMargins(0, 0, 0, 0);
  problem_ = make_paragraph({}, "danger", this);
  problem_->hide();
  column->addWidget(problem_);
  alone_ = new EmptyState(theme, QStringLiteral("network"), {}, {}, this);
  show_snapshot({});
  alone_->hide();  // not before anything is known
  column->addWidget(alone_);
  content_ = new QWidget(this);
  content_->hide();
  auto* inside = new QVBoxLayout(content_);
  inside->setContentsMargins(0, 0, 0, 0);
  inside->setSpacing(12);
  auto* grid = new CardGrid(column_width, content_);
  inside->addWidget(grid);
  column->addWidget(content_);
  sections.add([this, grid] {
    grid->add(make_reach());
    grid->add(make_sources());
  });
  sections.add([this, grid, &theme] { grid->add(make_traffic(theme)); });
  sections.add([this, inside] { inside->addWidget(make_peers()); });
}

PlotPanel* NetworkCards::make_traffic(const Theme& theme) {
  traffic_ = new PlotPanel(theme, tr("Traffic"), QStringLiteral("traffic"));
  traffic_->setObjectName(QStringLiteral("network_traffic"));
  const auto rate = [](double value) {
    return tr("%1/s").arg(Format::bytes(static_cast<std::uint64_t>(std::max(0.0, value))));
  };
  traffic_->set_options({.format_y = rate, .y_unit = PlotUnit::Bytes, .x = PlotX::Time});
  traffic_->plot()->set_empty_text(tr("The first sample comes ten seconds after the start."));
  return traffic_;
}

Card* NetworkCards::make_reach() {
  auto* card = new Card(tr("Reachability"));
  reach_ = paragraph("network_reach", "strong", card->body());
  summary_ = paragraph("network_summary", nullptr, card->body());
  advice_ = paragraph("network_advice", "warning", card->body());
  found_ = paragraph("network_found", "muted", card->body());
  tested_ = paragraph("network_tested", "caption", card->body());
  test_ = new QPushButton(tr("Test again"), card);
  test_->setObjectName(QStringLiteral("network_test"));
  connect(test_, &QPushButton::clicked, this, &NetworkCards::test_wanted);
  invite_ = new QPushButton(tr("Invite others …"), card);
  invite_->setObjectName(QStringLiteral("network_invite"));
  connect(invite_, &QPushButton::clicked, this, &NetworkCards::invite_wanted);
  card->add_control(invite_);
  card->add_control(test_);
  card->body()->addStretch(1);
  return card;
}

Card* NetworkCards::make_sources() {
  auto* card = new Card(tr("Where this node looks for peers"));
  source_table_ = new TableView(tr("Trackers and first peers"));
  source_table_->setObjectName(QStringLiteral("network_sources"));
  sources_ = new QStandardItemModel(source_table_);
  sources_->setHorizontalHeaderLabels({tr("Address"), tr("Kind"), tr("Now")});
  source_table_->setModel(sources_);
  source_table_->set_file_name(QStringLiteral("first-peers"));
  source_table_->set_empty_text(
      tr("No tracker or first peer is known: this node waits for others to connect."));
  source_table_->setMinimumHeight(source_height);
  // The sentence takes the room that is left. Where that is too little, it is cut, and its tool tip is whole.
  QHeaderView* head = source_table_->horizontalHeader();
  head->setSectionResizeMode(QHeaderView::ResizeToContents);
  head->setSectionResizeMode(sources_->columnCount() - 1, QHeaderView::Stretch);
  card->body()->addWidget(source_table_, 1);
  return card;
}

Card* NetworkCards::make_peers() {
  peer_card_ = new Card(tr("Peers"), content_);
  peers_ = new PeerModel(this);
  auto* sorted = new QSortFilterProxyModel(this);
  sorted->setSourceModel(peers_);
  sorted->setSortRole(PeerModel::SortRole);
  peer_table_ = new TableView(tr("Peers"));
  peer_table_->setObjectName(QStringLiteral("network_peers"));
  peer_table_->setModel(sorted);
  peer_table_->set_file_name(QStringLiteral("peers"));
  peer_table_->set_empty_text(tr("This node has had no contact with a peer yet."));
  peer_table_->setSortingEnabled(true);
  peer_table_->sortByColumn(PeerModel::Latency, Qt::AscendingOrder);
  peer_table_->horizontalHeader()->setSectionResizeMode(QHeaderView::ResizeToContents);
  peer_table_->setMinimumHeight(table_height);
  peer_card_->body()->addWidget(peer_table_);
  refused_ = make_paragraph({}, "muted", peer_card_);
  refused_->setObjectName(QStringLiteral("network_refused"));
  peer_card_->body()->addWidget(refused_);
  return peer_card_;
}

void NetworkCards::show_problem(const QString& problem) {
  show_line(problem_, problem);
}

void NetworkCards::show_snapshot(const node::Snapshot& snapshot) {
  const QString without = StateWords::without_network(snapshot);
  if (!without.isEmpty()) return alone_->set_text(tr("Not connected"), without);
  alone_->set_text(
      tr("No peers: this node trains alone"),
      tr("This node has joined no network: no port is open, and there are no peers to list. Join "
         "a network to see its peers here."));
}

void NetworkCards::show_view(const node::NetworkView& view, WallTime now, bool may_steer) {
  show_line(problem_, {});
  alone_->setVisible(!view.taking_part);
  content_->setVisible(view.taking_part);
  if (!view.taking_part) return;
  show_reach(view, now);
  test_->setEnabled(!view.testing && may_steer);
  std::vector<QStringList> rows;
  for (const node::SourceEntry& source : view.sources)
    rows.push_back(
        {text(source.address), source.kind == "tracker" ? tr("tracker") : tr("peer"), text(source.state)});
  fill_rows(*sources_, rows, 3);
  for (int row = 0; row < sources_->rowCount(); ++row) {
    QStandardItem* state = sources_->item(row, 2);
    state->setToolTip(state->text());
  }
  peers_->set_entries(view.peers, view.bans);
  peer_card_->set_caption(tr("%1 known by their records, %2 in the hash table")
                              .arg(Format::integer(view.known_nodes), Format::integer(view.table_members)));
  QStringList refused;
  for (const node::RefusalEntry& refusal : view.refusals)
    refused << tr("%1: %2").arg(text(refusal.reason), Format::integer(refusal.count));
  show_line(refused_,
            refused.isEmpty() ? QString() : tr("Refused: %1").arg(refused.join(QStringLiteral(", "))));
  show_traffic(view);
}

void NetworkCards::show_reach(const node::NetworkView& view, WallTime now) {
  reach_->setText(reach_text(view.reach));
  QStringList summary{text(view.summary)};
  if (!view.relay.empty())
    summary << tr("Others reach this node through the relay %1.").arg(text(view.relay));
  else if (!view.relay_trouble.empty())
    summary << tr("No relay serves this node: %1.").arg(text(view.relay_trouble));
  if (!view.turn.empty())
    summary << tr("Permitted nodes dial this node at %1, through your TURN server %2.")
                   .arg(text(view.turn), text(view.turn_server));
  else if (!view.turn_trouble.empty())
    summary << tr("Your TURN server %1 does not work now: %2.")
                   .arg(text(view.turn_server), text(view.turn_trouble));
  if (view.relaying)
    summary << tr("This node relays for nodes that others can't dial; %1 are registered here.")
                   .arg(Format::integer(view.relayed_nodes));
  show_line(summary_, summary.join(QLatin1Char(' ')));
  show_line(advice_, text(view.advice));
  QStringList found;
  for (const std::string& line : view.found) found << text(line);
  if (view.download != 0 || view.upload != 0)
    found << tr("Measured bandwidth: %1.").arg(PeerModel::line_text(view.download, view.upload));
  show_line(found_, found.join(QLatin1Char('\n')));
  show_line(tested_, view.testing     ? tr("A test is running.")
                     : view.tested_at ? tr("Tested %1; this node listens at %2.")
                                            .arg(Format::ago(*view.tested_at, now), text(view.listens_at))
                                      : tr("This node listens at %1.").arg(text(view.listens_at)));
  invite_->setEnabled(!view.invitation.empty());
  invite_->setToolTip(view.invitation.empty()
                          ? tr("An invitation needs a reachable node. Others can't reach this one, and it "
                               "knows no tracker and no reachable peer.")
                          : tr("Shows a link and a QR code that invite others to this network"));
}

void NetworkCards::show_traffic(const node::NetworkView& view) {
  PlotSeries in{tr("received"), {}, 0}, out{tr("sent"), {}, 1};
  for (const node::TrafficPoint& point : view.traffic) {
    const double x = static_cast<double>(to_unix_ms(point.at)) / 1000.0;
    in.points.push_back({x, point.in, point.in, point.in, 1});
    out.points.push_back({x, point.out, point.out, point.out, 1});
  }
  traffic_->set_caption(tr("%1 received, %2 sent since the start, without transport overhead")
                            .arg(Format::bytes(view.bytes_in), Format::bytes(view.bytes_out)));
  if (view.traffic.empty()) return;
  const double from = in.points.front().x, to = in.points.back().x;
  std::vector<PlotSeries> series;
  series.push_back(std::move(in));
  series.push_back(std::move(out));
  traffic_->plot()->set_series(std::move(series));
  traffic_->plot()->view()->set_full({from, std::max(to, from + 60)});
}

}  // namespace neuroshard::ui
