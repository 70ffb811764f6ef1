#include "core/sim/fragment_world.h"

#include <algorithm>

#include "core/base/check.h"

namespace neuroshard::sim {
struct FragmentWorld::Host {
  explicit Host(crypto::KeyPair pair) : key(std::move(pair)), id(crypto::node_id(key.public_key())) {}
  struct Part {
    Disk disk;
    rounds::KnownState checkpoint;
    std::unique_ptr<DiskStore> store;  // of one life, as are the nodes
  };
  const crypto::KeyPair key;
  const net::NodeId id;
  sim::Host address = 0;
  std::vector<Part> parts;
  std::uint64_t lives = 0;
  Alive alive;
  std::unique_ptr<HostExecutor> executor;
  std::unique_ptr<LocalModel> model;
  std::unique_ptr<FragmentTrainer> trainer;
  std::unique_ptr<HostDirectory> directory;
  std::unique_ptr<TimedWork> work;
  std::unique_ptr<rounds::FragmentNodes> nodes;

  void end();
};

void FragmentWorld::Host::end() {
  nodes.reset();
  for (Part& part : parts) part.store.reset();
  work.reset();
  directory.reset();
  trainer.reset();
  model.reset();
  executor.reset();
}

FragmentWorld::FragmentWorld(FragmentWorldOptions options, MakeModel make_model)
    : options_(std::move(options)),
      fragments_(
          rounds::cut_fragments(options_.initial.size(), options_.fragments, options_.trainer.inner_steps)),
      network_(world_, options_.network, options_.seed),
      make_model_(std::move(make_model)),
      times_(fragments_.size()) {
  std::vector<crypto::PublicKey> founders;
  for (std::size_t i = 0; i < options_.nodes; ++i) {
    hosts_.push_back(std::make_unique<Host>(key_of_node(options_.seed, i)));
    if (options_.founders == 0 || i < options_.founders) founders.push_back(hosts_.back()->key.public_key());
  }
  for (const rounds::Fragment& fragment : fragments_) {
    auto state = std::make_shared<rounds::OuterState>();
    const auto first = options_.initial.begin() + static_cast<std::ptrdiff_t>(fragment.first);
    state->weights.assign(first, first + static_cast<std::ptrdiff_t>(fragment.count));
    state->momentum.assign(state->weights.size(), 0.0f);
    const auto identity =
        rounds::anchor_identity(options_.round.rules.network, options_.round.outer, fragment.slot, 0);
    genesis_.push_back(rounds::genesis_body(fragment.slot, rounds::hash_of(identity, *state), founders));
    initial_.push_back({0, std::move(state), {}});
  }
  newest_ = initial_;
  for (std::size_t i = 0; i < options_.nodes; ++i) {
    Host& host = *hosts_[i];
    by_id_[host.id] = i;
    ids_.push_back(host.id);
    host.address = network_.add(host.id, endpoint_of_node(i), Nat::None, nullptr);
    network_.set_online(host.address, false);
    host.parts.resize(fragments_.size());
    for (std::size_t f = 0; f < fragments_.size(); ++f) host.parts[f].checkpoint = initial_[f];
  }
}

FragmentWorld::~FragmentWorld() {
  for (auto& host : hosts_) {
    host->alive.reset();
    host->end();
  }
}

void FragmentWorld::start(std::size_t node) {
  Host& host = *hosts_.at(node);
  NS_CHECK(host.alive == nullptr);
  host.end();
  ++host.lives;
  host.alive = std::make_shared<bool>(true);
  host.executor = std::make_unique<HostExecutor>(world_);
  host.model = make_model_(node, host.lives - 1);
  std::vector<float> weights;
  for (const Host::Part& part : host.parts) {
    const auto& own = part.checkpoint.state->weights;
    weights.insert(weights.end(), own.begin(), own.end());
  }
  host.trainer = std::make_unique<FragmentTrainer>(world_, *host.executor, *host.model, options_.trainer,
                                                   fragments_, std::move(weights));
  host.directory = std::make_unique<HostDirectory>(by_id_, ids_, 1, options_.seed * 7919 + node);
  host.work = std::make_unique<TimedWork>(world_, options_.work_time, host.alive);
  std::vector<rounds::FragmentPart> parts;
  for (std::size_t f = 0; f < fragments_.size(); ++f) {
    Host::Part& part = host.parts[f];
    part.store = std::make_unique<DiskStore>(world_, &part.disk, usual_disk_time, host.alive);
    parts.push_back({&host.trainer->learner(f), part.store.get(), part.checkpoint, genesis_[f]});
  }
  rounds::LevelOptions options;
  options.one = options_.round;
  options.one.sync = rounds::RoundSync::Delayed;  // of a single fragment, too
  host.nodes = std::make_unique<rounds::FragmentNodes>(
      rounds::FragmentServices{host.key, network_.caller(host.address), *host.directory, *host.executor,
                               world_.clock(), *host.work, logger_},
      options, fragments_, std::move(parts), options_.seed * 104'729 + node * 64 + host.lives,
      [this, node](std::size_t fragment, const rounds::RoundChain& chain, const rounds::Anchor& state,
                   const rounds::StepResult*) { certified(node, fragment, chain, state); });
  network_.set_handler(host.address, [&host](const net::Caller& from, net::Method method, ByteSpan request,
                                             const net::Respond& respond) {
    if (host.alive)
      host.nodes->on_call(from, method, request, respond);
    else
      respond(make_error(ErrorCode::Unavailable, "the node is gone"));
  });
  network_.set_online(host.address, true);
  host.nodes->start();
}

void FragmentWorld::kill(std::size_t node) {
  Host& host = *hosts_.at(node);
  if (!host.alive) return;
  host.alive.reset();
  host.executor->stop();
  network_.set_online(host.address, false);
}

bool FragmentWorld::running(std::size_t node) const {
  return hosts_.at(node)->alive != nullptr;
}

void FragmentWorld::certified(std::size_t node, std::size_t fragment, const rounds::RoundChain& chain,
                              const rounds::Anchor& state) {
  Host& host = *hosts_[node];
  const rounds::RoundBody& body = chain.tip();
  const rounds::KnownState checkpoint{body.round, state, chain.tip_link()};
  world_.after(std::chrono::milliseconds(1),
               [&host, fragment, alive = std::weak_ptr<bool>(host.alive), checkpoint] {
                 if (!alive.expired()) host.parts[fragment].checkpoint = checkpoint;
               });
  const auto identity = rounds::anchor_identity(options_.round.rules.network, options_.round.outer,
                                                fragments_[fragment].slot, body.round);
  if (rounds::hash_of(identity, *state) != body.anchor) seen_.anchors_agree = false;
  const auto [at, first] = bodies_.try_emplace({fragment, body.round}, body);
  if (!first) {
    if (!(at->second == body)) ++seen_.conflicts;
    return;
  }
  if (body.round > newest_[fragment].round) newest_[fragment] = checkpoint;
  if (body.round == 0) return;
  ++seen_.certificates;
  seen_.contributions += body.contributors.size();
  times_[fragment].push_back(to_seconds(world_.now().time_since_epoch()));
  for (const rounds::RoundContributor& c : body.contributors)
    if (!counted_.try_emplace({body.members.at(c.member).id, c.payload}, fragment, body.round).second)
      ++seen_.twice;
}

bool FragmentWorld::run_to_round(std::uint64_t round, Duration limit) {
  return world_.run_until(
      [this, round] {
        return std::all_of(hosts_.begin(), hosts_.end(), [this, round](const auto& host) {
          for (std::size_t f = 0; host->alive && f < fragments_.size(); ++f)
            if (!host->nodes->node(f).state() || host->nodes->node(f).state_round() < round) return false;
          return true;
        });
      },
      world_.now() + limit);
}

bool FragmentWorld::agree() const {
  for (const auto& host : hosts_) {
    if (!host->alive) continue;
    for (std::size_t f = 0; f < fragments_.size(); ++f) {
      const rounds::RoundEndpoint& node = host->nodes->node(f);
      if (!node.state() || node.state_round() != newest_[f].round ||
          node.state()->weights != newest_[f].state->weights)
        return false;
    }
  }
  return true;
}

FragmentTrainer& FragmentWorld::trainer(std::size_t node) {
  return *hosts_.at(node)->trainer;
}

const rounds::FragmentNodes& FragmentWorld::nodes(std::size_t node) const {
  return *hosts_.at(node)->nodes;
}

const rounds::RoundEndpoint& FragmentWorld::node(std::size_t node, std::size_t fragment) const {
  return nodes(node).node(fragment);
}

std::vector<float> FragmentWorld::newest_weights() const {
  std::vector<float> all;
  for (const rounds::KnownState& newest : newest_)
    all.insert(all.end(), newest.state->weights.begin(), newest.state->weights.end());
  return all;
}

std::uint64_t FragmentWorld::steps_named(std::size_t node, std::size_t fragment) const {
  std::uint64_t steps = 0;
  for (const auto& [key, body] : bodies_) {
    if (key.first != fragment) continue;
    for (const rounds::RoundContributor& c : body.contributors)
      if (body.members.at(c.member).id == hosts_.at(node)->id) steps += c.steps;
  }
  return steps;
}

}  // namespace neuroshard::sim
