#include "core/config/network_profile.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>

#include "core/base/check.h"
#include "core/chain/rules.h"
#include "core/compute/module.h"
#include "core/compute/shape_limits.h"
#include "core/config/detail/size_rules.h"
#include "core/crypto/hash.h"
#include "core/rounds/sync.h"

namespace neuroshard::config {
namespace {

namespace shape = compute::shape_limits;
constexpr std::uint64_t one = 1'000'000'000;  // 1.0 in nano
constexpr std::uint64_t max_steps = std::uint64_t{1} << 40;
constexpr std::uint64_t max_reward = 100'000'000;                // 1 NEURO
constexpr std::uint64_t most_outer_momentum_nano = 999'999'970;  // the largest that is below 1 as a float

using C = ConsensusPart;
constexpr const char* voters_words[] = {"invited", "founders", "open"};
// Order is protocol: the canonical text, and with it every network id, follows it. Append only.
constexpr std::array<ConsensusField, 34> fields{{
    {"protocol_major", &C::protocol_major, 1, 1000, "major version of the peer protocol"},
    {"layers", &C::layers, 1, shape::layers, "layers of the model, or the minimum if it grows"},
    {"hidden", &C::hidden, 2, shape::hidden, "width of the model, or the minimum if it grows"},
    {"grows", &C::grows, 0, 1, "1: the model may grow to the sizes of the profile"},
    {"head_dim", &C::head_dim, 2, shape::head_dim, "width of one attention head"},
    {"heads_per_kv_head", &C::heads_per_kv_head, 1, 64, "query heads that share a key/value head"},
    {"ffn_percent", &C::ffn_percent, 1, 6400, "width of one expert in percent of hidden"},
    {"experts", &C::experts, 1, shape::experts, "experts per layer; 1 = dense"},
    {"experts_per_token", &C::experts_per_token, 1, 64, "experts that one token passes through"},
    {"vocab", &C::vocab, 266, shape::vocab, "tokens of the vocabulary at the start"},
    {"vocab_growth", &C::vocab_growth, 0, shape::vocab, "tokens per growth of the vocabulary; 0 = fixed"},
    {"sequence", &C::sequence, 1, shape::sequence, "tokens of one training sequence"},
    {"batch_tokens", &C::batch_tokens, 1, 1u << 30, "tokens of one inner step, a multiple of sequence"},
    {"inner_steps", &C::inner_steps, 0, 1'000'000, "inner steps of one outer round (H); 0 = no outer loop"},
    {"peak_learning_rate_nano", &C::peak_learning_rate_nano, 1, one, "highest learning rate, in 1e-9"},
    {"warmup_steps", &C::warmup_steps, 0, max_steps, "steps of linear warm-up"},
    {"decay_steps", &C::decay_steps, 1, max_steps, "step at which the cosine reaches the final rate"},
    {"final_learning_rate_percent", &C::final_learning_rate_percent, 0, 100,
     "final rate in percent of the peak"},
    {"weight_decay_nano", &C::weight_decay_nano, 0, one, "decoupled weight decay, in 1e-9"},
    {"clip_nano", &C::clip_nano, 0, 1000 * one, "gradient norm at which a slot is clipped, in 1e-9; 0 = off"},
    {"balance_coefficient_nano", &C::balance_coefficient_nano, 0, one, "router load-balance loss, in 1e-9"},
    {"z_coefficient_nano", &C::z_coefficient_nano, 0, one, "router z-loss, in 1e-9"},
    {"capacity_factor_nano", &C::capacity_factor_nano, 0, 64 * one, "expert capacity, in 1e-9; 0 = dropless"},
    {"router_bias_gamma_nano", &C::router_bias_gamma_nano, 0, one,
     "step of selection-only bias balancing, in 1e-9; 0 = balance loss"},
    {"outer_learning_rate_nano", &C::outer_learning_rate_nano, 0, 10 * one, "outer learning rate, in 1e-9"},
    {"outer_momentum_nano", &C::outer_momentum_nano, 0, one - 1, "outer Nesterov momentum, in 1e-9"},
    {"reward_uptime_minute", &C::reward_uptime_minute, 0, max_reward, "1e-8 NEURO per minute online"},
    {"reward_training_batch", &C::reward_training_batch, 0, max_reward,
     "1e-8 NEURO per 2,048 trained tokens and layer share"},
    {"reward_sample", &C::reward_sample, 0, max_reward, "1e-8 NEURO per data sample"},
    {"group_members", &C::group_members, 2, 16,
     "most contributors of one group; with more, a round has sub-groups. 16, fewer for tests"},
    {"voters", &C::voters, 0, 2, "who may vote on the chain: invited, founders or open", voters_words},
    {"block_time_s", &C::block_time_s, 1, 3600, "longest wait for a block of the chain, in seconds"},
    {"stall_after_s", &C::stall_after_s, 10, 86'400,
     "seconds without a block until fewer voters are enough to go on"},
    {"admission_contributions", &C::admission_contributions, 1, 10'000,
     "contributions of a candidate before it votes"},
}};

Error bad(std::string_view field, std::string_view problem) {
  return make_error(ErrorCode::InvalidArgument, fmt::format("profile field '{}' {}", field, problem));
}

Expected<void> check_name(const std::string& name) {
  const bool characters = std::all_of(name.begin(), name.end(), [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || c == '-';
  });
  if (name.empty() || name.size() > 32 || !characters || name.front() == '-') {
    return bad("name", "must be 1 to 32 characters of a-z, 0-9 and '-', not starting with '-'");
  }
  return {};
}

// With other values no round would ever change the model.
Expected<void> check_outer_step(const ConsensusPart& c) {
  if (c.outer_learning_rate_nano == 0 || c.outer_learning_rate_nano > 2 * one)
    return bad("outer_learning_rate_nano",
               fmt::format("is {}; it must be between 1 and {} in a network with an outer loop",
                           c.outer_learning_rate_nano, 2 * one));
  // Nodes step in single precision.
  if (!(static_cast<float>(from_nano(c.outer_momentum_nano)) < 1.0f))
    return bad("outer_momentum_nano",
               fmt::format("is {}; it must be at most {}: more is 1 in single precision, and with a momentum "
                           "of 1 no outer step is possible",
                           c.outer_momentum_nano, most_outer_momentum_nano));
  return {};
}

Expected<void> check_outer_loop(const ConsensusPart& c) {
  const auto sync = rounds::sync_choice(c.sync);
  if (c.sync != "none" && !sync)
    return bad("sync",
               fmt::format("must be \"none\", \"plain\", \"delayed-1\", \"fragments=P\" with P from {} to "
                           "{}, or \"parts=P\" with P from {} to {}",
                           rounds::least_profile_fragments, rounds::most_profile_fragments,
                           rounds::least_profile_parts, rounds::most_profile_parts));
  if (sync && sync->parts > c.layers)
    return bad("sync", fmt::format("has {} parts; the limit is layers, {}, because each part has a layer",
                                   sync->parts, c.layers));
  if (sync && c.inner_steps != 0 && sync->fragments > c.inner_steps)
    return bad("sync", fmt::format("has {} fragments; the limit is inner_steps, {}, because each fragment "
                                   "ends its round at another step",
                                   sync->fragments, c.inner_steps));
  if (sync && sync->parts > 1 && c.voters == static_cast<std::uint64_t>(chain::VotersMode::Open))
    return bad(
        "voters",
        "can't be \"open\" where members hold parts: gradients of strangers would reach the parts of others");
  constexpr std::string_view codecs[] = {"none", "fp32", "fp16", "int8", "int4", "topk"};
  if (std::find(std::begin(codecs), std::end(codecs), c.codec) == std::end(codecs))
    return bad("codec", "must be \"none\", \"fp32\", \"fp16\", \"int8\", \"int4\" or \"topk\"");
  if (is_sparse(c) && c.outer_momentum_nano != 0)
    return bad("outer_momentum_nano", "must be 0 with the codec topk: its outer step is without momentum");
  if ((c.inner_steps == 0) != (c.sync == "none")) {
    return bad("sync", "must be \"none\" exactly when inner_steps is 0 (no outer loop)");
  }
  if ((c.sync == "none") != (c.codec == "none")) return bad("codec", "must be \"none\" exactly when sync is");
  // Each node would choose experts in its own way, and the anchor would not be the whole model.
  if (c.sync != "none" && c.router_bias_gamma_nano != 0) {
    return bad("router_bias_gamma_nano",
               "must be 0 in a network with an outer loop: nodes do not agree on balancing biases yet");
  }
  return c.inner_steps == 0 ? Expected<void>() : check_outer_step(c);
}

Expected<void> check_founders(const ConsensusPart& c) {
  if (c.founders.size() > max_profile_founders)
    return bad("founders", fmt::format("names {} wallets; at most {} are allowed", c.founders.size(),
                                       max_profile_founders));
  for (std::size_t i = 0; i < c.founders.size(); ++i) {
    const auto key = hash_from_hex(c.founders[i]);
    if (!key.ok() || to_hex(*key) != c.founders[i])
      return bad("founders", fmt::format("holds '{}', which is not the public key of a wallet: 64 lower-case "
                                         "hexadecimal characters",
                                         c.founders[i].substr(0, 80)));
    if (i > 0 && c.founders[i] == c.founders[i - 1])
      return bad("founders", fmt::format("names the wallet {} twice", c.founders[i]));
    if (i > 0 && c.founders[i] < c.founders[i - 1])
      return bad("founders", fmt::format("must be ascending, and {} is too late", c.founders[i]));
  }
  if (c.founders.empty() && c.voters == static_cast<std::uint64_t>(chain::VotersMode::Founders))
    return bad("founders", "must name at least one wallet where voters is \"founders\"");
  if (!c.founders.empty() && c.inner_steps == 0)
    return bad("founders", "must be empty in a network without an outer loop");
  return {};
}

Expected<void> check_shape(const ConsensusPart& c) {
  if (c.hidden % c.head_dim != 0) {
    return bad("hidden", fmt::format("is {}; it must be a multiple of head_dim, {}", c.hidden, c.head_dim));
  }
  if (c.hidden * c.ffn_percent % 100 != 0) {
    return bad("ffn_percent", fmt::format("is {}; {} % of hidden, {}, is not a whole number", c.ffn_percent,
                                          c.ffn_percent, c.hidden));
  }
  if (c.experts_per_token > c.experts) {
    return bad("experts_per_token",
               fmt::format("is {}; it can't be more than experts, {}", c.experts_per_token, c.experts));
  }
  if (c.batch_tokens % c.sequence != 0) {
    return bad("batch_tokens",
               fmt::format("is {}; it must be a multiple of sequence, {}", c.batch_tokens, c.sequence));
  }
  return compute::validate(model_shape(at_size(c, 0)));
}

Expected<void> check_address(std::string_view field, const std::string& text) {
  const bool printable = std::all_of(text.begin(), text.end(), [](char c) { return c > ' ' && c < 127; });
  if (text.empty() || text.size() > max_profile_text || !printable) {
    return bad(field,
               fmt::format("holds an entry that is empty, longer than {} characters, or not plain ASCII "
                           "without spaces",
                           max_profile_text));
  }
  return {};
}

std::string directory_text(const DirectoryPart& d) {
  std::string text = "neuroshard network directory 1\n";
  text += fmt::format("sequence={}\np2p_port={}\ntracker_port={}\nhttp_port={}\ncheckpoint_min_interval={}\n",
                      d.sequence, d.p2p_port, d.tracker_port, d.http_port, d.checkpoint_min_interval);
  for (const std::string& peer : d.bootstrap) text += "bootstrap=" + peer + '\n';
  for (const std::string& tracker : d.trackers) text += "tracker=" + tracker + '\n';
  text += "manifest_url=" + d.manifest_url + '\n';
  return d.genesis ? text + "genesis=" + to_hex(*d.genesis) + '\n' : text;
}

}  // namespace

Span<const ConsensusField> consensus_fields() {
  return {fields.data(), fields.size()};
}

std::string text_of(const ConsensusField& field, std::uint64_t value) {
  return field.words != nullptr && value <= field.most ? field.words[value] : fmt::format("{}", value);
}

Expected<std::uint64_t> value_of_word(const ConsensusField& field, std::string_view word) {
  std::string allowed;
  for (std::uint64_t value = 0; field.words != nullptr && value <= field.most; ++value) {
    if (word == field.words[value]) return value;
    allowed += fmt::format("{}\"{}\"",
                           value == 0            ? ""
                           : value == field.most ? " or "
                                                 : ", ",
                           field.words[value]);
  }
  return make_error(ErrorCode::NotFound, "must be " + allowed);
}

Span<const ConsensusField> written_fields(const ConsensusPart& consensus) {
  const ConsensusPart usual;
  std::size_t count = fields.size();
  while (count > first_consensus_fields &&
         consensus.*fields[count - 1].member == usual.*fields[count - 1].member)
    --count;
  return {fields.data(), count};
}

Expected<void> validate(const ConsensusPart& consensus) {
  NS_RETURN_IF_ERROR(check_name(consensus.name));
  for (const ConsensusField& field : fields) {
    const std::uint64_t value = consensus.*field.member;
    if (value < field.least || value > field.most) {
      return bad(field.key,
                 fmt::format("is {}; it must be between {} and {}", value, field.least, field.most));
    }
  }
  NS_RETURN_IF_ERROR(check_outer_loop(consensus));
  NS_RETURN_IF_ERROR(check_founders(consensus));
  if (consensus.publisher_key != "none") {
    const auto key = hash_from_hex(consensus.publisher_key);
    if (!key.ok() || to_hex(*key) != consensus.publisher_key) {
      return bad("publisher_key", "must be 64 lower-case hexadecimal characters, or \"none\"");
    }
  }
  NS_RETURN_IF_ERROR(check_shape(consensus));
  return detail::check_sizes(consensus);
}

Expected<void> validate(const DirectoryPart& directory) {
  for (const auto& [field, port] :
       {std::pair{"p2p_port", directory.p2p_port}, std::pair{"tracker_port", directory.tracker_port},
        std::pair{"http_port", directory.http_port}}) {
    if (port > 65535) return bad(field, fmt::format("is {}; a port is at most 65535", port));
  }
  if (directory.checkpoint_min_interval > 86400) {
    return bad("checkpoint_min_interval", "must be at most 86400 seconds, one day");
  }
  for (const auto& [field, list] :
       {std::pair{"bootstrap", &directory.bootstrap}, std::pair{"trackers", &directory.trackers}}) {
    if (list->size() > max_profile_peers) {
      return bad(field,
                 fmt::format("has {} entries; at most {} are allowed", list->size(), max_profile_peers));
    }
    for (const std::string& entry : *list) NS_RETURN_IF_ERROR(check_address(field, entry));
  }
  if (!directory.manifest_url.empty())
    NS_RETURN_IF_ERROR(check_address("manifest_url", directory.manifest_url));
  return {};
}

std::string canonical_text(const ConsensusPart& consensus) {
  std::string text = "neuroshard network profile 1\nname=" + consensus.name + '\n';
  for (const ConsensusField& field : written_fields(consensus))
    text += fmt::format("{}={}\n", field.key, text_of(field, consensus.*field.member));
  text += "sync=" + consensus.sync + "\ncodec=" + consensus.codec +
          "\npublisher_key=" + consensus.publisher_key + '\n';
  if (!consensus.founders.empty()) text += fmt::format("founders={}\n", fmt::join(consensus.founders, ","));
  if (consensus.sizes.empty()) return text;
  std::vector<std::string> sizes;
  for (const ModelGrowth& size : consensus.sizes) sizes.push_back(to_text(size));
  return text + fmt::format("sizes={}\n", fmt::join(sizes, ","));
}

std::vector<crypto::PublicKey> founder_keys(const ConsensusPart& consensus) {
  std::vector<crypto::PublicKey> keys;
  for (const std::string& founder : consensus.founders) {
    if (const auto key = hash_from_hex(founder); key.ok()) keys.push_back(*key);
  }
  return keys;
}

Hash256 network_id(const ConsensusPart& consensus) {
  return crypto::sha256(as_bytes(canonical_text(consensus)));
}

void sign_directory(NetworkProfile& profile, const crypto::KeyPair& publisher) {
  profile.directory.signature = publisher.sign(crypto::Purpose::NetworkProfile, network_id(profile.consensus),
                                               as_bytes(directory_text(profile.directory)));
}

Expected<void> verify_directory(const NetworkProfile& profile) {
  if (profile.consensus.publisher_key == "none") return {};
  NS_ASSIGN_OR_RETURN(const Hash256 key, hash_from_hex(profile.consensus.publisher_key));
  const auto& signature = profile.directory.signature;
  if (signature && crypto::verify(key, crypto::Purpose::NetworkProfile, network_id(profile.consensus),
                                  as_bytes(directory_text(profile.directory)), *signature)) {
    return {};
  }
  return make_error(
      ErrorCode::Denied,
      "the profile's addresses are not signed by the network's publisher; get the profile again from a "
      "source that you trust");
}

ConsensusPart at_size(ConsensusPart consensus, std::uint64_t size) {
  NS_CHECK(size <= consensus.sizes.size());
  consensus.size = size;
  return consensus;
}

compute::ModelShape model_shape(const ConsensusPart& c) {
  NS_CHECK(c.size <= c.sizes.size());
  const std::uint64_t layers = c.size == 0 ? c.layers : c.sizes[c.size - 1].layers;
  const std::uint64_t hidden = c.size == 0 ? c.hidden : c.sizes[c.size - 1].hidden;
  const auto narrow = [](std::uint64_t value) { return static_cast<std::uint32_t>(value); };
  compute::ModelShape shape;
  shape.layers = narrow(layers);
  shape.hidden = narrow(hidden);
  shape.head_dim = narrow(c.head_dim);
  shape.heads = narrow(hidden / c.head_dim);
  shape.kv_heads = std::max<std::uint32_t>(1, shape.heads / narrow(c.heads_per_kv_head));
  shape.ffn = narrow(hidden * c.ffn_percent / 100);
  shape.experts = narrow(c.experts);
  shape.experts_per_token = narrow(c.experts_per_token);
  shape.vocab = narrow(c.vocab);
  shape.sequence = narrow(c.sequence);
  return shape;
}

bool is_sparse(const ConsensusPart& c) {
  return c.codec == "topk";
}

compute::RouterOptions router_options(const ConsensusPart& c) {
  compute::RouterOptions options;
  options.balance_coefficient = static_cast<float>(from_nano(c.balance_coefficient_nano));
  options.z_coefficient = static_cast<float>(from_nano(c.z_coefficient_nano));
  options.capacity_factor = static_cast<float>(from_nano(c.capacity_factor_nano));
  options.bias_gamma = static_cast<float>(from_nano(c.router_bias_gamma_nano));
  return options;
}

namespace {

bool lacks_first_addresses(const NetworkProfile& profile) {
  const DirectoryPart& directory = profile.directory;
  return profile.consensus.sync != "none" && directory.bootstrap.empty() && directory.trackers.empty();
}

bool is_public(const ConsensusPart& c) {
  return c.name == "mainnet" || c.name == "testnet";
}

}  // namespace

std::string network_notice(const NetworkProfile& profile) {
  if (!lacks_first_addresses(profile) || !is_public(profile.consensus)) return {};
  return fmt::format(
      "There is no public {} yet: its constants are built in, but there is no bootstrap to join. Train alone "
      "with --profile solo, or create your own network with \"neuroshardd network create\".",
      profile.consensus.name);
}

std::string addresses_notice(const NetworkProfile& profile) {
  if (!lacks_first_addresses(profile) || is_public(profile.consensus)) return {};
  return fmt::format(
      "The profile of {} names no bootstrap or tracker. Its nodes find each other by --peer, --tracker or an "
      "invitation, and by --lan in one local network. Without --lan they also meet in the public "
      "BitTorrent DHT, unless the setting mainline_rendezvous is off.",
      profile.consensus.name);
}

}  // namespace neuroshard::config
