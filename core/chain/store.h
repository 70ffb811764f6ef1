// A node's memory of the chain over a restart. The engine implements it with files of the data directory,
// the simulator with memory on virtual time. Threads: the executor's; `done` in the order of calls.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>

#include "core/base/bytes.h"
#include "core/base/expected.h"

namespace neuroshard::chain {

// A certified block as it is stored and sent. Immutable, shared.
using BlockBytes = std::shared_ptr<const Bytes>;

class ChainStore {
 public:
  // Each record is replaced as a whole.
  enum class Record : std::uint8_t {
    Votes,     // AgreementMemory: before each vote; some KiB
    Local,     // beacon seed, boot counter, away, vouchers given: seldom
    Evidence,  // equivocation that no block has yet
    Snapshot,  // when the log does not begin at the genesis: its hash, and the registry after the first block
    Resume,    // the state after a recent block, from which a start goes on (resume.h)
  };
  virtual ~ChainStore() = default;
  // NotFound: nothing kept yet.
  virtual Expected<Bytes> load(Record record) = 0;
  virtual void save(Record record, Bytes bytes, std::function<void(Expected<void>)> done) = 0;

  // The log of certified blocks, append-only; heights are consecutive.
  virtual std::uint64_t first_block() const = 0;
  virtual std::uint64_t block_count() const = 0;
  virtual Expected<Bytes> load_block(std::uint64_t height) = 0;
  // Its first `most` bytes. A store may read no more of it, and so not see that the rest is damaged.
  virtual Expected<Bytes> load_beginning(std::uint64_t height, std::size_t most) {
    NS_ASSIGN_OR_RETURN(Bytes block, load_block(height));
    if (block.size() > most) block.resize(most);
    return block;
  }
  virtual void append_block(std::uint64_t height, BlockBytes block,
                            std::function<void(Expected<void>)> done) = 0;
  // Begins a new log; the old one is kept under another name until a person deletes it.
  virtual void begin_log(std::uint64_t first_height, std::function<void(Expected<void>)> done) = 0;
  // Cuts the newest block off: a succession that a certified block replaces.
  virtual void drop_last(std::function<void(Expected<void>)> done) = 0;
};

}  // namespace neuroshard::chain
