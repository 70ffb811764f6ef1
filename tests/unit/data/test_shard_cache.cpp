// The cache of downloaded shards keeps to its cap, also when the cap changes.
#include "core/data/shard_cache.h"

#include <QTest>

#include "tests/support/memory_file_env.h"
#include "tests/support/test_main.h"

using namespace neuroshard;        // NOLINT
using namespace neuroshard::data;  // NOLINT
using neuroshard::testing::MemoryFileEnv;

class TestShardCache : public QObject {
  Q_OBJECT
 private Q_SLOTS:
  void a_lower_cap_evicts_at_once();
  void a_file_removed_by_hand_gives_its_room();
  void parts_of_downloads_count_and_go();
  void a_disk_that_is_full_of_other_things_costs_no_shard();
  void evicted_and_removed_shards_are_named();
};

void TestShardCache::a_lower_cap_evicts_at_once() {
  MemoryFileEnv files;
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

void TestShardCache::a_file_removed_by_hand_gives_its_room() {
  MemoryFileEnv files;
  const auto opened = ShardCache::open(files, "/cache", 200);
  QVERIFY(opened.ok());
  ShardCache& cache = **opened;
  for (std::uint8_t i = 0; i < 2; ++i) {
    const Hash256 hash{i};
    QVERIFY(storage::write_file_atomic(files, cache.path_of(hash), Bytes(100)).ok());
    cache.added(hash, 100);
  }
  QVERIFY(files.remove_file(cache.path_of(Hash256{0})).ok());
  QVERIFY(!cache.holds(Hash256{0}));
  QVERIFY(cache.make_room(100).ok());
  QVERIFY(!cache.holds(Hash256{0}));
  QVERIFY(cache.holds(Hash256{1}));
}

void TestShardCache::parts_of_downloads_count_and_go() {
  MemoryFileEnv files;
  QVERIFY(files.create_directories("/cache").ok());
  const std::string left = cached_shard_path("/cache", Hash256{1});
  const std::string resumed = cached_shard_path("/cache", Hash256{2});
  for (const std::string& path : {left + ".part", left + ".part.etag", left + ".part.cut", resumed + ".part"})
    QVERIFY(storage::write_file_atomic(files, path, Bytes(50)).ok());
  QVERIFY(storage::write_file_atomic(files, "/cache/note.part", Bytes(50)).ok());
  const auto opened = ShardCache::open(files, "/cache", 300);
  QVERIFY(opened.ok());
  ShardCache& cache = **opened;
  QCOMPARE(cache.used_bytes(), std::uint64_t{200});
  QVERIFY(!cache.holds(Hash256{1}));
  cache.resume(Hash256{2});
  QCOMPARE(cache.used_bytes(), std::uint64_t{150});
  cache.left(Hash256{2});
  QCOMPARE(cache.used_bytes(), std::uint64_t{200});
  cache.resume(Hash256{2});
  QVERIFY(cache.make_room(300).ok());
  QCOMPARE(cache.used_bytes(), std::uint64_t{0});
  for (const char* end : {".part", ".part.etag", ".part.cut"}) QVERIFY(!files.exists(left + end));
  QVERIFY(files.exists(resumed + ".part"));
  QVERIFY(files.exists("/cache/note.part"));
}

void TestShardCache::a_disk_that_is_full_of_other_things_costs_no_shard() {
  constexpr std::uint64_t spare = 64u << 20;
  MemoryFileEnv files;
  const auto opened = ShardCache::open(files, "/cache", 1000);
  QVERIFY(opened.ok());
  ShardCache& cache = **opened;
  QVERIFY(storage::write_file_atomic(files, cache.path_of(Hash256{1}), Bytes(100)).ok());
  cache.added(Hash256{1}, 100);
  files.set_capacity(files.used_bytes() + spare - 1);
  QCOMPARE(cache.make_room(100).error().code, ErrorCode::Exhausted);
  QVERIFY(files.exists(cache.path_of(Hash256{1})));
  QCOMPARE(cache.used_bytes(), std::uint64_t{100});
  files.set_capacity(files.used_bytes() + spare);
  QVERIFY(cache.make_room(100).ok());
  QCOMPARE(cache.used_bytes(), std::uint64_t{0});
}

void TestShardCache::evicted_and_removed_shards_are_named() {
  MemoryFileEnv files;
  const auto opened = ShardCache::open(files, "/cache", 200);
  QVERIFY(opened.ok());
  ShardCache& cache = **opened;
  std::vector<Hash256> gone;
  cache.set_gone([&gone](const Hash256& hash) { gone.push_back(hash); });
  for (std::uint8_t i = 0; i < 2; ++i) {
    QVERIFY(storage::write_file_atomic(files, cache.path_of(Hash256{i}), Bytes(100)).ok());
    cache.added(Hash256{i}, 100);
  }
  QVERIFY(storage::write_file_atomic(files, cache.path_of(Hash256{2}) + ".part", Bytes(10)).ok());
  cache.left(Hash256{2});
  QVERIFY(cache.make_room(100).ok());
  QVERIFY(gone == std::vector<Hash256>{Hash256{0}});
  cache.remove(Hash256{1});
  cache.remove(Hash256{1});
  QVERIFY((gone == std::vector<Hash256>{Hash256{0}, Hash256{1}}));
}

NS_TEST(TestShardCache)
#include "test_shard_cache.moc"
