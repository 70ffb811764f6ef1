// The cache of downloaded shards keeps to its cap, also when the cap changes.
#include "core/data/shard_cache.h"

#include <QTest>

#include "tests/support/memory_file_env.h"
#include "tests/support/test_main.h"

using namespace neuroshard;        // NOLINT
using namespace neuroshard::data;  // NOLINT

class TestShardCache : public QObject {
  Q_OBJECT
 private Q_SLOTS:
  void a_lower_cap_evicts_at_once();
};

void TestShardCache::a_lower_cap_evicts_at_once() {
  testing::MemoryFileEnv files;
  const auto opened = ShardCache::open(files, "/cache", 300);
  QVERIFY(opened.ok());
  ShardCache& cache = **opened;
  for (std::uint8_t i = 0; i < 3; ++i) {
    const Hash256 hash{i};
    QVERIFY(cache.make_room(100).ok());
    QVERIFY(storage::write_file_atomic(files, cache.path_of(hash), Bytes(100)).ok());
    cache.added(hash, 100);
  }
  QVERIFY(cache.touch(Hash256{0}));
  QVERIFY(cache.set_max_bytes(150).ok());
  QCOMPARE(cache.used_bytes(), std::uint64_t{100});
  QVERIFY(cache.holds(Hash256{0}));  // the last one used
  QVERIFY(!files.exists(cache.path_of(Hash256{1})));
  QCOMPARE(cache.make_room(200).error().code, ErrorCode::Exhausted);
  QVERIFY(cache.set_max_bytes(300).ok());
  QVERIFY(cache.make_room(200).ok());
  QVERIFY(cache.holds(Hash256{0}));
}

NS_TEST(TestShardCache)
#include "test_shard_cache.moc"
