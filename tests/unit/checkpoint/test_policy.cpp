// Pure rules: when to save, and what to keep.
#include <QtTest>

#include "core/checkpoint/retention.h"
#include "core/checkpoint/save_policy.h"
#include "core/storage/period_count.h"
#include "tests/support/test_main.h"

using namespace neuroshard;
using namespace neuroshard::checkpoint;
using std::chrono::hours;
using std::chrono::seconds;

namespace {

Entry entry(const char* name, std::uint64_t bytes, double held_out = 5.0) {
  Entry result;
  result.name = name;
  result.bytes = bytes;
  result.manifest.losses.held_out = held_out;
  return result;
}

using Names = std::vector<std::string>;

}  // namespace

class TestPolicy : public QObject {
  Q_OBJECT

  WallTime wall() const { return clock_.wall_now(); }
  MonotonicTime now() const { return clock_.monotonic_now(); }

 private Q_SLOTS:
  void init() {
    clock_ = ManualClock();
    // To the next midnight (UTC).
    const auto into_day = clock_.wall_now().time_since_epoch() % hours(24);
    clock_.advance(hours(24) - into_day);
  }

  void every_ten_steps_but_not_too_often() {
    SavePolicy policy({});
    policy.start(0, now());
    clock_.advance(seconds(31));
    QVERIFY(!policy.due(9, now(), wall(), 1000));
    QVERIFY(policy.due(10, now(), wall(), 1000));
    policy.saving(10, now(), wall(), 1000);
    policy.count(1000, wall());
    clock_.advance(seconds(29));
    QVERIFY(!policy.due(500, now(), wall(), 1000));
    clock_.advance(seconds(1));
    QVERIFY(policy.due(500, now(), wall(), 1000));
  }

  void after_an_outer_sync_only_the_budget_counts() {
    SavePolicyOptions options;
    options.daily_write_bytes = 10'000;
    SavePolicy policy(options);
    policy.start(0, now());
    QVERIFY(!policy.due_after_sync(0, now(), wall(), 1000));
    std::uint64_t step = 0, saved = 0;
    for (int round = 0; round < 100; ++round) {
      clock_.advance(seconds(1));
      step += 5;
      QVERIFY(!policy.due(step, now(), wall(), 1000));
      if (!policy.due_after_sync(step, now(), wall(), 1000)) continue;
      policy.saving(step, now(), wall(), 1000);
      policy.count(1000, wall());
      ++saved;
      QVERIFY(!policy.due_after_sync(step, now(), wall(), 1000));
    }
    // Half of the budget at once; the rest is for the rest of the day.
    QCOMPARE(saved, std::uint64_t{6});
  }

