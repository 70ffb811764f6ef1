#include "core/chain/open_start.h"

#include <algorithm>
#include <tuple>

#include "core/net/address_group.h"

namespace neuroshard::chain {
namespace {

bool is_founder_statement(const Statement& statement) {
  return std::holds_alternative<Register>(statement.what) && statement.reference == BlockReference{};
}

bool has_only_genesis(const BlockBody& body) {
  BlockBody genesis;
  genesis.genesis = body.genesis;
  return body.genesis && body == genesis;
}

// Of a Register statement.
const crypto::PublicKey& wallet_of(const Statement& founder) {
  return std::get<Register>(founder.what).delegation.wallet_key;
}

BlockBody genesis_body(std::vector<Statement> founders, const InitialModel& model) {
  BlockBody body;
  body.genesis = GenesisSection{std::move(founders), model.anchors, model.tokenizer};
  return body;
}

std::uint64_t genesis_time(WallTime wall) {
  return static_cast<std::uint64_t>(std::max<std::int64_t>(1, to_unix_ms(wall)));
}

}  // namespace

OpenStart::OpenStart(const ChainRules& rules, OpenStartOptions options, const crypto::KeyPair& key,
                     Statement own, InitialModel model, std::optional<crypto::PublicKey> required,
                     SignatureChecks& checks)
    : rules_(rules),
      options_(options),
      key_(key),
      self_(crypto::node_id(key.public_key())),
      own_(std::move(own)),
      model_(std::move(model)),
      required_(required),
      checks_(checks) {}

bool OpenStart::may_begin(const Statement& founder) const {
  return rules_.may_found(wallet_of(founder));
}

bool OpenStart::names_required(const std::vector<Statement>& founders) const {
  return !required_ || std::any_of(founders.begin(), founders.end(), [this](const Statement& founder) {
    return wallet_of(founder) == *required_;
  });
}

// So that no hello can spoil everybody's genesis.
bool OpenStart::could_begin_alone(const Statement& founder) const {
  return apply_genesis(rules_, genesis_time(wall_), genesis_body({founder}, model_), checks_).ok();
}

void OpenStart::begin_again(MonotonicTime now) {
  note_failure();
  signing_.reset();
  since_ = now;
  ++attempts_;
  // Those that are still there say hello again. A node that takes over the tokenizer is silent for a while.
  const bool waits = attempts_ < options_.binding_attempts;
  for (auto heard = heard_.begin(); heard != heard_.end();)
    heard = waits && !is_ready(heard->second) ? std::next(heard) : heard_.erase(heard);
}

void OpenStart::note_failure() {
  if (takes_new_parts())
    for (const auto& [id, heard] : heard_)
      if (heard.spoke) failures_.try_emplace(id, 0);
  if (!signing_) return;
  for (const crypto::PublicKey& founder : signing_->founders)
    if (const auto part = failures_.find(crypto::node_id(founder));
        part != failures_.end() && signing_->signatures.count(founder) == 0)
      ++part->second;
}

std::vector<net::NodeId> OpenStart::counted() const {
  const bool all = failures_.empty() && attempts_ < options_.binding_attempts;
  const auto failures = [&](const net::NodeId& id) {
    const auto part = failures_.find(id);
    return part == failures_.end() ? options_.most_failures : part->second;
  };
  std::uint32_t most = options_.most_failures;  // so many are too many
  for (const auto& [id, heard] : heard_)
    if (attempts_ > options_.binding_attempts && is_ready(heard)) most = std::min(most, failures(id) + 1);
  std::vector<net::NodeId> ids;
  for (const auto& [id, heard] : heard_)
    if (is_ready(heard) && (all || failures(id) < most)) ids.push_back(id);
  return ids;
}

Duration OpenStart::turn(std::size_t rank, std::size_t of) const {
  const auto others = static_cast<std::int64_t>(std::max<std::size_t>(of, 1));
  const Duration step = std::min(options_.next_proposer, options_.all_proposers / others);
  return options_.hello + static_cast<std::int64_t>(rank) * step;
}

std::optional<Hash256> OpenStart::wanted_tokenizer() const {
  if (!since_ || heard_.empty() || now_ - *since_ < options_.hello / 2) return std::nullopt;
  if (attempts_ >= options_.binding_attempts) return std::nullopt;  // perhaps nobody can have it
  const auto& [lowest, heard] = *heard_.begin();
  if (self_ < lowest || is_ready(heard)) return std::nullopt;
  return heard.tokenizer;
}

OpenStart::Output OpenStart::tick(MonotonicTime now, WallTime wall, bool nobody) {
  Output output;
  if (!may_begin(own_)) return output;
  if (!since_) since_ = now;
  now_ = now;
  wall_ = wall;
  const bool complete = signing_ && signing_->is_complete();
  if (signing_ && !complete && now - signing_->since >= options_.release) begin_again(now);
  // Nobody that was heard has proposed anything: perhaps they are gone.
  const Duration patience = turn(heard_.size(), heard_.size()) + options_.release;
  if (!signing_ && now - *since_ >= patience) begin_again(now);

  if (!sent_ || now - *sent_ >= options_.repeat) {
    sent_ = now;
    output.to_all.push_back(GenesisHello{own_, model_.tokenizer});
    if (signing_ && signing_->is_own) output.to_all.push_back(GenesisProposal{signing_->block});
    if (signing_) output.to_all.push_back(own_signature());
  }
  if (!signing_ && is_turn_to_propose(now, nobody)) propose(now, wall, &output);
  return output;
}

bool OpenStart::is_turn_to_propose(MonotonicTime now, bool nobody) const {
  const Duration waited = now - *since_;
  if (heard_.empty()) return waited >= (nobody ? options_.hello_alone : options_.hello);
  const bool waits = attempts_ < options_.binding_attempts && failures_.empty();
  if (waits &&
      std::any_of(heard_.begin(), heard_.end(), [&](const auto& each) { return !is_ready(each.second); }))
    return false;
  const std::vector<net::NodeId> others = counted();
  const auto rank = std::lower_bound(others.begin(), others.end(), self_) - others.begin();
  return waited >= turn(static_cast<std::size_t>(rank), others.size());
}

void OpenStart::propose(MonotonicTime now, WallTime wall, Output* output) {
  std::vector<Statement> founders{own_};
  for (const net::NodeId& id : counted()) founders.push_back(heard_.at(id).founder);
  if (!names_required(founders)) return;  // perhaps it comes yet
  std::sort(founders.begin(), founders.end(),
            [](const Statement& a, const Statement& b) { return a.node < b.node; });
  BlockBody body = genesis_body(std::move(founders), model_);
  const auto proposed = apply_genesis(rules_, genesis_time(wall), body, checks_);
  if (!proposed.ok()) return begin_again(now);
  BlockPtr block = make_block(proposed->header, std::move(body), {}, rules_.network);
  output->to_all.push_back(GenesisProposal{block});
  sign(std::move(block), true, now, output);
}

Verdict OpenStart::take(const net::Caller& from, const GenesisHello& hello, MonotonicTime now) {
  if (!is_founder_statement(hello.founder) || crypto::node_id(hello.founder.node) != from.id ||
      from.id == self_)
    return Verdict::Malformed;
  if (!since_) return Verdict::Busy;
  const auto known = heard_.find(from.id);
  if (known != heard_.end() && known->second.founder == hello.founder &&
      known->second.tokenizer == hello.tokenizer)
    return Verdict::Known;
  if (!may_begin(hello.founder)) return Verdict::Inadmissible;
  const std::uint64_t group = net::limit_group(from.endpoint.ip);
  const bool is_full = known == heard_.end() && heard_.size() + 1 >= options_.most_founders;
  const auto gives_way = is_full ? most_crowded(group) : heard_.end();
  if (is_full && gives_way == heard_.end()) return Verdict::Limit;
  if (!checks_.statement(hello.founder, rules_.network)) return Verdict::BadSignature;
  if (!could_begin_alone(hello.founder)) return Verdict::Inadmissible;
  if (gives_way != heard_.end()) heard_.erase(gives_way);
  heard_.insert_or_assign(from.id, Heard{hello.founder, hello.tokenizer, group, now});
  return Verdict::Taken;
}

// The one heard last of the group with most places, if that has at least two more than the key's own.
std::map<net::NodeId, OpenStart::Heard>::iterator OpenStart::most_crowded(std::uint64_t group) {
  std::map<std::uint64_t, std::size_t> places;
  for (const auto& [id, heard] : heard_) ++places[heard.group];
  const auto order = [&](const auto& a, const auto& b) {
    return std::tuple(places[a.second.group], a.second.group, a.second.since) <
           std::tuple(places[b.second.group], b.second.group, b.second.since);
  };
  const auto last = std::max_element(heard_.begin(), heard_.end(), order);
  return places[last->second.group] > places[group] + 1 ? last : heard_.end();
}

void OpenStart::note_part(const net::NodeId& from) {
  if (const auto heard = heard_.find(from); heard != heard_.end()) heard->second.spoke = true;
}

bool OpenStart::has_other_anchors(const net::NodeId& from, const Block& block) const {
  return heard_.count(from) > 0 && has_only_genesis(block.body) &&
         block.body.genesis->tokenizer == model_.tokenizer &&
         block.body.genesis->anchors.size() == model_.anchors.size() &&
         block.body.genesis->anchors != model_.anchors;
}

// Cheap checks only; genesis_registry() does the others.
Verdict OpenStart::judge(const net::NodeId& from, const Block& block, MonotonicTime now,
                         WallTime wall) const {
  if (!has_only_genesis(block.body) || block.body.genesis->anchors != model_.anchors ||
      block.body.genesis->tokenizer != model_.tokenizer)
    return Verdict::Inadmissible;
  const std::vector<Statement>& founders = block.body.genesis->founders;
  if (founders.size() > options_.most_founders) return Verdict::Inadmissible;
  if (std::find(founders.begin(), founders.end(), own_) == founders.end()) return Verdict::Inadmissible;
  if (!names_required(founders)) return Verdict::Inadmissible;
  if (is_too_far_ahead(block.header.time_ms, static_cast<std::uint64_t>(to_unix_ms(wall))))
    return Verdict::Busy;

  bool lists_sender = false;
  for (const Statement& founder : founders) {
    if (founder == own_) continue;
    const net::NodeId id = crypto::node_id(founder.node);
    const auto heard = heard_.find(id);
    if (heard == heard_.end() || !(heard->second.founder == founder)) return Verdict::Busy;
    if (!takes_new_parts() && failures_.count(id) == 0) return Verdict::Inadmissible;
    if (const auto part = failures_.find(id);
        part != failures_.end() && part->second >= options_.most_failures)
      return Verdict::Inadmissible;
    lists_sender = lists_sender || id == from;
  }
  if (!lists_sender) return Verdict::Inadmissible;
  if (attempts_ >= options_.binding_attempts) return Verdict::Taken;
  const auto is_listed = [&](const crypto::PublicKey& node) {
    return std::any_of(founders.begin(), founders.end(),
                       [&](const Statement& founder) { return founder.node == node; });
  };
  const std::vector<net::NodeId> missed = counted();
  const bool leaves_out = std::any_of(missed.begin(), missed.end(), [&](const net::NodeId& id) {
    const Heard& heard = heard_.at(id);
    return now - heard.since > options_.hello / 2 && !is_listed(heard.founder.node);
  });
  return leaves_out ? Verdict::Inadmissible : Verdict::Taken;
}

Verdict OpenStart::take(const net::NodeId& from, const GenesisProposal& proposal, MonotonicTime now,
                        WallTime wall, Output* output) {
  if (!since_ || !may_begin(own_)) return Verdict::Busy;
  const Block& block = *proposal.block;
  note_part(from);
  if (signing_ && signing_->block->hash == block.hash) {
    output->to_one = {from, own_signature()};
    return Verdict::Known;
  }
  refused_anchors_ = refused_anchors_ || has_other_anchors(from, block);
  if (signing_ && (signing_->is_complete() || now - signing_->since < options_.release)) return Verdict::Busy;
  const Verdict verdict = judge(from, block, now, wall);
  if (verdict != Verdict::Taken) return verdict;
  if (!genesis_registry(rules_, block, checks_).ok()) return Verdict::Inadmissible;
  sign(proposal.block, false, now, output);
  return Verdict::Taken;
}

void OpenStart::sign(BlockPtr block, bool is_own, MonotonicTime now, Output* output) {
  Signing signing{std::move(block), now, is_own, {}, {}};
  for (const Statement& founder : signing.block->body.genesis->founders)
    signing.founders.push_back(founder.node);
  signing_ = std::move(signing);
  const Vote vote = vote_of(own_.node, {}).vote;
  signing_->signatures[own_.node] = sign_vote(vote, 0, key_, rules_.network).signature;
  output->to_all.push_back(own_signature());
  if (signing_->is_complete()) output->genesis = certified();
}

Verdict OpenStart::take(const net::NodeId& from, const GenesisSignature& signature, Output* output) {
  if (crypto::node_id(signature.node) == from) note_part(from);
  if (!signing_ || signing_->block->hash != signature.block) return Verdict::Busy;
  if (!std::binary_search(signing_->founders.begin(), signing_->founders.end(), signature.node))
    return Verdict::NotMember;
  if (signing_->signatures.count(signature.node) > 0) return Verdict::Known;
  if (!checks_.vote(vote_of(signature.node, signature.signature), signature.node, rules_.network))
    return Verdict::BadSignature;
  signing_->signatures[signature.node] = signature.signature;
  if (signing_->is_complete()) output->genesis = certified();
  return Verdict::Taken;
}

std::vector<net::NodeId> OpenStart::heard_nodes() const {
  std::vector<net::NodeId> ids;
  for (const auto& [id, heard] : heard_) ids.push_back(id);
  return ids;
}

SignedVote OpenStart::vote_of(const crypto::PublicKey& node, const crypto::Signature& signature) const {
  const std::vector<crypto::PublicKey>& founders = signing_->founders;
  const auto position = std::lower_bound(founders.begin(), founders.end(), node) - founders.begin();
  SignedVote vote;
  vote.vote = {VoteStep::Genesis, 0, {}, 0, signing_->block->hash};
  vote.voter = static_cast<std::uint32_t>(position);
  vote.signature = signature;
  return vote;
}

GenesisSignature OpenStart::own_signature() const {
  return {signing_->block->hash, own_.node, signing_->signatures.at(own_.node)};
}

CertifiedBlock OpenStart::certified() const {
  Certificate certificate;
  certificate.commits = {{VoteStep::Genesis, 0, {}, 0, signing_->block->hash}, {}};
  for (const auto& [node, signature] : signing_->signatures)
    certificate.commits.signatures.push_back({vote_of(node, signature).voter, signature});
  return make_certified(signing_->block, std::move(certificate));
}

}  // namespace neuroshard::chain
