#include "core/rounds/grouped_node.h"

#include <algorithm>

#include "core/base/check.h"
#include "core/crypto/hash.h"
#include "core/rounds/detail/grouped_level.h"
#include "core/rounds/detail/outbox_keys.h"
#include "core/rounds/detail/reader.h"

namespace neuroshard::rounds {
GroupedBase grouped_genesis(const RoundSlot& slot, const Hash256& anchor,
                            std::vector<crypto::PublicKey> founders) {
  std::vector<RoundMember> members;
  for (const crypto::PublicKey& key : founders) members.push_back(make_member(key));
  GroupedBase base;
  base.anchor = anchor;
  base.roster = make_roster(std::move(members));
  Bytes bytes = {'N', 'S', 'G', 'G', '1'};
  append_slot(bytes, slot);
  append_array(bytes, anchor);
  append_array(bytes, base.roster->hash);
  base.tip = crypto::sha256(bytes);
  return base;
}

GroupedNode::GroupedNode(RoundServices services, GroupedCommons& commons, GroupedOptions options,
                         KnownState known, std::uint64_t seed, Certified certified)
    : RoundParticipant(services, options, std::move(known), seed),
      commons_(commons),
      options_(std::move(options)),
      on_certified_(std::move(certified)) {
  NS_CHECK(options_.genesis.roster);
}

GroupedNode::~GroupedNode() = default;

void GroupedNode::start() {
  tip_ = options_.genesis;
  // Polls are spread, or all would ask at once.
  next_poll_ =
      services_.clock.monotonic_now() +
      Duration(static_cast<Duration::rep>(rng_.below(static_cast<std::uint64_t>(options_.poll.count()))));
  restore();
  open_round();
  settle_state();
  tick();
}

void GroupedNode::tick() {
  outbox_.pump();
  poll();
  advance();
  pump_bundles(true);
  timer_ = services_.executor.post_after(options_.tick, [this] { tick(); });
}

void GroupedNode::advance() {
  settle_state();
  post_change();
  if (!is_member() || !training_ || !group_level_->agreement) return;
  check_close();
  go_provisional();
  review_group();
  try_group_body();
  speak();
  pump_bundles(false);
  try_top_body();
  review_top();
}

std::size_t GroupedNode::leader() const {
  const RoundAgreement& agreement = *group_level_->agreement;
  return agreement.leader(agreement.view());
}

void GroupedNode::send(std::uint32_t key, const RoundItem& item, const std::vector<net::NodeId>& to) {
  outbox_.put(key, std::make_shared<const Bytes>(encode_grouped_post(GroupPost{encode_item(item)})), to);
}

// A round was certified, or this node begins: what comes next.
void GroupedNode::open_round() {
  round_ = tip_.round + 1;
  deal_ = commons_.deal(tip_.tip, round_, options_.rules.slot, tip_.roster);
  index_ = roster_index(roster(), self_);
  group_ = is_member() ? deal_->group_of[index_] : std::uint16_t{0};
  if (contributions_)
    for (const auto& [id, sequence] : contributions_->sequences()) sequences_[id] = sequence;
  previous_contributions_ = std::move(contributions_);
  contributions_.emplace(options_.rules, round_, tip_.anchor, group(), sequences_, &commons_);
  outbox_.clear();
  for (auto at = aggregates_.begin(); at != aggregates_.end();)
    at = at->second.round + 1 < round_ ? aggregates_.erase(at) : std::next(at);
  contents_.clear();
  results_.clear();
  own_result_.reset();
  unreachable_.clear();
  bundles_.clear();
  proposal_.reset();
  spoke_in_.reset();
  asked_.clear();
  failed_.clear();
  training_ = boundary_asked_ = closed_ = evidence_sent_ = false;
  want_group_body_ = making_group_body_ = want_top_body_ = making_top_body_ = false;
  AgreementMemory group_memory, top_memory;
  if (memory_round_ > round_) {
    abstain_ = std::max(abstain_.value_or(0), memory_round_ - 1);
  } else if (memory_round_ < round_) {
    memory_round_ = round_;
    own_.reset();
  } else if (group_level_) {
    group_memory = group_level_->memory;
    top_memory = top_level_->memory;
  }
  group_level_ = std::make_unique<Level>(*this, false);
  top_level_ = std::make_unique<Level>(*this, true);
  group_level_->memory = group_memory;
  top_level_->memory = top_memory;
  forget_old_changes();
  if (!is_member()) next_change_ = {};
  if (!is_member() || (abstain_ && round_ <= *abstain_)) return;
  RoundAgreement::Setup below{commons_.network(), options_.rules.slot, round_, group_beacon(tip_.tip, group_),
                              SharedMembers(deal_->groups[group_])};
  below.signatures = &commons_;
  group_level_->agreement.emplace(std::move(below), options_.group, services_.key, services_.executor,
                                  *group_level_, group_memory);
  RoundAgreement::Setup top{
      commons_.network(), options_.rules.slot, round_, tip_.tip,
      SharedMembers(std::shared_ptr<const std::vector<RoundMember>>(tip_.roster, &tip_.roster->members))};
  top.quorum = commons_.least();
  top.collected = true;
  top.signatures = &commons_;
  top.order = deal_->leaders;
  top.check = [this](const RoundQuorum& quorum) { return commons_.check(quorum, VoteStep::Prepare, *deal_); };
  top_level_->agreement.emplace(std::move(top), options_.top, services_.key, services_.executor, *top_level_,
                                top_memory);
}

// The state of the newest certificate is here.
void GroupedNode::begin_training() {
  if (training_ || !is_member()) return;
  training_ = true;
  opened_ = services_.clock.monotonic_now();
  const Carry carry = counted_ ? (provisional_ ? Carry::SinceBoundary : Carry::Nothing)
                      : provisional_ || group_left_out_ ? Carry::Everything
                                                        : Carry::Nothing;
  services_.learner.start({round_, state_, carry, counted_});
  provisional_ = counted_ = group_left_out_ = false;
  contribute_again();
}

void GroupedNode::check_close() {
  const MonotonicTime now = services_.clock.monotonic_now();
  const std::uint32_t steps = services_.learner.progress().steps;
  if (!own_ && !boundary_asked_ && steps >= options_.rules.inner_steps) contribute();
  if (closed_) return;
  const std::size_t members = group().size();
  const bool all = contributions_->announced() == members;
  if (!all && contributions_->full() < quorum_size(members) && now - opened_ < deadline()) return;
  if (!own_ && !boundary_asked_ && steps >= least_steps(options_.rules.inner_steps)) contribute();
  close(now, true);
  group_level_->agreement->start();
  top_level_->agreement->start();
}

// Who is no member asks the next leaders to be one; not all members, who may be thousands.
void GroupedNode::post_change() {
  const MonotonicTime now = services_.clock.monotonic_now();
  if (is_member() || !options_.join || now < next_change_ || !state_ || !state_checked_) return;
  next_change_ = now + 4 * options_.poll;
  const RoundChange change = sign_change(RoundChange::Kind::Join, options_.rules.slot, tip_.round,
                                         services_.key, commons_.network());
  std::vector<net::NodeId> leaders;
  for (std::uint32_t view = 0; view < 3; ++view) leaders.push_back(roster().members[deal_->leader(view)].id);
  for (const net::NodeId& id : some_members(5)) leaders.push_back(id);
  send(change_key, ChangePost{options_.rules.slot, change}, leaders);
}

RoundStatus GroupedNode::status() const {
  RoundStatus status;
  status.round = tip_.round;
  status.tip = tip_.tip;
  status.genesis = options_.genesis.tip;
  status.tokens = tip_.tokens;
  status.anchor = state_hash_;
  status.view = top_level_ && top_level_->agreement ? top_level_->agreement->view() : 0;
  status.member = is_member();
  status.phase = phase(provisional_ && status.member, status.member);
  return status;
}

}  // namespace neuroshard::rounds
