// The network loss: the median of the newest round that enough members have reached, whatever one of them
// claims, and its history and trend.
#include <QtTest>
#include <limits>

#include "core/status/network_loss.h"
#include "tests/support/test_main.h"

using namespace neuroshard;
using namespace neuroshard::status;

namespace {

constexpr std::uint64_t no_round = std::numeric_limits<std::uint64_t>::max();

}  // namespace

class TestNetworkLoss : public QObject {
  Q_OBJECT
 private Q_SLOTS:
  void a_node_alone_shows_its_own();
  void it_is_the_median_of_now_not_of_the_rounds_before();
  void reports_of_older_rounds_do_not_count();
  void a_round_that_few_have_reached_waits();
  void one_byzantine_report_does_not_move_it_data();
  void one_byzantine_report_does_not_move_it();
  void two_wallets_show_the_lower_loss();
  void nodes_of_one_wallet_count_as_one();
  void a_node_that_does_not_train_reports_no_loss();
  void the_point_of_the_newest_round_follows_its_reports();
  void the_trend_and_what_counts_as_shown();
};

void TestNetworkLoss::a_node_alone_shows_its_own() {
  QVERIFY(!network_loss({}));
  for (const std::uint64_t round : {std::uint64_t{0}, std::uint64_t{7}, no_round}) {
    const auto shown = network_loss({{round, 4.25, 1}});
    QCOMPARE(shown->loss, 4.25);
    QCOMPARE(shown->round, round);
  }
}

void TestNetworkLoss::it_is_the_median_of_now_not_of_the_rounds_before() {
  LossHistory history;
  for (std::uint64_t round = 1; round <= 10; ++round) history.add({round, 6.2});
  const auto now = network_loss({{11, 4.8, 1}, {11, 4.81, 1}, {11, 4.79, 1}, {11, 4.8, 1}});
  QCOMPARE(now->loss, 4.8);
  history.add(*now);
  QCOMPARE(history.points().back().loss, 4.8);
  QCOMPARE(*history.least(), 4.8);
}

void TestNetworkLoss::reports_of_older_rounds_do_not_count() {
  const std::vector<ReportedLoss> reports = {{12, 4.8, 1}, {12, 4.9, 1}, {12, 4.7, 1},
                                             {3, 6.2, 1},  {11, 5.3, 1}, {4, 6.1, 1}};
  const auto shown = network_loss(reports);
  QCOMPARE(shown->round, std::uint64_t{12});
  QCOMPARE(shown->loss, 4.8);
}

void TestNetworkLoss::a_round_that_few_have_reached_waits() {
  // Two of five are a round ahead. Their losses count, the round is still the older one.
  std::vector<ReportedLoss> reports = {{6, 4.6, 1}, {6, 4.5, 1}, {5, 4.8, 1}, {5, 4.9, 1}, {5, 5, 1}};
  QCOMPARE(network_loss(reports)->round, std::uint64_t{5});
  QCOMPARE(network_loss(reports)->loss, 4.8);
  reports[2] = {6, 4.4, 1};
  QCOMPARE(network_loss(reports)->round, std::uint64_t{6});
  QCOMPARE(network_loss(reports)->loss, 4.5);
}

void TestNetworkLoss::one_byzantine_report_does_not_move_it_data() {
  QTest::addColumn<int>("honest");
  for (const int honest : {2, 3, 4, 5, 16})
    QTest::newRow(qPrintable(QStringLiteral("%1 honest").arg(honest))) << honest;
}

// At every moment of the change from one round to the next.
void TestNetworkLoss::one_byzantine_report_does_not_move_it() {
  QFETCH(int, honest);
  for (int ahead = 0; ahead <= honest; ++ahead) {
    for (const std::uint64_t round : {std::uint64_t{0}, std::uint64_t{7}, std::uint64_t{8}, no_round}) {
      for (const double loss : {1e-6, 4294.0}) {
        std::vector<ReportedLoss> reports = {{round, loss, 1}};
        for (int i = 0; i < honest; ++i) reports.push_back({i < ahead ? 8u : 7u, 4.8 + 0.001 * i, 1});
        const auto shown = network_loss(reports);
        QVERIFY2(shown->loss >= 4.8 && shown->loss < 4.82, qPrintable(QString::number(shown->loss)));
        QVERIFY2(shown->round == 7 || shown->round == 8 || (honest == 2 && shown->round == round),
                 qPrintable(QString::number(shown->round)));
      }
    }
  }
}

