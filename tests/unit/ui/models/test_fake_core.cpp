// The fake core answers for series as the real history does: the same buckets, bounds and values at every
// zoom.
#include <QtTest>

#include "core/base/rng.h"
#include "core/history/schema.h"
#include "core/history/series_store.h"
#include "tests/support/fake_node.h"
#include "tests/support/test_main.h"

using namespace neuroshard;  // NOLINT
using testing::FakeNode;

namespace {

node::Series ask(FakeNode& fake, const node::SeriesQuery& query) {
  node::Series series;
  const auto asked = fake.query_series(query, [&series](Expected<node::Series> answer) { series = *answer; });
  if (!asked.ok()) qFatal("the question was refused");
  return series;
}

}  // namespace

class TestFakeCore : public QObject {
  Q_OBJECT
 private Q_SLOTS:
  void series_are_merged_as_the_history_merges_them() {
    auto database = storage::Database::open(":memory:");
    QVERIFY(database.ok());
    const storage::Migration migrations[] = {{1, history::schema_v1}};
    QVERIFY(database->migrate(migrations).ok());
    auto store = history::SeriesStore::open(*database);
    QVERIFY(store.ok());
    FakeNode fake;
    Rng rng(7);
    std::uint64_t step = 3;
    for (int i = 0; i < 3000; ++i, step += 1 + rng.below(3)) {
      const double value = rng.uniform() * 8 - 2;
      QVERIFY((*store)->append("loss", static_cast<std::int64_t>(step), value).ok());
      if (i % 100 == 0) QVERIFY((*store)->flush().ok());
      fake.series["loss"].push_back({step, 1, 1, value, value, value});
    }
    for (int round = 0; round < 60; ++round) {
      node::SeriesQuery query;
      query.name = "loss";
      query.buckets = 1 + rng.below(round % 3 == 0 ? 4096 : 200);
      if (round % 4 != 0) {
        query.from_step = rng.below(step);
        query.to_step = query.from_step + 1 + rng.below(step);
      }
      const auto last = query.to_step == 0 ? history::max_position : std::int64_t(query.to_step) - 1;
      const auto truth = (*store)->query("loss", static_cast<std::int64_t>(query.from_step), last,
                                         static_cast<std::uint32_t>(query.buckets));
      QVERIFY(truth.ok());
      const node::Series answer = ask(fake, query);
      QVERIFY(answer.buckets.size() <= query.buckets);
      QCOMPARE(answer.buckets.size(), truth->size());
      for (std::size_t i = 0; i < truth->size(); ++i) {
        QCOMPARE(std::int64_t(answer.buckets[i].first_step), (*truth)[i].first);
        QCOMPARE(std::int64_t(answer.buckets[i].width), (*truth)[i].width);
        QCOMPARE(answer.buckets[i].count, (*truth)[i].count);
        QCOMPARE(answer.buckets[i].least, (*truth)[i].min);
        QCOMPARE(answer.buckets[i].most, (*truth)[i].max);
        QVERIFY(std::abs(answer.buckets[i].mean - (*truth)[i].mean) < 1e-9);
      }
    }
  }
  void an_unknown_series_is_empty() {
    FakeNode fake;
    QVERIFY(ask(fake, {"colour", 0, 0, 10}).buckets.empty());
    QCOMPARE(fake.query_series({"loss", 0, 0, 0}, [](auto) {}).error().code, ErrorCode::InvalidArgument);
    QCOMPARE(fake.query_series({"loss", 0, 0, 4097}, [](auto) {}).error().code, ErrorCode::InvalidArgument);
  }
};

NS_TEST(TestFakeCore)
#include "test_fake_core.moc"
