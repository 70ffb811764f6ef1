#include "core/rounds/step.h"

#include <algorithm>
#include <utility>

#include "core/crypto/merkle.h"
#include "core/rounds/aggregation_tree.h"

namespace neuroshard::rounds {
namespace {
constexpr std::size_t slice_values = 64u << 10;
}  // namespace

float outer_learning_rate(const OuterRules& rules, std::size_t contributors) {
  if (rules.lr) return *rules.lr;
  switch (contributors) {
    case 1: return 0.4f;
    case 2:
    case 3:
    case 4: return 0.6f;
    case 8: return 0.8f;
    default: return 0.7f;
  }
}

// The anchor hash has a number for each slot of the model, with the kind in its highest bits. A row of the whole
// model has kind 0 and stands in bits 16 to 28.
outer::AnchorIdentity anchor_identity(const Hash256& network, const OuterRules& rules, std::uint32_t row,
                                      std::uint64_t round) {
  return {network, rules.architecture_version, (row & 0x1fff) << 16, round, rules.tokenizer};
}

Anchor state_in_memory(Span<const float> weights, Span<const float> momentum, Span<const float> bias) {
  Bytes bytes;
  bytes.reserve(weights.size_bytes() + momentum.size_bytes() + bias.size_bytes());
  for (const Span<const float> part : {weights, momentum, bias}) {
    const ByteSpan values = as_bytes(part);
    bytes.insert(bytes.end(), values.begin(), values.end());
  }
  return std::make_shared<const OuterState>(
      OuterState{{weights.size(), momentum.size(), bias.size()}, in_memory(std::move(bytes))});
}

Expected<Hash256> hash_of(const outer::AnchorIdentity& identity, const OuterState& state) {
  return outer::anchor_hash(identity, state.counts, *state.bytes);
}

bool is_own_failure(const Error& error) {
  return error.code != ErrorCode::InvalidArgument && error.code != ErrorCode::Unsupported;
}

Expected<StepPtr> hashed_state(const outer::AnchorIdentity& identity, Anchor state) {
  auto result = std::make_shared<StepResult>();
  NS_ASSIGN_OR_RETURN(result->leaves, outer::anchor_leaves(identity, state->counts, *state->bytes));
  result->hash = crypto::merkle_root(result->leaves);
  result->state = std::move(state);
  return StepPtr(std::move(result));
}

namespace {

// before + the optimizer's step with the aggregate, slice by slice.
Expected<Anchor> stepped(const outer::OuterOptimizer& optimizer, const OuterState& before,
                         const outer::ValueSource& aggregate, Spool& spool) {
  const std::uint64_t P = before.counts.weights, bytes = state_bytes(before.counts);
  NS_ASSIGN_OR_RETURN(const std::unique_ptr<SpoolItem> item, spool.create(bytes));
  const outer::ValueSource weights = before.weights(), momentum = before.momentum();
  const outer::WriteValues put_weights = outer::write_to(*item, 0),
                           put_momentum = outer::write_to(*item, P * sizeof(float));
  std::vector<float> delta, anchor, v;
  for (std::uint64_t at = 0; at < P; at += delta.size()) {
    const auto count = static_cast<std::size_t>(std::min<std::uint64_t>(slice_values, P - at));
    for (std::vector<float>* slice : {&delta, &anchor, &v}) slice->resize(count);
    NS_RETURN_IF_ERROR(aggregate.read(at, delta));
    NS_RETURN_IF_ERROR(weights.read(at, anchor));
    NS_RETURN_IF_ERROR(momentum.read(at, v));
    NS_RETURN_IF_ERROR(outer::outer_step(optimizer, delta, v, anchor));
    NS_RETURN_IF_ERROR(put_weights(at, anchor));
    NS_RETURN_IF_ERROR(put_momentum(at, v));
  }
  Bytes bias(before.counts.bias * sizeof(float));
  NS_RETURN_IF_ERROR(before.bytes->read_at(bytes - bias.size(), bias));
  NS_RETURN_IF_ERROR(item->write_at(bytes - bias.size(), bias));
  NS_ASSIGN_OR_RETURN(ByteSourcePtr made, item->finish(bytes));
  return std::make_shared<const OuterState>(OuterState{before.counts, std::move(made)});
}

// Takes a trace as the aggregation goes on.
class TraceWriter {
 public:
  // values: of the row.
  TraceWriter(Spool& spool, std::size_t contributors, std::uint64_t values)
      : spool_(spool),
        most_bytes_((values + outer::trace_chunk - 1) / outer::trace_chunk * contributors *
                    (contributors + 1) / 2 * sizeof(double)) {}

