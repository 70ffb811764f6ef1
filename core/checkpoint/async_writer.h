// Saves while training goes on. Between two optimizer steps the tensors do not change, so the io executor
// copies them while the next step's passes run, and writes the copy afterwards; only the optimizer has to ask
// first (before_update()), and then helps with what is left to copy. At most one save is in flight; a request
// meanwhile is remembered, not queued, so the newest state wins and memory stays at one copy.
//
// Writing gives way to the training by pausing, not by a low priority of its thread: on a machine that other
// programs fill, a thread of idle priority may be held for seconds while training waits for its part of the
// copy, or while it holds a lock inside the file system. And not every system lets a thread return from
// there.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>

#include "core/base/clock.h"
#include "core/base/executor.h"
#include "core/base/expected.h"
#include "core/checkpoint/writer.h"

namespace neuroshard::checkpoint {

enum class SaveStart {
  Started,   // the tensors may change after before_update(); the outcome comes through the callback
  Deferred,  // one is in flight; call again at a later step with the state of then (wanted() is true until
             // then)
  Written,   // no copy could be made: it is on the disk already, and the callback was called
};

// How much of one processor hashing and writing take while nobody waits for them.
struct Pace {
  double share = 1;                          // in (0, 1]; 1: without pauses
  std::function<Duration()> processor_time;  // of the calling thread; must be set for less than 1
};

// Threads: save(), save_now(), before_update() and wait() from one thread (compute); callbacks come on the io
// executor, or on the caller's thread for Written and save_now().
class AsyncWriter {
 public:
  // saved or failed is called once for each save that was started; both must be set and only enqueue. A
  // failure (disk full, read-only) is reported and training goes on; the next save tries again.
  struct Callbacks {
    std::function<void(const SaveResult&)> saved;
    std::function<void(const Error&)> failed;
  };

  // writer and io outlive this object.
  // spool: for copies that get no memory; null: without such copies.
  AsyncWriter(Writer& writer, Executor& io, Callbacks callbacks, Pace pace = {},
              std::shared_ptr<Spool> spool = nullptr);
  // Waits for a save in flight: the executor must still be running.
  ~AsyncWriter();

  // Makes room for the copy in advance, on the executor and resident, so that the first save costs what later
  // ones cost. Until then a save is deferred. Does nothing when the executor takes no work or memory is
  // short.
  void prepare(std::uint64_t snapshot_bytes);

  // The floats of live must stay where and as they are until before_update(), wait() or the destructor has
  // returned; its extras only for the call. allow_copy: the memory plan has room for snapshot_bytes(); else
  // the copy is in the spool. Without a spool, or when it has no room, the live buffers are written, slot by
  // slot, before this returns. Errors: Unavailable when the executor
  // takes no work; others only reach the callback.
  Expected<SaveStart> save(Manifest manifest, const TensorView& live, bool allow_copy);
  // Waits for a save in flight, then writes the live buffers before it returns: clean stop, outer sync.
  Expected<SaveResult> save_now(Manifest manifest, const TensorView& live);

  // To be called before the live tensors change: when it returns, the save in flight, if any, has its copy.
  // Copies what is left of it at memory speed; usually nothing.
  void before_update();

  // The save in flight, if any, is written without further pauses.
  void hurry();
  bool in_flight() const;
  // A request was deferred since the last save started.
  bool wanted() const;
  // Until nothing is in flight, which it hurries. With a manual executor: run it first, or this never
  // returns.
  void wait();
  // Of the copy that is kept between saves; part of the memory plan.
  std::uint64_t snapshot_bytes() const;

 private:
  struct State;
  std::shared_ptr<State> state_;
};

}  // namespace neuroshard::checkpoint
