// Robust aggregation of one outer round's deltas: what the contributors of a slot (or fragment) sent becomes
// one step that a minority of Byzantine peers can't control.
//
// Order: schema and limits → finite → (right round and base: the caller's) → clip to the median norm → rule.
// Rules (sources): trimmed mean and coordinate median (Yin et al. 2018), Krum and Multi-Krum (Blanchard et
// al. 2017), geometric median (Weiszfeld; Pillutla et al. 2019), centered clipping, CC (Karimireddy et al.
// 2021), nearest-neighbour mixing, NNM (Allouah et al. 2023), which replaces each delta by the mean of its
// n−f nearest before any of the rules.
//
// Every node has to get the same bits from the same set: contributions are taken in the order of their ids,
// whatever order they come in, medians of even counts are the lower value, ties go to the lower id, sums are
// fp64 over eight fixed lanes and a fixed tree, and each instruction set gives the same result (kernels in
// detail/). The calling thread's rounding and flush-to-zero modes do not matter.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string_view>
#include <vector>

#include "core/base/bytes.h"
#include "core/base/expected.h"
#include "core/base/span.h"
#include "core/outer/codec.h"

namespace neuroshard::outer {

// A delta (anchor − local) of P values as decoded from the sender's own bytes, and the tokens that it says it
// trained for it. The values stay the caller's and are not changed.
struct Contribution {
  Hash256 id{};  // who: unique in a call
  std::uint64_t tokens = 0;
  Span<const float> delta;
};

enum class Rule : std::uint8_t {
  WeightedMean,      // by tokens
  TrimmedMean,       // unweighted, as all below
  CoordinateMedian,  // lower median of each coordinate
  Krum,              // the one delta with the least sum of squared distances to its n−f−2 nearest
  MultiKrum,         // the mean of the n−f best by that score
  GeometricMedian,
  CenteredClipping,
};
std::string_view to_string(Rule rule);  // "weighted-mean", "trimmed-mean", …

struct RuleChoice {
  Rule rule = Rule::WeightedMean;
  bool clip_to_median_norm = true;
  bool nearest_neighbour_mixing = false;
};

// Which instructions the kernels use. The result never depends on it.
enum class InstructionSet : std::uint8_t { Portable, Avx2, Avx512 };
std::string_view to_string(InstructionSet set);
bool is_supported(InstructionSet set);  // by this processor and this build

inline constexpr std::size_t max_contributions = 1024;  // of one call; a limit, not a setting

struct AggregationOptions {
  // None: by the number n of contributions that count: 1 the own delta; 2–4 the weighted mean with `most_norm`;
  // 5–7 clip and CC; from 8 on clip, NNM(f) and trimmed mean(f), or NNM and CC when the deltas are sparse.
  std::optional<RuleChoice> choice;
  // Where two to four contributions count and `choice` is none: a longer delta is clipped to this norm. They are too few
  // for a median of their own norms, so the caller takes it from earlier rounds. None: no clip.
  std::optional<double> most_norm;
  // Deltas come from the top-k codec: most values are zero, so rules that vote coordinate by coordinate drift
  // to zero.
  bool sparse = false;
  // Byzantine peers to withstand. None: floor(n/4) from n = 5 on, else 0; Krum: 1. Given as 0: every
  // rule is the exact weighted mean without clip. Given as more: each contribution that is refused is one of
  // them found, so f falls with it, but not below what n alone would give.
  std::optional<std::size_t> f;
  // Share that TrimmedMean cuts off at each end, rounded down, in place of f. 0 ≤ fraction < 0.5.
  std::optional<double> trim_fraction;
  std::uint32_t centered_clipping_iterations = 10;
  std::uint32_t geometric_median_iterations = 32;
  // None: the best that the processor has. For tests and measurements.
  std::optional<InstructionSet> instruction_set;
};
// The fraction that goes with a profile's "trimmed-mean" by name.
inline constexpr double default_trim_fraction = 0.1;

// Why a contribution does not count.
enum class Refusal : std::uint8_t {
  None,
  WrongSize,    // not P values
  NoTokens,     // says that it trained nothing
  NotFinite,    // NaN or infinity somewhere
  DuplicateId,  // the same id twice: all of them are left out
  Unreadable,   // its payload can't be decoded
};
std::string_view to_string(Refusal refusal);

// One contribution as it was judged.
struct Judged {
  Hash256 id{};
  Refusal refusal = Refusal::None;
  std::uint64_t tokens = 0;  // as declared
  std::uint64_t weight = 0;  // tokens after the caps: 2 × the lower median declared, and most_tokens
  double norm = 0;           // L2 norm before clipping; 0 when refused
  float clip_factor = 1;     // what it was multiplied by: 1 = not clipped
  // Share in a result that is a weighted sum of deltas; of the coordinate rules the share after mixing, 1/n
  // without. 0: left out (refused, or not chosen by Krum).
  double share = 0;
};

struct AggregateReport {
  std::size_t counted = 0;  // contributions that count (n); 0: no step, and momentum must stay as it is
  std::size_t f = 0;        // Byzantine peers withstood by the rule that ran
  RuleChoice ran;
  std::size_t trimmed = 0;           // values cut off at each end of a coordinate
  bool too_few_to_vote = false;      // 2 to 4: no rule withstands a Byzantine peer
  double median_norm = 0;            // lower median of the counted norms, before clipping
  std::optional<double> clipped_to;  // the norm that longer deltas were clipped to
  std::vector<Judged> judged;        // in the order of ids, refused ones too
};

// contributions: any order. most_tokens: what one contributor can have trained at most in this round, ≥ 1.
// out: [P], P ≥ 1; may not overlap a delta. Its content after an error, or when nothing counts, means
// nothing. Errors: InvalidArgument for 2f ≥ n, Krum or Multi-Krum with n < 2f + 3, options out of range, P =
// 0 or more than max_contributions; Unsupported for an instruction set that the processor lacks. One bad
// contribution is a refusal in the report, never an error. Cost: two passes over the deltas, one that measures
// and one that writes (the first O(n²) multiplications for NNM, Krum, CC and the geometric median), and one
// more to measure those that are left when a delta is refused; O(n²) memory and blocks that fit the cache.
// Threads: this one.
Expected<AggregateReport> aggregate(const AggregationOptions& options, Span<const Contribution> contributions,
                                    std::uint64_t most_tokens, Span<float> out);

// A delta as its sender encoded it.
struct EncodedContribution {
  Hash256 id{};
  std::uint64_t tokens = 0;
  ByteSourcePtr payload;
};

// The trace of an aggregation: what the first pass has summed up at the end of each chunk of trace_chunk values, over the
// deltas that count, in the order of ids. For rules that need distances the upper triangle of the matrix of inner
// products, row by row; for the others its diagonal alone. Sums are a function of those before and of the chunk's
// values, and the values of the result follow from the last sums and from the chunk's values. So whoever has one chunk
// can check it alone (measure_chunk(), aggregate_chunk()).
inline constexpr std::size_t trace_chunk = 65536;
// Gets the sums after each chunk in order; from chunk 0 on again when a delta was refused.
using WriteSums = std::function<Expected<void>(std::uint64_t chunk, Span<const double> sums)>;

// The same for payloads of one codec, without whole deltas in memory: each pass reads and decodes them again,
// slice by slice, 256 KiB for a contribution. The result is what aggregate() makes of those that can be decoded;
// the others are refused as Unreadable, and do not count as found Byzantine peers in options.f.
// count: P. out: gets all values once, in order. trace: null: none is needed. Other errors: those of the payloads'
// sources (such a payload is not judged), Corrupt for a payload that changes between the passes, and those of `out`
// and `trace`.
Expected<AggregateReport> aggregate_encoded(const AggregationOptions& options, const CodecOptions& codec,
                                            const std::vector<EncodedContribution>& contributions,
                                            std::uint64_t most_tokens, std::uint64_t count,
                                            const WriteValues& out, const WriteSums& trace = nullptr);

// One chunk of an aggregation. chunk: of each contribution the values of the chunk, at most trace_chunk; as many of each.
// The sums after a chunk; before: those after the chunk before, empty for the first. Empty: nothing counts.
// InvalidArgument: not so many sums; and the errors of aggregate(). Cost: that of the first pass for the chunk.
Expected<std::vector<double>> measure_chunk(const AggregationOptions& options, Span<const Contribution> chunk,
                                            Span<const double> before);
// The values of the result in this chunk, and the report on the whole. sums: the last ones. Errors: likewise.
Expected<AggregateReport> aggregate_chunk(const AggregationOptions& options, Span<const Contribution> chunk,
                                          std::uint64_t most_tokens, Span<const double> sums,
                                          Span<float> out);

// The default number of Byzantine peers withstood: floor(n/4) for n ≥ 5, else 0.
constexpr std::size_t default_byzantine(std::size_t n) {
  return n >= 5 ? n / 4 : 0;
}

}  // namespace neuroshard::outer
