// The page of the network: an honest empty state, and what the core says of reachability, peers and traffic.
#include <QCheckBox>
#include <QClipboard>
#include <QLabel>
#include <QLineEdit>
#include <QLocale>
#include <QPushButton>
#include <QScrollBar>
#include <QTableView>
#include <algorithm>
#include <numeric>

#include "tests/support/test_main.h"
#include "tests/unit/ui/pages/page_fixture.h"
#include "ui/pages/experts_page.h"
#include "ui/pages/invite_dialog.h"
#include "ui/pages/network_page.h"
#include "ui/text/format.h"
#include "ui/widgets/bar_chart.h"
#include "ui/widgets/cell_grid.h"
#include "ui/widgets/empty_state.h"
#include "ui/widgets/gauge.h"
#include "ui/widgets/plot_panel.h"
#include "ui/widgets/plot_widget.h"
#include "ui/widgets/qr_code.h"

using namespace neuroshard;      // NOLINT
using namespace neuroshard::ui;  // NOLINT

constexpr const char* invitation =
    "neuroshard:join?to=AUObGOoAlGR9uZoWibmpX7_fWdR7hvzBdFYkRH50EvRIzq7wyzEBABAyMDMuMC4xMTMuOTo5MDAw";

class TestNetworkPage : public QObject {
  Q_OBJECT
 private Q_SLOTS:
  void init();
  void cleanup() { fixture_.reset(); }
  void a_node_alone_says_so();
  void in_safe_mode_it_is_not_connected();
  void shows_what_the_core_knows();
  void a_test_can_be_asked_for();
  void sources_fit_without_scrolling_data();
  void sources_fit_without_scrolling();
  void a_part_of_the_model_is_told();
  void a_path_has_the_times_of_its_hops();
  void others_are_invited();
  void a_link_with_a_vote_is_made_once_a_dialog();
  void a_wallet_without_a_vote_gives_none();
  void nobody_to_begin_with_is_said();
  void a_failure_is_told_and_goes_away();
  void the_memory_of_the_network_is_shown();
  void the_map_of_another_core_begins_empty();
  void the_loads_of_another_core_begin_empty();
  void loads_of_experts_held_elsewhere_are_unknown();
  void numbers_beyond_any_model_make_no_grid();
  void pictures();

 private:
  QString text(const char* name) const { return fixture_->find<QLabel>(name)->text(); }
  std::unique_ptr<PageFixture> fixture_;
};

void TestNetworkPage::init() {
  fixture_ = std::make_unique<PageFixture>();
  node::NetworkView& network = fixture_->node->network;
  network.taking_part = true;
  network.listens_at = "0.0.0.0:9000";
  network.reach = "relayed only";
  network.summary = "This computer can't be dialled: everybody else reaches it through a relay.";
  network.found = {"Other nodes see it at 198.51.100.7.", "UPnP: no router answered."};
  network.advice = "In the settings of your router, forward TCP port 9000 to 10.3.0.2.";
  network.relay = "203.0.113.9:8765";
  network.tested_at = fixture_->clock.wall_now();
  network.invitation = invitation;
  network.known_nodes = 12;
  network.table_members = 9;
  network.bytes_in = 5u << 20;
  network.bytes_out = 1u << 20;
  network.sources = {{"tracker.example.org:8765", "tracker", true, "registered"},
                     {"192.0.2.77:9000", "peer", false, "the peer can't be reached; tried again in 8 s"}};
  node::PeerEntry near;
  near.id = std::string(64, 'a');
  near.address = "192.0.2.8:9000";
  near.way = "direct";
  near.connected = true;
  near.round_trip = 0.021;
  near.version = "0.1.0";
  near.memory_bytes = std::uint64_t{8} << 30;
  near.tokens_per_second = 2100;
  near.bytes_in = 4u << 20;
  near.bytes_out = 700'000;
  node::PeerEntry far = near;
  far.id = std::string(64, 'b');
  far.way = "relayed";
  far.round_trip = 0.183;
  network.peers = {far, near};
  network.bans = {{std::string(64, 'c'), fixture_->clock.wall_now(), "records with wrong signatures"}};
  network.refusals = {{"not TLS", 14}};
  for (int i = 0; i < 30; ++i)
    network.traffic.push_back(
        {fixture_->clock.wall_now() + std::chrono::seconds(10 * i), 20'000.0 + 600 * i, 9'000.0 - 100 * i});
}

