// The outer step of a round: a pure function of an anchor and the contributors' payloads, so every member gets
// the same bits and the same anchor hash (core/outer).
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

#include "core/base/bytes.h"
#include "core/net/peer_caller.h"
#include "core/outer/aggregate.h"
#include "core/outer/anchor_hash.h"
#include "core/outer/codec.h"
#include "core/outer/outer_optimizer.h"

namespace neuroshard::rounds {

// The state that is equal on all members after a round.
struct OuterState {
  std::vector<float> weights;   // the anchor, [P]
  std::vector<float> momentum;  // v, [P]
  std::vector<float> bias;      // of the router's load balancing; empty without
};
using Anchor = std::shared_ptr<const OuterState>;

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
  std::size_t group_members = 16;  // of a sub-group at most; more contributors are aggregated by a tree
};
float outer_learning_rate(const OuterRules& rules, std::size_t contributors);

outer::AnchorIdentity anchor_identity(const Hash256& network, const OuterRules& rules, std::uint32_t row,
                                      std::uint64_t round);
Hash256 hash_of(const outer::AnchorIdentity& identity, const OuterState& state);

using Payload = std::shared_ptr<const Bytes>;

struct StepInput {
  net::NodeId id{};
  std::uint64_t tokens = 0;
  Payload payload;
};

// Deals a row's contributors into sub-groups by the beacon after the close.
struct RowDraw {
  Hash256 beacon{};
  std::uint32_t row = 0;
};

// A state with its hash. Shared: with many contributors the report is large.
struct StepResult {
  Anchor state;
  std::vector<Hash256> leaves;  // of the anchor's hash
  Hash256 hash{};
  std::optional<outer::AggregateReport> report;  // none: the step was not made here
};
using StepPtr = std::shared_ptr<const StepResult>;
// identity: of the round that is made. Nothing counts: the state stays, with its new hash.
// Cost: beside the payloads, the new state and P floats more; payloads are decoded slice by slice, twice from
// five contributors on.  Errors: those of outer::aggregate.  Threads: any.
Expected<StepPtr> make_step(const OuterRules& rules, const outer::AnchorIdentity& identity,
                            const OuterState& before, const std::vector<StepInput>& inputs,
                            std::uint64_t most_tokens, const RowDraw& draw = {});

}  // namespace neuroshard::rounds
