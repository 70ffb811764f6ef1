#include "core/chain/node.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "core/base/check.h"
#include "core/chain/keys.h"

namespace neuroshard::chain {
namespace {

constexpr std::size_t announced_to = 3;          // random contacts, by everybody that learns a block
constexpr std::size_t announced_by_leader = 64;  // members that don't vote, at most
constexpr std::uint64_t news_life_ms = 2 * 60'000;
constexpr std::size_t most_kept_evidence = 64;

// The transitions of node.h.
bool may_enter(NodeState from, NodeState to) {
  switch (to) {
    case NodeState::Starting: return false;
    case NodeState::Beginning: return from == NodeState::Starting;
    case NodeState::Following: return from != NodeState::Ended;
    case NodeState::Voting: return from == NodeState::Following;
    case NodeState::Ended: return from != NodeState::Ended;
  }
  return false;
}

std::string text_of_lead(std::uint64_t lead_ms) {
  return fmt::format(
      "the newest block's time is {} minutes ahead of this computer's clock. Check the clock; if it is "
      "right, a voter's clock was wrong, and the network goes on all the same",
      lead_ms / 60'000);
}

}  // namespace

std::string_view to_string(NodeState state) {
  switch (state) {
    case NodeState::Starting: return "starting";
    case NodeState::Beginning: return "looking for the network";
    case NodeState::Following: return "following";
    case NodeState::Voting: return "voting";
    case NodeState::Ended: return "ended";
  }
  return "";
}

ChainNode::ChainNode(ChainServices services, ChainOptions options, const Hash256& beacon_seed,
                     std::uint64_t seed)
    : services_(services),
      options_(std::move(options)),
      self_(crypto::node_id(services_.key.public_key())),
      beacon_seed_(beacon_seed),
      rng_(seed),
      durable_(
          services_.store, services_.logger, options_.rules.network,
          // A voter that can't keep its votes is silent and goes, so that the others need not wait for it.
          [this] {
            if (!history_) return;
            open_height();
            say_missing_statement();
          }),
      server_(services_.store),
      outbox_(services_.caller, services_.peers, services_.clock, options_.outbox,
              [this](const net::NodeId& from, const PostAnswer& answer) { on_answer(from, answer); }),
      relay_(outbox_, services_.executor, self_),
      mempool_(options_.rules, services_.checks),
      presence_(options_.rules),
      restart_({options_.rules, services_.key, services_.clock, services_.logger,
                [this](std::uint64_t boots) {
                  local_.boots = boots;
                  durable_.save(local_);
                },
                [this](const net::NodeId& id) { sync_.ask(id); }},
               options_.sync.ask_for, Rng(~seed).next()),
      strangers_(services_.clock, services_.traffic, Rng(~seed + 1).next()),
      sync_({options_.rules, services_.checks, services_.cache}, services_.caller, services_.peers,
            services_.executor, services_.clock, options_.sync, options_.trust, self_, rng_.next(),
            strangers_,
            {[this] { return history(); },
             [this](const CertifiedBlock& block) { return take_block(block, false); },
             [this](History history) { begin_history(std::move(history), true); },
             [this](const net::Contact& from, const ChainStatus& status) { on_status(from, status); },
             [this] {
               if (!history_) return StatusRequest{};
               const ChainTip& tip = history_->tip();
               return restart_.request(tip, kept_votes_.is_missed_at(tip, self_));
             },
             [this] { return continuation_.waits_to_follow(); }}),
      continuation_({options_.rules, services_.key, services_.checks, outbox_, services_.clock,
                     [this] { return history_ ? &history_->tip() : nullptr; },
                     [this](const CertifiedBlock& block) { (void)take_block(block, true); }},
                    options_.recovery),
      vouching_(options_.rules, services_.key, options_.delegation.wallet_key, [this](std::uint32_t given) {
        local_.vouchers = given;
        durable_.save(local_);
      }) {}

ChainNode::~ChainNode() = default;

void ChainNode::enter(NodeState state) {
  if (state == state_) return;
  NS_CHECK(may_enter(state_, state));
  state_ = state;
}

void ChainNode::start() {
  local_ = durable_.begin(beacon_seed_);
  restart_.start(local_.boots);
  kept_votes_ = durable_.votes();
  vouching_.begin(local_.beacon_seed, local_.vouchers);
  membership_.emplace(options_.rules, services_.key, options_.delegation, local_.beacon_seed,
                      options_.voucher, options_.beacon_length, options_.rows, options_.follows_plan);
  membership_->ready(ready_);
  if (auto history = durable_.load_history({options_.rules, services_.checks, services_.cache}))
    begin_history(std::move(*history), false);
  else
    enter(NodeState::Beginning);
  if (history_)
    for (const Evidence& evidence : durable_.evidence()) add_evidence(evidence);
  tick();
}

void ChainNode::tick() {
  timer_ = services_.executor.post_after(options_.tick, [this] { tick(); });
  sync_.tick();
  if (history_) {
    const ChainTip& tip = history_->tip();
    if (restart_.tick(tip, kept_votes_.is_missed_at(tip, self_))) open_height();
  }
  if (!durable_.is_writable()) durable_.save(local_);  // perhaps there is room again
  advance();
  outbox_.pump();
}

void ChainNode::advance() {
  if (state_ == NodeState::Beginning) return try_open_start();
  if (!history_) return;
  say_missing_statement();
  if (height_) height_->advance();
  continuation_.tick();
  send_heartbeat();
}

// ---- History

void ChainNode::begin_history(History history, bool fresh) {
  const bool had_one = history_.has_value();
  retire_height();
  forgot_votes_ = true;
  history_.emplace(std::move(history));
  open_start_.reset();
  outbox_.drop(outbox_key::genesis);
  enter(NodeState::Following);
  if (fresh) durable_.begin_log(*history_);
  const ChainTip& tip = history_->tip();
  if (!fresh || tip.height() > 0 || history_->is_partial()) restart_.begin();
  mempool_.on_tip(tip);
  relay_.on_tip(tip);
  if (had_one) services_.logger.info("chain", "this node follows another history of the network from now on");
  services_.content.on_history(tip);
  open_height();
}

Expected<void> ChainNode::take_block(const CertifiedBlock& block, bool live) {
  if (!history_) return make_error(ErrorCode::NotFound, "this node has no history yet");
  const bool needs_person = block.block->body.succession && !continuation_.may_adopt(*block.block) &&
                            !history_->is_known(*block.block);
  if (needs_person) {
    if (continuation_.may_ask(*block.block) && history_->check_next(block).ok())
      continuation_.others_adopted(block.block);
    return make_error(ErrorCode::Denied, "a succession that this node's person has not agreed to");
  }
  if (block.block->header.height == history_->tip().height()) {
    // One that was certified takes the place of a succession.
    NS_RETURN_IF_ERROR(history_->replace_succession(block));
    durable_.replace_last(*history_);
    retire_height();
    services_.content.on_history(history_->tip());
    on_new_tip(block, true);
    return {};
  }
  const Committee& before = *history_->tip().committee;
  led_by_ = before.members()[before.leader(block.certificate->commits.view)].number;
  NS_RETURN_IF_ERROR(history_->append(block));
  durable_.append(*history_);
  on_new_tip(block, live);
  return {};
}

void ChainNode::on_new_tip(const CertifiedBlock& block, bool live) {
  const ChainTip& tip = history_->tip();
  restart_.on_block(tip);
  const bool here = height_ && height_->tip().height() + 1 == tip.height();
  const std::vector<Evidence> contradictions =
      here ? height_->contradictions(*block.certificate) : std::vector<Evidence>();
  // An earlier start may have followed blocks that this one fetches, and have taken votes on the next one.
  const bool may_have_forgotten = forgot_votes_ && !live;
  retire_height();
  forgot_votes_ = may_have_forgotten;
  mempool_.on_tip(tip);
  relay_.on_tip(tip);
  continuation_.on_tip(tip);
  const std::size_t before = own_evidence_.size();
  std::erase_if(own_evidence_,
                [&](const Evidence& evidence) { return !mempool_.has_evidence(evidence.node); });
  if (own_evidence_.size() != before) durable_.save(own_evidence_);
  for (const Evidence& evidence : contradictions) add_evidence(evidence);
  services_.content.on_block(tip, block, live);
  open_height();
  const auto wall = static_cast<std::uint64_t>(to_unix_ms(services_.clock.wall_now()));
  const bool is_behind = is_too_far_ahead(block.block->header.time_ms, wall);
  if (is_behind && !is_behind_blocks_)
    services_.logger.warning("chain", text_of_lead(block.block->header.time_ms - wall));
  is_behind_blocks_ = is_behind;
  // Members below this node in the tree wait for a new block that it fetched.
  const bool is_news = tip.committee->is_collected() && block.block->header.time_ms + news_life_ms > wall;
  if (live || is_news) announce(block);
  for (const auto& [id, held] : vouching_.offers(tip))
    outbox_.put(outbox_key::voucher, VoucherOffer{held}, {id});
  say_missing_statement();
  if (height_) height_->advance();
}

// The agreement may still be on the stack.
void ChainNode::retire_height() {
  if (!height_) return;
  std::shared_ptr<Height> ending = std::move(height_);
  led_view_ = ending->led_view();
  kept_votes_.keep(ending->memory());
  forgot_votes_ = true;
  ending->end();
  static_cast<void>(services_.executor.post([ending] {}));
}

void ChainNode::open_height() {
  retire_height();
  const ChainTip& tip = history_->tip();
  const MemberRecord* own = tip.registry->find(self_);
  presence_.on_block(*tip.committee, own != nullptr ? std::optional(own->number) : std::nullopt,
                     services_.clock.monotonic_now());
  const bool may_vote = kept_votes_.may_vote(tip.height() + 1, tip.committee->size());
  if (!tip.committee->position(self_) || !ready_ || !may_vote || !restart_.may_vote() ||
      !durable_.is_writable())
    return enter(NodeState::Following);
  enter(NodeState::Following);
  enter(NodeState::Voting);
  height_ = std::make_unique<Height>(
      HeightServices{options_.rules, services_.key, services_.executor, services_.clock, outbox_, relay_,
                     durable_, services_.checks, services_.cache, presence_, mempool_, services_.content},
      tip, options_.agreement, kept_votes_.memory(),
      [this](const Evidence& evidence) { add_evidence(evidence); },
      [this](const CertifiedBlock& block) {
        const bool posted = services_.executor.post([this, life = lifetime_.token(), block] {
          if (life.alive()) (void)take_block(block, true);
        });
        NS_CHECK(posted);
      });
}

// The leader tells the members that don't vote; everybody tells a few others. With a large committee the block
// goes down a tree of the active members: each fetches it from the one that announced it.
void ChainNode::announce(const CertifiedBlock& block) {
  const ChainTip& tip = history_->tip();
  std::vector<net::NodeId> to;
  const bool led =
      block.certificate->commits.step == VoteStep::Commit && led_view_ == block.certificate->commits.view;
  if (tip.committee->is_collected()) {
    to = below_in_tree(*tip.registry, led_by_, self_);
  } else if (led) {
    for (const MemberRecord& member : tip.registry->members())
      if (member.id != self_ && !tip.committee->position(member.number)) to.push_back(member.id);
    for (std::size_t i = to.size(); i > 1; --i) std::swap(to[i - 1], to[rng_.below(i)]);
    if (to.size() > announced_by_leader) to.resize(announced_by_leader);
  }
  std::vector<net::Contact> some = services_.peers.some();
  for (std::size_t i = 0; i < announced_to && !some.empty(); ++i) {
    const std::size_t pick = rng_.below(some.size());
    if (some[pick].id != self_) to.push_back(some[pick].id);
    some.erase(some.begin() + static_cast<std::ptrdiff_t>(pick));
  }
  outbox_.put(outbox_key::announcement,
              CertifiedPost{block.block->header.height, block.block->hash, std::nullopt}, to);
  outbox_.pump();
}

// ---- Beginning

void ChainNode::try_open_start() {
  if (!sync_.finds_no_history() || !options_.trust.may_begin()) return;
  if (!open_start_)
    open_start_.emplace(options_.rules, options_.open_start, services_.key, membership_->founding(),
                        options_.model, options_.trust.founder_wallet, services_.checks);
  handle(open_start_->tick(services_.clock.monotonic_now(), services_.clock.wall_now(),
                           services_.peers.nobody()));
}

void ChainNode::handle(OpenStart::Output output) {
  std::vector<net::NodeId> known;
  if (!output.to_all.empty()) {
    if (open_start_) known = open_start_->heard_nodes();
    for (const net::Contact& contact : services_.peers.some())
      if (std::find(known.begin(), known.end(), contact.id) == known.end()) known.push_back(contact.id);
  }
  std::uint64_t key = outbox_key::genesis;
  for (const ChainItem& item : output.to_all) outbox_.put(key++, item, known);
  if (output.to_one) outbox_.put(key++, output.to_one->second, {output.to_one->first});
  if (!output.genesis) return;
  auto history = History::begin({options_.rules, services_.checks, services_.cache}, *output.genesis);
  if (!history.ok()) {
    services_.logger.error(
        "chain", fmt::format("the network's first block is not valid: {}", history.error().message));
    return;
  }
  begin_history(std::move(*history), true);
}

// ---- What this node says

void ChainNode::say_missing_statement() {
  if (restart_.runs_twice()) return outbox_.drop(outbox_key::statement);
  membership_->want_active(!away_ && durable_.is_writable() &&
                           !restart_.is_quiet(history_->tip().registry->round() + 1));
  const auto statement = membership_->missing(history_->tip());
  if (!statement) return relay_.drop(outbox_key::statement);
  if (*statement == said_) return;
  said_ = *statement;
  mempool_.take(*statement, history_->tip());
  relay_.to_all(outbox_key::statement, StatementPost{*statement});
  outbox_.pump();
}

void ChainNode::send_heartbeat() {
  const MonotonicTime now = services_.clock.monotonic_now();
  // In a large committee others pass it on, so a node sends only what on_heartbeat() counts.
  const bool counts = height_ && !(height_->is_due() && history_->tip().committee->is_collected());
  if (now < next_heartbeat_ || !counts) return;
  next_heartbeat_ = now + options_.rules.heartbeat;
  const ChainTip& tip = history_->tip();
  relay_.to_all(outbox_key::heartbeat, restart_.heartbeat(tip));
}

void ChainNode::add_evidence(const Evidence& evidence) {
  if (!history_ || take_evidence(evidence) != Verdict::Taken) return;
  if (is_accusation(evidence)) return;  // its proof ends with this program
  if (own_evidence_.size() < most_kept_evidence) own_evidence_.push_back(evidence);
  durable_.save(own_evidence_);
}

// Each node passes new evidence on once, so it reaches all voters.
Verdict ChainNode::take_evidence(const Evidence& evidence) {
  const ChainTip& tip = history_->tip();
  const Verdict verdict = mempool_.take(evidence, tip);
  if (verdict != Verdict::Taken) return verdict;
  ++evidence_;
  outbox_.put(outbox_key::first_relayed + relayed_++ % outbox_key::relayed_window, EvidencePost{evidence},
              tip.committee->neighbours(self_, max_direct_voters));
  outbox_.pump();
  if (height_) height_->byzantine_member_found();
  return verdict;
}

void ChainNode::post(std::uint64_t key, const RoundsPost& item, Reach reach,
                     const std::vector<net::NodeId>& only) {
  const std::uint64_t own_key = outbox_key::first_of_content + key;
  if (reach == Reach::Only)
    outbox_.put(own_key, item, only);
  else
    relay_.to_all(own_key, item, reach == Reach::AskedFor ? Relay::Ways::One : Relay::Ways::Two);
  outbox_.pump();
}

void ChainNode::drop_post(std::uint64_t key) {
  relay_.drop(outbox_key::first_of_content + key);
}

void ChainNode::set_ready(bool ready) {
  if (ready == ready_) return;
  ready_ = ready;
  if (membership_) membership_->ready(ready);
  if (history_ && (height_ == nullptr) == ready) open_height();
}

void ChainNode::set_away(bool away) {
  away_ = away;
  advance();
}

void ChainNode::want(MemberWishes wishes) {
  if (membership_) membership_->want(std::move(wishes));
}

bool ChainNode::is_away() const {
  if (!history_) return true;
  const MemberRecord* own = history_->tip().registry->find(self_);
  return own == nullptr || own->presence != Presence::Active;
}

Expected<HeldVoucher> ChainNode::give_voucher(std::uint64_t expires_ms) {
  if (!history_) return make_error(ErrorCode::NotFound, "this node has no history yet");
  return vouching_.give(history_->tip(), expires_ms);
}

Expected<void> ChainNode::revoke(const Statement& revocation) {
  if (!history_) return make_error(ErrorCode::NotFound, "this node has no history yet");
  const ChainTip& tip = history_->tip();
  NS_RETURN_IF_ERROR(admissible(options_.rules, *tip.registry, tip.block->hash, revocation));
  const Verdict verdict = mempool_.take(revocation, tip);
  if (verdict != Verdict::Taken && verdict != Verdict::Known)
    return make_error(ErrorCode::Denied,
                      fmt::format("the revocation can't be in a block: {}", to_string(verdict)));
  relay_.to_all(outbox_key::first_relayed + relayed_++ % outbox_key::relayed_window,
                StatementPost{revocation});
  advance();
  outbox_.pump();
  return {};
}

Expected<Hash256> ChainNode::beacon_reveal(std::uint64_t round) {
  if (!history_) return make_error(ErrorCode::NotFound, "this node has no history yet");
  if (!restart_.may_sign(round))
    return make_error(ErrorCode::NotFound, "this node came back in mid-round and waits for the next one");
  return membership_->reveal(history_->tip(), round);
}

}  // namespace neuroshard::chain