void TestNetworkPage::a_node_alone_says_so() {
  fixture_->node->network = {};
  fixture_->show<NetworkPage>();
  QTRY_VERIFY(fixture_->page->findChild<EmptyState*>()->isVisible());
  QVERIFY(!fixture_->find<QTableView>("network_peers")->isVisible());
  QVERIFY(!fixture_->find<QPushButton>("network_test")->isVisible());
}

void TestNetworkPage::in_safe_mode_it_is_not_connected() {
  fixture_->node->network = {};
  fixture_->show<NetworkPage>();
  fixture_->publish([](node::Snapshot& next) {
    next.safe_mode = true;
    next.program.network = "village";
  });
  auto* empty = fixture_->page->findChild<EmptyState*>();
  QTRY_VERIFY(empty->isVisible());
  const auto says = [empty](const QString& text) {
    const auto labels = empty->findChildren<QLabel*>();
    return std::any_of(labels.begin(), labels.end(),
                       [&text](const QLabel* label) { return label->text().contains(text); });
  };
  QVERIFY(says(QStringLiteral("Safe mode: this node is not connected to its network village.")));
  QVERIFY(!says(QStringLiteral("joined no network")));
  // A node that trains alone has no network to be away from.
  fixture_->publish([](node::Snapshot& next) { next.program.network = "solo"; });
  QVERIFY(says(QStringLiteral("joined no network")));
}

