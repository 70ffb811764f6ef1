// Evaluation windows over the held-out text.
#include <QtTest>

#include "core/data/held_out.h"
#include "tests/support/test_main.h"
#include "tests/unit/data/dataset_support.h"

using namespace neuroshard;
using namespace neuroshard::data;
using namespace neuroshard::data::testing;

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
