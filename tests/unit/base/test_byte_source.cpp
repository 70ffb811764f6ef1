// Bytes that are read in parts.
#include <QTest>

#include "core/base/spool.h"
#include "tests/support/test_main.h"

using namespace neuroshard;

namespace {

Bytes some(const ByteSource& source, std::uint64_t offset, std::size_t count) {
  Bytes bytes(count);
  return source.read_at(offset, bytes).ok() ? bytes : Bytes{};
}

bool ends_early(const ByteSource& source, std::uint64_t offset, std::size_t count) {
  Bytes bytes(count);
  const auto read = source.read_at(offset, bytes);
  return !read.ok() && read.error().code == ErrorCode::Corrupt;
}

}  // namespace

class TestByteSource : public QObject {
  Q_OBJECT

 private Q_SLOTS:
  void parts_and_joins_are_where_they_should_be() {
    const ByteSourcePtr first = in_memory({1, 2, 3, 4}), empty = in_memory({}), zeros = zero_bytes(2);
    const ByteSourcePtr all = joined({first, empty, zeros, part_of(first, 1, 2)});
    QCOMPARE(all->size(), std::uint64_t{8});
    QVERIFY((read_all(*all).value() == Bytes{1, 2, 3, 4, 0, 0, 2, 3}));
    QVERIFY((some(*all, 3, 4) == Bytes{4, 0, 0, 2}));
    QVERIFY((some(*part_of(all, 2, 5), 1, 4) == Bytes{4, 0, 0, 2}));
    QVERIFY(some(*all, 8, 0).empty());
  }

  void nothing_is_read_beyond_the_end() {
    const ByteSourcePtr first = in_memory({1, 2, 3, 4});
    for (const ByteSourcePtr& source : {first, zero_bytes(4), part_of(joined({first, first}), 2, 4)}) {
      QVERIFY(ends_early(*source, 0, 5) && ends_early(*source, 4, 1) && ends_early(*source, 5, 0));
      QVERIFY(ends_early(*source, ~std::uint64_t{0}, 2));
      QCOMPARE(some(*source, 0, 4).size(), std::size_t{4});
    }
  }

  void parts_are_no_larger_than_asked_for() {
    const ByteSourcePtr source = in_memory(Bytes(1000, 7));
    std::vector<std::pair<std::uint64_t, std::size_t>> seen;
    const auto read = read_in_parts(*source, 300, [&](std::uint64_t at, ByteSpan bytes) -> Expected<void> {
      seen.emplace_back(at, bytes.size());
      return {};
    });
    QVERIFY(read.ok());
    QVERIFY((seen == std::vector<std::pair<std::uint64_t, std::size_t>>{
                         {0, 300}, {300, 300}, {600, 300}, {900, 100}}));
    const auto stopped = read_in_parts(*source, 300, [&](std::uint64_t, ByteSpan) -> Expected<void> {
      return make_error(ErrorCode::Io, "no");
    });
    QVERIFY(stopped.error().code == ErrorCode::Io);
  }

  void an_item_in_memory_is_cut_to_what_was_written() {
    MemorySpool spool;
    auto item = spool.create(10).value();
    QVERIFY(item->write_at(2, Bytes{3, 4}).ok() && item->write_at(0, Bytes{1, 2}).ok());
    QVERIFY((read_all(*item->finish(4).value()).value() == Bytes{1, 2, 3, 4}));
  }
};

NS_TEST(TestByteSource)
#include "test_byte_source.moc"