void TestNetworkLoss::two_wallets_show_the_lower_loss() {
  QCOMPARE(network_loss({{7, 4.8, 1}, {8, 4294, 1}})->loss, 4.8);
  QCOMPARE(network_loss({{7, 4.8, 1}, {8, 4294, 1}})->round, std::uint64_t{7});
}

void TestNetworkLoss::nodes_of_one_wallet_count_as_one() {
  std::vector<ReportedLoss> reports = {{7, 4.8, 1}, {7, 4.9, 1}, {7, 5, 1}};
  for (int i = 0; i < 20; ++i) reports.push_back({8, 50, 1.0 / 20});
  QCOMPARE(network_loss(reports)->loss, 4.9);
  QCOMPARE(network_loss(reports)->round, std::uint64_t{7});
}

void TestNetworkLoss::a_node_that_does_not_train_reports_no_loss() {
  OwnLoss own;
  QVERIFY(!own.at(4, 0, std::nullopt));
  QCOMPARE(*own.at(4, 100, 5.0), 5.0);
  QCOMPARE(*own.at(5, 100, 5.0), 5.0);  // certified, and no step on it yet
  QVERIFY(!own.at(6, 100, 5.0));
  QCOMPARE(*own.at(6, 101, 4.9), 4.9);
}

void TestNetworkLoss::the_point_of_the_newest_round_follows_its_reports() {
  LossHistory history;
  QVERIFY(!history.least());
  history.add({1, 6});
  history.add({2, 3});  // of the first report
  history.add({2, 5});
  history.add({1, 1});  // older: ignored
  QCOMPARE(history.points().size(), std::size_t{2});
  QCOMPARE(history.points().back().loss, 5.0);
  QCOMPARE(history.points().back().mean, 5.9);
  QCOMPARE(*history.least(), 5.0);
  for (std::uint64_t round = 3; round <= 5; ++round) {
    history.add({round, 100});
    history.add({round, 5.5});
  }
  QCOMPARE(*history.least(), 5.0);
  // The first three are 6, 5 and 5.5, the last three 5.5 each.
  const LossHistory::Verdict verdict = history.verdict();
  QVERIFY(!verdict.verified);
  QVERIFY2(verdict.reason.find("from 5.5000 to 5.5000") != std::string::npos, verdict.reason.c_str());
}

void TestNetworkLoss::the_trend_and_what_counts_as_shown() {
  LossHistory falling, flat, rising, slow;
  QCOMPARE(falling.trend(), Trend::InsufficientData);
  QVERIFY(!falling.verdict().verified);
  for (std::uint64_t round = 1; round <= 40; ++round) {
    const auto r = static_cast<double>(round);
    falling.add({round, 1000});  // replaced by the next report of the round
    falling.add({round, 10 - 0.15 * r});
    flat.add({round, 4 + (round % 2 == 0 ? 0.1 : -0.1)});
    rising.add({round, 3 + 0.1 * r});
    slow.add({round, 4 - 0.002 * r});
    if (round == 4) QCOMPARE(falling.trend(), Trend::InsufficientData);
  }
  QCOMPARE(falling.points().size(), std::size_t{40});
  QCOMPARE(falling.trend(), Trend::Improving);
  QVERIFY(falling.verdict().verified);
  QCOMPARE(*falling.least(), falling.points().back().loss);
  QCOMPARE(flat.trend(), Trend::Stable);
  QVERIFY(!flat.verdict().verified);
  QCOMPARE(rising.trend(), Trend::Degrading);
  QVERIFY(!rising.verdict().verified);
  QVERIFY(!slow.verdict().verified);
  QVERIFY2(slow.verdict().reason.find("10 %") != std::string::npos, slow.verdict().reason.c_str());
  for (std::uint64_t round = 41; round <= 2000; ++round) falling.add({round, 4});
  QCOMPARE(falling.points().size(), LossHistory::most_points);
  QCOMPARE(falling.trend(), Trend::Stable);
}

NS_TEST(TestNetworkLoss)
#include "test_network_loss.moc"
