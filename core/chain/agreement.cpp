#include "core/chain/agreement.h"

#include <algorithm>
#include <utility>

#include "core/base/check.h"

namespace neuroshard::chain {
namespace {

// No clock gets so far: a view takes seconds. Numbers beyond would overflow.
constexpr std::uint32_t furthest_claim = 1u << 30;
constexpr std::uint32_t absurd_lead = 64;

std::optional<Quorum> copy_of(const QuorumPtr& quorum) {
  return quorum ? std::optional<Quorum>(*quorum) : std::nullopt;
}

Proposal proposal_of(const AgreementMemory& memory, const BlockPtr& block,
                     const std::optional<crypto::Signature>& prepare) {
  const bool justified = memory.lock && memory.lock->block == block->hash;
  return {memory.view, block, justified ? copy_of(memory.lock) : std::nullopt,
          justified ? copy_of(memory.full_lock) : std::nullopt, prepare};
}

bool is_absurd(std::uint32_t view, std::uint32_t present) {
  return view > std::max(furthest_claim, present + absurd_lead);
}

// The newest lock, `now`, names votes that this member may have got otherwise. before: the newest one until this
// item came.
std::vector<Evidence> contradictions_of(const AgreementItem& item, const QuorumPtr& before,
                                        const QuorumPtr& now, const VoteLedger& votes,
                                        const Committee& committee) {
  if (!now) return {};
  if (now != before) return votes.contradictions(*now);
  const auto* vote = std::get_if<SignedVote>(&item);
  if (vote == nullptr) return {};
  const crypto::PublicKey& key = committee.members()[*committee.position(vote->voter)].key;
  const auto both = contradiction(key, *vote, *now);
  return both ? std::vector<Evidence>{*both} : std::vector<Evidence>();
}

// The first view from this one on whose leader can be heard. Once around at most: where all lead in vain, time
// decides.
std::uint32_t next_of_honest(const Committee& committee, const AgreementHost& host, std::uint32_t view) {
  for (std::uint32_t i = 0; i < committee.size(); ++i)
    if (!host.is_byzantine(committee.leader(view + i))) return view + i;
  return view;
}

}  // namespace

Agreement::Agreement(Setup setup, AgreementOptions options, const crypto::KeyPair& key, Executor& executor,
                     AgreementHost& host, AgreementMemory memory)
    : setup_(std::move(setup)),
      key_(key),
      host_(host),
      voting_(setup_.height, setup_.previous, std::move(memory)),
      rules_({setup_.network, setup_.height, setup_.previous}, setup_.committee, *setup_.checks),
      votes_(setup_.committee),
      claims_(setup_.committee),
      clock_(options, executor,
             {[this] { enter(next_of_honest(*setup_.committee, host_, voting_.view() + 1)); },
              [this] { give_up(); },
              [this] {
                leading_.waited();
                lead();
              }}) {
  NS_CHECK(setup_.self < setup_.committee->size() &&
           setup_.committee->members()[setup_.self].key == key.public_key());
}

void Agreement::start() {
  if (phase_ != Phase::Waiting) return;
  phase_ = Phase::Running;
  clock_.begin(voting_.view());
  if (memory().lock) consider(memory().block, memory().lock->view);
  if (voting_.view() > 0) join_view();
  start_clock();
  lead();
  byzantine_member_found();
}

void Agreement::stall() {
  if (phase_ == Phase::Done || !rules_.stall()) return;
  for (const std::uint32_t view : votes_.views()) {
    count_prepares(view);
    count_commits(view);
  }
  start_clock();
  lead();
}

BlockPtr Agreement::proposed() const {
  const auto block = proposals_.block_of(voting_.view());
  return block ? blocks_.find(*block) : nullptr;
}

Verdict Agreement::on_item(std::size_t from, const AgreementItem& item) {
  if (phase_ == Phase::Done) return Verdict::Known;
  if (from >= setup_.committee->size()) return Verdict::NotMember;
  const QuorumPtr before = voting_.newest().prepares;
  Verdict verdict = Verdict::Taken;
  if (const auto* proposal = std::get_if<Proposal>(&item))
    verdict = on_proposal(from, *proposal);
  else if (const auto* vote = std::get_if<SignedVote>(&item))
    verdict = on_vote(*vote);
  else if (const auto* new_view = std::get_if<NewView>(&item))
    verdict = on_new_view(from, *new_view);
  else
    verdict = on_locked(std::get<Locked>(item));
  if (verdict != Verdict::Taken) return verdict;
  for (const Evidence& evidence :
       contradictions_of(item, before, voting_.newest().prepares, votes_, *setup_.committee)) {
    votes_.convict(*setup_.committee->position(crypto::node_id(evidence.node)));
    host_.found_evidence(evidence);
  }
  return verdict;
}

Verdict Agreement::on_proposal(std::size_t from, const Proposal& proposal) {
  if (!proposal.block) return Verdict::Malformed;
  const BlockHeader& header = proposal.block->header;
  if (const Verdict verdict = rules_.place_of(header.height, header.previous); verdict != Verdict::Taken)
    return verdict;
  if (setup_.committee->leader(proposal.view) != from && !proposal.prepare) return Verdict::NotLeader;
  if (proposal.view < voting_.view() || is_absurd(proposal.view, voting_.view())) return Verdict::OtherView;
  if (proposal.view > voting_.view() + proposals_ahead) return Verdict::Later;
  const Verdict compared = proposals_.compare(proposal);
  if (compared == Verdict::Known) return compared;
  if (proposal.justification &&
      (proposal.justification->view > proposal.view || proposal.justification->block != proposal.block->hash))
    return Verdict::BadCertificate;
  // A relayed proposal is the leader's if its prepare is. Two prepares for two proposals are evidence.
  if (const std::size_t leader = setup_.committee->leader(proposal.view); leader != from) {
    const Vote vote{VoteStep::Prepare, setup_.height, setup_.previous, proposal.view, proposal.block->hash};
    const Verdict verdict = on_vote({vote, setup_.committee->members()[leader].number, *proposal.prepare});
    if (verdict != Verdict::Taken && verdict != Verdict::Known) return verdict;
  }
  if (compared != Verdict::Taken || phase_ == Phase::Done) return compared;
  if (proposal.view <= voting_.view() + 1) return take_proposal(proposal);
  proposals_.hold(proposal);
  return Verdict::Taken;
}

// Of this view or the next. It brings nobody to its view: one leader must not drag the others along.
Verdict Agreement::take_proposal(const Proposal& proposal) {
  std::optional<Lock> lock;
  if (proposal.justification) {
    const Verdict verdict =
        rules_.check(*proposal.justification, proposal.full, proposal.block, voting_.lock(), &lock);
    // Without a stall the block is as good as any other proposal, only its lock says nothing yet.
    if (verdict != Verdict::Taken && verdict != Verdict::Later) return verdict;
  }
  const std::uint32_t view = proposal.view;
  proposals_.take(view, proposal.block->hash);
  blocks_.know(proposal.block, view);
  if (lock && view == voting_.view())
    take_lock(*lock);
  else if (lock)
    learn_lock(*lock);
  if (phase_ == Phase::Done) return Verdict::Taken;
  consider(proposal.block, view);
  try_prepare();
  // Votes for it may have come before it.
  count_prepares(view);
  count_commits(view);
  return Verdict::Taken;
}

// Other than by the proposal of this view. Whether it is a higher lock than all that are known; it need not
// count yet. A leader that has not proposed takes all that it learns.
bool Agreement::learn_lock(const Lock& lock) {
  const bool is_late = lock.prepares->view < voting_.view() && (!leads() || leading_.has_proposed());
  if (!is_late) return take_lock(lock);
  if (!voting_.take_late(lock)) return false;
  blocks_.know(lock.block, lock.prepares->view);
  consider(lock.block, lock.prepares->view);
  return true;
}

// Whether it is a higher lock than the one held. So many members were in its view that this one goes there.
bool Agreement::take_lock(const Lock& lock) {
  if (!voting_.take(lock)) return false;
  const std::uint32_t view = lock.prepares->view;
  blocks_.know(lock.block, view);
  if (view > voting_.view())
    enter(view);
  else
    host_.remember(memory(), [] {});
  if (phase_ != Phase::Done) consider(lock.block, view);
  return true;
}

Verdict Agreement::on_locked(const Locked& item) {
  const std::uint32_t view = item.prepares.view;
  if (is_absurd(view, voting_.view()) || view + std::uint64_t{views_kept} < voting_.view())
    return Verdict::OtherView;
  const BlockPtr block = blocks_.find(item.prepares.block);
  if (!block) return Verdict::Later;  // the proposal is on its way
  std::optional<Lock> lock;
  const Verdict verdict = rules_.check(item.prepares, item.full, block, voting_.newest(), &lock);
  if (verdict != Verdict::Taken) return verdict;
  if (!lock || !learn_lock(*lock)) return Verdict::Known;
  try_prepare();
  try_commit();
  return Verdict::Taken;
}

Verdict Agreement::on_vote(const SignedVote& vote) {
  const Vote& v = vote.vote;
  if (v.step != VoteStep::Prepare && v.step != VoteStep::Commit) return Verdict::Malformed;
  if (const Verdict verdict = rules_.place_of(v.height, v.previous); verdict != Verdict::Taken)
    return verdict;
  const auto position = setup_.committee->position(vote.voter);
  if (!position) return Verdict::NotMember;
  if (is_absurd(v.view, voting_.view()) || v.view + std::uint64_t{views_kept} < voting_.view())
    return Verdict::OtherView;
  if (v.view > voting_.view() + votes_ahead) return Verdict::Later;
  const SignedVote* known = votes_.find(*position, v.step, v.view);
  if (known != nullptr && known->vote == v) return Verdict::Known;
  if (known != nullptr && votes_.is_convicted(*position)) return Verdict::Equivocation;
  const crypto::PublicKey& key = setup_.committee->members()[*position].key;
  if (!setup_.checks->vote(vote, key, setup_.network)) return Verdict::BadSignature;
  if (known != nullptr) {  // the first counts
    votes_.convict(*position);
    host_.found_evidence(evidence_of(key, *known, vote));
    return Verdict::Equivocation;
  }
  votes_.add(*position, vote);
  if (v.step == VoteStep::Prepare)
    count_prepares(v.view);
  else
    count_commits(v.view);
  return Verdict::Taken;
}

Verdict Agreement::on_new_view(std::size_t from, const NewView& item) {
  if (const Verdict verdict = rules_.place_of(item.height, item.previous); verdict != Verdict::Taken)
    return verdict;
  if (item.lock.has_value() != (item.block != nullptr) || (item.full && !item.lock))
    return Verdict::Malformed;
  // However far ahead: a member that was away for hours is to come there, and jump() takes a third for it.
  if (is_absurd(item.view, voting_.view())) return Verdict::OtherView;
  Verdict verdict = Verdict::Known;
  if (item.lock) {
    const BlockHeader& header = item.block->header;
    if (rules_.place_of(header.height, header.previous) != Verdict::Taken || item.lock->view > item.view)
      return Verdict::BadCertificate;
    std::optional<Lock> lock;
    verdict = rules_.check(*item.lock, item.full, item.block, voting_.newest(), &lock);
    if (verdict != Verdict::Taken && verdict != Verdict::Later) return verdict;
    if (lock && learn_lock(*lock)) {
      try_prepare();
      try_commit();
    }
    if (phase_ == Phase::Done) return verdict;
  }
  if (claims_.join(from, item.view) && verdict == Verdict::Known) verdict = Verdict::Taken;
  jump();
  start_clock();
  lead();
  return verdict;
}

void Agreement::on_view(std::size_t from, std::uint32_t view) {
  if (phase_ == Phase::Done || from >= setup_.committee->size() || view < voting_.view() ||
      is_absurd(view, voting_.view()))
    return;
  claims_.say(from, view);
  jump();
  start_clock();
}

// As many as must include an honest member have given up on the views before: so does this one.
void Agreement::jump() {
  const auto reached = claims_.reached();
  if (reached && *reached > voting_.view() && phase_ != Phase::Done)
    enter(next_of_honest(*setup_.committee, host_, *reached));
}

// A block that it proposed before may still be certified.
void Agreement::byzantine_member_found() {
  if (phase_ != Phase::Running || proposals_.block_of(voting_.view()) ||
      (memory().lock && memory().lock->view == voting_.view()))
    return;
  if (const std::uint32_t next = next_of_honest(*setup_.committee, host_, voting_.view());
      next > voting_.view())
    enter(next);
}

void Agreement::enter(std::uint32_t view) {
  NS_CHECK(phase_ != Phase::Done);
  voting_.enter(view);
  leading_.begin();
  phase_ = Phase::Running;
  forget_old();
  clock_.begin(view);
  join_view();
  for (std::uint32_t i = view; i <= view + 1; ++i) {
    if (phase_ == Phase::Done || voting_.view() != view) return;
    if (const auto held = proposals_.release(i)) take_proposal(*held);
  }
  if (phase_ != Phase::Done) try_prepare();
}

// Members beyond view 0 wait there for a quorum. Where the leader collects the NewViews nobody else counts them,
// and the time runs at once.
void Agreement::start_clock() {
  if (phase_ != Phase::Running || clock_.runs()) return;
  if (voting_.view() > 0 && !setup_.committee->is_collected() &&
      !rules_.suffices(claims_.units_in(voting_.view())))
    return;
  clock_.start();
  if (refuses_proposal()) clock_.give_up_soon();
}

// The leader makes no other proposal in this view, and only a member that gives up on it shows the others
// that it is over. Where it does not wait for the others in the next view, it waits for them in this one.
void Agreement::give_up() {
  if (phase_ == Phase::Running && refuses_proposal() && !setup_.committee->is_collected())
    enter(next_of_honest(*setup_.committee, host_, voting_.view() + 1));
}

// Nothing comes of this view, as far as this member can see.
bool Agreement::refuses_proposal() const {
  if (leading_.has_nothing()) return true;
  const auto block = proposals_.block_of(voting_.view());
  return block && blocks_.judgement(*block, demand(*block, voting_.view())) == Judgement::Wrong;
}

void Agreement::join_view() {
  claims_.join(setup_.self, voting_.view());
  start_clock();
  host_.remember(memory(), [this, life = lifetime_.token(), view = voting_.view()] {
    if (!life.alive() || phase_ == Phase::Done || view != voting_.view()) return;
    send_new_view();
    lead();
  });
}

void Agreement::send_new_view() {
  NewView item;
  item.height = setup_.height;
  item.previous = setup_.previous;
  item.view = voting_.view();
  if (!setup_.committee->is_collected()) host_.send(item, std::nullopt);
  const bool says_more = memory().lock || setup_.committee->is_collected();
  if (leads() || !says_more) return;
  item.lock = copy_of(memory().lock);
  item.block = memory().block;
  item.full = copy_of(memory().full_lock);
  host_.send(item, setup_.committee->leader(voting_.view()));
}

void Agreement::lead() {
  if (phase_ != Phase::Running || !leads()) return;
  const std::uint64_t units =
      voting_.view() == 0 ? setup_.committee->units() : claims_.joined_units(voting_.view());
  const LeaderTask::Support support{rules_.suffices(units), rules_.is_full(units),
                                    units == setup_.committee->units()};
  const bool presence_first = rules_.is_stalled() && voting_.view() > 0;
  switch (leading_.next(support, memory().lock != nullptr, presence_first)) {
    case LeaderTask::Step::Nothing: return;
    case LeaderTask::Step::WaitForOthers: return clock_.wait_for_others();
    case LeaderTask::Step::ProposeLock: return put_forward(memory().block);
    case LeaderTask::Step::AskPresence: return host_.make_block(true);
    case LeaderTask::Step::AskAny: return host_.make_block(false);
  }
}

void Agreement::propose(const BlockPtr& block) {
  if (phase_ != Phase::Running || !leads()) return;
  if (!leading_.has_asked()) return;                      // an answer to the question of another view
  if (memory().lock) return put_forward(memory().block);  // it came meanwhile
  if (block && leading_.has_asked_presence() && !block->body.is_presence_only()) return;
  if (block) return put_forward(block);
  leading_.found_nothing();
  lead();
  if (refuses_proposal()) clock_.give_up_soon();
}

void Agreement::put_forward(const BlockPtr& block) {
  if (voting_.has_prepared_other(block->hash)) {  // another one was proposed before a restart
    leading_.cannot_propose();
    return clock_.give_up_soon();
  }
  leading_.proposed();
  const std::uint32_t view = voting_.view();
  proposals_.take(view, block->hash);
  // In a large committee with the prepare: vote().
  if (!setup_.committee->is_collected()) host_.send(proposal_of(memory(), block, std::nullopt), std::nullopt);
  blocks_.know(block, view);
  consider(block, view);
  try_prepare();
}

Demand Agreement::demand(const Hash256& block, std::uint32_t view) const {
  if (voting_.has_lock_of(block)) return Demand::Nothing;
  return view < first_lenient_view ? Demand::Everything : Demand::Presence;
}

void Agreement::consider(const BlockPtr& block, std::uint32_t view) {
  const Demand demanded = demand(block->hash, view);
  if (blocks_.ask(block->hash, demanded)) host_.judge(block, demanded);
}

void Agreement::judged(const Hash256& block, Demand demanded, bool right) {
  if (phase_ == Phase::Done) return;
  blocks_.answer(block, demanded, right);
  try_prepare();
  try_commit();
}

void Agreement::try_prepare() {
  const auto block = proposals_.block_of(voting_.view());
  if (phase_ == Phase::Done || !block || voting_.has_prepared()) return;
  if (refuses_proposal()) clock_.give_up_soon();
  if (blocks_.judgement(*block, demand(*block, voting_.view())) != Judgement::Right) return;
  if (voting_.prepare(*block)) vote(VoteStep::Prepare, *block);
}

void Agreement::try_commit() {
  const auto block = voting_.committable();
  if (phase_ == Phase::Done || !block) return;
  if (blocks_.judgement(*block, Demand::Nothing) != Judgement::Right) return;
  voting_.commit();
  vote(VoteStep::Commit, *block);
}

void Agreement::vote(VoteStep step, const Hash256& block) {
  host_.remember(memory(), [this, life = lifetime_.token(), step, block, view = voting_.view()] {
    if (!life.alive() || phase_ == Phase::Done || view != voting_.view()) return;
    const CommitteeMember& self = setup_.committee->members()[setup_.self];
    const SignedVote vote =
        sign_vote({step, setup_.height, setup_.previous, view, block}, self.number, key_, setup_.network);
    if (!setup_.committee->is_collected())
      host_.send(vote, std::nullopt);
    else if (!leads())
      host_.send(vote, setup_.committee->leader(view));
    else if (const BlockPtr proposal = blocks_.find(block); proposal && step == VoteStep::Prepare)
      host_.send(proposal_of(memory(), proposal, vote.signature), std::nullopt);
    if (votes_.find(setup_.self, step, view) == nullptr) votes_.add(setup_.self, vote);
    step == VoteStep::Prepare ? count_prepares(view) : count_commits(view);
  });
}

// The block that has enough votes of a view, if it is known.
BlockPtr Agreement::chosen(VoteStep step, std::uint32_t view) const {
  const auto leading = votes_.leading(step, view);
  return leading && rules_.suffices(leading->units) ? blocks_.find(leading->block) : nullptr;
}

void Agreement::count_prepares(std::uint32_t view) {
  if (phase_ == Phase::Done) return;
  if (voting_.has_lock_from(view)) return try_commit();  // no view has two locks
  const Lock held = voting_.newest();
  if (held.prepares && held.prepares->view >= view) return;
  const BlockPtr block = chosen(VoteStep::Prepare, view);
  if (!block) return;
  const Quorum prepares = votes_.quorum(VoteStep::Prepare, view, block->hash);
  auto lock = rules_.lock_of(prepares, block, held);
  if (!lock && voting_.has_late_lock()) lock = rules_.lock_of(prepares, block, voting_.lock());
  if (!lock || !learn_lock(*lock) || phase_ == Phase::Done) return;
  if (setup_.committee->is_collected())
    host_.send(Locked{*lock->prepares, copy_of(lock->full)}, std::nullopt);
  try_prepare();
  try_commit();
}

void Agreement::count_commits(std::uint32_t view) {
  if (phase_ == Phase::Done) return;
  const BlockPtr block = chosen(VoteStep::Commit, view);
  if (!block) return;
  const Quorum commits = votes_.quorum(VoteStep::Commit, view, block->hash);
  auto certificate = rules_.certificate_of(commits, *block, voting_.lock());
  if (!certificate && voting_.has_late_lock())
    certificate = rules_.certificate_of(commits, *block, voting_.newest());
  if (!certificate) return;
  phase_ = Phase::Done;
  clock_.stop();
  host_.certified(block, *certificate);
}

void Agreement::forget_old() {
  const std::uint32_t first = voting_.view() - std::min(voting_.view(), views_kept);
  proposals_.forget_before(first, voting_.view());
  votes_.forget_before(first);
  blocks_.forget_before(first, memory().lock ? &memory().lock->block : nullptr);
}

}  // namespace neuroshard::chain
