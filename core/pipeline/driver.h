// The end of a session that has the data, for training or for losses: it sends micro-batches through the stages of a route, hears their losses,
// and leads the session around a stage that is lost. It has no weights.
//
// Errors: a stage that does not answer is replaced by another holder of the same layers, and the micro-batches
// without a result are sent again. Stages watch those behind them, and the driver watches the first one. Without another
// holder the driver asks again, every `retry`, and sends no new ones until all stages are there. Only close() ends a session.
// Threads: the executor's, all members and all calls back.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <vector>

#include "core/pipeline/hop_times.h"
#include "core/pipeline/session_lead.h"

namespace neuroshard::pipeline {

struct MicroBatchText {
  std::uint32_t sequences = 0;
  std::vector<std::int32_t> tokens, targets;  // [sequences, length]; a target of −1: no loss there
};

struct DriverEvents {
  // The next micro-batch, when there is room for one; nothing: ask again after wake().
  std::function<std::optional<MicroBatchText>()> next;
  // In the order in which they finish. The sums are those of the whole model.
  std::function<void(std::uint64_t index, const Sums& sums)> finished;
  LeadEvents lead;
};

class Driver {
 public:
  // With a first stage that returns nothing. A stage may wait long for its step, and for the later stages.
  static constexpr Duration patience = std::chrono::minutes(5);

  // route: with everything but driver, revision and signature; checked. key outlives the driver.
  Driver(const Surroundings& surroundings, const crypto::KeyPair& key, Bytes network, Route route,
         DriverEvents events, Duration retry = std::chrono::milliseconds(500));

  void start();
  void wake();  // next() has something again
  // The stages forget the session once they have heard it.
  void close();

  const Route& route() const { return lead_.route(); }
  std::size_t unfinished() const { return hop_.unanswered(); }
  std::uint64_t finished() const { return finished_; }
  std::uint64_t replaced() const { return lead_.replaced(); }  // hops
  // Of the present route, by position (hop_times.h). A micro-batch counts if no hop was replaced meanwhile.
  std::vector<std::optional<HopTimes::Figure>> times() const { return times_.means(route()); }

 private:
  struct Sent {
    MonotonicTime at{};
    std::uint32_t revision = 0;  // of the route
  };
  void pump();
  std::uint64_t oldest_unfinished() const;
  void result(const Result& result);
  void watch();

  const std::function<std::optional<MicroBatchText>()> next_;
  const std::function<void(std::uint64_t index, const Sums& sums)> finish_;
  ExchangeLog& exchanges_;
  const Clock& clock_;
  Executor& executor_;
  NextHop hop_;
  SessionLead lead_;
  std::uint64_t next_index_ = 0, finished_ = 0;
  std::map<std::uint64_t, Sent> unfinished_;  // by index
  HopTimes times_;
  MonotonicTime moved_{};  // when a result came last, or all stages were ready, or nothing was under way
  std::unique_ptr<TimerHandle> watch_timer_;
  bool started_ = false, closed_ = false;
};

}  // namespace neuroshard::pipeline
