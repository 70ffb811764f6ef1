// One session at one stage: what arrived from the hop before, what is at the hop behind, and what is to be answered.
// Each micro-batch is applied exactly once, however often it is sent: a repetition gets the result of the first time.
//
// Memory: at most the route's window of micro-batches that are not finished, and as many that are. Threads: the
// executor's.
#pragma once

#include <cstdint>
#include <map>
#include <memory>

#include "core/pipeline/next_hop.h"

namespace neuroshard::pipeline {

// What a session asks of its stage.
class SessionHost {
 public:
  virtual ~SessionHost() = default;
  virtual void work_arrived(const SessionId& session, std::uint64_t index, std::uint64_t tokens,
                            std::uint64_t targets) = 0;
  virtual void gradient_arrived(const SessionId& session, std::uint64_t index) = 0;
  // The micro-batch is of no use any more.
  virtual void work_dropped(const SessionId& session, std::uint64_t index) = 0;
};

class StageSession {
 public:
  // route: checked, names this node at `position`. host outlives the session.
  StageSession(const Surroundings& surroundings, SessionHost& host, const Route& route, std::size_t position);
  ~StageSession();
  StageSession(const StageSession&) = delete;
  StageSession& operator=(const StageSession&) = delete;

  const Route& route() const { return route_; }
  std::size_t position() const { return position_; }

  // ---- the hop before. Results go to the stream that was attached last; null: there is none now.
  void attach(FrameStream* earlier);
  bool attached() const { return earlier_ != nullptr; }
  MonotonicTime detached_at() const { return detached_at_; }
  void follow(const Route& route);  // of a higher revision, or the same route
  Expected<std::size_t> admit(const Message& message) const;
  // Refused: a micro-batch without a target.
  Expected<void> work(const Work& work, Bytes payload);
  void close(std::uint64_t finished_below);  // the driver is done; what is unfinished is dropped
  bool closed() const { return closed_; }

  // ---- the compute thread
  struct Input {
    std::uint32_t sequences = 0;
    std::shared_ptr<const Bytes> payload;  // of Work
  };
  Input input_of(std::uint64_t index) const;
  std::shared_ptr<const Bytes> gradient_of(std::uint64_t index) const;
  void forward_done(std::uint64_t index, const Sums& sums, Bytes rows);
  void backward_done(std::uint64_t index, Bytes rows);

  std::size_t unfinished() const;

 private:
  enum class Phase : std::uint8_t { Here, AtNext, Returned, Answered };
  struct Held {
    Phase phase = Phase::Here;
    std::uint32_t sequences = 0;
    std::uint64_t asked_by = 0;  // the attachment whose stream sent the work last
    SharedBytes payload;         // Here: of Work. Returned: gradient of the output. Answered: of Result
    Bytes targets;               // until the work is passed on
    Sums sums;
  };
  const RouteHop& own() const { return route_.hops[position_]; }
  bool is_last() const { return position_ + 1 == route_.hops.size(); }
  Held& held(std::uint64_t index);
  net::NodeId earlier_node() const;
  void forget_below(std::uint64_t index);
  void drop_unfinished();
  void returned(const Result& result, Bytes rows);
  void answer(std::uint64_t index);

  const Surroundings around_;
  SessionHost& host_;
  Route route_;
  std::size_t position_;
  NextHop next_;
  FrameStream* earlier_ = nullptr;
  std::uint64_t attachment_ = 0;
  MonotonicTime detached_at_{};
  std::uint64_t finished_below_ = 0;
  bool closed_ = false;
  std::map<std::uint64_t, Held> held_;  // by index
};

}  // namespace neuroshard::pipeline
