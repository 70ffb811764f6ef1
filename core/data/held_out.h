// Deterministic evaluation batches over the held-out shards: consecutive, non-overlapping windows, so that
// every evaluation of a run sees the same text and losses compare.
#pragma once

#include <cstdint>
#include <future>
#include <vector>

#include "core/base/cancel.h"
#include "core/base/executor.h"
#include "core/data/batch_plan.h"
#include "core/data/dataset.h"

namespace neuroshard::data {

class HeldOut {
 public:
  // max_tokens 0: all held-out text; else about that many tokens in windows spaced evenly over all of it.
  // The window is `sequence` tokens, or shorter when no held-out shard has sequence + 1 tokens.
  // NotFound when the dataset holds out nothing: then there is no validation loss. The dataset outlives this.
  static Expected<HeldOut> create(Dataset& dataset, std::uint32_t sequence, std::uint64_t max_tokens);

  std::uint32_t sequence() const { return sequence_; }
  std::size_t windows() const { return windows_.size(); }
  // Target tokens in all windows.
  std::uint64_t tokens() const { return std::uint64_t{sequence_} * windows_.size(); }
  // That the windows lie in, ascending, each once.
  std::vector<ShardId> shards() const;

  struct Part {
    Batch batch;
    // Bytes of text that the targets stand for (separators count none):
    //   bits per byte = Σ loss in nats over all targets / (ln 2 · Σ target_bytes)
    std::uint64_t target_bytes = 0;
  };
  // Windows first … first + count − 1, at most what is left; InvalidArgument when first ≥ windows().
  Expected<Part> part(std::size_t first, std::size_t count, const CancelToken& cancel = {}) const;

 private:
  struct Window {
    ShardId shard = 0;
    std::uint64_t start = 0;
  };
  HeldOut() = default;

  Dataset* dataset_ = nullptr;
  std::uint32_t sequence_ = 0;
  std::vector<Window> windows_;
};

// Has missing shards of held-out text fetched by an io executor, so that no evaluation waits for a download.
// Threads: one; the fetches run on the executor.
class HeldOutFetch {
 public:
  // Both outlive it. The executor serves nobody else who must not wait.
  HeldOutFetch(Dataset& dataset, Executor& io) : dataset_(dataset), io_(io) {}
  ~HeldOutFetch() { cancel_.cancel(); }
  HeldOutFetch(const HeldOutFetch&) = delete;
  HeldOutFetch& operator=(const HeldOutFetch&) = delete;

  // Success: all shards of the text are here. Never waits. Busy: they are being fetched; ask again later. A
  // fetch that fails gives its error once, and another one begins. Unsupported: the shards have no room on the
  // disk together; they are not fetched again.
  Expected<void> get(const HeldOut& text);

 private:
  bool begin(std::vector<ShardId> shards);

  Dataset& dataset_;
  Executor& io_;
  CancelSource cancel_;
  std::future<Expected<void>> result_;  // of the fetch under way
  Expected<void> last_;                 // of the one before, until get() returned it
};

}  // namespace neuroshard::data
