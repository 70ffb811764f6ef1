// How the members of one (slot, round) agree on one body, whatever dies, is cut off or lies: two votes under
// leaders that change (PBFT's prepare and commit, Castro and Liskov 1999, with the locks of Tendermint,
// Buchman et al. 2018). Pure: no clock beyond the executor's timers, no network; the host carries messages.
//
// View 0 belongs to the first of leader_order(), view v to the v-th. In each view: the leader proposes a
// body; a member that holds and has computed all of it prepares; who sees more than 2/3 of the members
// prepare the same body in a view locks on it and commits; more than 2/3 commits of one view are the
// certificate. Nothing in time: the next view, with a NewView that carries the lock; its leader waits for
// more than 2/3 of them and proposes the lock of the highest view, if there is any.
//
// Why two certificates never conflict, if less than a third of the members lie:
//   1. A member prepares at most one body in a view, and commits in a view only what is locked there. Two
//      quorums share more than a third of the members, so one honest: no view has two quorums of prepares.
//   2. Let A be certified in view v. More than 2/3 committed, so more than 1/3 honest members locked (A, v)
//      before they went on. Take the first later view with a quorum of prepares for B ≠ A. One of its honest
//      members holds a lock (A, ≥ v) and still prepared B: it did so only for a quorum of prepares of B in a
//      view between, which is not there by choice, nor in v by 1.
//   3. View, prepare and lock are on the disk before a vote leaves, so a member that restarts keeps 1 and 2.
// Where members are too many for votes from each to each (Setup::collected), votes and NewViews go to the
// leader of their view only, and the leader shows the quorum that it found (AgreementHost::locked, on_lock;
// then the certificate). The argument is about which votes exist, not about who sees them first, and stays as
// it is: a member still commits only to what it has seen a quorum of prepares of. What is lost is that the
// others can finish when a leader dies with the votes: then it takes the next view.
// Who finds the proposal wrong, or leads and can make none, gives the view up after a tenth of its time.
//
// A member may commit to B after having committed to A in an earlier view: only with proof by 2 that A was
// not certified there. A rule "one signature per round" would be simpler and stop for ever when the votes of
// a dead leader are split.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <vector>

#include "core/base/executor.h"
#include "core/rounds/signature_checks.h"

namespace neuroshard::rounds {

// Of a round of thousands of members it is hundreds of kilobytes: held once by all that refer to it.
using QuorumPtr = std::shared_ptr<const RoundQuorum>;

// What has to survive a restart.
struct AgreementMemory {
  std::uint32_t view = 0;
  std::optional<Hash256> prepared;  // the body prepared in this view
  QuorumPtr lock;                   // null: none
};
Bytes encode_agreement_memory(const AgreementMemory& memory);
Expected<AgreementMemory> decode_agreement_memory(ByteSpan bytes, bool grouped = false);

class AgreementHost {
 public:
  virtual ~AgreementHost() = default;
  // To all other members, again and again until each has it; a later item of the same kind replaces it.
  virtual void broadcast(const RoundItem& item) = 0;
  // Keeps the memory, then calls `then`, later or at once; never when it can't be kept.
  virtual void remember(const AgreementMemory& memory, std::function<void()> then) = 0;
  // Is this body right, as far as this node itself holds and computes? Answer with judged(), any time.
  virtual void judge(const RoundBody& body) = 0;
  // This node leads: answer with propose(), any time.
  virtual void make_body() = 0;
  // Collected votes: this node found a quorum of prepares, which the others need to see.
  virtual void locked(const RoundQuorum&) {}
  // There is proof against this member that all are told, and nobody hears it any more: nobody waits for it
  // where it leads. When one becomes so, the agreement is told (leader_may_be_liar).
  virtual bool is_liar(std::size_t) const { return false; }
  // The end. The agreement may be destroyed in a later task of the executor, not in here.
  virtual void certified(const RoundCertificate& certificate) = 0;
};

// Members of a round, held once by all that need them.
class SharedMembers {
 public:
  SharedMembers(std::vector<RoundMember> members = {})
      : members_(std::make_shared<const std::vector<RoundMember>>(std::move(members))) {}
  SharedMembers(std::shared_ptr<const std::vector<RoundMember>> members) : members_(std::move(members)) {}
  const std::vector<RoundMember>& operator*() const { return *members_; }
  const std::vector<RoundMember>* operator->() const { return members_.get(); }
  const RoundMember& operator[](std::size_t i) const { return (*members_)[i]; }

 private:
  std::shared_ptr<const std::vector<RoundMember>> members_;
};

struct AgreementOptions {
  Duration first_view = std::chrono::seconds(10);  // grows by half with each view
  Duration longest_view = std::chrono::minutes(2);
};

class RoundAgreement {
 public:
  struct Setup {
    Hash256 network{};
    RoundSlot slot;
    std::uint64_t round = 0;
    Hash256 beacon{};
    SharedMembers members;
    // Votes that decide; 0: more than two thirds. Another number is for tests that show what that is for.
    std::size_t quorum = 0;
    // Votes go to the leader only, and bodies are short names that don't carry the members (grouped_body.h).
    bool collected = false;
    // leader_order(), where it is known already.
    std::shared_ptr<const std::vector<std::size_t>> order = nullptr;
    // check_signatures() of prepares, for whoever knows a quicker way to the same answer; what was checked.
    std::function<Expected<QuorumPtr>(const RoundQuorum&)> check = nullptr;
    SignatureChecks* signatures = nullptr;  // outlives the agreement; null: each is checked
  };
  // All outlive it.  Threads: the executor's.
  RoundAgreement(Setup setup, AgreementOptions options, const crypto::KeyPair& key, Executor& executor,
                 AgreementHost& host, AgreementMemory memory);

