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
  auto state = std::make_shared<rounds::OuterState>();
  const auto first = weights.begin() + static_cast<std::ptrdiff_t>(fragment.first);
  state->weights.assign(first, first + static_cast<std::ptrdiff_t>(fragment.count));
  state->momentum.assign(state->weights.size(), 0.0f);
  return state;
}

}  // namespace

// ---- What a node stands on

class ChainWorld::Directory final : public chain::Peers {
 public:
  Directory(const ChainWorld& world, std::uint64_t seed) : world_(world), rng_(seed) {}
  std::optional<net::Contact> find(const net::NodeId& id) override {
    const auto at = world_.by_id_.find(id);
    if (at == world_.by_id_.end()) return std::nullopt;
    return net::Contact{id, endpoint_of_node(at->second)};
  }
  std::vector<net::Contact> some() override {
    std::vector<net::Contact> contacts;
    for (std::size_t i = 0; i < world_.options_.contacts; ++i) {
      const std::size_t node = rng_.below(world_.hosts_.size());
      contacts.push_back({world_.hosts_[node]->id, endpoint_of_node(node)});
    }
    return contacts;
  }

 private:
  const ChainWorld& world_;
  Rng rng_;
};

// A write is on the disk when it is done, and lost with the node before.
class ChainWorld::Store final : public chain::ChainStore {
 public:
  Store(ChainWorld& world, Host& host) : world_(world), host_(host), disk_(host.disk), alive_(host.alive) {}
  Expected<Bytes> load(Record record) override {
    const auto at = disk_.records.find(record);
    if (at == disk_.records.end()) return make_error(ErrorCode::NotFound, "nothing kept");
    return at->second;
  }
  void save(Record record, Bytes bytes, std::function<void(Expected<void>)> done) override {
    host_.cost.written += bytes.size();
    write([this, record, bytes = std::move(bytes)] { disk_.records[record] = bytes; }, std::move(done));
  }
  std::uint64_t first_block() const override { return disk_.first; }
  std::uint64_t block_count() const override { return disk_.blocks.size(); }
  Expected<Bytes> load_block(std::uint64_t height) override {
    if (height < disk_.first || height - disk_.first >= disk_.blocks.size())
      return make_error(ErrorCode::NotFound, "no such block");
    return *disk_.blocks[height - disk_.first];
  }
  void append_block(std::uint64_t height, Bytes block, std::function<void(Expected<void>)> done) override {
    host_.cost.written += block.size();
    write(
        [this, height, block = world_.disks_.hold(std::move(block))] {
          if (height == disk_.first + disk_.blocks.size()) disk_.blocks.push_back(block);
        },
        std::move(done));
  }
  void begin_log(std::uint64_t first_height, std::function<void(Expected<void>)> done) override {
    write(
        [this, first_height] {
          disk_.blocks.clear();
          disk_.first = first_height;
        },
        std::move(done));
  }
  void drop_last(std::function<void(Expected<void>)> done) override {
    write([this] { disk_.blocks.pop_back(); }, std::move(done));
  }

 private:
  void write(std::function<void()> change, std::function<void(Expected<void>)> done) {
    world_.world_.after(world_.options_.disk_time,
                        [alive = alive_, change = std::move(change), done = std::move(done)] {
                          if (alive.expired()) return;
                          change();
                          done({});
                        });
  }
  ChainWorld& world_;
  Host& host_;
  ChainDisk& disk_;
  const std::weak_ptr<bool> alive_;
};

class ChainWorld::RoundsStore final : public rounds::RoundStore {
 public:
  RoundsStore(World& world, Host& host, Duration time)
      : world_(world), host_(host), disk_(host.disk), time_(time), alive_(host.alive) {}
  Expected<Bytes> load(Record record) override {
    const auto at = disk_.rounds.find(record);
    if (at == disk_.rounds.end()) return make_error(ErrorCode::NotFound, "nothing kept");
    return at->second;
  }
  void save(Record record, Bytes bytes, std::function<void(Expected<void>)> done) override {
    host_.cost.written += bytes.size();
    world_.after(time_,
                 [this, alive = alive_, record, bytes = std::move(bytes), done = std::move(done)]() mutable {
                   if (alive.expired()) return;
                   disk_.rounds[record] = std::move(bytes);
                   done({});
                 });
  }

 private:
  World& world_;
  Host& host_;
  ChainDisk& disk_;
  const Duration time_;
  const std::weak_ptr<bool> alive_;
};

class ChainWorld::Work final : public rounds::RoundWork {
 public:
  Work(World& world, Duration time, const std::shared_ptr<bool>& alive)
      : world_(world), time_(time), alive_(alive) {}
  void run(std::function<void()> job, std::function<void()> done) override {
    world_.after(time_, [alive = alive_, job = std::move(job), done = std::move(done)] {
      if (alive.expired()) return;
      job();
      done();
    });
  }

