// Aggregation of deltas that stay encoded: the same bits and the same report as of deltas that were decoded
// first, whatever the codec, the rule and the number of slices; and payloads that nobody can decode.
#include <QTest>

#include "core/outer/aggregate.h"
#include "core/outer/detail/codec_bodies.h"
#include "tests/support/test_main.h"
#include "tests/unit/outer/codec_oracle.h"

using namespace neuroshard;         // NOLINT
using namespace neuroshard::outer;  // NOLINT

namespace {

constexpr std::size_t several_slices = 2 * 65536 + 5 * 4096 + 37;

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
};

Outcome of_encoded(const AggregationOptions& options, const Round& round) {
  Outcome result{std::vector<float>(round.values), {}};
  const WriteValues out = [&](std::uint64_t first, Span<const float> values) -> Expected<void> {
    std::copy(values.begin(), values.end(), result.out.begin() + static_cast<std::ptrdiff_t>(first));
    return {};
  };
  auto report = aggregate_encoded(options, round.codec, round.encoded, 1'000'000, round.values, out);
  if (!report.ok()) qFatal("%s", report.error().describe().c_str());
  result.report = std::move(*report);
  return result;
}

Expected<void> nowhere(std::uint64_t, Span<const float>) {
  return {};
}

// Notes how it is read, and fails at the read with this number.
class Watched final : public ByteSource {
 public:
  explicit Watched(ByteSourcePtr source, std::uint64_t fails_at = ~std::uint64_t{0})
      : source_(std::move(source)), fails_at_(fails_at) {}
  std::uint64_t size() const override { return source_->size(); }
  Expected<void> read_at(std::uint64_t offset, MutableByteSpan target) const override {
    largest_ = std::max(largest_, target.size());
    if (reads_++ == fails_at_) return make_error(ErrorCode::Io, "the disk reported an error");
    return source_->read_at(offset, target);
  }
  std::uint64_t reads() const { return reads_; }
  std::size_t largest() const { return largest_; }

 private:
  const ByteSourcePtr source_;
  const std::uint64_t fails_at_;
  mutable std::uint64_t reads_ = 0;
  mutable std::size_t largest_ = 0;
};

// Those that can be decoded.
Outcome of_decoded(const AggregationOptions& options, const Round& round) {
  std::vector<std::vector<float>> deltas;
  std::vector<Contribution> contributions;
  deltas.reserve(round.encoded.size());
  for (const EncodedContribution& c : round.encoded) {
    std::vector<float> delta(round.values);
    if (!decode(round.codec, read_all(*c.payload).value(), delta).ok()) continue;
    deltas.push_back(std::move(delta));
    contributions.push_back({c.id, c.tokens, deltas.back()});
  }
  Outcome result{std::vector<float>(round.values), {}};
  auto report = aggregate(options, contributions, 1'000'000, result.out);
  if (!report.ok()) qFatal("%s", report.error().describe().c_str());
  result.report = std::move(*report);
  return result;
}

bool same_bits(const std::vector<float>& a, const std::vector<float>& b) {
  return a.size() == b.size() && std::memcmp(a.data(), b.data(), a.size() * sizeof(float)) == 0;
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

  void of_nothing_but_rubbish_nothing_counts() {
    Round round(Codec::Int8, 5, 5000);
    for (Bytes& payload : round.payloads) payload.resize(10);
    round.aim();
    const Outcome outcome = of_encoded({}, round);
    QCOMPARE(outcome.report.counted, std::size_t{0});
    QCOMPARE(unreadable(outcome.report).size(), std::size_t{5});
  }

  // A disk that fails is this node's trouble: judged as the sender's, it would change the result of one voter.
  void a_source_that_fails_is_no_refusal() {
    for (const Codec codec : {Codec::Fp32, Codec::Int8, Codec::TopK, Codec::SeedTopK}) {
      Round round(codec, 5, several_slices);
      const std::uint64_t reads = reads_of(round);
      QVERIFY(reads > 4);
      for (const std::uint64_t at : {std::uint64_t{0}, std::uint64_t{2}, reads / 2, reads - 1}) {
        const auto failing = std::make_shared<Watched>(round.encoded[3].payload, at);
        std::vector<EncodedContribution> contributions = round.encoded;
        contributions[3].payload = failing;
        const auto report =
            aggregate_encoded({}, round.codec, contributions, 1'000'000, round.values, nowhere);
        QVERIFY(!report.ok() && report.error().code == ErrorCode::Io);
      }
    }
  }

  void a_sink_that_fails_ends_it() {
    const Round round(Codec::Int8, 5, several_slices);
    const WriteValues full = [](std::uint64_t first, Span<const float>) -> Expected<void> {
      if (first < 8192) return {};
      return make_error(ErrorCode::Exhausted, "the disk is full");
    };
    const auto report = aggregate_encoded({}, round.codec, round.encoded, 1'000'000, round.values, full);
    QVERIFY(!report.ok() && report.error().code == ErrorCode::Exhausted);
  }

  void no_more_than_a_window_is_read_at_once() {
    for (const Codec codec : all_codecs) {
      Round round(codec, 9, several_slices);
      std::vector<std::shared_ptr<Watched>> sources;
      for (EncodedContribution& c : round.encoded) {
        sources.push_back(std::make_shared<Watched>(c.payload));
        c.payload = sources.back();
      }
      std::size_t written = 0;
      const WriteValues count = [&](std::uint64_t, Span<const float> values) -> Expected<void> {
        written = std::max(written, values.size_bytes());
        return {};
      };
      QVERIFY(aggregate_encoded({}, round.codec, round.encoded, 1'000'000, round.values, count).ok());
      QVERIFY(written <= 256u << 10);
      for (const auto& source : sources) QVERIFY(source->largest() <= 64u << 10);
    }
  }

 private:
  // Of one payload of the round in an aggregation.
  static std::uint64_t reads_of(const Round& round) {
    std::vector<EncodedContribution> contributions = round.encoded;
    const auto counted = std::make_shared<Watched>(contributions[3].payload);
    contributions[3].payload = counted;
    const auto report = aggregate_encoded({}, round.codec, contributions, 1'000'000, round.values, nowhere);
    return report.ok() ? counted->reads() : 0;
  }
};

NS_TEST(TestAggregateEncoded)
#include "test_aggregate_encoded.moc"