void TestNetworkPage::shows_what_the_core_knows() {
  fixture_->show<NetworkPage>();
  QTRY_COMPARE(text("network_reach"), QStringLiteral("Others can't dial this node"));
  QVERIFY(text("network_summary").contains(QStringLiteral("through the relay 203.0.113.9:8765")));
  QVERIFY(text("network_advice").contains(QStringLiteral("forward TCP port 9000")));
  QVERIFY(text("network_found").contains(QStringLiteral("no router answered")));
  QVERIFY(text("network_refused").contains(QStringLiteral("not TLS: 14")));
  const QAbstractItemModel* peers = fixture_->find<QTableView>("network_peers")->model();
  QCOMPARE(peers->rowCount(), 3);
  QCOMPARE(peers->index(0, 0).data().toString(), QString(12, 'a'));  // the nearest first
  const QAbstractItemModel* sources = fixture_->find<QTableView>("network_sources")->model();
  QCOMPARE(sources->rowCount(), 2);
  QVERIFY(sources->index(1, 2).data().toString().contains(QStringLiteral("tried again in 8 s")));
  const auto& series = fixture_->find<PlotPanel>("network_traffic")->plot()->series();
  QCOMPARE(series.size(), std::size_t{2});
  QCOMPARE(series[0].points.size(), std::size_t{30});
  // A TURN server of one's own, and what is wrong with it.
  fixture_->node->network.turn_server = "turn.example.org:3478";
  fixture_->node->network.turn = "203.0.113.5:50000";
  QTRY_VERIFY_WITH_TIMEOUT(text("network_summary").contains(QStringLiteral("203.0.113.5:50000")), 15'000);
  QVERIFY(text("network_summary").contains(QStringLiteral("turn.example.org:3478")));
  fixture_->node->network.turn.clear();
  fixture_->node->network.turn_trouble = "the TURN server does not accept this name and password";
  QTRY_VERIFY_WITH_TIMEOUT(text("network_summary").contains(QStringLiteral("does not accept this name")),
                           15'000);
  // Changes show without a click.
  fixture_->node->network.reach = "mapped";
  QTRY_COMPARE_WITH_TIMEOUT(text("network_reach"),
                            QStringLiteral("Others can reach this node, through the router"), 15'000);
}

void TestNetworkPage::the_memory_of_the_network_is_shown() {
  fixture_->show<NetworkPage>();
  fixture_->publish([](node::Snapshot& next) { next.rounds.taking_part = true; });
  QTRY_VERIFY(fixture_->page->findChild<QWidget*>(QStringLiteral("capacity_card")) != nullptr);
  const auto* card = fixture_->page->findChild<QWidget*>(QStringLiteral("capacity_card"));
  QVERIFY(!card->isVisible());
  node::NetworkMemoryView memory;
  memory.members = 6;
  memory.known = memory.needs_room = 5;
  memory.offered_bytes = 48'000'000'000;
  memory.own_bytes = 2'000'000'000;
  memory.tier = "Micro";
  memory.next_tier = "Small";
  memory.next_tier_bytes = 100'000'000'000;
  memory.present = {6, 512, 40'000'000, 1'200'000'000, 4};
  memory.next = {8, 640, 61'000'000, 2'500'000'000, 3};
  const auto show = [&] {
    fixture_->publish([&memory](node::Snapshot& next) { next.rounds.memory = memory; });
  };
  show();
  QTRY_VERIFY(card->isVisible());
  QTRY_COMPARE(
      text("capacity_models"),
      QString::fromUtf8(
          "The next larger model has 8 layers of width 640 (61.0\u00a0M parameters) and needs 2.5\u00a0GB "
          "of "
          "each member. 3 of 6 offer that, and 5 would have to. This computer offers 0.5\u00a0GB less than "
          "each member "
          "needs."));
  QVERIFY(text("capacity_rule").contains(QStringLiteral("keeps its size")));
  const auto facts = card->findChildren<Fact*>();
  QStringList values;
  for (const Fact* fact : facts) values << fact->value();
  QCOMPARE(values, (QStringList{QString::fromUtf8("48.0\u00a0GB"), QStringLiteral("Micro"),
                                QString::fromUtf8("2.0\u00a0GB"), QString::fromUtf8("1.2\u00a0GB")}));
  memory.possible = std::exchange(memory.next, std::nullopt);
  show();
  QTRY_COMPARE(
      text("capacity_models"),
      QString::fromUtf8("Enough members have room for 8 layers of width 640 (61.0\u00a0M parameters), with "
                        "2.5\u00a0GB of each."));
  memory.next = {10, 768, 120'000'000, 2'000'000'000, 4};
  show();
  QTRY_VERIFY(text("capacity_models").endsWith(QStringLiteral("This computer has room.")));
  memory.possible.reset();
  memory.next.reset();
  show();
  QTRY_COMPARE(text("capacity_models"), QStringLiteral("There is no larger model for this network."));
  memory.can_change = true;
  show();
  QTRY_COMPARE(text("capacity_models"),
               QStringLiteral("This is the largest model of the network's profile."));
  QVERIFY(text("capacity_rule").contains(QStringLiteral("changes by itself")));
}

void TestNetworkPage::the_map_of_another_core_begins_empty() {
  node::SlotEntry slot;
  slot.name = slot.kind = "embed";
  slot.bytes = 1000;
  slot.mine = true;
  fixture_->node->slots = {slot};
  fixture_->node->publish([](node::Snapshot& next) {
    next.identity.instance_id = "one";
    next.model.parameters = 1000;
  });
  fixture_->show<NetworkPage>();
  const auto* map = fixture_->find<CellGrid>("layer_map");
  const auto* memory = fixture_->find<QWidget>("memory_by_kind");
  QTRY_VERIFY(!map->content().rows.isEmpty() && memory->isVisible());
  // It has no model.
  auto other = std::make_shared<testing::FakeNode>();
  fixture_->replace_core(other, [](node::Snapshot& next) { next.identity.instance_id = "two"; });
  QVERIFY(map->content().rows.isEmpty() && !memory->isVisible());
  // A model that comes and goes.
  other->slots = {slot};
  fixture_->publish([](node::Snapshot& next) { next.model.parameters = 1000; });
  QTRY_VERIFY(!map->content().rows.isEmpty() && memory->isVisible());
  other->slots.clear();
  fixture_->publish([](node::Snapshot& next) { next.model.parameters = 0; });
  QTRY_VERIFY(map->content().rows.isEmpty() && !memory->isVisible());
}

void TestNetworkPage::the_loads_of_another_core_begin_empty() {
  fixture_->node->experts = {{0, 0, 0.75, 0, true, {}, 3}, {0, 1, 0.25, 0, true, {}, 1}};
  fixture_->node->publish([](node::Snapshot& next) {
    next.identity.instance_id = "one";
    next.training.step = 5;
  });
  ExpertsPage& page = fixture_->show<ExpertsPage>();
  const auto* matrix = fixture_->find<CellGrid>("expert_matrix");
  const auto* bars = page.findChild<BarChart*>();
  QTRY_VERIFY(!matrix->content().rows.isEmpty() && bars->isVisible());
  // A dense model, at the same step.
  auto other = std::make_shared<testing::FakeNode>();
  fixture_->replace_core(other, [](node::Snapshot& next) {
    next.identity.instance_id = "two";
    next.training.step = 5;
  });
  QVERIFY(matrix->content().rows.isEmpty() && !bars->isVisible());
  QCOMPARE(fixture_->find<QTableView>("spread_table")->model()->rowCount(), 0);
}

void TestNetworkPage::loads_of_experts_held_elsewhere_are_unknown() {
  // Layer 0 is another node's; layer 1 is held here.
  const std::vector<node::ExpertLoad> loads = {{0, 0, 0, 0, false, 1u, 0},
                                               {0, 1, 0, 0, false, 1u, 0},
                                               {1, 0, 0.75, 0, true, 1u, 3},
                                               {1, 1, 0.25, 0, true, 1u, 1}};
  const GridContent matrix = load_matrix(loads);
  QCOMPARE(matrix.cells[0].text, Format::dash());
  QVERIFY(!matrix.cells[0].outlined && matrix.cells[0].heat < 0);
  QCOMPARE(matrix.cells[3].text, QLocale().toString(0.5, 'f', 2));
  const std::vector<double> counts = load_classes(loads);
  QCOMPARE(std::accumulate(counts.begin(), counts.end(), 0.0), 2.0);
  QCOMPARE(counts[0], 0.0);
  fixture_->node->experts = loads;
  fixture_->node->publish([](node::Snapshot& next) { next.training.step = 5; });
  const ExpertsPage& page = fixture_->show<ExpertsPage>();
  const auto said = [&page](const QString& words) {
    const auto labels = page.findChildren<QLabel*>();
    return std::any_of(labels.begin(), labels.end(), [&](const QLabel* one) { return one->text() == words; });
  };
  QTRY_VERIFY(said(QStringLiteral("layer 1, expert 1")));
  QVERIFY(!said(QStringLiteral("layer 0, expert 0")));
}

// As a remote core may send them.
void TestNetworkPage::numbers_beyond_any_model_make_no_grid() {
  constexpr std::uint32_t last = 0xFFFF'FFFFu, many = 400'000'000;
  for (const auto& [layer, expert] :
       {std::pair(last, 0u), std::pair(last, last), std::pair(many, many), std::pair(0u, last)}) {
    const GridContent matrix = load_matrix({{0, 0, 1, 0, true, {}, 1}, {layer, expert, 1, 0, true, {}, 1}});
    QVERIFY(!matrix.cells.empty() && matrix.cells.size() <= 2 * node::max_slots);
    QVERIFY(!matrix.cells[0].description.isEmpty());
    for (const char* kind : {"layer", "expert"}) {
      const GridContent map = layer_map({{"layer 0", "layer", 0, 0, 1, 1, true, {}},
                                         {"embed", "embed", 0, 0, 1, 1, true, {}},
                                         {"far out", kind, layer, expert, 1, 1, true, {}}});
      QVERIFY(map.columns.size() <= static_cast<qsizetype>(node::max_layers) + 2);
      QVERIFY(map.cells[0].description.startsWith(QStringLiteral("Embedding")));
      const auto cells = std::count_if(map.cells.begin(), map.cells.end(),
                                       [](const GridCell& cell) { return !cell.description.isEmpty(); });
      QCOMPARE(cells, std::ptrdiff_t{2});
    }
  }
}

void TestNetworkPage::a_test_can_be_asked_for() {
  fixture_->show<NetworkPage>();
  QTRY_VERIFY(fixture_->find<QPushButton>("network_test")->isVisible());
  fixture_->click("network_test");
  QTRY_COMPARE(text("network_tested"), QStringLiteral("A test is running."));
  QVERIFY(!fixture_->find<QPushButton>("network_test")->isEnabled());
}

void TestNetworkPage::sources_fit_without_scrolling_data() {
  QTest::addColumn<int>("width");
  QTest::addColumn<bool>("whole");
  QTest::newRow("a narrow page") << 600 << false;
  QTest::newRow("beside the rail, in a window of 1280") << 1080 << false;
  QTest::newRow("beside the rail, in a window of 1400") << 1200 << true;
}

void TestNetworkPage::sources_fit_without_scrolling() {
  QFETCH(int, width);
  QFETCH(bool, whole);
  NetworkPage& page = fixture_->show<NetworkPage>();
  page.resize(width, 760);
  const auto* table = fixture_->find<QTableView>("network_sources");
  QTRY_COMPARE(table->model()->rowCount(), 2);
  QTRY_COMPARE(table->horizontalScrollBar()->maximum(), 0);
  const QModelIndex sentence = table->model()->index(1, 2);
  QCOMPARE(sentence.data(Qt::ToolTipRole).toString(), sentence.data().toString());
  if (whole) QVERIFY(table->columnWidth(2) >= table->sizeHintForIndex(sentence).width());
}

void TestNetworkPage::a_part_of_the_model_is_told() {
  fixture_->show<NetworkPage>();
  QVERIFY(!fixture_->find<QLabel>("part")->isVisible());
  fixture_->publish([](node::Snapshot& snapshot) {
    snapshot.rounds.part = node::PartView{
        2, 3, "layers 2 to 3", {2, 1, 0}, {81, 100, 90}, false, 1, 1234, 0, 0, {}, 0, 0, 0, {}};
  });
  QVERIFY(fixture_->find<QLabel>("part")->isVisible());
  const QString told = text("part");
  for (const char* said :
       {"This node holds part 2 of 3: layers 2 to 3. You chose it in the settings. ",
        "Only one node holds part 2", "No node holds part 3", "Nodes whose text passes through it: 1."})
    QVERIFY2(told.contains(QLatin1String(said)), qPrintable(told));
  QVERIFY2(told.contains("checked and found right: 0.") && !told.contains("wrong") &&
               !told.contains("Nobody checks"),
           qPrintable(told));
  QVERIFY2(!told.contains("part 1:") && !told.contains("slowest") && !told.contains("paused") &&
               !told.contains("on the way"),
           qPrintable(told));
  fixture_->publish([](node::Snapshot& snapshot) {
    node::PartView& part = *snapshot.rounds.part;
    part.follows_plan = true;
    part.moves_to = 3;
    part.reason = node::PartReason::NoHolder;
    part.found_right = 20;
    part.found_wrong = 1;
    part.withheld = 2;
    part.checkers = {3, 0, 2};
    part.speeds = {45, 100, 80};
  });
  const QString checks = text("part");
  for (const char* said : {"The network chose it. It moves to part 3, which no node holds.",
                           "checked and found right: 20.", "Found wrong: 1;", "did not send the data: 2.",
                           "Part 1 is the slowest, with 45\u00a0% of the speed of the fastest one.",
                           "Nobody checks part 2: every node with a vote holds it."})
    QVERIFY2(checks.contains(QString::fromUtf8(said)), qPrintable(checks));
}

void TestNetworkPage::a_path_has_the_times_of_its_hops() {
  fixture_->show<NetworkPage>();
  const auto* path = fixture_->find<QLabel>("part_path");
  const auto publish = [this](const std::vector<node::HopView>& hops) {
    fixture_->publish([&](node::Snapshot& snapshot) {
      snapshot.identity.node_id = std::string(64, 'b');
      snapshot.rounds.part =
          node::PartView{2, 2, "layers 2 to 3", {1, 1}, {}, false, 1, 1234, 0, 0, hops, 0, 0, 0, {}};
    });
  };
  publish({});
  QVERIFY(!path->isVisible());
  publish({{std::string(64, 'a'), std::nullopt, std::nullopt},
           {std::string(64, 'b'), std::nullopt, std::nullopt}});
  QVERIFY(path->isVisible());
  QCOMPARE(path->text(),
           QStringLiteral("The path of this node's text:\nPart 1: aaaaaaaaaaaa\nPart 2: this node"));
  publish({{std::string(64, 'a'), 12.0, 30.0}, {std::string(64, 'b'), std::nullopt, std::nullopt}});
  QCOMPARE(path->text(),
           QStringLiteral("The path of this node's text:\n"
                          "Part 1: aaaaaaaaaaaa, 12\u00a0ms computing; the line and waiting took "
                          "30\u00a0ms\nPart 2: this node"));
  QVERIFY(path->toolTip().contains(QStringLiteral("Means of the last micro-batches")));
}

void TestNetworkPage::others_are_invited() {
  fixture_->show<NetworkPage>();
  QTRY_COMPARE(text("network_reach"), QStringLiteral("Others can't dial this node"));
  const auto* button = fixture_->find<QPushButton>("network_invite");
  QVERIFY(button->isEnabled());
  fixture_->click("network_invite");
  auto* dialog = fixture_->page->window()->findChild<InviteDialog*>();
  QVERIFY(dialog != nullptr && dialog->isVisible());
  QCOMPARE(dialog->findChild<QLineEdit*>("invite_link")->text(), QString::fromLatin1(invitation));
  const auto* code = dialog->findChild<QrCode*>("invite_code");
  QVERIFY(code->isVisible() && code->width() >= 2 * code->modules() && code->height() >= 2 * code->modules());
  QCOMPARE(code->text(), QString::fromLatin1(invitation));
  if (const QString folder = qEnvironmentVariable("NS_PICTURES"); !folder.isEmpty())
    QVERIFY(dialog->grab().save(folder + QStringLiteral("/invite.png")));
  QTest::mouseClick(dialog->findChild<QPushButton*>("invite_copy"), Qt::LeftButton);
  QCOMPARE(QGuiApplication::clipboard()->text(), QString::fromLatin1(invitation));
  // Later news does not change the open dialog.
  fixture_->node->network.invitation.clear();
  QTRY_VERIFY_WITH_TIMEOUT(!button->isEnabled(), 10'000);
  QCOMPARE(dialog->findChild<QLineEdit*>("invite_link")->text(), QString::fromLatin1(invitation));
  dialog->close();
}

void TestNetworkPage::a_link_with_a_vote_is_made_once_a_dialog() {
  fixture_->node->network.can_let_vote = fixture_->node->network.votes_by_invitation = true;
  fixture_->show<NetworkPage>();
  QTRY_COMPARE(text("network_reach"), QStringLiteral("Others can't dial this node"));
  QVERIFY2(fixture_->node->invited.empty(), "the page that is shown again and again makes no voucher");
  fixture_->click("network_invite");
  auto* dialog = fixture_->page->window()->findChild<InviteDialog*>();
  const auto* line = dialog->findChild<QLineEdit*>("invite_link");
  auto* vote = dialog->findChild<QCheckBox*>("invite_vote");
  QVERIFY(vote->isVisible() && vote->isChecked());
  const QString with_vote = QString::fromLatin1(invitation) + QStringLiteral("-vote1");
  QTRY_COMPARE(line->text(), with_vote);
  const auto* explanation = dialog->findChild<QLabel*>("invite_explanation");
  QVERIFY(explanation->text().contains(QStringLiteral("whoever uses it first can vote")));
  vote->setChecked(false);
  QCOMPARE(line->text(), QString::fromLatin1(invitation));
  QVERIFY(explanation->text().contains(QStringLiteral("no secret")));
  vote->setChecked(true);
  QCOMPARE(line->text(), with_vote);
  QCOMPARE(dialog->findChild<QrCode*>("invite_code")->text(), with_vote);
  QVERIFY(fixture_->node->invited == std::vector<bool>{true});
  dialog->close();
}

void TestNetworkPage::a_wallet_without_a_vote_gives_none() {
  fixture_->node->network.votes_by_invitation = true;
  fixture_->show<NetworkPage>();
  QTRY_COMPARE(text("network_reach"), QStringLiteral("Others can't dial this node"));
  fixture_->click("network_invite");
  auto* dialog = fixture_->page->window()->findChild<InviteDialog*>();
  QVERIFY(!dialog->findChild<QCheckBox*>("invite_vote")->isVisible());
  const auto* note = dialog->findChild<QLabel*>("invite_note");
  QVERIFY(note->isVisible() && note->text().contains(QStringLiteral("has no vote yet")));
  QCOMPARE(dialog->findChild<QLineEdit*>("invite_link")->text(), QString::fromLatin1(invitation));
  QVERIFY(fixture_->node->invited.empty());
  dialog->close();
}

void TestNetworkPage::nobody_to_begin_with_is_said() {
  fixture_->node->network.invitation.clear();
  fixture_->show<NetworkPage>();
  QTRY_COMPARE(text("network_reach"), QStringLiteral("Others can't dial this node"));
  const auto* button = fixture_->find<QPushButton>("network_invite");
  QVERIFY(button->isVisible() && !button->isEnabled());
  QVERIFY(button->toolTip().contains(QStringLiteral("An invitation needs a reachable node")));
}

void TestNetworkPage::a_failure_is_told_and_goes_away() {
  fixture_->node->fail_queries(make_error(ErrorCode::Busy, "the network has too much to do"));
  fixture_->show<NetworkPage>();
  const auto told = [&] {
    for (const QLabel* label : fixture_->page->findChildren<QLabel*>())
      if (label->isVisible() && label->text() == QStringLiteral("the network has too much to do"))
        return true;
    return false;
  };
  QTRY_VERIFY(told());
}

// NS_PICTURES=FOLDER: the page as it looks, for people.
void TestNetworkPage::pictures() {
  const QString folder = qEnvironmentVariable("NS_PICTURES");
  if (folder.isEmpty()) QSKIP("only with NS_PICTURES");
  fixture_->show<NetworkPage>();
  QTRY_COMPARE(text("network_reach"), QStringLiteral("Others can't dial this node"));
  for (const int width : {1100, 480}) {
    fixture_->page->resize(width, 1500);
    QTest::qWait(200);
    QVERIFY(fixture_->page->grab().save(folder + QStringLiteral("/network-%1.png").arg(width)));
  }
}

NS_UI_TEST(TestNetworkPage)
#include "test_network_page.moc"
