#include "core/runtime/pipeline_service.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "core/crypto/hash.h"

namespace neuroshard::runtime {
namespace {

constexpr Duration tick_interval = std::chrono::milliseconds(500);
constexpr std::size_t most_due = 4;  // micro-batches whose weights' gradients wait; among most_held
constexpr Duration told_again = std::chrono::minutes(1);
// Sessions are let in by the most that each may keep, which is several times what they do keep.
constexpr std::uint64_t sessions_reserve = 8, least_session_bytes = 64u << 20;
constexpr std::size_t sessions_of_a_driver = 2;  // one takes the place of the other
constexpr net::RequestLimits stream_limits{.per_second = 5, .burst = 50};

// Text and gradients of the others reach the weights without the rounds' limits for candidates.
bool is_trusted(const chain::Registry& registry, const chain::MemberRecord& member) {
  return registry.is_voter(member) || registry.wallet(member.wallet)->is_trusted();
}

bool is_trusted(const chain::RegistryPtr& registry, const net::NodeId& node) {
  const chain::MemberRecord* member = registry == nullptr ? nullptr : registry->find(node);
  return member != nullptr && is_trusted(*registry, *member);
}

}  // namespace

PipelineService::PipelineService(const Services& services, const config::ConsensusPart& consensus,
                                 const Hash256& network, const config::ModelPart& part, FindRegistry registry)
    : services_(services),
      network_(network),
      shape_(config::model_shape(consensus)),
      parts_(config::model_parts(consensus)),
      own_(part.index),
      pipeline_bytes_(config::pipeline_bytes(consensus)),
      registry_(std::move(registry)),
      trainer_(std::make_shared<engine::PipelineTrainer>(services.clock)) {}

PipelineService::~PipelineService() {
  trainer_->listen({});
}

void PipelineService::open(std::uint64_t seed, bool one_lan) {
  PeerHost& host = services_.host;
  lines_ = std::make_unique<pipeline::PeerLines>(
      host.member().pool(), host.executor(), host.id(),
      [&host](const net::NodeId& id) { return host.member().find(id); });
  streams_.emplace(host.member().methods().add_stream(
      net::Method::PipelineSession,
      net::MethodLimits(std::make_shared<net::RequestLimiter>(stream_limits, one_lan, seed)),
      [this](const net::Caller& from, std::shared_ptr<net::PeerStream> stream) {
        take(from, std::move(stream));
      }));
  const auto alive = [life = lifetime_.token()](auto call) {
    return [life, call](const auto&... arguments) {
      if (life.alive()) call(arguments...);
    };
  };
  trainer_->listen({&host.executor(), alive([this](const engine::PipelinePart& part) { on_ready(part); }),
                    alive([this] { on_gone(); }), alive([this] {
                      if (driver_) driver_->wake();
                    })});
  tick();
}

// Of a member only, so that strangers can't take the places for streams.
void PipelineService::take(const net::Caller& from, std::shared_ptr<net::PeerStream> stream) {
  if (!worker_)
    return stream->break_off(make_error(ErrorCode::Unavailable, "this node prepares its part of the model"));
  if (!is_trusted(registry_(), from.id))
    return stream->break_off(make_error(
        ErrorCode::Denied, "the node is no voter of this network, and no voter has vouched for it"));
  worker_->take(from.id, std::move(stream));
}

void PipelineService::close() {
  trainer_->listen({});
  lifetime_.end();
  timer_.reset();
  on_gone();
  streams_.reset();
  lines_.reset();
}

pipeline::Surroundings PipelineService::around() {
  PeerHost& host = services_.host;
  return {*lines_, host.executor(), host.clock(), exchanges_, host.id(), shape_, {}};
}

void PipelineService::on_ready(const engine::PipelinePart& part) {
  on_gone();
  part_ = part;
  pipeline::StageOptions options;
  options.range = part.range;
  options.schedule.batch_tokens = part.batch_tokens;
  options.schedule.most_held = part.most_held;
  options.schedule.most_due = std::min<std::size_t>(most_due, part.most_held);
  options.sessions.of_one_driver = sessions_of_a_driver;
  options.sessions.bytes = std::max(least_session_bytes, sessions_reserve * pipeline_bytes_);
  options.network.assign(network_.begin(), network_.end());
  options.admit = [this](const pipeline::Route& route) { return admit(route); };
  options.trouble = [this](const Error& error) { services_.logger.warning("pipeline", error.describe()); };
  worker_ = std::make_unique<pipeline::StageWorker>(around(), *part.jobs, part.lane, std::move(options));
  lines_->set_own_stage(worker_.get());
  drive();
}

void PipelineService::on_gone() {
  end_driver();
  if (lines_) lines_->set_own_stage(nullptr);
  worker_.reset();
  part_.reset();
}

void PipelineService::end_driver() {
  if (!driver_) return;
  finished_ += driver_->finished();
  replaced_ += driver_->replaced();
  driver_->close();
  driver_.reset();
}

// Micro-batches of another size would not fill a batch exactly.
Expected<void> PipelineService::admit(const pipeline::Route& route) const {
  if (route.sequences != part_->sequences || route.length != shape_.sequence)
    return make_error(ErrorCode::InvalidArgument,
                      fmt::format("micro-batches of this network have {} sequences of {} tokens",
                                  part_->sequences, shape_.sequence));
  if (is_trusted(registry_(), crypto::node_id(route.driver))) return {};
  return make_error(ErrorCode::Denied,
                    "the driver is no voter of this network, and no voter has vouched for it");
}

void PipelineService::tick() {
  timer_ = services_.host.executor().post_after(tick_interval, [this] { tick(); });
  watch_idleness();
  end_round();
  drive();
}

// Hashes of what was exchanged are kept for a round.
void PipelineService::end_round() {
  const chain::RegistryPtr registry = registry_();
  if (registry == nullptr || registry->round() == exchanged_in_) return;
  exchanged_in_ = registry->round();
  exchanges_.clear();
}

void PipelineService::watch_idleness() {
  if (!worker_) return;
  const bool idle = trainer_->idle().value_or(Duration::max()) > patience_with_idleness;
  if (idle == worker_->paused()) return;
  if (!idle) return worker_->resume();
  worker_->pause(
      make_error(ErrorCode::Unavailable, "the node does not train now: its owner needs the computer"));
}

std::vector<net::NodeId> PipelineService::holders(const chain::Registry& registry, std::uint32_t part) const {
  std::vector<net::NodeId> ids;
  for (const std::uint32_t position : registry.active()) {
    const chain::MemberRecord& member = registry.members()[position];
    if (member.rows.has(part) && is_trusted(registry, member)) ids.push_back(member.id);
  }
  return ids;
}

std::optional<std::vector<pipeline::RouteHop>> PipelineService::choose_hops(const chain::Registry& registry) {
  const net::NodeId self = services_.host.id();
  const std::vector<net::NodeId> beside = holders(registry, own_);
  const auto place = static_cast<std::size_t>(std::find(beside.begin(), beside.end(), self) - beside.begin());
  std::vector<pipeline::RouteHop> hops;
  for (std::uint32_t part = 0; part < parts_.size(); ++part) {
    const std::vector<net::NodeId> of_part = holders(registry, part);
    if (of_part.empty()) {
      trouble_ = fmt::format("no member holds part {} of the model: {}", part + 1, to_text(parts_[part]));
      return std::nullopt;
    }
    const bool here = part == own_ && place < beside.size();
    hops.push_back({here ? self : of_part[(place + registry.round()) % of_part.size()], parts_[part]});
  }
  trouble_.clear();
  return hops;
}

pipeline::Route PipelineService::route(const chain::Registry& registry,
                                       std::vector<pipeline::RouteHop> hops) const {
  pipeline::Route route;
  services_.entropy.fill({route.session.data(), route.session.size()});
  route.sequences = part_->sequences;
  route.length = shape_.sequence;
  std::size_t fewest = registry.active().size();
  for (std::uint32_t part = 0; part < parts_.size(); ++part)
    fewest = std::min(fewest, holders(registry, part).size());
  route.window =
      config::pipeline_window(parts_.size(), registry.active().size(), std::max<std::size_t>(1, fewest));
  route.base = registry.opening({});
  route.hops = std::move(hops);
  return route;
}

void PipelineService::drive() {
  if (!worker_) return;
  const chain::RegistryPtr registry = registry_();
  if (registry == nullptr || registry->find(services_.host.id()) == nullptr) return;
  if (!is_trusted(registry, services_.host.id())) {
    end_driver();
    trouble_ =
        "no voter has vouched for this node, so the others do not train on its text: ask for an invitation "
        "with a vote";
    return;
  }
  if (driver_ && registry->round() == driver_round_) return;
  auto hops = choose_hops(*registry);
  if (!hops) return;
  driver_round_ = registry->round();
  if (driver_ && driver_->route().hops == *hops) return;
  end_driver();
  pipeline::DriverEvents events;
  events.next = [this] { return trainer_->next_text(); };
  events.finished = [](std::uint64_t, const pipeline::Sums&) {};
  events.lead.holders = [this](const pipeline::StageRange& range) {
    const chain::RegistryPtr now = registry_();
    const auto at = std::find(parts_.begin(), parts_.end(), range) - parts_.begin();
    return now == nullptr ? std::vector<net::NodeId>() : holders(*now, static_cast<std::uint32_t>(at));
  };
  events.lead.lost = [this](const pipeline::Lost& lost) { log_lost(lost); };
  driver_ = std::make_unique<pipeline::Driver>(around(), services_.host.key(),
                                               Bytes(network_.begin(), network_.end()),
                                               route(*registry, std::move(*hops)), std::move(events));
  driver_->start();
}

// A driver without another holder asks again every half second.
void PipelineService::log_lost(const pipeline::Lost& lost) {
  const MonotonicTime now = services_.host.clock().monotonic_now();
  Told& told = told_[lost.position];
  if (told.node == lost.node && told.what == lost.what && now - told.at < told_again) return;
  told = {lost.node, lost.what, now};
  services_.logger.info("pipeline",
                        fmt::format("{}… with {} does not answer: {}", to_hex(lost.node).substr(0, 12),
                                    to_text(parts_.at(lost.position)), lost.what));
}

node::PartView PipelineService::view() const {
  node::PartView view;
  view.number = own_ + 1;
  view.count = static_cast<std::uint32_t>(parts_.size());
  view.holds = to_text(parts_[own_]);
  if (const chain::RegistryPtr registry = registry_())
    for (std::uint32_t part = 0; part < parts_.size(); ++part)
      view.holders.push_back(static_cast<std::uint32_t>(holders(*registry, part).size()));
  view.finished = finished_ + (driver_ ? driver_->finished() : 0);
  view.replaced = replaced_ + (driver_ ? driver_->replaced() : 0);
  if (!worker_) return view;
  view.paused = worker_->paused();
  view.sessions = static_cast<std::uint32_t>(worker_->sessions());
  view.lost = worker_->lost_micro_batches();
  return view;
}

}  // namespace neuroshard::runtime
