// Codecs over sources and sinks: the bytes and values of the ones in memory, in parts that stay small, and the
// errors of what is read and written.
#include <QTest>
#include <algorithm>
#include <limits>
#include <vector>

#include "core/base/spool.h"
#include "core/outer/codec.h"
#include "tests/support/test_main.h"
#include "tests/unit/outer/codec_oracle.h"

using namespace neuroshard;         // NOLINT
using namespace neuroshard::outer;  // NOLINT

namespace {

// A chunk, a part of 64 KiB, and some values beside them.
constexpr std::size_t sizes[] = {1, 255, 4095, 4096, 4097, 16383, 16384, 16385, 5 * 16384 + 4096 + 3};
constexpr std::size_t most_at_once = 256 * 1024;

class Watched final : public ByteSource {
 public:
  explicit Watched(ByteSourcePtr whole) : whole_(std::move(whole)) {}
  std::uint64_t size() const override { return whole_->size(); }
  Expected<void> read_at(std::uint64_t offset, MutableByteSpan target) const override {
    if (reads++ >= good) return make_error(ErrorCode::Io, "the disk is gone");
    largest = std::max(largest, target.size());
    return whole_->read_at(offset, target);
  }

  std::size_t good = std::numeric_limits<std::size_t>::max();
  mutable std::size_t reads = 0, largest = 0;

 private:
  const ByteSourcePtr whole_;
};

// Takes each byte once, and only within the size that it was made for.
class Sink final : public ByteSink {
 public:
  explicit Sink(std::uint64_t most) : bytes(most), written_(most) {}
  Expected<void> write_at(std::uint64_t offset, ByteSpan part) override {
    if (writes++ >= good) return make_error(ErrorCode::Exhausted, "the disk is full");
    largest = std::max(largest, part.size());
    if (offset > bytes.size() || part.size() > bytes.size() - offset)
      return make_error(ErrorCode::Internal, "beyond the end");
    for (std::size_t i = 0; i < part.size(); ++i) {
      if (written_[offset + i]) return make_error(ErrorCode::Internal, "written twice");
      written_[offset + i] = true;
      bytes[offset + i] = part[i];
    }
    return {};
  }
  std::size_t count() const {
    return static_cast<std::size_t>(std::count(written_.begin(), written_.end(), true));
  }

  Bytes bytes;
  std::size_t good = std::numeric_limits<std::size_t>::max();
  std::size_t writes = 0, largest = 0;

 private:
  std::vector<bool> written_;
};

struct WatchedValues {
  Span<const float> values;
  std::size_t good = std::numeric_limits<std::size_t>::max();
  std::size_t largest = 0, read = 0, reads = 0;

  ValueSource source() {
    return {values.size(), [this](std::uint64_t first, Span<float> out) -> Expected<void> {
              if (reads++ >= good) return make_error(ErrorCode::Io, "the disk is gone");
              largest = std::max(largest, out.size_bytes());
              read += out.size();
              return values_of(values).read(first, out);
            }};
  }
};

Expected<std::vector<float>> decoded(const CodecOptions& options, ByteSourcePtr payload, std::size_t count) {
  NS_ASSIGN_OR_RETURN(const auto reader, open_delta(options, std::move(payload), count));
  std::vector<float> values(count, NAN);
  for (std::size_t at = 0; at < count; at += codec_chunk)
    NS_RETURN_IF_ERROR(reader->next({values.data() + at, std::min(codec_chunk, count - at)}));
  NS_RETURN_IF_ERROR(reader->finish());
  return values;
}

}  // namespace

class TestCodecStreams : public QObject {
  Q_OBJECT

