#include "core/rounds/agreement.h"

#include <algorithm>

#include "core/base/check.h"

namespace neuroshard::rounds {
namespace {

constexpr std::uint32_t views_kept = 8;    // votes of earlier ones can't matter to anybody any more
constexpr int soon_part = 10;              // of a view's time, for one whose proposal is refused
constexpr std::uint32_t views_ahead = 64;  // of which votes and bodies are kept
// No clock gets so far: a view takes seconds. Where liars are a third, as may be in a sub-group, they choose
// how far, and numbers beyond would overflow.
constexpr std::uint32_t furthest_claim = 1u << 30;

std::optional<RoundQuorum> copy_of(const QuorumPtr& quorum) {
  return quorum ? std::optional<RoundQuorum>(*quorum) : std::nullopt;
}

}  // namespace

Bytes encode_agreement_memory(const AgreementMemory& memory) {
  Bytes bytes;
  append_le(bytes, memory.view);
  bytes.push_back(memory.prepared ? 1 : 0);
  if (memory.prepared) bytes.insert(bytes.end(), memory.prepared->begin(), memory.prepared->end());
  bytes.push_back(memory.lock ? 1 : 0);
  if (memory.lock) {
    const Bytes lock = encode_quorum(*memory.lock);
    bytes.insert(bytes.end(), lock.begin(), lock.end());
  }
  return bytes;
}

Expected<AgreementMemory> decode_agreement_memory(ByteSpan bytes, bool grouped) {
  const auto corrupt = [] {
    return make_error(ErrorCode::Corrupt, "what this node remembers of a round's votes can't be read");
  };
  AgreementMemory memory;
  if (bytes.size() < 6 || bytes[4] > 1) return corrupt();
  memory.view = load_le<std::uint32_t>(bytes.data());
  ByteSpan rest = bytes.subspan(5);
  if (bytes[4] == 1) {
    if (rest.size() < 33) return corrupt();
    memory.prepared.emplace();
    std::copy_n(rest.begin(), memory.prepared->size(), memory.prepared->begin());
    rest = rest.subspan(32);
  }
  if (rest[0] > 1 || (rest[0] == 0 && rest.size() != 1)) return corrupt();
  if (rest[0] == 1) {
    NS_ASSIGN_OR_RETURN(RoundQuorum lock, decode_quorum(rest.subspan(1), grouped));
    memory.lock = std::make_shared<const RoundQuorum>(std::move(lock));
  }
  return memory;
}

RoundAgreement::RoundAgreement(Setup setup, AgreementOptions options, const crypto::KeyPair& key,
                               Executor& executor, AgreementHost& host, AgreementMemory memory)
    : setup_(std::move(setup)),
      options_(options),
      key_(key),
      executor_(executor),
      host_(host),
      self_(member_index(*setup_.members, crypto::node_id(key.public_key()))),
      order_(setup_.order ? setup_.order
                          : std::make_shared<const std::vector<std::size_t>>(
                                leader_order(setup_.beacon, setup_.round, setup_.slot, *setup_.members))),
      memory_(std::move(memory)) {
  NS_CHECK(self_ < setup_.members->size());
  if (memory_.lock) know(memory_.lock->body, body_hash(memory_.lock->body), memory_.lock->view);
}

void RoundAgreement::start() {
  if (started_) return;
  started_ = true;
  arm_timer();
  if (memory_.view > 0) say_new_view();
  lead();
  if (refuses_proposal()) give_up_soon();
  leader_may_be_liar();
}

const RoundBody* RoundAgreement::proposed() const {
  const auto view = views_.find(memory_.view);
  if (view == views_.end() || !view->second.proposal) return nullptr;
  const auto body = bodies_.find(*view->second.proposal);
  return body == bodies_.end() ? nullptr : &body->second.body;
}

void RoundAgreement::know(const RoundBody& body, const Hash256& hash, std::uint32_t view) {
  const auto [at, fresh] = bodies_.try_emplace(hash, KnownBody{body, Judgement::Pending, view});
  at->second.view = std::max(at->second.view, view);
  if (fresh || at->second.judgement == Judgement::Wrong || at->second.judgement == Judgement::Disproved) {
    at->second.judgement = Judgement::Pending;
    host_.judge(body);
  }
}

Verdict RoundAgreement::on_proposal(const net::NodeId& from, const ProposalPost& post) {
  if (done_) return Verdict::Known;
  if (setup_.members[leader(post.view)].id != from) return Verdict::NotLeader;
  if (post.view < memory_.view || post.view > memory_.view + views_ahead) return Verdict::OtherView;
  if (post.body.slot != setup_.slot || post.body.round != setup_.round) return Verdict::PastRound;
  QuorumPtr lock;
  if (post.justification) {
    if (const Verdict verdict = check_lock(*post.justification, &lock); verdict != Verdict::Taken)
      return verdict;
    if (post.justification->view >= post.view) return Verdict::BadCertificate;
  }
  const Hash256 hash = body_hash(post.body);
  View& view = views_[post.view];
  if (view.proposal) return *view.proposal == hash ? Verdict::Known : Verdict::NotLeader;
  // Of a later view it waits until this node is there: one leader must not drag everybody to its view.
  view.proposal = hash;
  if (lock) take_lock(lock);
  know(post.body, hash, post.view);
  try_prepare();
  // Votes for it may have come before it.
  count_prepares(post.view);
  count_commits(post.view);
  return Verdict::Taken;
}

Verdict RoundAgreement::check_lock(const RoundQuorum& quorum, QuorumPtr* checked) const {
  if (quorum.body.slot != setup_.slot || quorum.body.round != setup_.round ||
      quorum.body.previous != setup_.beacon || quorum.body.grouped != setup_.collected ||
      (!setup_.collected && quorum.body.members != *setup_.members))
    return Verdict::BadCertificate;
  if (memory_.lock && memory_.lock->view == quorum.view && memory_.lock->body == quorum.body) {
    *checked = memory_.lock;
    return Verdict::Taken;
  }
  if (setup_.check) {
    auto holds = setup_.check(quorum);
    if (!holds.ok()) return Verdict::BadCertificate;
    *checked = std::move(*holds);
    return Verdict::Taken;
  }
  if (!check_signatures(quorum, *setup_.members, VoteStep::Prepare, setup_.network, this->quorum()).ok())
    return Verdict::BadCertificate;
  *checked = std::make_shared<const RoundQuorum>(quorum);
  return Verdict::Taken;
}

Verdict RoundAgreement::on_lock(const RoundQuorum& quorum) {
  if (done_) return Verdict::Known;
  if (quorum.view + views_kept < memory_.view || quorum.view > memory_.view + views_ahead)
    return Verdict::OtherView;
  QuorumPtr lock;
  if (const Verdict verdict = check_lock(quorum, &lock); verdict != Verdict::Taken) return verdict;
  if (quorum.view > memory_.view) enter(quorum.view);
  if (!take_lock(lock)) return Verdict::Known;
  host_.remember(memory_, [] {});
  try_commit();
  return Verdict::Taken;
}

// Whether it is a higher lock than the one held.
bool RoundAgreement::take_lock(const QuorumPtr& quorum) {
  if (memory_.lock && memory_.lock->view >= quorum->view) return false;
  memory_.lock = quorum;
  know(quorum->body, body_hash(quorum->body), quorum->view);
  return true;
}

Verdict RoundAgreement::on_vote(const VotePost& post) {
  const RoundVote& v = post.vote;
  if (done_) return Verdict::Known;
  if (post.signature.member >= setup_.members->size()) return Verdict::NotMember;
  if (v.view + views_kept < memory_.view || v.view > memory_.view + views_ahead) return Verdict::OtherView;
  Votes& votes = v.step == VoteStep::Prepare ? views_[v.view].prepares : views_[v.view].commits;
  const auto known = votes.of.find(post.signature.member);
  if (known != votes.of.end() && known->second.body == v.body) return Verdict::Known;
  const crypto::PublicKey& key = setup_.members[post.signature.member].key;
  const crypto::Signature& signature = post.signature.signature;
  if (!(setup_.signatures != nullptr ? setup_.signatures->holds(v, key, signature, setup_.network)
                                     : vote_holds(v, key, signature, setup_.network)))
    return Verdict::BadSignature;
  if (known != votes.of.end()) {
    ++contradictions_;  // the first counts
    return Verdict::TwoPayloads;
  }
  votes.of.emplace(post.signature.member, Vote{v.body, post.signature.signature});
  ++votes.count[v.body];
  if (v.step == VoteStep::Prepare)
    count_prepares(v.view);
  else
    count_commits(v.view);
  return Verdict::Taken;
}

Verdict RoundAgreement::on_new_view(const net::NodeId& from, const NewViewPost& post) {
  if (done_) return Verdict::Known;
  const std::size_t member = member_index(*setup_.members, from);
  if (member == setup_.members->size()) return Verdict::NotMember;
  // However far ahead: who was away for hours is to come there, and jump() takes more than a third for it.
  if (is_absurd(post.view)) return Verdict::OtherView;
  if (post.lock) {
    QuorumPtr lock;
    if (const Verdict verdict = check_lock(*post.lock, &lock); verdict != Verdict::Taken) return verdict;
    if (post.lock->view >= post.view) return Verdict::BadCertificate;
    if (take_lock(lock)) {
      host_.remember(memory_, [] {});
      try_prepare();
    }
  }
  const auto [latest, first] = latest_.try_emplace(member, post.view);
  if (!first && latest->second >= post.view) return Verdict::Known;
  latest->second = post.view;
  jump();
  lead();
  return Verdict::Taken;
}

void RoundAgreement::on_view(const net::NodeId& from, std::uint32_t view) {
  const std::size_t member = member_index(*setup_.members, from);
  if (done_ || member == setup_.members->size() || view <= memory_.view || is_absurd(view)) return;
  std::uint32_t& said = said_[member];
  said = std::max(said, view);
  jump();
}

bool RoundAgreement::is_absurd(std::uint32_t view) const {
  return view > std::max(furthest_claim, memory_.view + views_ahead);
}

// As many as must include an honest member have given up on this view: so does this one.
void RoundAgreement::jump() {
  std::map<std::size_t, std::uint32_t> furthest = latest_;
  for (const auto& [member, view] : said_) furthest[member] = std::max(furthest[member], view);
  std::vector<std::uint32_t> views;
  for (const auto& [member, view] : furthest) views.push_back(view);
  const std::size_t members = setup_.members->size();
  // Without so many no quorum is left: of three members it takes all.
  const std::size_t blocking = members - std::min(members, quorum()) + 1;
  const std::size_t needed = std::min(honest_size(members), blocking);
  if (views.size() < needed) return;
  std::sort(views.rbegin(), views.rend());
  if (views[needed - 1] > memory_.view) enter(next_of_honest(views[needed - 1]));
}

// Once around at most: where all lead in vain, time decides.
std::uint32_t RoundAgreement::next_of_honest(std::uint32_t view) const {
  for (std::size_t i = 0; i < order_->size(); ++i)
    if (!host_.is_liar(leader(view + static_cast<std::uint32_t>(i))))
      return view + static_cast<std::uint32_t>(i);
  return view;
}

// What it has proposed before may still be signed.
void RoundAgreement::leader_may_be_liar() {
  const auto view = views_.find(memory_.view);
  const bool proposed = view != views_.end() && view->second.proposal;
  const bool locked = memory_.lock && memory_.lock->view == memory_.view;
  if (!started_ || done_ || proposed || locked) return;
  if (const std::uint32_t next = next_of_honest(memory_.view); next > memory_.view) enter(next);
}

void RoundAgreement::enter(std::uint32_t view) {
  NS_CHECK(view > memory_.view);
  memory_.view = view;
  memory_.prepared.reset();
  prepare_sent_.reset();
  commit_sent_.reset();
  asked_for_body_ = proposed_ = false;
  started_ = true;
  ahead_ = cannot_propose_ = false;
  forget_old();
  arm_timer();
  say_new_view();
  try_prepare();
}

// Its leader makes no other proposal in this view, and only who gives up on it shows the others that it is
// over. A member alone must not run away from the others, whose views last longer: by one view it is ahead,
// until its own time for the one before would have been over.
void RoundAgreement::give_up_soon() {
  if (!started_ || done_ || ahead_ || soon_) return;
  soon_ = executor_.post_after(patience(memory_.view) / soon_part, [this, view = memory_.view] {
    const std::unique_ptr<TimerHandle> over = std::move(soon_);
    if (done_ || view != memory_.view || !refuses_proposal()) return;
    std::unique_ptr<TimerHandle> rest = std::move(timer_);
    const std::uint32_t next = next_of_honest(view + 1);
    enter(next);
    if (next != memory_.view || done_) return;
    ahead_ = true;
    soon_.reset();  // what the next leader has proposed already may be refused, too
    timer_ = std::move(rest);
  });
}

bool RoundAgreement::refuses_proposal() const {
  if (cannot_propose_) return true;
  const auto view = views_.find(memory_.view);
  if (view == views_.end() || !view->second.proposal) return false;
  const auto body = bodies_.find(*view->second.proposal);
  return body != bodies_.end() && body->second.judgement == Judgement::Wrong;
}

void RoundAgreement::say_new_view() {
  latest_[self_] = memory_.view;
  host_.remember(memory_, [this, alive = std::weak_ptr<bool>(alive_), view = memory_.view] {
    if (alive.expired() || done_ || view != memory_.view) return;
    host_.broadcast(NewViewPost{setup_.slot, setup_.round, view, copy_of(memory_.lock)});
    lead();
  });
}

Duration RoundAgreement::patience(std::uint32_t view) const {
  Duration patience = options_.first_view;
  for (std::uint32_t i = 0; i < view && patience < options_.longest_view; ++i) patience += patience / 2;
  return std::min(patience, options_.longest_view);
}

void RoundAgreement::arm_timer() {
  soon_.reset();
  timer_ = executor_.post_after(patience(memory_.view), [this] { time_is_over(); });
}

void RoundAgreement::time_is_over() {
  if (done_) return;
  if (!std::exchange(ahead_, false)) return enter(next_of_honest(memory_.view + 1));
  arm_timer();  // it was of the view before
  if (refuses_proposal()) give_up_soon();
}

void RoundAgreement::lead() {
  if (!started_ || done_ || !leads() || asked_for_body_ || proposed_) return;
  if (memory_.view > 0) {
    const auto there = std::count_if(latest_.begin(), latest_.end(),
                                     [this](const auto& latest) { return latest.second >= memory_.view; });
    if (static_cast<std::size_t>(there) < quorum()) return;
  }
  if (memory_.lock) {
    propose(memory_.lock->body);
    return;
  }
  asked_for_body_ = true;
  host_.make_body();
}

void RoundAgreement::propose(const RoundBody& body) {
  if (done_ || !leads() || proposed_) return;
  // A lock that came meanwhile goes first.
  const RoundBody& chosen = memory_.lock ? memory_.lock->body : body;
  const Hash256 hash = body_hash(chosen);
  if (memory_.prepared && *memory_.prepared != hash) {  // another one was proposed before a restart
    cannot_propose_ = true;
    return give_up_soon();
  }
  proposed_ = true;
  views_[memory_.view].proposal = hash;
  ProposalPost post{memory_.view, chosen, copy_of(memory_.lock)};
  host_.broadcast(post);
  know(post.body, hash, memory_.view);
  try_prepare();
}

void RoundAgreement::judged(const Hash256& body, bool right) {
  const auto at = bodies_.find(body);
  if (done_ || at == bodies_.end() || at->second.judgement == Judgement::Right) return;
  at->second.judgement = right ? Judgement::Right : Judgement::Wrong;
  try_prepare();
  try_commit();
}

void RoundAgreement::disproved(const Hash256& body) {
  const auto at = bodies_.find(body);
  if (done_ || at == bodies_.end() || at->second.judgement == Judgement::Right) return;
  at->second.judgement = Judgement::Disproved;
  try_prepare();
}

void RoundAgreement::try_prepare() {
  const auto view = views_.find(memory_.view);
  if (view == views_.end() || !view->second.proposal || prepare_sent_) return;
  const Hash256 hash = *view->second.proposal;
  const auto body = bodies_.find(hash);
  if (refuses_proposal()) give_up_soon();
  if (body == bodies_.end()) return;
  // What a quorum has prepared is judged anew, by its arithmetic only.
  if (body->second.judgement == Judgement::Disproved && !is_locked(body->second.body))
    return enter(next_of_honest(memory_.view + 1));
  if (body->second.judgement != Judgement::Right) return;
  if (memory_.prepared && *memory_.prepared != hash) return;
  if (memory_.lock && !(memory_.lock->body == body->second.body)) return;
  memory_.prepared = hash;
  prepare_sent_ = hash;
  vote(VoteStep::Prepare, hash);
}

void RoundAgreement::vote(VoteStep step, const Hash256& body) {
  host_.remember(memory_, [this, alive = std::weak_ptr<bool>(alive_), step, body, view = memory_.view] {
    if (alive.expired() || done_ || view != memory_.view) return;
    const RoundVote vote{step, setup_.slot, setup_.round, view, body};
    const VotePost post{vote, {static_cast<std::uint16_t>(self_), sign_vote(vote, key_, setup_.network)}};
    host_.broadcast(post);
    on_vote(post);
  });
}

std::optional<RoundQuorum> RoundAgreement::quorum_of(const Votes& votes, std::uint32_t view) const {
  for (const auto& [hash, count] : votes.count) {
    const auto body = count < quorum() ? bodies_.end() : bodies_.find(hash);
    if (body == bodies_.end()) continue;
    RoundQuorum quorum{body->second.body, view, {}};
    for (const auto& [member, vote] : votes.of)
      if (vote.body == hash) quorum.signatures.push_back({member, vote.signature});
    return quorum;
  }
  return std::nullopt;
}

void RoundAgreement::count_prepares(std::uint32_t view) {
  if (memory_.lock && memory_.lock->view == view) {
    try_commit();  // no view has two quorums of prepares
    return;
  }
  auto found = quorum_of(views_[view].prepares, view);
  if (!found) return;
  const auto quorum = std::make_shared<const RoundQuorum>(std::move(*found));
  if (view > memory_.view) enter(view);
  if (take_lock(quorum)) {
    host_.remember(memory_, [] {});
    if (setup_.collected) host_.locked(*quorum);
  }
  try_commit();
}

void RoundAgreement::try_commit() {
  if (!memory_.lock || memory_.lock->view != memory_.view || commit_sent_) return;
  const Hash256 hash = body_hash(memory_.lock->body);
  const auto body = bodies_.find(hash);
  if (body == bodies_.end() || body->second.judgement != Judgement::Right) return;
  commit_sent_ = hash;
  vote(VoteStep::Commit, hash);
}

void RoundAgreement::count_commits(std::uint32_t view) {
  if (done_) return;
  const auto quorum = quorum_of(views_[view].commits, view);
  if (!quorum) return;
  done_ = true;
  timer_.reset();
  host_.certified(*quorum);
}

void RoundAgreement::forget_old() {
  if (memory_.view > views_kept) views_.erase(views_.begin(), views_.lower_bound(memory_.view - views_kept));
  for (auto at = bodies_.begin(); at != bodies_.end();) {
    const bool locked = memory_.lock && body_hash(memory_.lock->body) == at->first;
    at = !locked && at->second.view + views_kept < memory_.view ? bodies_.erase(at) : std::next(at);
  }
}

}  // namespace neuroshard::rounds
