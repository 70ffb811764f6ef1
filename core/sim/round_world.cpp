#include "core/sim/round_world.h"

#include <algorithm>

#include "core/base/check.h"
#include "core/crypto/hash.h"

namespace neuroshard::sim {
namespace {

crypto::KeyPair key_of_node(std::uint64_t seed, std::size_t node) {
  Bytes bytes;
  append_le(bytes, seed);
  append_le(bytes, static_cast<std::uint64_t>(node));
  return crypto::KeyPair::from_seed(crypto::sha256(bytes));
}

platform::Endpoint endpoint_of(std::size_t node) {
  return {platform::IpAddress::v4(11, static_cast<std::uint8_t>(node >> 16),
                                  static_cast<std::uint8_t>(node >> 8), static_cast<std::uint8_t>(node)),
          9000};
}

}  // namespace

class RoundWorld::Directory final : public rounds::RoundPeers {
 public:
  Directory(RoundWorld& world, std::uint64_t seed) : world_(world), rng_(seed) {}
  std::optional<net::Contact> find(const net::NodeId& id) override {
    const auto at = world_.by_id_.find(id);
    if (at == world_.by_id_.end()) return std::nullopt;
    return net::Contact{id, endpoint_of(at->second)};
  }
  std::vector<net::Contact> some() override {
    std::vector<net::Contact> contacts;
    for (int i = 0; i < 3; ++i) {
      const std::size_t node = rng_.below(world_.size());
      contacts.push_back({world_.id(node), endpoint_of(node)});
    }
    return contacts;
  }

 private:
  RoundWorld& world_;
  Rng rng_;
};

struct RoundWorld::Host {
  explicit Host(crypto::KeyPair pair) : key(std::move(pair)), id(crypto::node_id(key.public_key())) {}
  const crypto::KeyPair key;
  const net::NodeId id;
  sim::Host address = 0;
  std::map<rounds::RoundStore::Record, Bytes> disk;
  rounds::KnownState checkpoint;
  Duration step_time{};
  std::uint64_t lives = 0;
  bool honest = true;
  // Of one life; in the order of their making.
  std::shared_ptr<bool> alive;
  std::unique_ptr<HostExecutor> executor;
  std::unique_ptr<LocalModel> model;
  std::unique_ptr<RoundTrainer> trainer;
  std::unique_ptr<Directory> directory;
  std::unique_ptr<Store> store;
  std::unique_ptr<Work> work;
  std::unique_ptr<net::PeerCaller> watched, liar;
  std::unique_ptr<rounds::RoundNode> node;

  void end() {
    node.reset();
    liar.reset();
    watched.reset();
    work.reset();
    store.reset();
    directory.reset();
    trainer.reset();
    model.reset();
    executor.reset();
  }
};

// A write is on the disk when it is done, and lost with the node before.
class RoundWorld::Store final : public rounds::RoundStore {
 public:
  Store(World& world, Host& host) : world_(world), host_(host) {}
  Expected<Bytes> load(Record record) override {
    const auto at = host_.disk.find(record);
    if (at == host_.disk.end()) return make_error(ErrorCode::NotFound, "nothing kept");
    return at->second;
  }
  void save(Record record, Bytes bytes, std::function<void(Expected<void>)> done) override {
    world_.after(std::chrono::milliseconds(1), [&host = host_, alive = std::weak_ptr<bool>(host_.alive),
                                                record, bytes = std::move(bytes), done = std::move(done)] {
      if (alive.expired()) return;
      host.disk[record] = bytes;
      done({});
    });
  }

 private:
  World& world_;
  Host& host_;
};

class RoundWorld::Work final : public rounds::RoundWork {
 public:
  Work(World& world, Host& host, Duration time) : world_(world), host_(host), time_(time) {}
  void run(std::function<void()> job, std::function<void()> done) override {
    world_.after(time_,
                 [alive = std::weak_ptr<bool>(host_.alive), job = std::move(job), done = std::move(done)] {
                   if (alive.expired()) return;
                   job();
                   done();
                 });
  }

 private:
  World& world_;
  Host& host_;
  const Duration time_;
};

class RoundWorld::WatchedCaller final : public net::PeerCaller {
 public:
  WatchedCaller(RoundWorld& world, std::size_t node) : world_(world), node_(node) {}
  void call(const net::Contact& peer, net::Method method, Bytes request, Duration deadline,
            net::CallDone done) override {
    if (!world_.running(node_)) return;
    if (world_.watch_ && method == net::Method::RoundPost) {
      const auto item = rounds::decode_item(request);
      if (item.ok() && world_.watch_(node_, *item)) {
        world_.kill(node_);
        return;
      }
    }
    world_.network_.caller(world_.hosts_[node_]->address)
        .call(peer, method, std::move(request), deadline, std::move(done));
  }

