// A round of a row as its holders have it: drawn values, payloads of some contributors, and the real step of them. Header only.
#pragma once

#include <QtGlobal>

#include <algorithm>
#include <cstring>
#include <optional>
#include <utility>
#include <vector>

#include "core/base/rng.h"
#include "core/crypto/hash.h"
#include "core/crypto/merkle.h"
#include "core/rounds/held_items.h"
#include "core/rounds/row_proof.h"

namespace neuroshard::test {

struct RoundOptions {
  outer::Codec codec = outer::Codec::Int8;
  std::vector<net::NodeId> contributors;  // in the order of their numbers
  std::uint64_t first_tokens = 1000;      // of the first contributor; each next one has a tenth of it more
  std::uint64_t values = 2 * outer::trace_chunk + 4096 + 300;
  std::uint32_t row = 2;
  std::uint64_t round = 7;
  rounds::RowLimits limits = {1'000'000, 0.8};
};

struct Round {
  static net::NodeId id_of(std::size_t number) {
    Bytes bytes;
    append_le(bytes, static_cast<std::uint64_t>(number));
    return crypto::sha256(bytes);
  }
  static std::vector<float> drawn(std::uint64_t seed, float size,
                                  std::uint64_t values = RoundOptions().values) {
    Rng rng(seed);
    std::vector<float> drawn(values);
    for (float& value : drawn) value = size * static_cast<float>(rng.uniform() - 0.5);
    return drawn;
  }
  static std::uint64_t bits_of(double value) {
    std::uint64_t bits = 0;
    std::memcpy(&bits, &value, sizeof bits);
    return bits;
  }
  static RoundOptions of(outer::Codec codec, std::size_t contributors) {
    RoundOptions options;
    options.codec = codec;
    for (std::size_t i = 0; i < contributors; ++i) options.contributors.push_back(id_of(i));
    return options;
  }

  Round(outer::Codec codec, std::size_t contributors) : Round(of(codec, contributors)) {}
  explicit Round(const RoundOptions& options) : values(options.values), limits(options.limits) {
    rules.codec.codec = options.codec;
    rules.traced = true;
    const auto identity = [&](std::uint64_t round) {
      return rounds::anchor_identity(id_of(99), rules, options.row, round);
    };
    before = rounds::state_in_memory(drawn(1, 1.0f, values), drawn(2, 0.1f, values));
    before_step = *rounds::hashed_state(identity(options.round - 1), before);
    row = {identity(options.round), values, 0};
    open.row = options.row;
    open.round = options.round;
    open.before = before_step->hash;
    open.before_round = options.round - 1;
    open.most_tokens = limits.most_tokens;
    open.most_norm_bits = limits.most_norm ? bits_of(*limits.most_norm) : 0;
    std::vector<chain::RowContributor> named;
    for (std::size_t i = 0; i < options.contributors.size(); ++i) {
      const float size = 0.02f * static_cast<float>(i + 1);
      add(options, i, *outer::encode(rules.codec, drawn(10 + i, size, values)));
      named.push_back({workers.back().id, chain::work_root({works.back()})});
    }
    open.contributors = chain::contributors_hash(named);
    step = *rounds::make_step(rules, row.identity, *before, inputs, limits, spool);
    attested = result_of(*step);
  }

  void add(const RoundOptions& options, std::size_t i, const Bytes& payload) {
    rounds::ProofContributor one;
    one.id = options.contributors[i];
    one.work.part = {options.row, options.first_tokens + i * options.first_tokens / 10, payload.size(),
                     rounds::payload_root(one.id, payload)};
    one.rows = 1;
    works.push_back(one.work.part);
    payloads.push_back(payload);
    inputs.push_back({one.id, one.work.part.tokens, in_memory(payload)});
    workers.push_back(std::move(one));
  }

  std::uint64_t chunks() const { return rounds::trace_chunks(values); }
  // As a holder with this step attests it.
  chain::RowResult result_of(const rounds::StepResult& made) const {
    chain::RowResult result;
    result.row = open.row;
    result.anchor = made.hash;
    result.trace = made.trace->root;
    result.norm_bits = bits_of(step->report->median_norm);
    return result;
  }
  // The right step, but for the new weights of this chunk.
  rounds::StepPtr with_changed_weights(std::uint64_t chunk) const {
    auto changed = std::make_shared<rounds::StepResult>(*step);
    changed->leaves[static_cast<std::size_t>(1 + chunk)] = id_of(77);
    changed->hash = crypto::merkle_root(changed->leaves);
    return changed;
  }

