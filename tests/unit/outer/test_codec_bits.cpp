// Every codec on every table of kernels that this processor has gives the bytes of the slow oracle, and reads
// them back to the same values.
#include <QTest>
#include <vector>

#include "core/outer/codec.h"
#include "core/outer/detail/codec_bodies.h"
#include "tests/support/test_main.h"
#include "tests/unit/outer/codec_oracle.h"
#include "tests/unit/outer/same_bits.h"

using namespace neuroshard;                  // NOLINT
using namespace neuroshard::outer;           // NOLINT
using namespace neuroshard::outer::samples;  // NOLINT

namespace {

std::vector<const outer::detail::CodecKernels*> tables() {
  std::vector<const outer::detail::CodecKernels*> all{&outer::detail::codec_kernels_portable};
#if defined(__x86_64__)
  if (outer::detail::has_codec_kernels_avx2()) all.push_back(&outer::detail::codec_kernels_avx2);
#endif
  return all;
}

constexpr std::size_t sizes[] = {1, 7, 255, 257, 4095, 4096, 9001};

}  // namespace

class TestCodecBits : public QObject {
  Q_OBJECT

 private Q_SLOTS:
  void the_best_table_of_this_processor_is_taken() {
    QCOMPARE(&outer::detail::best_codec_kernels(), tables().back());
    for (const auto* table : tables()) qInfo("MEASURED table %s", table->name);
  }

  void bytes_are_the_oracles_data() {
    QTest::addColumn<int>("codec");
    QTest::addColumn<int>("k");
    for (const Codec codec : all_codecs) {
      if (codec == Codec::TopK) continue;
      QTest::addRow("%s", to_string(codec).data()) << static_cast<int>(codec) << 64;
    }
    for (const int k : {1, 2, 41, 64, 128, 129, 410, 4095, 4096})
      QTest::addRow("topk %d", k) << static_cast<int>(Codec::TopK) << k;
  }
  void bytes_are_the_oracles() {
    QFETCH(int, codec);
    QFETCH(int, k);
    const CodecOptions options{static_cast<Codec>(codec), static_cast<std::uint16_t>(k)};
    for (const std::string& kind : oracle::kinds()) {
      for (const std::size_t size : sizes) {
        const std::vector<float> values = oracle::sample(kind, size, size);
        const std::string what = kind + ", " + std::to_string(size) + " values";
        if (options.codec == Codec::SeedTopK && oracle::largest(values) >= 65520) continue;
        const Bytes expected = oracle::encode(options, values);
        std::vector<float> first;
        for (const auto* table : tables()) {
          const auto payload = outer::detail::encode_with(*table, options, values);
          QVERIFY2(payload.ok(), what.c_str());
          QVERIFY2(*payload == expected, (what + ", " + table->name).c_str());
          std::vector<float> decoded(size, NAN);
          QVERIFY2(outer::detail::decode_with(*table, expected, decoded).ok(), what.c_str());
          if (first.empty()) first = decoded;
          QVERIFY2(same_bits(decoded, first), (what + ", " + table->name).c_str());
        }
      }
    }
  }

  // The table's own contract, at sizes and alignments that no codec asks for.
  void kernels_agree_at_every_length() {
    const std::vector<float> values = oracle::sample("normal", 200, 5);
    const auto& plain = outer::detail::codec_kernels_portable;
    for (const auto* table : tables()) {
      for (std::size_t count = 0; count <= 150; ++count) {
        const float* from = values.data() + count % 3;
        QCOMPARE(table->largest(from, count), plain.largest(from, count));
        const auto bytes = reinterpret_cast<const std::uint8_t*>(from) + 1;
        QCOMPARE(table->crc32c(7, bytes, count), plain.crc32c(7, bytes, count));
        QCOMPARE(table->largest_fp16(bytes, count), plain.largest_fp16(bytes, count));
        std::vector<std::uint8_t> a(400, 0xaa), b(400, 0xaa);
        std::vector<float> x(200, -1.0f), y(200, -1.0f);
        table->to_fp16(from, count, 1e6f, a.data()), plain.to_fp16(from, count, 1e6f, b.data());
        QCOMPARE(a, b);
        table->from_fp16(a.data(), count, 0.5f, x.data()), plain.from_fp16(a.data(), count, 0.5f, y.data());
        QCOMPARE(x, y);
        table->quantise8(from, count, 2e4f, a.data()), plain.quantise8(from, count, 2e4f, b.data());
        QCOMPARE(a, b);
        QCOMPARE(table->dequantise8(bytes, count, 0.25f, x.data()),
                 plain.dequantise8(bytes, count, 0.25f, y.data()));
        QCOMPARE(x, y);
        table->quantise4(from, count, 1e3f, a.data()), plain.quantise4(from, count, 1e3f, b.data());
        QCOMPARE(a, b);
        QCOMPARE(table->dequantise4(bytes, count, 3.0f, x.data()),
                 plain.dequantise4(bytes, count, 3.0f, y.data()));
        QCOMPARE(x, y);
        outer::detail::MagnitudeSides sides{}, others{};
        table->split(from, count, 1e-3f, &sides), plain.split(from, count, 1e-3f, &others);
        QVERIFY(sides.low_sum == others.low_sum && sides.high_sum == others.high_sum);
        QCOMPARE(sides.high_count, others.high_count);
      }
    }
  }

  void all_halves_convert_exactly() {
    for (const auto* table : tables()) {
      for (std::uint32_t bits = 0; bits < 0x10000; ++bits) {
        if ((bits & 0x7c00) == 0x7c00) continue;
        std::uint8_t in[2], out[2];
        store_le(in, static_cast<std::uint16_t>(bits));
        float value = NAN;
        table->from_fp16(in, 1, 1.0f, &value);
        QCOMPARE(oracle::half(value), bits);
        table->to_fp16(&value, 1, 1.0f, out);
        QCOMPARE(load_le<std::uint16_t>(out), bits);
      }
    }
  }

  // RFC 3720 B.4.
  void checksum_is_crc32c() {
    const Bytes zeros(32, 0), ones(32, 0xff);
    for (const auto* table : tables()) {
      QCOMPARE(table->crc32c(0, zeros.data(), 32), 0x8a9136aau);
      QCOMPARE(table->crc32c(0, ones.data(), 32), 0x62a8ab43u);
      const std::uint32_t half = table->crc32c(0, ones.data(), 13);
      QCOMPARE(table->crc32c(half, ones.data() + 13, 19), 0x62a8ab43u);
    }
  }
};

NS_TEST(TestCodecBits)
#include "test_codec_bits.moc"
