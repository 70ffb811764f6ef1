// Aggregation of deltas that stay encoded: the same bits and the same report as of deltas that were decoded
// first, whatever the codec, the rule and the number of slices; and payloads that nobody can decode.
#include <QTest>
#include <limits>
#include <utility>

#include "core/outer/aggregate.h"
#include "core/outer/detail/codec_bodies.h"
#include "tests/support/test_main.h"
#include "tests/unit/outer/codec_oracle.h"
#include "tests/unit/outer/same_bits.h"

using namespace neuroshard;                  // NOLINT
using namespace neuroshard::outer;           // NOLINT
using namespace neuroshard::outer::samples;  // NOLINT

namespace {

constexpr std::size_t several_slices = 2 * 65536 + 5 * 4096 + 37;

// Fails after some good reads, or reads from another source after some; knows the largest.
struct Troubled final : ByteSource {
  explicit Troubled(ByteSourcePtr source) : whole(std::move(source)) {}
  std::uint64_t size() const override { return whole->size(); }
  Expected<void> read_at(std::uint64_t offset, MutableByteSpan target) const override {
    if (reads++ >= good) return make_error(code, "the disk is gone");
    largest = std::max(largest, target.size());
    return (reads > changes_after ? later : whole)->read_at(offset, target);
  }

  ByteSourcePtr whole, later;
  std::size_t changes_after = std::numeric_limits<std::size_t>::max();
  std::size_t good = std::numeric_limits<std::size_t>::max();
  ErrorCode code = ErrorCode::Io;
  mutable std::size_t reads = 0, largest = 0;
};

struct Round {
  CodecOptions codec;
  std::size_t values;
  std::vector<Bytes> payloads;
  std::vector<EncodedContribution> encoded;

  Round(Codec which, std::size_t n, std::size_t count) : values(count) {
    codec.codec = which;
    for (std::size_t i = 0; i < n; ++i) {
      payloads.push_back(*encode(codec, oracle::sample("heavy tails", count, i)));
      EncodedContribution c;
      c.id[0] = static_cast<std::uint8_t>(200 - 7 * i);  // not in the order they come in
      c.tokens = 1000 + 10 * i;
      encoded.push_back(c);
    }
    aim();
  }
  void aim() {
    for (std::size_t i = 0; i < payloads.size(); ++i) encoded[i].payload = in_memory(payloads[i]);
  }
  // The last block says that its scale is one that its values don't have: only who decodes it all finds out.
  void spoil_the_end(std::size_t which) {
    Bytes& payload = payloads[which];
    std::fill(payload.end() - 37, payload.end(), std::uint8_t{0});
    const auto& kernels = outer::detail::best_codec_kernels();
    const std::uint32_t head = kernels.crc32c(0, payload.data(), 16);
    store_le(payload.data() + 16,
             kernels.crc32c(head, payload.data() + codec_header_bytes, payload.size() - codec_header_bytes));
  }
};

struct Outcome {
  std::vector<float> out;
  AggregateReport report;
  std::size_t starts = 0;  // how often the values came from the first on
};

// Takes all values in order.
WriteValues write_in_order(Outcome& outcome) {
  return [&outcome, next = std::size_t{0}](std::uint64_t first,
                                           Span<const float> values) mutable -> Expected<void> {
    if (first == 0) ++outcome.starts, next = 0;
    if (first != next || values.size() > outcome.out.size() - next || values.size_bytes() > 256 * 1024)
      return make_error(ErrorCode::Internal, "not in order, too many, or too many at a time");
    std::copy(values.begin(), values.end(), outcome.out.begin() + static_cast<std::ptrdiff_t>(next));
    next += values.size();
    return {};
  };
}

Outcome of_encoded(const AggregationOptions& options, const Round& round) {
  Outcome result{std::vector<float>(round.values), {}};
  auto report =
      aggregate_encoded(options, round.codec, round.encoded, 1'000'000, round.values, write_in_order(result));
  if (!report.ok()) qFatal("%s", report.error().describe().c_str());
  result.report = std::move(*report);
  return result;
}

// Those that can be decoded.
Outcome of_decoded(const AggregationOptions& options, const Round& round) {
  std::vector<std::vector<float>> deltas;
  std::vector<Contribution> contributions;
  deltas.reserve(round.encoded.size());
  for (std::size_t i = 0; i < round.encoded.size(); ++i) {
    std::vector<float> delta(round.values);
    if (!decode(round.codec, round.payloads[i], delta).ok()) continue;
    deltas.push_back(std::move(delta));
    contributions.push_back({round.encoded[i].id, round.encoded[i].tokens, deltas.back()});
  }
  Outcome result{std::vector<float>(round.values), {}};
  auto report = aggregate(options, contributions, 1'000'000, result.out);
  if (!report.ok()) qFatal("%s", report.error().describe().c_str());
  result.report = std::move(*report);
  return result;
}

// Of those that counted.
bool same(const Outcome& encoded, const Outcome& decoded) {
  if (!same_bits(encoded.out, decoded.out) || encoded.report.counted != decoded.report.counted ||
      encoded.report.f != decoded.report.f || encoded.report.ran.rule != decoded.report.ran.rule ||
      encoded.report.trimmed != decoded.report.trimmed ||
      encoded.report.median_norm != decoded.report.median_norm)
    return false;
  std::size_t at = 0;
  for (const Judged& one : encoded.report.judged) {
    if (one.refusal == Refusal::Unreadable) continue;
    const Judged& other = decoded.report.judged.at(at++);
    if (one.id != other.id || one.weight != other.weight || one.norm != other.norm ||
        one.clip_factor != other.clip_factor || one.share != other.share || one.refusal != other.refusal)
      return false;
  }
  return at == decoded.report.judged.size();
}

std::vector<Hash256> unreadable(const AggregateReport& report) {
  std::vector<Hash256> ids;
  for (const Judged& one : report.judged)
    if (one.refusal == Refusal::Unreadable) ids.push_back(one.id);
  return ids;
}

}  // namespace

