// The committee of one height agrees on one block although members stop, lose their connection or are
// Byzantine. It votes twice under leaders that change: PBFT's prepare and commit (Castro and Liskov 1999) with
// the locks of Tendermint (Buchman et al. 2018), weighted by units. docs/protocol/safety.md has the argument.
//
// Pure: no clock beyond the executor's timers, no network; the host carries messages. View v is led by
// Committee::leader(v). In each view the leader proposes a block. A member that finds it right prepares. A
// member that sees a quorum of prepares locks on the block and commits. A quorum of commits certifies it.
// After a view's time members go to the next one with a NewView that carries their lock. They wait there until a
// quorum has come; then its time begins (view_clock.h). The leader of that view waits for a quorum of NewViews, and a short while for the others, one of which may have the newest lock
// and would refuse all else. It proposes the lock of the highest view, if there is one.
//
// A member prepares at most one block in a view. While it has a lock it prepares no other block than the
// lock's. A lock gives way to a lock of a higher view and to nothing else, whatever kind either of them is.
// A lock of an earlier view counts from the next view on, or when the proposal of this view shows it: else one
// vote that comes late, to one member only, makes this member refuse a proposal whose leader can't know of it.
//
// Stalled (the host says so, by its clock): the stall quorum suffices in both votes for two kinds of block:
//   1. a block with an earlier lock of more than two thirds, whatever it contains; that lock goes with each
//      stall lock and certificate of the block (`full`);
//   2. a block of presence changes only.
// The leader completes the lock of the highest view first. Without one it asks for presence changes; where
// there are none, and NewViews of more than two thirds are there, for any block. A member that is not stalled
// neither makes nor takes a stall lock: outside of stalls locks keep their strength against a third.
//
// View, prepare and lock are kept before a vote leaves. Beyond `max_direct_voters` votes and NewViews go to the
// view's leader, which shows the quorum that it found to all (Locked, then the certificate). There others pass
// proposals on, so a leader sends its proposal with its prepare, whose signature shows whose proposal it is.
// Otherwise votes go to all, and so does the bare NewView; the lock and its block go to the leader.
//
// Bounded: votes of views_kept views back and votes_ahead ahead, one proposal per view, proposals_ahead ahead,
// of which only those of the present and the next view are checked and judged. All checks that cost nothing
// come before signatures.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>

#include "core/base/executor.h"
#include "core/base/lifetime.h"
#include "core/chain/agreement_items.h"
#include "core/chain/agreement_memory.h"
#include "core/chain/checks.h"
#include "core/chain/committee.h"
#include "core/chain/demand.h"
#include "core/chain/detail/known_blocks.h"
#include "core/chain/detail/leader_task.h"
#include "core/chain/detail/proposal_book.h"
#include "core/chain/detail/quorum_rules.h"
#include "core/chain/detail/view_claims.h"
#include "core/chain/detail/view_clock.h"
#include "core/chain/detail/vote_ledger.h"
#include "core/chain/detail/voting_state.h"
#include "core/chain/verdict.h"

namespace neuroshard::chain {

inline constexpr std::uint32_t views_kept = 8;
inline constexpr std::uint32_t votes_ahead = 8;
inline constexpr std::uint32_t proposals_ahead = 4;

class AgreementHost {
 public:
  virtual ~AgreementHost() = default;
  // To all other members, or to one (a position in the committee); again and again until each has it. A later
  // item of the same kind replaces it (of votes: of the same step); what is sent to all and what is sent to one
  // are kept apart.
  virtual void send(const AgreementItem& item, std::optional<std::size_t> to) = 0;
  // Keeps the memory, then calls `then`, later or at once; never when it can't be kept.
  virtual void remember(const AgreementMemory& memory, std::function<void()> then) = 0;
  // Is this block right, as far as this node knows and computes? Answer with judged(), any time. A later
  // question about the same block replaces this one.
  virtual void judge(const BlockPtr& block, Demand demand) = 0;
  // This node leads: answer with propose(), any time. presence_only: nothing else may be in it.
  virtual void make_block(bool presence_only) = 0;
  // There is evidence against this member: nobody waits for it where it leads.
  virtual bool is_byzantine(std::size_t position) const = 0;
  // Two votes of one member that exclude each other.
  virtual void found_evidence(const Evidence& evidence) = 0;
  // The end. The agreement may be destroyed in a later task of the executor, not in here.
  virtual void certified(const BlockPtr& block, const Certificate& certificate) = 0;
};

using AgreementOptions = ViewClock::Options;

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
  bool started() const { return phase_ != Phase::Waiting; }
  // The stall rule holds from now on (presence.h); ends with the height.
  void stall();

  // From others; `from` is the sender's position, which the connection proved. BadSignature and other
  // verdicts tell the transport what to count against the sender. Later: send it again.
  Verdict on_item(std::size_t from, const AgreementItem& item);
  // A member said which view it works in.
  void on_view(std::size_t from, std::uint32_t view);

  void judged(const Hash256& block, Demand demand, bool right);
  void propose(const BlockPtr& block);  // null: this leader has nothing to propose
  void byzantine_member_found();        // is_byzantine() changed

  std::uint32_t view() const { return voting_.view(); }
  bool leads() const { return setup_.committee->leader(view()) == setup_.self; }
  const AgreementMemory& memory() const { return voting_.memory(); }
  // Of this height, as they came.
  const VoteLedger& votes() const { return votes_; }
  // The block that is voted on in this view, if it is known.
  BlockPtr proposed() const;

 private:
  enum class Phase : std::uint8_t { Waiting, Running, Done };

  Verdict on_proposal(std::size_t from, const Proposal& proposal);
  Verdict on_vote(const SignedVote& vote);
  Verdict on_new_view(std::size_t from, const NewView& item);
  Verdict on_locked(const Locked& item);
  Verdict take_proposal(const Proposal& proposal);
  bool learn_lock(const Lock& lock);
  bool take_lock(const Lock& lock);

  void enter(std::uint32_t view);
  void start_clock();
  void give_up();
  bool refuses_proposal() const;
  void jump();
  void join_view();
  void send_new_view();
  void lead();
  void put_forward(const BlockPtr& block);
  Demand demand(const Hash256& block, std::uint32_t view) const;
  void consider(const BlockPtr& block, std::uint32_t view);
  void try_prepare();
  void try_commit();
  void vote(VoteStep step, const Hash256& block);
  BlockPtr chosen(VoteStep step, std::uint32_t view) const;
  void count_prepares(std::uint32_t view);
  void count_commits(std::uint32_t view);
  void forget_old();

  const Setup setup_;
  const crypto::KeyPair& key_;
  AgreementHost& host_;
  VotingState voting_;
  Phase phase_ = Phase::Waiting;
  LeaderTask leading_;
  QuorumRules rules_;
  ProposalBook proposals_;
  VoteLedger votes_;
  ViewClaims claims_;
  KnownBlocks blocks_;
  ViewClock clock_;
  Lifetime lifetime_;
};

}  // namespace neuroshard::chain