 private:
  World& world_;
  const Duration time_;
  const std::weak_ptr<bool> alive_;
};

// Counts what a node sends, and the answers that it gets.
class ChainWorld::CountingCaller final : public net::PeerCaller {
 public:
  CountingCaller(net::PeerCaller& out, Host& host) : out_(out), host_(host), alive_(host.alive) {}
  void call(const net::Contact& peer, net::Method method, Bytes request, Duration deadline,
            net::CallDone done) override {
    ++host_.cost.messages;
    host_.cost.bytes += request.size();
    out_.call(peer, method, std::move(request), deadline,
              [this, alive = alive_, done = std::move(done)](Expected<Bytes> answer) {
                if (!alive.expired() && answer.ok()) host_.cost.received += answer->size();
                done(std::move(answer));
              });
  }

 private:
  net::PeerCaller& out_;
  Host& host_;
  const std::weak_ptr<bool> alive_;
};

class ChainWorld::Watched final : public chain::BlockContent {
 public:
  Watched(ChainWorld& world, std::size_t node, rounds::TrainingRounds& rounds)
      : world_(world), node_(node), rounds_(rounds) {}
  bool is_due(const chain::ChainTip& tip) override { return rounds_.is_due(tip); }
  void make(const chain::ChainTip& tip, std::function<void(chain::Sections)> done) override {
    const ChangeSections& change = world_.hosts_[node_]->change_sections;
    if (!change) return rounds_.make(tip, std::move(done));
    rounds_.make(tip, [&change, tip, done = std::move(done)](chain::Sections sections) {
      change(tip, &sections);
      done(std::move(sections));
    });
  }
  void judge(const chain::ChainTip& tip, const chain::BlockPtr& block, bool binding,
             std::function<void(bool)> done) override {
    const bool lies = world_.hosts_[node_]->change_sections != nullptr;
    rounds_.judge(tip, block, binding && world_.options_.omissions_bind && !lies, std::move(done));
  }
  void on_block(const chain::ChainTip& tip, const chain::CertifiedBlock& block, bool live) override {
    if (before_) {
      world_.saw_block(node_, *before_, block);
      count(*before_, block);
    }
    before_ = tip;
    rounds_.on_block(tip, block, live);
  }
  void on_history(const chain::ChainTip& tip) override {
    before_ = tip;
    rounds_.on_history(tip);
  }
  chain::Verdict on_post(const net::NodeId& from, const chain::RoundsPost& post,
                         const chain::ChainTip& tip) override {
    return rounds_.on_post(from, post, tip);
  }
  chain::SignedByMember signed_by(const net::NodeId& member) const override {
    return rounds_.signed_by(member);
  }
  Duration deadline() const override { return rounds_.deadline(); }

 private:
  // The registry after a block is computed once, by the first node. Each of the others would check the block's
  // signatures for itself, but for those that it remembers (chain/remembered_checks.h).
  void count(const chain::ChainTip& before, const chain::CertifiedBlock& block) {
    Host& host = *world_.hosts_[node_];
    const chain::BlockBody& body = block.block->body;
    host.counted.add(body.statements.size() + body.evidence.size());
    if (!body.close) return;
    const rounds::TrainingView view = host.training->view();
    const bool votes = before.committee->position(host.id).has_value();
    const auto add = [&](std::size_t all, std::size_t known) {
      if (all > (votes ? known : 0)) host.counted.add(all - (votes ? known : 0));
    };
    add(body.close->contributions.size(), view.contributions);
    add(body.close->vectors.size(), view.vectors);
  }

  ChainWorld& world_;
  const std::size_t node_;
  rounds::TrainingRounds& rounds_;
  std::optional<chain::ChainTip> before_;
};

ChainWorld::Host::Host(crypto::KeyPair pair, crypto::KeyPair wallet_pair, SharedChecks& shared)
    : key(std::move(pair)),
      wallet(std::move(wallet_pair)),
      id(crypto::node_id(key.public_key())),
      counted(shared) {}
ChainWorld::Host::~Host() = default;

void ChainWorld::Host::end() {
  chain.reset();
  training.reset();
  caller.reset();
  counting.reset();
  work.reset();
  rounds_store.reset();
  store.reset();
  directory.reset();
  learners.reset();
  model.reset();
  executor.reset();
}

// ---- The world

