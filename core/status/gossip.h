// Spreads reports: every few seconds a node asks two others for reports that it lacks, and sends its own
// report along, so that nodes that nobody can dial are heard, too. An answer holds reports that the asking
// node's list lacks: each report crosses a link about once, and a node that was away has all of them after a
// few answers.
//
//   StatusPull   own report's length u16 (0: none) · own report · range: first prefix u64 · last prefix u64 ·
//                count u16 <= 256 · each, ascending: prefix of an id u64 (its first 8 bytes, big-endian) ·
//                made u64
//   answer       count u8 <= 32 · reports, one after the other
//
// The list covers the ids of the range; a node with more than 256 reports asks for another range each time.
// Bounded are: reports in an answer (32), entries of a list (256), kept reports (table.h), reports in an
// answer that were not asked for (the rest of the answer is dropped). net/method_table.h bounds the requests
// of callers.
#pragma once

#include <functional>
#include <memory>
#include <vector>

#include "core/base/executor.h"
#include "core/base/lifetime.h"
#include "core/base/log.h"
#include "core/base/rng.h"
#include "core/net/peer_caller.h"
#include "core/status/summary.h"

namespace neuroshard::status {

inline constexpr std::size_t max_listed = 256;
inline constexpr std::size_t max_pulled = 32;

struct Listed {
  std::uint64_t prefix = 0;
  std::uint64_t made = 0;
  friend bool operator==(const Listed&, const Listed&) = default;
};
struct PullRequest {
  std::optional<StatusReport> own;
  std::uint64_t first = 0, last = ~std::uint64_t{0};
  std::vector<Listed> known;  // ascending, none twice
};
Bytes encode_pull(const PullRequest& request);
// Canonical bytes only.  Corrupt, Unsupported.
Expected<PullRequest> decode_pull(ByteSpan bytes);
Bytes encode_reports(const std::vector<const StatusReport*>& reports);  // max_pulled at most
Expected<std::vector<StatusReport>> decode_reports(ByteSpan bytes);

struct GossipOptions {
  Duration tick = std::chrono::seconds(5);
  std::size_t asked_at_a_time = 2;
  Duration report_period = std::chrono::seconds(30);  // between two own reports
  Duration least_between = std::chrono::seconds(3);   // if a round was certified in between
  Duration patience = std::chrono::seconds(5);
  TableLimits table;
};

struct GossipServices {  // all outlive it
  const crypto::KeyPair& key;
  net::PeerCaller& caller;
  Executor& executor;
  const Clock& clock;
  std::function<std::vector<net::Contact>(std::size_t most)> some;  // others to ask, at random
};

struct GossipCounts {
  std::uint64_t sent = 0, received = 0;  // bytes
  std::uint64_t refused_requests = 0;    // unreadable
};

class StatusGossip {
 public:
  // Threads: the executor's, all members.
  StatusGossip(GossipServices services, const Hash256& network, std::optional<crypto::Delegation> delegation,
               GossipOptions options, std::uint64_t seed);
  ~StatusGossip();
  void start();
  // This node's state; reported to others when it is due.
  void set_own(const OwnStatus& status);
  // The members of the rounds; empty: not known.
  void set_members(std::set<net::NodeId> members) { table_.set_members(std::move(members)); }

  void on_call(const net::Caller& from, ByteSpan request, const net::Respond& respond);

  const StatusTable& table() const { return table_; }
  const GossipCounts& counts() const { return counts_; }

 private:
  void tick();
  void renew_own();
  void pull(const net::Contact& from);
  PullRequest request();
  std::vector<const StatusReport*> wanted(const PullRequest& request) const;

  GossipServices services_;
  const Hash256 network_;
  std::optional<crypto::Delegation> delegation_;
  const GossipOptions options_;
  const net::NodeId self_;
  Rng rng_;
  StatusTable table_;
  std::optional<OwnStatus> own_;
  std::optional<StatusReport> report_;
  MonotonicTime reported_{};
  GossipCounts counts_;
  std::unique_ptr<TimerHandle> timer_;
  Lifetime lifetime_;
};

}  // namespace neuroshard::status
