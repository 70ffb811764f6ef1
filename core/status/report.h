// A node's report of its part in the training, signed by its key and passed on by others
// (docs/protocol/status-reports.md). Only the sender is proven, so readers take medians (summary.h). It
// carries the wallet's delegation to the node, so that all nodes of one wallet count as one.
//
//   offset  size  content, little-endian
//   0       4     "NSSR"
//   4       2     version, 1
//   6       2     length of the whole report: 212, or 396 with a delegation
//   8       32    node key
//   40      8     made, milliseconds since 1970 UTC; of two reports of a node the later one counts
//   48      8     round of the anchor that it holds; 0 = none certified yet
//   56      32    that anchor's hash as the node computed it; zeros = none
//   88      32    of the round before; zeros = none
//   120     8     inner steps that it has trained in total, below 2^63; bit 63: it trains now
//   128     4     training loss of its newest steps, micronats per token; 0 = unknown or not of this round or
//                 the one before (OwnLoss in network_loss.h)
//   132     4     tokens per second
//   136     4     contributions that counted, since its start
//   140     2     of its latest rounds (at most 32): contributions that counted
//   142     2     of the same rounds: those that did not count, or had no quorum in reach
//   144     4     data shard that it reads; 2^32 - 1 = none
//   148     184   the delegation, if any
//           64    signature by the node key, purpose StatusReport, over all before it
#pragma once

#include <cstdint>
#include <optional>

#include "core/base/bytes.h"
#include "core/base/clock.h"
#include "core/base/expected.h"
#include "core/crypto/delegation.h"
#include "core/crypto/keys.h"
#include "core/net/node_id.h"

namespace neuroshard::status {

inline constexpr std::size_t plain_report_bytes = 148 + 64;
inline constexpr std::size_t max_report_bytes = plain_report_bytes + crypto::delegation_bytes;
inline constexpr std::uint16_t rounds_remembered = 32;
// How long a report counts.
inline constexpr auto report_life = std::chrono::seconds(300);
inline constexpr auto clock_skew = std::chrono::seconds(60);

// A node's knowledge of itself.
struct OwnStatus {
  std::uint64_t round = 0;
  Hash256 anchor{};           // of that round; zeros: none
  Hash256 previous_anchor{};  // of the round before
  bool training = false;
  std::uint64_t steps = 0;
  std::optional<double> loss;  // nats per token; see OwnLoss
  std::uint32_t tokens_per_second = 0;
  std::uint32_t contributed = 0;
  std::uint16_t synced = 0, missed = 0;  // together at most rounds_remembered
  std::optional<std::uint32_t> shard;
};

struct StatusReport {
  crypto::PublicKey key{};
  WallTime made{};
  OwnStatus status;
  std::optional<crypto::Delegation> delegation;
  crypto::Signature signature{};

  net::NodeId id() const { return crypto::node_id(key); }
};

// Rounds the loss to the format's precision, and signs.
StatusReport sign_report(const OwnStatus& status, WallTime made,
                         const std::optional<crypto::Delegation>& delegation, const crypto::KeyPair& node,
                         const Hash256& network);
Bytes encode_report(const StatusReport& report);
// Any bytes are safe; only canonical ones are accepted. The report's own signature is not checked.  Corrupt,
// Unsupported.
Expected<StatusReport> decode_report(ByteSpan bytes);
// The report's length, from its first 8 bytes; Corrupt: not a report.
Expected<std::size_t> report_length(ByteSpan bytes);
// Whether a delegation, if there is one, has not expired.
bool delegation_lasts(const std::optional<crypto::Delegation>& delegation, WallTime now);
// Whether readers may use it now: signature, network, age (made ≤ now + 60 s, not older than report_life),
// and the delegation, if there is one.  Denied: the message names the check that failed; Timeout: it is too
// old, or only the delegation's date has passed.
Expected<void> check_report(const StatusReport& report, const Hash256& network, WallTime now);

}  // namespace neuroshard::status
