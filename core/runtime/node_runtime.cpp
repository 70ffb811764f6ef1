#include "core/runtime/node_runtime.h"

#include <atomic>

#include "core/control/service.h"
#include "core/engine/engine.h"
#include "core/engine/machine_sensors.h"
#include "core/network_module/network_module.h"
#include "core/platform/process/heap.h"
#include "core/runtime/chain_rounds.h"
#include "core/runtime/disk_limits.h"
#include "core/runtime/event_queue.h"
#include "core/runtime/exchange_service.h"
#include "core/runtime/http_service.h"
#include "core/runtime/network_service.h"
#include "core/runtime/sleep_notice.h"

namespace neuroshard::runtime {
namespace {

// An event of the core is reported at once. A signal, or a suspend of the computer, waits so long.
constexpr Duration poll_period = std::chrono::milliseconds(250);
constexpr Duration leaving_period = std::chrono::milliseconds(50);
// The longest wait for a round that the other members close and that needs this node's vote.
constexpr Duration last_round_limit = std::chrono::seconds(10);

using Alerts = std::function<std::vector<node::Alert>()>;

// Those of the rounds, which may be null, and that of the wallet's delegation. network outlives the result.
Alerts alerts_of(const NetworkService& network, Alerts of_rounds) {
  return [&network, of_rounds = std::move(of_rounds)] {
    std::vector<node::Alert> all;
    if (of_rounds) all = of_rounds();
    if (std::string notice = network.delegation_notice(); !notice.empty())
      all.push_back({"rounds_delegation", node::Severity::Warning, std::move(notice), {}});
    return all;
  };
}

}  // namespace

std::string_view to_text(NewStart reason) {
  switch (reason) {
    case NewStart::No: break;
    case NewStart::Size: return "This node starts anew, for a model of another size.";
    case NewStart::Memory: return "This node starts anew, so that it can offer more memory.";
    case NewStart::Delegation: return "This node starts anew, to renew the delegation of its wallet.";
  }
  return {};
}

// The end of a node's part in the rounds, with a bound on the wait for the other members.
class NodeRuntime::Departure {
 public:
  // presence: may be null.
  Departure(Presence* presence, const Clock& clock) : presence_(presence), clock_(clock) {}
  void begin() {
    if (presence_ == nullptr || waits_) return;
    waits_ = std::make_shared<std::atomic<bool>>(true);
    presence_->announce_away(clock_.monotonic_now() + last_round_limit, [waits = waits_] { *waits = false; });
  }
  // The node is back soon, so it announces nothing.
  void leave_out() { presence_ = nullptr; }
  bool has_begun() const { return waits_ != nullptr; }
  // Whether there is nothing to wait for; true before begin(), too.
  bool is_over() const { return !waits_ || !*waits_; }

