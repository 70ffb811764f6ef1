#include "core/rounds/grouped_node.h"

#include <fmt/format.h>

#include <algorithm>

#include "core/base/check.h"
#include "core/crypto/hash.h"
#include "core/rounds/detail/grouped_level.h"
#include "core/rounds/detail/outbox_keys.h"
#include "core/rounds/detail/reader.h"

namespace neuroshard::rounds {
namespace {

constexpr std::string_view votes_magic = "NSGV1", chain_magic = "NSGK1";

}  // namespace

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
    : services_(services),
      commons_(commons),
      options_(std::move(options)),
      self_(crypto::node_id(services.key.public_key())),
      rng_(seed),
      on_certified_(std::move(certified)),
      outbox_(services.caller, services.peers, services.clock, options_.outbox,
              [this](const net::NodeId& from, const PostAnswer& answer) {
                if (answer.round > round_) sync_from(from);
              }),
      fetcher_(services.caller, services.peers, services.executor, options_.fetch),
      initial_(std::move(known)) {
  NS_CHECK(options_.genesis.roster && initial_.state);
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

std::vector<net::NodeId> GroupedNode::other_fellows() const {
  std::vector<net::NodeId> ids;
  for (const RoundMember& member : fellows())
    if (member.id != self_) ids.push_back(member.id);
  return ids;
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
  contributions_.emplace(options_.rules, round_, tip_.anchor, fellows(), sequences_);
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
  training_ = boundary_asked_ = closed_ = false;
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
  for (auto at = changes_.begin(); at != changes_.end();)
    at = round_ - std::min(round_, at->second.round) > change_life ? changes_.erase(at) : std::next(at);
  if (!is_member()) next_change_ = {};
  if (!is_member() || (abstain_ && round_ <= *abstain_)) return;
  group_level_->agreement.emplace(
      RoundAgreement::Setup{commons_.network(), options_.rules.slot, round_, group_beacon(tip_.tip, group_),
                            SharedMembers(deal_->groups[group_])},
      options_.group, services_.key, services_.executor, *group_level_, group_memory);
  RoundAgreement::Setup top{
      commons_.network(), options_.rules.slot, round_, tip_.tip,
      SharedMembers(std::shared_ptr<const std::vector<RoundMember>>(tip_.roster, &tip_.roster->members))};
  top.quorum = commons_.least();
  top.collected = true;
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
  // Contributed before a restart: never a second time.
  if (own_ && contributions_->take(*own_) == Verdict::Taken) {
    ContributionPost post{*own_, {}};
    if (kept_payload_.size() <= max_inline_payload) post.payload = kept_payload_;
    outbox_.put(contribution_key,
                std::make_shared<const Bytes>(encode_grouped_post(GroupPost{encode_item(post)})),
                other_fellows());
    if (kept_payload_.empty() || !contributions_->take_payload(std::exchange(kept_payload_, {})))
      ask_for_payload(self_);
  }
}

Duration GroupedNode::deadline() const {
  if (durations_.empty()) return options_.first_deadline;
  std::vector<Duration> sorted(durations_.begin(), durations_.end());
  std::sort(sorted.begin(), sorted.end());
  return sorted[(sorted.size() - 1) / 2] * 5 / 4;
}

void GroupedNode::check_close() {
  const MonotonicTime now = services_.clock.monotonic_now();
  const std::uint32_t steps = services_.learner.progress().steps;
  if (!own_ && !boundary_asked_ && steps >= options_.rules.inner_steps) contribute();
  if (closed_) return;
  const std::size_t members = fellows().size();
  const bool all = contributions_->announced() == members;
  if (!all && contributions_->full() < quorum_size(members) && now - opened_ < deadline()) return;
  if (!own_ && !boundary_asked_ && steps >= least_steps(options_.rules.inner_steps)) contribute();
  closed_ = true;
  closed_at_ = now;
  durations_.push_back(now - opened_);
  if (durations_.size() > 3) durations_.pop_front();
  group_level_->agreement->start();
  top_level_->agreement->start();
}

void GroupedNode::contribute() {
  boundary_asked_ = true;
  check_own_state([this, round = round_] {
    if (round != round_ || own_) return;
    services_.learner.boundary(AfterBoundary::Rest,
                               guarded([this, round](Expected<RoundLearner::Boundary> boundary) {
                                 if (round != round_ || own_) return;
                                 if (!boundary.ok()) {
                                   services_.logger.warning("rounds", boundary.error().describe());
                                   return;
                                 }
                                 send_contribution(std::move(*boundary));
                                 advance();
                               }));
  });
}

void GroupedNode::send_contribution(RoundLearner::Boundary boundary) {
  if (boundary.work.steps < least_steps(options_.rules.inner_steps) || boundary.work.tokens == 0) return;
  Contribution c;
  c.slot = options_.rules.slot;
  c.round = round_;
  c.base = tip_.anchor;
  c.steps = boundary.work.steps;
  c.tokens = boundary.work.tokens;
  c.codec = options_.rules.codec.codec;
  c.payload_bytes = boundary.payload.size();
  c.payload = crypto::sha256(boundary.payload);
  c.sequence = ++sequence_;
  sign_contribution(c, services_.key, commons_.network());
  own_ = c;
  contributed_at_ = services_.clock.monotonic_now();
  if (const Verdict verdict = contributions_->take(c); verdict != Verdict::Taken) {
    services_.logger.warning("rounds",
                             fmt::format("this node's own contribution is refused: {}", to_string(verdict)));
    return;
  }
  ContributionPost post{c, {}};
  if (boundary.payload.size() <= max_inline_payload) post.payload = boundary.payload;
  services_.store.save(RoundStore::Record::Payload, boundary.payload, [](Expected<void>) {});
  contributions_->take_payload(std::move(boundary.payload));
  // On the disk before it leaves: after a restart there must not be another one.
  save(guarded([this, post = std::move(post)] {
    if (post.contribution.round != round_) return;
    outbox_.put(contribution_key,
                std::make_shared<const Bytes>(encode_grouped_post(GroupPost{encode_item(post)})),
                other_fellows());
  }));
}

void GroupedNode::go_provisional() {
  const MonotonicTime now = services_.clock.monotonic_now();
  if (provisional_ || !closed_ || now - closed_at_ < options_.provisional_after) return;
  provisional_ = true;
  ++counters_.provisional;
  services_.logger.info("rounds", fmt::format("round {}: more than a third of {} members are out of reach; "
                                              "this node trains on by itself until they are back",
                                              round_, roster().members.size()));
  services_.learner.go_on();
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
  const RoundItem item = ChangePost{options_.rules.slot, change};
  outbox_.put(change_key, std::make_shared<const Bytes>(encode_grouped_post(GroupPost{encode_item(item)})),
              leaders);
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
  const bool current = state_ && state_round_ == tip_.round && state_checked_;
  status.phase = !current         ? (counters_.corruptions > 0 ? RoundPhase::Repairing : RoundPhase::Joining)
                 : !status.member ? RoundPhase::Joining
                 : provisional_   ? RoundPhase::Provisional
                 : closed_        ? RoundPhase::Agreeing
                 : own_           ? RoundPhase::Collecting
                                  : RoundPhase::Training;
  return status;
}

RoundView GroupedNode::view() const {
  RoundView view = counters_;
  const RoundStatus now = status();
  view.phase = now.phase;
  view.round = now.round;
  view.anchor = tip_.anchor;
  view.own_anchor = now.anchor;
  view.tokens = now.tokens;
  view.member = now.member;
  view.members = roster().members.size();
  view.view = now.view;
  view.bytes_sent += outbox_.bytes_sent();
  view.bytes_received += fetcher_.bytes_received();
  return view;
}

void GroupedNode::save(std::function<void()> then) {
  Bytes bytes(votes_magic.begin(), votes_magic.end());
  append_le(bytes, memory_round_);
  append_le(bytes, sequence_);
  append_part(bytes, own_ ? encode_contribution(*own_) : Bytes());
  append_part(bytes, encode_agreement_memory(group_level_->memory));
  append_part(bytes, encode_agreement_memory(top_level_->memory));
  append_array(bytes, crypto::sha256(bytes));
  services_.store.save(
      RoundStore::Record::Votes, std::move(bytes),
      guarded([this, then = std::move(then)](Expected<void> saved) {
        if (saved.ok()) return then();
        ++counters_.failed_saves;
        services_.logger.error(
            "rounds", "this node does not vote, because it can't note it: " + saved.error().describe());
      }));
}

// Where its own chain stands, and who makes the next round: what came before is behind it.
void GroupedNode::save_chain() {
  Bytes bytes(chain_magic.begin(), chain_magic.end());
  append_le(bytes, tip_.round);
  append_array(bytes, tip_.tip);
  append_array(bytes, tip_.anchor);
  append_le(bytes, tip_.tokens);
  append_part(bytes, encode_roster(roster()));
  append_array(bytes, crypto::sha256(bytes));
  services_.store.save(RoundStore::Record::Chain, std::move(bytes), guarded([this](Expected<void> saved) {
                         if (!saved.ok()) ++counters_.failed_saves;
                       }));
}

namespace {

// Without magic and checksum; empty: not what was written.
ByteSpan sealed(const Bytes& bytes, std::string_view magic) {
  if (bytes.size() < magic.size() + sizeof(Hash256)) return {};
  const ByteSpan all(bytes);
  const ByteSpan body = all.first(all.size() - sizeof(Hash256));
  const Hash256 check = crypto::sha256(body);
  if (as_text(body.first(magic.size())) != magic ||
      !std::equal(check.begin(), check.end(), bytes.end() - sizeof(Hash256)))
    return {};
  return body.subspan(magic.size());
}

}  // namespace

void GroupedNode::restore() {
  group_level_ = std::make_unique<Level>(*this, false);
  top_level_ = std::make_unique<Level>(*this, true);
  if (const auto chain = services_.store.load(RoundStore::Record::Chain); chain.ok()) {
    Reader in(sealed(*chain, chain_magic));
    GroupedBase base;
    base.round = in.number<std::uint64_t>();
    base.tip = in.array<Hash256>();
    base.anchor = in.array<Hash256>();
    base.tokens = in.number<std::uint64_t>();
    auto members = decode_roster(in.part());
    if (in.at_end() && members.ok() && base.round >= tip_.round) {
      base.roster = *members;
      tip_ = base;
    }
  }
  const auto votes = services_.store.load(RoundStore::Record::Votes);
  if (!votes.ok() && votes.error().code == ErrorCode::NotFound) return;
  Reader in(votes.ok() ? sealed(*votes, votes_magic) : ByteSpan());
  memory_round_ = in.number<std::uint64_t>();
  sequence_ = in.number<std::uint64_t>();
  const ByteSpan own = in.part(), group = in.part(), top = in.part();
  const auto contribution = decode_contribution(own);
  auto group_memory = decode_agreement_memory(group), top_memory = decode_agreement_memory(top, true);
  if (!in.at_end() || !group_memory.ok() || !top_memory.ok()) {
    // It can't know what it has voted for: not in the round that is made now.
    memory_round_ = 0;
    abstain_ = tip_.round + 1;
    services_.logger.warning("rounds", "this node's votes can't be read: it abstains until the next round");
    return;
  }
  if (contribution.ok()) own_ = *contribution;
  group_level_->memory = std::move(*group_memory);
  top_level_->memory = std::move(*top_memory);
  auto payload = services_.store.load(RoundStore::Record::Payload);
  if (own_ && payload.ok() && crypto::sha256(*payload) == own_->payload) kept_payload_ = std::move(*payload);
}

}  // namespace neuroshard::rounds
