#include "core/sim/chain_world.h"

#include <algorithm>

#include "core/base/check.h"
#include "core/chain/rights.h"
#include "core/crypto/hash.h"
#include "core/sim/identities.h"

namespace neuroshard::sim {
namespace {

constexpr std::uint64_t genesis_time_ms = 1'700'000'000'000;

rounds::Anchor initial_state(const std::vector<float>& weights, const rounds::Fragment& fragment) {
  const auto count = static_cast<std::size_t>(fragment.count);
  const std::vector<float> momentum(count, 0.0f);
  return rounds::state_in_memory({weights.data() + fragment.first, count}, momentum);
}

}  // namespace

ChainWorld::ChainWorld(ChainWorldOptions options, MakeModel make_model, MakeDistortion distortion,
                       MakeCaller caller)
    : options_(std::move(options)),
      network_(world_, options_.network, options_.seed),
      make_model_(std::move(make_model)),
      make_distortion_(std::move(distortion)),
      make_caller_(std::move(caller)) {
  chain::ChainRules& rules = options_.chain.rules;
  rules.network = crypto::sha256(as_bytes(std::string_view("simulated network")));
  rules.rows = static_cast<std::uint32_t>(options_.fragments);
  rules.fragments = options_.rows_of ? 1 : rules.rows;
  options_.chain.beacon_length = options_.beacon_length;
  options_.training.chain = rules;
  fragments_ =
      rounds::cut_fragments(options_.initial.size(), options_.fragments, options_.trainer.inner_steps);
  options_.chain.model.anchors.clear();
  for (const rounds::Fragment& fragment : fragments_) {
    options_.training.shapes.push_back({fragment.row, fragment.first, fragment.count});
    initial_.push_back(initial_state(options_.initial, fragment));
    const auto identity = rounds::anchor_identity(rules.network, options_.training.outer, fragment.row, 0);
    options_.chain.model.anchors.push_back(rounds::hash_of(identity, *initial_.back()).value());
  }
  newest_.resize(fragments_.size());
  for (std::size_t i = 0; i < options_.nodes; ++i) {
    const std::size_t wallet = i / std::max<std::size_t>(1, options_.nodes_per_wallet);
    hosts_.push_back(
        std::make_unique<Host>(key_of_node(options_.seed, i), key_of_node(~options_.seed, wallet), checks_));
    Host& host = *hosts_.back();
    by_id_[host.id] = i;
    if (options_.rows_of) host.rows = options_.rows_of(i);
    host.address = network_.add(host.id, endpoint_of_node(i), Nat::None, nullptr);
    network_.set_online(host.address, false);
    for (std::uint32_t row = 0; row < initial_.size(); ++row)
      if (host.rows.has(row)) host.disk.anchors[row] = {{0, initial_[row]}};
    host.step_time = options_.trainer.step_time;
  }
  if (options_.open_start) return;
  if (options_.from_snapshot) {
    begin_at_snapshot();
    return;
  }
  genesis_ = make_genesis();
  const auto no_votes = disks_.hold(chain::encode_agreement_memory({}));
  for (auto& host : hosts_) {
    host->disk.blocks = {genesis_->bytes};
    host->disk.first = 0;
    host->disk.records[chain::ChainStore::Record::Votes] = no_votes;
  }
}

ChainWorld::~ChainWorld() {
  for (auto& host : hosts_) {
    host->alive.reset();
    host->end();
  }
}

crypto::Delegation ChainWorld::delegation(const Host& host) const {
  return crypto::delegate(
      host.wallet, host.key.public_key(), options_.chain.rules.network,
      WallTime(std::chrono::milliseconds(genesis_time_ms)) + std::chrono::hours(24 * 365 * 10), 1);
}

// Founders that agreed beforehand: all keys are here.
chain::CertifiedBlock ChainWorld::make_genesis() {
  chain::BlockBody body;
  body.genesis.emplace();
  body.genesis->anchors = options_.chain.model.anchors;
  const std::size_t founders = options_.founders == 0 ? hosts_.size() : options_.founders;
  std::vector<const Host*> signers;
  for (std::size_t i = 0; i < founders; ++i) {
    const Host& host = *hosts_[i];
    chain::OwnMembership membership(options_.chain.rules, host.key, delegation(host), host.id, std::nullopt,
                                    options_.chain.beacon_length, host.rows);
    body.genesis->founders.push_back(membership.founding());
    signers.push_back(&host);
  }
  std::sort(body.genesis->founders.begin(), body.genesis->founders.end(),
            [](const chain::Statement& a, const chain::Statement& b) { return a.node < b.node; });
  return sign_genesis(body, signers);
}

// A genesis of all nodes and of one more, which went away in the first block. The registry after it is what the
// nodes trust; nobody checks its certificate.
void ChainWorld::begin_at_snapshot() {
  const chain::ChainRules& rules = options_.chain.rules;
  const Host gone(key_of_node(options_.seed, hosts_.size()), key_of_node(~options_.seed, hosts_.size()),
                  checks_);
  chain::BlockBody body;
  body.genesis.emplace();
  body.genesis->anchors = options_.chain.model.anchors;
  const auto add = [&](const Host& host) {
    chain::OwnMembership membership(rules, host.key, delegation(host), host.id, std::nullopt,
                                    options_.chain.beacon_length);
    body.genesis->founders.push_back(membership.founding());
  };
  for (const auto& host : hosts_) add(*host);
  add(gone);
  std::sort(body.genesis->founders.begin(), body.genesis->founders.end(),
            [](const chain::Statement& a, const chain::Statement& b) { return a.node < b.node; });
  CountedChecks checks(checks_);
  const auto made = chain::apply_genesis(rules, genesis_time_ms, body, checks);
  NS_CHECK(made.ok());
  const Hash256 genesis = chain::make_block(made->header, body, {}, rules.network)->hash;
  chain::BlockBody first;
  chain::Statement away;
  away.node = gone.key.public_key();
  away.reference = {0, genesis};
  away.what = chain::Away{};
  chain::sign_statement(away, gone.key, rules.network);
  first.statements = {away};
  const auto next = chain::apply_body(rules, *made->registry, genesis, genesis_time_ms + 1, first, checks);
  NS_CHECK(next.ok());
  chain::ChainTip tip;
  tip.opening = made->registry->opening(genesis);
  tip.block = chain::make_block(next->header, first, tip.opening, rules.network);
  tip.registry = next->registry;
  tip.committee = chain::make_committee(rules, *tip.registry);
  cache_.put(tip);
  chain::Certificate certificate;
  chain::Quorum& quorum = certificate.commits;
  quorum.step = chain::VoteStep::Commit;
  quorum.height = 1;
  quorum.previous = genesis;
  quorum.block = tip.block->hash;
  const chain::CommitteeMember& voter = tip.committee->members().front();
  const std::size_t signer = by_id_.at(voter.id);
  quorum.signatures = {{voter.number, chain::sign_vote({quorum.step, 1, genesis, 0, quorum.block},
                                                       voter.number, hosts_[signer]->key, rules.network)
                                          .signature}};
  const chain::CertifiedBlock block = chain::make_certified(tip.block, std::move(certificate));
  const auto no_votes = disks_.hold(chain::encode_agreement_memory({}));
  const auto snapshot = disks_.hold(Bytes(genesis.begin(), genesis.end()));
  for (auto& host : hosts_) {
    host->disk.blocks = {block.bytes};
    host->disk.first = 1;
    host->disk.records[chain::ChainStore::Record::Votes] = no_votes;
    host->disk.records[chain::ChainStore::Record::Snapshot] = snapshot;
  }
}

chain::CertifiedBlock ChainWorld::sign_genesis(const chain::BlockBody& body,
                                               const std::vector<const Host*>& signers) {
  const chain::ChainRules& rules = options_.chain.rules;
  CountedChecks checks(checks_);
  auto made = chain::apply_genesis(rules, genesis_time_ms, body, checks);
  NS_CHECK(made.ok());
  chain::BlockPtr genesis = chain::make_block(made->header, body, {}, rules.network);
  chain::Certificate certificate;
  chain::Quorum& quorum = certificate.commits;
  quorum.step = chain::VoteStep::Genesis;
  quorum.block = genesis->hash;
  for (const Host* host : signers) {
    const chain::MemberRecord* member = made->registry->find(host->id);
    const chain::Vote vote{chain::VoteStep::Genesis, 0, {}, 0, genesis->hash};
    quorum.signatures.push_back(
        {member->number, chain::sign_vote(vote, member->number, host->key, rules.network).signature});
  }
  std::sort(quorum.signatures.begin(), quorum.signatures.end(),
            [](const auto& a, const auto& b) { return a.voter < b.voter; });
  return chain::make_certified(std::move(genesis), std::move(certificate));
}

void ChainWorld::set_part(std::size_t node, int part) {
  network_.set_part(hosts_.at(node)->address, part);
}

void ChainWorld::set_answers(std::size_t node, Answers answers) {
  hosts_.at(node)->answers = std::move(answers);
  set_honest(node, false);
}

void ChainWorld::set_sections(std::size_t node, ChangeSections change) {
  hosts_.at(node)->change_sections = std::move(change);
  set_honest(node, false);
}

NodeCost ChainWorld::cost(std::size_t node) const {
  NodeCost cost = hosts_.at(node)->cost;
  cost.checks = hosts_[node]->counted.count();
  return cost;
}

void ChainWorld::saw_block(std::size_t node, const chain::ChainTip& before,
                           const chain::CertifiedBlock& block) {
  if (!hosts_[node]->honest) return;
  const Hash256& genesis = hosts_[node]->chain->history()->genesis();
  const auto [at, fresh] = blocks_.emplace(std::pair(genesis, block.block->header.height), block.block->hash);
  if (!fresh) {
    if (at->second != block.block->hash) ++seen_.conflicts;
    return;
  }
  ++seen_.blocks;
  if (last_block_) seen_.longest_pause = std::max(seen_.longest_pause, world_.now() - *last_block_);
  last_block_ = world_.now();
  const auto& result = block.block->body.result;
  if (!result) return;
  ++seen_.rounds;
  const chain::ClosedRound& closed = *before.registry->closed();
  for (std::size_t i = 0; i < result->rows.size(); ++i) {
    if (result->rows[i].carried) {
      ++seen_.rows_carried;
      continue;
    }
    seen_.contributions += closed.contributors[i].size();
    seen_.contributors[result->round] = closed.contributors[i].size();
    for (const chain::ContributionEntry& entry : closed.contributions) {
      const auto& in = closed.contributors[i];
      if (!std::binary_search(in.begin(), in.end(), entry.member)) continue;
      // A Byzantine node may well send the same each time: that is its contribution.
      if (!is_honest(*before.registry, entry.member)) continue;
      if (counted_.emplace(entry.work, result->round).first->second != result->round) ++seen_.twice;
    }
  }
}

std::uint64_t ChainWorld::height(std::size_t node) const {
  const Host& host = *hosts_.at(node);
  return host.alive && host.chain && host.chain->history() ? host.chain->history()->tip().height() : 0;
}

std::uint64_t ChainWorld::round(std::size_t node) const {
  const Host& host = *hosts_.at(node);
  return host.alive && host.chain && host.chain->history() ? host.chain->history()->tip().registry->round()
                                                           : 0;
}

bool ChainWorld::run_until(const std::function<bool()>& condition, Duration limit) {
  return world_.run_until(condition, world_.now() + limit);
}

bool ChainWorld::run_to_round(std::uint64_t round_number, Duration limit) {
  return run_until(
      [this, round_number] {
        for (std::size_t node = 0; node < hosts_.size(); ++node)
          if (running(node) && hosts_[node]->honest && round(node) < round_number) return false;
        return true;
      },
      limit);
}

double ChainWorld::agreement_rate() const {
  const chain::Registry* newest = nullptr;
  for (const auto& host : hosts_)
    if (host->alive && host->honest && host->chain->history() != nullptr) {
      const chain::Registry& registry = *host->chain->history()->tip().registry;
      if (newest == nullptr || registry.round() > newest->round()) newest = &registry;
    }
  std::size_t all = 0, right = 0;
  for (const auto& host : hosts_) {
    if (!host->alive || !host->honest) continue;
    ++all;
    if (newest != nullptr && host->training->states().holds_all(*newest)) ++right;
  }
  return all == 0 ? 1 : static_cast<double>(right) / static_cast<double>(all);
}

}  // namespace neuroshard::sim
