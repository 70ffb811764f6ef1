// How the committee of one height agrees on one block, whatever dies, is cut off or lies: two votes under
// leaders that change (PBFT's prepare and commit, Castro and Liskov 1999, with the locks of Tendermint,
// Buchman et al. 2018), weighted by units. docs/protocol/safety.md has the argument.
//
// Pure: no clock beyond the executor's timers, no network; the host carries messages. View v is led by
// Committee::leader(v). In each view the leader proposes a block; a member that finds it right prepares; a
// member that sees a quorum of prepares locks on the block and commits; a quorum of commits certifies it.
// After a view's time members go to the next one with a NewView that carries their lock; the leader of that
// view waits for a quorum of NewViews and proposes the lock of the highest view, if there is one.
//
// Stalled (the host says so, by its clock): the stall quorum suffices in both votes for two kinds of block:
//   1. the block of the newest known lock whose prepares were more than two thirds, whatever it contains;
//   2. without one: a block of presence changes only.
//
// View, prepare and lock are kept before a vote leaves. Beyond `max_direct_voters` votes and NewViews go to the
// view's leader, which shows the quorum that it found to all (Locked, then the certificate).
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <variant>

#include "core/base/executor.h"
#include "core/base/lifetime.h"
#include "core/chain/committee.h"
#include "core/chain/verdict.h"

namespace neuroshard::chain {

using QuorumPtr = std::shared_ptr<const Quorum>;

struct Proposal {
  std::uint32_t view = 0;
  BlockPtr block;
  std::optional<Quorum> justification;  // a lock of an earlier view, for the same block
};
struct NewView {  // "the leaders before this view have not brought it about"; signed by the connection only
  std::uint64_t height = 0;
  Hash256 previous{};
  std::uint32_t view = 0;
  std::optional<Quorum> lock;  // the highest
  BlockPtr block;              // of the lock, so that nobody has to fetch it; null without
};
struct Locked {  // collected votes: a quorum of prepares
  Quorum prepares;
};
using AgreementItem = std::variant<Proposal, SignedVote, NewView, Locked>;

// What has to survive a restart.
struct AgreementMemory {
  std::uint64_t height = 0;
  Hash256 previous{};
  std::uint32_t view = 0;
  std::optional<Hash256> prepared;  // in this view
  QuorumPtr lock;                   // null: none
  BlockPtr block;                   // of the lock
  QuorumPtr full_lock;              // the newest lock of more than two thirds, if that is not `lock`
  BlockPtr full_block;
};
Bytes encode_agreement_memory(const AgreementMemory& memory);
Expected<AgreementMemory> decode_agreement_memory(ByteSpan bytes, const Hash256& network);

class AgreementHost {
 public:
  virtual ~AgreementHost() = default;
  // To all other members, or to one (a position in the committee); again and again until each has it. A later
  // item of the same kind replaces it.
  virtual void send(const AgreementItem& item, std::optional<std::size_t> to) = 0;
  // Keeps the memory, then calls `then`, later or at once; never when it can't be kept.
  virtual void remember(const AgreementMemory& memory, std::function<void()> then) = 0;
  // Is this block right, as far as this node knows and computes? Answer with judged(), any time. binding:
  // omissions and needlessly carried rows make it wrong (views 0 to 2).
  virtual void judge(const BlockPtr& block, bool binding) = 0;
  // This node leads: answer with propose(), any time. presence_only: nothing else may be in it.
  virtual void make_block(bool presence_only) = 0;
  // There is evidence against this member: nobody waits for it where it leads.
  virtual bool is_byzantine(std::size_t position) const = 0;
  // Two votes of one member that exclude each other.
  virtual void found_evidence(const Evidence& evidence) = 0;
  // The end. The agreement may be destroyed in a later task of the executor, not in here.
  virtual void certified(const BlockPtr& block, const Certificate& certificate) = 0;
};

struct AgreementOptions {
  Duration first_view = std::chrono::seconds(10);  // grows by half with each view
  Duration longest_view = std::chrono::minutes(2);
};

class Agreement {
 public:
  struct Setup {
    Hash256 network{};
    std::uint64_t height = 0;
    Hash256 previous{};
    CommitteePtr committee;
    std::size_t self = 0;  // position in the committee
    SignatureChecks* checks = nullptr;
  };
  // All outlive it. memory: of this height and previous block, else ignored. Threads: the executor's.
  Agreement(Setup setup, AgreementOptions options, const crypto::KeyPair& key, Executor& executor,
            AgreementHost& host, AgreementMemory memory);

  // A block is due: from now on a silent leader is replaced.
  void start();
  bool started() const;
  // The stall rule holds from now on (presence.h); ends with the height.
  void stall();

  // From others; `from` is the sender's position, which the connection proved. BadSignature and other
  // verdicts tell the transport what to count against the sender.
  Verdict on_item(std::size_t from, const AgreementItem& item);
  // A member said which view it works in.
  void on_view(std::size_t from, std::uint32_t view);

  void judged(const Hash256& block, bool binding, bool right);
  void propose(const BlockPtr& block);  // null: this leader has nothing to propose
  void byzantine_member_found();        // is_byzantine() changed

  std::uint32_t view() const;
  bool leads() const;
  const AgreementMemory& memory() const;
  // The block that is voted on in this view, if it is known.
  BlockPtr proposed() const;
};

}  // namespace neuroshard::chain