 private:
  Presence* presence_;
  const Clock& clock_;
  std::shared_ptr<std::atomic<bool>> waits_;
};

NodeRuntime::NodeRuntime(const RuntimeServices& services) : services_(services) {}

NodeRuntime::~NodeRuntime() {
  if (http_) http_->stop();
  control_.reset();
  events_.reset();
  if (rounds_) rounds_->watch(nullptr);
}

Expected<std::unique_ptr<NodeRuntime>> NodeRuntime::start(std::unique_ptr<config::DataDirectory> directory,
                                                          const RuntimeServices& services,
                                                          RuntimeOptions options) {
  platform::keep_heap_small();  // before the threads of the network
  std::unique_ptr<NodeRuntime> node(new NodeRuntime(services));
  NS_ASSIGN_OR_RETURN(node->disk_, open_disk_budget(*directory, services));
  if (!options.safe_mode) {
    NS_ASSIGN_OR_RETURN(node->network_, NetworkService::join(options.join, *directory, services));
  }
  if (node->network_) {
    node->start_exchange(*directory, options.interpositions);
    node->rounds_ = ChainRounds::make(node->network_->host(), *node->files_, *directory, services,
                                      node->disk_, options.interpositions, node->network_->reporting_as());
    if (node->rounds_) node->network_->report().invite_with(node->rounds_->invitations());
  }
  std::string runtime_directory = std::move(options.runtime_directory);
  std::string system_bus = std::move(options.system_bus);
  const CancelSource stopped = options.stopped;
  // The snapshot has a text for people, which is cut and has no bytes that are not UTF-8.
  std::string data_directory = directory->path();
  node->http_ = std::make_unique<HttpService>(directory->path(), directory->settings(), services);
  engine::EngineOptions engine = node->engine_options(*directory, std::move(options));
  node->engine_ = engine::Engine::start(std::move(directory),
                                        {services.files, services.clock, services.logger}, std::move(engine));
  if (node->rounds_) node->rounds_->watch(node->engine_.get());
  node->events_ = std::make_unique<EventQueue>(*node->engine_);
  node->start_sleep_notice(std::move(system_bus));
  node->start_control(std::move(data_directory), std::move(runtime_directory), stopped);
  node->http_->start(*node->engine_);
  return node;
}

void NodeRuntime::start_exchange(const config::DataDirectory& directory,
                                 const Interpositions& interpositions) {
  ExchangeService::Options options;
  options.checkpoints = directory.checkpoints_path();
  options.one_lan = network_->reporting_as().one_lan;
  options.serve = directory.settings().word(config::Setting::ServeFiles) == "on";
  options.interpositions = interpositions;
  files_ = std::make_unique<ExchangeService>(network_->host(), services_, std::move(options));
}

// The one place where the engine is wired to the other parts.
engine::EngineOptions NodeRuntime::engine_options(const config::DataDirectory& directory,
                                                  RuntimeOptions options) const {
  engine::EngineOptions engine;
  engine.version = services_.program_version;
  engine.remember_contributing = true;
  engine.safe_mode = options.safe_mode;
  if (options.make_session) engine.make_session = std::move(options.make_session);
  engine.sensors =
      engine::make_machine_sensors(services_.files, directory.path(), std::move(options.sensor_root));
  engine.alerts = std::move(options.alerts);
  engine.disk = disk_;
  engine.on_settings = [disk = disk_, network = network_.get(), http = http_.get(),
                        rounds = rounds_.get()](const config::Settings& settings) {
    if (rounds != nullptr) rounds->limit_memory(settings.number(config::Setting::MemoryLimit));
    disk->set_limits(disk_limits(settings));
    if (network != nullptr) network->limit_traffic(settings);
    http->apply(settings);
  };
  engine.http_view = [http = http_.get()] { return http->view(); };
  engine.http_key = [http = http_.get()](node::HttpKeyAction action, node::Reply<node::HttpKey> reply) {
    http->key(action, std::move(reply));
  };
  if (network_) {
    engine.network = &network_->report();
    engine.rounds_alerts = alerts_of(*network_, rounds_ ? rounds_->status().alerts() : nullptr);
  }
  if (files_) {
    engine.held_checkpoints = files_->holds();
    engine.data_peers = files_.get();
  }
  if (rounds_) {
    engine.rounds = rounds_->trainer();
    engine.pipeline = rounds_->pipeline();
    engine.rounds_view = rounds_->view();
    engine.rounds_report = rounds_->status().report();
    engine.decisions = rounds_->decisions();
  }
  return engine;
}

void NodeRuntime::start_sleep_notice(std::string system_bus) {
  if (!rounds_ || system_bus.empty()) return;  // nobody waits for this node
  platform::SleepWatchOptions options;
  options.bus_address = std::move(system_bus);
  options.program = "NeuroShard";
  options.reason = "Tells the other members of the network that this computer goes away";
  sleep_notice_ = std::make_unique<SleepNotice>(
      platform::make_sleep_watch(std::move(options), services_.clock, services_.logger), rounds_->presence(),
      [this] { network_->save_peers_now(); }, services_.clock, services_.logger);
}

// A node without the service still trains, and stops by a signal: a warning, not an error.
void NodeRuntime::start_control(std::string data_directory, std::string runtime_directory,
                                CancelSource stopped) {
  auto server = [&]() -> Expected<std::unique_ptr<control::Server>> {
    NS_ASSIGN_OR_RETURN(const auto network, network_module::load_network_module());
    control::ServerOptions options;
    options.data_directory = std::move(data_directory);
    options.runtime_directory = std::move(runtime_directory);
    options.build = services_.program_version;
    options.format = config::data_directory_format;
    options.on_shutdown = [stopped]() mutable { stopped.cancel(); };
    return network.start_server(*engine_,
                                {services_.files, services_.entropy, services_.clock, services_.logger},
                                std::move(options));
  }();
  if (server.ok())
    control_ = std::move(*server);
  else
    services_.logger.warning("control", "the control service is not available: " + server.error().describe());
}

NewStart NodeRuntime::wanted_start() const {
  if (rounds_ && rounds_->has_other_size()) return NewStart::Size;
  if (rounds_ && rounds_->offers_more()) return NewStart::Memory;
  if (network_ && network_->needs_new_start()) return NewStart::Delegation;
  return NewStart::No;
}

Ready NodeRuntime::ready() const {
  Ready ready{engine_->snapshot(), std::nullopt, {}};
  ready.http = http_->view().address;
  if (network_) ready.peers = Ready::Peers{network_->host().endpoint(), network_->host().id()};
  return ready;
}

Expected<void> NodeRuntime::run(const node::TrainingPlan& plan, const CancelToken& stop,
                                const std::function<void(const Event&)>& report) {
  report(ready());
  NS_RETURN_IF_ERROR(engine_->start_training(plan));
  Departure departure(rounds_ ? &rounds_->presence() : nullptr, services_.clock);
  std::optional<Error> failure;  // the error that stopped training
  bool is_stopping = false;
  while (true) {
    if (sleep_notice_) sleep_notice_->poll();
    http_->poll();
    if (control_) control_->keep_file();
    if (!is_stopping && stop.cancelled()) {
      sleep_notice_.reset();  // which would call it back
      departure.begin();
      is_stopping = departure.is_over();
      // Refused when the shutdown was requested through the control service before.
      if (is_stopping) static_cast<void>(engine_->request_shutdown().ok());
    }
    // It is back within seconds, and others may do the same now, so it does not say that it is away.
    if (const NewStart anew = wanted_start(); !is_stopping && anew != NewStart::No) {
      departure.leave_out();
      is_stopping = engine_->request_shutdown().ok();
      if (is_stopping) new_start_ = anew;
      if (is_stopping) services_.logger.info("node", std::string(to_text(anew)));
    }
    if (network_) {
      network_->save_peers();
      network_->announce_capacity(*engine_->snapshot());
    }
    auto event = events_->next(departure.has_begun() ? leaving_period : poll_period);
    if (!event) continue;
    const auto* changed = std::get_if<node::StateChanged>(&*event);
    if (changed != nullptr && changed->state != node::RunState::Stopping) failure = changed->error;
    const Event reported(std::move(*event));
    report(reported);
    if (const auto* ended = std::get_if<node::Ended>(&std::get<node::Event>(reported)))
      return finish(departure, *ended, std::move(failure));
  }
}

Expected<void> NodeRuntime::finish(Departure& departure, const node::Ended& ended,
                                   std::optional<Error> failure) {
  sleep_notice_.reset();
  departure.begin();  // not begun when the shutdown was requested through the control service
  while (!departure.is_over()) static_cast<void>(events_->next(leaving_period));
  if (rounds_) rounds_->stop();
  if (files_) files_->stop();
  if (network_) network_->save_peers_now();
  disk_->save();
  if (ended.error) return *ended.error;
  // The stop succeeded, but a supervisor needs to know that the node was not training.
  if (failure) return std::move(*failure).with_context("training had failed before the stop");
  return {};
}

}  // namespace neuroshard::runtime
