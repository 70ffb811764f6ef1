// Outer rounds on the pages of training and the overview: nothing of them where there are none, and else who
// contributed, who was late and why, whether all agree, and what is not known.
#include <QProgressBar>
#include <QPushButton>
#include <QTableView>
#include <algorithm>

#include "tests/support/test_main.h"
#include "tests/unit/ui/pages/page_fixture.h"
#include "ui/pages/overview_page.h"
#include "ui/pages/rounds_cards.h"
#include "ui/pages/training_page.h"
#include "ui/text/format.h"
#include "ui/text/translation.h"
#include "ui/widgets/gauge.h"
#include "ui/widgets/plot_panel.h"
#include "ui/widgets/plot_widget.h"
#include "ui/widgets/share_bar.h"

using namespace neuroshard;      // NOLINT
using namespace neuroshard::ui;  // NOLINT

class TestRoundsPages : public QObject {
  Q_OBJECT
 private Q_SLOTS:
  void initTestCase() { install_translation(*qApp, QStringLiteral("en")); }
  void init() { fixture_ = std::make_unique<PageFixture>(); }
  void cleanup() { fixture_.reset(); }
  void a_node_alone_shows_nothing_of_rounds();
  void the_training_page_tells_of_the_rounds();
  void the_network_loss_has_one_name_and_value();
  void who_was_late_or_left_out_is_named();
  void rounds_are_marked_in_the_loss();
  void what_keeps_the_rounds_is_said_where_the_alert_leads();
  void alone_and_few_are_said();
  void what_is_unknown_is_a_dash();
  void the_overview_tells_the_part_of_the_model();
  void disagreement_is_told_on_the_overview();
  void a_failure_is_told_and_goes_away();
  void the_chain_is_told_in_plain_words();
  void a_candidate_sees_how_far_it_is_from_a_vote();
  void the_app_offers_to_go_on_after_a_day_only();
  void everything_has_a_name();
  void another_core_begins_with_empty_charts();

 private:
  void take_part();
  QString text(const char* name) const { return fixture_->find<QLabel>(name)->text(); }
  std::unique_ptr<PageFixture> fixture_;
};

void TestRoundsPages::take_part() {
  testing::FakeNode& node = *fixture_->node;
  node.publish([](node::Snapshot& next) {
    next.state = node::RunState::Training;
    next.program.network = "devnet";
    next.training.smoothed_loss = 3.25;
    node::RoundsView& rounds = next.rounds;
    rounds.taking_part = true;
    rounds.phase = "training";
    rounds.round = 12;
    rounds.member = true;
    rounds.members = 6;
    rounds.contributors = 5;
    rounds.steps = 20;
    rounds.inner_steps = 80;
    rounds.contributed = 11;
    rounds.waiting_seconds = 30;
    rounds.waiting_share = 0.08;
    rounds.bytes_sent = 3u << 20;
    rounds.bytes_received = 9u << 20;
    rounds.seconds_left = 119.2;
    node::GlobalTrainingView& global = rounds.global;
    global.reports = 6;
    global.wallets = 5;
    global.training_nodes = 6;
    global.loss = 3.125;
    global.tokens = 12'000'000;
    global.steps = 5859;
    global.hash_agreement = 1;
    global.agreement_round = 12;
    global.sync_success = 0.97;
    global.loss_trend = "improving";
    global.verified = true;
    global.verified_reason = "the network loss went from 4.0000 to 3.1250";
  });
  node.rounds.taking_part = true;
  node::RoundEntry round;
  round.round = 12;
  round.at = fixture_->clock.wall_now();
  round.seconds = 75;
  round.waited = 6;
  round.members = 3;
  round.contributors = 2;
  round.rule = "weighted-mean";
  round.who = {{std::string(64, 'a'), true, true, 80, 1000, 0.5, {}},
               {std::string(64, 'b'), false, true, 40, 500, 0.5, {}},
               {std::string(64, 'c'), false, false, 0, 0, std::nullopt, "late: its work was not there"}};
  node::RoundEntry before = round;
  before.round = 11;
  before.contributors = 3;
  before.who.resize(2);
  node.rounds.rounds = {round, before};
  node::TrainingNodeEntry own;
  own.id = std::string(64, 'a');
  own.wallet = "26870dc7719c62a5";
  own.mine = own.counts = own.training = true;
  own.round = 12;
  own.agrees = true;
  own.loss = 3.25;
  own.synced = 11;
  own.missed = 1;
  own.at = fixture_->clock.wall_now();
  node::TrainingNodeEntry other = own;
  other.id = std::string(64, 'b');
  other.mine = false;
  other.agrees = false;
  other.loss.reset();
  node.rounds.nodes = {own, other};
  node.rounds.losses = {{11, 3.2}, {12, 3.125}};
  node.rounds.refused = {{"from another anchor", 3}};
}

