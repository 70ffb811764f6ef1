// The training loop's source of batches: ties dataset, batch plan and rotation together.
//
//   NS_ASSIGN_OR_RETURN(auto loader, Loader::create(dataset, options));
//   NS_ASSIGN_OR_RETURN(Batch batch, loader->next(step));    // steps in ascending order
//   loader->report_loss(loss);                               // of that step
//   std::string saved = loader->position().to_json();        // into a checkpoint, between two steps
//
// After restore(position of step s), next(s + 1) gives the same batch as the uninterrupted run.
//
// In a network, begin_round() names each round and its beacon. From the first beacon on, the beacon draws the
// shards (shard_ring.h), a record begins with each round, and the position counts the batches as runs
// (batch_list.h).
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "core/base/cancel.h"
#include "core/base/clock.h"
#include "core/base/executor.h"
#include "core/data/batch_list.h"
#include "core/data/batch_plan.h"
#include "core/data/dataset.h"
#include "core/data/rotation.h"
#include "core/data/shard_ring.h"

namespace neuroshard::data {

// Where training stands in the data; part of a checkpoint.
struct LoaderPosition {
  std::uint64_t round = 0;
  ShardId shard_id = 0;
  std::uint32_t shard_index = 0;   // how often this driver has moved to another shard
  std::uint64_t round_offset = 0;  // tokens used on the shard when the round began: BatchRecord::offset
  std::uint64_t steps_on_shard = 0;
  std::uint64_t tokens_on_shard = 0;
  std::vector<float> recent_losses;  // on this shard, newest last
  bool started = false;              // false: no batch was handed out yet

  // The part of a driver whose shards a beacon draws; none: its shards are in the order of a solo node.
  struct InNetwork {
    std::uint64_t round = 0;  // of the record
    BeaconDraw draw;
    std::uint64_t batches = 0;   // of the record that were handed out
    std::vector<BatchRun> runs;  // the newest max_batch_runs
    bool run_open = false;       // the next batch continues the last run
  };
  std::optional<InNetwork> in_network;

  // One line, sorted keys; equal positions give equal text, and losses come back bit for bit.
  std::string to_json() const;
  // Corrupt, with the field named. Safe on any text.
  static Expected<LoaderPosition> from_json(std::string_view text);
};

struct LoaderOptions {
  Hash256 node_id{};
  // In a network: batches differ from those of any other node with the same shard.
  bool own_batches = false;
  std::uint32_t shard_count = shards_per_draw;  // m: drawn shards of this driver in a network
  std::uint32_t sequence = 256;                 // T
  std::uint32_t batch_tokens = 4096;
  // Steps of one round (H). Without a network there are no outer rounds, and 1 lets a small shard end when it
  // is used up instead of being repeated for a whole round.
  std::uint32_t steps_per_round = 1;
  RotationRule rotation;
  // The most that next() waits for the download of a shard, which goes on beside it. None, or without an io
  // executor: it waits until the shard is here.
  std::optional<Duration> longest_wait;
};

// Threads: one (the training loop).
class Loader {
 public:
  // NotFound when the dataset has no train shard; InvalidArgument when none holds sequence + 1 tokens (says
  // how many tokens there are). `io` may be null: then nothing is fetched ahead. Dataset and io outlive the
  // loader.
  static Expected<std::unique_ptr<Loader>> create(Dataset& dataset, const LoaderOptions& options,
                                                  Executor* io = nullptr);
  virtual ~Loader() = default;

  // The network's round in progress, and its beacon (zeros: not known). An earlier round than the newest is
  // ignored. The next batch begins a new run. While next() waits for a shard, an earlier beacon stays.
  virtual void begin_round(std::uint64_t round, const Hash256& beacon) = 0;
  // The batch of this step. A step of a later round than the last one begins a round: rotation is decided
  // then. Without a network, a round is steps_per_round steps. Blocks while a shard that is not here yet is
  // downloaded, at most for the longest wait. Busy: it is still being downloaded. A download that fails gives
  // its error once, and the next call begins another.
  virtual Expected<Batch> next(std::uint64_t step, const CancelToken& cancel = {}) = 0;
  // The loss of the step that next() gave last; not finite: left out of the plateau rule.
  virtual void report_loss(float loss) = 0;

  virtual LoaderPosition position() const = 0;
  // NotFound when the dataset no longer has that shard, with the remedy. On failure the loader is as it was.
  virtual Expected<void> restore(const LoaderPosition& position) = 0;

  // The record of the present round; empty before the first batch.
  virtual std::optional<BatchRecord> record() const = 0;
  // The last `batches` that next() gave, as runs; the next batch begins a new run. Nothing: not all of them are
  // known, or a cut would lie within a run.
  virtual std::optional<BatchWork> last_batches(std::uint64_t batches) = 0;
  // Why the present shard was taken: Stay for the first.
  virtual RotationReason last_rotation() const = 0;
};

}  // namespace neuroshard::data
