// ChainNode: requests of peers, and the node's view of itself.
#include <algorithm>

#include "core/chain/ascending.h"
#include "core/chain/node.h"
#include "core/crypto/keys.h"

namespace neuroshard::chain {
namespace {

constexpr std::uint64_t heartbeat_life_ms = 5 * 60'000;

struct Place {
  std::uint64_t height = 0;
  Hash256 previous{};
};
// The height of an item of the agreement.
Place place_of(const Proposal& item) {
  return {item.block->header.height, item.block->header.previous};
}
Place place_of(const SignedVote& item) {
  return {item.vote.height, item.vote.previous};
}
Place place_of(const NewView& item) {
  return {item.height, item.previous};
}
Place place_of(const Locked& item) {
  return {item.prepares.height, item.prepares.previous};
}

// A vote that came after its block was certified. The certificate may have another one of this voter.
std::optional<Evidence> late_contradiction(const SignedVote& vote, const ChainTip& tip,
                                           const CertifiedBlock* newest) {
  const MemberRecord* member = tip.registry->find(vote.voter);
  if (newest == nullptr || member == nullptr) return std::nullopt;
  auto both = contradiction(member->key, vote, newest->certificate->commits);
  if (!both && newest->certificate->lock) both = contradiction(member->key, vote, *newest->certificate->lock);
  return both;
}

// The voter's prepare in a lock on the next block, which outlasts the votes that a node took.
std::optional<SignedVote> vote_in_lock(const AgreementMemory& memory, const ChainTip& tip,
                                       std::uint32_t voter) {
  const bool is_here = memory.height == tip.height() + 1 && memory.previous == tip.block->hash;
  if (!is_here || !memory.lock) return std::nullopt;
  const VoterSignature* signature = find_by(memory.lock->signatures, &VoterSignature::voter, voter);
  return signature != nullptr ? std::optional(vote_of(*memory.lock, *signature)) : std::nullopt;
}

// It comes from the node that it is about, not from one that passes it on.
bool is_own_statement(const ChainItem& item) {
  const auto* relayed = std::get_if<RelayedPost>(&item);
  return std::holds_alternative<StatementPost>(item) ||
         (relayed != nullptr && relayed->path != RelayPath::Nowhere);
}

// By this node's registry; nobody is one before the node has a history.
bool is_stranger(const History* history, const net::NodeId& from) {
  return history != nullptr && history->tip().registry->find(from) == nullptr;
}

// The verdict about an encoded item that a node does not read, because a stranger has sent it. Later: the node
// looks for newer blocks.
std::optional<Verdict> verdict_unread(const History* history, const net::NodeId& from, ByteSpan item) {
  if (!is_stranger(history, from)) return std::nullopt;
  switch (item_of_stranger(item)) {
    case StrangerItem::Read: return std::nullopt;
    case StrangerItem::Later: return Verdict::Later;
    case StrangerItem::Refuse: return Verdict::NotMember;
  }
  return std::nullopt;
}

// A candidate keeps one voucher, and anybody can be a member. So only a voter's own voucher counts. Later: its issuer may
// vote by a block that this node has not got yet.
Verdict verdict_of_offer(const HeldVoucher& held, const net::NodeId& from, const ChainTip& tip,
                         const Hash256& network) {
  if (crypto::node_id(held.voucher.issuer) != from ||
      crypto::KeyPair::from_seed(held.secret).public_key() != held.voucher.key)
    return Verdict::Inadmissible;
  if (!voucher_holds(held.voucher, network)) return Verdict::BadSignature;
  const MemberRecord* issuer = tip.registry->find(from);
  const WalletRecord* wallet = issuer != nullptr ? tip.registry->wallet(issuer->wallet) : nullptr;
  const bool may_vouch = wallet != nullptr && wallet->voter && wallet->is_trusted();
  return may_vouch ? Verdict::Taken : Verdict::Later;
}

}  // namespace

void ChainNode::on_call(const net::Caller& from, net::Method method, ByteSpan request,
                        const net::Reply& reply) {
  switch (method) {
    case net::Method::ChainPost: return reply(on_post(from, request));
    case net::Method::ChainStatus: return reply(on_status_request(from.id, request));
    case net::Method::ChainBlocks: return reply(server_.blocks(history(), request));
    case net::Method::ChainRegistry: return reply(server_.registry(history(), request));
    default: return reply(make_error(ErrorCode::Unsupported, "not a method of the chain"));
  }
}

net::Answer ChainNode::on_post(const net::Caller& caller, ByteSpan request) {
  const net::NodeId& from = caller.id;
  bytes_received_ += request.size();
  PostAnswer answer;
  if (const auto refused = verdict_unread(history(), from, request)) {
    if (*refused == Verdict::Later) sync_.catch_up_stranger(caller);
    answer.verdict = *refused;
    answer.height = history_->tip().height();
    return {encode_answer(answer), std::nullopt};
  }
  std::optional<net::Fault> fault;
  auto item = decode_item(request, options_.rules.network, services_.cache);
  answer.verdict = item.ok() ? on_item(caller, *item) : Verdict::Malformed;
  if (item.ok() && options_.vouch_on_lan && is_near(caller.endpoint.ip, options_.vouch_on_loopback) &&
      is_own_statement(*item))
    vouching_.candidate_is_near(from);
  answer.height = history_ ? history_->tip().height() : 0;
  if (!item.ok()) fault = net::Fault::Malformed;
  if (answer.verdict == Verdict::BadSignature) fault = net::Fault::BadSignature;
  outbox_.heard(from);
  continuation_.heard(from);
  return {encode_answer(answer), fault};
}

Verdict ChainNode::on_item(const net::Caller& caller, ChainItem& item) {
  struct Visitor {
    ChainNode& node;
    const net::Caller& caller;
    const net::NodeId& from = caller.id;
    Verdict agreement(const AgreementItem& item, const Place& place) {
      return node.on_agreement(from, item, place.height, place.previous);
    }
    Verdict operator()(const Proposal& item) { return agreement(item, place_of(item)); }
    Verdict operator()(const SignedVote& item) { return agreement(item, place_of(item)); }
    Verdict operator()(const NewView& item) { return agreement(item, place_of(item)); }
    Verdict operator()(const Locked& item) { return agreement(item, place_of(item)); }
    Verdict operator()(const CertifiedPost& item) { return node.on_certified(caller, item); }
    Verdict operator()(const Heartbeat& item) { return node.on_heartbeat(from, item); }
    Verdict operator()(const StatementPost& item) {
      if (!node.history_) return Verdict::Busy;
      const Verdict verdict = node.mempool_.take(item.statement, node.history_->tip());
      if (verdict == Verdict::Taken && node.height_) node.height_->advance();
      return verdict;
    }
    Verdict operator()(const EvidencePost& item) {
      if (!node.history_) return Verdict::Busy;
      if (is_accusation(item.evidence))
        return node.services_.content.on_accusation(from, item.evidence, node.history_->tip());
      const Verdict verdict = node.take_evidence(item.evidence);
      if (verdict == Verdict::Taken && node.height_) node.height_->advance();
      return verdict;
    }
    Verdict operator()(const RoundsPost& item) {
      if (!node.history_) return Verdict::Busy;
      const Verdict verdict = node.services_.content.on_post(from, item, node.history_->tip());
      if (verdict == Verdict::Later) node.sync_.catch_up(from);
      return verdict;
    }
    Verdict operator()(const GenesisHello& item) {
      if (!node.open_start_) return node.history_ ? Verdict::Past : Verdict::Busy;
      return node.open_start_->take(caller, item, node.services_.clock.monotonic_now());
    }
    Verdict operator()(const GenesisProposal& item) {
      if (!node.open_start_) return node.history_ ? Verdict::Past : Verdict::Busy;
      OpenStart::Output output;
      const Verdict verdict = node.open_start_->take(from, item, node.services_.clock.monotonic_now(),
                                                     node.services_.clock.wall_now(), &output);
      node.handle(std::move(output));
      return verdict;
    }
    Verdict operator()(const GenesisSignature& item) {
      if (!node.open_start_) return node.history_ ? Verdict::Past : Verdict::Busy;
      OpenStart::Output output;
      const Verdict verdict = node.open_start_->take(from, item, &output);
      node.handle(std::move(output));
      return verdict;
    }
    Verdict operator()(const VoucherOffer& item) {
      if (!node.membership_ || !node.history_) return Verdict::Busy;
      const ChainTip& tip = node.history_->tip();
      const Verdict verdict = verdict_of_offer(item.held, from, tip, node.options_.rules.network);
      if (verdict == Verdict::Later) node.sync_.catch_up(from);
      if (verdict != Verdict::Taken) return verdict;
      node.membership_->take_voucher(item.held, tip);
      node.say_missing_statement();
      return Verdict::Taken;
    }
    Verdict operator()(const SuccessionProposal& item) { return node.continuation_.take(item); }
    // The node passes a right and new item on along the path that its sender named.
    Verdict operator()(RelayedPost& post) {
      // Only a voter passes on bundles of others' items.
      if (post.items.size() > 1 && is_stranger(node.history(), from)) return Verdict::NotMember;
      Verdict all = Verdict::Known;
      for (Bytes& bytes : post.items) {
        if (const auto refused = verdict_unread(node.history(), from, bytes)) return *refused;
        auto item = decode_item(bytes, node.options_.rules.network, node.services_.cache);
        const Verdict verdict = item.ok() ? node.on_item(caller, *item) : Verdict::Malformed;
        if (verdict == Verdict::Malformed || verdict == Verdict::BadSignature) return verdict;
        if (verdict == Verdict::Taken) node.relay_.pass_on(post.path, std::move(bytes));
        // For an item that this node can take only later, the whole bundle is sent again.
        if (!wants_it_later(all) && verdict != Verdict::Known) all = verdict;
      }
      return all;
    }
  };
  return std::visit(Visitor{*this, caller}, item);
}

Verdict ChainNode::on_agreement(const net::NodeId& from, const AgreementItem& item, std::uint64_t height,
                                const Hash256& previous) {
  if (!history_) return Verdict::Busy;
  const ChainTip& tip = history_->tip();
  if (height == tip.height())
    if (const auto* vote = std::get_if<SignedVote>(&item)) {
      const auto both = late_contradiction(*vote, tip, history_->find(height));
      if (!both || mempool_.has_evidence(both->node)) return Verdict::Past;
      if (!services_.checks.vote(*vote, both->node, options_.rules.network)) return Verdict::BadSignature;
      add_evidence(*both);
      return Verdict::Equivocation;
    }
  if (height <= tip.height()) return Verdict::Past;
  if (height > tip.height() + 1) {
    sync_.catch_up(from);
    return Verdict::Later;
  }
  if (previous != tip.block->hash) return Verdict::OtherHistory;
  if (!height_) return tip.committee->position(self_) ? Verdict::Busy : Verdict::NotMember;
  const auto position = tip.committee->position(from);
  if (!position) return Verdict::NotMember;
  return height_->on_item(*position, item);
}

Verdict ChainNode::on_certified(const net::Caller& caller, const CertifiedPost& post) {
  const net::NodeId& from = caller.id;
  if (!history_) {
    sync_.catch_up(from);
    return Verdict::Busy;
  }
  // A stranger's block costs a quorum of signature checks, so it only announces that there is one.
  if (is_stranger(history(), from)) {
    if (post.height <= history_->tip().height()) return Verdict::Known;
    sync_.catch_up_stranger(caller);
    return Verdict::Taken;
  }
  const bool rival =
      post.block && post.height == history_->tip().height() && post.hash != history_->tip().block->hash;
  if (rival) return take_block(*post.block, true).ok() ? Verdict::Taken : Verdict::BadCertificate;
  if (post.height <= history_->tip().height()) return Verdict::Known;
  if (post.block && post.height == history_->tip().height() + 1)
    return take_block(*post.block, true).ok() ? Verdict::Taken : Verdict::BadCertificate;
  sync_.catch_up(from);
  return Verdict::Taken;
}

Verdict ChainNode::on_heartbeat(const net::NodeId& from, const Heartbeat& heartbeat) {
  if (!history_) return Verdict::Busy;
  const net::NodeId id = crypto::node_id(heartbeat.node);
  const ChainTip& tip = history_->tip();
  const auto position = tip.committee->position(id);
  if (!position) return Verdict::NotMember;
  const auto wall = static_cast<std::uint64_t>(to_unix_ms(services_.clock.wall_now()));
  if (heartbeat.time_ms + heartbeat_life_ms < wall || heartbeat.time_ms > wall + max_clock_lead_ms)
    return Verdict::Past;
  const std::uint32_t number = tip.committee->members()[*position].number;
  if (id != from) {
    if (is_stranger(history(), from)) return Verdict::NotMember;
    if (!presence_.is_newer(number, heartbeat.time_ms)) return Verdict::Known;
    if (!services_.checks.heartbeat(heartbeat, options_.rules.network)) return Verdict::BadSignature;
  }
  presence_.said(number, heartbeat.time_ms);
  if (id == from && restart_.note(from, heartbeat, *tip.registry)) outbox_.again(from);
  if (heartbeat.tip.height > tip.height()) sync_.catch_up(from);
  // While a block is due, only its votes show that a voter takes part.
  if (!height_ || !height_->is_due()) presence_.heard(number, services_.clock.monotonic_now());
  return Verdict::Taken;
}

void ChainNode::on_answer(const net::NodeId& from, const PostAnswer& answer) {
  if (!history_) return;
  const ChainTip& tip = history_->tip();
  if (answer.height > tip.height()) sync_.catch_up(from);
  continuation_.heard(from, answer.height);
  const auto position = tip.committee->position(from);
  if (position && (!height_ || !height_->is_due()))
    presence_.heard(tip.committee->members()[*position].number, services_.clock.monotonic_now());
}

void ChainNode::on_status(const net::Contact& from, const ChainStatus& status) {
  if (!history_ || status.genesis != history_->genesis()) return;
  continuation_.heard(from.id, status.height);
  const ChainTip& tip = history_->tip();
  const AgreementMemory& votes = height_ ? height_->memory() : kept_votes_.memory();
  const auto told = restart_.on_status(from.id, status, tip, {votes, services_.content.signed_by(self_)});
  if (told.forgotten) kept_votes_.begin_after(tip.height() + 1, tip.block->hash, told.forgotten->view);
  // In a large committee only leaders have the votes.
  const bool asks = kept_votes_.is_missed_at(tip, self_) && !tip.committee->is_collected();
  const KeptVotes::Answer answer{told.forgotten, status.view, !status.forgot_votes};
  const bool all_told =
      asks && told.counts &&
      kept_votes_.on_answer(from.id, tip.height() + 1, tip.block->hash, answer, tip.committee->others(self_));
  if (all_told) services_.logger.info("chain", "all voters told what they hold, so this node votes again");
  if (told.changed || all_told) open_height();
  const auto position = tip.committee->position(from.id);
  if (position && height_ && status.height == tip.height()) height_->on_view(*position, status.view);
}

// A node that was started since has forgotten what it took, so all of it goes out once more.
Expected<Bytes> ChainNode::on_status_request(const net::NodeId& from, ByteSpan request) {
  NS_ASSIGN_OR_RETURN(const StatusRequest asked, decode_status_request(request));
  ChainStatus answer = status();
  if (!history_ || !asked.asker) return encode_status(answer);
  const ChainTip& tip = history_->tip();
  if (restart_.note(from, *asked.asker, *tip.registry)) outbox_.again(from);
  if (const Heartbeat* newest = restart_.newest(from)) answer.asker = *newest;
  if (!asked.asks_signed || tip.registry->find(from) == nullptr) return encode_status(answer);
  answer.of_asker = services_.content.signed_by(from);
  const auto position = tip.committee->position(from);
  answer.forgot_votes = forgot_votes_;
  if (!position) return encode_status(answer);
  if (const SignedVote* vote = height_ ? height_->vote_of(*position) : nullptr)
    answer.of_asker.vote = *vote;
  else
    answer.of_asker.vote = vote_in_lock(height_ ? height_->memory() : kept_votes_.memory(), tip,
                                        tip.committee->members()[*position].number);
  return encode_status(answer);
}

ChainStatus ChainNode::status() const {
  ChainStatus status;
  status.awaits_genesis = state_ == NodeState::Beginning;
  if (!history_) return status;
  const ChainTip& tip = history_->tip();
  status.genesis = history_->genesis();
  status.height = tip.height();
  status.tip = tip.block->hash;
  status.round = tip.registry->round();
  status.first_height = history_->first_height();
  status.view = height_ && height_->is_due() ? height_->view() : 0;
  return status;
}

ChainView ChainNode::view() const {
  ChainView view;
  view.state = state_;
  view.evidence = evidence_;
  view.is_writable = durable_.is_writable();
  view.peers = sync_.seen();
  view.bytes_sent = outbox_.bytes_sent();
  view.bytes_received = bytes_received_;
  view.refused_anchors = open_start_ && open_start_->refused_anchors();
  if (open_start_) view.wanted_tokenizer = open_start_->wanted_tokenizer();
  if (!history_) return view;
  const ChainTip& tip = history_->tip();
  const Registry& registry = *tip.registry;
  if (registry.tokenizer() != options_.model.tokenizer) view.wanted_tokenizer = registry.tokenizer();
  view.genesis = history_->genesis();
  view.height = tip.height();
  view.round = registry.round();
  view.members = registry.members().size();
  view.voters = registry.voter_count();
  view.committee = tip.committee->size();
  view.revoked = registry.revocation(services_.key.public_key(), options_.delegation.wallet_key) != nullptr;
  if (const MemberRecord* own = registry.find(self_)) {
    view.member = true;
    view.voter = registry.is_voter(*own);
    view.active = own->presence == Presence::Active;
    view.admission = admission_progress(options_.rules, registry, *registry.wallet(own->wallet));
  }
  const Continuation::Reach reach = continuation_.reach(*tip.committee);
  view.active_units = reach.active;
  view.heard_units = reach.heard;
  view.outlook = outlook(*tip.committee, reach.heard);
  if (continuation_.asks()) view.asks_succession = continuation_.asks()->hash;
  for (const std::uint32_t number : reach.missing)
    if (const MemberRecord* member = registry.find(number)) view.missing.push_back(member->id);
  if (height_) {
    view.view = height_->view();
    view.block_due = height_->is_due();
    view.stalled = height_->is_stalled();
  }
  view.runs_twice = restart_.runs_twice();
  view.lacks_votes = kept_votes_.is_missed_at(tip, self_);
  return view;
}

}  // namespace neuroshard::chain