  // A day of training at a save every 30 s: within the budget, and never a long gap.
  void the_daily_budget_is_kept_and_stretched() {
    SavePolicyOptions options;
    options.daily_write_bytes = 50'000;
    SavePolicy policy(options);
    policy.start(0, now());
    std::uint64_t written = 0, step = 0;
    Duration longest{0};
    MonotonicTime last = now();
    for (int tick = 0; tick < 24 * 360 - 1; ++tick) {
      clock_.advance(seconds(10));
      step += 10;
      if (!policy.due(step, now(), wall(), 100)) continue;
      QCOMPARE(policy.saving(step, now(), wall(), 100).bytes, written + 100);
      policy.count(100, wall());
      written += 100;
      longest = std::max(longest, now() - last);
      last = now();
    }
    QVERIFY(written <= 50'000);
    QVERIFY(written >= 45'000);
    QVERIFY2(longest < std::chrono::minutes(10), qPrintable(QString::number(to_seconds(longest))));
    clock_.advance(seconds(30));  // midnight: a new budget
    QCOMPARE(policy.written(wall()).bytes, std::uint64_t{0});
    QVERIFY(policy.due(step + 10, now(), wall(), 100));
  }

  void a_save_that_fails_uses_up_no_budget() {
    SavePolicyOptions options;
    options.daily_write_bytes = 1000;
    SavePolicy policy(options);
    policy.start(0, now());
    for (std::uint64_t step = 10; step <= 200; step += 10) {
      clock_.advance(seconds(30));
      QVERIFY(policy.due(step, now(), wall(), 400));
      QCOMPARE(policy.saving(step, now(), wall(), 400).bytes, std::uint64_t{400});
    }
    QCOMPARE(policy.written(wall()).bytes, std::uint64_t{0});
    policy.count(300, wall());
    policy.set_written({storage::utc_day(wall()), 200}, wall());
    QCOMPARE(policy.written(wall()).bytes, std::uint64_t{300});
    policy.set_written({storage::utc_day(wall()), 500}, wall());
    QCOMPARE(policy.written(wall()).bytes, std::uint64_t{500});
  }

  void the_budget_survives_a_restart_and_a_clock_set_back() {
    SavePolicyOptions options;
    options.daily_write_bytes = 1000;
    SavePolicy before(options);
    const DailyWrites written = before.saving(10, now(), wall(), 950);
    SavePolicy after(options, written);
    after.start(10, now());
    clock_.advance(hours(2));
    QVERIFY(!after.due(100, now(), wall(), 100));
    QVERIFY(!after.due(100, now(), wall() - hours(48), 100));
    QCOMPARE(after.written(wall() - hours(48)).bytes, std::uint64_t{950});
    QCOMPARE(after.written(wall() - hours(24 * 365)).bytes, std::uint64_t{0});  // a mistake of the clock
    QVERIFY(after.due(100, now(), wall() + hours(24), 100));
    options.daily_write_bytes = 0;
    SavePolicy unlimited(options, written);
    unlimited.start(10, now());
    clock_.advance(hours(1));
    QVERIFY(unlimited.due(100, now(), wall(), 1 << 30));
  }

  void keeps_last_best_pinned_and_chosen() {
    std::vector<Entry> entries = {entry("f", 1), entry("e", 1),      entry("d", 1),
                                  entry("c", 1), entry("b", 1, 1.0), entry("a", 1)};
    entries[3].pinned = true;
    RetentionPolicy policy;
    policy.keep_last = 2;
    QCOMPARE(plan_retention(entries, policy), (Names{"a", "d"}));
    entries[2].chosen = true;
    policy.keep_best = false;
    QCOMPARE(plan_retention(entries, policy), (Names{"a", "b"}));
    policy.keep_last = 0;
    QCOMPARE(plan_retention(entries, policy), (Names{"a", "b", "e"}));
    QVERIFY(plan_retention({}, policy).empty());
  }

  // Another node claims that it is the best one.
  void the_loss_of_an_imported_one_does_not_count() {
    std::vector<Entry> entries = {entry("d", 1), entry("c", 1), entry("b", 1, 1.0), entry("a", 1, -1e300)};
    entries[3].manifest.origin = "a of node 0123456789abcdef";
    RetentionPolicy policy;
    policy.keep_last = 1;
    QCOMPARE(plan_retention(entries, policy), (Names{"a", "c"}));
    QCOMPARE(plan_prune(entries, {1, 0, 1}), (Names{"a", "c"}));
    entries[3].pinned = true;
    QCOMPARE(plan_retention(entries, policy), (Names{"c"}));
    QCOMPARE(plan_prune(entries, {1, 0, 1}), (Names{"c"}));
  }

  // Others fetch them: the user's cap counts for more than that, the number of those kept does not.
  void keeps_what_others_are_fetching() {
    std::vector<Entry> entries = {entry("e", 1), entry("d", 1), entry("c", 1), entry("b", 1), entry("a", 1)};
    RetentionPolicy policy;
    policy.keep_last = 1;
    policy.keep_best = false;
    policy.held = {"c", "a", "gone"};
    QCOMPARE(plan_retention(entries, policy), (Names{"b", "d"}));
    policy.disk_cap_bytes = 2;
    QCOMPARE(plan_retention(entries, policy), (Names{"b", "d", "a"}));
    policy.disk_cap_bytes = 1;
    QCOMPARE(plan_retention(entries, policy), (Names{"b", "d", "a", "c"}));
  }

  // "a" was restored and gave "f": should "f" be damaged, training falls back to it, not to the other branch.
  void keeps_what_the_newest_falls_back_to() {
    std::vector<Entry> entries = {entry("f", 1), entry("e", 1), entry("d", 1), entry("a", 1)};
    entries[0].manifest.parent = "a";
    RetentionPolicy policy;
    policy.keep_last = 2;
    policy.keep_best = false;
    QCOMPARE(plan_retention(entries, policy), (Names{"d"}));
    policy.disk_cap_bytes = 2;
    QCOMPARE(plan_retention(entries, policy), (Names{"d", "e"}));
    policy.disk_cap_bytes = 1;
    QCOMPARE(plan_retention(entries, policy), (Names{"d", "e", "a"}));
  }

  void the_cap_takes_damaged_then_oldest_then_best_and_spares_the_newest() {
    std::vector<Entry> entries = {entry("d", 10), entry("c", 10), entry("b", 10), entry("a", 10, 1.0),
                                  entry("x", 10)};
    entries[4].damage = "torn";
    RetentionPolicy policy;
    policy.disk_cap_bytes = 50;
    QVERIFY(plan_retention(entries, policy).empty());
    policy.disk_cap_bytes = 45;
    QCOMPARE(plan_retention(entries, policy), (Names{"x"}));
    policy.disk_cap_bytes = 25;
    QCOMPARE(plan_retention(entries, policy), (Names{"x", "b", "c"}));
    policy.disk_cap_bytes = 1;
    QCOMPARE(plan_retention(entries, policy), (Names{"x", "b", "c", "a"}));
    entries[2].pinned = true;
    QCOMPARE(plan_retention(entries, policy), (Names{"x", "c", "a"}));
  }

 private:
  ManualClock clock_;
};

NS_TEST(TestPolicy)
#include "test_policy.moc"
