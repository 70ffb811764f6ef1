// Outer rounds and the network's training.
#include "core/control/detail/convert.h"
#include "core/control/detail/convert_parts.h"

namespace neuroshard::control::detail {
namespace {

void encode_global(const node::GlobalTrainingView& from, wire::GlobalTraining* to) {
  to->set_reports(from.reports);
  to->set_wallets(from.wallets);
  to->set_training_nodes(from.training_nodes);
  if (from.loss) to->set_loss(*from.loss);
  if (from.least_loss) to->set_least_loss(*from.least_loss);
  if (from.tokens_per_second) to->set_tokens_per_second(*from.tokens_per_second);
  to->set_tokens(from.tokens);
  to->set_steps(from.steps);
  to->set_outer_syncs(from.outer_syncs);
  to->set_data_shards(from.data_shards);
  if (from.hash_agreement) to->set_hash_agreement(*from.hash_agreement);
  to->set_agreement_round(from.agreement_round);
  if (from.sync_success) to->set_sync_success(*from.sync_success);
  to->set_loss_trend(from.loss_trend);
  to->set_converging(from.converging);
  to->set_verified(from.verified);
  to->set_verified_reason(from.verified_reason);
}

node::GlobalTrainingView decode_global(const wire::GlobalTraining& from) {
  node::GlobalTrainingView to;
  to.reports = from.reports();
  to.wallets = from.wallets();
  to.training_nodes = from.training_nodes();
  if (from.has_loss()) to.loss = from.loss();
  if (from.has_least_loss()) to.least_loss = from.least_loss();
  if (from.has_tokens_per_second()) to.tokens_per_second = from.tokens_per_second();
  to.tokens = from.tokens();
  to.steps = from.steps();
  to.outer_syncs = from.outer_syncs();
  to.data_shards = from.data_shards();
  if (from.has_hash_agreement()) to.hash_agreement = from.hash_agreement();
  to.agreement_round = from.agreement_round();
  if (from.has_sync_success()) to.sync_success = from.sync_success();
  to.loss_trend = from.loss_trend();
  to.converging = from.converging();
  to.verified = from.verified();
  to.verified_reason = from.verified_reason();
  return to;
}

void encode_chain(const node::ChainView& from, wire::Chain* to) {
  to->set_genesis(from.genesis);
  to->set_height(from.height);
  to->set_block_age(from.block_age);
  to->set_block_due(from.block_due);
  to->set_stalled(from.stalled);
  to->set_voters_mode(from.voters_mode);
  to->set_voters(from.voters);
  to->set_committee(from.committee);
  to->set_candidates(from.candidates);
  to->set_active_units(from.active_units);
  to->set_heard_units(from.heard_units);
  to->set_missing_count(from.missing_count);
  for (const std::string& id : from.missing) to->add_missing(id);
  to->set_standing(from.standing);
  to->set_contributions(from.contributions);
  to->set_contributions_needed(from.contributions_needed);
  to->set_needs_voucher(from.needs_voucher);
  to->set_outlook(from.outlook);
  to->set_person_needed_seconds(from.person_needed_seconds);
  to->set_asks_succession(from.asks_succession);
  for (const node::OtherHistory& other : from.others) {
    wire::OtherHistory* sent = to->add_other();
    sent->set_genesis(other.genesis);
    sent->set_peers(other.peers);
  }
}

node::ChainView decode_chain(const wire::Chain& from) {
  node::ChainView to;
  to.genesis = from.genesis();
  to.height = from.height();
  to.block_age = from.block_age();
  to.block_due = from.block_due();
  to.stalled = from.stalled();
  to.voters_mode = from.voters_mode();
  to.voters = from.voters();
  to.committee = from.committee();
  to.candidates = from.candidates();
  to.active_units = from.active_units();
  to.heard_units = from.heard_units();
  to.missing_count = from.missing_count();
  to.missing.assign(from.missing().begin(), from.missing().end());
  to.standing = from.standing();
  to.contributions = from.contributions();
  to.contributions_needed = from.contributions_needed();
  to.needs_voucher = from.needs_voucher();
  to.outlook = from.outlook();
  to.person_needed_seconds = from.person_needed_seconds();
  to.asks_succession = from.asks_succession();
  for (const wire::OtherHistory& sent : from.other()) to.others.push_back({sent.genesis(), sent.peers()});
  return to;
}

void encode_round(const node::RoundEntry& from, wire::Round* to) {
  to->set_round(from.round);
  to->set_at(to_unix_ms(from.at));
  to->set_seconds(from.seconds);
  to->set_waited(from.waited);
  to->set_anchor(from.anchor);
  to->set_fetched(from.fetched);
  to->set_rule(from.rule);
  to->set_too_few_to_vote(from.too_few_to_vote);
  to->set_tokens(from.tokens);
  to->set_members(from.members);
  to->set_contributors(from.contributors);
  to->set_step(from.step);
  for (const node::RoundMemberEntry& member : from.who) {
    wire::RoundMember* sent = to->add_who();
    sent->set_id(member.id);
    sent->set_mine(member.mine);
    sent->set_contributed(member.contributed);
    sent->set_steps(member.steps);
    sent->set_tokens(member.tokens);
    if (member.share) sent->set_share(*member.share);
    sent->set_note(member.note);
    sent->set_standing(member.standing);
  }
}

node::RoundEntry decode_round(const wire::Round& from) {
  node::RoundEntry to;
  to.round = from.round();
  to.at = wall_time(from.at());
  to.seconds = from.seconds();
  to.waited = from.waited();
  to.anchor = from.anchor();
  to.fetched = from.fetched();
  to.rule = from.rule();
  to.too_few_to_vote = from.too_few_to_vote();
  to.tokens = from.tokens();
  to.members = from.members();
  to.contributors = from.contributors();
  to.step = from.step();
  for (const wire::RoundMember& sent : from.who()) {
    node::RoundMemberEntry member{sent.id(),     sent.mine(),  sent.contributed(), sent.steps(),
                                  sent.tokens(), std::nullopt, sent.note(),        sent.standing()};
    if (sent.has_share()) member.share = sent.share();
    to.who.push_back(std::move(member));
  }
  return to;
}

void encode_node(const node::TrainingNodeEntry& from, wire::TrainingNode* to) {
  to->set_id(from.id);
  to->set_wallet(from.wallet);
  to->set_mine(from.mine);
  to->set_counts(from.counts);
  to->set_training(from.training);
  to->set_round(from.round);
  to->set_anchor(from.anchor);
  if (from.agrees) to->set_agrees(*from.agrees);
  if (from.loss) to->set_loss(*from.loss);
  to->set_tokens_per_second(from.tokens_per_second);
  to->set_steps(from.steps);
  to->set_contributed(from.contributed);
  to->set_synced(from.synced);
  to->set_missed(from.missed);
  if (from.shard) to->set_shard(*from.shard);
  to->set_at(to_unix_ms(from.at));
}

node::TrainingNodeEntry decode_node(const wire::TrainingNode& from) {
  node::TrainingNodeEntry to;
  to.id = from.id();
  to.wallet = from.wallet();
  to.mine = from.mine();
  to.counts = from.counts();
  to.training = from.training();
  to.round = from.round();
  to.anchor = from.anchor();
  if (from.has_agrees()) to.agrees = from.agrees();
  if (from.has_loss()) to.loss = from.loss();
  to.tokens_per_second = from.tokens_per_second();
  to.steps = from.steps();
  to.contributed = from.contributed();
  to.synced = from.synced();
  to.missed = from.missed();
  if (from.has_shard()) to.shard = from.shard();
  to.at = wall_time(from.at());
  return to;
}

}  // namespace

void encode_size(const node::NetworkMemoryView::Model& from, wire::ModelSize* to) {
  to->set_layers(from.layers);
  to->set_hidden(from.hidden);
  to->set_parameters(from.parameters);
  to->set_member_bytes(from.member_bytes);
  to->set_with_room(from.with_room);
  to->set_network_bytes(from.network_bytes);
  to->set_members(from.members);
  to->set_offered(from.offered_bytes);
  to->set_room_percent(from.room_percent);
  to->set_needs_percent(from.needs_percent);
}

node::NetworkMemoryView::Model decode_size(const wire::ModelSize& from) {
  return {from.layers(),        from.hidden(),  from.parameters(), from.member_bytes(), from.with_room(),
          from.network_bytes(), from.members(), from.offered(),    from.room_percent(), from.needs_percent()};
}

void encode_memory(const node::NetworkMemoryView& from, wire::NetworkMemory* to) {
  to->set_members(from.members);
  to->set_known(from.known);
  to->set_offered(from.offered_bytes);
  to->set_own(from.own_bytes);
  to->set_tier(from.tier);
  to->set_next_tier(from.next_tier);
  to->set_next_tier_at(from.next_tier_bytes);
  to->set_needs_room(from.needs_room);
  encode_size(from.present, to->mutable_present());
  if (from.possible) encode_size(*from.possible, to->mutable_possible());
  if (from.next) encode_size(*from.next, to->mutable_next());
  if (from.smaller) encode_size(*from.smaller, to->mutable_smaller());
  to->set_can_change(from.can_change);
  to->set_asked(static_cast<wire::SizeChange>(from.asked));
  to->set_results(from.results);
  to->set_results_needed(from.results_needed);
  to->set_changing(from.changing);
}

node::NetworkMemoryView decode_memory(const wire::NetworkMemory& from) {
  node::NetworkMemoryView to;
  to.members = from.members();
  to.known = from.known();
  to.offered_bytes = from.offered();
  to.own_bytes = from.own();
  to.tier = from.tier();
  to.next_tier = from.next_tier();
  to.next_tier_bytes = from.next_tier_at();
  to.needs_room = from.needs_room();
  to.present = decode_size(from.present());
  if (from.has_possible()) to.possible = decode_size(from.possible());
  if (from.has_next()) to.next = decode_size(from.next());
  if (from.has_smaller()) to.smaller = decode_size(from.smaller());
  to.can_change = from.can_change();
  if (wire::SizeChange_IsValid(from.asked())) to.asked = static_cast<node::SizeChange>(from.asked());
  to.results = from.results();
  to.results_needed = from.results_needed();
  to.changing = from.changing();
  return to;
}

void encode_part(const node::PartView& from, wire::Part* to) {
  to->set_number(from.number);
  to->set_count(from.count);
  to->set_holds(from.holds);
  for (const std::uint32_t holders : from.holders) to->add_holders(holders);
  for (const std::uint32_t speed : from.speeds) to->add_speeds(speed);
  to->set_paused(from.paused);
  to->set_sessions(from.sessions);
  to->set_finished(from.finished);
  to->set_replaced(from.replaced);
  to->set_lost(from.lost);
  to->set_found_right(from.found_right);
  to->set_found_wrong(from.found_wrong);
  to->set_withheld(from.withheld);
  for (const std::uint32_t checkers : from.checkers) to->add_checkers(checkers);
  to->set_follows_plan(from.follows_plan);
  to->set_moves_to(from.moves_to);
  to->set_reason(static_cast<wire::PartReason>(from.reason));
  for (const node::HopView& hop : from.path) {
    wire::Hop* const sent = to->add_path();
    sent->set_node(hop.node);
    if (hop.computing_ms) sent->set_computing_ms(*hop.computing_ms);
    if (hop.between_ms) sent->set_between_ms(*hop.between_ms);
  }
}

node::PartView decode_part(const wire::Part& from) {
  node::PartView to;
  to.number = from.number();
  to.count = from.count();
  to.holds = from.holds();
  to.holders.assign(from.holders().begin(), from.holders().end());
  to.speeds.assign(from.speeds().begin(), from.speeds().end());
  to.paused = from.paused();
  to.sessions = from.sessions();
  to.finished = from.finished();
  to.replaced = from.replaced();
  to.lost = from.lost();
  to.found_right = from.found_right();
  to.found_wrong = from.found_wrong();
  to.withheld = from.withheld();
  to.checkers.assign(from.checkers().begin(), from.checkers().end());
  to.follows_plan = from.follows_plan();
  to.moves_to = from.moves_to();
  // Not one of a later version.
  if (wire::PartReason_IsValid(from.reason())) to.reason = static_cast<node::PartReason>(from.reason());
  for (const wire::Hop& sent : from.path()) {
    node::HopView& hop = to.path.emplace_back();
    hop.node = sent.node();
    if (sent.has_computing_ms()) hop.computing_ms = sent.computing_ms();
    if (sent.has_between_ms()) hop.between_ms = sent.between_ms();
  }
  return to;
}

void encode(const node::RoundsView& from, wire::Rounds* to) {
  to->set_taking_part(from.taking_part);
  to->set_phase(from.phase);
  to->set_round(from.round);
  to->set_anchor(from.anchor);
  to->set_agrees(from.agrees);
  to->set_member(from.member);
  to->set_members(from.members);
  to->set_contributors(from.contributors);
  to->set_steps(from.steps);
  to->set_inner_steps(from.inner_steps);
  to->set_certified(from.certified);
  to->set_contributed(from.contributed);
  to->set_left_out(from.left_out);
  to->set_left_out_reason(from.left_out_reason);
  to->set_fetched(from.fetched);
  to->set_corruptions(from.corruptions);
  to->set_waiting_seconds(from.waiting_seconds);
  to->set_waiting_share(from.waiting_share);
  to->set_bytes_sent(from.bytes_sent);
  to->set_bytes_received(from.bytes_received);
  to->set_trouble(from.trouble);
  if (from.seconds_left) to->set_seconds_left(*from.seconds_left);
  to->set_too_few_to_vote(from.too_few_to_vote);
  encode_global(from.global, to->mutable_global());
  encode_chain(from.chain, to->mutable_chain());
  if (from.part) encode_part(*from.part, to->mutable_part());
  if (from.memory) encode_memory(*from.memory, to->mutable_memory());
}

node::RoundsView decode(const wire::Rounds& from) {
  node::RoundsView to;
  to.taking_part = from.taking_part();
  to.phase = from.phase();
  to.round = from.round();
  to.anchor = from.anchor();
  to.agrees = from.agrees();
  to.member = from.member();
  to.members = from.members();
  to.contributors = from.contributors();
  to.steps = from.steps();
  to.inner_steps = from.inner_steps();
  to.certified = from.certified();
  to.contributed = from.contributed();
  to.left_out = from.left_out();
  to.left_out_reason = from.left_out_reason();
  to.fetched = from.fetched();
  to.corruptions = from.corruptions();
  to.waiting_seconds = from.waiting_seconds();
  to.waiting_share = from.waiting_share();
  to.bytes_sent = from.bytes_sent();
  to.bytes_received = from.bytes_received();
  to.trouble = from.trouble();
  if (from.has_seconds_left()) to.seconds_left = from.seconds_left();
  to.too_few_to_vote = from.too_few_to_vote();
  to.global = decode_global(from.global());
  to.chain = decode_chain(from.chain());
  if (from.has_part()) to.part = decode_part(from.part());
  if (from.has_memory()) to.memory = decode_memory(from.memory());
  return to;
}

void encode(const node::RoundsReport& from, wire::RoundsReport* to) {
  to->set_taking_part(from.taking_part);
  for (const node::RoundEntry& round : from.rounds) encode_round(round, to->add_round());
  for (const node::TrainingNodeEntry& node : from.nodes) encode_node(node, to->add_node());
  for (const node::GlobalLossPoint& point : from.losses) {
    wire::GlobalLoss* sent = to->add_loss();
    sent->set_round(point.round);
    sent->set_loss(point.loss);
  }
  for (const node::RefusedEntry& refused : from.refused) {
    wire::RefusedPosts* sent = to->add_refused();
    sent->set_reason(refused.reason);
    sent->set_count(refused.count);
  }
}

node::RoundsReport decode(const wire::RoundsReport& from) {
  node::RoundsReport to;
  to.taking_part = from.taking_part();
  for (const wire::Round& sent : from.round()) to.rounds.push_back(decode_round(sent));
  for (const wire::TrainingNode& sent : from.node()) to.nodes.push_back(decode_node(sent));
  for (const wire::GlobalLoss& sent : from.loss()) to.losses.push_back({sent.round(), sent.loss()});
  for (const wire::RefusedPosts& sent : from.refused()) to.refused.push_back({sent.reason(), sent.count()});
  node::bound(to);
  return to;
}

void encode(const node::ContinuationRequest& from, wire::ContinuationRequest* to) {
  for (const std::string& id : from.without) to->add_without(id);
  to->set_agree(from.agree);
}

node::ContinuationRequest decode(const wire::ContinuationRequest& from) {
  return {{from.without().begin(), from.without().end()}, from.agree()};
}

void encode(const node::ContinuationReply& from, wire::ContinuationReply* to) {
  for (const std::string& id : from.without) to->add_without(id);
}

node::ContinuationReply decode(const wire::ContinuationReply& from) {
  return {{from.without().begin(), from.without().end()}};
}

void encode(const node::RevocationRequest& from, wire::RevocationRequest* to) {
  to->set_node(from.node);
  to->set_wallet(from.wallet);
  to->set_statement(std::string(as_text(from.statement)));
}

node::RevocationRequest decode(const wire::RevocationRequest& from) {
  return {from.node(), from.wallet(), Bytes(from.statement().begin(), from.statement().end())};
}

void encode(const node::RevocationReply& from, wire::RevocationReply* to) {
  to->set_node(from.node);
  to->set_network(from.network);
  to->set_statement(std::string(as_text(from.statement)));
  to->set_height(from.height);
  to->set_revoked_at(from.revoked_at);
}

node::RevocationReply decode(const wire::RevocationReply& from) {
  return {from.node(), from.network(), Bytes(from.statement().begin(), from.statement().end()), from.height(),
          from.revoked_at()};
}

}  // namespace neuroshard::control::detail