class TestAggregateEncoded : public QObject {
  Q_OBJECT
 private Q_SLOTS:
  // By the number of contributions: the mean, clip and CC, clip with NNM and the trimmed mean or CC.
  void gives_the_same_as_of_decoded_deltas() {
    for (const Codec codec : all_codecs)
      for (const std::size_t n : {1u, 4u, 6u, 9u}) {
        const Round round(codec, n, several_slices);
        AggregationOptions options;
        options.sparse = codec == Codec::TopK;
        QVERIFY2(same(of_encoded(options, round), of_decoded(options, round)),
                 (std::string(to_string(codec)) + " " + std::to_string(n)).c_str());
      }
  }

  void with_each_rule() {
    for (const std::size_t values : {std::size_t{1}, std::size_t{4096}, std::size_t{65536}, several_slices}) {
      const Round round(Codec::Int8, 9, values);
      for (const Rule rule : {Rule::WeightedMean, Rule::TrimmedMean, Rule::CoordinateMedian, Rule::Krum,
                              Rule::MultiKrum, Rule::GeometricMedian, Rule::CenteredClipping})
        for (const bool clip : {false, true})
          for (const bool mixing : {false, true}) {
            AggregationOptions options;
            options.choice = RuleChoice{rule, clip, mixing};
            QVERIFY2(same(of_encoded(options, round), of_decoded(options, round)),
                     std::string(to_string(rule)).c_str());
          }
    }
  }

  // Another codec's, another size's, a damaged one, and one that turns out to be none at its end.
  void what_nobody_can_decode_does_not_count() {
    for (const std::size_t n : {4u, 7u, 11u}) {
      Round round(Codec::Int8, n, several_slices);
      std::vector<Hash256> bad;
      round.spoil_the_end(1);
      bad.push_back(round.encoded[1].id);
      if (n > 4) {
        round.payloads[2] = *encode({Codec::Fp16, 64}, oracle::sample("heavy tails", several_slices, 2));
        bad.push_back(round.encoded[2].id);
      }
      if (n > 7) {
        round.payloads[3] = *encode(round.codec, oracle::sample("heavy tails", several_slices - 1, 3));
        round.payloads[4][1000] ^= 1;
        bad.push_back(round.encoded[3].id);
        bad.push_back(round.encoded[4].id);
      }
      round.aim();
      std::sort(bad.begin(), bad.end());  // as the report is
      for (const Rule rule : {Rule::WeightedMean, Rule::CoordinateMedian, Rule::CenteredClipping}) {
        AggregationOptions options;
        options.choice = RuleChoice{rule, rule == Rule::CenteredClipping, false};
        const Outcome outcome = of_encoded(options, round);
        QVERIFY(same(outcome, of_decoded(options, round)));
        QCOMPARE(outcome.report.counted, n - bad.size());
        QVERIFY(unreadable(outcome.report) == bad);
      }
      // The rule that goes with the number is the one for those that are left.
      const Outcome outcome = of_encoded({}, round);
      QVERIFY(same(outcome, of_decoded({}, round)));
      // With a fixed number of Byzantine peers, an unreadable payload does not count as one of them.
      AggregationOptions fixed;
      fixed.f = 1;
      QVERIFY(same(of_encoded(fixed, round), of_decoded(fixed, round)));
    }
  }

