// A port of this machine held open at the router: finds out whether there is a router to ask, asks it by each
// of the ways in turn, keeps what one of them gave (mapping_keeper.h), and takes it back at the end. A thread
// of its own, because routers are slow and miniupnpc waits for them. What it tells is the router's word:
// only a dial-back makes it true.
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
  std::optional<platform::IpAddress> local;    // this machine's address towards the world
  std::optional<platform::IpAddress> gateway;  // the router's
  bool needed = true;                          // false: the world sees this machine's own address
  // What each way gave, at most one of them an outside endpoint; `dialled` is not known here.
  std::vector<MapperFinding> mappers;
  std::string words;  // for the log; empty: nothing new
};

class RouterPort {
 public:
  // The ways to ask this router, the preferred first. Called on this object's thread.
  using Ways = std::function<std::vector<std::unique_ptr<PortMapper>>(
      const std::optional<platform::IpAddress>& gateway)>;
  using Told = std::function<void(RouterNews)>;  // on this object's thread; must only enqueue

  // References must outlive it. Nothing is asked before open().
  RouterPort(const Clock& clock, crypto::Entropy& entropy, std::uint16_t port, Ways ways, Told told,
             const KeeperTimes& times = {});
  ~RouterPort();  // removes the mapping; waits for the router some seconds at most

  // The world sees this machine at this address: asks the router if that is not the machine's own. Called
  // again: asks anew, unless a mapping stands.  Threads: any.
  void open(const platform::IpAddress& seen_at);

 private:
  void work();
  // Asks each way in turn; true when one gave the port. False too when it is to stop.
  bool ask(RouterNews& news);
  void hold(RouterNews& news);
  // Waits until then, or until there is something to do. False: it is to stop.
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
  // The thread's.
  std::vector<std::unique_ptr<PortMapper>> mappers_;
  std::optional<MappingKeeper> keeper_;
  std::size_t kept_ = 0;  // which finding is the keeper's
  std::unique_ptr<Executor> thread_;
};

}  // namespace neuroshard::nat
