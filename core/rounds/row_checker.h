// Checks an attested result of a row that this node does not hold: fetches the Merkle leaves of all that the step was made of,
// then chunk by chunk the parts that the chunk follows from, and judges each (row_proof.h). It holds one chunk at a time and
// keeps nothing.
//
// All services outlive it. Threads: the executor's; chunks are judged in RoundWork.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <vector>

#include "core/base/lifetime.h"
#include "core/crypto/merkle.h"
#include "core/rounds/fetch.h"
#include "core/rounds/learner.h"
#include "core/rounds/row_proof.h"

namespace neuroshard::rounds {

// Of the row and the round whose result is checked.
struct RowCase {
  chain::OpenRow open;
  ProofRow row;
  chain::RowResult attested;
  std::vector<ProofContributor> contributors;  // without slices
  std::vector<net::NodeId> attesters;          // of this result: they have its trace and its anchor
  std::vector<net::NodeId> holders;            // have payloads and the anchor before
  std::vector<std::uint64_t> chunks;           // to be checked; empty: all
};

enum class CheckOutcome : std::uint8_t { Right, Wrong, Unavailable };

class RowChecker {
 public:
  struct Services {
    RoundFetcher& fetcher;
    net::PeerCaller& caller;
    chain::Peers& peers;
    Executor& executor;
    RoundWork& work;
  };
  // proof: of a wrong result.
  using Done = std::function<void(CheckOutcome, std::shared_ptr<const RowProof> proof)>;
  RowChecker(Services services, OuterRules rules, Duration allowed);

  // One at a time: !is_busy(). `done` later, once; not at all when this object ends before.
  void check(RowCase about, Done done);
  bool is_busy() const { return task_ != nullptr; }
  // Pieces that the fetcher has not counted.
  std::uint64_t bytes_received() const { return bytes_received_; }

 private:
  struct Task;
  using TaskPtr = std::shared_ptr<Task>;
  using Holds = std::function<bool(ByteSpan)>;
  // A Merkle tree's leaves, from any of these.
  void fetch_leaves(PieceRequest::What what, const Hash256& root, std::uint64_t count,
                    const std::vector<net::NodeId>& from, std::shared_ptr<const crypto::MerkleTree>* tree);
  // One piece, from one source after the other.
  void fetch_piece(const PieceRequest& request, const std::vector<net::NodeId>& from, std::size_t first,
                   Holds holds);
  // A source that gets too many requests at once is asked again a little later.
  void fetch_later(std::function<void()> fetch);
  void fetch_slices(std::size_t contributor);
  void arrived();
  void next_chunk();
  void judge_chunk();
  void end(CheckOutcome outcome);
  bool is_current(const TaskPtr& task) const { return task_ == task; }

  Services services_;
  const OuterRules rules_;
  const Duration allowed_;  // for one piece of one source
  TaskPtr task_;
  std::uint64_t bytes_received_ = 0;
  std::vector<std::unique_ptr<TimerHandle>> pauses_;  // of the chunk
  Lifetime lifetime_;
};

}  // namespace neuroshard::rounds
