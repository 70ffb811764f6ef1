// The guarantees of the codecs: how much is lost, how long payloads are, one payload per list of
// values, and that anything else is refused with a word about why.
#include <QTest>
#include <limits>
#include <vector>

#include "core/outer/codec.h"
#include "core/outer/detail/codec_bodies.h"
#include "tests/support/test_main.h"
#include "tests/unit/outer/codec_oracle.h"

using namespace neuroshard;
using namespace neuroshard::outer;

namespace {

Bytes sealed(Bytes payload) {
  Bytes summed(payload.begin(), payload.begin() + 16);
  summed.insert(summed.end(), payload.begin() + codec_header_bytes, payload.end());
  store_le(payload.data() + 16, oracle::crc32c(summed));
  return payload;
}

double relative_error(const std::vector<float>& values, const std::vector<float>& decoded) {
  double error = 0, norm = 0;
  for (std::size_t i = 0; i < values.size(); ++i) {
    const double d = static_cast<double>(values[i]) - decoded[i];
    error += d * d;
    norm += static_cast<double>(values[i]) * values[i];
  }
  return std::sqrt(error / norm);
}

}  // namespace

class TestCodec : public QObject {
  Q_OBJECT

 private Q_SLOTS:
  void names_go_both_ways() {
    for (const Codec codec : all_codecs) QCOMPARE(*codec_from_name(to_string(codec)), codec);
    const auto unknown = codec_from_name("zip");
    QVERIFY(!unknown.ok());
    QVERIFY(unknown.error().message.find("int8") != std::string::npos);
  }

  // Bytes per parameter of the design, headers included, and what rounding may cost on normal values.
  void lengths_and_losses_data() {
    QTest::addColumn<int>("codec");
    QTest::addColumn<double>("bytes");
    QTest::addColumn<double>("error");
    QTest::addRow("fp32") << 1 << 4.0001 << 0.0;
    QTest::addRow("fp16") << 2 << 2.0003 << 3e-4;
    QTest::addRow("int8") << 3 << 1.01 << 8e-3;
    QTest::addRow("int4") << 4 << 0.51 << 0.13;
    QTest::addRow("topk") << 5 << 0.0195 << 0.945;
    QTest::addRow("seed-topk") << 6 << 0.6001 << 0.76;
  }
  void lengths_and_losses() {
    QFETCH(int, codec);
    QFETCH(double, bytes);
    QFETCH(double, error);
    const std::vector<float> values = oracle::sample("normal", 1u << 20, 3);
    const CodecOptions options{static_cast<Codec>(codec), 64};
    const auto payload = encode(options, values);
    QVERIFY(payload.ok());
    const double per_value = static_cast<double>(payload->size()) / static_cast<double>(values.size());
    QVERIFY2(per_value <= bytes, qPrintable(QString::number(per_value)));
    QVERIFY(payload->size() <= max_payload_bytes(options, values.size()));
    const bool dense = options.codec <= Codec::Int4;
    if (dense) QCOMPARE(payload->size(), max_payload_bytes(options, values.size()));
    std::vector<float> decoded(values.size());
    QVERIFY(decode(*payload, decoded).ok());
    const double lost = relative_error(values, decoded);
    QVERIFY2(lost <= error, qPrintable(QString::number(lost)));
    const auto header = read_codec_header(*payload);
    QVERIFY(header.ok() && header->count == values.size() && header->options.codec == options.codec);
  }

  // fp16 keeps 11 bits of small deltas too, where plain halves would have none left.
  void fp16_is_as_good_for_small_deltas() {
    std::vector<float> values = oracle::sample("normal", 10000, 4);
    for (float& value : values) value *= 1e-9f;
    std::vector<float> decoded(values.size());
    QVERIFY(decode(*encode({Codec::Fp16}, values), decoded).ok());
    QVERIFY(relative_error(values, decoded) < 3e-4);
  }

