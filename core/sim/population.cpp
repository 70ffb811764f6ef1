#include "core/sim/population.h"

#include <algorithm>

#include "core/base/check.h"
#include "core/crypto/hash.h"

namespace neuroshard::sim {

crypto::KeyPair key_of_node(std::uint64_t seed, std::size_t node) {
  Bytes bytes;
  append_le(bytes, seed);
  append_le(bytes, static_cast<std::uint64_t>(node));
  return crypto::KeyPair::from_seed(crypto::sha256(bytes));
}

platform::Endpoint endpoint_of_node(std::size_t node) {
  return {platform::IpAddress::v4(11, static_cast<std::uint8_t>(node >> 16),
                                  static_cast<std::uint8_t>(node >> 8), static_cast<std::uint8_t>(node)),
          9000};
}

Expected<Bytes> DiskStore::load(Record record) {
  if (disk_ != nullptr)
    if (const auto at = disk_->find(record); at != disk_->end()) return at->second;
  return make_error(ErrorCode::NotFound, "nothing kept");
}

void DiskStore::save(Record record, Bytes bytes, std::function<void(Expected<void>)> done) {
  if (disk_ == nullptr) bytes = {};
  world_.after(time_, [disk = disk_, alive = alive_, record, bytes = std::move(bytes),
                       done = std::move(done)]() mutable {
    if (alive.expired()) return;
    if (disk != nullptr) (*disk)[record] = std::move(bytes);
    done({});
  });
}

void TimedWork::run(std::function<void()> job, std::function<void()> done) {
  world_.after(time_, [alive = alive_, job = std::move(job), done = std::move(done)] {
    if (alive.expired()) return;
    job();
    done();
  });
}

std::optional<net::Contact> HostDirectory::find(const net::NodeId& id) {
  const auto at = hosts_.find(id);
  if (at == hosts_.end()) return std::nullopt;
  return net::Contact{id, endpoint_of_node(at->second)};
}

std::vector<net::Contact> HostDirectory::some() {
  std::vector<net::Contact> contacts;
  for (std::size_t i = 0; i < some_; ++i) {
    const std::size_t node = rng_.below(ids_.size());
    contacts.push_back({ids_[node], endpoint_of_node(node)});
  }
  return contacts;
}

class Population::WatchedCaller final : public net::PeerCaller {
 public:
  WatchedCaller(Population& world, std::size_t node) : world_(world), node_(node) {}
  void call(const net::Contact& peer, net::Method method, Bytes request, Duration deadline,
            net::CallDone done) override {
    if (!world_.running(node_)) return;
    if (method == net::Method::RoundPost && world_.dies_with(node_, request)) {
      world_.kill(node_);
      return;
    }
    world_.network_.caller(world_.hosts_[node_]->address)
        .call(peer, method, std::move(request), deadline, std::move(done));
  }

