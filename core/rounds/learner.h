// What a node of a round needs from around it: somebody who trains, a place to remember its votes, and
// somebody who computes beside the protocol. The engine implements these with the model, the data directory
// and threads, the simulator with a small learner, memory and virtual time.
#pragma once

#include <cstdint>
#include <functional>
#include <vector>

#include "core/base/bytes.h"
#include "core/base/expected.h"
#include "core/rounds/step.h"

namespace neuroshard::rounds {

struct TrainedWork {
  std::uint32_t steps = 0;
  std::uint64_t tokens = 0;
};

// What of a node's own work, done since the last certified anchor, goes along when it starts from a new one:
// new local weights = new anchor − that work's delta. What goes along is in no certificate yet, so nothing
// counts twice.
enum class Carry : std::uint8_t {
  Nothing,        // it is in the new anchor, or was left out and is dropped
  SinceBoundary,  // the part up to the boundary is in the anchor, what came after is not
  Everything,     // none of it is
};

// What training does when its delta is made.
enum class AfterBoundary : std::uint8_t {
  Rest,     // until start() or go_on()
  TrainOn,  // as many steps again as a round has; then it rests
};

// Trains. All calls and callbacks on the executor of the round's node; none of them waits.
// How far a member may be ahead of the others without doing more for it: the way of their words, and small
// differences, are no lead.
constexpr std::uint64_t counted_lead(std::uint64_t steps, std::uint32_t inner_steps) {
  return 8 * steps > inner_steps ? steps : 0;
}

class RoundLearner {
 public:
  virtual ~RoundLearner() = default;
  struct Start {
    std::uint64_t round = 0;
    Anchor anchor;  // shared, may be held
    Carry carry = Carry::Nothing;
    // Whether the last boundary's payload got into a certificate. If not, a learner with error feedback puts
    // it back (outer::ErrorFeedback::roll_back), and carries no more than what came after the boundary;
    // without, it is lost unless carried.
    bool counted = false;
  };
  virtual void start(Start from) = 0;
  // Since start(), carried work included; cheap.
  virtual TrainedWork progress() const = 0;
  // So many steps has this round for this node beyond H: by so many it was ahead of the others at its last
  // boundary. A member that is ahead once would stay so for ever where rounds overlap, with each anchor that
  // much staler for it, up to a whole round.
  virtual std::uint32_t extra_steps() const { return 0; }
  // A quorum of the others has done its part of this round, too.
  virtual void closed() {}
  // The round's training is over for this node, although it has fewer steps than the round: where there are
  // several learners of one training, so that their rounds don't end all at once, and because none can go on
  // while another has to rest.
  virtual bool ends_early() const { return false; }
  struct Boundary {
    Bytes payload;  // anchor − local, encoded with the profile's codec (and error feedback, if it has that)
    TrainedWork work;  // that is in it
    // What the learner wants to have back after a restart: kept before the payload leaves, and given to
    // recall(). Empty: nothing.
    Bytes memory{};
  };
  // The end of the round's training, as it is: after the step that runs, the delta is made and given, later,
  // once.
  virtual void boundary(AfterBoundary after, std::function<void(Expected<Boundary>)> done) = 0;
  // No certificate in sight: train on from the present weights.
  virtual void go_on() = 0;
  // After a restart, before the first start(): the memory of the last boundary that was kept. Not for damaged
  // ones: what can't be read is as good as nothing. The payload of that boundary may or may not have left.
  virtual void recall(Bytes) {}
};

// Keeps what a restart of a slot's node must not forget, each record replaced as a whole: its votes (some
// KiB, several times a round), its chain of certificates (up to some MiB, once a round), its own
// contribution's payload and what its learner remembers with it (once a round). Should the power go for all
// members at once, after some have locked on a body, the payloads come from here.
class RoundStore {
 public:
  enum class Record : std::uint8_t { Votes, Chain, Payload, Learner };
  virtual ~RoundStore() = default;
  // NotFound: nothing kept yet.
  virtual Expected<Bytes> load(Record record) = 0;
  // `done` once it is on the disk, or with why not; in the order of calls.
  virtual void save(Record record, Bytes bytes, std::function<void(Expected<void>)> done) = 0;
};

// Runs `job` somewhere else, then `done` on the node's executor; in order, and never from within run().
class RoundWork {
 public:
  virtual ~RoundWork() = default;
  virtual void run(std::function<void()> job, std::function<void()> done) = 0;
};

}  // namespace neuroshard::rounds
