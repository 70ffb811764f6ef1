// A log of blocks is read beside the node that writes it: whole blocks come in order, a block under way is no error,
// and damage is found at its height.
#include <QtTest>

#include "core/engine/block_log.h"
#include "core/engine/block_reader.h"
#include "tests/support/memory_file_env.h"
#include "tests/support/test_main.h"

using namespace neuroshard;           // NOLINT
using namespace neuroshard::engine;   // NOLINT
using namespace neuroshard::testing;  // NOLINT

namespace {

const std::string path = "/d/chain/blocks";

Bytes block_of(std::uint64_t height) {
  return Bytes(static_cast<std::size_t>(10 + height), static_cast<std::uint8_t>(height + 1));
}

struct Bench {
  MemoryFileEnv disk;
  NullLogger logger;
  std::unique_ptr<BlockLog> log;
  explicit Bench(std::uint64_t blocks) {
    static_cast<void>(disk.create_directories("/d/chain").ok());
    log = std::move(BlockLog::open(disk, path, logger).value());
    for (std::uint64_t height = 0; height < blocks; ++height)
      if (!log->append(height, block_of(height)).ok()) qFatal("append");
  }
  Bytes bytes() { return storage::read_file(disk, path, 1 << 20).value(); }
  void write(const Bytes& bytes) {
    if (!storage::write_file_atomic(disk, path, bytes).ok()) qFatal("write");
  }
  // Height of the first block that can't be read, or nothing, and the number of blocks before it.
  std::pair<std::optional<std::uint64_t>, std::uint64_t> read() {
    auto reader = BlockReader::open(disk, path);
    if (!reader.ok()) qFatal("open");
    std::uint64_t count = 0;
    for (;; ++count) {
      const auto block = reader->next();
      if (!block.ok()) return {reader->next_height(), count};
      if (!*block) return {std::nullopt, count};
      if (**block != block_of(count)) qFatal("another block");
    }
  }
};

}  // namespace

class TestBlockReader : public QObject {
  Q_OBJECT
 private Q_SLOTS:
  void blocks_come_in_order_while_the_log_is_open() {
    Bench bench(3);
    QCOMPARE(bench.read(), std::pair(std::optional<std::uint64_t>(), std::uint64_t{3}));
    QVERIFY(bench.log->append(3, block_of(3)).ok());
    QCOMPARE(bench.read().second, std::uint64_t{4});
  }

  void a_block_under_way_is_no_error_and_stays_on_the_disk() {
    Bench bench(3);
    Bytes bytes = bench.bytes();
    bytes.resize(bytes.size() - 5);
    bench.write(bytes);
    QCOMPARE(bench.read(), std::pair(std::optional<std::uint64_t>(), std::uint64_t{2}));
    auto reader = BlockReader::open(bench.disk, path);
    QVERIFY(reader.ok() && reader->next().ok() && reader->next().ok() && reader->next().ok());
    QCOMPARE(reader->tail_bytes(), std::uint64_t{8 + 12 - 5});
    QVERIFY(bench.bytes() == bytes);  // reading repairs nothing
  }

  void every_flipped_byte_of_a_block_is_found_at_its_height() {
    Bench bench(3);
    const Bytes whole = bench.bytes();
    const std::size_t begin = 14 + 8 + 10;  // block 1: head and content
    for (std::size_t at = begin + 4; at < begin + 8 + 11; ++at) {
      Bytes bytes = whole;
      bytes[at] ^= 0x20;
      bench.write(bytes);
      QCOMPARE(bench.read(), std::pair(std::optional<std::uint64_t>(1), std::uint64_t{1}));
    }
    bench.write(whole);
    QCOMPARE(bench.read().second, std::uint64_t{3});
  }

  void another_file_is_refused() {
    Bench bench(1);
    Bytes bytes = bench.bytes();
    bytes[0] ^= 1;
    bench.write(bytes);
    QVERIFY(BlockReader::open(bench.disk, path).error().code == ErrorCode::Corrupt);
    bench.write(Bytes(3));
    QVERIFY(BlockReader::open(bench.disk, path).error().code == ErrorCode::Corrupt);
    QVERIFY(BlockReader::open(bench.disk, "/d/chain/none").error().code == ErrorCode::NotFound);
  }
};

NS_TEST(TestBlockReader)
#include "test_block_reader.moc"
