// Which checkpoints a node offers to others and holds for them: long enough for whoever fetches one, and
// never for ever, however others ask.
#include <QtTest>

#include "core/checkpoint/offered.h"
#include "tests/support/test_main.h"

using namespace neuroshard;
using namespace neuroshard::checkpoint;
using std::chrono::hours;
using std::chrono::seconds;

namespace {

using Names = std::set<std::string>;
using Candidates = std::vector<OfferedCheckpoints::Candidate>;
constexpr std::uint64_t much_room = 1 << 30;

// A node that saves every few seconds; saved(i) is named "1000" + i.
struct Saves {
  OfferedCheckpoints offered;
  ManualClock clock;
  Candidates newest_first;
  std::map<std::string, MonotonicTime> asked;
  std::uint64_t room = much_room;
  int count = 0;

  void save() { newest_first.insert(newest_first.begin(), {std::to_string(1000 + count++), 10}); }
  void look() {
    offered.update(
        newest_first,
        [this](const std::string& name) -> std::optional<MonotonicTime> {
          const auto at = asked.find(name);
          if (at == asked.end()) return std::nullopt;
          return at->second;
        },
        room, clock.monotonic_now());
  }
  // For so long a save every five seconds, and a look; these are asked for meanwhile.
  void run(Duration duration, const Names& wanted = {}) {
    for (Duration passed{}; passed < duration; passed += seconds(5)) {
      clock.advance(seconds(5));
      save();
      for (const std::string& name : wanted) asked[name] = clock.monotonic_now();
      look();
    }
  }
};

}  // namespace

class TestOffered : public QObject {
  Q_OBJECT
 private Q_SLOTS:
  void nothing_is_offered_of_nothing() {
    Saves node;
    node.look();
    QVERIFY(node.offered.newest().empty() && node.offered.names().empty());
  }

  void one_is_told_for_a_while_and_held_a_while_longer() {
    Saves node;
    node.save();
    node.look();
    QCOMPARE(node.offered.newest(), std::string("1000"));
    node.run(seconds(55));
    QCOMPARE(node.offered.newest(), std::string("1000"));
    QCOMPARE(node.offered.names(), (Names{"1000"}));
    node.run(seconds(5));
    QCOMPARE(node.offered.newest(), std::string("1012"));
    QCOMPARE(node.offered.names(), (Names{"1000", "1012"}));  // somebody may just have been told of it
    node.run(seconds(60));
    QCOMPARE(node.offered.names(), (Names{"1012", "1024"}));
  }

  void who_fetches_one_keeps_it_and_only_for_so_long() {
    Saves node;
    node.save();
    node.look();
    node.run(seconds(60));
    node.run(hours(2) - seconds(5), {"1000"});
    QVERIFY(node.offered.names().count("1000") == 1);
    node.run(seconds(5), {"1000"});
    QVERIFY(node.offered.names().count("1000") == 0);
  }

  void a_fetch_that_ended_frees_it_a_minute_later() {
    Saves node;
    node.save();
    node.look();
    node.run(seconds(300), {"1000"});
    QVERIFY(node.offered.names().count("1000") == 1);
    node.run(seconds(55));
    QVERIFY(node.offered.names().count("1000") == 1);
    node.run(seconds(5));
    QVERIFY(node.offered.names().count("1000") == 0);
  }

  void whoever_asks_for_all_of_them_gets_few() {
    Saves node;
    Names all;
    for (int i = 0; i < 2000; ++i) all.insert(std::to_string(1000 + i));
    node.save();
    node.look();
    for (int minute = 0; minute < 30; ++minute) {
      node.run(seconds(60), all);
      QVERIFY(node.offered.names().size() <= 4);
    }
    // And the newest goes on being the newest.
    QVERIFY(node.count - (std::stoi(node.offered.newest()) - 1000) <= 13);
  }

  void room_is_bounded_and_the_newest_needs_none_of_it() {
    Saves node;
    node.save();
    node.look();
    node.run(seconds(180), {"1000", "1012", "1024"});
    QCOMPARE(node.offered.names().size(), std::size_t{4});
    node.asked["1012"] += seconds(1);
    node.room = 10;
    node.look();
    QCOMPARE(node.offered.names(), (Names{"1036", "1012"}));
    node.room = 9;
    node.look();
    QCOMPARE(node.offered.names(), (Names{"1036"}));
  }

  void what_is_deleted_is_not_offered() {
    Saves node;
    node.save();
    node.look();
    node.save();
    node.newest_first.pop_back();
    node.look();
    QCOMPARE(node.offered.names(), (Names{"1001"}));
    node.newest_first.clear();
    node.look();
    QVERIFY(node.offered.names().empty());
  }
};

NS_TEST(TestOffered)
#include "test_offered.moc"
