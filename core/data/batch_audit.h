// Rebuilds the batches of another driver and compares them with its signed list (docs/protocol/data.md).
//
// Threads: any.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>

#include "core/base/cancel.h"
#include "core/data/batch_list.h"
#include "core/data/dataset.h"

namespace neuroshard::data {

// The facts about a list that the chain and the network's profile give.
struct ListClaim {
  Hash256 hash{};  // in the contribution
  Hash256 network{};
  crypto::PublicKey node{};
  Hash256 opening{};
  std::uint64_t round = 0;
  std::uint32_t sequence = 0;
  std::uint32_t batch_tokens = 0;
};
// The list with these bytes, if it is the contribution's. Corrupt, and Denied (bad signature, other contribution
// or other batches than the profile's), with the reason.
Expected<BatchList> open_batch_list(ByteSpan bytes, const ListClaim& claim);

enum class BatchFinding : std::uint8_t {
  Same,      // bit for bit
  Differs,   // rebuilt batches have another digest
  NotDrawn,  // the shard is not one that the beacon draws for this driver, or not this shard's content
  OwnText,   // the driver's own text, which no auditor has
  Unknown,   // the beacon of the draw, or the shard, is not at hand
};
std::string_view to_string(BatchFinding finding);  // "same", "differs", "not_drawn", "own_text", "unknown"

struct RunFinding {
  BatchFinding finding = BatchFinding::Same;
  std::string reason;  // empty for Same
};

// The trusted sources of an audit.
struct AuditSources {
  // After the opening block of this round; none: not known.
  std::function<std::optional<Hash256>(std::uint64_t round)> beacon;
  // NotFound: not at hand.
  std::function<Expected<std::shared_ptr<const ShardTokens>>(ShardId)> load;
  const Manifest& manifest;  // the publisher's
};
// Rebuilds all batches of the run. Errors: those of load() other than NotFound, Cancelled.
Expected<RunFinding> audit_run(const BatchList& list, const BatchRun& run, const AuditSources& sources,
                               const CancelToken& cancel);

}  // namespace neuroshard::data
