// The outer step of a round: a pure function of an anchor and the contributors' payloads, so every member gets
// the same bits and the same anchor hash (core/outer).
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

#include "core/base/spool.h"
#include "core/net/peer_caller.h"
#include "core/outer/aggregate.h"
#include "core/outer/anchor_hash.h"
#include "core/outer/codec.h"
#include "core/outer/outer_optimizer.h"

namespace neuroshard::rounds {

// The state that is equal on all members after a round: the anchor [P], the momentum v [P] and the bias of the
// router's load balancing [B, or none], fp32 little-endian, one after the other.
struct OuterState {
  outer::AnchorCounts counts;  // weights and momentum: P
  ByteSourcePtr bytes;
  outer::ValueSource weights() const { return outer::values_of(bytes, 0, counts.weights); }
  outer::ValueSource momentum() const {
    return outer::values_of(bytes, sizeof(float) * counts.weights, counts.momentum);
  }
};
constexpr outer::AnchorCounts state_counts(std::uint64_t values, std::uint64_t bias) {
  return {values, values, bias};
}
constexpr std::uint64_t state_bytes(const outer::AnchorCounts& counts) {
  return sizeof(float) * (counts.weights + counts.momentum + counts.bias);
}
using Anchor = std::shared_ptr<const OuterState>;
// In memory: of the first round, and of small models.  weights and momentum: of one size.
Anchor state_in_memory(Span<const float> weights, Span<const float> momentum, Span<const float> bias = {});

// Of the network's profile.
struct OuterRules {
  outer::CodecOptions codec;
  outer::AggregationOptions aggregation;
  float mu = 0.9f;
  // None: by the number of contributions that count (docs/protocol/outer-step.md): 1 0.4, 2 to 4 0.6, 8 0.8,
  // else 0.7.
  std::optional<float> lr;
  std::uint64_t architecture_version = 1;
  Hash256 tokenizer{};
  // Members hold some rows only: steps have a trace, by which others can check them.
  bool traced = false;
  std::size_t group_members = 16;  // of a sub-group at most; more contributors are aggregated by a tree
};
float outer_learning_rate(const OuterRules& rules, std::size_t contributors);

outer::AnchorIdentity anchor_identity(const Hash256& network, const OuterRules& rules, std::uint32_t row,
                                      std::uint64_t round);
// Errors: those of reading the state.
Expected<Hash256> hash_of(const outer::AnchorIdentity& identity, const OuterState& state);

struct StepInput {
  net::NodeId id{};
  std::uint64_t tokens = 0;
  ByteSourcePtr payload;
};

// The most of one contributor, as the chain allows it in the round (core/chain/rights.h).
struct RowLimits {
  std::uint64_t most_tokens = 1;
  std::optional<double> most_norm = std::nullopt;  // where two to four contribute
};

// Deals a row's contributors into sub-groups by the beacon after the close.
struct RowDraw {
  Hash256 beacon{};
  std::uint32_t row = 0;
};

// The trace of a step's aggregation (outer/aggregate.h), by chunk. The Merkle root of its leaves is part of the result that
// holders attest.
struct StepTrace {
  std::size_t sums = 0;         // after each chunk
  ByteSourcePtr bytes;          // [chunks, sums] fp64, little-endian
  std::vector<Hash256> leaves;  // crypto::merkle_leaf of each chunk's sums
  Hash256 root{};
};
using TracePtr = std::shared_ptr<const StepTrace>;

// A state with its hash. Shared: with many contributors the report is large.
struct StepResult {
  Anchor state;
  std::vector<Hash256> leaves;  // of the anchor's hash
  Hash256 hash{};
  std::optional<outer::AggregateReport> report;  // none: the step was not made here
  // Null: not made here, or a row that nobody can check chunk by chunk: the codec's payloads have no parts, a tree of
  // sub-groups aggregates it, or a payload was refused.
  TracePtr trace;
};
using StepPtr = std::shared_ptr<const StepResult>;
// The error comes from what this node lacks (a full disk), not from the inputs: other members get a step from the
// same inputs.
bool is_own_failure(const Error& error);

// Whether a step with so many contributors has a trace, if all of them count.
bool is_traced(const OuterRules& rules, std::size_t contributors);

// identity: of the round that is made. Nothing counts: the state stays, with its new hash.
// Cost: in memory some 256 KiB for each input; in the spool, until the result is there, P floats, and with more
// than group_members inputs a payload for each sub-group. The result is 2·P floats in the spool.
// Errors: those of outer::aggregate, of the spool and of reading the inputs.  Threads: any.
Expected<StepPtr> make_step(const OuterRules& rules, const outer::AnchorIdentity& identity,
                            const OuterState& before, const std::vector<StepInput>& inputs,
                            const RowLimits& limits, Spool& spool, const RowDraw& draw = {});

// The state with its leaves and hash.  Errors: those of reading it.
Expected<StepPtr> hashed_state(const outer::AnchorIdentity& identity, Anchor state);

}  // namespace neuroshard::rounds
