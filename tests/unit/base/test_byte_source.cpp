// Sources of bytes, their parts and rows of them, and the spool in memory.
#include <QTest>
#include <numeric>

#include "core/base/byte_source.h"
#include "core/base/spool.h"
#include "tests/support/test_main.h"

using namespace neuroshard;  // NOLINT

namespace {

Bytes rising(std::size_t count, std::uint8_t from) {
  Bytes bytes(count);
  std::iota(bytes.begin(), bytes.end(), from);
  return bytes;
}

Bytes slice(const Bytes& bytes, std::size_t from, std::size_t count) {
  const auto begin = bytes.begin() + static_cast<std::ptrdiff_t>(from);
  return {begin, begin + static_cast<std::ptrdiff_t>(count)};
}

// All that is within reads as `expected`, all that is not is Corrupt.
bool reads_as(const ByteSource& source, const Bytes& expected) {
  if (source.size() != expected.size() || *read_all(source) != expected) return false;
  const ByteSpan view = source.view();
  if (!view.empty() && Bytes(view.begin(), view.end()) != expected) return false;
  for (std::size_t from = 0; from <= expected.size() + 1; ++from)
    for (std::size_t count = 0; count <= expected.size() + 2; ++count) {
      Bytes target(count);
      const auto read = source.read_at(from, target);
      if (read.ok() != (from + count <= expected.size())) return false;
      if (!read.ok() && read.error().code != ErrorCode::Corrupt) return false;
      if (read.ok() && target != slice(expected, from, count)) return false;
    }
  Bytes one(1);
  return !source.read_at(~std::uint64_t{0}, one).ok();
}

}  // namespace

class TestByteSource : public QObject {
  Q_OBJECT

 private Q_SLOTS:
  void reads_what_it_has_and_no_more() {
    const Bytes bytes = rising(20, 1);
    QVERIFY(reads_as(BytesView(bytes), bytes));
    QVERIFY(reads_as(*in_memory(bytes), bytes));
    QVERIFY(reads_as(*in_memory({}), {}));
    QVERIFY(reads_as(*zero_bytes(5), Bytes(5, 0)));
  }

  void parts_are_sources() {
    const Bytes bytes = rising(20, 1);
    const ByteSourcePtr whole = in_memory(bytes);
    for (const auto& [from, count] : {std::pair{0, 20}, std::pair{0, 0}, std::pair{20, 0}, std::pair{3, 9}}) {
      const auto at = static_cast<std::size_t>(from), size = static_cast<std::size_t>(count);
      QVERIFY(reads_as(*part_of(whole, at, size), slice(bytes, at, size)));
    }
    QVERIFY(reads_as(*part_of(part_of(whole, 3, 9), 2, 4), slice(bytes, 5, 4)));
  }

  void rows_of_sources_are_sources() {
    const Bytes bytes = rising(20, 1);
    const ByteSourcePtr whole = in_memory(bytes);
    QVERIFY(reads_as(*joined({}), {}));
    QVERIFY(reads_as(*joined({whole}), bytes));
    QVERIFY(reads_as(*joined({part_of(whole, 0, 7), in_memory({}), part_of(whole, 7, 1),
                              part_of(whole, 8, 12), in_memory({})}),
                     bytes));
  }

  void is_read_in_parts() {
    const Bytes bytes = rising(20, 1);
    for (const std::size_t most : {1u, 7u, 10u, 20u, 21u}) {
      Bytes seen;
      const auto read =
          read_in_parts(BytesView(bytes), most, [&](std::uint64_t at, ByteSpan part) -> Expected<void> {
            if (at != seen.size() || part.size() > most)
              return make_error(ErrorCode::Internal, "out of order");
            seen.insert(seen.end(), part.begin(), part.end());
            return {};
          });
      QVERIFY(read.ok());
      QCOMPARE(seen, bytes);
    }
    std::size_t uses = 0;
    const auto stop = [&](std::uint64_t, ByteSpan) -> Expected<void> {
      ++uses;
      return make_error(ErrorCode::Io, "no more");
    };
    QCOMPARE(read_in_parts(BytesView(bytes), 5, stop).error().code, ErrorCode::Io);
    QCOMPARE(uses, std::size_t{1});
  }

  void a_spool_in_memory_gives_back_what_was_written() {
    MemorySpool spool;
    const auto item = spool.create(20);
    QVERIFY(item.ok());
    const Bytes bytes = rising(20, 1);
    QVERIFY((*item)->write_at(12, ByteSpan(bytes).subspan(12)).ok());
    QVERIFY((*item)->write_at(0, ByteSpan(bytes).first(12)).ok());
    const auto source = (*item)->finish(15);
    QVERIFY(source.ok() && reads_as(**source, slice(bytes, 0, 15)));
    QVERIFY((*(*spool.create(0))->finish(0))->size() == 0);
  }
};

NS_TEST(TestByteSource)
#include "test_byte_source.moc"