  static Bytes chunk_of(const rounds::OuterState& state, std::uint64_t begin,
                        const rounds::ChunkPlace& place) {
    Bytes bytes(static_cast<std::size_t>(place.count) * sizeof(float));
    const auto read = state.bytes->read_at(begin + place.first * sizeof(float), bytes);
    if (!read.ok()) qFatal("the state can't be read");
    return bytes;
  }
  Bytes old_weights(std::uint64_t chunk) const {
    return chunk_of(*before, 0, rounds::chunk_place(values, chunk));
  }
  Bytes old_momentum(std::uint64_t chunk) const {
    return chunk_of(*before, values * sizeof(float), rounds::chunk_place(values, chunk));
  }
  static Bytes sums_of(const rounds::StepResult& step, std::uint64_t chunk) {
    Bytes bytes(step.trace->sums * sizeof(double));
    if (!step.trace->bytes->read_at(chunk * bytes.size(), bytes).ok()) qFatal("no sums");
    return bytes;
  }

  // As a checker assembles it, of what the holders of this result give.
  rounds::RowProof proof(std::uint64_t chunk, const rounds::StepResult& of) const {
    const crypto::MerkleTree old(before_step->leaves), made(of.leaves), trace(of.trace->leaves);
    rounds::RowProof proof;
    proof.chunk = chunk;
    const auto leaf = [](const crypto::MerkleTree& tree, std::uint64_t at) {
      return rounds::Proven<Hash256>{tree.leaves()[at], tree.path(at)};
    };
    proof.weights = {old_weights(chunk), old.path(1 + chunk)};
    proof.momentum = {old_momentum(chunk), old.path(1 + chunks() + chunk)};
    proof.header = leaf(made, 0);
    proof.new_weights = leaf(made, 1 + chunk);
    proof.new_momentum = leaf(made, 1 + chunks() + chunk);
    proof.sums_after = leaf(trace, chunk);
    if (chunk > 0) proof.sums_before = {sums_of(of, chunk - 1), trace.path(chunk - 1)};
    proof.last_sums = {sums_of(of, chunks() - 1), trace.path(chunks() - 1)};
    for (std::size_t i = 0; i < workers.size(); ++i) proof.contributors.push_back(contributor(i, chunk));
    return proof;
  }
  rounds::ProofContributor contributor(std::size_t i, std::uint64_t chunk) const {
    using rounds::payload_slice_bytes;
    const rounds::SliceRange range = *rounds::chunk_slices(rules.codec, values, chunk);
    rounds::ProofContributor one = workers[i];
    const crypto::MerkleTree tree(*rounds::payload_leaves(one.id, BytesView(payloads[i])));
    for (std::uint64_t slice = range.first; slice < range.first + range.count && slice < tree.leaves().size();
         ++slice) {
      const ByteSpan rest = ByteSpan(payloads[i]).subspan(slice * payload_slice_bytes);
      const ByteSpan bytes = rest.first(std::min(rest.size(), payload_slice_bytes));
      one.slices.push_back({Bytes(bytes.begin(), bytes.end()), tree.path(slice)});
    }
    return one;
  }
  rounds::ProofFinding find(const chain::RowResult& result, const rounds::RowProof& proof) const {
    return judge(rules, row, open, result, proof);
  }

  std::uint64_t values = 0;
  rounds::OuterRules rules;
  rounds::RowLimits limits;
  MemorySpool spool;
  rounds::Anchor before;
  rounds::StepPtr before_step, step;
  rounds::ProofRow row;
  chain::OpenRow open;
  std::vector<chain::RowWork> works;
  std::vector<Bytes> payloads;
  std::vector<rounds::StepInput> inputs;
  std::vector<rounds::ProofContributor> workers;
  chain::RowResult attested;
};

}  // namespace neuroshard::test
