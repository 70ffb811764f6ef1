// How nodes without any history make a genesis together (docs/protocol/chain.md). Each says hello for 15 s;
// the lowest node id heard proposes a genesis that lists all that answered; it is valid with the signatures of
// all of them. A node signs one at a time and is released after 30 s, then it begins again. A network whose
// profile names founders begins only with them.
//
// Pure: times in, messages out. Threads: one.
#pragma once

#include <map>
#include <optional>
#include <vector>

#include "core/base/clock.h"
#include "core/chain/messages.h"

namespace neuroshard::chain {

struct OpenStartOptions {
  Duration hello = std::chrono::seconds(15);
  Duration hello_alone = std::chrono::seconds(3);  // nobody is known who could answer
  Duration release = std::chrono::seconds(30);
};

class OpenStart {
 public:
  // own: this node's Register statement. anchors: of the initial weights, per row. founders: wallets of which
  // at least one must begin; empty: anybody.
  OpenStart(const ChainRules& rules, OpenStartOptions options, const crypto::KeyPair& key, Statement own,
            std::vector<Hash256> anchors, std::vector<crypto::PublicKey> founders, SignatureChecks& checks);

  struct Output {
    std::vector<ChainItem> to_all;  // those that were heard, and contacts
    std::optional<std::pair<net::NodeId, ChainItem>> to_one;
    std::optional<CertifiedBlock> genesis;  // complete
  };
  // nobody: every known node was asked, and there is none.
  Output tick(MonotonicTime now, WallTime wall, bool nobody);
  Verdict take(const net::NodeId& from, const GenesisHello& hello, MonotonicTime now);
  Verdict take(const net::NodeId& from, const GenesisProposal& proposal, MonotonicTime now, WallTime wall,
               Output* output);
  Verdict take(const net::NodeId& from, const GenesisSignature& signature, Output* output);
  std::size_t heard() const { return heard_.size(); }

 private:
  const ChainRules& rules_;
  const OpenStartOptions options_;
  const crypto::KeyPair& key_;
  const Statement own_;
  const std::vector<Hash256> anchors_;
  const std::vector<crypto::PublicKey> founders_;
  SignatureChecks& checks_;
  std::map<net::NodeId, Statement> heard_;
  std::optional<MonotonicTime> since_;
  struct Signing {
    BlockPtr block;
    MonotonicTime at{};
    std::map<crypto::PublicKey, crypto::Signature> signatures;
  };
  std::optional<Signing> signing_;  // this node's own proposal, or the one that it signed
};

}  // namespace neuroshard::chain
