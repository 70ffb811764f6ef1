// Statements and evidence that wait for a block. Bounded: one statement of each kind and node, the newest by its
// reference; evidence one per node. Everything in it was admissible and signed when it came; what a later block
// makes inadmissible goes.
// Threads: one.
#pragma once

#include <map>
#include <vector>

#include "core/chain/history.h"
#include "core/chain/verdict.h"

namespace neuroshard::chain {

class Mempool {
 public:
  Mempool(const ChainRules& rules, SignatureChecks& checks) : rules_(rules), checks_(checks) {}

  // Taken, Known (the same, or a newer one), Later (its reference is ahead of the tip), Past (its reference is
  // too old), OtherHistory, Inadmissible, Limit (no room, or another one with the same reference) or
  // BadSignature.
  Verdict take(const Statement& statement, const ChainTip& tip);
  // Taken, Known, NotMember, Inadmissible, Limit or BadSignature.
  Verdict take(const Evidence& evidence, const ChainTip& tip);
  // Drops what the new tip contains or refuses.
  void on_tip(const ChainTip& tip);
  // Drops what no block of this time can contain any more.
  void drop_late(const ChainTip& tip, std::uint64_t time_ms);

  // For the next block, in an order that applies: revocations first, because a block has one statement of a node
  // and a thief of its key can make others; then presence, then the rest, each by node key; at most `max_block_statements`. Statements that do not apply together wait for later blocks.
  std::vector<Statement> statements(const ChainTip& tip) const;
  // Away and Back only.
  std::vector<Statement> presence_changes(const ChainTip& tip) const;
  // By node key, one per wallet; at most `max_block_evidence`.
  std::vector<Evidence> evidence(const ChainTip& tip) const;
  // Of a node whose wallet votes; by a revocation, too. Other keys are free: theirs wait for `block_time`, else one that
  // comes and goes would make blocks without end.
  bool changes_voters(const ChainTip& tip) const;
  bool has_evidence(const crypto::PublicKey& node) const { return evidence_.count(node) != 0; }
  bool empty() const { return statements_.empty() && evidence_.empty(); }

 private:
  using Key = std::pair<crypto::PublicKey, std::size_t>;  // node and kind
  Verdict check_reference(const Statement& statement, const ChainTip& tip) const;
  bool has_room(const Statement& statement) const;
  std::vector<Statement> applicable_of(std::vector<Statement> statements, const ChainTip& tip) const;

  const ChainRules& rules_;
  SignatureChecks& checks_;
  std::map<Key, Statement> statements_;
  std::map<crypto::PublicKey, Evidence> evidence_;
};
inline constexpr std::size_t most_waiting_statements = 4096;     // without presence and revocations
inline constexpr std::size_t most_waiting_registrations = 1024;  // of nodes that are no members yet
inline constexpr std::size_t most_waiting_evidence = 64;

}  // namespace neuroshard::chain
