// The control service: a running core on one side, the programs that show and control it on the other. gRPC
// over TLS 1.3 on the loopback interface, an ephemeral port; control.json (control_file.h) is how clients
// find it. Other machines only by invitation (remote_access.h). The messages, their limits and the rules of
// versions: docs/protocol/control.md.
//
// gRPC is behind this header. Programs reach start_server() and connect() through core/network_module, so
// that commands which need no service start at once.
#pragma once

#include <condition_variable>
#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "core/base/cancel.h"
#include "core/base/clock.h"
#include "core/base/expected.h"
#include "core/base/log.h"
#include "core/crypto/entropy.h"
#include "core/node/node.h"
#include "core/storage/file_env.h"

namespace neuroshard::control {

// Same major: both ways. Another major: refused, saying which side to upgrade. Raised as
// docs/protocol/control.md says.
struct Version {
  std::uint32_t major = 0, minor = 0;
  friend bool operator==(const Version&, const Version&) = default;
};
inline constexpr Version version{1, 17};

// Bounds of the server; every one is per core.
struct ServerLimits {
  std::size_t watchers = 16;  // programs of this user that follow at the same time
  std::size_t calls = 16;     // their commands and questions under way at the same time
  // The same for all invited programs together; one invitation has half of them.
  std::size_t invited_watchers = 8, invited_calls = 16;
  std::size_t connections = 64;   // open at the same time, the silent ones included
  std::size_t remote_group = 16;  // of them, of the remote port and from one platform::prefix_group
  std::size_t events = 512;       // that wait for one slow watcher, steps not counted; then it is dropped
  std::size_t steps = 64;         // step and progress events that wait for it; the oldest go
  Duration period = std::chrono::milliseconds(100);  // between two snapshots to one watcher
};

struct ServerOptions {
  std::string data_directory;
  std::string runtime_directory;  // made private when missing
  std::string build;              // "0.1.0"
  std::uint32_t format = 0;       // of the data directory
  Version speaks = version;       // tests speak another one
  ServerLimits limits;
  // A program asks the node to end, also where the node refuses because it is ending already. On gRPC's threads,
  // several at once. Null: nobody wants to know.
  std::function<void()> on_shutdown;
};

struct ServerServices {  // all outlive the server
  storage::FileEnv& files;
  crypto::Entropy& entropy;
  const Clock& clock;
  Logger& logger;
};

// Serves while it lives. Destruction removes control.json, lets running calls end (2 s at most) and refuses
// new ones; before that, watchers get the last snapshot and events.
class Server {
 public:
  virtual ~Server() = default;
  virtual std::string address() const = 0;  // "127.0.0.1:43210"
  // Where invited programs of other machines come in (remote_access.h); empty: nowhere.
  virtual std::string remote_address() const = 0;
  // Call it now and then: once an hour it looks for control.json, and writes it again if somebody removed it. Threads:
  // the one that destroys the server.
  virtual void keep_file() = 0;
};

enum class LinkState : std::uint8_t {
  Connecting,
  Connected,
  Lost,     // no connection now; tried again automatically
  Refused,  // wrong cookie, certificate or version: trying again helps only when a core starts anew
};
std::string_view to_string(LinkState state);

// Among the capabilities of a core for a caller whose cookie permits changes (remote_access.h).
inline constexpr std::string_view steer_capability = "steer";

// The state of the connection, for a screen.
struct LinkView {
  LinkState state = LinkState::Connecting;
  std::optional<Error> error;  // why Lost or Refused
  // Of the core, from its hello; zeros before.
  Version control;
  std::string build;
  std::uint32_t format = 0;
  std::uint64_t pid = 0;
  std::vector<std::string> capabilities;
};

struct ConnectOptions {
  std::string data_directory;
  std::string runtime_directory;
  // An invitation to the core of another machine (remote_access.h), kept private: it is followed instead of
  // the two folders.
  std::string control_file;
  std::string program;  // "neuroshardd status"; for the core's log
  std::string build;
  Version speaks = version;
  Duration first_retry = std::chrono::milliseconds(250);  // doubles up to last_retry
  Duration last_retry = std::chrono::seconds(5);
  // Silence after which a program asks the core for a sign; without one for as long, the connection is lost.
  Duration quiet = std::chrono::seconds(10);
};

// A Node over the service. Connects and reconnects by itself, to whichever core owns the directory then; the
// snapshot of a lost core stays readable, and link() says that it is old. Commands and queries without a
// connection are refused with Unavailable; a command whose connection breaks ends with Unavailable ("not
// known whether it was done").
class RemoteNode : public node::Node {
 public:
  virtual LinkView link() const = 0;
  // Called on a thread of the node after each change; must only enqueue.
  [[nodiscard]] virtual std::unique_ptr<node::Subscription> watch_link(std::function<void()> on_change) = 0;
  // Blocks, for command lines: until the first snapshot of this connection is there, or the core refuses, or
  // `limit` passes (Timeout), or `stop` (Cancelled).
  Expected<void> wait_connected(Duration limit, const CancelToken& stop);
};

// Inline: the service's implementation is in a module that a program loads.
inline Expected<void> RemoteNode::wait_connected(Duration limit, const CancelToken& stop) {
  constexpr Duration look = std::chrono::milliseconds(50);
  std::mutex mutex;
  std::condition_variable condition;
  bool changed = false;
  const auto watching = watch_link([&] {
    std::lock_guard lock(mutex);
    changed = true;
    condition.notify_all();
  });
  for (Duration waited{0};; waited += look) {
    const LinkView now = link();
    if (now.state == LinkState::Connected) return {};
    if (now.state == LinkState::Refused) return *now.error;
    if (stop.cancelled()) return make_error(ErrorCode::Cancelled, "stopped while connecting to the core");
    if (waited >= limit)
      return now.error ? *now.error : make_error(ErrorCode::Timeout, "the core does not answer");
    std::unique_lock lock(mutex);
    if (condition.wait_for(lock, look, [&] { return changed; })) waited -= look;
    changed = false;
  }
}

// The two entries of the service. They link gRPC; programs call them through core/network_module.
Expected<std::unique_ptr<Server>> start_server(node::Node& node, ServerServices services,
                                               ServerOptions options);
std::unique_ptr<RemoteNode> connect(ConnectOptions options);

}  // namespace neuroshard::control