  // A payload that turns out to be damaged at its end is known before the first value, also by a rule without a clip.
  void the_refused_take_no_part_and_all_values_come_once() {
    Round round(Codec::Int8, 4, several_slices);
    AggregationOptions options;
    options.choice = RuleChoice{Rule::WeightedMean, false, false};
    round.spoil_the_end(2);
    round.aim();
    const Outcome outcome = of_encoded(options, round);
    QCOMPARE(outcome.starts, std::size_t{1});
    QCOMPARE(outcome.report.counted, std::size_t{3});
    QVERIFY(same(outcome, of_decoded(options, round)));
  }

  void a_payload_that_changes_between_the_passes_is_an_error() {
    Round round(Codec::Int8, 3, several_slices);
    const auto counted = std::make_shared<Troubled>(round.encoded[1].payload);
    round.encoded[1].payload = counted;
    QCOMPARE(of_encoded({}, round).report.counted, std::size_t{3});
    Bytes other = round.payloads[1];
    other[other.size() / 2] ^= 1;
    counted->later = in_memory(other);
    counted->changes_after = counted->reads / 2;
    counted->reads = 0;
    Outcome none{std::vector<float>(round.values), {}};
    const auto report =
        aggregate_encoded({}, round.codec, round.encoded, 1'000'000, round.values, write_in_order(none));
    QVERIFY(!report.ok());
    QCOMPARE(report.error().code, ErrorCode::Corrupt);
    QVERIFY2(report.error().message.find("changed") != std::string::npos, report.error().message.c_str());
  }

  // At any of its reads, by any code: also by the one that a damaged payload has.
  void a_source_that_fails_is_an_error_and_no_refusal() {
    for (const Codec codec : all_codecs) {
      Round round(codec, 5, several_slices);
      const auto counted = std::make_shared<Troubled>(round.encoded[3].payload);
      round.encoded[3].payload = counted;
      const Outcome outcome = of_encoded({}, round);
      QCOMPARE(outcome.report.counted, std::size_t{5});
      QVERIFY(same(outcome, of_decoded({}, round)));
      QVERIFY(counted->largest <= 256 * 1024);
      const std::size_t reads = counted->reads;
      for (std::size_t good = 0; good < reads; good += 1 + reads / 7)
        for (const ErrorCode code : {ErrorCode::Io, ErrorCode::Corrupt}) {
          const auto failing = std::make_shared<Troubled>(counted->whole);
          failing->good = good;
          failing->code = code;
          round.encoded[3].payload = failing;
          Outcome none{std::vector<float>(round.values), {}};
          const auto report = aggregate_encoded({}, round.codec, round.encoded, 1'000'000, round.values,
                                                write_in_order(none));
          QVERIFY2(!report.ok(), to_string(codec).data());
          QCOMPARE(report.error().code, code);
          QCOMPARE(report.error().message, std::string("the disk is gone"));
        }
    }
  }

  void an_error_of_the_output_ends_it() {
    const Round round(Codec::Int8, 5, several_slices);
    std::size_t writes = 0;
    const auto report = aggregate_encoded({}, round.codec, round.encoded, 1'000'000, round.values,
                                          [&](std::uint64_t, Span<const float>) -> Expected<void> {
                                            if (++writes == 3)
                                              return make_error(ErrorCode::Exhausted, "full");
                                            return {};
                                          });
    QVERIFY(!report.ok());
    QCOMPARE(report.error().code, ErrorCode::Exhausted);
    QCOMPARE(writes, std::size_t{3});
  }

  void of_nothing_but_rubbish_nothing_counts() {
    Round round(Codec::Int8, 5, 5000);
    for (Bytes& payload : round.payloads) payload.resize(10);
    round.aim();
    const Outcome outcome = of_encoded({}, round);
    QCOMPARE(outcome.report.counted, std::size_t{0});
    QCOMPARE(unreadable(outcome.report).size(), std::size_t{5});
  }