void TestRoundsPages::a_node_alone_shows_nothing_of_rounds() {
  fixture_->show<TrainingPage>();
  QVERIFY(!fixture_->find<RoundsCards>("rounds_cards")->isVisible());
  const auto queries = fixture_->node->queries();
  QVERIFY(std::find(queries.begin(), queries.end(), "rounds") == queries.end());
  fixture_->show<OverviewPage>();
  QVERIFY(!fixture_->find<QWidget>("overview_together")->isVisible());
  QVERIFY(text("overview_network_note").contains(QStringLiteral("trains alone")));
}

void TestRoundsPages::the_training_page_tells_of_the_rounds() {
  take_part();
  fixture_->show<TrainingPage>();
  QTRY_VERIFY(fixture_->find<RoundsCards>("rounds_cards")->isVisible());
  QCOMPARE(text("rounds_phase"), QStringLiteral("Training for this round, about 2\u00a0min left"));
  QCOMPARE(fixture_->find<QProgressBar>("rounds_progress")->value(), 250);
  QCOMPARE(text("rounds_agreement"), QStringLiteral("All nodes hold the same weights after round 12"));
  QVERIFY(text("rounds_verified").startsWith(QStringLiteral("Progress is shown")));
  QVERIFY(!fixture_->find<QLabel>("rounds_caution")->isVisible());  // six are enough
  QTRY_COMPARE(fixture_->find<PlotPanel>("rounds_losses")->plot()->series().size(), std::size_t{1});
  QCOMPARE(fixture_->find<PlotPanel>("rounds_losses")->plot()->series()[0].points.size(), std::size_t{2});
  // Later values show without a click.
  fixture_->node->rounds.rounds[0].round = 13;
  fixture_->node->rounds.rounds.resize(1);
  QTRY_COMPARE_WITH_TIMEOUT(fixture_->find<QTableView>("rounds_table")->model()->rowCount(), 1, 20'000);
}

void TestRoundsPages::the_network_loss_has_one_name_and_value() {
  take_part();
  const auto shown = [this] {
    QStringList values;
    for (const Fact* fact : fixture_->page->findChildren<Fact*>())
      for (const QLabel* label : fact->findChildren<QLabel*>())
        if (label->text() == QStringLiteral("Network loss")) values << fact->value();
    return values;
  };
  fixture_->show<OverviewPage>();
  QCOMPARE(shown(), QStringList{Format::loss(3.125)});
  fixture_->show<TrainingPage>();
  QCOMPARE(shown(), QStringList{Format::loss(3.125)});
  const PlotPanel* losses = fixture_->find<PlotPanel>("rounds_losses");
  QTRY_COMPARE(losses->plot()->series().size(), std::size_t{1});
  QCOMPARE(losses->plot()->series()[0].name, QStringLiteral("Network loss"));
  QCOMPARE(losses->plot()->series()[0].points.back().mean, 3.125);
}

void TestRoundsPages::who_was_late_or_left_out_is_named() {
  take_part();
  fixture_->node->rounds.rounds[1].fetched = true;
  fixture_->node->rounds.rounds[1].rule = "fragment 2 of 2";
  fixture_->show<TrainingPage>();
  const QAbstractItemModel* rounds = fixture_->find<QTableView>("rounds_table")->model();
  QTRY_COMPARE(rounds->rowCount(), 2);
  const auto cell = [&](int row, int column) { return rounds->index(row, column).data().toString(); };
  QCOMPARE(cell(0, 0), QStringLiteral("12"));
  QCOMPARE(cell(0, 4), QStringLiteral("2 of 3"));
  QCOMPARE(cell(0, 5), QString(12, 'c') + QStringLiteral(": late: its work was not there"));
  QVERIFY(cell(0, 6).contains(QStringLiteral("this node")) && cell(0, 6).contains(QString(12, 'b')));
  QCOMPARE(cell(1, 5), QStringLiteral("nobody"));
  QCOMPARE(cell(0, 7), QStringLiteral("weighted-mean"));
  QCOMPARE(cell(1, 7), QStringLiteral("fragment 2 of 2: fetched from others"));
  QVERIFY(text("rounds_refused").contains(QStringLiteral("from another anchor (3)")));
  const QAbstractItemModel* nodes = fixture_->find<QTableView>("rounds_nodes")->model();
  QCOMPARE(nodes->rowCount(), 2);
  QVERIFY(nodes->index(0, 0).data().toString().contains(QStringLiteral("this node")));
  QVERIFY(nodes->index(1, 3).data().toString().contains(QStringLiteral("different")));
  fixture_->publish([](node::Snapshot& next) {
    next.rounds.left_out = 2;
    next.rounds.left_out_reason = "round 9 was closed without this node's work";
  });
  QVERIFY(text("rounds_left_out").contains(QStringLiteral("round 9 was closed")));
  QVERIFY(text("rounds_left_out").contains(QStringLiteral("left out 2 times")));
  fixture_->publish([](node::Snapshot& next) { next.rounds.left_out = next.rounds.contributed = 1; });
  QVERIFY2(text("rounds_left_out").contains(QStringLiteral("left out 1 time;")),
           qPrintable(text("rounds_left_out")));
  const auto labels = fixture_->page->findChildren<QLabel*>();
  QVERIFY(std::any_of(labels.begin(), labels.end(), [](const QLabel* label) {
    return label->text() == QStringLiteral("1 contribution from here");
  }));
}

void TestRoundsPages::rounds_are_marked_in_the_loss() {
  take_part();
  testing::FakeNode& node = *fixture_->node;
  node.rounds.rounds[0].step = 240;
  node.rounds.rounds[1].step = 160;
  node.rounds.rounds[1].members = node.rounds.rounds[1].contributors = 2;  // one came since
  node.rounds.rounds.push_back(node.rounds.rounds[1]);
  node.rounds.rounds[2].round = 10;
  node.rounds.rounds[2].step = 0;  // an older core does not tell
  TrainingPage& page = fixture_->show<TrainingPage>();
  const PlotWidget* plot = page.loss_panel()->plot();
  const auto marks = [plot](PlotMarkKind kind) {
    QStringList found;
    for (const PlotMark& mark : plot->marks())
      if (mark.kind == kind) found << QStringLiteral("%1 %2").arg(mark.x).arg(mark.text);
    return found;
  };
  QTRY_COMPARE(marks(PlotMarkKind::Sync), QStringList({QStringLiteral("240 Round 12: 2 of 3 contributed"),
                                                       QStringLiteral("160 Round 11: 2 of 2 contributed")}));
  QCOMPARE(marks(PlotMarkKind::Join).size(), 1);
  QVERIFY2(marks(PlotMarkKind::Join)[0].startsWith(QStringLiteral("240 1 ")),
           qPrintable(marks(PlotMarkKind::Join)[0]));
}

// The alert on the Overview page leads here.
void TestRoundsPages::what_keeps_the_rounds_is_said_where_the_alert_leads() {
  take_part();
  fixture_->show<TrainingPage>();
  QVERIFY(!fixture_->find<QLabel>("rounds_alerts")->isVisible());
  fixture_->publish([](node::Snapshot& next) {
    next.alerts = {{"rounds_line", node::Severity::Warning, "the line is too slow", {}},
                   {"disk_low", node::Severity::Warning, "the disk is nearly full", {}},
                   {"rounds_standstill", node::Severity::Warning, "round 5 needs all 3 members", {}}};
  });
  QVERIFY(fixture_->find<QLabel>("rounds_alerts")->isVisible());
  QCOMPARE(text("rounds_alerts"), QStringLiteral("the line is too slow\n\nround 5 needs all 3 members"));
  fixture_->publish([](node::Snapshot& next) { next.alerts.clear(); });
  QVERIFY(!fixture_->find<QLabel>("rounds_alerts")->isVisible());
}

void TestRoundsPages::alone_and_few_are_said() {
  take_part();
  fixture_->show<TrainingPage>();
  fixture_->publish([](node::Snapshot& next) { next.rounds.members = 1; });
  QVERIFY(text("rounds_caution").startsWith(QStringLiteral("Alone")));
  fixture_->publish([](node::Snapshot& next) { next.rounds.members = 3; });
  QVERIFY(text("rounds_caution").startsWith(QStringLiteral("Too few to outvote")));
  fixture_->publish([](node::Snapshot& next) { next.rounds.member = false; });
  QVERIFY(text("rounds_caution").startsWith(QStringLiteral("Not a member yet")));
  fixture_->publish([](node::Snapshot& next) { next.rounds.phase = "away"; });
  QVERIFY(text("rounds_caution").isEmpty());
  QVERIFY(text("rounds_phase").startsWith(QStringLiteral("Away")));
  fixture_->publish([](node::Snapshot& next) { next.rounds.trouble = "another tokenizer"; });
  QCOMPARE(text("rounds_caution"), QStringLiteral("another tokenizer"));
  fixture_->publish([](node::Snapshot& next) {
    next.rounds.phase = "training alone until the others are back";
    next.rounds.seconds_left.reset();
  });
  QVERIFY(text("rounds_phase").contains(QStringLiteral("until they return")));
}

void TestRoundsPages::what_is_unknown_is_a_dash() {
  take_part();
  fixture_->show<OverviewPage>();
  fixture_->publish([](node::Snapshot& next) {
    next.rounds.global = {};
    next.rounds.round = 0;
    next.rounds.phase = "preparing";
  });
  QVERIFY(text("overview_agreement").startsWith(QStringLiteral("Not known yet")));
  QCOMPARE(text("overview_rounds"), QStringLiteral("Preparing the model"));
  const auto dashes = fixture_->find<QWidget>("overview_together")->findChildren<QLabel*>();
  for (const QLabel* label : dashes)
    QVERIFY2(label->text() != QStringLiteral("0"), qPrintable(label->objectName()));
}

void TestRoundsPages::the_overview_tells_the_part_of_the_model() {
  take_part();
  fixture_->show<OverviewPage>();
  fixture_->publish([](node::Snapshot& next) {
    next.model.layers = 6;
    next.rounds.part.reset();
  });
  QVERIFY2(text("overview_part").startsWith(QStringLiteral("All of it: ")),
           qPrintable(text("overview_part")));
  fixture_->publish([](node::Snapshot& next) {
    next.rounds.part.emplace();
    next.rounds.part->number = 2;
    next.rounds.part->count = 3;
    next.rounds.part->holds = "layers 2 to 3";
  });
  QCOMPARE(text("overview_part"), QStringLiteral("Part 2 of 3: layers 2 to 3"));
}

void TestRoundsPages::disagreement_is_told_on_the_overview() {
  take_part();
  fixture_->show<OverviewPage>();
  QTRY_VERIFY(fixture_->find<QWidget>("overview_together")->isVisible());
  QCOMPARE(text("overview_agreement"), QStringLiteral("All nodes hold the same weights after round 12"));
  fixture_->publish([](node::Snapshot& next) {
    next.rounds.global.hash_agreement = 0.996;
    next.alerts = {{"rounds_agreement", node::Severity::Warning, "Only 99 % of the nodes agree", {}}};
  });
  QCOMPARE(text("overview_agreement"),
           QStringLiteral("Only 99\u00a0% of the nodes hold the same weights after round 12"));
  bool opened = false;
  for (QPushButton* button : fixture_->find<QWidget>("overview_alerts")->findChildren<QPushButton*>()) {
    if (button->text() != QStringLiteral("Open rounds")) continue;
    QTest::mouseClick(button, Qt::LeftButton);
    opened = true;
  }
  QVERIFY(opened);
  QCOMPARE(fixture_->went_to, QStringLiteral("training"));
  fixture_->publish([](node::Snapshot& next) {
    next.rounds.global.hash_agreement = 1;
    next.rounds.global.sync_success = 0.4;
  });
  QVERIFY(text("overview_agreement").contains(QStringLiteral("only 40\u00a0%")));
}

void TestRoundsPages::a_failure_is_told_and_goes_away() {
  take_part();
  fixture_->node->fail_queries(make_error(ErrorCode::Busy, "too much to do"));
  fixture_->show<TrainingPage>();
  QTRY_COMPARE(text("rounds_problem"), QStringLiteral("too much to do"));
  QVERIFY(fixture_->find<QLabel>("rounds_problem")->isVisible());
  fixture_->node->fail_queries(make_error(ErrorCode::Busy, ""));
  QTRY_VERIFY_WITH_TIMEOUT(!fixture_->find<QLabel>("rounds_problem")->isVisible(), 20'000);
}

void TestRoundsPages::everything_has_a_name() {
  take_part();
  fixture_->show<TrainingPage>();
  QTRY_VERIFY(fixture_->find<RoundsCards>("rounds_cards")->isVisible());
  for (const QWidget* widget : fixture_->find<RoundsCards>("rounds_cards")->findChildren<QWidget*>()) {
    if (widget->focusPolicy() == Qt::NoFocus || !widget->isVisible()) continue;
    const auto* label = qobject_cast<const QLabel*>(widget);
    if (label != nullptr && !label->text().isEmpty()) continue;
    if (qobject_cast<const QAbstractScrollArea*>(widget->parentWidget()) != nullptr) continue;
    QVERIFY2(!widget->accessibleName().isEmpty(), widget->metaObject()->className());
  }
  QVERIFY(!fixture_->find<QTableView>("rounds_table")->accessibleName().isEmpty());
}

namespace {

node::ChainView chain_of_four() {
  node::ChainView chain;
  chain.genesis = std::string(64, '1');
  chain.height = 40;
  chain.block_age = 5;
  chain.voters = chain.committee = 4;
  chain.candidates = 1;
  chain.active_units = chain.heard_units = 48;
  chain.standing = "voter";
  chain.outlook = "certifies";
  return chain;
}

}  // namespace

void TestRoundsPages::the_chain_is_told_in_plain_words() {
  take_part();
  fixture_->node->publish([](node::Snapshot& next) { next.rounds.chain = chain_of_four(); });
  fixture_->show<TrainingPage>();
  QTRY_COMPARE(text("chain_standing"), QStringLiteral("This node votes."));
  QCOMPARE(text("chain_presence"), QStringLiteral("All voters are reachable."));
  QVERIFY(!fixture_->find<QLabel>("chain_others")->isVisible());
  fixture_->show<OverviewPage>();
  QTRY_VERIFY(text("overview_chain").startsWith(QStringLiteral("Block 40 was certified")));
  fixture_->publish([](node::Snapshot& next) {
    node::ChainView& chain = next.rounds.chain;
    chain.heard_units = 36;
    chain.missing_count = 1;
    chain.missing = {std::string(64, 'd')};
    chain.others = {{std::string(64, '2'), 2}};
  });
  QTRY_VERIFY(text("overview_chain").contains(QString(12, 'd')));
  QVERIFY(text("overview_chain").contains(QStringLiteral("another history")));
}

void TestRoundsPages::a_candidate_sees_how_far_it_is_from_a_vote() {
  take_part();
  fixture_->node->publish([](node::Snapshot& next) {
    next.rounds.chain = chain_of_four();
    next.rounds.chain.standing = "candidate";
    next.rounds.chain.contributions = 3;
    next.rounds.chain.contributions_needed = 8;
    next.rounds.chain.needs_voucher = true;
  });
  fixture_->show<TrainingPage>();
  QTRY_VERIFY(text("chain_standing").contains(QStringLiteral("3 of 8 contributions")));
  QVERIFY(text("chain_standing").contains(QStringLiteral("invitation")));
}

void TestRoundsPages::the_app_offers_to_go_on_after_a_day_only() {
  take_part();
  fixture_->show<TrainingPage>();
  const auto wait_for = [this](double seconds) {
    fixture_->publish([seconds](node::Snapshot& next) {
      node::ChainView& chain = next.rounds.chain = chain_of_four();
      chain.heard_units = 12;
      chain.missing_count = 1;
      chain.missing = {std::string(64, 'd')};
      chain.outlook = "needs_a_person";
      chain.person_needed_seconds = seconds;
    });
  };
  wait_for(23 * 3600);
  QTRY_VERIFY(fixture_->find<QLabel>("chain_recovery")->isVisible());
  QVERIFY(text("chain_recovery").contains(QStringLiteral("Start them again")));
  QVERIFY(!fixture_->find<QPushButton>("chain_go_on")->isVisible());
  wait_for(25 * 3600);
  QTRY_VERIFY(fixture_->find<QPushButton>("chain_go_on")->isVisible());
  fixture_->find<QPushButton>("chain_go_on")->click();
  QVERIFY(fixture_->node->decided.continuations.empty());  // not before the person agrees
  auto* agree = fixture_->page->findChild<QPushButton*>("confirm_action");
  QVERIFY(agree != nullptr);
  agree->click();
  QTRY_COMPARE(fixture_->node->decided.continuations.size(), std::size_t{1});
  QCOMPARE(fixture_->node->decided.continuations[0].without, std::vector<std::string>{std::string(64, 'd')});
  QTRY_VERIFY(text("chain_outcome").contains(QStringLiteral("on its way")));
}

void TestRoundsPages::another_core_begins_with_empty_charts() {
  take_part();
  fixture_->node->rounds.rounds[0].step = 240;
  fixture_->node->publish([](node::Snapshot& next) {
    next.identity.instance_id = "one";
    next.training.step = 300;
    next.training.last_step.emplace().compute_seconds = 2;
  });
  TrainingPage& page = fixture_->show<TrainingPage>();
  const PlotWidget* plot = page.loss_panel()->plot();
  const auto* parts = page.findChild<ShareBar*>();
  const auto* losses = fixture_->find<PlotPanel>("rounds_losses")->plot();
  QTRY_VERIFY(!plot->empty() && !plot->marks().empty() && !losses->empty());
  QVERIFY(!parts->parts().empty());
  auto other = std::make_shared<testing::FakeNode>();
  other->series["loss"] = {};  // it has not trained yet
  fixture_->replace_core(other, [](node::Snapshot& next) { next.identity.instance_id = "two"; });
  QVERIFY(plot->marks().empty() && parts->parts().empty() && losses->empty());
  QTRY_VERIFY(plot->empty());
}

NS_UI_TEST(TestRoundsPages)
#include "test_rounds_pages.moc"
