#include "core/runtime/pipeline_service.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <utility>

#include "core/crypto/hash.h"
#include "core/plan/holder_speeds.h"

namespace neuroshard::runtime {
namespace {

constexpr Duration tick_interval = std::chrono::milliseconds(500);
constexpr Duration told_again = std::chrono::minutes(1);
// Sessions are let in by the most that each may keep, which is several times what they do keep.
constexpr std::uint64_t sessions_reserve = 8, least_session_bytes = 64u << 20;
constexpr std::size_t sessions_of_a_driver = 2;  // one takes the place of the other
constexpr pipeline::WireFormat training_wire = pipeline::WireFormat::Bf16;

}  // namespace

PipelineService::PipelineService(const Services& services, const config::ConsensusPart& consensus,
                                 const Hash256& network, std::uint32_t part,
                                 PartHolders::FindRegistry registry, PartTexts::FindAnchor anchor)
    : services_(services),
      network_(network.begin(), network.end()),
      shape_(config::model_shape(consensus)),
      pipeline_bytes_(config::pipeline_bytes(consensus)),
      find_anchor_(std::move(anchor)),
      holders_(config::model_parts(consensus), part, services.host.id(), std::move(registry)),
      trainer_(std::make_shared<engine::PipelineTrainer>(services.clock)) {}

PipelineService::~PipelineService() {
  trainer_->listen({});
}

void PipelineService::open(std::uint64_t seed, bool one_lan) {
  PeerHost& host = services_.host;
  lines_ = std::make_unique<pipeline::PeerLines>(
      host.member().pool(), host.executor(), host.clock(), host.id(),
      [&host](const net::NodeId& id) { return host.member().find(id); });
  streams_.emplace(host.member().methods().add_stream(
      net::Method::PipelineSession,
      net::MethodLimits(std::make_shared<net::RequestLimiter>(pipeline::stream_limits, one_lan, seed)),
      [this](const net::Caller& from, std::shared_ptr<net::PeerStream> stream) {
        take(from, std::move(stream));
      }));
  const auto alive = [life = lifetime_.token()](auto call) {
    return [life, call](const auto&... arguments) {
      if (life.alive()) call(arguments...);
    };
  };
  texts_ = std::make_unique<PartTexts>(PartTexts::Services{host.executor(), host.clock(), services_.entropy,
                                                           host.key(), holders_, trainer_->texts()},
                                       network_, find_anchor_);
  trainer_->listen({&host.executor(), alive([this](const engine::PipelinePart& part) { on_ready(part); }),
                    alive([this] { on_gone(); }), alive([this] {
                      if (driver_) driver_->wake();
                    })});
  tick();
}

// Of a member only, so that strangers can't take the places for streams.
void PipelineService::take(const net::Caller& from, std::shared_ptr<net::PeerStream> stream) {
  if (!sessions_)
    return stream->break_off(make_error(ErrorCode::Unavailable, "this node prepares its part of the model"));
  if (const auto admitted = holders_.admit(from.id); !admitted.ok())
    return stream->break_off(admitted.error());
  sessions_->take(from.id, std::move(stream));
}

void PipelineService::close() {
  trainer_->listen({});
  lifetime_.end();
  timer_.reset();
  on_gone();
  texts_.reset();
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
  for (std::uint32_t i = 0; i < holders_.parts(); ++i)
    if (holders_.range(i) == part.range) holders_.set_own_part(i);
  sessions_ =
      std::make_unique<pipeline::SessionTable>(around(), pipeline::TableOptions{part.range, network_});
  pipeline::StageOptions options;
  options.schedule.batch_tokens = part.batch_tokens;
  options.schedule.most_held = part.most_held;
  options.schedule.most_due = std::min<std::size_t>(pipeline::default_most_due, part.most_held);
  options.sessions.of_one_driver = sessions_of_a_driver;
  options.sessions.bytes = std::max(least_session_bytes, sessions_reserve * pipeline_bytes_);
  options.admit = [this](const pipeline::Route& route) { return admit(route); };
  options.trouble = [this](const Error& error) { services_.logger.warning("pipeline", error.describe()); };
  worker_ = std::make_unique<pipeline::StageWorker>(around(), *sessions_, part.jobs->training(), part.lane,
                                                    std::move(options));
  texts_->on_ready(part, around(), *sessions_);
  lines_->set_own_sessions(sessions_.get());
  drive();
}

void PipelineService::on_gone() {
  end_driver();
  if (lines_) lines_->set_own_sessions(nullptr);
  if (texts_) texts_->on_gone();
  if (worker_) lost_ += worker_->lost_micro_batches();
  worker_.reset();
  sessions_.reset();
  part_.reset();
}

void PipelineService::end_driver() {
  if (!driver_) return;
  finished_ += driver_->finished();
  replaced_ += driver_->replaced();
  driver_->close();
  driver_.reset();
}

// Micro-batches of another size would not fill a batch exactly. A larger window would take the memory of other sessions.
Expected<void> PipelineService::admit(const pipeline::Route& route) const {
  if (route.sequences != part_->sequences || route.length != shape_.sequence)
    return make_error(ErrorCode::InvalidArgument,
                      fmt::format("micro-batches of this network have {} sequences of {} tokens",
                                  part_->sequences, shape_.sequence));
  if (route.wire != training_wire)
    return make_error(ErrorCode::InvalidArgument,
                      fmt::format("the stages of this network exchange {}", to_text(training_wire)));
  // That of a driver alone. A session that began in an earlier round has the window of that round's members.
  const std::uint32_t most = config::pipeline_window(holders_.parts(), 1, 1);
  if (route.window > most)
    return make_error(ErrorCode::InvalidArgument,
                      fmt::format("a session of this network has at most {} micro-batches under way", most));
  return holders_.admit(crypto::node_id(route.driver));
}

void PipelineService::tick() {
  timer_ = services_.host.executor().post_after(tick_interval, [this] { tick(); });
  watch_idleness();
  review_sessions();
  end_round();
  drive();
  texts_->tick();
}

// A node whose key was revoked, or whose wallet was expelled, trains the weights here no more.
void PipelineService::review_sessions() {
  const chain::RegistryPtr registry = holders_.registry();
  if (!sessions_ || registry == nullptr || registry == reviewed_) return;
  reviewed_ = registry;
  sessions_->review([this](const net::NodeId& node) { return holders_.admit(node); });
}

// Hashes of what was exchanged are kept for a round.
void PipelineService::end_round() {
  const chain::RegistryPtr registry = holders_.registry();
  if (registry == nullptr || registry->round() == exchanged_in_) return;
  exchanged_in_ = registry->round();
  exchanges_.clear();
}

// Drivers go around a node that does not compute. Without this their micro-batches would wait in it, and with them
// everybody's steps.
void PipelineService::watch_idleness() {
  if (!worker_) return;
  const auto idle = trainer_->idle();
  if (!idle) return on_gone();  // the queue may have had no place for that news
  const bool away = idle->texts > patience_with_idleness;
  const auto pause = [&](pipeline::SessionKind kind, bool pauses) {
    if (pauses == sessions_->paused(kind)) return;
    if (!pauses) return sessions_->resume(kind);
    sessions_->pause(kind, make_error(ErrorCode::Unavailable,
                                      away ? "the node does not train now: its owner needs the computer"
                                           : "the node waits for the weights of its round"));
  };
  pause(pipeline::SessionKind::Training, idle->training > patience_with_idleness);
  pause(pipeline::SessionKind::Text, away);
}

pipeline::Route PipelineService::route(const chain::Registry& registry,
                                       std::vector<pipeline::RouteHop> hops) const {
  pipeline::Route route;
  services_.entropy.fill({route.session.data(), route.session.size()});
  route.sequences = part_->sequences;
  route.length = shape_.sequence;
  route.window = config::pipeline_window(holders_.parts(), registry.active().size(),
                                         std::max<std::size_t>(1, holders_.fewest(registry)));
  route.wire = training_wire;
  route.base = registry.opening({});
  route.hops = std::move(hops);
  return route;
}

void PipelineService::drive() {
  if (!worker_) return;
  const chain::RegistryPtr registry = holders_.registry();
  if (registry == nullptr || registry->find(services_.host.id()) == nullptr) return;
  if (!holders_.admit(services_.host.id()).ok()) {
    end_driver();
    trouble_ =
        "no voter has vouched for this node, so the others do not train on its text: ask for an invitation "
        "with a vote";
    return;
  }
  if (driver_ && registry->round() == driver_round_) return;
  auto hops = holders_.for_training(*registry);
  trouble_ = hops.ok() ? std::string() : hops.error().message;
  if (!hops.ok()) return;
  driver_round_ = registry->round();
  if (driver_ && driver_->route().hops == *hops) return;
  end_driver();
  pipeline::DriverEvents events;
  events.next = [this] { return trainer_->next_text(); };
  events.finished = [](std::uint64_t, const pipeline::Sums&) {};
  events.lead.holders = [this](const pipeline::StageRange& range) { return holders_.of_range(range); };
  events.lead.lost = [this](const pipeline::Lost& lost) { log_lost(lost); };
  driver_ = std::make_unique<pipeline::Driver>(around(), services_.host.key(), network_,
                                               route(*registry, std::move(*hops)), std::move(events));
  driver_->start();
}

// A driver without another holder asks again every half second. The words are those of other nodes.
void PipelineService::log_lost(const pipeline::Lost& lost) {
  const MonotonicTime now = services_.host.clock().monotonic_now();
  std::erase_if(told_, [&](const auto& told) { return now - told.second >= told_again; });
  if (!told_.emplace(lost.node, now).second) return;
  services_.logger.info("pipeline",
                        fmt::format("{}… with {} does not answer: {}", to_hex(lost.node).substr(0, 12),
                                    to_text(holders_.range(lost.position)), lost.what));
}

std::vector<node::HopView> PipelineService::path() const {
  if (!driver_) return {};
  const auto milliseconds = [](Duration duration) { return 1000 * to_seconds(duration); };
  const auto times = driver_->times();
  std::vector<node::HopView> path;
  for (std::size_t i = 0; i < times.size(); ++i) {
    node::HopView& hop = path.emplace_back();
    hop.node = to_hex(driver_->route().hops[i].node);
    if (!times[i]) continue;
    hop.computing_ms = milliseconds(times[i]->computing);
    hop.between_ms = milliseconds(times[i]->between);
  }
  return path;
}

std::uint32_t PipelineService::speed() const {
  const auto tokens = trainer_->tokens_per_second();
  if (!tokens) return 0;
  const double flops = *tokens * plan::range_work(shape_, holders_.range(holders_.own_part()));
  return static_cast<std::uint32_t>(std::clamp(flops / 1e6, 1.0, 4e9));
}

// In percent of the fastest.
std::vector<std::uint32_t> PipelineService::part_speeds(const chain::Registry& registry) const {
  std::vector<double> rates = holders_.speeds_together(registry);
  for (std::uint32_t part = 0; part < rates.size(); ++part)
    rates[part] /= plan::range_work(shape_, holders_.range(part));
  const double fastest = rates.empty() ? 0 : *std::max_element(rates.begin(), rates.end());
  std::vector<std::uint32_t> percent;
  for (const double rate : rates)
    percent.push_back(static_cast<std::uint32_t>(fastest > 0 ? std::lround(100 * rate / fastest) : 0));
  return percent;
}

node::PartView PipelineService::view() const {
  node::PartView view;
  view.number = holders_.own_part() + 1;
  view.count = static_cast<std::uint32_t>(holders_.parts());
  view.holds = to_text(holders_.range(holders_.own_part()));
  if (const chain::RegistryPtr registry = holders_.registry()) {
    for (std::uint32_t part = 0; part < holders_.parts(); ++part)
      view.holders.push_back(static_cast<std::uint32_t>(holders_.of_part(*registry, part).size()));
    view.speeds = part_speeds(*registry);
  }
  view.finished = finished_ + (driver_ ? driver_->finished() : 0);
  view.replaced = replaced_ + (driver_ ? driver_->replaced() : 0);
  view.path = path();
  view.lost = lost_ + (worker_ ? worker_->lost_micro_batches() : 0);
  if (!worker_) return view;
  view.paused = sessions_->paused(pipeline::SessionKind::Training);
  view.sessions = static_cast<std::uint32_t>(worker_->sessions());
  return view;
}

}  // namespace neuroshard::runtime
