// Series against a naive oracle that keeps every value: any zoom shows the true minimum, maximum and mean,
// restarts lose nothing, and a restored step takes the later values out of the way.
#include <QTemporaryDir>
#include <QtTest>
#include <cmath>
#include <limits>

#include "core/base/rng.h"
#include "core/history/schema.h"
#include "core/history/series_store.h"
#include "tests/support/test_main.h"

using neuroshard::ErrorCode;
using neuroshard::Rng;
using neuroshard::Span;
using neuroshard::storage::Database;
using neuroshard::storage::Migration;
namespace history = neuroshard::history;

namespace {

Database open_database(const std::string& path) {
  auto database = Database::open(path);
  NS_CHECK(database.ok());
  const Migration migrations[] = {{1, history::schema_v1}};
  NS_CHECK(database->migrate(migrations).ok());
  return std::move(*database);
}

// Every value, kept.
struct Oracle {
  std::vector<std::pair<std::int64_t, double>> values;
  history::Bucket bucket(std::int64_t first, std::int64_t width) const {
    history::Bucket b;
    b.first = first;
    b.width = width;
    double sum = 0;
    for (const auto& [at, value] : values) {
      if (at < first || at >= first + width) continue;
      b.min = b.count == 0 ? value : std::min(b.min, value);
      b.max = b.count == 0 ? value : std::max(b.max, value);
      sum += value;
      ++b.count;
    }
    b.mean = b.count == 0 ? 0 : sum / static_cast<double>(b.count);
    return b;
  }
};

// The shown values are true, in order, within the bound, and nothing in the range is missing.
void check(history::SeriesStore& store, const Oracle& oracle, std::int64_t from, std::int64_t to,
           std::uint32_t most) {
  const auto buckets = store.query("loss", from, to, most);
  QVERIFY(buckets.ok());
  QVERIFY(buckets->size() <= most);
  std::uint64_t in_range = 0, shown = 0;
  std::int64_t previous_end = std::numeric_limits<std::int64_t>::min();
  for (const history::Bucket& b : *buckets) {
    const history::Bucket expected = oracle.bucket(b.first, b.width);
    QVERIFY(b.first >= previous_end);
    QCOMPARE(b.count, expected.count);
    QCOMPARE(b.min, expected.min);
    QCOMPARE(b.max, expected.max);
    QVERIFY(std::abs(b.mean - expected.mean) < 1e-9);
    previous_end = b.first + b.width;
    for (const auto& [at, value] : oracle.values)
      shown += at >= b.first && at < previous_end && at >= from && at <= to;
  }
  for (const auto& [at, value] : oracle.values) in_range += at >= from && at <= to;
  QCOMPARE(shown, in_range);
}

void add(history::SeriesStore& store, Oracle& oracle, std::int64_t at, double value) {
  QVERIFY(store.append("loss", at, value).ok());
  oracle.values.emplace_back(at, value);
}

}  // namespace

class TestSeriesStore : public QObject {
  Q_OBJECT
 private Q_SLOTS:
  void any_zoom_matches_the_oracle();
  void survives_restarts();
  void restored_step_cuts_exactly();
  void restore_before_the_beginning();
  void old_detail_goes_and_the_far_past_stays();
  void bad_values_are_refused();
  void old_branches_go();
};

void TestSeriesStore::any_zoom_matches_the_oracle() {
  Database database = open_database(":memory:");
  auto store = history::SeriesStore::open(database);
  QVERIFY(store.ok());
  Oracle oracle;
  Rng rng(1);
  std::int64_t at = 37;
  for (int i = 0; i < 1500; ++i) {
    add(**store, oracle, at, 5.0 * std::exp(-i / 500.0) + rng.uniform());
    at += static_cast<std::int64_t>(rng.below(4));  // gaps, and several values at one step
  }
  for (const std::uint32_t most : {1u, 2u, 7u, 100u, 1000u, 4096u}) {
    check(**store, oracle, 0, 1'000'000, most);
    check(**store, oracle, 100, 999, most);
    check(**store, oracle, at - 5, at + 5, most);
    check(**store, oracle, 50, 50, most);
  }
  QVERIFY((*store)->query("loss", 10, 5, 100)->empty());
  QVERIFY((*store)->query("unknown", 0, 5, 100)->empty());
}

