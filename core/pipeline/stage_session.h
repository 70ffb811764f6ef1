// A session of training at one stage: what arrived from the hop before, what is at the hop behind, and what is to be answered.
// Each micro-batch is applied exactly once, however often it is sent: a repetition gets the result of the first time.
//
// Memory: at most the route's window of micro-batches that are not finished, and as many that are. Threads: the
// executor's.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <vector>

#include "core/pipeline/hop_session.h"

namespace neuroshard::pipeline {

// Gets what a session asks of its stage.
class SessionHost {
 public:
  virtual ~SessionHost() = default;
  virtual void work_arrived(const SessionId& session, std::uint64_t index, std::uint64_t tokens,
                            std::uint64_t targets) = 0;
  virtual void gradient_arrived(const SessionId& session, std::uint64_t index) = 0;
  // The micro-batch is of no use any more.
  virtual void work_dropped(const SessionId& session, std::uint64_t index) = 0;
};

class StageSession final : public HopSession {
 public:
  // route: of training. host outlives the session.
  StageSession(const Surroundings& surroundings, SessionHost& host, const Route& route, std::size_t position);
  ~StageSession() override;

  // Refused: a micro-batch without a target.
  Expected<void> work(const Work& work, Bytes payload) override;
  bool has_unfinished() const override;
  void close(std::uint64_t finished_below) override;

  // ---- the compute thread
  struct Input {
    std::uint32_t sequences = 0;
    SharedBytes payload;  // of Work
  };
  Input input_of(std::uint64_t index) const;
  SharedBytes gradient_of(std::uint64_t index) const;
  const Sums& sums_of(
      std::uint64_t index) const;  // of one whose gradient is here: from this stage to the head
  // took: of the computing alone.
  void forward_done(std::uint64_t index, const Sums& sums, Bytes rows, Duration took);
  void backward_done(std::uint64_t index, Bytes rows, Duration took);

 private:
  enum class Phase : std::uint8_t { Here, AtNext, Returned, Answered };
  struct Held {
    Phase phase = Phase::Here;
    std::uint32_t sequences = 0;
    std::uint64_t asked_by = 0;  // the attachment whose stream sent the work last
    SharedBytes payload;         // Here: of Work. Returned: gradient of the output. Answered: of Result
    Bytes targets;               // until the work is passed on
    Sums sums;
    Duration computing{0};
    MonotonicTime sent_at{};     // AtNext: to the next hop
    std::vector<HopTime> times;  // Returned, Answered: from this hop to the last one
  };
  Expected<void> admit_work(const Work& work) const override;
  void returned(const Result& result, Bytes rows) override;
  Held& held(std::uint64_t index);
  const Held& held(std::uint64_t index, Phase phase) const;
  void forget_below(std::uint64_t index);
  void drop_unfinished();
  void answer(std::uint64_t index);

  SessionHost& host_;
  std::uint64_t finished_below_ = 0;
  std::map<std::uint64_t, Held> held_;  // by index
};

}  // namespace neuroshard::pipeline
