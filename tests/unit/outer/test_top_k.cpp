// The top-k codec: which values are sent, as what, and how few bits their places take.
#include <QTest>
#include <algorithm>
#include <vector>

#include "core/outer/codec.h"
#include "core/outer/detail/codec_bodies.h"
#include "core/outer/detail/top_k_levels.h"
#include "tests/support/test_main.h"
#include "tests/unit/outer/codec_oracle.h"

using namespace neuroshard;
using namespace neuroshard::outer;

namespace {

std::vector<float> round_trip(const std::vector<float>& values, std::uint16_t k) {
  const auto payload = encode({Codec::TopK, k}, values);
  std::vector<float> decoded(values.size(), NAN);
  if (!payload.ok() || !decode(*payload, decoded).ok()) decoded.clear();
  return decoded;
}

// log2 C(n, k), exactly enough.
double floor_bits(int n, int k) {
  return (std::lgamma(n + 1.0) - std::lgamma(k + 1.0) - std::lgamma(n - k + 1.0)) / std::log(2.0);
}

}  // namespace

class TestTopK : public QObject {
  Q_OBJECT

 private Q_SLOTS:
  void the_largest_of_each_chunk_are_sent() {
    const std::vector<float> values = oracle::sample("normal", 4 * codec_chunk + 1000, 6);
    for (const int k : {1, 64, 300}) {
      const std::vector<float> decoded = round_trip(values, static_cast<std::uint16_t>(k));
      QVERIFY(!decoded.empty());
      for (std::size_t at = 0; at < values.size(); at += codec_chunk) {
        const std::size_t size = std::min(codec_chunk, values.size() - at);
        const std::size_t room = (static_cast<std::size_t>(k) * size + 4095) / 4096;
        std::vector<std::size_t> sent;
        for (std::size_t i = 0; i < size; ++i)
          if (decoded[at + i] != 0) sent.push_back(i);
        QCOMPARE(sent, oracle::largest_places({values.data() + at, size}, room));
        for (const std::size_t i : sent)
          QCOMPARE(std::signbit(decoded[at + i]), std::signbit(values[at + i]));
      }
    }
  }

  void ties_go_to_the_lower_places() {
    const std::vector<float> values(2 * codec_chunk, -0.5f);
    const std::vector<float> decoded = round_trip(values, 10);
    for (std::size_t i = 0; i < values.size(); ++i) QCOMPARE(decoded[i], i % codec_chunk < 10 ? -0.5f : 0.0f);
  }

  void zeros_are_never_sent() {
    std::vector<float> values(codec_chunk, 0.0f);
    values[7] = 1, values[4000] = -1;
    QCOMPARE(round_trip(values, 64), values);
    const std::vector<float> nothing(codec_chunk, 0.0f);
    QCOMPARE(round_trip(nothing, 64), nothing);
  }

  // Of a chunk, small and large magnitudes get a level each, at most 4.4 % off their mean.
  void two_levels_stand_for_the_magnitudes() {
    std::vector<float> values(codec_chunk, 0.0f);
    for (std::size_t i = 0; i < 32; ++i)
      values[i * 100] = (i % 2 == 0 ? 1.0f : -1.0f) * (i < 20 ? 3e-4f : 7e-3f);
    const std::vector<float> decoded = round_trip(values, 64);
    for (std::size_t i = 0; i < values.size(); ++i) {
      if (values[i] == 0) {
        QCOMPARE(decoded[i], 0.0f);
      } else {
        QVERIFY(std::fabs(decoded[i] / values[i] - 1) < 0.045f);
      }
    }
  }

  void chunks_far_below_the_largest_wait() {
    std::vector<float> values(2 * codec_chunk, 0.0f);
    values[5] = 1.0f;
    values[codec_chunk + 5] = std::ldexp(1.0f, -33);  // out of reach of 32 octaves
    std::vector<float> decoded = round_trip(values, 64);
    QCOMPARE(decoded[5], 1.0f);
    QCOMPARE(decoded[codec_chunk + 5], 0.0f);
    values[codec_chunk + 5] = std::ldexp(1.0f, -31);
    decoded = round_trip(values, 64);
    QCOMPARE(decoded[codec_chunk + 5], std::ldexp(1.0f, -31));
  }

