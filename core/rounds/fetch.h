// Fetches what a certified block names from members that hold it, in pieces (pieces.h), into the spool. A payload
// is checked as a whole, an anchor chunk by chunk against its leaves. A source that sends wrong bytes is not asked
// again.
//
// The time allowed for a piece follows the source's earlier pieces. A line that serves many members takes
// seconds for each piece: a source that has answered gets four times its last piece's time, and a slow one
// gets fewer requests at once. A small piece that does not arrive within a second is requested from another
// source as well.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <vector>

#include "core/base/clock.h"
#include "core/base/executor.h"
#include "core/base/lifetime.h"
#include "core/chain/outbox.h"
#include "core/rounds/pieces.h"
#include "core/rounds/step.h"

namespace neuroshard::rounds {

class RoundWork;

struct FetchOptions {
  Duration allowed = std::chrono::seconds(5);         // besides the time that the bytes take on the line
  Duration most_patience = std::chrono::seconds(60);  // for a piece of a source that has answered before
  std::size_t first_pieces = 1,
              pieces_under_way = 4;  // requests to one source at once: at first, and at most
  Duration fast = std::chrono::seconds(1), slow = std::chrono::seconds(3);  // limits for a piece's time
  std::size_t failures_per_source = 4;                                      // in one fetch
  std::size_t small = 16u << 10;                   // bytes of a piece that is requested twice
  Duration widen_after = std::chrono::seconds(1);  // until the second request
};

class RoundFetcher {
 public:
  using GotPayload = std::function<void(Expected<ByteSourcePtr>)>;
  using GotAnchor = std::function<void(Expected<StepPtr>)>;  // without a report
  // All outlive it.  Threads: the executor's. The destructor ends all fetches without a callback.
  RoundFetcher(net::PeerCaller& caller, chain::Peers& peers, Executor& executor, const Clock& clock,
               Spool& spool, FetchOptions options);
  ~RoundFetcher();
  // Told of each source whose piece is not what its hash says; it is not asked again in that fetch.
  using WrongBytes = std::function<void(const net::NodeId& source, const PieceRequest& request)>;
  void on_wrong_bytes(WrongBytes wrong) { wrong_ = std::move(wrong); }

  // Reads and checks payloads of several pieces on the thread of this work, which outlives it. Without it at once.
  void check_with(RoundWork& work) { work_ = &work; }

  // Anything but an anchor. `bytes`: the expected length; nothing else is accepted. `holds` checks the whole, on any thread.
  // Unavailable: no source gave it. Other errors: those of the spool, which is asked for room when the first piece is
  // here: a source that sends nothing costs no room.
  using Holds = std::function<bool(const ByteSource& payload)>;
  void payload(const PieceRequest& request, std::uint64_t bytes, std::vector<net::NodeId> sources,
               Holds holds, GotPayload done);
  // values, bias: numbers of floats in the row; the momentum has as many as the weights.
  struct Task;
  using Ticket = std::weak_ptr<Task>;
  Ticket anchor(std::uint32_t row, const Hash256& hash, const outer::AnchorIdentity& identity,
                std::uint64_t values, std::uint64_t bias, std::vector<net::NodeId> sources, GotAnchor done);
  // Stops the fetch without a callback. False: it had ended.
  bool abandon(const Ticket& ticket);

  std::uint64_t bytes_received() const { return bytes_received_; }
  // A whole payload is here and is being checked.
  bool checks() const { return checks_ > 0; }
  // The newest anchor's leaves are right, but its header is another one than this node's: another tokenizer, or
  // model version. This node can never hold such an anchor.
  bool other_identity() const { return other_identity_; }
  // The last piece, from request to answer.
  Duration piece_took() const { return piece_took_; }

 private:
  struct Source;
  void ask(const std::shared_ptr<Task>& task);
  // False: no source can take a request now.
  bool ask_piece(const std::shared_ptr<Task>& task, std::uint64_t piece);
  struct Asked {
    std::uint64_t piece = 0;
    std::size_t source = 0;
    MonotonicTime at{};
    std::uint64_t call = 0;
    PieceRequest::What what = PieceRequest::What::Payload;
  };
  void got(const std::shared_ptr<Task>& task, const Asked& asked, Expected<Bytes> answer);
  void widen_later(const std::shared_ptr<Task>& task, const Asked& asked);
  void widen(const std::shared_ptr<Task>& task, const Asked& asked);
  // The piece, in the answer. Nothing: the answer has another one or an error.
  static std::optional<ByteSpan> piece_of(const Task& task, std::uint64_t piece,
                                          const Expected<Bytes>& answer);
  // A piece that is right as far as one can tell.  Errors: those of the spool.
  Expected<void> keep(Task& task, std::uint64_t piece, ByteSpan bytes);
  void got_leaves(const std::shared_ptr<Task>& task, Source& last);
  void got_payload(const std::shared_ptr<Task>& task, Source& last);
  void checked(const std::shared_ptr<Task>& task, Source& last, ByteSourcePtr payload, bool holds);
  void got_anchor(const std::shared_ptr<Task>& task);
  void judge(Task& task, Source& source, MonotonicTime asked, bool good, ErrorCode error);
  void finish(const std::shared_ptr<Task>& task, Source& last);
  void refuse(const std::shared_ptr<Task>& task, Source& source);
  void fail(const std::shared_ptr<Task>& task);
  void end(const std::shared_ptr<Task>& task, Error error);

  net::PeerCaller& caller_;
  chain::Peers& peers_;
  Executor& executor_;
  const Clock& clock_;
  Spool& spool_;
  const FetchOptions options_;
  WrongBytes wrong_;
  RoundWork* work_ = nullptr;
  std::size_t checks_ = 0;  // of the work, under way
  bool other_identity_ = false;
  std::uint64_t bytes_received_ = 0, calls_ = 0;
  std::map<std::uint64_t, std::unique_ptr<TimerHandle>> widenings_;  // by call
  Duration piece_took_{};
  std::size_t bytes_under_way_ = 0;  // of all requests without an answer
  Lifetime lifetime_;
};

}  // namespace neuroshard::rounds
