#include "core/checkpoint/async_writer.h"

#include <chrono>
#include <condition_variable>
#include <mutex>
#include <utility>

#include "core/base/check.h"

namespace neuroshard::checkpoint {
namespace {

// Work that nobody notices needs no pause after it: a small model is saved at once.
constexpr Duration least_worked = std::chrono::milliseconds(5);

}  // namespace

// `busy` hands writer and snapshot from one thread to the other: whoever set it owns both until it is
// cleared. Only the parts of the copy are shared, which the snapshot sees to.
struct AsyncWriter::State {
  State(Writer& w, Executor& e, Callbacks c, Pace p, std::shared_ptr<Spool> spool)
      : writer(w), io(e), callbacks(std::move(c)), pace(std::move(p)), snapshot(std::move(spool)) {}

  // On the io executor.
  void write(Manifest manifest) {
    copy();
    if (pace.share < 1) spent = pace.processor_time();
    // Told first, so that wait() means that the outcome is known. The list of parts stays until the next save:
    // the compute thread may still look at it, in before_update().
    report(write_copy(std::move(manifest)));
    finish();
  }
  Expected<SaveResult> write_copy(Manifest manifest) {
    NS_ASSIGN_OR_RETURN(const TensorView copied, snapshot.view());
    return writer.save(std::move(manifest), copied, [this] { pause(); });
  }
  // False: there is no room for a copy.
  bool begin_copy(const TensorView& live, bool in_memory) {
    if (in_memory && snapshot.begin(live, Snapshot::Where::Memory).ok()) return true;
    snapshot.release();
    return snapshot.has_spool() && snapshot.begin(live, Snapshot::Where::Spool).ok();
  }
  // On either thread, or on both at once.
  void copy() {
    while (snapshot.copy_part()) {
    }
    snapshot.wait_copied();
  }
  // On the io executor, between two pieces: as long as it takes for the work since the last one to have been
  // the share that it may be.
  void pause() {
    if (pace.share >= 1) return;
    const Duration worked = pace.processor_time() - spent;
    if (worked < least_worked) return;  // goes on counting
    const auto rest = std::chrono::duration_cast<Duration>(worked * (1 / pace.share - 1));
    {
      std::unique_lock lock(mutex);
      changed.wait_for(lock, rest, [this] { return hurried; });
    }
    spent = pace.processor_time();
  }
  void hurry() {
    {
      const std::lock_guard lock(mutex);
      hurried = true;
    }
    changed.notify_all();
  }
  void report(const Expected<SaveResult>& result) const {
    if (result.ok())
      callbacks.saved(*result);
    else
      callbacks.failed(result.error());
  }
  void finish() {
    {
      std::lock_guard lock(mutex);
      busy = false;
    }
    changed.notify_all();
  }

  Writer& writer;
  Executor& io;
  const Callbacks callbacks;
  const Pace pace;
  Snapshot snapshot;
  mutable std::mutex mutex;
  std::condition_variable changed;
  bool busy = false;
  bool hurried = false;  // somebody waits for the save in flight
  bool wanted = false;
  Duration spent{0};     // of the io executor: the processor time at the end of the last pause
  bool copying = false;  // of the compute thread: a copy was begun that it has not waited for yet
};

AsyncWriter::AsyncWriter(Writer& writer, Executor& io, Callbacks callbacks, Pace pace,
                         std::shared_ptr<Spool> spool)
    : state_(std::make_shared<State>(writer, io, std::move(callbacks), std::move(pace), std::move(spool))) {
  NS_CHECK(state_->callbacks.saved && state_->callbacks.failed);
  NS_CHECK(state_->pace.share > 0 && (state_->pace.share >= 1 || state_->pace.processor_time));
}

AsyncWriter::~AsyncWriter() {
  wait();
}

Expected<SaveStart> AsyncWriter::save(Manifest manifest, const TensorView& live, bool allow_copy) {
  {
    std::lock_guard lock(state_->mutex);
    if (state_->busy) {
      state_->wanted = true;
      return SaveStart::Deferred;
    }
    state_->wanted = false;
    state_->hurried = false;
    state_->busy = true;
  }
  if (!state_->begin_copy(live, allow_copy)) {
    state_->report(state_->writer.save(std::move(manifest), live));
    state_->finish();
    return SaveStart::Written;
  }
  const auto shared = std::make_shared<Manifest>(std::move(manifest));
  if (!state_->io.post([state = state_, shared] { state->write(std::move(*shared)); })) {
    state_->snapshot.abandon();
    state_->finish();
    return make_error(ErrorCode::Unavailable,
                      "the checkpoint was not written: the disk's queue is full or shutting down");
  }
  state_->copying = true;
  return SaveStart::Started;
}

void AsyncWriter::prepare(std::uint64_t snapshot_bytes) {
  {
    std::lock_guard lock(state_->mutex);
    if (state_->busy) return;
    state_->busy = true;
  }
  const bool posted = state_->io.post([state = state_, snapshot_bytes] {
    // Without room, saves are written while training waits: save() finds out by itself.
    if (state->snapshot.reserve(snapshot_bytes).ok()) state->snapshot.touch();
    state->finish();
  });
  if (!posted) state_->finish();
}

void AsyncWriter::before_update() {
  if (!state_->copying) return;
  state_->copy();
  state_->copying = false;
}

Expected<SaveResult> AsyncWriter::save_now(Manifest manifest, const TensorView& live) {
  wait();
  state_->copying = false;
  {
    std::lock_guard lock(state_->mutex);
    state_->wanted = false;
    state_->busy = true;
  }
  Expected<SaveResult> result = state_->writer.save(std::move(manifest), live);
  state_->report(result);
  state_->finish();
  return result;
}

void AsyncWriter::hurry() {
  state_->hurry();
}

bool AsyncWriter::in_flight() const {
  std::lock_guard lock(state_->mutex);
  return state_->busy;
}

bool AsyncWriter::wanted() const {
  std::lock_guard lock(state_->mutex);
  return state_->wanted;
}

void AsyncWriter::wait() {
  state_->hurry();
  std::unique_lock lock(state_->mutex);
  state_->changed.wait(lock, [this] { return !state_->busy; });
}

std::uint64_t AsyncWriter::snapshot_bytes() const {
  return state_->snapshot.capacity_bytes();
}

}  // namespace neuroshard::checkpoint