ChainWorld::ChainWorld(ChainWorldOptions options, MakeModel make_model, MakeDistortion distortion,
                       MakeCaller caller)
    : options_(std::move(options)),
      network_(world_, options_.network, options_.seed),
      make_model_(std::move(make_model)),
      make_distortion_(std::move(distortion)),
      make_caller_(std::move(caller)) {
  chain::ChainRules& rules = options_.chain.rules;
  rules.network = crypto::sha256(as_bytes(std::string_view("simulated network")));
  rules.rows = rules.fragments = static_cast<std::uint32_t>(options_.fragments);
  options_.chain.beacon_length = options_.beacon_length;
  options_.training.chain = rules;
  fragments_ =
      rounds::cut_fragments(options_.initial.size(), options_.fragments, options_.trainer.inner_steps);
  options_.chain.anchors.clear();
  for (const rounds::Fragment& fragment : fragments_) {
    options_.training.shapes.push_back({fragment.row, fragment.first, fragment.count});
    initial_.push_back(initial_state(options_.initial, fragment));
    const auto identity = rounds::anchor_identity(rules.network, options_.training.outer, fragment.row, 0);
    options_.chain.anchors.push_back(rounds::hash_of(identity, *initial_.back()));
  }
  newest_.resize(fragments_.size());
  for (std::size_t i = 0; i < options_.nodes; ++i) {
    const std::size_t wallet = i / std::max<std::size_t>(1, options_.nodes_per_wallet);
    hosts_.push_back(
        std::make_unique<Host>(key_of_node(options_.seed, i), key_of_node(~options_.seed, wallet), checks_));
    Host& host = *hosts_.back();
    by_id_[host.id] = i;
    host.address = network_.add(host.id, endpoint_of_node(i), Nat::None, nullptr);
    network_.set_online(host.address, false);
    for (std::uint32_t row = 0; row < initial_.size(); ++row) host.disk.anchors[row] = {0, initial_[row]};
    host.step_time = options_.trainer.step_time;
  }
  watched_.resize(hosts_.size());
  if (options_.open_start) return;
  if (options_.from_snapshot) {
    begin_at_snapshot();
    return;
  }
  genesis_ = make_genesis();
  for (auto& host : hosts_) {
    host->disk.blocks = {disks_.hold(chain::encode_certified(*genesis_))};
    host->disk.first = 0;
    host->disk.records[chain::ChainStore::Record::Votes] = chain::encode_agreement_memory({});
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
  body.genesis->anchors = options_.chain.anchors;
  const std::size_t founders = options_.founders == 0 ? hosts_.size() : options_.founders;
  std::vector<const Host*> signers;
  for (std::size_t i = 0; i < founders; ++i) {
    const Host& host = *hosts_[i];
    chain::OwnMembership membership(options_.chain.rules, host.key, delegation(host), host.id, std::nullopt,
                                    options_.chain.beacon_length);
    body.genesis->founders.push_back(membership.founding());
    signers.push_back(&host);
  }
  std::sort(body.genesis->founders.begin(), body.genesis->founders.end(),
            [](const chain::Statement& a, const chain::Statement& b) { return a.node < b.node; });
  return sign_genesis(body, signers);
}

// A genesis of all nodes and of one more, which went away in the first block. What follows from it is what the
// nodes trust; nobody checks its certificate.
void ChainWorld::begin_at_snapshot() {
  const chain::ChainRules& rules = options_.chain.rules;
  const Host gone(key_of_node(options_.seed, hosts_.size()), key_of_node(~options_.seed, hosts_.size()),
                  checks_);
  chain::BlockBody body;
  body.genesis.emplace();
  body.genesis->anchors = options_.chain.anchors;
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
  chain::CertifiedBlock block{tip.block, {}};
  chain::Quorum& quorum = block.certificate.commits;
  quorum.step = chain::VoteStep::Commit;
  quorum.height = 1;
  quorum.previous = genesis;
  quorum.block = tip.block->hash;
  const chain::CommitteeMember& voter = tip.committee->members().front();
  const std::size_t signer = by_id_.at(voter.id);
  quorum.signatures = {{voter.number, chain::sign_vote({quorum.step, 1, genesis, 0, quorum.block},
                                                       voter.number, hosts_[signer]->key, rules.network)
                                          .signature}};
  const auto bytes = disks_.hold(chain::encode_certified(block));
  for (auto& host : hosts_) {
    host->disk.blocks = {bytes};
    host->disk.first = 1;
    host->disk.records[chain::ChainStore::Record::Votes] = chain::encode_agreement_memory({});
    host->disk.records[chain::ChainStore::Record::Snapshot] = Bytes(genesis.begin(), genesis.end());
  }
}

chain::CertifiedBlock ChainWorld::sign_genesis(const chain::BlockBody& body,
                                               const std::vector<const Host*>& signers) {
  const chain::ChainRules& rules = options_.chain.rules;
  CountedChecks checks(checks_);
  auto made = chain::apply_genesis(rules, genesis_time_ms, body, checks);
  NS_CHECK(made.ok());
  chain::CertifiedBlock genesis;
  genesis.block = chain::make_block(made->header, body, {}, rules.network);
  chain::Quorum& quorum = genesis.certificate.commits;
  quorum.step = chain::VoteStep::Genesis;
  quorum.block = genesis.block->hash;
  for (const Host* host : signers) {
    const chain::MemberRecord* member = made->registry->find(host->id);
    const chain::Vote vote{chain::VoteStep::Genesis, 0, {}, 0, genesis.block->hash};
    quorum.signatures.push_back(
        {member->number, chain::sign_vote(vote, member->number, host->key, rules.network).signature});
  }
  std::sort(quorum.signatures.begin(), quorum.signatures.end(),
            [](const auto& a, const auto& b) { return a.voter < b.voter; });
  return genesis;
}

void ChainWorld::start_all() {
  for (std::size_t node = 0; node < hosts_.size(); ++node) start(node);
}

void ChainWorld::start(std::size_t node) {
  Host& host = *hosts_.at(node);
  NS_CHECK(host.alive == nullptr);
  host.end();  // what is left of an earlier life
  host.alive = std::make_shared<bool>(true);
  ++host.lives;
  const std::uint64_t seed = Rng(options_.seed * 1'000'003 + node * 101 + host.lives).next();
  host.executor = std::make_unique<HostExecutor>(world_);
  host.model = make_model_(node, host.lives);
  TrainerOptions trainer = options_.trainer;
  trainer.step_time = host.step_time;
  host.learners = std::make_unique<HostLearners>(world_, *host.executor, *host.model, trainer,
                                                 make_distortion_ ? make_distortion_(node) : nullptr,
                                                 fragments_, options_.initial);
  host.directory = std::make_unique<Directory>(*this, seed + 1);
  host.store = std::make_unique<Store>(*this, host);
  host.rounds_store = std::make_unique<RoundsStore>(world_, host, options_.disk_time);
  host.work = std::make_unique<Work>(world_, options_.work_time, host.alive);
  host.counting = std::make_unique<CountingCaller>(network_.caller(host.address), host);
  net::PeerCaller& out = *host.counting;
  host.caller = make_caller_ ? make_caller_(node, out, host.key) : nullptr;
  net::PeerCaller& caller = host.caller ? *host.caller : out;
  host.training = std::make_unique<rounds::TrainingRounds>(
      rounds::TrainingServices{host.key, caller, *host.directory, *host.executor, world_.clock(),
                               host.learners->by_row(), *host.rounds_store, *host.work, host.counted, logger_,
                               &pool_, options_.from_snapshot ? &steps_ : nullptr},
      options_.training, [this, node](std::uint64_t round, std::uint32_t row, const rounds::Anchor& anchor) {
        saw_anchor(node, round, row, anchor);
      });
  watched_[node] = std::make_unique<Watched>(*this, node, *host.training);
  chain::ChainOptions chain = options_.chain;
  chain.delegation = delegation(host);
  chain.voucher = host.voucher;
  host.chain = std::make_unique<chain::ChainNode>(
      chain::ChainServices{host.key, caller, *host.directory, *host.executor, world_.clock(), *host.store,
                           host.counted, &cache_, *watched_[node], logger_},
      std::move(chain), host.id, seed);
  host.training->attach(*host.chain);
  for (const auto& [row, known] : host.disk.anchors) host.training->offer(row, known.first, known.second);
  network_.set_handler(host.address, [this, node](const net::Caller& from, net::Method method,
                                                  ByteSpan request, const net::Respond& respond) {
    on_call(node, from, method, request, respond);
  });
  network_.set_online(host.address, true);
  host.training->start();
  host.chain->start();
}

void ChainWorld::kill(std::size_t node) {
  Host& host = *hosts_.at(node);
  if (!host.alive) return;
  host.executor->stop();
  host.alive.reset();
  network_.set_online(host.address, false);
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

void ChainWorld::on_call(std::size_t node, const net::Caller& from, net::Method method, ByteSpan request,
                         const net::Respond& answer) {
  Host& host = *hosts_[node];
  if (!host.alive || !host.chain) return;
  host.cost.received += request.size();
  const net::Respond respond = [&host, answer](Expected<Bytes> bytes) {
    ++host.cost.messages;
    if (bytes.ok()) host.cost.bytes += bytes->size();
    answer(std::move(bytes));
  };
  if (host.answers && host.answers(from, method, request, respond)) return;
  if (chain::ChainServer::handles(method)) return host.chain->on_call(from, method, request, respond);
  if (method == net::Method::RoundPiece) return host.training->on_call(from, request, respond);
  respond(make_error(ErrorCode::Unsupported, "no such method"));
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
