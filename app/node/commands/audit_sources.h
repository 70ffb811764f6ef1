// The sources of an audit of batches: the contributions on the chain of this disk, their lists and the published text.
//
// Threads: the command's.
#pragma once

#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "app/node/commands/chain_replay.h"
#include "app/node/commands/guest_flags.h"
#include "core/data/batch_audit.h"
#include "core/runtime/guest_visit.h"

namespace neuroshard::app {

struct AuditedContribution {
  std::uint32_t member = 0;
  Hash256 id{};  // node id
  data::ListClaim claim;
};

struct AuditChain {
  std::map<std::uint64_t, Hash256> beacons;        // by round
  std::vector<AuditedContribution> contributions;  // that name a list; by round

  // node: an id, its beginning, a member's number, or empty: all but `own`. NotFound: none, with the reason.
  Expected<std::vector<const AuditedContribution*>> chosen(const std::string& node,
                                                           const std::optional<std::uint64_t>& round,
                                                           const std::optional<Hash256>& own) const;
};
Expected<AuditChain> read_audit_chain(const ChainPlace& place, CommandContext& context);

// Lists: those given, whatever their hash; those of D/batches; and other nodes', which are kept in D/audit.
// Text: the cache of published shards, and other nodes' shards, which are kept in D/audit. A guest of the network
// fetches both.
class AuditFiles {
 public:
  // place, guest and context outlive it. Errors: those of reading the given lists.
  static Expected<std::unique_ptr<AuditFiles>> open(const ChainPlace& place, const GuestFlags& guest,
                                                    const std::vector<std::string>& lists,
                                                    CommandContext& context);
  // The node id of the running node, by what it keeps; none: not known.
  std::optional<Hash256> own() const;
  // Its list is here, or a node may still keep it when `newest` is the chain's newest round.
  bool may_get(const data::ListClaim& claim, std::uint64_t newest) const;
  // Errors: those of open_batch_list and of the guest.
  Expected<data::BatchList> list(const data::ListClaim& claim);
  data::AuditSources sources(const AuditChain& chain);

 private:
  AuditFiles(const ChainPlace& place, const GuestFlags& guest, CommandContext& context);
  Expected<void> read_given(const std::string& path);
  void read_kept(const std::string& folder);
  Expected<void> open_text();
  Expected<void> fetch(const exchange::FetchRequest& request, const std::string& table_path);
  Expected<runtime::GuestVisit*> visit();
  Expected<std::shared_ptr<const data::ShardTokens>> load(data::ShardId shard);

  const ChainPlace& place_;
  CommandContext& context_;
  std::map<std::pair<std::uint64_t, crypto::PublicKey>, Bytes> given_;  // by round and node
  std::map<Hash256, Bytes> kept_;
  std::unique_ptr<data::Dataset> text_;  // the node's cache; null: the node has no published text
  const data::Manifest no_text_;
  const runtime::GuestOptions guest_;
  const runtime::FetchObserver observer_;
  const runtime::RuntimeServices services_;
  const runtime::FetchSession session_;
  std::map<data::ShardId, Error> missing_;  // shards that no node had
  std::optional<Error> no_visit_;
  std::unique_ptr<runtime::GuestVisit> visit_;
};

}  // namespace neuroshard::app