 private Q_SLOTS:
  void give_what_memory_gives() {
    for (const Codec codec : all_codecs)
      for (const char* kind : {"heavy tails", "sparse", "clustered", "zeros"})
        for (const std::size_t size : sizes) {
          const std::string what = std::string(to_string(codec)) + ", " + kind + ", " + std::to_string(size);
          const std::vector<float> values = oracle::sample(kind, size, size);
          const CodecOptions options{codec, 64};
          const Bytes expected = oracle::encode(options, values);
          QVERIFY2(*encode(options, values) == expected, what.c_str());

          WatchedValues watched{values};
          Sink sink(max_payload_bytes(options, size));
          const auto bytes = encode(options, watched.source(), sink);
          QVERIFY2(bytes.ok() && *bytes == expected.size() && sink.count() == *bytes, what.c_str());
          sink.bytes.resize(static_cast<std::size_t>(*bytes));
          QVERIFY2(sink.bytes == expected, what.c_str());
          QVERIFY(watched.largest <= most_at_once && sink.largest <= most_at_once);
          QCOMPARE(watched.read, (codec == Codec::SeedTopK ? 4 : 1) * size);

          const auto source = std::make_shared<Watched>(in_memory(expected));
          const auto streamed = decoded(options, source, size);
          std::vector<float> in_place(size, NAN);
          QVERIFY2(streamed.ok() && decode(options, expected, in_place).ok(), what.c_str());
          QVERIFY2(std::memcmp(streamed->data(), in_place.data(), 4 * size) == 0, what.c_str());
          QVERIFY(source->largest <= most_at_once);
        }
  }

  // The bit stream of TopK alone is longer than a window.
  void windows_that_end_anywhere() {
    const std::size_t size = 400 * codec_chunk + 100;
    const std::vector<float> values = oracle::sample("heavy tails", size, 1);
    for (const int k : {1000, 4096}) {
      const CodecOptions options{Codec::TopK, static_cast<std::uint16_t>(k)};
      const Bytes payload = *encode(options, values);
      QVERIFY(payload.size() > 2 * 65536);
      const auto streamed = decoded(options, in_memory(payload), size);
      QVERIFY(streamed.ok());
      QVERIFY(*encode(options, *streamed) == payload);
    }
  }

  void errors_of_values_and_sink_come_through() {
    const std::vector<float> values = oracle::sample("normal", sizes[8], 3);
    for (const Codec codec : all_codecs) {
      const CodecOptions options{codec, 64};
      WatchedValues whole{values};
      Sink taken(max_payload_bytes(options, values.size()));
      QVERIFY(encode(options, whole.source(), taken).ok());
      for (std::size_t good = 0; good < whole.reads; ++good) {
        WatchedValues failing{values};
        failing.good = good;
        Sink sink(taken.bytes.size());
        QCOMPARE(encode(options, failing.source(), sink).error().code, ErrorCode::Io);
      }
      for (std::size_t good = 0; good < taken.writes; ++good) {
        Sink sink(taken.bytes.size());
        sink.good = good;
        QCOMPARE(encode(options, values_of(Span<const float>(values)), sink).error().code,
                 ErrorCode::Exhausted);
      }
    }
  }

  void errors_of_a_payloads_source_come_through() {
    const std::size_t size = sizes[8];
    const std::vector<float> values = oracle::sample("normal", size, 4);
    for (const Codec codec : all_codecs) {
      const CodecOptions options{codec, 64};
      const ByteSourcePtr payload = in_memory(*encode(options, values));
      const auto whole = std::make_shared<Watched>(payload);
      QVERIFY(decoded(options, whole, size).ok());
      for (std::size_t good = 0; good < whole->reads; ++good) {
        const auto failing = std::make_shared<Watched>(payload);
        failing->good = good;
        QCOMPARE(decoded(options, failing, size).error().code, ErrorCode::Io);
      }
    }
  }

  void values_that_change_meanwhile_are_an_error() {
    const std::size_t size = 20000;
    const std::vector<float> before = oracle::sample("normal", size, 5), zeros(size, 0.0f);
    for (const std::uint64_t steady : {1u, 2u, 3u}) {
      std::uint64_t begun = 0;
      const ValueSource changing{
          size, [&](std::uint64_t first, Span<float> out) {
            if (first == 0) ++begun;
            return values_of(Span<const float>(begun <= steady ? before : zeros)).read(first, out);
          }};
      Sink sink(max_payload_bytes({Codec::SeedTopK}, size));
      const auto bytes = encode({Codec::SeedTopK}, changing, sink);
      if (steady == 3) QCOMPARE(bytes.error().code, ErrorCode::Corrupt);
      QVERIFY(steady == 3 || bytes.ok() || bytes.error().code == ErrorCode::Corrupt);
    }
  }
};

NS_TEST(TestCodecStreams)
#include "test_codec_streams.moc"
