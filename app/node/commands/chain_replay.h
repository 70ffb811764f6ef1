// The chain on this node's disk (D/chain), read without the data directory's lock, so also while a node runs.
#pragma once

#include <functional>
#include <optional>
#include <string>

#include "app/node/command.h"
#include "core/chain/history.h"
#include "core/config/network_profile.h"

namespace neuroshard::app {

struct ChainPlace {
  std::string directory;  // D
  std::string chain;      // D/chain
  config::NetworkProfile profile;
  chain::ChainRules rules;
  std::string log() const { return chain + "/blocks"; }
};
// NotFound: the data directory has no chain. Denied: another user's.
Expected<ChainPlace> chain_place(CommandContext& context);

// The history on the disk, block by block. Threads: the command's.
class ChainReplay {
 public:
  enum class Checks { All, NoSignatures };
  // place and context outlive it.
  ChainReplay(const ChainPlace& place, Checks checks, CommandContext& context)
      : place_(place), all_(checks == Checks::All), context_(context) {}

  const std::optional<chain::History>& history() const { return history_; }
  std::uint64_t next_height() const { return next_height_; }
  // seen: each block once it holds; false ends the replay. An error is about the block of next_height().
  Expected<void> run(const std::function<bool(const chain::CertifiedBlock&)>& seen);
  std::uint64_t tail_bytes() const { return tail_bytes_; }

 private:
  Expected<void> take(const chain::CertifiedBlock& block);
  chain::History::Services services() { return {place_.rules, checks_, nullptr}; }

  const ChainPlace& place_;
  const bool all_;
  CommandContext& context_;
  chain::SignatureChecks checks_;
  std::optional<chain::History> history_;
  std::uint64_t next_height_ = 0, tail_bytes_ = 0;
};

}  // namespace neuroshard::app
