#include "core/rounds/grouped_node.h"

#include <algorithm>

#include "core/base/check.h"
#include "core/rounds/detail/grouped_level.h"
#include "core/rounds/detail/outbox_keys.h"

namespace neuroshard::rounds {
namespace {

constexpr std::size_t all_are_told = 64;  // members, when one goes

}  // namespace

GroupedNode::GroupedNode(RoundServices services, GroupedCommons& commons, GroupedOptions options,
                         KnownState known, std::uint64_t seed, RoundCertified certified)
    : RoundParticipant(services, options, std::move(known), seed, std::move(certified)),
      commons_(commons),
      options_(std::move(options)) {}

GroupedNode::~GroupedNode() = default;

bool GroupedNode::begin_history() {
  NS_CHECK(options_.base);
  chain_.emplace(network_, *options_.base);
  // Polls are spread, or all would ask at once.
  next_poll_ +=
      Duration(static_cast<Duration::rep>(rng_.below(static_cast<std::uint64_t>(options_.poll.count()))));
  return true;
}

void GroupedNode::advance() {
  settle_state();
  post_change();
  train_outside();
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

KeptVotes GroupedNode::votes() const {
  KeptVotes votes{memory_round_, sequence_, own_, true, group_memory_, top_memory_, nullptr};
  const auto content = top_memory_.lock ? contents_.find(top_memory_.lock->body.anchor) : contents_.end();
  if (content != contents_.end()) votes.content = content->second.bytes;
  return votes;
}

void GroupedNode::take_votes(KeptVotes votes) {
  group_memory_ = std::move(votes.first);
  top_memory_ = std::move(votes.top);
  kept_content_ = std::move(votes.content);
}

bool GroupedNode::takes_part() const {
  return group_level_ && group_level_->agreement;
}

std::uint32_t GroupedNode::view_number() const {
  return top_level_ && top_level_->agreement ? top_level_->agreement->view() : 0;
}

// A round was certified, or this node begins: what comes next.
void GroupedNode::open_round() {
  deal_ = commons_.deal(chain_->tip_hash(), tip_round() + 1, options_.rules.slot, chain_->roster());
  index_ = roster_index(roster(), self_);
  group_ = is_member() ? deal_->group_of[index_] : std::uint16_t{0};
  reset_round();
  contributions_.emplace(options_.rules, round_, tip_anchor(), group(), sequences_, &commons_);
  for (auto at = aggregates_.begin(); at != aggregates_.end();)
    at = at->second.round + 1 < round_ ? aggregates_.erase(at) : std::next(at);
  contents_.clear();
  results_.clear();
  own_result_.reset();
  unreachable_.clear();
  bundles_.clear();
  proposal_.reset();
  spoke_in_.reset();
  failed_.clear();
  tip_gathering_ = {};
  want_group_body_ = making_group_body_ = want_top_body_ = making_top_body_ = false;
  group_level_ = std::make_unique<Level>(*this, false);
  top_level_ = std::make_unique<Level>(*this, true);
  if (is_member() && !unfit() && (!abstain_ || round_ > *abstain_)) open_agreements();
}

void GroupedNode::open_agreements() {
  // Should the power have gone for all at once, nobody else has it.
  if (const Payload kept = std::exchange(kept_content_, nullptr)) {
    const auto body = commons_.body(*kept, *deal_);
    if (body.ok()) keep_content(commons_.hash(*kept), Bytes(*kept), *body);
  }
  RoundAgreement::Setup below{network_, options_.rules.slot, round_, group_beacon(chain_->tip_hash(), group_),
                              SharedMembers(deal_->groups[group_])};
  below.signatures = &commons_;
  group_level_->agreement.emplace(std::move(below), options_.group, services_.key, services_.executor,
                                  *group_level_, group_memory_);
  const RosterPtr& all = chain_->roster();
  RoundAgreement::Setup top{
      network_, options_.rules.slot, round_, chain_->tip_hash(),
      SharedMembers(std::shared_ptr<const std::vector<RoundMember>>(all, &all->members))};
  top.quorum = commons_.least();
  top.collected = true;
  top.signatures = &commons_;
  top.order = deal_->leaders;
  top.check = [this](const RoundQuorum& quorum) { return commons_.check(quorum, VoteStep::Prepare, *deal_); };
  AgreementOptions patience = options_.top;
  // Sub-groups end their training by a share of the round apart.
  if (!durations_.empty()) patience.first_view = std::max(patience.first_view, deadline() / 4);
  patience.longest_view = std::max(patience.longest_view, patience.first_view);
  top_level_->agreement.emplace(std::move(top), patience, services_.key, services_.executor, *top_level_,
                                top_memory_);
}

void GroupedNode::check_close() {
  const MonotonicTime now = services_.clock.monotonic_now();
  const std::uint32_t steps = services_.learner.progress().steps;
  if (!own_ && !boundary_asked_ && trained_enough(steps)) contribute();
  if (closed_) return;
  const std::size_t members = group().size();
  const bool all = contributions_->announced() == members;
  const bool early = round_ends_early() &&
                     (contributions_->announced() > 0 || steps >= least_steps(options_.rules.inner_steps));
  if (!all && !early && contributions_->full() < quorum_size(members) && now - opened_ < deadline()) return;
  if (!own_ && !boundary_asked_ && steps >= least_steps(options_.rules.inner_steps)) contribute();
  close(now, !early);
  group_level_->agreement->start();
  top_level_->agreement->start();
}

// The next leaders; not all members, who may be thousands. Of few, all: they may have to end the round while
// who goes is there.
std::vector<net::NodeId> GroupedNode::told_of_change() {
  std::vector<net::NodeId> told;
  if (leaving_ && member_count() <= all_are_told) {
    for (const RoundMember& member : roster().members)
      if (member.id != self_) told.push_back(member.id);
    return told;
  }
  for (std::uint32_t view = 0; view < 3; ++view) {
    const net::NodeId& id = roster().members[deal_->leader(view)].id;
    if (id != self_) told.push_back(id);
  }
  for (const net::NodeId& id : some_members(5)) told.push_back(id);
  return told;
}

bool GroupedNode::tells_certificate() const {
  return outbox_.holds(top_certificate_key) || outbox_.holds(top_certificate_key + pass_on_key);
}

}  // namespace neuroshard::rounds