  void levels_are_eighths_of_octaves() {
    using outer::detail::level_value;
    using outer::detail::nearest_level;
    for (int level = outer::detail::lowest_level; level <= outer::detail::highest_level; ++level) {
      const double value = std::exp2(level / 8.0);
      QVERIFY(std::fabs(level_value(level) / value - 1) < 1e-7);
      QCOMPARE(nearest_level(level_value(level)), level);
      QCOMPARE(nearest_level(value * 1.044), level);
      QCOMPARE(nearest_level(value * 1.045), level + 1);
      QCOMPARE(nearest_level(value / 1.044), level);
    }
    QVERIFY(nearest_level(0) < outer::detail::lowest_level);
  }

  // Random places: within 3 % of what any code could do. Payloads of a million values: the target.
  void places_cost_little_more_than_they_must() {
    const std::size_t count = 256 * codec_chunk;
    for (const int k : {32, 41, 64, 128, 410}) {
      const std::vector<float> values = oracle::sample("normal", count, 11);
      const Bytes payload = *encode({Codec::TopK, static_cast<std::uint16_t>(k)}, values);
      const double chunks = 256;
      const double other = codec_header_bytes + 2 + chunks * (2 + 1.0 / 8 + 2.0 * k / 8);
      const double bits = (static_cast<double>(payload.size()) - other) * 8 / (chunks * k);
      const double ratio = bits * k / floor_bits(4096, k);
      qInfo("MEASURED k %d: %.5f bytes a value, %.3f bits a place, %.4f of the floor", k,
            static_cast<double>(payload.size()) / static_cast<double>(count), bits, ratio);
      QVERIFY(ratio <= 1.03);
    }
  }

  // Places of a worst case cost at most 8 bits at k 64: no list of values makes a payload long.
  void no_places_make_a_payload_long() {
    std::vector<float> values(64 * codec_chunk, 0.0f);
    for (std::size_t chunk = 0; chunk < 64; ++chunk)
      for (std::size_t i = 0; i < 64; ++i) values[(chunk + 1) * codec_chunk - 64 + i] = 1.0f;
    const Bytes payload = *encode({Codec::TopK, 64}, values);
    QVERIFY(payload.size() <= max_payload_bytes({Codec::TopK, 64}, values.size()));
    QVERIFY(static_cast<double>(payload.size()) / static_cast<double>(values.size()) < 0.021);
  }

  // Any hint of an earlier chunk gives the same selection.
  void hints_change_nothing() {
    for (const std::string& kind : oracle::kinds()) {
      const std::vector<float> values = oracle::sample(kind, codec_chunk, 13);
      for (const auto* table :
           {&outer::detail::codec_kernels_portable, &outer::detail::best_codec_kernels()}) {
        for (const std::uint32_t k : {1u, 64u, 128u, 129u, 1000u, 4096u}) {
          const std::vector<std::size_t> expected = oracle::largest_places(values, k);
          for (std::uint32_t hint : {0u, 1u, 0x3a83126fu, 0x7f7fffffu, 0x7f800000u, 0xffffffffu}) {
            std::vector<std::uint16_t> places(codec_chunk);
            std::vector<float> selected(codec_chunk);
            std::uint32_t largest = 0;
            places.resize(table->select(values.data(), k, places.data(), selected.data(), &largest, &hint));
            QVERIFY(std::equal(places.begin(), places.end(), expected.begin(), expected.end()));
            for (std::size_t i = 0; i < places.size(); ++i) QCOMPARE(selected[i], values[places[i]]);
            QCOMPARE(largest, table->largest(values.data(), values.size()));
          }
        }
      }
    }
  }
};

NS_TEST(TestTopK)
#include "test_top_k.moc"
