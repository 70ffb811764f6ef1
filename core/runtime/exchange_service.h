// The exchange of files by their hash (core/exchange) of a running node. It serves the cached shards of the
// network's published data and the newest checkpoints, announces them in the hash table (/shards/{i},
// /checkpoints/{id}), and fetches from other nodes what the publisher does not deliver.
//
// Threads: the owner's for construction, stop() and destruction; data::PeerSource's calls on any but the
// host's executor.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "core/base/lifetime.h"
#include "core/data/peer_source.h"
#include "core/exchange/fetch.h"
#include "core/exchange/names.h"
#include "core/exchange/server.h"
#include "core/net/method_table.h"
#include "core/runtime/checkpoint_offers.h"
#include "core/runtime/interpositions.h"
#include "core/runtime/peer_host.h"

namespace neuroshard::runtime {

class ExchangeService final : public data::PeerSource {
 public:
  struct Options {
    std::string checkpoints;  // the folder of checkpoints
    bool one_lan = false;     // a private network: many nodes share one address
    bool serve = true;        // false: only fetches
    Interpositions interpositions;
  };
  // The host outlives it.
  ExchangeService(PeerHost& host, const RuntimeServices& services, Options options);
  ~ExchangeService() override;
  // Ends serving and fetching; calls that wait end with Cancelled. Further calls do nothing.
  void stop();

  // Checkpoints that other nodes are fetching from here.
  std::shared_ptr<const checkpoint::Holds> holds() const { return holds_; }

  // data::PeerSource.
  Expected<std::vector<data::ManifestClaim>> manifests(Duration patience, const CancelToken& cancel) override;
  void refuted(const data::ManifestClaim& claim) override;
  Expected<void> fetch(const data::PeerFile& file, const CancelToken& cancel) override;
  void offer(const data::PeerFile& file) override;
  void withdraw(const Hash256& sha256) override;
  void offer_manifest(const data::ManifestClaim& claim, const std::string& path) override;

 private:
  struct Waiting;  // a call that another thread waits for

  void begin(std::uint64_t number, const data::PeerFile& file, const std::shared_ptr<Waiting>& waiting);
  void find(std::optional<data::ShardId> shard, const Hash256& hash,
            const std::function<void(std::vector<net::Contact>)>& found);
  void ask_for_manifests(const std::shared_ptr<Waiting>& waiting, MonotonicTime until);
  std::vector<data::ManifestClaim> collect_claims(const std::vector<exchange::Claim>& answers);
  void announce();
  void announce_checkpoints(dht::DhtNode& table);
  void on_file_gone(const Hash256& hash);
  void answer(const net::Caller& from, net::Method method, ByteSpan request, const net::Reply& reply);

  PeerHost& host_;
  const RuntimeServices services_;
  const Options options_;
  const std::shared_ptr<checkpoint::Holds> holds_ = std::make_shared<checkpoint::Holds>();
  std::unique_ptr<Executor> disk_;

  // The host's executor.
  std::unique_ptr<exchange::ContentServer> server_;
  std::unique_ptr<CheckpointOffers> checkpoints_;  // null: nothing is served
  std::set<std::string> announced_checkpoints_;
  std::map<std::uint64_t, std::unique_ptr<exchange::ContentFetch>> fetches_;
  std::map<std::uint64_t, std::shared_ptr<Waiting>> waiting_;
  std::uint64_t next_ = 0;
  std::vector<exchange::SharedClaim> claims_;  // of manifests: the last answers
  std::map<data::ShardId, Hash256> shards_;    // offered
  std::set<data::ShardId> announced_;
  std::uint64_t table_ = 0;  // Member::table_number() of the hash table in which they are announced
  std::unique_ptr<TimerHandle> timer_;
  net::MethodTable::Registration methods_;
  bool stopped_ = false;
  Lifetime lifetime_;
};

}  // namespace neuroshard::runtime