 private:
  RoundWorld& world_;
  const std::size_t node_;
};

RoundWorld::RoundWorld(RoundWorldOptions options, MakeModel make_model, MakeDistortion distortion,
                       MakeCaller caller)
    : options_(std::move(options)),
      network_(world_, options_.network, options_.seed),
      make_model_(std::move(make_model)),
      make_distortion_(std::move(distortion)),
      make_caller_(std::move(caller)) {
  auto initial = std::make_shared<rounds::OuterState>();
  initial->weights = options_.initial;
  initial->momentum.assign(options_.initial.size(), 0.0f);
  initial_ = initial;
  std::vector<crypto::PublicKey> founders;
  for (std::size_t i = 0; i < options_.nodes; ++i) {
    hosts_.push_back(std::make_unique<Host>(key_of_node(options_.seed, i)));
    Host& host = *hosts_.back();
    by_id_[host.id] = i;
    host.address = network_.add(host.id, endpoint_of(i), Nat::None, nullptr);
    network_.set_online(host.address, false);
    host.checkpoint = {0, initial_, {}};
    host.step_time = options_.trainer.step_time;
    if (options_.founders == 0 || i < options_.founders) founders.push_back(host.key.public_key());
  }
  if (options_.found_alone) return;
  const auto identity = rounds::anchor_identity(options_.round.rules.network, options_.round.outer,
                                                options_.round.rules.slot, 0);
  genesis_ = rounds::genesis_body(options_.round.rules.slot, rounds::hash_of(identity, *initial_), founders);
}

RoundWorld::~RoundWorld() {
  for (auto& host : hosts_) {
    host->alive.reset();
    host->end();
  }
}

void RoundWorld::start(std::size_t node) {
  Host& host = *hosts_.at(node);
  NS_CHECK(host.alive == nullptr);
  host.end();  // what is left of an earlier life
  ++host.lives;
  host.alive = std::make_shared<bool>(true);
  host.executor = std::make_unique<HostExecutor>(world_);
  host.model = make_model_(node, host.lives - 1);
  TrainerOptions trainer = options_.trainer;
  trainer.step_time = host.step_time;
  host.trainer = std::make_unique<RoundTrainer>(world_, *host.executor, *host.model, trainer,
                                                make_distortion_ ? make_distortion_(node) : nullptr);
  host.directory = std::make_unique<Directory>(*this, options_.seed * 7919 + node);
  host.store = std::make_unique<Store>(world_, host);
  host.work = std::make_unique<Work>(world_, host, options_.work_time);
  host.watched = std::make_unique<WatchedCaller>(*this, node);
  if (make_caller_) host.liar = make_caller_(node, *host.watched, host.key);
  rounds::RoundOptions options = options_.round;
  options.genesis = genesis_;
  host.node = std::make_unique<rounds::RoundNode>(
      rounds::RoundServices{host.key, host.liar ? *host.liar : *host.watched, *host.directory, *host.executor,
                            world_.clock(), *host.trainer, *host.store, *host.work, logger_},
      options, host.checkpoint, options_.seed * 104'729 + node + (host.lives << 32),
      [this, node](const rounds::RoundCertificate& certificate, const rounds::Anchor& state,
                   const rounds::StepResult* step) { certified(node, certificate, state, step); });
  network_.set_handler(host.address, [&host](const net::Caller& from, net::Method method, ByteSpan request,
                                             const net::Respond& respond) {
    if (host.alive) host.node->on_call(from, method, request, respond);
  });
  network_.set_online(host.address, true);
  host.node->start();
}

// The node itself goes with its next start, or with the world: it may be the one that is running now.
void RoundWorld::kill(std::size_t node) {
  Host& host = *hosts_.at(node);
  if (!host.alive) return;
  const rounds::RoundView view = host.node->view();
  seen_.fetched += view.fetched_anchors;
  seen_.corruptions += view.corruptions;
  seen_.provisional += view.provisional;
  seen_.evidence += view.evidence;
  host.alive.reset();
  host.executor->stop();
  network_.set_online(host.address, false);
}

bool RoundWorld::running(std::size_t node) const {
  return hosts_.at(node)->alive != nullptr;
}
void RoundWorld::set_step_time(std::size_t node, Duration step_time) {
  hosts_.at(node)->step_time = step_time;
}
void RoundWorld::set_part(std::size_t node, int part) {
  network_.set_part(hosts_.at(node)->address, part);
}
void RoundWorld::forget_disk(std::size_t node) {
  hosts_.at(node)->disk.clear();
  hosts_.at(node)->checkpoint = {0, initial_, {}};
}
void RoundWorld::set_honest(std::size_t node, bool honest) {
  hosts_.at(node)->honest = honest;
}

bool RoundWorld::honest(const net::NodeId& id) const {
  const auto at = by_id_.find(id);
  return at != by_id_.end() && hosts_[at->second]->honest;
}

void RoundWorld::corrupt(std::size_t node) {
  const rounds::Anchor& held = hosts_.at(node)->node->state();
  NS_CHECK(held != nullptr);
  // What others were given by this node's host are copies.
  auto& weights = const_cast<rounds::OuterState&>(*held).weights;
  for (std::size_t i = 0; i < weights.size(); i += 97) weights[i] += 0.25f;
}

void RoundWorld::certified(std::size_t node, const rounds::RoundCertificate& certificate,
                           const rounds::Anchor& state, const rounds::StepResult*) {
  Host& host = *hosts_[node];
  const rounds::RoundBody& body = certificate.body;
  const std::uint64_t round = body.round;
  const Hash256 genesis = host.node ? host.node->chain()->genesis() : Hash256{};
  const rounds::KnownState checkpoint{round, std::make_shared<rounds::OuterState>(*state), certificate};
  world_.after(std::chrono::milliseconds(1), [&host, alive = std::weak_ptr<bool>(host.alive), checkpoint] {
    if (!alive.expired()) host.checkpoint = checkpoint;
  });
  if (!host.honest) return;
  const auto [at, first] = certificates_.try_emplace({genesis, round}, body);
  if (!first && !(at->second == body)) ++seen_.conflicts;
  if (first && round > 0) {
    seen_.contributions += body.contributors.size();
    for (const rounds::RoundContributor& c : body.contributors) {
      const net::NodeId sender = body.members.at(c.member).id;
      // A liar may well send the same twice, zeros for instance: that is its contribution each time.
      if (!honest(sender)) continue;
      auto& counted = payloads_[{sender, c.payload}];
      counted.insert({genesis, round});
      if (counted.size() > 1) ++seen_.twice;
    }
  }
  const auto identity = rounds::anchor_identity(options_.round.rules.network, options_.round.outer,
                                                options_.round.rules.slot, round);
  auto& [right, all] = right_[{genesis, round}];
  ++all;
  if (rounds::hash_of(identity, *state) == at->second.anchor) ++right;
  seen_.worst_agreement =
      std::min(seen_.worst_agreement, static_cast<double>(right) / static_cast<double>(all));
  if (round > newest_ || !newest_anchor_) {
    newest_ = round;
    newest_anchor_ = checkpoint.state;
  }
}

bool RoundWorld::run_to_round(std::uint64_t round, Duration limit) {
  return world_.run_until(
      [this, round] {
        return std::all_of(hosts_.begin(), hosts_.end(), [round](const auto& host) {
          return !host->alive || !host->honest ||
                 (host->node->state() && host->node->state_round() >= round &&
                  host->node->status().round >= round);
        });
      },
      world_.now() + limit);
}

double RoundWorld::agreement_rate() const {
  std::size_t right = 0, all = 0;
  for (const auto& host : hosts_) {
    if (!host->alive || !host->honest) continue;
    ++all;
    const rounds::RoundNode& node = *host->node;
    const auto at =
        node.chain() ? certificates_.find({node.chain()->genesis(), newest_}) : certificates_.end();
    if (at == certificates_.end() || !node.state() || node.state_round() != newest_) continue;
    const auto identity = rounds::anchor_identity(options_.round.rules.network, options_.round.outer,
                                                  options_.round.rules.slot, newest_);
    if (rounds::hash_of(identity, *node.state()) == at->second.anchor) ++right;
  }
  return all == 0 ? 0 : static_cast<double>(right) / static_cast<double>(all);
}

rounds::RoundNode& RoundWorld::node(std::size_t node) {
  return *hosts_.at(node)->node;
}
const rounds::RoundNode& RoundWorld::node(std::size_t node) const {
  return *hosts_.at(node)->node;
}
RoundTrainer& RoundWorld::trainer(std::size_t node) {
  return *hosts_.at(node)->trainer;
}
const net::NodeId& RoundWorld::id(std::size_t node) const {
  return hosts_.at(node)->id;
}
const crypto::KeyPair& RoundWorld::key(std::size_t node) const {
  return hosts_.at(node)->key;
}

RoundWorldSeen RoundWorld::seen() const {
  RoundWorldSeen seen = seen_;
  for (const auto& host : hosts_) {
    if (!host->alive) continue;
    const rounds::RoundView view = host->node->view();
    seen.fetched += view.fetched_anchors;
    seen.corruptions += view.corruptions;
    seen.provisional += view.provisional;
    seen.evidence += view.evidence;
  }
  seen.rounds = newest_;
  return seen;
}

std::uint64_t RoundWorld::newest_round() const {
  return newest_;
}

const rounds::RoundBody* RoundWorld::body(std::uint64_t round) const {
  for (const auto& [key, body] : certificates_)
    if (key.second == round) return &body;
  return nullptr;
}

}  // namespace neuroshard::sim
