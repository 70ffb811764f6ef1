#include "core/runtime/exchange_service.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <condition_variable>
#include <mutex>

namespace neuroshard::runtime {
namespace {

constexpr const char* manifest_name = "genesis/manifest";
constexpr std::size_t disk_queue = 1024;
constexpr net::RequestLimits content_limits{.per_second = 400,
                                            .burst = 800,
                                            .callers = 1024,
                                            .group_factor = 8,
                                            .bytes_per_second = 128u << 20,
                                            .bytes_burst = 512u << 20};
constexpr std::size_t most_content_request = 256;
constexpr std::size_t asked_at_a_time = 32;
constexpr Duration answer_patience = std::chrono::seconds(3);
constexpr Duration ask_again = std::chrono::seconds(1);
constexpr Duration announce_period = std::chrono::seconds(5);
constexpr Duration cancel_check = std::chrono::milliseconds(100);
// Records that this node keeps alive in the hash table for its shards; other shards are found by queries.
constexpr std::size_t most_announced = 256;

std::string shard_path(data::ShardId shard) {
  return fmt::format("/shards/{}", shard);
}

data::ManifestClaim manifest_claim(const exchange::NamedContent& named) {
  return {named.content.hash, named.content.size, static_cast<std::int64_t>(named.version), named.note};
}

Error stopping() {
  return make_error(ErrorCode::Cancelled, "the node is stopping");
}

}  // namespace

// Filled on the executor, waited for by the caller.
struct ExchangeService::Waiting {
  std::mutex mutex;
  std::condition_variable changed;
  std::optional<Expected<std::vector<data::ManifestClaim>>> outcome;  // of a fetch: an empty list