  // One chunk of the deltas and the sums before it give the sums after it; with the last sums also the values.
  void each_chunk_follows_from_its_own_values() {
    for (const Codec codec : {Codec::Fp32, Codec::Fp16, Codec::Int8, Codec::Int4})
      for (const std::size_t n : {std::size_t{1}, std::size_t{3}, std::size_t{6}, std::size_t{9}}) {
        const Round round(codec, n, several_slices);
        AggregationOptions options;
        options.most_norm = 0.5;
        std::vector<std::vector<double>> trace;
        std::vector<float> out(round.values);
        const auto report = aggregate_encoded(
            options, round.codec, round.encoded, 1'000'000, round.values,
            [&out](std::uint64_t first, Span<const float> values) -> Expected<void> {
              std::copy(values.begin(), values.end(), out.begin() + static_cast<std::ptrdiff_t>(first));
              return {};
            },
            [&trace](std::uint64_t chunk, Span<const double> sums) -> Expected<void> {
              trace.resize(chunk);
              trace.emplace_back(sums.begin(), sums.end());
              return {};
            });
        QVERIFY(report.ok() && report->counted == n);
        QCOMPARE(trace.size(), std::size_t{3});
        QCOMPARE(trace.back().size(), n < 5 ? n : n * (n + 1) / 2);
        for (std::size_t chunk = 0; chunk < trace.size(); ++chunk) {
          const std::size_t first = chunk * trace_chunk, count = std::min(trace_chunk, round.values - first);
          std::vector<std::vector<float>> deltas;
          std::vector<Contribution> contributions;
          for (std::size_t i = 0; i < n; ++i) {
            const auto part = payload_part(round.codec, first, count);
            QVERIFY(part.has_value());
            std::vector<float>& delta = deltas.emplace_back(count);
            const ByteSpan bytes = ByteSpan(round.payloads[i]).subspan(part->begin, part->size);
            QVERIFY(decode_part(round.codec, bytes, delta).ok());
          }
          for (std::size_t i = 0; i < n; ++i)
            contributions.push_back({round.encoded[i].id, round.encoded[i].tokens, deltas[i]});
          const auto sums =
              measure_chunk(options, contributions,
                            chunk == 0 ? Span<const double>() : Span<const double>(trace[chunk - 1]));
          QVERIFY(sums.ok() && *sums == trace[chunk]);
          std::vector<float> values(count);
          const auto again = aggregate_chunk(options, contributions, 1'000'000, trace.back(), values);
          QVERIFY(again.ok() && again->median_norm == report->median_norm);
          QVERIFY(std::memcmp(values.data(), out.data() + first, count * sizeof(float)) == 0);
          // With other sums, other values; with too few, an error.
          std::vector<double> wrong = trace.back();
          wrong[0] *= 4;
          const auto otherwise = aggregate_chunk(options, contributions, 1'000'000, wrong, values);
          QVERIFY(otherwise.ok() && otherwise->judged[0].norm == 2 * report->judged[0].norm);
          wrong.push_back(1);
          QCOMPARE(aggregate_chunk(options, contributions, 1'000'000, wrong, values).error().code,
                   ErrorCode::InvalidArgument);
        }
      }
  }

  void parts_of_payloads_that_are_no_parts() {
    const Round round(Codec::Int8, 1, several_slices);
    std::vector<float> values(codec_chunk);
    const auto part = *payload_part(round.codec, 0, codec_chunk);
    Bytes bytes(round.payloads[0].begin() + static_cast<std::ptrdiff_t>(part.begin),
                round.payloads[0].begin() + static_cast<std::ptrdiff_t>(part.begin + part.size));
    QVERIFY(decode_part(round.codec, bytes, values).ok());
    QVERIFY(!decode_part(round.codec, ByteSpan(bytes).first(bytes.size() - 1), values).ok());
    bytes[1] = 0xff;  // a negative scale
    QCOMPARE(decode_part(round.codec, bytes, values).error().code, ErrorCode::Corrupt);
    QVERIFY(!payload_part({Codec::TopK, 64}, 0, codec_chunk));
    QCOMPARE(decode_part({Codec::TopK, 64}, bytes, values).error().code, ErrorCode::Unsupported);
    QVERIFY(is_readable(round.codec, *round.encoded[0].payload, round.values));
    Round spoilt(Codec::Int8, 1, several_slices);
    spoilt.spoil_the_end(0);
    spoilt.aim();
    QVERIFY(!is_readable(spoilt.codec, *spoilt.encoded[0].payload, spoilt.values));
  }
};

NS_TEST(TestAggregateEncoded)
#include "test_aggregate_encoded.moc"
