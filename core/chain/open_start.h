// Nodes without any history make a genesis together (docs/protocol/chain.md). Each says hello for 15 s. Then
// the lowest node id heard proposes a genesis that lists all that were heard; it is valid with the signatures of
// all of them. When that one is silent, the next id proposes ten seconds later, and so on. A node signs one at a
// time; it is released after 30 s and begins again. A network whose profile names founders begins only with
// nodes of their wallets.
//
// Each hello names the tokenizer that its node's initial weights are for. The tokenizer of the lowest id is the
// network's: a node with another one takes it over and begins again (wanted_tokenizer()), and the others wait for
// it during the first `binding_attempts`.
//
// A node signs no genesis that lists one that it has not heard. In its first `binding_attempts` it signs none
// that leaves out one that it has heard for longer than half of the hello time; later it does, so that a node
// that says hello to some only holds nothing up for long.
//
// Keys cost nothing. So a node that proposes or signs nothing in an attempt that fails counts no more: nobody
// lists it, waits for its proposal or misses it. After `binding_attempts` no others are added to those that count.
// From then on a failed genesis that a key had not signed counts against it, and only the best ones are listed.
// There are `most_founders` places: a key of an address group with few of them takes one of the group with most.
//
// Everything is sent again every `repeat`, so a lost message delays the start only. Pure: times in, messages
// out. Threads: one.
#pragma once

#include <map>
#include <optional>
#include <vector>

#include "core/base/clock.h"
#include "core/chain/messages.h"
#include "core/net/peer_caller.h"

namespace neuroshard::chain {

struct OpenStartOptions {
  Duration hello = std::chrono::seconds(15);
  Duration hello_alone = std::chrono::seconds(3);  // nobody is known who could answer
  Duration release = std::chrono::seconds(30);
  Duration next_proposer = std::chrono::seconds(10);  // after the one with the id before, at most
  Duration all_proposers = std::chrono::minutes(1);   // until the last one's turn, at most
  Duration repeat = std::chrono::seconds(3);
  std::uint32_t binding_attempts = 3;
  std::uint32_t most_failures = 6;  // then a key counts no more, and no genesis that lists it is signed
  std::size_t most_founders = 64;
};

// The model that a genesis of this node names.
struct InitialModel {
  std::vector<Hash256> anchors;  // of the initial weights, per row
  Hash256 tokenizer{};
};

class OpenStart {
 public:
  // own: this node's Register statement, signed. required: a wallet that the genesis has to name. key, rules and
  // checks outlive it.
  OpenStart(const ChainRules& rules, OpenStartOptions options, const crypto::KeyPair& key, Statement own,
            InitialModel model, std::optional<crypto::PublicKey> required, SignatureChecks& checks);

  struct Output {
    std::vector<ChainItem> to_all;  // those that were heard, and contacts
    std::optional<std::pair<net::NodeId, ChainItem>> to_one;
    std::optional<CertifiedBlock> genesis;  // complete; once
  };
  // nobody: every known node was asked, and there is none.
  Output tick(MonotonicTime now, WallTime wall, bool nobody);
  // Taken, Known, Malformed (no founder's statement, or of another node), Inadmissible (not one of the
  // founders, or no genesis could name it), Limit, BadSignature, Busy (before the first tick).
  Verdict take(const net::Caller& from, const GenesisHello& hello, MonotonicTime now);
  // Taken, Known, Busy (signs another one, has not heard all that it lists, or its clock is behind),
  // Inadmissible.
  Verdict take(const net::NodeId& from, const GenesisProposal& proposal, MonotonicTime now, WallTime wall,
               Output* output);
  // Taken, Known, Busy (does not know the proposal yet), NotMember, BadSignature.
  Verdict take(const net::NodeId& from, const GenesisSignature& signature, Output* output);
  // A node that was heard proposes a genesis with other initial weights: neither can ever sign the other's.
  bool refused_anchors() const { return refused_anchors_; }
  // The tokenizer of the lowest id heard, if that is not this node's own; none in the first half of the hello time,
  // and none after `binding_attempts`.
  std::optional<Hash256> wanted_tokenizer() const;
  std::vector<net::NodeId> heard_nodes() const;

 private:
  struct Heard {
    Statement founder;
    Hash256 tokenizer{};
    std::uint64_t group = 0;  // of its address
    MonotonicTime since{};
    bool spoke = false;  // it has proposed or signed a genesis in this attempt
  };
  struct Signing {
    BlockPtr block;
    MonotonicTime since{};
    bool is_own = false;                      // this node proposed it
    std::vector<crypto::PublicKey> founders;  // ascending: their positions are their numbers
    std::map<crypto::PublicKey, crypto::Signature> signatures;
    bool is_complete() const { return signatures.size() == founders.size(); }
  };
  bool may_begin(const Statement& founder) const;
  bool names_required(const std::vector<Statement>& founders) const;
  bool could_begin_alone(const Statement& founder) const;
  void begin_again(MonotonicTime now);
  void note_failure();
  bool takes_new_parts() const { return failures_.empty() || attempts_ < options_.binding_attempts; }
  bool is_ready(const Heard& heard) const { return heard.tokenizer == model_.tokenizer; }
  // Those that this node lists, lets propose first, and misses in the lists of others; ascending.
  std::vector<net::NodeId> counted() const;
  Duration turn(std::size_t rank, std::size_t of) const;
  // One that makes room for a key of this group; end(): none.
  std::map<net::NodeId, Heard>::iterator most_crowded(std::uint64_t group);
  void note_part(const net::NodeId& from);
  bool is_turn_to_propose(MonotonicTime now, bool nobody) const;
  void propose(MonotonicTime now, WallTime wall, Output* output);
  bool has_other_anchors(const net::NodeId& from, const Block& block) const;
  Verdict judge(const net::NodeId& from, const Block& block, MonotonicTime now, WallTime wall) const;
  void sign(BlockPtr block, bool is_own, MonotonicTime now, Output* output);
  SignedVote vote_of(const crypto::PublicKey& node, const crypto::Signature& signature) const;
  GenesisSignature own_signature() const;
  CertifiedBlock certified() const;

  const ChainRules& rules_;
  const OpenStartOptions options_;
  const crypto::KeyPair& key_;
  const net::NodeId self_;
  const Statement own_;
  const InitialModel model_;
  const std::optional<crypto::PublicKey> required_;
  SignatureChecks& checks_;
  std::map<net::NodeId, Heard> heard_;  // without this node
  // Those that took part in a failed attempt: how many genesis blocks have failed without their signatures.
  std::map<net::NodeId, std::uint32_t> failures_;
  std::optional<MonotonicTime> since_, sent_;
  MonotonicTime now_{};  // of the newest tick
  WallTime wall_{};
  std::uint32_t attempts_ = 0;
  bool refused_anchors_ = false;
  std::optional<Signing> signing_;  // this node's own proposal, or the one that it signed
};

}  // namespace neuroshard::chain
