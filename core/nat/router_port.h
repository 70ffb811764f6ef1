// Keeps a port of this machine open at the router: finds the router, asks it by one protocol after the other,
// keeps the mapping (mapping_keeper.h), and removes it at the end. It has a thread of its own, because
// routers are slow and miniupnpc blocks. It reports what the router claims; only a dial-back verifies it.
#pragma once

#include <condition_variable>
#include <functional>
#include <memory>
#include <mutex>

#include "core/base/executor.h"
#include "core/nat/mapping_keeper.h"
#include "core/nat/reachability.h"
#include "core/platform/socket/default_gateway.h"

namespace neuroshard::nat {

struct RouterNews {
  std::optional<platform::IpAddress> local;    // this machine's address on the route to the internet
  std::optional<platform::IpAddress> gateway;  // the router's
  bool needed = true;                          // false: others see this machine's own address
  // The result of each protocol, at most one of them with an outside endpoint; `dialled` is not known here.
  std::vector<MapperFinding> mappers;
  std::string words;  // for the log; empty: nothing new
};

// This machine's address on the route to the internet, by the system's routing table; nothing is sent.
Expected<platform::IpAddress> local_towards_internet();

// This machine's place in its network. Called on the RouterPort's thread.
struct RouteLookup {
  std::function<Expected<platform::IpAddress>()> local = local_towards_internet;
  std::function<Expected<platform::IpAddress>()> gateway = platform::default_gateway;
};

class RouterPort {
 public:
  // The protocols for this router, the preferred first. Called on this object's thread.
  using Ways = std::function<std::vector<std::unique_ptr<PortMapper>>(
      const std::optional<platform::IpAddress>& gateway)>;
  using Told = std::function<void(RouterNews)>;  // on this object's thread; must only enqueue

  // References must outlive it. Nothing is asked before open().
  RouterPort(const Clock& clock, crypto::Entropy& entropy, std::uint16_t port, Ways ways, Told told,
             const KeeperTimes& times = {}, RouteLookup route = {});
  ~RouterPort();  // removes the mapping; waits for the router some seconds at most

  // Others see this machine at this address. Asks the router if that is not the machine's own. A further call
  // asks again by all ways; a mapping is only checked, if the address is another one or the router has not
  // answered.  Threads: any.
  void open(const platform::IpAddress& seen_at);

 private:
  enum class Woken { Stopped, Asked, Due };
  void work();
  // Tries each protocol in turn; true when one mapped the port. False also when the object stops.
  bool ask(RouterNews& news);
  // Keeps the mapping until it is lost or all ways are to be asked anew. at: where others see this machine.
  void hold(RouterNews& news, platform::IpAddress at);
  // Waits until then, or until there is work.
  Woken wait_for_work(MonotonicTime until);
  platform::IpAddress last_seen_at();

  const Clock& clock_;
  crypto::Entropy& entropy_;
  const std::uint16_t port_;
  const Ways ways_;
  const Told told_;
  const KeeperTimes times_;
  const RouteLookup route_;
  CancelSource cancel_;
  const Io io_;
  std::mutex mutex_;
  std::condition_variable changed_;
  std::optional<platform::IpAddress> seen_at_;
  bool asked_ = false, stop_ = false;
  // Used by the thread only.
  std::vector<std::unique_ptr<PortMapper>> mappers_;
  std::optional<MappingKeeper> keeper_;
  std::size_t kept_ = 0;  // the index of the keeper's finding
  std::unique_ptr<Executor> thread_;
};

}  // namespace neuroshard::nat
