// Statements and evidence that wait for a block. Bounded: one statement of each kind and node, the newest;
// evidence one per node. Everything in it was admissible and signed when it came; what a later block makes
// inadmissible goes.
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

  // Taken, Known, Inadmissible, OtherHistory, BadSignature or Limit.
  Verdict take(const Statement& statement, const ChainTip& tip);
  Verdict take(const Evidence& evidence, const ChainTip& tip);
  // Drops what the new tip contains or refuses.
  void on_tip(const ChainTip& tip);

  // For the next block, in an order that applies: evidence by node key; presence first, then the rest by node
  // id; at most `max_block_statements`.
  std::vector<Statement> statements(const ChainTip& tip) const;
  std::vector<Statement> presence_changes(const ChainTip& tip) const;  // Away and Back only
  std::vector<Evidence> evidence(const ChainTip& tip) const;
  bool changes_presence() const;
  bool has_evidence(const crypto::PublicKey& node) const { return evidence_.count(node) != 0; }
  bool empty() const { return statements_.empty() && evidence_.empty(); }
  std::vector<Bytes> encoded() const;  // for a peer that asks for all of it

 private:
  const ChainRules& rules_;
  SignatureChecks& checks_;
  std::map<std::pair<crypto::PublicKey, std::size_t>, Statement> statements_;  // by node and kind
  std::map<crypto::PublicKey, Evidence> evidence_;
};

}  // namespace neuroshard::chain
