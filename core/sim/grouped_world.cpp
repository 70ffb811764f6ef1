#include "core/sim/grouped_world.h"

#include <algorithm>

#include "core/base/check.h"
#include "core/crypto/hash.h"
#include "core/sim/shared_commons.h"

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

class GroupedWorld::Directory final : public rounds::RoundPeers {
 public:
  explicit Directory(GroupedWorld& world) : world_(world) {}
  std::optional<net::Contact> find(const net::NodeId& id) override {
    const auto at = world_.by_id_.find(id);
    if (at == world_.by_id_.end()) return std::nullopt;
    return net::Contact{id, endpoint_of(at->second)};
  }
  std::vector<net::Contact> some() override { return {}; }

 private:
  GroupedWorld& world_;
};

struct GroupedWorld::Host {
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
  std::unique_ptr<rounds::GroupedNode> node;

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
class GroupedWorld::Store final : public rounds::RoundStore {
 public:
  Store(GroupedWorld& world, Host& host) : world_(world), host_(host) {}
  Expected<Bytes> load(Record record) override {
    const auto at = host_.disk.find(record);
    if (at == host_.disk.end()) return make_error(ErrorCode::NotFound, "nothing kept");
    return at->second;
  }
  void save(Record record, Bytes bytes, std::function<void(Expected<void>)> done) override {
    if (!world_.options_.disks) bytes = {};
    world_.world_.after(std::chrono::milliseconds(1),
                        [this, alive = std::weak_ptr<bool>(host_.alive), record, bytes = std::move(bytes),
                         done = std::move(done)]() mutable {
                          if (alive.expired()) return;
                          if (world_.options_.disks) host_.disk[record] = std::move(bytes);
                          done({});
                        });
  }

 private:
  GroupedWorld& world_;
  Host& host_;
};

class GroupedWorld::Work final : public rounds::RoundWork {
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

class GroupedWorld::WatchedCaller final : public net::PeerCaller {
 public:
  WatchedCaller(GroupedWorld& world, std::size_t node) : world_(world), node_(node) {}
  void call(const net::Contact& peer, net::Method method, Bytes request, Duration deadline,
            net::CallDone done) override {
    if (!world_.running(node_)) return;
    if (world_.watch_ && method == net::Method::RoundPost && world_.watch_(node_, request)) {
      world_.kill(node_);
      return;
    }
    world_.network_.caller(world_.hosts_[node_]->address)
        .call(peer, method, std::move(request), deadline, std::move(done));
  }