  void end(Expected<std::vector<data::ManifestClaim>> with) {
    const std::lock_guard lock(mutex);
    if (!outcome) outcome = std::move(with);
    changed.notify_all();
  }
  // False: cancelled.
  bool wait(const CancelToken& cancel) {
    std::unique_lock lock(mutex);
    while (!outcome) {
      if (cancel.cancelled()) return false;
      changed.wait_for(lock, cancel_check);
    }
    return true;
  }
};

ExchangeService::ExchangeService(PeerHost& host, const RuntimeServices& services, Options options)
    : host_(host),
      services_(services),
      options_(std::move(options)),
      disk_(make_thread_executor("ns-exchange", disk_queue)) {
  std::array<std::uint8_t, 8> seed{};
  services_.entropy.fill({seed.data(), seed.size()});
  exchange::ServerLimits limits;
  if (options_.one_lan) limits.requests.per_group = 0;
  host_.run([&] {
    server_ = std::make_unique<exchange::ContentServer>(
        exchange::ServerServices{host_.executor(), *disk_, host_.clock(), services_.files, services_.logger,
                                 &host_.ranks()},
        limits, [this](const Hash256& hash) { on_file_gone(hash); });
    methods_ = host_.member().methods().add(
        {net::Method::ContentNamed, net::Method::ContentPieces, net::Method::ContentPiece},
        net::MethodLimits(std::make_shared<net::RequestLimiter>(content_limits, options_.one_lan,
                                                                load_le<std::uint64_t>(seed.data())),
                          most_content_request),
        [this](const net::Caller& from, net::Method method, ByteSpan request, const net::Reply& reply) {
          answer(from, method, request, reply);
        });
    if (options_.serve)
      checkpoints_ = std::make_unique<CheckpointOffers>(
          CheckpointOffers::Services{host_.executor(), *disk_, host_.clock(), services_.files, *server_},
          options_.checkpoints, holds_);
    timer_ = host_.executor().post_after(announce_period, [this] { announce(); });
  });
}

void ExchangeService::answer(const net::Caller& from, net::Method method, ByteSpan request,
                             const net::Reply& reply) {
  if (!options_.interpositions.other_content) return server_->on_call(from, method, request, reply);
  server_->on_call(from, method, request,
                   [method, reply, other = options_.interpositions.other_content](net::Answer answer) {
                     answer.with = other(method, std::move(answer.with));
                     reply(std::move(answer));
                   });
}

ExchangeService::~ExchangeService() {
  stop();
}

void ExchangeService::stop() {
  host_.run([this] {
    if (std::exchange(stopped_, true)) return;
    lifetime_.end();
    timer_.reset();
    methods_.end();
    fetches_.clear();
    for (const auto& [number, waiting] : waiting_) waiting->end(stopping());
    waiting_.clear();
    checkpoints_.reset();
    server_.reset();
  });
  disk_.reset();  // its tasks post to the host's executor, which keeps running
}

// ---- Files of other nodes.

// The known peers, then those that the hash table names.
void ExchangeService::find(std::optional<data::ShardId> shard, const Hash256& hash,
                           const std::function<void(std::vector<net::Contact>)>& found) {
  found(host_.member().some(asked_at_a_time));
  if (!shard || host_.member().table().table().size() == 0) return;
  host_.member().table().get(shard_path(*shard), [this, hash, found, life = lifetime_.token()](
                                                     const Expected<dht::LookupResult>& result) {
    if (!life.alive() || !result.ok()) return;
    std::vector<net::Contact> contacts;
    for (const dht::Record& record : result->records) {
      if (!std::equal(record.payload.begin(), record.payload.end(), hash.begin(), hash.end())) continue;
      const net::NodeId id = crypto::node_id(record.publisher);
      if (id == host_.id()) continue;
      if (const auto contact = host_.member().find(id)) contacts.push_back(*contact);
    }
    found(std::move(contacts));
  });
}

Expected<void> ExchangeService::fetch(const data::PeerFile& file, const CancelToken& cancel) {
  auto waiting = std::make_shared<Waiting>();
  std::uint64_t number = 0;
  host_.run([&] {
    if (stopped_) return waiting->end(stopping());
    number = next_++;
    begin(number, file, waiting);
  });
  const bool waited = waiting->wait(cancel);
  host_.run([&] {
    fetches_.erase(number);
    waiting_.erase(number);
  });
  if (!waited) return make_error(ErrorCode::Cancelled, "fetching from other nodes was stopped");
  if (!waiting->outcome->ok()) return waiting->outcome->error();
  return {};
}

void ExchangeService::begin(std::uint64_t number, const data::PeerFile& file,
                            const std::shared_ptr<Waiting>& waiting) {
  waiting_[number] = waiting;
  exchange::FetchServices services{
      host_.member().caller(),
      host_.executor(),
      *disk_,
      host_.clock(),
      services_.files,
      services_.logger,
      &host_.conduct(),
      [this, shard = file.shard, hash = file.sha256](const auto& found) { find(shard, hash, found); }};
  exchange::FetchOptions options;
  options.patience = file.patience;
  exchange::FetchRequest request;
  request.hash = file.sha256;
  request.size = file.size;
  request.max_bytes = file.max_bytes;
  request.path = file.path;
  fetches_[number] = std::make_unique<exchange::ContentFetch>(
      std::move(services), std::move(request), options,
      [this, waiting](const Expected<exchange::FetchReport>& report) {
        if (!report.ok()) return waiting->end(report.error());
        services_.logger.info(
            "exchange",
            fmt::format("{} bytes from {} nodes, {} were here already; {} nodes sent wrong data",
                        report->received_bytes, report->holders, report->resumed_bytes, report->liars));
        waiting->end(std::vector<data::ManifestClaim>());
      });
}

Expected<std::vector<data::ManifestClaim>> ExchangeService::manifests(Duration patience,
                                                                      const CancelToken& cancel) {
  auto waiting = std::make_shared<Waiting>();
  std::uint64_t number = 0;
  host_.run([&] {
    if (stopped_) return waiting->end(stopping());
    number = next_++;
    waiting_[number] = waiting;
    ask_for_manifests(waiting, host_.clock().monotonic_now() + patience);
  });
  const bool waited = waiting->wait(cancel);
  host_.run([&] { waiting_.erase(number); });
  if (!waited) return make_error(ErrorCode::Cancelled, "asking other nodes was stopped");
  return *waiting->outcome;
}

void ExchangeService::ask_for_manifests(const std::shared_ptr<Waiting>& waiting, MonotonicTime until) {
  const auto malformed = [&host = host_](const net::Contact& by) {
    host.conduct().fault(net::answerer(host.member().caller(), by), net::Fault::Malformed);
  };
  exchange::ask_names(
      host_.member().caller(), host_.member().some(asked_at_a_time), manifest_name, answer_patience,
      malformed,
      [this, waiting, until, life = lifetime_.token()](const std::vector<exchange::Claim>& answers) {
        if (!life.alive()) return;
        std::vector<data::ManifestClaim> found = collect_claims(answers);
        if (!found.empty() || host_.clock().monotonic_now() >= until) return waiting->end(std::move(found));
        // No answer yet: a node that has just started knows no peers.
        auto timer = std::make_shared<std::unique_ptr<TimerHandle>>();
        *timer = host_.executor().post_after(ask_again, [this, waiting, until, timer, life] {
          if (life.alive()) ask_for_manifests(waiting, until);
        });
      });
}

std::vector<data::ManifestClaim> ExchangeService::collect_claims(
    const std::vector<exchange::Claim>& answers) {
  claims_ = exchange::merge_claims(answers);
  std::vector<data::ManifestClaim> found;
  for (const exchange::SharedClaim& claim : claims_) found.push_back(manifest_claim(claim.named));
  return found;
}

void ExchangeService::refuted(const data::ManifestClaim& claim) {
  host_.run([&] {
    const auto false_one = std::find_if(claims_.begin(), claims_.end(),
                                        [&](const auto& one) { return manifest_claim(one.named) == claim; });
    if (false_one == claims_.end()) return;
    for (const net::Contact& by : false_one->by) {
      services_.logger.warning("exchange",
                               fmt::format("node {} offers a manifest that the publisher has not signed",
                                           to_hex(by.id).substr(0, 16)));
      host_.conduct().fault(net::answerer(host_.member().caller(), by), net::Fault::BadSignature);
    }
    claims_.erase(false_one);
  });
}

// ---- Files of this node.

void ExchangeService::offer(const data::PeerFile& file) {
  if (!file.size || !options_.serve) return;
  host_.run([&] {
    if (stopped_ || !server_->offer({file.sha256, *file.size}, file.path) || !file.shard) return;
    shards_[*file.shard] = file.sha256;
    announced_.erase(*file.shard);
  });
}

void ExchangeService::withdraw(const Hash256& sha256) {
  host_.run([&] {
    if (stopped_) return;
    server_->withdraw(sha256);
    on_file_gone(sha256);
  });
}

void ExchangeService::offer_manifest(const data::ManifestClaim& claim, const std::string& path) {
  if (!options_.serve || claim.size == 0 || claim.signature.size() > exchange::max_note) return;
  host_.run([&] {
    const exchange::ContentRef content{claim.sha256, claim.size};
    if (stopped_ || !server_->offer(content, path)) return;
    server_->set_name(manifest_name,
                      {static_cast<std::uint64_t>(claim.updated_ms), content, claim.signature});
  });
}

// Announces in the member's present table. A node gets another one once others can dial it.
void ExchangeService::announce() {
  dht::DhtNode& table = host_.member().table();
  const std::uint64_t number = host_.member().table_number();
  if (table_ != number) {
    announced_.clear();
    announced_checkpoints_.clear();
  }
  table_ = number;
  if (table.table().size() > 0) {
    for (const auto& [shard, hash] : shards_) {
      if (announced_.size() >= most_announced) break;
      if (announced_.insert(shard).second)
        table.publish(shard_path(shard), Bytes(hash.begin(), hash.end()),
                      [](const Expected<dht::Published>&) {});
    }
    announce_checkpoints(table);
  }
  timer_ = host_.executor().post_after(announce_period, [this] { announce(); });
}

void ExchangeService::announce_checkpoints(dht::DhtNode& table) {
  if (!checkpoints_) return;
  const std::set<std::string>& now = checkpoints_->ids();
  for (const std::string& id : announced_checkpoints_)
    if (now.count(id) == 0) table.withdraw("/checkpoints/" + id);
  for (const std::string& id : now)
    if (announced_checkpoints_.count(id) == 0)
      table.publish("/checkpoints/" + id, {}, [](const Expected<dht::Published>&) {});
  announced_checkpoints_ = now;
}

void ExchangeService::on_file_gone(const Hash256& hash) {
  for (auto shard = shards_.begin(); shard != shards_.end();) {
    if (shard->second != hash) {
      ++shard;
      continue;
    }
    if (announced_.erase(shard->first) > 0) host_.member().table().withdraw(shard_path(shard->first));
    shard = shards_.erase(shard);
  }
}

}  // namespace neuroshard::runtime
