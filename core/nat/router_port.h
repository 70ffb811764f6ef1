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

namespace neuroshard::nat {

struct RouterNews {
  std::optional<platform::IpAddress> local;    // this machine's address on the route to the internet
  std::optional<platform::IpAddress> gateway;  // the router's
  bool needed = true;                          // false: others see this machine's own address
  // The result of each protocol, at most one of them with an outside endpoint; `dialled` is not known here.
  std::vector<MapperFinding> mappers;
  std::string words;  // for the log; empty: nothing new
};

class RouterPort {
 public:
  // The protocols for this router, the preferred first. Called on this object's thread.
  using Ways = std::function<std::vector<std::unique_ptr<PortMapper>>(
      const std::optional<platform::IpAddress>& gateway)>;
  using Told = std::function<void(RouterNews)>;  // on this object's thread; must only enqueue

  // References must outlive it. Nothing is asked before open().
  RouterPort(const Clock& clock, crypto::Entropy& entropy, std::uint16_t port, Ways ways, Told told,
             const KeeperTimes& times = {});
  ~RouterPort();  // removes the mapping; waits for the router some seconds at most

  // Others see this machine at this address. Asks the router if that is not the machine's own. A further call
  // asks again, unless there is a mapping.  Threads: any.
  void open(const platform::IpAddress& seen_at);

 private:
  void work();
  // Tries each protocol in turn; true when one mapped the port. False also when the object stops.
  bool ask(RouterNews& news);
  void hold(RouterNews& news);
  // Waits until then, or until there is work. False: the object stops.
  bool wait_for_work(MonotonicTime until);

  const Clock& clock_;
  crypto::Entropy& entropy_;
  const std::uint16_t port_;
  const Ways ways_;
  const Told told_;
  const KeeperTimes times_;
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