void TestSeriesStore::survives_restarts() {
  const QTemporaryDir directory;
  const std::string path = directory.filePath("state.db").toStdString();
  Oracle oracle;
  Rng rng(2);
  std::int64_t at = 0;
  for (int run = 0; run < 4; ++run) {
    Database database = open_database(path);
    auto store = history::SeriesStore::open(database);
    QVERIFY(store.ok());
    for (int i = 0; i < 137; ++i) add(**store, oracle, ++at, rng.uniform());
    QVERIFY((*store)->flush().ok());
  }
  Database database = open_database(path);
  auto store = history::SeriesStore::open(database);
  QVERIFY(store.ok());
  QCOMPARE((*store)->names(), std::vector<std::string>{"loss"});
  for (const std::uint32_t most : {3u, 50u, 4000u}) check(**store, oracle, 0, 10'000, most);
  QCOMPARE((*store)->append("loss", at - 1, 1.0).error().code, ErrorCode::InvalidArgument);
}

void TestSeriesStore::restored_step_cuts_exactly() {
  for (const std::int64_t cut : {1, 2, 63, 64, 127, 200, 255, 299, 300, 400}) {
    Database database = open_database(":memory:");
    auto store = history::SeriesStore::open(database);
    Oracle before, after;
    Rng rng(3);
    for (std::int64_t at = 1; at <= 300; ++at) {
      const double value = rng.uniform();
      add(**store, before, at, value);
      if (at <= cut) after.values.emplace_back(at, value);
    }
    const neuroshard::WallTime now{std::chrono::milliseconds(1234)};
    QVERIFY((*store)->truncate_after(cut, &now).ok());
    for (const std::uint32_t most : {1u, 5u, 100u, 4000u}) check(**store, after, 0, 1000, most);
    // The part that was cut off is a branch of its own.
    const auto branches = (*store)->branches();
    QVERIFY(branches.ok());
    QCOMPARE(branches->size(), cut < 300 ? std::size_t{1} : std::size_t{0});
    if (cut < 300) {
      QCOMPARE(branches->front().after, cut);
      QCOMPARE(branches->front().time_ms, std::int64_t{1234});
      const auto old = (*store)->query("loss", cut + 1, 300, 4000, branches->front().id);
      QCOMPARE(old->size(), static_cast<std::size_t>(300 - cut));
      QCOMPARE(old->back().mean, before.values.back().second);
    }
    // The new branch goes on from the cut.
    for (std::int64_t at = std::min<std::int64_t>(cut, 300) + 1; at <= 350; ++at)
      add(**store, after, at, 9.0);
    for (const std::uint32_t most : {1u, 5u, 100u, 4000u}) check(**store, after, 0, 1000, most);
  }
}

void TestSeriesStore::restore_before_the_beginning() {
  Database database = open_database(":memory:");
  auto store = history::SeriesStore::open(database);
  Oracle oracle;
  for (std::int64_t at = 100; at < 150; ++at) add(**store, oracle, at, 1.0);
  QVERIFY((*store)->truncate_after(0, nullptr).ok());
  QVERIFY((*store)->query("loss", 0, 1000, 100)->empty());
  oracle.values.clear();
  for (std::int64_t at = 1; at < 20; ++at) add(**store, oracle, at, 2.0);
  check(**store, oracle, 0, 1000, 100);
  QVERIFY((*store)->branches()->empty());
}

void TestSeriesStore::old_detail_goes_and_the_far_past_stays() {
  Database database = open_database(":memory:");
  auto store = history::SeriesStore::open(database);
  Oracle oracle;
  constexpr std::int64_t steps = 4 * history::buckets_per_level;
  for (std::int64_t at = 0; at < steps; ++at) {
    add(**store, oracle, at, static_cast<double>(at));
    if (at % 1000 == 999) QVERIFY((*store)->flush().ok());
  }
  // The whole run in 100 buckets holds every value.
  check(**store, oracle, 0, steps, 100);
  // The newest steps one by one; the oldest only coarsely, and nothing is made up or lost.
  const auto newest = (*store)->query("loss", steps - 50, steps, 100);
  QCOMPARE(newest->size(), std::size_t{50});
  QCOMPARE(newest->front().width, std::int64_t{1});
  const auto oldest = (*store)->query("loss", 0, 63, 4000);
  QVERIFY(oldest->front().width > 1);
  QCOMPARE(oldest->front().min, 0.0);
  // On disk, no level keeps more than its share and what has come since it was last trimmed.
  auto rows =
      database.prepare("SELECT MAX(n) FROM (SELECT COUNT(*) AS n FROM buckets GROUP BY series, level)");
  QVERIFY(rows.ok() && *rows->step());
  QVERIFY(rows->column_int(0) <= history::buckets_per_level + 1000);
}

void TestSeriesStore::bad_values_are_refused() {
  Database database = open_database(":memory:");
  auto store = history::SeriesStore::open(database);
  const auto code = [&](std::string_view name, std::int64_t at, double value) {
    return (*store)->append(name, at, value).error().code;
  };
  QCOMPARE(code("loss", -1, 1.0), ErrorCode::InvalidArgument);
  QCOMPARE(code("loss", std::numeric_limits<std::int64_t>::max(), 1.0), ErrorCode::InvalidArgument);
  QCOMPARE(code("loss", 1, std::nan("")), ErrorCode::InvalidArgument);
  QCOMPARE(code("", 1, 1.0), ErrorCode::InvalidArgument);
  QCOMPARE(code("a'; DROP", 1, 1.0), ErrorCode::InvalidArgument);
  QCOMPARE(code(std::string(65, 'a'), 1, 1.0), ErrorCode::InvalidArgument);
  QVERIFY((*store)->names().empty());
  for (std::size_t i = 0; i < history::max_series; ++i)
    QVERIFY((*store)->append("s" + std::to_string(i), 1, 1.0).ok());
  QCOMPARE(code("one_more", 1, 1.0), ErrorCode::Exhausted);
}

void TestSeriesStore::old_branches_go() {
  Database database = open_database(":memory:");
  auto store = history::SeriesStore::open(database);
  for (std::int64_t i = 0; i < 3 * history::max_branches; ++i) {
    QVERIFY((*store)->append("loss", 10 + i, 1.0).ok());
    QVERIFY((*store)->append("loss", 11 + i, 1.0).ok());
    const neuroshard::WallTime now{std::chrono::milliseconds(i)};
    QVERIFY((*store)->truncate_after(10 + i, &now).ok());
  }
  const auto branches = (*store)->branches();
  QCOMPARE(branches->size(), static_cast<std::size_t>(history::max_branches));
  QCOMPARE(branches->front().time_ms, std::int64_t{3 * history::max_branches - 1});
  auto rows = database.prepare("SELECT COUNT(DISTINCT branch) FROM buckets");
  QVERIFY(rows.ok() && *rows->step());
  QCOMPARE(rows->column_int(0), std::int64_t{history::max_branches + 1});
}

NS_TEST(TestSeriesStore)
#include "test_series_store.moc"
