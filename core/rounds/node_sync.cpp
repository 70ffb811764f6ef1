// RoundNode: answering others and catching up with them.
#include <algorithm>

#include "core/rounds/detail/overloaded.h"
#include "core/rounds/node.h"

namespace neuroshard::rounds {
namespace {

constexpr std::size_t chain_answer_bytes = 64u << 10;  // what a deadline allows for
constexpr std::uint32_t young_rounds = 8;              // shared so few times, a history may be given up

}  // namespace

PostAnswer RoundNode::on_post(const net::NodeId& from, ByteSpan bytes) {
  auto item = decode_item(bytes);
  if (!item.ok()) return {Verdict::Malformed, round_};
  if (!chain_) return {Verdict::Busy, 0};
  const Verdict verdict =
      std::visit(Overloaded{[&](CertificatePost& post) {
                              const auto taken = take_certificate(post.certificate);
                              if (taken.ok()) return Verdict::Taken;
                              return taken.error().code == ErrorCode::AlreadyExists ? Verdict::Known
                                                                                    : Verdict::BadCertificate;
                            },
                            [&](ChangePost& post) {
                              const Verdict taken = on_change(from, post, max_round_changes);
                              if (taken == Verdict::Taken)
                                static_cast<void>(services_.executor.post(guarded([this] { advance(); })));
                              return taken;
                            },
                            [&](auto&) { return on_item(from, *item, agreement_ ? &*agreement_ : nullptr); }},
                 *item);
  return {verdict, round_};
}

Expected<Bytes> RoundNode::on_chain(ByteSpan request) {
  const auto asked = decode_chain_request(request);
  if (!asked.ok() || asked->slot != options_.rules.slot || !chain_)
    return make_error(ErrorCode::NotFound, "this node has no certificates of the slot");
  return encode_chain_answer(chain_->answer(asked->from));
}

// ---- catching up ----

void RoundNode::catch_up_with(const net::NodeId& id) {
  if (!chain_) return;
  if (const auto contact = services_.peers.find(id)) sync_from(*contact);
}

void RoundNode::poll() {
  if (!poll_is_due()) return;
  std::vector<net::Contact> asked;
  if (chain_) {
    const std::vector<net::NodeId> members = others();
    // Back after a while: what they have for this node waits in pauses, until they hear from it.
    const bool back = !std::exchange(greeted_, true) && chain_->tip().round > 0;
    if (back) {
      for (const net::NodeId& id : members)
        if (const auto contact = services_.peers.find(id)) asked.push_back(*contact);
    } else if (!members.empty()) {
      if (const auto contact = services_.peers.find(members[rng_.below(members.size())]))
        asked.push_back(*contact);
    }
  }
  if (!chain_ || !is_member() || may_give_up() || provisional_)
    for (const net::Contact& contact : services_.peers.some()) asked.push_back(contact);
  for (const net::Contact& contact : asked)
    ask_status(contact, [this, contact](const RoundStatus& status) { consider(contact, status); });
}

void RoundNode::consider(const net::Contact& from, const RoundStatus& other) {
  if (other.genesis == Hash256{}) return;  // knows no more than this node
  if (from.id != self_) heard_ = services_.clock.monotonic_now();
  if (!chain_) {
    sync_from(from);
    return;
  }
  if (other.genesis == chain_->genesis()) {
    if (other.round > chain_->tip().round) sync_from(from);
    return;
  }
  if (may_give_up() && better_branch(other, status())) {
    services_.logger.info("rounds",
                          "another history of this network goes before this one: this node joins it");
    sync_from(from, true);
  }
}

// When histories meet. Nodes that start together begin with some, each of its own or in twos and threes, and
// soon find each other. An older one that several share is kept, because anybody could make up a longer one.
bool RoundNode::may_give_up() const {
  return !options_.genesis && (chain_->alone(self_) || chain_->shared_rounds() < young_rounds);
}

void RoundNode::sync_from(const net::Contact& from, bool afresh) {
  if (syncing_) return;
  syncing_ = true;
  const Bytes request =
      encode_chain_request({options_.rules.slot, chain_ && !afresh ? chain_->tip().round + 1 : 0});
  services_.caller.call(from, net::Method::RoundChain, request,
                        net::call_deadline(options_.fetch.allowed, request.size(), chain_answer_bytes),
                        guarded([this, from, afresh](Expected<Bytes> answer) {
                          syncing_ = false;
                          take_chain(from, afresh, std::move(answer));
                        }));
}

void RoundNode::take_chain(const net::Contact& from, bool afresh, Expected<Bytes> answer) {
  if (!answer.ok()) return;
  counters_.bytes_received += answer->size();
  const auto chain = decode_chain_answer(*answer);
  if (!chain.ok() || chain->certificates.empty()) return;
  std::size_t i = 0;
  if (!chain_ || afresh) {
    const RoundBody& genesis = chain->certificates.front().body;
    if (genesis.round != 0 || genesis.slot != options_.rules.slot ||
        (options_.genesis && !(genesis == *options_.genesis)))
      return;
    if (chain_) give_up_history();
    chain_.emplace(network_, genesis);
    open_round();
    i = 1;
  }
  for (; i < chain->certificates.size(); ++i) {
    const auto taken = take_certificate(chain->certificates[i]);
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

void RoundNode::give_up_history() {
  provisional_ = true;  // what was trained since the last own anchor goes along
  counted_ = false;
  state_.reset();
  state_checked_ = false;
  served_.clear();
  computing_.clear();
  contributions_.reset();
  own_.reset();
  changes_.clear();
  memory_ = {};
  memory_round_ = saved_chain_ = 0;
}

Expected<void> RoundNode::take_certificate(const RoundCertificate& certificate) {
  if (!chain_) return make_error(ErrorCode::Unavailable, "this node has no certificates yet");
  NS_RETURN_IF_ERROR(chain_->add(certificate));
  if (own_) {
    const auto& set = certificate.body.contributors;
    const bool in = certificate.body.round == own_->round &&
                    std::any_of(set.begin(), set.end(),
                                [this](const RoundContributor& c) { return c.payload == own_->payload; });
    if (in)
      ++counters_.contributed;
    else
      ++counters_.left_out;
    // Its round's certificate is not shown any more: it may well have counted.
    const bool unknown = certificate.body.round > own_->round;
    counted_ = counted_ || in || unknown;
  }
  open_round();
  return {};
}

void RoundNode::found_alone() {
  const Duration wait = services_.peers.nobody() ? options_.found_alone_soon : options_.found_alone_after;
  if (options_.genesis || settling_ || services_.clock.monotonic_now() - started_ < wait ||
      initial_.round != 0 || !initial_.state)
    return;
  settling_ = true;
  auto hash = std::make_shared<Hash256>();
  services_.work.run(
      [hash, state = initial_.state, identity = identity(0)] { *hash = hash_of(identity, *state); },
      guarded([this, hash] {
        settling_ = false;
        if (chain_) return;
        chain_.emplace(network_, genesis_body(options_.rules.slot, *hash, {services_.key.public_key()}));
        open_round();
        settle_state();
      }));
}

}  // namespace neuroshard::rounds
