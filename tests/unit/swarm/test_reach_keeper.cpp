// Whether others can dial a node, as it is found out and kept true: only what was dialled is advertised.
#include <QtTest>
#include <set>

#include "core/swarm/reach_keeper.h"
#include "tests/support/test_main.h"

using namespace neuroshard;
using namespace neuroshard::swarm;
using platform::Endpoint;
using platform::IpAddress;

namespace {

const IpAddress outside = IpAddress::v4(11, 22, 33, 44);
const IpAddress inside = IpAddress::v4(10, 0, 0, 2);

nat::RouterNews opened(std::uint16_t port, const IpAddress& at = outside) {
  nat::RouterNews news;
  news.local = inside;
  news.mappers.push_back({"UPnP", std::nullopt, Endpoint{at, port}, nat::Dialled::NotTried});
  return news;
}

nat::RouterNews refused() {
  nat::RouterNews news;
  news.local = inside;
  news.mappers.push_back({"UPnP", make_error(ErrorCode::Denied, "UPnP is switched off"), std::nullopt, {}});
  return news;
}

}  // namespace

class TestReachKeeper : public QObject {
  Q_OBJECT
 private Q_SLOTS:
  void init();
  void an_open_port_is_public();
  void a_mapped_port_is_dialled_before_it_is_advertised();
  void a_mapping_that_leads_nowhere_is_not_advertised();
  void a_lost_mapping_is_not_advertised_any_more();
  void another_address_is_tried_anew();
  void an_answer_about_the_former_address_counts_no_more();
  void one_miss_is_no_proof();
  void nobody_to_ask_is_no_verdict();

 private:
  void verify() {
    keeper_->verify(
        [this](std::uint16_t port, const ReachKeeper::DialledBack& done) {
          asked_.push_back(port);
          if (busy_) return done(make_error(ErrorCode::Exhausted, "too many dial-backs"));
          done(DialBackAnswer{open_.count(port) > 0, "no answer"});
        },
        [] {});
  }
  ManualClock clock_;
  std::unique_ptr<ReachKeeper> keeper_;
  std::set<std::uint16_t> open_;  // ports that are reached from outside
  std::vector<std::uint16_t> asked_;
  bool busy_ = false;
  int changes_ = 0;
};

void TestReachKeeper::init() {
  open_.clear();
  asked_.clear();
  busy_ = false;
  changes_ = 0;
  keeper_ = std::make_unique<ReachKeeper>(
      9000, clock_, ReachKeeper::Events{[this] { ++changes_; }, [](const IpAddress&) {}});
}

void TestReachKeeper::an_open_port_is_public() {
  QVERIFY(!keeper_->due());
  open_ = {9000};
  keeper_->seen({outside, 51000});
  QVERIFY(keeper_->due());
  verify();
  QCOMPARE(keeper_->advertised(), std::optional(Endpoint{outside, 9000}));
  QCOMPARE(changes_, 1);
  QCOMPARE(keeper_->verdict().reach, nat::Reach::Public);
  QVERIFY(!keeper_->due());
  clock_.advance(std::chrono::minutes(11));
  QVERIFY(keeper_->due());
}

void TestReachKeeper::a_mapped_port_is_dialled_before_it_is_advertised() {
  keeper_->seen({outside, 51000});
  verify();
  QVERIFY(!keeper_->advertised() && keeper_->tested());
  keeper_->router_says(opened(40'123));
  QVERIFY(!keeper_->advertised());
  QVERIFY(keeper_->due());
  open_ = {40'123};
  verify();
  QCOMPARE(keeper_->advertised(), std::optional(Endpoint{outside, 40'123}));
  QCOMPARE(keeper_->verdict().reach, nat::Reach::Mapped);
  QCOMPARE(QString::fromStdString(keeper_->verdict().through), QString("UPnP"));
}

void TestReachKeeper::a_mapping_that_leads_nowhere_is_not_advertised() {
  keeper_->seen({outside, 51000});
  keeper_->router_says(opened(9000, IpAddress::v4(100, 64, 5, 2)));  // another router in front
  verify();
  QVERIFY(!keeper_->advertised());
  QVERIFY(keeper_->verdict().second_router);
  QCOMPARE(keeper_->verdict().reach, nat::Reach::RelayedOnly);
  QVERIFY(!keeper_->verdict().advice.empty());
}

void TestReachKeeper::a_lost_mapping_is_not_advertised_any_more() {
  open_ = {9000};
  keeper_->seen({outside, 51000});
  keeper_->router_says(opened(9000));
  verify();
  QVERIFY(keeper_->advertised());
  keeper_->router_says(refused());
  QVERIFY(!keeper_->advertised());
  QCOMPARE(changes_, 2);
  open_.clear();
  verify();
  QVERIFY(!keeper_->advertised());
  open_ = {9000};
  keeper_->router_says(opened(9000));
  verify();
  QVERIFY(keeper_->advertised());
}

void TestReachKeeper::another_address_is_tried_anew() {
  open_ = {9000};
  keeper_->seen({outside, 51000});
  verify();
  const IpAddress moved = IpAddress::v4(11, 22, 33, 99);
  keeper_->seen({moved, 51000});
  QVERIFY(!keeper_->advertised());
  verify();
  QCOMPARE(keeper_->advertised(), std::optional(Endpoint{moved, 9000}));
}

void TestReachKeeper::an_answer_about_the_former_address_counts_no_more() {
  keeper_->seen({outside, 51000});
  ReachKeeper::DialledBack late;
  bool ended = false;
  keeper_->verify([&](std::uint16_t, ReachKeeper::DialledBack done) { late = std::move(done); },
                  [&] { ended = true; });
  keeper_->seen({IpAddress::v4(11, 22, 33, 99), 51000});
  late(DialBackAnswer{true, {}});
  QVERIFY(ended && !keeper_->advertised());
  QVERIFY(keeper_->due());
}

void TestReachKeeper::one_miss_is_no_proof() {
  open_ = {9000};
  keeper_->seen({outside, 51000});
  verify();
  open_.clear();
  clock_.advance(std::chrono::minutes(11));
  verify();
  QVERIFY(keeper_->advertised());
  clock_.advance(std::chrono::seconds(16));
  QVERIFY(keeper_->due());
  verify();
  QVERIFY(!keeper_->advertised());
}

void TestReachKeeper::nobody_to_ask_is_no_verdict() {
  busy_ = true;
  keeper_->seen({outside, 51000});
  verify();
  QVERIFY(!keeper_->tested() && !keeper_->advertised());
  QCOMPARE(changes_, 0);
}

NS_TEST(TestReachKeeper)
#include "test_reach_keeper.moc"