  // The largest value of a block keeps its place at the end of the scale, and no error exceeds half a step.
  void quantised_values_are_within_half_a_step() {
    for (const auto& [codec, top] : {std::pair{Codec::Int8, 127}, std::pair{Codec::Int4, 7}}) {
      const std::vector<float> values = oracle::sample("heavy tails", 5000, 9);
      std::vector<float> decoded(values.size());
      QVERIFY(decode(*encode({codec}, values), decoded).ok());
      for (std::size_t block = 0; block < values.size(); block += 256) {
        const std::size_t size = std::min<std::size_t>(256, values.size() - block);
        const double step = oracle::largest({decoded.data() + block, size}) / top;
        for (std::size_t i = block; i < block + size; ++i)
          QVERIFY(std::fabs(values[i] - decoded[i]) <= 0.501 * step);
      }
    }
  }

  void encoding_again_gives_the_same_payload() {
    for (const Codec codec : all_codecs) {
      for (const std::string& kind : oracle::kinds()) {
        const std::vector<float> values = oracle::sample(kind, 9001, 8);
        const auto payload = encode({codec}, values);
        if (codec == Codec::SeedTopK && !payload.ok()) continue;
        QVERIFY(payload.ok());
        std::vector<float> decoded(values.size());
        QVERIFY(decode(*payload, decoded).ok());
        QVERIFY2(*encode({codec}, decoded) == *payload, (std::string(to_string(codec)) + kind).c_str());
      }
    }
  }

  void values_that_cannot_be_sent_are_an_error() {
    for (const Codec codec : all_codecs) {
      for (const float bad :
           {NAN, -NAN, INFINITY, -INFINITY, codec_magnitude_limit, -codec_magnitude_limit}) {
        for (const std::size_t at : {std::size_t{0}, std::size_t{4095}, std::size_t{4999}}) {
          std::vector<float> values = oracle::sample("normal", 5000, 1);
          values[at] = bad;
          const auto payload = encode({codec}, values);
          QVERIFY(!payload.ok());
          QCOMPARE(payload.error().code, ErrorCode::InvalidArgument);
        }
      }
      QVERIFY(!encode({codec}, {}).ok());
    }
    const float values[1] = {1};
    QVERIFY(!encode({Codec::TopK, 0}, values).ok());
    QVERIFY(!encode({Codec::TopK, 4097}, values).ok());
    QVERIFY(!encode({static_cast<Codec>(7)}, values).ok());
    const float beyond_half[1] = {65520};
    QVERIFY(!encode({Codec::SeedTopK}, beyond_half).ok());
    QCOMPARE(max_payload_bytes({Codec::TopK, 0}, 10), 0u);
    QCOMPARE(max_payload_bytes({Codec::Int8}, 0), 0u);
  }

  // The 32-bit places of seed-topk bound that codec alone.
  void a_row_can_be_a_whole_model() {
    constexpr std::uint64_t parameters = std::uint64_t{1} << 42, places = (std::uint64_t{1} << 32) - 1;
    const std::vector<float> values = oracle::sample("normal", 300, 1);
    for (const Codec codec : all_codecs) {
      const std::uint64_t most = codec == Codec::SeedTopK ? places : parameters;
      QVERIFY2(max_payload_bytes({codec}, most) > 0, to_string(codec).data());
      QCOMPARE(max_payload_bytes({codec}, most + 1), 0u);
      QVERIFY(outer::detail::check_encodable({codec}, most).ok());
      QCOMPARE(outer::detail::check_encodable({codec}, most + 1).error().code, ErrorCode::InvalidArgument);
      Bytes head = *encode({codec}, values);
      head.resize(codec_header_bytes);
      store_le<std::uint64_t>(head.data() + 8, most);
      const auto header = read_codec_header(head);
      QVERIFY(header.ok() && header->count == most);
      store_le<std::uint64_t>(head.data() + 8, most + 1);
      QVERIFY(!read_codec_header(head).ok());
    }
    QVERIFY(max_payload_bytes({Codec::Fp32}, parameters) == codec_header_bytes + 4 * parameters);
    QVERIFY(max_payload_bytes({Codec::Int8}, parameters) == codec_header_bytes + parameters / 256 * 258);
  }

