// The services of a training node: a learner, a store for its own part of a round, and a thread for long
// computations. The engine implements them with the model, the data directory and threads; the simulator with a
// small learner, memory and virtual time.
#pragma once

#include <cstdint>
#include <functional>
#include <utility>
#include <vector>

#include "core/base/byte_source.h"
#include "core/base/expected.h"
#include "core/net/peer_channel.h"
#include "core/rounds/step.h"

namespace neuroshard::rounds {

struct TrainedWork {
  std::uint32_t steps = 0;
  std::uint64_t tokens = 0;
};

// Fewer steps are not worth a contribution: H/20, at least 1.
constexpr std::uint32_t least_steps(std::uint32_t inner_steps) {
  return inner_steps < 20 ? 1 : inner_steps / 20;
}

// The part of a node's own work that it carries onto a new anchor: new local weights = new anchor − the delta of
// that part. Carried work is in no certified row yet, so nothing counts twice.
enum class Carry : std::uint8_t {
  Nothing,        // all of it is in the new anchor, or is dropped
  SinceBoundary,  // the part up to the boundary is in the anchor
  Everything,     // none of it is in the anchor
};

// The training after its delta was made.
enum class AfterBoundary : std::uint8_t {
  Rest,     // until start() or go_on()
  TrainOn,  // as many steps again as a round has; then it rests
};

// Steps by which a member leads the others; up to an eighth of a round is the time that messages take.
constexpr std::uint64_t counted_lead(std::uint64_t steps, std::uint32_t inner_steps) {
  return 8 * steps > inner_steps ? steps : 0;
}

// Trains one row. All calls and callbacks are on the executor of the chain's node; none of them waits.
class RoundLearner {
 public:
  virtual ~RoundLearner() = default;
  struct Start {
    std::uint64_t round = 0;
    Anchor anchor;  // shared, may be held
    Carry carry = Carry::Nothing;
    // The last boundary's payload is in a certified row. If not, a learner with error feedback puts the payload
    // back (outer::ErrorFeedback::roll_back) and carries only the work after the boundary.
    bool counted = false;
    Hash256 beacon{};  // of the round; zeros: not known
  };
  virtual void start(Start from) = 0;
  // Since start(), carried work included; cheap.
  virtual TrainedWork progress() const = 0;
  // Steps of this round for this node beyond H: its lead at the last boundary. Without them, a member that leads
  // once would always lead where rounds overlap, and each anchor would be older for it by as much.
  virtual std::uint32_t extra_steps() const { return 0; }
  // A quorum of the other members has finished this round's steps.
  virtual void closed() {}
  // The learner has as many steps as this node can have in this round, although the round has more: the node
  // joined after the row's earlier rounds.
  virtual bool ends_early() const { return false; }
  struct Boundary {
    ByteSourcePtr
        payload;  // anchor − local, encoded with the profile's codec (and error feedback, if it has that)
    TrainedWork work;  // in the payload
    // For recall() after a restart; on the disk before the payload leaves. Null: nothing.
    ByteSourcePtr memory{};
    // The batches of `work` for a BatchKeeper; empty: not known.
    Bytes batches{};
  };
  // Ends the round's training after the step that runs. `done` gets the delta, later, once.
  virtual void boundary(AfterBoundary after, std::function<void(Expected<Boundary>)> done) = 0;
  // No result is expected soon: train on from the present weights.
  virtual void go_on() = 0;
  // After a restart, before the first start(): the memory of the last boundary. The learner ignores memory that
  // it can't read. The payload of that boundary may have left or not.
  virtual void recall(ByteSourcePtr) {}
};

// Keeps a node's own part of a round across restarts: its vector, its contribution with the payloads, and the
// memory of its learners. Each record is replaced as a whole, once a round. When the power fails for all members
// at once after some have locked on a block, the payloads come from here.
class RoundStore {
 public:
  enum class Record : std::uint8_t { Vector, Contribution, Learners };
  virtual ~RoundStore() = default;
  // NotFound: nothing is kept yet.
  virtual Expected<ByteSourcePtr> load(Record record) = 0;
  // `done` when the record is on the disk, or with the error; in the order of calls.
  virtual void save(Record record, ByteSourcePtr bytes, std::function<void(Expected<void>)> done) = 0;
};

// Keeps the signed lists of the batches behind this node's contributions, for others that ask.
class BatchKeeper {
 public:
  virtual ~BatchKeeper() = default;
  // batches: of RoundLearner::Boundary. `done` gets the list's hash, later; zeros when it can't be kept.
  virtual void keep(std::uint64_t round, const Hash256& opening, Bytes batches,
                    std::function<void(const Hash256&)> done) = 0;
};

// Runs `job` on another thread, then `done` on the node's executor; in order, and never from within run().
class RoundWork {
 public:
  virtual ~RoundWork() = default;
  virtual void run(std::function<void()> job, std::function<void()> done) = 0;
};

// Runs a job that reads payloads of so many bytes. Those that one call can carry are read at once: that takes less
// time than the wait for another thread.
inline void run_reading(RoundWork& work, std::uint64_t bytes, std::function<void()> job,
                        std::function<void()> done) {
  if (bytes > net::chunk_bytes) return work.run(std::move(job), std::move(done));
  job();
  done();
}

}  // namespace neuroshard::rounds
