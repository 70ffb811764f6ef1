// RoundParticipant: following the chain of certificates, and choosing between histories.
#include <algorithm>

#include "core/rounds/participant.h"

namespace neuroshard::rounds {
namespace {

constexpr std::size_t small_answer = 256;
constexpr std::size_t chain_answer_bytes = 64u << 10;  // what a deadline allows for, of a small network
constexpr std::size_t syncs_at_once = 3;
constexpr Duration sync_patience = std::chrono::seconds(1);  // before another is asked; bytes have their own
constexpr std::size_t most_beginners = 64;
constexpr int most_greetings = 3;          // the first ones may be lost
constexpr std::uint32_t young_rounds = 8;  // shared so few times, a history may be given up

}  // namespace

Expected<Bytes> RoundParticipant::on_chain(ByteSpan request) const {
  const auto asked = decode_chain_request(request);
  if (!asked.ok() || asked->slot != common_.rules.slot || !chain_)
    return make_error(ErrorCode::NotFound, "this node has no certificates of the slot");
  return encode_chain_answer(chain_->answer(asked->from));
}

void RoundParticipant::catch_up_with(const net::NodeId& id) {
  if (!chain_ || id == self_) return;
  if (const auto contact = services_.peers.find(id)) sync_from(*contact);
}

void RoundParticipant::poll() {
  const MonotonicTime now = services_.clock.monotonic_now();
  if (now < next_poll_) return;
  // Who begins looks around before it makes a history of its own.
  const Duration pause = chain_ ? common_.poll : common_.poll / 5;
  next_poll_ =
      now + pause * 3 / 4 +
      Duration(static_cast<Duration::rep>(rng_.below(static_cast<std::uint64_t>(pause.count() / 2) + 1)));
  std::vector<net::Contact> asked;
  if (chain_) {
    // Back after a while: what they have for this node waits in pauses, until they hear from it, and what
    // they told it before is gone.
    const bool back = tip_round() > 0 && greetings_ < most_greetings;
    ++greetings_;
    for (const net::NodeId& id : asked_how_far(back))
      if (const auto contact = services_.peers.find(id)) asked.push_back(*contact);
  }
  if (!chain_ || !is_member() || may_give_up() || provisional_)
    for (const net::Contact& contact : services_.peers.some()) asked.push_back(contact);
  for (const net::Contact& contact : asked)
    ask_status(contact, [this, contact](const RoundStatus& status) { consider(contact, status); });
}

void RoundParticipant::ask_status(const net::Contact& contact, std::function<void(const RoundStatus&)> done) {
  const bool back = greetings_ <= most_greetings && greeted_.count(contact.id) == 0;
  const Bytes request = encode_status_request({common_.rules.slot, back});
  services_.caller.call(contact, net::Method::RoundStatus, request,
                        net::call_deadline(common_.fetch.allowed, request.size(), small_answer),
                        guarded([this, id = contact.id, done = std::move(done)](Expected<Bytes> answer) {
                          if (!answer.ok()) return;
                          if (greetings_ <= most_greetings) greeted_.insert(id);
                          const auto status = decode_status(*answer);
                          if (status.ok()) done(*status);
                        }));
}

void RoundParticipant::consider(const net::Contact& from, const RoundStatus& other) {
  if (other.genesis == Hash256{}) {  // knows no more than this node
    if (!chain_ && from.id != self_ && beginners_.size() < most_beginners) beginners_.insert(from.id);
    return;
  }
  if (from.id != self_) heard_ = services_.clock.monotonic_now();
  if (!chain_) {
    sync_from(from);
    return;
  }
  if (other.genesis == chain_->genesis()) {
    if (other.round > tip_round()) sync_from(from);
    if (other.round == tip_round() && other.tip == chain_->tip_hash()) heard_view(from.id, other.view);
    return;
  }
  if (may_give_up() && better_branch(other, status())) {
    services_.logger.info("rounds",
                          "another history of this network goes "
                          "before this one: this node joins it");
    sync_from(from, true);
  }
}

// When histories meet. Nodes that start together begin with some, each of its own or in twos and threes, and
// soon find each other. An older one that several share is kept, because anybody could make up a longer one.
bool RoundParticipant::may_give_up() const {
  return !common_.genesis && (chain_->alone(self_) || chain_->shared_rounds() < young_rounds);
}

void RoundParticipant::sync_from(const net::Contact& from, bool afresh) {
  if (!may_sync_from(from.id, afresh)) return;
  syncing_[from.id] = afresh;
  const Bytes request = encode_chain_request({common_.rules.slot, chain_ && !afresh ? tip_round() + 1 : 0});
  const std::size_t expected = member_count() > max_group_members ? most_chain_bytes : chain_answer_bytes;
  const Duration deadline = net::call_deadline(common_.fetch.allowed, request.size(), expected);
  next_sync_ = services_.clock.monotonic_now() + deadline - common_.fetch.allowed + sync_patience;
  services_.caller.call(from, net::Method::RoundChain, request, deadline,
                        guarded([this, from, afresh](Expected<Bytes> answer) {
                          syncing_.erase(from.id);
                          take_chain(from, afresh, std::move(answer));
                        }));
}

// Who is behind holds up others, too, and one that says nothing is known by its silence only after seconds:
// others are asked before. A history that takes another's place is asked of one.
bool RoundParticipant::may_sync_from(const net::NodeId& id, bool afresh) const {
  if (syncing_.empty()) return id != self_;
  const bool alone =
      afresh || std::any_of(syncing_.begin(), syncing_.end(), [](const auto& asked) { return asked.second; });
  return id != self_ && !alone && syncing_.count(id) == 0 && syncing_.size() < syncs_at_once &&
         services_.clock.monotonic_now() >= next_sync_;
}

void RoundParticipant::take_chain(const net::Contact& from, bool afresh, Expected<Bytes> answer) {
  if (!answer.ok()) return;
  counters_.bytes_received += answer->size();
  const auto chain = decode_chain_answer(*answer);
  if (!chain.ok() || chain->links.empty()) return;
  std::size_t i = 0;
  if (!chain_ || afresh) {
    const RoundBody& genesis = chain->links.front().certificate.body;
    if (genesis.round != 0 || genesis.grouped || genesis.slot != common_.rules.slot ||
        (common_.genesis && !(genesis == *common_.genesis)))
      return;
    if (chain_) give_up_history();
    chain_.emplace(network_, genesis);
    open_round();
    i = 1;
  }
  for (; i < chain->links.size(); ++i) {
    const auto taken = take_link(chain->links[i]);
    if (!taken.ok() && taken.error().code != ErrorCode::AlreadyExists) {
      services_.logger.warning("rounds", taken.error().describe());
      return;
    }
  }
  if (chain->more) {
    sync_from(from);
    return;
  }
  settle_state();
}

void RoundParticipant::give_up_history() {
  provisional_ = true;  // what was trained since the last own anchor goes along
  counted_ = false;
  state_.reset();
  state_checked_ = false;
  served_.clear();
  forget_computed();
  contributions_.reset();
  own_.reset();
  changes_.clear();
  take_votes({});
  kept_votes_.reset();
  memory_round_ = saved_chain_ = 0;
}

Expected<void> RoundParticipant::take_link(const RoundLink& link) {
  if (!chain_) return make_error(ErrorCode::Unavailable, "this node has no certificates yet");
  NS_RETURN_IF_ERROR(chain_->add(link, commons()));
  link_taken();
  return {};
}

// The chain has a round more: is this node's work in it?
void RoundParticipant::link_taken() {
  if (own_) {
    const RoundBody& body = chain_->tip();
    const bool in = body.round == own_->round &&
                    std::any_of(body.contributors.begin(), body.contributors.end(),
                                [this](const RoundContributor& c) { return c.payload == own_->payload; });
    // Its round's certificate is not shown any more: it may well have counted.
    const bool unknown = body.round > own_->round;
    if (in)
      ++counters_.contributed;
    else
      ++counters_.left_out;
    counted_ = counted_ || in || unknown;
    group_absent_ = group_absent_ || (!in && !unknown && group_is_absent(*chain_));
  }
  open_round();
}

}  // namespace neuroshard::rounds