  // Just under the limit: what is sent can be read, or is refused where it is sent.
  void nothing_is_sent_that_the_other_side_refuses() {
    const float edge = std::nextafter(codec_magnitude_limit, 0.0f);
    for (const Codec codec : all_codecs) {
      for (const float largest : {edge, edge * 0.9999f, edge * 0.999f, edge * 0.99f, edge * 0.9f,
                                  std::ldexp(1.0f, -64), std::ldexp(1.0f, -65), std::ldexp(1.99f, -65)}) {
        const std::vector<float> values(300, largest);
        const auto payload = encode({codec}, values);
        if (!payload.ok()) continue;
        std::vector<float> decoded(values.size());
        QVERIFY2(decode(*payload, decoded).ok(), to_string(codec).data());
      }
    }
  }

  void another_codec_or_length_is_refused() {
    const std::vector<float> values = oracle::sample("normal", 5000, 2);
    const Bytes payload = *encode({Codec::TopK, 64}, values);
    std::vector<float> decoded(5000), shorter(4999);
    QVERIFY(decode({Codec::TopK, 64}, payload, decoded).ok());
    QCOMPARE(decode({Codec::TopK, 65}, payload, decoded).error().code, ErrorCode::Corrupt);
    QCOMPARE(decode({Codec::Int8}, payload, decoded).error().code, ErrorCode::Corrupt);
    const auto wrong_count = decode(payload, shorter);
    QVERIFY(wrong_count.error().message.find("5000") != std::string::npos);
    QVERIFY(wrong_count.error().message.find("4999") != std::string::npos);
    QVERIFY(!decode(payload, {}).ok());
  }

  void damaged_headers_are_refused() {
    const std::vector<float> values = oracle::sample("normal", 100, 2);
    std::vector<float> decoded(100);
    for (const Codec codec : all_codecs) {
      const Bytes good = *encode({codec}, values);
      for (std::size_t length = 0; length < good.size(); ++length)
        QVERIFY(!decode(ByteSpan(good.data(), length), decoded).ok());
      Bytes longer = good;
      longer.push_back(0);
      QVERIFY(!decode(sealed(longer), decoded).ok());
      for (std::size_t bit = 0; bit < 8 * codec_header_bytes; ++bit) {
        Bytes bad = good;
        bad[bit / 8] = static_cast<std::uint8_t>(bad[bit / 8] ^ 1u << bit % 8);
        QVERIFY(!decode(bad, decoded).ok());
      }
    }
  }

  // With a checksum that holds: what is accepted is what the encoder would have sent for these values.
  void whatever_is_accepted_is_canonical() {
    Rng rng(std::uint64_t{17});
    std::size_t accepted = 0, refused = 0;
    for (int round = 0; round < 20000; ++round) {
      const CodecOptions options{all_codecs[rng.below(6)], static_cast<std::uint16_t>(1 + rng.below(200))};
      const std::size_t count = 1 + rng.below(round % 50 == 0 ? 9000 : 300);
      const std::vector<float> values =
          oracle::sample(oracle::kinds()[rng.below(oracle::kinds().size())], count, rng.next());
      auto payload = encode(options, values);
      if (!payload.ok()) continue;
      const std::size_t body = payload->size() - codec_header_bytes;
      if (body == 0) continue;
      for (std::uint64_t changes = 1 + rng.below(3); changes > 0; --changes) {
        std::uint8_t& byte = (*payload)[codec_header_bytes + rng.below(body)];
        byte = static_cast<std::uint8_t>(rng.below(3) == 0 ? rng.below(256) : byte ^ 1u << rng.below(8));
      }
      if (rng.below(8) == 0) payload->resize(payload->size() - rng.below(body));
      const Bytes bytes = sealed(*payload);
      std::vector<float> decoded(count);
      if (!decode(bytes, decoded).ok()) {
        ++refused;
        continue;
      }
      ++accepted;
      for (const float value : decoded)
        QVERIFY(std::isfinite(value) && std::fabs(value) < codec_magnitude_limit);
      const CodecOptions same = read_codec_header(bytes)->options;
      const auto again = encode(same, decoded);
      QVERIFY2(again.ok() && *again == bytes,
               qPrintable(QString("round %1, codec %2").arg(round).arg(static_cast<int>(same.codec))));
    }
    QVERIFY(accepted > 500);
    QVERIFY(refused > 2000);
  }
};

NS_TEST(TestCodec)
#include "test_codec.moc"