  // The contributions are closed: from now on a silent leader is replaced.
  void start();
  bool started() const { return started_; }

  // From others; the sender of a proposal or NewView is what the connection proved.
  Verdict on_proposal(const net::NodeId& from, const ProposalPost& post);
  Verdict on_vote(const VotePost& post);
  Verdict on_new_view(const net::NodeId& from, const NewViewPost& post);
  // A member works in this view, as it says itself. Of collected votes NewViews reach only their leader, so
  // this is how the others come to the view that more than a third has reached.
  void on_view(const net::NodeId& from, std::uint32_t view);
  // Collected votes: a quorum of prepares that a leader found.
  Verdict on_lock(const RoundQuorum& quorum);

  void judged(const Hash256& body, bool right);
  // Wrong, and by a proof that is told to all: nobody will sign it, so nobody waits for the end of its view.
  // A leader finds out last that what it has proposed names a liar.
  void disproved(const Hash256& body);
  void leader_may_be_liar();
  void propose(const RoundBody& body);

  std::uint32_t view() const { return memory_.view; }
  const AgreementMemory& memory() const { return memory_; }
  std::size_t leader(std::uint32_t view) const { return (*order_)[view % order_->size()]; }
  bool leads() const { return leader(memory_.view) == self_; }
  // More than two thirds have prepared it, as far as this member knows, and no other one after that.
  bool is_locked(const RoundBody& body) const { return memory_.lock && memory_.lock->body == body; }
  // The body that is voted on in this view, if it is known.
  const RoundBody* proposed() const;
  // Votes that contradict an earlier one of the same member in the same view and step.
  std::uint64_t contradictions() const { return contradictions_; }

 private:
  enum class Judgement : std::uint8_t { Pending, Right, Wrong, Disproved };
  struct KnownBody {
    RoundBody body;
    Judgement judgement = Judgement::Pending;
    std::uint32_t view = 0;
  };
  struct Vote {
    Hash256 body{};
    crypto::Signature signature{};
  };
  struct Votes {
    std::map<std::uint16_t, Vote> of;  // by member: one each
    std::map<Hash256, std::size_t> count;
  };
  struct View {
    Votes prepares, commits;
    std::optional<Hash256> proposal;
  };

  std::size_t quorum() const {
    return setup_.quorum != 0 ? setup_.quorum : quorum_size(setup_.members->size());
  }
  void know(const RoundBody& body, const Hash256& hash, std::uint32_t view);
  void enter(std::uint32_t view);
  Duration patience(std::uint32_t view) const;
  // The first view from this one on whose leader can be heard.
  std::uint32_t next_of_honest(std::uint32_t view) const;
  void arm_timer();
  void time_is_over();
  void give_up_soon();
  bool refuses_proposal() const;  // nothing comes of this view, as far as this member can see
  void say_new_view();
  void lead();
  void jump();
  bool is_absurd(std::uint32_t view) const;
  bool take_lock(const QuorumPtr& quorum);
  Verdict check_lock(const RoundQuorum& quorum, QuorumPtr* checked) const;
  void try_prepare();
  void try_commit();
  void count_prepares(std::uint32_t view);
  void count_commits(std::uint32_t view);
  std::optional<RoundQuorum> quorum_of(const Votes& votes, std::uint32_t view) const;
  void vote(VoteStep step, const Hash256& body);
  void forget_old();

  const Setup setup_;
  const AgreementOptions options_;
  const crypto::KeyPair& key_;
  Executor& executor_;
  AgreementHost& host_;
  const std::size_t self_;  // index among the members
  const std::shared_ptr<const std::vector<std::size_t>> order_;
  AgreementMemory memory_;
  bool started_ = false, done_ = false;
  std::optional<Hash256> prepare_sent_, commit_sent_;  // in this view and life
  bool asked_for_body_ = false, proposed_ = false;     // as its leader
  std::map<std::uint32_t, View> views_;
  std::map<Hash256, KnownBody> bodies_;
  std::map<std::size_t, std::uint32_t> latest_;  // NewViews by member
  std::map<std::size_t, std::uint32_t> said_;    // the same, as on_view() heard it: without their locks
  std::uint64_t contradictions_ = 0;
  bool cannot_propose_ = false;  // in this view, which it leads
  bool ahead_ = false;           // by a view; timer_ is of the one before
  std::unique_ptr<TimerHandle> timer_, soon_;
  std::shared_ptr<bool> alive_ = std::make_shared<bool>(true);
};

}  // namespace neuroshard::rounds
