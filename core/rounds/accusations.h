// Evidence of false results, with the proofs that it needs: those of this node's own checks, and others', whose proof is
// fetched from whoever sent the evidence and verified before anything else is done with it: one at a time from a peer. A peer
// that sends a useless proof is not listened to again in the round; evidence whose proof does not come is forgotten.
//
// All services outlive it. Threads: the executor's; proofs are verified in RoundWork.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <vector>

#include "core/base/lifetime.h"
#include "core/chain/checks.h"
#include "core/chain/history.h"
#include "core/chain/verdict.h"
#include "core/rounds/fetch.h"
#include "core/rounds/learner.h"
#include "core/rounds/row_proof.h"

namespace neuroshard::rounds {

class Accusations {
 public:
  struct Services {
    RoundFetcher& fetcher;
    RoundWork& work;
    chain::SignatureChecks& checks;
  };
  // row: as all members know it. proven: evidence whose proof has just been verified.
  using RowOf = std::function<ProofRow(std::uint32_t row, std::uint64_t round)>;
  using IsProven = std::function<void(const chain::Evidence& evidence)>;
  Accusations(Services services, const chain::ChainRules& rules, OuterRules outer, RowOf row,
              IsProven proven);

  // Of this node's own check.
  void add(const chain::Evidence& evidence, const RowProof& proof);
  // A peer's. Cheap checks first, then one signature, then the proof is asked for.
  chain::Verdict take(const net::NodeId& from, const chain::Evidence& evidence, const chain::ChainTip& tip);
  // Of a proposed block.  Wait: the proof is not here yet, and is asked for from these nodes.
  enum class Finding : std::uint8_t { Wait, Right, Wrong };
  Finding examine(const chain::Evidence& evidence, const chain::ChainTip& tip,
                  const std::vector<net::NodeId>& sources);
  // The tip is another one: forgets evidence about rows that are settled, or of another history.
  void on_block(const chain::ChainTip& tip);
  // PieceRequest::What::Proof. NotFound.
  Expected<Bytes> piece(const PieceRequest& request) const;

 private:
  enum class State : std::uint8_t { Fetching, Proven, Refuted };
  struct Entry {
    chain::Evidence evidence;
    State state = State::Fetching;
    std::optional<net::NodeId> accuser;  // the first peer that sent it; nothing: this node, or a block
    ByteSourcePtr proof;                 // null: not here
    bool fetching = false;               // or verifying
  };
  static const chain::FalseResult& result_of(const chain::Evidence& evidence) {
    return std::get<chain::FalseResult>(evidence.what);
  }
  // Null: the row is settled, or the history is another one.
  static const chain::OpenRow* open_row_of(const chain::Evidence& evidence, const chain::ChainTip& tip);
  static Hash256 key_of(const chain::Evidence& evidence);
  bool is_of_this_chain(const chain::Evidence& evidence, const chain::ChainTip& tip) const;
  void fetch(const Hash256& key, const chain::OpenRow& open, std::vector<net::NodeId> from);
  void verify(const Hash256& key, const chain::OpenRow& open, ByteSourcePtr proof);

  Services services_;
  const chain::ChainRules& rules_;
  const OuterRules outer_;
  const RowOf row_;
  const IsProven proven_;
  std::map<Hash256, Entry> entries_;  // by hash of the evidence
  std::set<net::NodeId> unreliable_;  // sent a useless proof
  std::uint64_t round_ = 0;
  Lifetime lifetime_;
};

}  // namespace neuroshard::rounds
