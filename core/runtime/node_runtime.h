// A running node: its place in the network, the outer rounds, the exchange of files, the engine and the
// control service. They are wired once, when the node starts, and end in reverse order.
//
//   network   peers, reachability, discovery     null without a network, and in safe mode
//   files     shards and checkpoints by hash     null without a network
//   rounds    outer rounds with other members    null without a network with rounds
//   engine    training, checkpoints, settings
//   control   other programs of the user         absent with a warning in the log
//   http      the local HTTP server              follows its settings; an alert when it can't listen
//
// A program starts the node, then gives its thread to run(), which reports events until the node has ended:
//
//   NS_ASSIGN_OR_RETURN(const auto node, NodeRuntime::start(std::move(directory), services, options));
//   return node->run(plan, stop, [](const Event& event) { … });
//
// Threads: one, the owner's. Events come on it, inside run().
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "core/base/cancel.h"
#include "core/config/data_directory.h"
#include "core/node/node.h"
#include "core/platform/socket/ip_address.h"
#include "core/runtime/interpositions.h"
#include "core/runtime/join_options.h"
#include "core/runtime/runtime_services.h"

namespace neuroshard::control {
class Server;
}
namespace neuroshard::engine {
struct EngineOptions;
struct TrainingServices;
class TrainingSession;
}  // namespace neuroshard::engine
namespace neuroshard::storage {
class DiskBudget;
}

namespace neuroshard::runtime {

class EventQueue;
class ExchangeService;
class HttpService;
class NetworkService;
class ChainRounds;
class SleepNotice;

struct RuntimeOptions {
  bool safe_mode = false;         // no training, no compute module, no network
  std::string sensor_root = "/";  // the sensors of the contribute rules read below this folder
  std::string
      runtime_directory;  // holds the file by which clients find the core (platform::runtime_directory)
  std::vector<node::Alert> alerts;  // raised at the start
  // On which the computer announces suspend and shutdown (platform/power/sleep_watch.h). Empty: no notice of
  // them, and no delay.
  std::string system_bus;
  JoinOptions join;
  Interpositions interpositions;
  // Cancelled once a program asks for the node's end through the control service, even if it ends already. A
  // node that was to start anew then must not.
  CancelSource stopped;
  // Makes the training; empty: the product's. For programs that measure other nodes (tests/support/payload_sender.cpp).
  std::function<Expected<std::unique_ptr<engine::TrainingSession>>(config::DataDirectory&,
                                                                   engine::TrainingServices)>
      make_session;
};

// The node answers, also over the control service. The first event.
struct Ready {
  struct Peers {
    platform::Endpoint endpoint;  // listens for peers here
    Hash256 id{};
  };
  std::shared_ptr<const node::Snapshot> snapshot;
  std::optional<Peers> peers;  // nothing: the node takes part in no network
  std::string http;            // address of the local HTTP server; empty: it is off or can't listen
};

// Ready, then what the node reports. node::Ended is the last one.
using Event = std::variant<Ready, node::Event>;

// Why a node ends that is to start anew with the same data directory.
enum class NewStart : std::uint8_t {
  No,
  Size,        // the network's model has another size
  Memory,      // the node may offer more memory
  Delegation,  // the wallet's delegation ends soon, and a start can renew it
};
// For people, a sentence; empty: No.
std::string_view to_text(NewStart reason);

class NodeRuntime {
 public:
  // Takes the open directory. Errors: those of NetworkService::join.
  static Expected<std::unique_ptr<NodeRuntime>> start(std::unique_ptr<config::DataDirectory> directory,
                                                      const RuntimeServices& services,
                                                      RuntimeOptions options);
  // Ends the node at once, without notice to the other members.
  ~NodeRuntime();
  NodeRuntime(const NodeRuntime&) = delete;
  NodeRuntime& operator=(const NodeRuntime&) = delete;

  node::Node& node() { return *engine_; }

  // Trains until `stop` is cancelled, the node is shut down through its seam, or it has to start anew. The node then leaves its
  // rounds, writes the final checkpoint and saves its peers. Meanwhile it tells the other members when the
  // computer suspends or shuts down, and when it has resumed. To be called once. Errors: those of
  // start_training; that of the final checkpoint; the error that had stopped training at the end.
  Expected<void> run(const node::TrainingPlan& plan, const CancelToken& stop,
                     const std::function<void(const Event&)>& report);
  // Why run() ended, where it did so by itself: a node that starts with the same data directory goes on.
  NewStart new_start() const { return new_start_; }

 private:
  class Departure;

  explicit NodeRuntime(const RuntimeServices& services);
  void start_exchange(const config::DataDirectory& directory, const Interpositions& interpositions);
  engine::EngineOptions engine_options(const config::DataDirectory& directory, RuntimeOptions options) const;
  void start_sleep_notice(std::string system_bus);
  void start_control(std::string data_directory, std::string runtime_directory, CancelSource stopped);
  NewStart wanted_start() const;
  Ready ready() const;
  Expected<void> finish(Departure& departure, const node::Ended& ended, std::optional<Error> failure);

  const RuntimeServices services_;
  std::shared_ptr<storage::DiskBudget> disk_;
  std::unique_ptr<HttpService> http_;  // stopped before the engine ends
  std::unique_ptr<NetworkService> network_;
  std::unique_ptr<ExchangeService> files_;
  std::unique_ptr<ChainRounds> rounds_;
  std::unique_ptr<SleepNotice> sleep_notice_;  // null: no rounds, or the node leaves them
  std::unique_ptr<node::Node> engine_;
  std::unique_ptr<EventQueue> events_;
  std::unique_ptr<control::Server> control_;
  NewStart new_start_ = NewStart::No;
};

}  // namespace neuroshard::runtime