  Expected<void> add(std::uint64_t chunk, Span<const double> sums) {
    if (chunk == 0) {  // a contribution was refused, and the rest is measured again
      NS_ASSIGN_OR_RETURN(item_, spool_.create(most_bytes_));
      trace_.leaves.clear();
      trace_.sums = sums.size();
    }
    trace_.leaves.push_back(crypto::merkle_leaf(as_bytes(sums)));
    return item_->write_at(chunk * sums.size_bytes(), as_bytes(sums));
  }
  Expected<TracePtr> finish() {
    trace_.root = crypto::merkle_root(trace_.leaves);
    NS_ASSIGN_OR_RETURN(trace_.bytes, item_->finish(trace_.leaves.size() * trace_.sums * sizeof(double)));
    return TracePtr(std::make_shared<const StepTrace>(std::move(trace_)));
  }

 private:
  Spool& spool_;
  const std::uint64_t most_bytes_;
  std::unique_ptr<SpoolItem> item_;
  StepTrace trace_;
};

bool all_counted(const outer::AggregateReport& report) {
  return report.counted > 0 && report.counted == report.judged.size();
}

}  // namespace

bool is_traced(const OuterRules& rules, std::size_t contributors) {
  return rules.traced && contributors > 0 && contributors <= rules.group_members &&
         outer::payload_part(rules.codec, 0, outer::codec_chunk);
}

Expected<StepPtr> make_step(const OuterRules& rules, const outer::AnchorIdentity& identity,
                            const OuterState& before, const std::vector<StepInput>& inputs,
                            const RowLimits& limits, Spool& spool, const RowDraw& draw) {
  const std::uint64_t P = before.counts.weights;
  outer::AggregateReport report;
  TracePtr trace;
  Anchor after = std::make_shared<const OuterState>(before);
  if (!inputs.empty()) {
    TraceWriter writer(spool, inputs.size(), P);
    outer::WriteSums write_sums;
    if (is_traced(rules, inputs.size()))
      write_sums = [&writer](std::uint64_t chunk, Span<const double> sums) {
        return writer.add(chunk, sums);
      };
    NS_ASSIGN_OR_RETURN(const std::unique_ptr<SpoolItem> item, spool.create(P * sizeof(float)));
    NS_ASSIGN_OR_RETURN(
        report, aggregate_row(rules, draw, inputs, limits, P, outer::write_to(*item, 0), spool, write_sums));
    if (report.counted > 0) {
      NS_ASSIGN_OR_RETURN(const ByteSourcePtr aggregate, item->finish(P * sizeof(float)));
      const outer::OuterOptimizer optimizer{outer_learning_rate(rules, report.counted), rules.mu};
      NS_ASSIGN_OR_RETURN(after, stepped(optimizer, before, outer::values_of(aggregate, 0, P), spool));
    }
    if (write_sums && all_counted(report)) {
      NS_ASSIGN_OR_RETURN(trace, writer.finish());
    }
  }
  NS_ASSIGN_OR_RETURN(const StepPtr state, hashed_state(identity, std::move(after)));
  StepResult result = *state;
  result.report = std::move(report);
  result.trace = std::move(trace);
  return StepPtr(std::make_shared<const StepResult>(std::move(result)));
}

}  // namespace neuroshard::rounds