 private:
  GroupedWorld& world_;
  const std::size_t node_;
};

GroupedWorld::GroupedWorld(GroupedWorldOptions options, RoundWorld::MakeModel make_model,
                           RoundWorld::MakeDistortion distortion, RoundWorld::MakeCaller caller)
    : options_(std::move(options)),
      network_(world_, options_.network, options_.seed),
      make_model_(std::move(make_model)),
      make_distortion_(std::move(distortion)),
      make_caller_(std::move(caller)) {
  const Hash256& network = options_.round.rules.network;
  if (options_.shared)
    commons_ = std::make_unique<SharedCommons>(network, options_.least);
  else
    commons_ = std::make_unique<rounds::GroupedCommons>(network, options_.least);
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
  const auto identity = rounds::anchor_identity(network, options_.round.outer, options_.round.rules.slot, 0);
  genesis_ =
      rounds::grouped_genesis(options_.round.rules.slot, rounds::hash_of(identity, *initial_), founders);
}

GroupedWorld::~GroupedWorld() {
  for (auto& host : hosts_) {
    host->alive.reset();
    host->end();
  }
}

void GroupedWorld::start(std::size_t node) {
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
  host.directory = std::make_unique<Directory>(*this);
  host.store = std::make_unique<Store>(*this, host);
  host.work = std::make_unique<Work>(world_, host, options_.work_time);
  host.watched = std::make_unique<WatchedCaller>(*this, node);
  if (make_caller_) host.liar = make_caller_(node, *host.watched, host.key);
  rounds::GroupedOptions options = options_.round;
  options.genesis = genesis_;
  host.node = std::make_unique<rounds::GroupedNode>(
      rounds::RoundServices{host.key, host.liar ? *host.liar : *host.watched, *host.directory, *host.executor,
                            world_.clock(), *host.trainer, *host.store, *host.work, logger_},
      *commons_, options, host.checkpoint, options_.seed * 104'729 + node + (host.lives << 32),
      [this, node](const rounds::GroupedLinkPtr& link, const rounds::Anchor& state,
                   const rounds::StepResult*) { certified(node, link, state); });
  network_.set_handler(host.address, [&host](const net::Caller& from, net::Method method, ByteSpan request,
                                             const net::Respond& respond) {
    if (host.alive) host.node->on_call(from, method, request, respond);
  });
  network_.set_online(host.address, true);
  host.node->start();
}

void GroupedWorld::count(RoundWorldSeen* seen, const rounds::GroupedNode& node) const {
  const rounds::RoundView view = node.view();
  seen->fetched += view.fetched_anchors;
  seen->corruptions += view.corruptions;
  seen->provisional += view.provisional;
  seen->evidence += view.evidence;
}

// The node itself goes with its next start, or with the world: it may be the one that is running now.
void GroupedWorld::kill(std::size_t node) {
  Host& host = *hosts_.at(node);
  if (!host.alive) return;
  count(&seen_, *host.node);
  host.alive.reset();
  host.executor->stop();
  network_.set_online(host.address, false);
}

bool GroupedWorld::running(std::size_t node) const {
  return hosts_.at(node)->alive != nullptr;
}
void GroupedWorld::set_part(std::size_t node, int part) {
  network_.set_part(hosts_.at(node)->address, part);
}
void GroupedWorld::set_honest(std::size_t node, bool honest) {
  hosts_.at(node)->honest = honest;
}
void GroupedWorld::set_step_time(std::size_t node, Duration step_time) {
  hosts_.at(node)->step_time = step_time;
}
bool GroupedWorld::honest(const net::NodeId& id) const {
  const auto at = by_id_.find(id);
  return at != by_id_.end() && hosts_[at->second]->honest;
}

void GroupedWorld::corrupt(std::size_t node) {
  const rounds::Anchor& held = hosts_.at(node)->node->state();
  NS_CHECK(held != nullptr && !options_.shared);
  auto& weights = const_cast<rounds::OuterState&>(*held).weights;
  for (std::size_t i = 0; i < weights.size(); i += 97) weights[i] += 0.25f;
}

void GroupedWorld::certified(std::size_t node, const rounds::GroupedLinkPtr& link,
                             const rounds::Anchor& state) {
  Host& host = *hosts_[node];
  const std::uint64_t round = link->body->round;
  // What is on the disk must not change with what is in memory.
  const rounds::Anchor copy = options_.shared ? state : std::make_shared<rounds::OuterState>(*state);
  if (options_.disks)
    world_.after(std::chrono::milliseconds(1), [&host, alive = std::weak_ptr<bool>(host.alive), round, copy] {
      if (!alive.expired()) host.checkpoint = {round, copy, {}};
    });
  if (!host.honest) return;
  const auto [at, first] = links_.try_emplace(round, link);
  if (!first && at->second->tip != link->tip) ++seen_.conflicts;
  if (first) {
    certificate_bytes_ = link->content->size() + 66 * link->certificate.signatures.size();
    for (const rounds::GroupResult& result : link->body->groups) {
      const rounds::RoundBody& group = result.certificate.body;
      seen_.contributions += group.contributors.size();
      for (const rounds::RoundContributor& c : group.contributors) {
        const net::NodeId& sender = group.members[c.member].id;
        if (!honest(sender)) continue;
        auto& counted = payloads_[{sender, c.payload}];
        counted.insert(round);
        if (counted.size() > 1) ++seen_.twice;
      }
    }
  }
  const auto identity = rounds::anchor_identity(options_.round.rules.network, options_.round.outer,
                                                options_.round.rules.slot, round);
  auto& [right, all] = right_[round];
  ++all;
  if (rounds::hash_of(identity, *state) == at->second->body->anchor) ++right;
  seen_.worst_agreement =
      std::min(seen_.worst_agreement, static_cast<double>(right) / static_cast<double>(all));
  if (round > newest_ || !newest_anchor_) {
    newest_ = round;
    newest_anchor_ = copy;
  }
}

bool GroupedWorld::run_to_round(std::uint64_t round, Duration limit) {
  std::size_t behind = 0;  // the last one that was found to be
  const auto taken = [this, round](std::size_t node) {
    const Host& host = *hosts_[node];
    return !host.alive || !host.honest ||
           (host.node->state() && host.node->state_round() >= round && host.node->base().round >= round);
  };
  return world_.run_until(
      [&] {
        if (!taken(behind)) return false;
        for (std::size_t i = 0; i < hosts_.size(); ++i)
          if (!taken(i)) {
            behind = i;
            return false;
          }
        return true;
      },
      world_.now() + limit);
}

double GroupedWorld::agreement_rate() const {
  std::size_t right = 0, all = 0;
  const auto newest = links_.find(newest_);
  const auto identity = rounds::anchor_identity(options_.round.rules.network, options_.round.outer,
                                                options_.round.rules.slot, newest_);
  for (const auto& host : hosts_) {
    if (!host->alive || !host->honest) continue;
    ++all;
    const rounds::GroupedNode& node = *host->node;
    if (newest == links_.end() || !node.state() || node.state_round() != newest_) continue;
    if (rounds::hash_of(identity, *node.state()) == newest->second->body->anchor) ++right;
  }
  return all == 0 ? 0 : static_cast<double>(right) / static_cast<double>(all);
}

const rounds::GroupedNode& GroupedWorld::node(std::size_t node) const {
  return *hosts_.at(node)->node;
}
RoundTrainer& GroupedWorld::trainer(std::size_t node) {
  return *hosts_.at(node)->trainer;
}
const net::NodeId& GroupedWorld::id(std::size_t node) const {
  return hosts_.at(node)->id;
}

RoundWorldSeen GroupedWorld::seen() const {
  RoundWorldSeen seen = seen_;
  for (const auto& host : hosts_)
    if (host->alive) count(&seen, *host->node);
  seen.rounds = newest_;
  return seen;
}

const rounds::GroupedBody* GroupedWorld::body(std::uint64_t round) const {
  const auto at = links_.find(round);
  return at == links_.end() ? nullptr : at->second->body.get();
}

}  // namespace neuroshard::sim
