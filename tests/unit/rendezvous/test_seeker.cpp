// When a node looks for others and announces itself, on virtual time.
#include <QtTest>
#include <set>

#include "core/rendezvous/seeker.h"
#include "core/sim/world.h"
#include "tests/support/test_main.h"
#include "tests/support/time.h"

using namespace neuroshard;              // NOLINT
using namespace neuroshard::rendezvous;  // NOLINT

class TestSeeker : public QObject {
  Q_OBJECT
 private Q_SLOTS:
  void it_waits_for_the_better_ways_first();
  void it_looks_less_and_less_often_and_never_stops();
  void it_begins_anew_when_all_are_lost();
  void it_announces_itself_while_it_is_reached();
  void what_is_found_is_handed_on_and_bounded();
  void what_is_found_is_handed_on_in_random_order();
};

namespace {

using neuroshard::test::minute;
using neuroshard::test::second;

struct Place final : Rendezvous {
  std::string_view name() const override { return "a test"; }
  void announce(std::optional<std::uint16_t> port) override { announced.push_back(port.value_or(0)); }
  void look_up(Found how) override { found = std::move(how); }
  std::vector<int> announced;
  Found found;
};

struct Node {
  explicit Node(SeekerOptions options = {})
      : seeker(std::make_unique<Seeker>(
            place, executor, world.clock(), logger,
            SeekerQuestions{[this] { return alone; }, [this] { return port; },
                            [this](const platform::Endpoint& endpoint) { found.push_back(endpoint); }},
            options, 5)) {}
  void pass(Duration time) { world.run_for(time); }

  sim::World world;
  sim::HostExecutor executor{world};
  NullLogger logger;
  Place place;
  bool alone = true;
  std::optional<std::uint16_t> port;
  std::vector<platform::Endpoint> found;
  std::unique_ptr<Seeker> seeker;
};

SeekerOptions patient() {
  SeekerOptions options;
  options.patience = 30 * second;
  return options;
}

}  // namespace

void TestSeeker::it_waits_for_the_better_ways_first() {
  Node node(patient());
  node.pass(29 * second);
  QCOMPARE(node.seeker->looks(), std::size_t{0});
  node.pass(3 * second);
  QCOMPARE(node.seeker->looks(), std::size_t{1});
  QCOMPARE(node.seeker->state(), std::string("looks for others in a test"));
  Node lucky(patient());
  lucky.pass(20 * second);
  lucky.alone = false;
  lucky.pass(10 * minute);
  QCOMPARE(lucky.seeker->looks(), std::size_t{0});
}

void TestSeeker::it_looks_less_and_less_often_and_never_stops() {
  Node node;
  node.pass(5 * minute);
  const std::size_t early = node.seeker->looks();
  QVERIFY2(early >= 3 && early <= 12, std::to_string(early).c_str());
  node.pass(std::chrono::hours(10));
  const std::size_t later = node.seeker->looks();
  node.pass(std::chrono::hours(10));
  const std::size_t last = node.seeker->looks() - later;
  QVERIFY2(last >= 20 && last <= 90, std::to_string(last).c_str());
}

void TestSeeker::it_begins_anew_when_all_are_lost() {
  Node node(patient());
  node.pass(10 * minute);
  node.alone = false;
  node.pass(second * 5);
  QCOMPARE(node.seeker->state(), std::string("found enough others"));
  const std::size_t before = node.seeker->looks();
  node.alone = true;
  node.pass(29 * second);
  QCOMPARE(node.seeker->looks(), before);
  node.pass(4 * second);
  QCOMPARE(node.seeker->looks(), before + 1);
}

void TestSeeker::it_announces_itself_while_it_is_reached() {
  Node node;
  node.alone = false;
  node.pass(minute);
  QVERIFY(node.place.announced.empty());
  node.port = 9000;
  node.pass(minute);
  QCOMPARE(node.place.announced, std::vector<int>{9000});
  node.pass(std::chrono::minutes(15));
  QCOMPARE(node.place.announced, (std::vector<int>{9000, 9000}));
  node.port = 9001;
  node.pass(5 * second);
  node.port.reset();
  node.pass(5 * second);
  QCOMPARE(node.place.announced, (std::vector<int>{9000, 9000, 9001, 0}));
  node.port = 9000;
  node.pass(5 * second);
  node.seeker.reset();
  QCOMPARE(node.place.announced.back(), 0);
}

void TestSeeker::what_is_found_is_handed_on_and_bounded() {
  Node node;
  node.pass(2 * second);
  QVERIFY(static_cast<bool>(node.place.found));
  const platform::Endpoint somebody{platform::IpAddress::v4(192, 0, 2, 1), 9000};
  node.place.found({somebody});
  QVERIFY(node.found == std::vector<platform::Endpoint>{somebody});
  node.place.found(std::vector<platform::Endpoint>(5000, somebody));
  QCOMPARE(node.found.size(), 1 + max_found);
  // An answer that comes too late has nobody to tell.
  const auto late = node.place.found;
  node.seeker.reset();
  late({somebody});
  QCOMPARE(node.found.size(), 1 + max_found);
}

// An attacker that is first in the list is not among the few that are tried.
void TestSeeker::what_is_found_is_handed_on_in_random_order() {
  Node node;
  node.pass(2 * second);
  std::vector<platform::Endpoint> all;
  for (std::uint16_t port = 1; port <= 1000; ++port)
    all.push_back({platform::IpAddress::v4(192, 0, 2, 1), port});
  node.place.found(all);
  QCOMPARE(node.found.size(), max_found);
  std::set<std::uint16_t> ports;
  int from_the_beginning = 0;
  for (const platform::Endpoint& one : node.found) {
    ports.insert(one.port);
    from_the_beginning += one.port <= max_found;
  }
  QCOMPARE(ports.size(), max_found);
  QVERIFY2(from_the_beginning <= 20, std::to_string(from_the_beginning).c_str());
}

NS_TEST(TestSeeker)
#include "test_seeker.moc"