 private:
  Population& world_;
  const std::size_t node_;
};

void Population::Host::end() {
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

Population::Population(const PopulationOptions& options, const rounds::ParticipantOptions& round,
                       std::size_t some, bool disks, MakeModel make_model, MakeDistortion distortion,
                       MakeCaller caller)
    : population_(options),
      network_id_(round.rules.network),
      outer_(round.outer),
      slot_(round.rules.slot),
      network_(world_, options.network, options.seed),
      some_(some),
      disks_(disks),
      make_model_(std::move(make_model)),
      make_distortion_(std::move(distortion)),
      make_caller_(std::move(caller)) {
  auto initial = std::make_shared<rounds::OuterState>();
  initial->weights = options.initial;
  initial->momentum.assign(options.initial.size(), 0.0f);
  initial_ = initial;
  for (std::size_t i = 0; i < options.nodes; ++i) {
    hosts_.push_back(std::make_unique<Host>(key_of_node(options.seed, i)));
    Host& host = *hosts_.back();
    by_id_[host.id] = i;
    ids_.push_back(host.id);
    host.address = network_.add(host.id, endpoint_of_node(i), Nat::None, nullptr);
    network_.set_online(host.address, false);
    host.checkpoint = {0, initial_, {}};
    host.step_time = options.trainer.step_time;
  }
}

Population::~Population() {
  for (auto& host : hosts_) {
    host->alive.reset();
    host->end();
  }
}

std::vector<crypto::PublicKey> Population::founders() const {
  const std::size_t count = population_.founders == 0 ? hosts_.size() : population_.founders;
  std::vector<crypto::PublicKey> keys;
  for (std::size_t i = 0; i < std::min(count, hosts_.size()); ++i)
    keys.push_back(hosts_[i]->key.public_key());
  return keys;
}

void Population::start(std::size_t node) {
  Host& host = *hosts_.at(node);
  NS_CHECK(host.alive == nullptr);
  host.end();  // what is left of an earlier life
  ++host.lives;
  host.alive = std::make_shared<bool>(true);
  host.executor = std::make_unique<HostExecutor>(world_);
  host.model = make_model_(node, host.lives - 1);
  TrainerOptions trainer = population_.trainer;
  trainer.step_time = host.step_time;
  host.trainer = std::make_unique<RoundTrainer>(world_, *host.executor, *host.model, trainer,
                                                make_distortion_ ? make_distortion_(node) : nullptr);
  host.directory = std::make_unique<HostDirectory>(by_id_, ids_, some_, population_.seed * 7919 + node);
  host.store = std::make_unique<DiskStore>(world_, disks_ ? &host.disk : nullptr, disk_time_, host.alive);
  host.work = std::make_unique<TimedWork>(world_, population_.work_time, host.alive);
  host.watched = std::make_unique<WatchedCaller>(*this, node);
  if (make_caller_) host.liar = make_caller_(node, *host.watched, host.key);
  host.node = make_node(
      node, host,
      rounds::RoundServices{host.key, host.liar ? *host.liar : *host.watched, *host.directory, *host.executor,
                            world_.clock(), *host.trainer, *host.store, *host.work, logger_},
      population_.seed * 104'729 + node + (host.lives << 32));
  network_.set_handler(host.address, [this, node, &host](const net::Caller& from, net::Method method,
                                                         ByteSpan request, const net::Respond& respond) {
    if (!host.alive) return;
    if (host.directory->banned(from.id)) return respond(make_error(ErrorCode::Denied, "banned"));
    if (!answers_) return host.node->on_call(from, method, request, respond);
    host.node->on_call(from, method, request, [this, node, from, method, respond](Expected<Bytes> answer) {
      if (answer.ok()) answers_(node, from, method, &*answer);
      respond(std::move(answer));
    });
  });
  network_.set_online(host.address, true);
  begin(*host.node);
}

// The node itself goes with its next start, or with the world: it may be the one that is running now.
void Population::kill(std::size_t node) {
  Host& host = *hosts_.at(node);
  if (!host.alive) return;
  count(&seen_, *host.node);
  host.alive.reset();
  host.executor->stop();
  network_.set_online(host.address, false);
}

void Population::count(RoundWorldSeen* seen, const rounds::RoundEndpoint& node) {
  const rounds::RoundView view = node.view();
  seen->fetched += view.fetched_anchors;
  seen->corruptions += view.corruptions;
  seen->provisional += view.provisional;
  seen->evidence += view.evidence;
}

RoundWorldSeen Population::seen() const {
  RoundWorldSeen seen = seen_;
  for (const auto& host : hosts_)
    if (host->alive) count(&seen, *host->node);
  seen.rounds = newest_;
  return seen;
}

void Population::set_step_time(std::size_t node, Duration step_time) {
  hosts_.at(node)->step_time = step_time;
}
void Population::set_part(std::size_t node, int part) {
  network_.set_part(hosts_.at(node)->address, part);
}

bool Population::honest(const net::NodeId& id) const {
  const auto at = by_id_.find(id);
  return at != by_id_.end() && hosts_[at->second]->honest;
}

outer::AnchorIdentity Population::identity(std::uint64_t round) const {
  return rounds::anchor_identity(network_id_, outer_, slot_, round);
}

void Population::keep_checkpoint(std::size_t node, rounds::KnownState checkpoint) {
  Host& host = *hosts_[node];
  world_.after(std::chrono::milliseconds(1),
               [&host, alive = std::weak_ptr<bool>(host.alive), checkpoint = std::move(checkpoint)] {
                 if (!alive.expired()) host.checkpoint = checkpoint;
               });
}

void Population::flip_bits(std::size_t node) {
  const rounds::Anchor& held = hosts_.at(node)->node->state();
  NS_CHECK(held != nullptr);
  // What others were given by this node's host are copies.
  auto& weights = const_cast<rounds::OuterState&>(*held).weights;
  for (std::size_t i = 0; i < weights.size(); i += 97) weights[i] += 0.25f;
}

void Population::count_state(const Hash256& history, std::uint64_t round, const rounds::OuterState& state,
                             const Hash256& anchor) {
  auto& [right, all] = right_[{history, round}];
  ++all;
  if (rounds::hash_of(identity(round), state) == anchor) ++right;
  seen_.worst_agreement =
      std::min(seen_.worst_agreement, static_cast<double>(right) / static_cast<double>(all));
}

void Population::count_contribution(const Hash256& history, std::uint64_t round, const net::NodeId& sender,
                                    const Hash256& payload) {
  ++seen_.contributions;
  // A liar may well send the same twice, zeros for instance: that is its contribution each time.
  if (!honest(sender)) return;
  auto& counted = payloads_[{sender, payload}];
  counted.insert({history, round});
  if (counted.size() > 1) ++seen_.twice;
}

void Population::take_newest(std::uint64_t round, const rounds::Anchor& anchor) {
  if (round <= newest_ && newest_anchor_) return;
  newest_ = round;
  newest_anchor_ = anchor;
}

bool Population::run_to_round(std::uint64_t round, Duration limit) {
  std::size_t behind = 0;  // the last one that was found to be
  const auto taken = [this, round](std::size_t node) {
    const Host& host = *hosts_[node];
    return !host.alive || !host.honest ||
           (host.node->state() && host.node->state_round() >= round && host.node->status().round >= round);
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

double Population::share_holding(
    const std::function<const Hash256*(const rounds::RoundEndpoint&)>& anchor) const {
  std::size_t right = 0, all = 0;
  for (const auto& host : hosts_) {
    if (!host->alive || !host->honest) continue;
    ++all;
    const Hash256* const right_one = anchor(*host->node);
    if (right_one == nullptr || !host->node->state() || host->node->state_round() != newest_) continue;
    if (rounds::hash_of(identity(newest_), *host->node->state()) == *right_one) ++right;
  }
  return all == 0 ? 0 : static_cast<double>(right) / static_cast<double>(all);
}

}  // namespace neuroshard::sim
