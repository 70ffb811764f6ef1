// Network profile: what all nodes of one network share (docs/protocol/networks.md). The consensus part fixes
// the network id; the directory part (addresses, ports, local defaults) may change: signed by the publisher
// with a sequence number.
//
// Network id = SHA-256 of the canonical text of the consensus part: "neuroshard network profile 1\n", then
// one line "key=value\n" per entry of consensus_fields(), in table order. Values are decimal integers; rates
// carry their unit in the key ("_nano": 1e-9) so that no floating point is hashed. `printf … | sha256sum`
// reproduces it. Constants that came later stand at the end and are left out, there and in files, where they
// have their usual value: so networks from before them keep their id. The same holds for founders and sizes.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "core/base/bytes.h"
#include "core/base/expected.h"
#include "core/base/span.h"
#include "core/compute/model_shape.h"
#include "core/config/model_growth.h"
#include "core/crypto/keys.h"
#include "core/storage/file_env.h"

namespace neuroshard::config {

// All integers, so that the table in network_profile.cpp can describe, bound, print and parse each alike.
struct ConsensusPart {
  std::string name;  // [a-z0-9-], 1 to 32 characters
  std::uint64_t protocol_major = 1;
  std::uint64_t layers = 0;             // the minimum; the model itself when it does not grow
  std::uint64_t hidden = 0;             // a multiple of head_dim
  std::uint64_t grows = 0;              // 1: the model grows with the network; 0: fixed
  std::uint64_t head_dim = 0;           // never changes
  std::uint64_t heads_per_kv_head = 4;  // query heads that share a key/value head, where there are as many
  std::uint64_t ffn_percent = 400;      // width of one expert, in percent of hidden
  std::uint64_t experts = 8;            // 1 = dense, without router
  std::uint64_t experts_per_token = 2;
  std::uint64_t vocab = 0;                    // tokens at the start
  std::uint64_t vocab_growth = 0;             // tokens per growth chunk; 0 = fixed
  std::uint64_t sequence = 0;                 // tokens
  std::uint64_t batch_tokens = 0;             // per worker and inner step; a multiple of sequence
  std::uint64_t inner_steps = 0;              // H; 0 = no outer loop
  std::uint64_t peak_learning_rate_nano = 0;  // 1e-9
  std::uint64_t warmup_steps = 0;
  std::uint64_t decay_steps = 0;                        // cosine down to the final rate at this step
  std::uint64_t final_learning_rate_percent = 10;       // of the peak
  std::uint64_t weight_decay_nano = 100'000'000;        // 0.1
  std::uint64_t clip_nano = 1'000'000'000;              // 1.0 · sqrt(P_slot / P_total); 0 = off
  std::uint64_t balance_coefficient_nano = 10'000'000;  // 0.01
  std::uint64_t z_coefficient_nano = 1'000'000;         // 1e-3
  std::uint64_t capacity_factor_nano = 0;               // 0 = dropless
  std::uint64_t router_bias_gamma_nano = 0;             // > 0: bias balancing instead of the balance loss
  std::string sync;                                     // "none" (without outer loop), or as in rounds/sync.h
  std::string codec;                                    // "none", "fp32", "fp16", "int8", "int4" or "topk"
  std::uint64_t outer_learning_rate_nano = 0;           // nesterov
  std::uint64_t outer_momentum_nano = 0;
  std::uint64_t reward_uptime_minute = 0;     // 1e-8 NEURO
  std::uint64_t reward_training_batch = 0;    // 1e-8 NEURO per 2,048 tokens and layer share
  std::uint64_t reward_sample = 0;            // 1e-8 NEURO
  std::uint64_t group_members = 16;           // contributors of a row; more are dealt into sub-groups
  std::uint64_t voters = 0;                   // chain::VotersMode (chain/rules.h)
  std::uint64_t block_time_s = 60;            // of a chain: the longest wait of what a block can hold
  std::uint64_t stall_after_s = 600;          // of a chain: so long without a block that is due
  std::uint64_t admission_contributions = 8;  // of a chain: of a candidate, before it votes
  std::string publisher_key;                  // 64 hex characters, or "none": only local data
  std::vector<std::string>
      founders;  // wallets whose nodes begin the chain, 64 hex characters each, ascending
  // That the model may grow to, each larger than the one before. `layers` and `hidden` are the size before the first of them.
  std::vector<ModelGrowth> sizes;
  // The size that the model has now: 0 for `layers` and `hidden`, k for the k-th of `sizes`. A data directory sets it (model_size.h).
  // It is no part of the profile and in none of its forms.
  std::uint64_t size = 0;
};

struct DirectoryPart {
  std::uint64_t sequence = 0;  // the higher one wins
  std::uint64_t p2p_port = 0;  // 0 = none
  std::uint64_t tracker_port = 0;
  std::uint64_t http_port = 8000;
  std::uint64_t checkpoint_min_interval = 600;  // seconds; default of the setting of that name
  std::vector<std::string> bootstrap;           // "host:port"
  std::vector<std::string> trackers;
  std::string manifest_url;                    // of the genesis dataset; empty = none
  std::optional<Hash256> genesis;              // the first block of the network's chain, once there is one
  std::optional<crypto::Signature> signature;  // by the publisher; not needed when the publisher is "none"
};

struct NetworkProfile {
  ConsensusPart consensus;
  DirectoryPart directory;
};

inline constexpr std::uint64_t max_profile_bytes = 256u << 10;  // a profile is a page of text
inline constexpr std::size_t max_profile_peers = 256;           // entries of bootstrap and trackers each
inline constexpr std::size_t max_profile_founders = 64;
inline constexpr std::size_t max_profile_sizes = 64;
inline constexpr std::size_t max_profile_text = 512;  // characters of one address or URL

// One row per number of the consensus part, for flags, help and docs. Texts (name, sync, codec,
// publisher_key, founders, sizes) are not in it.
struct ConsensusField {
  const char* key;
  std::uint64_t ConsensusPart::*member;
  std::uint64_t least, most;
  const char* help;
  // Texts and files have these words in place of the numbers from 0 to `most`. Null: they have the number.
  const char* const* words = nullptr;
};
std::string text_of(const ConsensusField& field, std::uint64_t value);  // in range
// NotFound: none of the field's words.
Expected<std::uint64_t> value_of_word(const ConsensusField& field, std::string_view word);
Span<const ConsensusField> consensus_fields();
// The first ones of them: those that every profile has.
inline constexpr std::size_t first_consensus_fields = 29;
// All but the last ones that have their usual value: what is written of a profile.
Span<const ConsensusField> written_fields(const ConsensusPart& consensus);

// "mainnet", "testnet", "devnet", "solo".
Span<const char* const> builtin_profile_names();
// NotFound lists the names.
Expected<NetworkProfile> builtin_profile(std::string_view name);
// A built-in name, an invitation (invite_link.h), or the path of a profile file (anything with '/' or '.', or
// an existing file).
Expected<NetworkProfile> load_network_profile(storage::FileEnv& files, const std::string& name_or_path);

// JSON form, strict: unknown, missing, doubled or out-of-range fields, a wrong network id and a wrong
// signature are errors that name the field. Pure; any bytes are safe.  Errors: Corrupt (not JSON),
// InvalidArgument (a field), Denied (signature), Exhausted (too long), Unsupported (newer profile format).
Expected<NetworkProfile> parse_network_profile(ByteSpan json);
// Indented JSON with a final newline; parse(format(p)) = p.
std::string format_network_profile(const NetworkProfile& profile);

// Ranges and relations; InvalidArgument names the field and what is allowed.
Expected<void> validate(const ConsensusPart& consensus);
Expected<void> validate(const DirectoryPart& directory);

std::string canonical_text(const ConsensusPart& consensus);
Hash256 network_id(const ConsensusPart& consensus);

// The keys of a valid list.
std::vector<crypto::PublicKey> founder_keys(const ConsensusPart& consensus);

// The publisher's signature over the directory part of this network.
void sign_directory(NetworkProfile& profile, const crypto::KeyPair& publisher);

// Denied when the network has a publisher and the directory part does not carry its valid signature.
Expected<void> verify_directory(const NetworkProfile& profile);

// The same network, with a model of this size: 0 for the first one, else the number of one of its sizes, from 1.
ConsensusPart at_size(ConsensusPart consensus, std::uint64_t size);
// Of the size that the model has now.
compute::ModelShape model_shape(const ConsensusPart& consensus);
compute::RouterOptions router_options(const ConsensusPart& consensus);

// The codec "topk" implies the sparse outer step (docs/protocol/outer-step.md): error feedback, which decays
// by this factor, no momentum, and rules that hold where most values are zero.
bool is_sparse(const ConsensusPart& consensus);
inline constexpr float sparse_error_feedback_beta = 0.95f;
inline double from_nano(std::uint64_t nano) {
  return static_cast<double>(nano) / 1e9;
}

// For people: nobody runs this public network yet. Empty for all others.
std::string network_notice(const NetworkProfile& profile);
// For people: how nodes find each other where the profile has no first addresses. Empty where it has some or needs
// none, and for public networks.
std::string addresses_notice(const NetworkProfile& profile);

}  // namespace neuroshard::config
