// What `run` does about files by their hash (core/exchange): serves what is cached of the network's published
// data and its newest checkpoints, says so in the hash table (/shards/{i}, /checkpoints/{id}), and gets from
// others what the publisher does not give.
#pragma once

#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "app/node/checkpoint_offers.h"
#include "app/node/command.h"
#include "app/node/peer_host.h"
#include "core/data/peer_source.h"
#include "core/exchange/fetch.h"
#include "core/exchange/names.h"
#include "core/exchange/server.h"
#include "core/net/method_table.h"

namespace neuroshard::app {

class ExchangePart final : public data::PeerSource {
 public:
  struct Options {
    std::string checkpoints;  // the folder of them
    bool one_lan = false;
    bool serve = true;  // false: only gets what others have
    // What others are answered in place of what is there (CommandContext::other_content); null: just that.
    std::function<Expected<Bytes>(net::Method, Expected<Bytes>)> other_content;
  };
  // All outlive it.
  ExchangePart(PeerHost& host, Logger& logger, storage::FileEnv& files, Options options);
  ~ExchangePart() override;
  // Nothing is served or fetched any more; calls that wait end with Cancelled. Once is enough.
  void stop();

  // Checkpoints that others fetch from here.
  std::shared_ptr<const checkpoint::Holds> holds() const { return holds_; }

  // data::PeerSource.
  Expected<std::vector<data::ManifestClaim>> manifests(Duration patience, const CancelToken& cancel) override;
  void refuted(const data::ManifestClaim& claim) override;
  Expected<void> fetch(const data::PeerFile& file, const CancelToken& cancel) override;
  void offer(const data::PeerFile& file) override;
  void offer_manifest(const data::ManifestClaim& claim, const std::string& path) override;

 private:
  struct Waiting;  // a call of another thread
  using Claims = std::map<Hash256, std::vector<net::Contact>>;

  void begin(std::uint64_t number, const data::PeerFile& file, const std::shared_ptr<Waiting>& waiting);
  void find(std::optional<data::ShardId> shard, const Hash256& hash,
            const std::function<void(std::vector<net::Contact>)>& found);
  void ask_for_manifests(const std::shared_ptr<Waiting>& waiting, MonotonicTime until);
  void announce();
  void announce_checkpoints(dht::DhtNode& table);
  void gone(const Hash256& hash);
  void answer(const net::Caller& from, net::Method method, ByteSpan request, const net::Reply& reply);

  PeerHost& host_;
  Logger& logger_;
  storage::FileEnv& files_;
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
  Claims claims_;                            // who said so
  std::map<data::ShardId, Hash256> shards_;  // offered
  std::set<data::ShardId> announced_;
  const dht::DhtNode* table_ = nullptr;  // where they are announced
  std::unique_ptr<TimerHandle> timer_;
  net::MethodTable::Registration methods_;
  bool stopped_ = false;
  std::shared_ptr<bool> alive_ = std::make_shared<bool>(true);
};

}  // namespace neuroshard::app
