// Decides when a node searches at a rendezvous and announces itself there. It searches while the node is
// alone, after a delay for the better ways, with growing pauses. It announces the node while others can dial
// it.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>

#include "core/base/clock.h"
#include "core/base/executor.h"
#include "core/base/lifetime.h"
#include "core/base/log.h"
#include "core/base/rng.h"
#include "core/rendezvous/rendezvous.h"

namespace neuroshard::rendezvous {

struct SeekerOptions {
  Duration patience{0};  // alone for so long before the first search
  Duration first_pause = std::chrono::seconds(15);
  Duration longest_pause = std::chrono::minutes(15);
  Duration announce_every = std::chrono::minutes(15);
  Duration check_period = std::chrono::seconds(1);  // between two checks of the node's state
};

struct SeekerQuestions {                                 // to the node; called on the executor
  std::function<bool()> alone;                           // no other node answers, or none names others
  std::function<std::optional<std::uint16_t>()> port;    // where others can dial it
  std::function<void(const platform::Endpoint&)> found;  // a first peer
};

// Threads: the executor's.
class Seeker {
 public:
  // All outlive the seeker.
  Seeker(Rendezvous& place, Executor& executor, const Clock& clock, Logger& logger, SeekerQuestions questions,
         SeekerOptions options, std::uint64_t seed);
  ~Seeker();
  // Its state, for users: "looks in the local network", "found enough others".
  const std::string& state() const { return state_; }
  std::size_t looks() const { return looks_; }

 private:
  void step();
  void search();
  void keep_announced(MonotonicTime now);

  Rendezvous& place_;
  Executor& executor_;
  const Clock& clock_;
  Logger& logger_;
  const SeekerQuestions questions_;
  const SeekerOptions options_;
  Rng rng_;
  std::string state_ = "not needed so far";
  std::size_t looks_ = 0;
  std::optional<MonotonicTime> alone_since_, next_search_, next_announcement_;
  std::optional<std::uint16_t> announced_;
  Duration pause_{0};
  std::unique_ptr<TimerHandle> timer_;
  Lifetime lifetime_;
};

}  // namespace neuroshard::rendezvous
