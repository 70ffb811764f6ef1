// The grid by which the voters of a large committee pass items on: everybody is reached on two ways, nobody
// calls many, and what comes back from another place is not sent on.
#include <QtTest>

#include <set>

#include "core/chain/relay.h"
#include "tests/support/test_main.h"

using namespace neuroshard::chain;

namespace {

std::set<std::size_t> as_set(const std::vector<std::size_t>& places) {
  return {places.begin(), places.end()};
}

class TestRelay : public QObject {
  Q_OBJECT
 private Q_SLOTS:
  void both_ways_reach_everybody();
  void a_sender_calls_few();
  void the_ways_share_nobody_between();
};

constexpr std::size_t most = 512;

void TestRelay::both_ways_reach_everybody() {
  for (std::size_t n = 1; n <= most; n += n < 64 ? 1 : 37) {
    const RelayGrid grid(n);
    for (std::size_t sender = 0; sender < n; ++sender) {
      std::set<std::size_t> by_row, by_column;
      for (const std::size_t relay : grid.row_of(sender)) by_row.merge(as_set(grid.column_of(relay)));
      for (const std::size_t relay : grid.column_of(sender)) by_column.merge(as_set(grid.row_of(relay)));
      QCOMPARE(by_row.size(), n);
      QCOMPARE(by_column.size(), n);
      QVERIFY(*by_row.rbegin() < n && *by_column.rbegin() < n);
    }
  }
}

void TestRelay::a_sender_calls_few() {
  const RelayGrid grid(most);
  for (std::size_t sender = 0; sender < most; ++sender)
    QVERIFY(grid.row_of(sender).size() + grid.column_of(sender).size() <= 46);
}

// One silent relay does not keep an item from anybody else.
void TestRelay::the_ways_share_nobody_between() {
  const std::size_t n = 100;
  const RelayGrid grid(n);
  for (std::size_t sender = 0; sender < n; ++sender)
    for (std::size_t silent = 0; silent < n; ++silent) {
      if (silent == sender) continue;
      std::set<std::size_t> reached;
      const auto add = [&](const std::vector<std::size_t>& relays, bool along_columns) {
        for (const std::size_t relay : relays) {
          reached.insert(relay);
          if (relay != silent)
            reached.merge(as_set(along_columns ? grid.column_of(relay) : grid.row_of(relay)));
        }
      };
      add(grid.row_of(sender), true);
      const std::size_t on_one_way = reached.size();
      add(grid.column_of(sender), false);
      QCOMPARE(reached.size(), n);
      // The control: one way alone leaves a column out where its relay is silent.
      const bool in_row = as_set(grid.row_of(sender)).count(silent) != 0;
      QCOMPARE(on_one_way, in_row ? n - 9 : n);
    }
}

}  // namespace

NS_TEST(TestRelay)
#include "test_relay.moc"
