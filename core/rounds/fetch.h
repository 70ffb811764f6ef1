// Fetching what a certificate names from whoever holds it, in pieces, each checked before it counts: payloads
// by their hash, and anchors by the leaves of theirs. Sources take turns; one that sends rubbish is not asked
// again.
//
// How long a piece may take follows what its source has shown (NETWORK: no-progress time-outs). A line that
// many ask at once needs seconds for each piece, and is no worse for that: who has given something gets four
// times what its last piece took, and fewer pieces are asked of a slow one at once, since more would only
// wait. Silence is known as such only after seconds: what is small is asked of another source before, so that
// lost messages cost a second each and not five.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <vector>

#include "core/base/clock.h"
#include "core/base/executor.h"
#include "core/rounds/outbox.h"
#include "core/rounds/step.h"

namespace neuroshard::rounds {

struct FetchOptions {
  net::Method method = net::Method::RoundFetch;
  Duration allowed = std::chrono::seconds(5);          // for thinking and the way; bytes have their own time
  Duration most_patience = std::chrono::seconds(60);   // with a piece of a source that has given others
  std::size_t first_pieces = 1, pieces_under_way = 4;  // of one source at once: at first, and of a fast one
  Duration fast = std::chrono::seconds(1), slow = std::chrono::seconds(3);  // of a piece
  std::size_t failures_per_source = 4;                                      // of a whole fetch
  std::size_t small = 16u << 10;                   // bytes of a piece that another source is asked for, too,
  Duration widen_after = std::chrono::seconds(1);  // when nothing has come for so long
};

class RoundFetcher {
 public:
  using GotBytes = std::function<void(Expected<Bytes>)>;
  using GotAnchor = std::function<void(Expected<std::shared_ptr<OuterState>>)>;
  // All outlive it.  Threads: the executor's. What is under way when it is destroyed calls nobody back.
  RoundFetcher(net::PeerCaller& caller, RoundPeers& peers, Executor& executor, const Clock& clock,
               FetchOptions options);
  ~RoundFetcher();

  // `bytes`: how many they are; nothing else is taken. Unavailable: no source gave it.
  void payload(const RoundSlot& slot, const Hash256& hash, std::uint64_t bytes,
               std::vector<net::NodeId> sources, GotBytes done);
  // The same, where the hash is not the SHA-256 of the bytes: `holds` says whether they are what was asked for.
  using Holds = std::function<bool(ByteSpan bytes)>;
  void checked(const FetchRequest& request, std::uint64_t bytes, std::vector<net::NodeId> sources,
               Holds holds, GotBytes done);
  // The signed contribution that a payload's hash belongs to.
  void contribution(const RoundSlot& slot, const Hash256& payload, std::vector<net::NodeId> sources,
                    GotBytes done);
  // values, bias: how many floats the slot has; the momentum has as many as the weights.
  struct Task;
  using Ticket = std::weak_ptr<Task>;
  Ticket anchor(const RoundSlot& slot, const Hash256& hash, const outer::AnchorIdentity& identity,
                std::uint64_t values, std::uint64_t bias, std::vector<net::NodeId> sources, GotAnchor done);
  // Asks for no more of it, and calls nobody back. False: it is over.
  bool abandon(const Ticket& ticket);

  // Bytes that have yet to come; 0: it is over.
  std::uint64_t missing(const Ticket& ticket) const;

  std::uint64_t bytes_received() const { return bytes_received_; }
  // From its question to its end, the last piece that came.
  Duration piece_took() const { return piece_took_; }

 private:
  struct Source;
  void ask(const std::shared_ptr<Task>& task);
  // False: no source is left that could be asked.
  bool ask_piece(const std::shared_ptr<Task>& task, std::uint64_t piece);
  struct Asked {
    std::uint64_t piece = 0;
    std::size_t source = 0;
    MonotonicTime at{};
    std::uint64_t call = 0;
    FetchRequest::What what = FetchRequest::What::Payload;
  };
  void got(const std::shared_ptr<Task>& task, const Asked& asked, Expected<Bytes> answer);
  void widen_later(const std::shared_ptr<Task>& task, const Asked& asked);
  void widen(const std::shared_ptr<Task>& task, const Asked& asked);
  bool take_piece(Task& task, std::uint64_t piece, const Expected<Bytes>& answer);
  void judge(Task& task, Source& source, MonotonicTime asked, bool good, ErrorCode error);
  void finish(const std::shared_ptr<Task>& task, Source& last);
  void refuse(const std::shared_ptr<Task>& task, Source& source);
  void fail(const std::shared_ptr<Task>& task);

  net::PeerCaller& caller_;
  RoundPeers& peers_;
  Executor& executor_;
  const Clock& clock_;
  const FetchOptions options_;
  std::uint64_t bytes_received_ = 0, calls_ = 0;
  std::map<std::uint64_t, std::unique_ptr<TimerHandle>> widenings_;  // by call
  Duration piece_took_{};
  std::size_t bytes_under_way_ = 0;  // asked for, and neither here nor given up
  std::shared_ptr<bool> alive_ = std::make_shared<bool>(true);
};

}  // namespace neuroshard::rounds
