// The four built-in networks: docs/protocol/networks.md has the table. Their ids are pinned by a test; a
// changed constant is another network.
#include <fmt/format.h>

#include <array>

#include "core/config/invite_link.h"
#include "core/config/network_profile.h"

namespace neuroshard::config {
namespace {

constexpr std::array<const char*, 4> names{"mainnet", "testnet", "devnet", "solo"};

// Values shared by the three networks with peers: plain rounds, int8 deltas, Nesterov 0.7 / 0.9, the
// rewards.
ConsensusPart shared_network(const char* name) {
  ConsensusPart c;
  c.name = name;
  c.grows = 1;
  c.sync = "plain";
  c.codec = "int8";
  c.outer_learning_rate_nano = 700'000'000;
  c.outer_momentum_nano = 900'000'000;
  c.reward_uptime_minute = 10'000;   // 0.0001 NEURO
  c.reward_training_batch = 50'000;  // 0.0005 NEURO
  c.reward_sample = 1'000;           // 0.00001 NEURO
  c.publisher_key = "none";          // nobody publishes data for the built-in networks yet
  return c;
}

NetworkProfile mainnet() {
  NetworkProfile p{shared_network("mainnet"), {}};
  ConsensusPart& c = p.consensus;
  c.layers = 8;
  c.hidden = 512;
  c.head_dim = 128;
  c.vocab = c.vocab_growth = 32'768;
  c.sequence = 512;
  c.batch_tokens = 2'048;
  c.inner_steps = 500;
  c.peak_learning_rate_nano = 100'000;  // 1e-4
  c.warmup_steps = 1'000;
  c.decay_steps = 50'000;
  p.directory.p2p_port = 9000;
  p.directory.tracker_port = 8765;
  return p;
}

NetworkProfile testnet() {
  NetworkProfile p{shared_network("testnet"), {}};
  ConsensusPart& c = p.consensus;
  c.layers = 8;
  c.hidden = 256;
  c.head_dim = 64;
  c.vocab = c.vocab_growth = 8'192;
  c.sequence = 256;
  c.batch_tokens = 2'048;
  c.inner_steps = 50;
  c.peak_learning_rate_nano = 300'000;  // 3e-4
  c.warmup_steps = 200;
  c.decay_steps = 20'000;
  p.directory.p2p_port = 19000;
  p.directory.tracker_port = 18765;
  return p;
}

NetworkProfile devnet() {
  NetworkProfile p{shared_network("devnet"), {}};
  ConsensusPart& c = p.consensus;
  c.layers = 4;
  c.hidden = 128;
  c.head_dim = 32;
  c.ffn_percent = 200;
  c.vocab = c.vocab_growth = 1'024;
  c.sequence = 128;
  c.batch_tokens = 1'024;
  c.inner_steps = 25;
  c.peak_learning_rate_nano = 1'000'000;  // 1e-3
  c.warmup_steps = 50;
  c.decay_steps = 5'000;
  c.block_time_s = 5;
  c.stall_after_s = 120;
  c.admission_contributions = 2;
  p.directory.p2p_port = 29000;
  p.directory.tracker_port = 28765;
  p.directory.checkpoint_min_interval = 30;
  p.directory.bootstrap = {"127.0.0.1:29000"};  // a developer's own machine
  return p;
}

NetworkProfile solo() {
  NetworkProfile p;
  ConsensusPart& c = p.consensus;
  c.name = "solo";
  c.layers = 6;
  c.hidden = 256;
  c.head_dim = 64;
  c.ffn_percent = 200;
  c.vocab = 4'096;
  c.sequence = 256;
  c.batch_tokens = 4'096;
  // Tuned for a person's first minute (nobody else has to agree). On Tiny Shakespeare
  // the held-out loss after 20 / 80 steps is 6.21 / 5.35 nats a token; with 6e-4 after 100 steps it is 7.50
  // / 5.65.
  c.peak_learning_rate_nano = 1'000'000;  // 1e-3
  c.warmup_steps = 20;
  c.decay_steps = 5'000;
  c.sync = "none";
  c.codec = "none";
  c.publisher_key = "none";
  p.directory.checkpoint_min_interval = 30;
  return p;
}

}  // namespace

Span<const char* const> builtin_profile_names() {
  return {names.data(), names.size()};
}

Expected<NetworkProfile> builtin_profile(std::string_view name) {
  if (name == "mainnet") return mainnet();
  if (name == "testnet") return testnet();
  if (name == "devnet") return devnet();
  if (name == "solo") return solo();
  return make_error(ErrorCode::NotFound, fmt::format("built-in profile '{}' not found; use mainnet, testnet, "
                                                     "devnet, solo, or the path of a profile file",
                                                     name));
}

Expected<NetworkProfile> load_network_profile(storage::FileEnv& files, const std::string& name_or_path) {
  for (const char* name : names) {
    if (name_or_path == name) return builtin_profile(name);
  }
  if (is_invite_link(name_or_path)) {
    NS_ASSIGN_OR_RETURN(InviteLink link, parse_invite_link(name_or_path));
    return std::move(link.profile);
  }
  if (name_or_path.find_first_of("/.\\") == std::string::npos && !files.exists(name_or_path)) {
    return builtin_profile(name_or_path);  // the error that lists the names
  }
  const std::string where = fmt::format("profile {}", name_or_path);
  auto bytes = storage::read_file(files, name_or_path, max_profile_bytes);
  if (!bytes.ok()) return std::move(bytes).error().with_context(where);
  auto profile = parse_network_profile(*bytes);
  if (!profile.ok()) return std::move(profile).error().with_context(where);
  return profile;
}

}  // namespace neuroshard::config
