// The files of outer rounds in D/rounds/: `votes`, `chain`, `payload` and `learner` (rounds/learner.h), and
// `state`, the outer state of the newest certified round that this node held, with that round's certificate
// in the chain's form (rounds/link.h).
//
//   state: "NSRSTATE" · round u64 · weights u64 · bias u64 · bytes of the certificate u64 · weights,
//   momentum,
//          bias fp32 little-endian · certificate · SHA-256 of all before
//
// Each file is replaced as a whole, in the order of calls: after a kill the old or the new one is there,
// never a part, and never votes of a round whose state is not saved yet.
#pragma once

#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "core/base/executor.h"
#include "core/base/log.h"
#include "core/net/mailbox.h"
#include "core/rounds/participant.h"
#include "core/storage/file_env.h"

namespace neuroshard::engine {

class RoundFiles final : public rounds::RoundStore {
 public:
  // folder: created if missing. node: the executor on which save() calls back. All outlive the object; its
  // destructor waits until every requested write is done.
  static Expected<std::unique_ptr<RoundFiles>> open(storage::FileEnv& files, std::string folder,
                                                    Logger& logger, Executor& node);
  ~RoundFiles() override;

  // RoundStore.  Threads: the node's executor.
  Expected<Bytes> load(Record record) override;
  void save(Record record, Bytes bytes, std::function<void(Expected<void>)> done) override;

  // Before the node starts.  NotFound: none yet. Corrupt: damaged, or of another model; the node then fetches
  // the state.
  Expected<rounds::KnownState> load_state(std::uint64_t values, std::uint64_t bias);
  // Writes in the background. When several states wait for a slow disk, the newest is written in the oldest's
  // turn.
  void save_state(rounds::RoundLink certificate, rounds::Anchor state);

 private:
  RoundFiles(storage::FileEnv& files, std::string folder, Logger& logger, Executor& node);
  std::string path(Record record) const;
  void write(const std::string& to, const Bytes& bytes, const std::function<void(Expected<void>)>& done);
  std::string state_path() const { return folder_ + "/state"; }
  Expected<void> write_state(const rounds::KnownState& known);

  storage::FileEnv& files_;
  const std::string folder_;
  Logger& logger_;
  const std::shared_ptr<net::Mailbox> node_;  // votes wait for the callback, so it must arrive
  std::mutex mutex_;
  std::optional<rounds::KnownState> waiting_;  // to be written; with the lock
  std::unique_ptr<Executor> disk_;             // last: it is joined first
};

// Runs the computations of a round's node on a thread of its own.
class RoundThread final : public rounds::RoundWork {
 public:
  explicit RoundThread(Executor& node);  // outlives it
  void run(std::function<void()> job, std::function<void()> done) override;

 private:
  const std::shared_ptr<net::Mailbox> node_;
  std::unique_ptr<Executor> thread_;
};

}  // namespace neuroshard::engine
