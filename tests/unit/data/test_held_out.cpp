// Evaluation windows over the held-out text, and fetching it.
#include <QtTest>
#include <atomic>
#include <thread>

#include "core/base/executor.h"
#include "core/data/held_out.h"
#include "tests/support/test_main.h"
#include "tests/unit/data/dataset_support.h"

using namespace neuroshard;
using namespace neuroshard::data;
using namespace neuroshard::data::testing;

namespace {

// Held-out shards 0, 1, … whose source gives them in this order, when the test says so.
class RemoteText final : public NumberDataset {
 public:
  using NumberDataset::NumberDataset;
  Expected<void> prefetch(ShardId, const CancelToken& cancel) override {
    ++asked;
    while (held && !cancel.cancelled()) std::this_thread::yield();
    if (cancel.cancelled()) return make_error(ErrorCode::Cancelled, "stopped");
    if (away) return make_error(ErrorCode::Timeout, "the publisher does not answer");
    ++came;
    return {};
  }
  bool is_here(ShardId id) const override { return has_room && came > id; }
  std::atomic<bool> held{false}, away{false}, has_room{true};
  std::atomic<int> asked{0};
  std::atomic<ShardId> came{0};
};

// As evaluations ask, again and again.
Expected<void> got_in_the_end(HeldOutFetch& fetch, const HeldOut& text) {
  constexpr int most_tries = 5000;
  Expected<void> got = fetch.get(text);
  for (int i = 0; i < most_tries && !got.ok() && got.error().code == ErrorCode::Busy; ++i) {
    QTest::qWait(1);
    got = fetch.get(text);
  }
  return got;
}

Manifest two_held_out() {
  return manifest_of({shard_of(0, 100, Split::HeldOut), shard_of(1, 100, Split::HeldOut)});
}

}  // namespace

class TestHeldOut : public QObject {
  Q_OBJECT

 private Q_SLOTS:
  void held_out_windows_cover_everything_once() {
    neuroshard::testing::MemoryFileEnv env;
    NumberDataset dataset(
        env, manifest_of({shard_of(0, 900), shard_of(1, 100, Split::HeldOut), shard_of(2, 10, Split::HeldOut),
                          shard_of(3, 65, Split::HeldOut)}));
    const HeldOut all = HeldOut::create(dataset, 16, 0).value();
    QCOMPARE(all.windows(), std::size_t{6 + 4});  // (100-1)/16 and (65-1)/16
    QCOMPARE(all.tokens(), std::uint64_t{160});
    std::uint64_t bytes = 0;
    std::vector<std::int32_t> seen;
    for (std::size_t i = 0; i < all.windows(); i += 3) {
      const auto part = all.part(i, 3).value();
      bytes += part.target_bytes;
      seen.insert(seen.end(), part.batch.tokens.begin(), part.batch.tokens.end());
      for (std::size_t k = 0; k < part.batch.tokens.size(); ++k) {
        QCOMPARE(part.batch.targets[k], (part.batch.tokens[k] + 1) % 266);
      }
    }
    QCOMPARE(seen.size(), std::size_t{160});
    for (std::size_t i = 0; i < 96; ++i) QCOMPARE(seen[i], static_cast<std::int32_t>((1000 + i) % 266));
    // Every byte token stands for one byte, the special ones (below 10) for none.
    std::uint64_t expected = 0;
    for (const std::int32_t token : seen) expected += (token + 1) % 266 >= 10 ? 1 : 0;
    QCOMPARE(bytes, expected);
    QVERIFY(!all.part(10, 1).ok());
  }

  void held_out_text_is_fetched_beside_the_caller() {
    neuroshard::testing::MemoryFileEnv env;
    RemoteText dataset(env, two_held_out());
    const HeldOut text = HeldOut::create(dataset, 16, 0).value();
    QCOMPARE(text.shards(), (std::vector<ShardId>{0, 1}));
    const auto io = make_thread_executor("fetch", 1);
    HeldOutFetch fetch(dataset, *io);
    dataset.held = true;
    for (int i = 0; i < 3; ++i) QCOMPARE(fetch.get(text).error().code, ErrorCode::Busy);
    QVERIFY2(dataset.asked <= 1, "one download");
    QCOMPARE(dataset.loads, 0);
    dataset.away = true;
    dataset.held = false;
    QCOMPARE(got_in_the_end(fetch, text).error().code, ErrorCode::Timeout);
    dataset.away = false;
    QTRY_VERIFY(fetch.get(text).ok());
    const int asked = dataset.asked;
    QVERIFY(fetch.get(text).ok());
    QCOMPARE(dataset.asked.load(), asked);
  }

  void held_out_text_without_room_is_not_fetched_again() {
    neuroshard::testing::MemoryFileEnv env;
    RemoteText dataset(env, two_held_out());
    const HeldOut text = HeldOut::create(dataset, 16, 0).value();
    const auto io = make_thread_executor("fetch", 1);
    HeldOutFetch fetch(dataset, *io);
    dataset.has_room = false;
    const auto refused = got_in_the_end(fetch, text);
    QVERIFY(!refused.ok());
    QCOMPARE(refused.error().code, ErrorCode::Unsupported);
    QVERIFY(refused.error().message.find("disk_limit") != std::string::npos);
    QCOMPARE(fetch.get(text).error().code, ErrorCode::Unsupported);
    QCOMPARE(dataset.asked.load(), 2);
    dataset.has_room = true;
    QVERIFY(fetch.get(text).ok());
  }

  void held_out_subset_is_spread_evenly() {
    neuroshard::testing::MemoryFileEnv env;
    NumberDataset dataset(env, manifest_of({shard_of(0, 1601, Split::HeldOut)}));
    const HeldOut some = HeldOut::create(dataset, 16, 160).value();
    QCOMPARE(some.windows(), std::size_t{10});
    const auto part = some.part(0, 100).value();
    for (std::size_t i = 0; i < 10; ++i) {
      QCOMPARE(part.batch.tokens[i * 16], static_cast<std::int32_t>((i * 160) % 266));
    }
    NumberDataset tiny(env, manifest_of({shard_of(0, 9, Split::HeldOut)}));
    const HeldOut shorter = HeldOut::create(tiny, 16, 0).value();
    QCOMPARE(shorter.sequence(), 8u);
    QCOMPARE(shorter.windows(), std::size_t{1});
    NumberDataset none(env, manifest_of({shard_of(0, 900)}));
    QVERIFY(HeldOut::create(none, 16, 0).error().code == ErrorCode::NotFound);
  }
};

NS_TEST(TestHeldOut)
#include "test_held_out.moc"
