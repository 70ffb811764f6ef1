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
const IpAddress elsewhere = IpAddress::v4(11, 22, 33, 99);
constexpr ReachKeeper::Observer one = 1, two = 2, three = 3;

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
  void one_observer_among_three_does_not_decide_the_address();
  void an_observer_that_left_has_no_vote();
  void only_an_observer_that_sees_the_address_dials_it();
  void one_dial_back_among_three_does_not_decide();
  void the_verdict_is_that_of_most_observers();
  void the_verdict_on_a_mapped_port_is_that_of_most_observers();
  void each_observer_is_asked_once_until_the_next_round();

 private:
  void verify(ReachKeeper::Observer by = one) {
    keeper_->verify(
        by,
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
  QVERIFY(!keeper_->due(one));
  open_ = {9000};
  keeper_->seen(one, {outside, 51000});
  QVERIFY(keeper_->due(one));
  verify();
  QCOMPARE(keeper_->advertised(), std::optional(Endpoint{outside, 9000}));
  QCOMPARE(changes_, 1);
  QCOMPARE(keeper_->verdict().reach, nat::Reach::Public);
  QVERIFY(!keeper_->due(one));
  clock_.advance(std::chrono::minutes(11));
  QVERIFY(keeper_->due(one));
}

void TestReachKeeper::a_mapped_port_is_dialled_before_it_is_advertised() {
  keeper_->seen(one, {outside, 51000});
  verify();
  QVERIFY(!keeper_->advertised() && keeper_->tested());
  keeper_->router_says(opened(40'123));
  QVERIFY(!keeper_->advertised());
  QVERIFY(keeper_->due(one));
  open_ = {40'123};
  verify();
  QCOMPARE(keeper_->advertised(), std::optional(Endpoint{outside, 40'123}));
  QCOMPARE(keeper_->verdict().reach, nat::Reach::Mapped);
  QCOMPARE(QString::fromStdString(keeper_->verdict().through), QString("UPnP"));
}

void TestReachKeeper::a_mapping_that_leads_nowhere_is_not_advertised() {
  keeper_->seen(one, {outside, 51000});
  keeper_->router_says(opened(9000, IpAddress::v4(100, 64, 5, 2)));  // another router in front
  verify();
  QVERIFY(!keeper_->advertised());
  QVERIFY(keeper_->verdict().second_router);
  QCOMPARE(keeper_->verdict().reach, nat::Reach::RelayedOnly);
  QVERIFY(!keeper_->verdict().advice.empty());
}

void TestReachKeeper::a_lost_mapping_is_not_advertised_any_more() {
  open_ = {9000};
  keeper_->seen(one, {outside, 51000});
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
  keeper_->seen(one, {outside, 51000});
  verify();
  keeper_->seen(one, {elsewhere, 51000});
  QVERIFY(!keeper_->advertised());
  verify();
  QCOMPARE(keeper_->advertised(), std::optional(Endpoint{elsewhere, 9000}));
}

void TestReachKeeper::an_answer_about_the_former_address_counts_no_more() {
  keeper_->seen(one, {outside, 51000});
  ReachKeeper::DialledBack late;
  bool ended = false;
  keeper_->verify(
      one, [&](std::uint16_t, ReachKeeper::DialledBack done) { late = std::move(done); },
      [&] { ended = true; });
  keeper_->seen(one, {elsewhere, 51000});
  late(DialBackAnswer{true, {}});
  QVERIFY(ended && !keeper_->advertised());
  QVERIFY(keeper_->due(one));
}

void TestReachKeeper::one_miss_is_no_proof() {
  open_ = {9000};
  keeper_->seen(one, {outside, 51000});
  verify();
  open_.clear();
  clock_.advance(std::chrono::minutes(11));
  verify();
  QVERIFY(keeper_->advertised());
  clock_.advance(std::chrono::seconds(16));
  QVERIFY(keeper_->due(one));
  verify();
  QVERIFY(!keeper_->advertised());
}

void TestReachKeeper::nobody_to_ask_is_no_verdict() {
  busy_ = true;
  keeper_->seen(one, {outside, 51000});
  verify();
  QVERIFY(!keeper_->tested() && !keeper_->advertised());
  QCOMPARE(changes_, 0);
}

void TestReachKeeper::one_observer_among_three_does_not_decide_the_address() {
  open_ = {9000};
  keeper_->seen(one, {elsewhere, 51000});  // the first one lies
  verify(one);
  keeper_->seen(two, {outside, 51000});
  QCOMPARE(keeper_->seen_at()->ip, elsewhere);
  keeper_->seen(three, {outside, 51000});
  QCOMPARE(keeper_->seen_at()->ip, outside);
  QVERIFY(!keeper_->advertised());
  verify(two);
  QCOMPARE(keeper_->advertised(), std::optional(Endpoint{outside, 9000}));
  keeper_->seen(one, {elsewhere, 51001});
  QCOMPARE(keeper_->advertised(), std::optional(Endpoint{outside, 9000}));
}

// As after a change of the own address: all connections break, and come back one by one.
void TestReachKeeper::an_observer_that_left_has_no_vote() {
  for (const auto by : {one, two, three}) keeper_->seen(by, {outside, 51000});
  for (const auto by : {one, two, three}) keeper_->gone(by);
  QCOMPARE(keeper_->seen_at()->ip, outside);
  keeper_->seen(two, {elsewhere, 51000});
  QCOMPARE(keeper_->seen_at()->ip, elsewhere);
}

void TestReachKeeper::only_an_observer_that_sees_the_address_dials_it() {
  open_ = {9000};
  keeper_->seen(one, {outside, 51000});
  keeper_->seen(two, {elsewhere, 51000});
  QVERIFY(keeper_->due(one) && !keeper_->due(two) && !keeper_->due(three));
  verify(two);
  QVERIFY(asked_.empty() && !keeper_->advertised());
  verify(one);
  QVERIFY(keeper_->advertised());
}

void TestReachKeeper::one_dial_back_among_three_does_not_decide() {
  for (const auto by : {one, two, three}) keeper_->seen(by, {outside, 51000});
  open_ = {9000};  // the first one lies: the port is closed
  verify(one);
  QVERIFY(keeper_->advertised());
  open_.clear();
  verify(two);
  QVERIFY(keeper_->due(three));
  verify(three);  // one miss is no proof
  clock_.advance(std::chrono::seconds(16));
  QVERIFY(keeper_->due(two));
  verify(two);
  QVERIFY(!keeper_->advertised());

  init();
  for (const auto by : {one, two, three}) keeper_->seen(by, {outside, 51000});
  verify(one);  // the first one lies: the port is open
  QVERIFY(!keeper_->advertised());
  open_ = {9000};
  verify(two);
  QVERIFY(keeper_->advertised());
  verify(three);
  open_.clear();
  for (int i = 0; i < 10; ++i) {
    clock_.advance(std::chrono::minutes(11));
    verify(one);
  }
  QCOMPARE(keeper_->advertised(), std::optional(Endpoint{outside, 9000}));
}

void TestReachKeeper::the_verdict_is_that_of_most_observers() {
  // Either the first one or the last one does not reach it.
  for (const auto misses : {one, three}) {
    init();
    for (const auto by : {one, two, three}) keeper_->seen(by, {outside, 51000});
    for (const auto by : {one, two, three}) {
      open_.clear();
      if (by != misses) open_.insert(9000);
      verify(by);
    }
    QCOMPARE(keeper_->advertised(), std::optional(Endpoint{outside, 9000}));
    QCOMPARE(keeper_->verdict().reach, nat::Reach::Public);
  }
  for (const auto reaches : {one, three}) {
    init();
    for (const auto by : {one, two, three}) keeper_->seen(by, {outside, 51000});
    for (const auto by : {one, two, three, two}) {
      open_.clear();
      if (by == reaches) open_.insert(9000);
      verify(by);
    }
    QVERIFY(!keeper_->advertised());
    const auto verdict = keeper_->verdict();
    QCOMPARE(verdict.reach, nat::Reach::RelayedOnly);
    QVERIFY2(verdict.found.back().find("was not reached") != std::string::npos, verdict.found.back().c_str());
  }
}

void TestReachKeeper::the_verdict_on_a_mapped_port_is_that_of_most_observers() {
  for (const auto misses : {one, three}) {
    init();
    for (const auto by : {one, two, three}) keeper_->seen(by, {outside, 51000});
    keeper_->router_says(opened(40'123));
    for (const auto by : {one, two, three}) {
      open_.clear();
      if (by != misses) open_.insert(40'123);
      verify(by);
    }
    QCOMPARE(keeper_->advertised(), std::optional(Endpoint{outside, 40'123}));
    QCOMPARE(keeper_->verdict().reach, nat::Reach::Mapped);
  }
}

void TestReachKeeper::each_observer_is_asked_once_until_the_next_round() {
  busy_ = true;
  for (const auto by : {one, two}) keeper_->seen(by, {outside, 51000});
  verify(one);
  QVERIFY(!keeper_->due(one) && keeper_->due(two));
  busy_ = false;
  open_ = {9000};
  verify(two);
  QVERIFY(keeper_->advertised());
  QVERIFY(!keeper_->due(one) && !keeper_->due(two));
  clock_.advance(std::chrono::minutes(11));
  QVERIFY(keeper_->due(one));
}

NS_TEST(TestReachKeeper)
#include "test_reach_keeper.moc"
