#include "core/data/batch_audit.h"

#include <fmt/format.h>

#include <algorithm>

#include "core/crypto/hash.h"

namespace neuroshard::data {
namespace {

// Nothing: the beacon draws this shard for the driver.
std::optional<RunFinding> check_draw(const BatchList& list, const BatchRun& run, const Hash256& driver,
                                     const AuditSources& sources) {
  const auto beacon = sources.beacon(run.draw.round);
  if (!beacon)
    return RunFinding{BatchFinding::Unknown,
                      fmt::format("the chain on this disk has no beacon of round {}", run.draw.round)};
  const auto published = published_shards(sources.manifest.of(Split::Train), list.work.sequence);
  if (run.draw.total == 0 || run.draw.total > published.size())
    return RunFinding{BatchFinding::Unknown,
                      fmt::format("it was drawn from {} shards; the manifest here has {}", run.draw.total,
                                  published.size())};
  for (const std::uint32_t at : network_shard_order(*beacon, driver, run.draw.total, shards_per_draw)) {
    if (published[at].id != run.shard_id) continue;
    if (published[at].sha256 == run.shard_hash) return std::nullopt;
    return RunFinding{BatchFinding::NotDrawn,
                      fmt::format("the publisher's shard {} has another hash", run.shard_id)};
  }
  return RunFinding{
      BatchFinding::NotDrawn,
      fmt::format("the beacon of round {} does not draw shard {} for it", run.draw.round, run.shard_id)};
}

Error denied(const char* what) {
  return make_error(ErrorCode::Denied, what);
}

}  // namespace

std::string_view to_string(BatchFinding finding) {
  switch (finding) {
    case BatchFinding::Same: return "same";
    case BatchFinding::Differs: return "differs";
    case BatchFinding::NotDrawn: return "not_drawn";
    case BatchFinding::OwnText: return "own_text";
    case BatchFinding::Unknown: break;
  }
  return "unknown";
}

Expected<BatchList> open_batch_list(ByteSpan bytes, const ListClaim& claim) {
  if (crypto::sha256(bytes) != claim.hash)
    return denied("the list is not the one that the contribution names");
  NS_ASSIGN_OR_RETURN(BatchList list, decode_batch_list(bytes));
  if (list.node != claim.node || list.network != claim.network || !batch_list_holds(list))
    return denied("the list is not signed by the contributor");
  if (list.opening != claim.opening || list.round != claim.round)
    return denied("the list is of another contribution");
  if (list.work.sequence != claim.sequence || list.work.batch_tokens != claim.batch_tokens)
    return denied("the list has batches of another size than the network's");
  return list;
}

Expected<RunFinding> audit_run(const BatchList& list, const BatchRun& run, const AuditSources& sources,
                               const CancelToken& cancel) {
  if (is_own_shard(run.shard_id))
    return RunFinding{BatchFinding::OwnText, "the shard is the driver's own text, which no other node has"};
  if (list.work.tokenizer_hash != sources.manifest.tokenizer_hash)
    return RunFinding{BatchFinding::Unknown, "the driver had another tokenizer than the manifest here"};
  const Hash256 driver = crypto::node_id(list.node);
  if (auto finding = check_draw(list, run, driver, sources)) return *finding;
  const auto shard = sources.load(run.shard_id);
  if (!shard.ok() && shard.error().code == ErrorCode::NotFound)
    return RunFinding{BatchFinding::Unknown, shard.error().message};
  if (!shard.ok()) return shard.error();
  const BatchRecord record = list.work.record(run, driver);
  Hash256 digest{};
  for (std::uint64_t i = 0; i < run.count; ++i) {
    if (cancel.cancelled()) return make_error(ErrorCode::Cancelled, "stopped before the end");
    NS_ASSIGN_OR_RETURN(const Batch batch,
                        make_batch(record, run.first + i, (*shard)->tokens, list.work.sequence));
    digest = next_digest(digest, batch);
  }
  if (digest == run.digest) return RunFinding{};
  return RunFinding{BatchFinding::Differs,
                    fmt::format("batches {} to {} of its record are other tokens than the driver says",
                                run.first, run.first + run.count - 1)};
}

}  // namespace neuroshard::data
