// The files of a node of the chain in D/chain/: the log of blocks (block_log.h), the records `votes`, `local`,
// `evidence`, `snapshot` and `resume`, each replaced as a whole, and `row-N`, the outer state of a row's newest
// anchor (state_file.h). Where rows can be taken back, `row-N.1` is the state before it, and so on.
//
// All writes happen in order on one disk thread. A block waits until release(), until votes are saved, or
// until `most_held` wait: so the states that a block names are on the disk before it, and a block before any
// vote on the next. After a power cut the log names no state that this node computed and no longer has.
//
// Threads: the node's executor, also for construction and destruction; the destructor waits until every
// requested write is done. Callbacks come on the node's executor, in the order of calls of one kind.
#pragma once

#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <string>

#include "core/base/executor.h"
#include "core/base/lifetime.h"
#include "core/base/log.h"
#include "core/chain/store.h"
#include "core/engine/block_log.h"
#include "core/engine/state_file.h"
#include "core/net/mailbox.h"

namespace neuroshard::engine {

// Where the states of rows are.  Threads: any.
struct RowFiles {
  storage::FileEnv& files;
  std::string folder;
  std::size_t earlier = 0;  // so many states of a row stay besides the newest

  // age: 0 = the newest state, 1 = the one before it.
  std::string path(std::uint32_t row, std::size_t age) const;
  // While nothing writes there.  NotFound, Corrupt: as read_state_file().
  Expected<StateFile> load(std::uint32_t row, std::size_t age, std::uint64_t values,
                           std::uint64_t bias) const;
};

class ChainFiles final : public chain::ChainStore {
 public:
  // folder: created if missing. earlier: as in RowFiles. All outlive the object.
  static Expected<std::unique_ptr<ChainFiles>> open(storage::FileEnv& files, std::string folder,
                                                    std::size_t earlier, Logger& logger, Executor& node);
  ~ChainFiles() override;

  // ---- ChainStore
  Expected<Bytes> load(Record record) override;
  void save(Record record, Bytes bytes, std::function<void(Expected<void>)> done) override;
  std::uint64_t first_block() const override { return first_; }
  std::uint64_t block_count() const override { return count_; }
  Expected<Bytes> load_block(std::uint64_t height) override;
  Expected<Bytes> load_beginning(std::uint64_t height, std::size_t most) override;
  void append_block(std::uint64_t height, chain::BlockBytes block,
                    std::function<void(Expected<void>)> done) override;
  void begin_log(std::uint64_t first_height, std::function<void(Expected<void>)> done) override;
  void drop_last(std::function<void(Expected<void>)> done) override;

  // The states that the blocks so far name were given to save_row(), or this node does not compute them.
  void release();
  // To load the states before the node starts. They may be read for minutes, and this object may end meanwhile.
  const RowFiles& rows() const { return rows_; }
  // When more than two states of a row wait for a slow disk, the newest takes the place of the one before it.
  void save_row(std::uint32_t row, std::uint64_t round, rounds::Anchor state);
  // This node does not hold the row any more: its states leave the disk.
  void forget_row(std::uint32_t row);

 private:
  using Done = std::function<void(Expected<void>)>;
  struct Block {
    std::uint64_t height = 0;
    chain::BlockBytes bytes;
    Done done;
  };
  ChainFiles(storage::FileEnv& files, std::string folder, std::size_t earlier, Logger& logger,
             Executor& node);
  std::string path(Record record) const;
  void on_disk(std::function<Expected<void>()> write, Done done);
  void tell(Done done, Expected<void> result);
  void written(std::uint64_t height, const chain::BlockBytes& bytes);
  // ---- The disk thread.
  Expected<void> write_blocks(const std::vector<Block>& blocks);
  Expected<void> write_row(std::uint32_t row);

  storage::FileEnv& files_;
  const std::string folder_;
  const RowFiles rows_;
  Logger& logger_;
  const std::shared_ptr<net::Mailbox> node_;  // votes wait for the callback, so it must arrive
  // The node's executor.
  std::uint64_t first_ = 0, count_ = 0;
  std::vector<Block> held_;                                       // not given to the disk yet
  std::map<std::uint64_t, std::shared_ptr<const Bytes>> memory_;  // by height: not known to be on the disk
  std::uint64_t logs_ = 0;                                        // logs begun by this object
  Lifetime lifetime_;
  // With the lock, which the disk thread has while it writes a block.
  std::mutex log_mutex_;
  std::unique_ptr<BlockLog> log_;
  std::uint64_t logs_on_disk_ = 0;
  // With the lock, which nobody has for long.
  std::mutex states_mutex_;
  std::map<std::uint32_t, std::deque<StateFile>> states_;  // that wait, by row
  // The disk thread.
  std::deque<Block> failed_;        // written with the next block; memory_ has their bytes
  std::unique_ptr<Executor> disk_;  // last: it is joined first
};

}  // namespace neuroshard::engine
