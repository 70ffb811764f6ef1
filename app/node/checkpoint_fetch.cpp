#include "app/node/checkpoint_fetch.h"

#include <fmt/format.h>

#include <algorithm>
#include <condition_variable>
#include <map>
#include <mutex>

#include "app/node/progress.h"
#include "core/checkpoint/manifest.h"
#include "core/exchange/fetch.h"
#include "core/exchange/names.h"

namespace neuroshard::app {
namespace {

constexpr std::size_t disk_queue = 256;
constexpr Duration answer_patience = std::chrono::seconds(5);
constexpr Duration look = std::chrono::milliseconds(100);
constexpr const char* manifest_file = "manifest.json";

// A guest with connections that are kept, and a thread for the disk.
class Visit {
 public:
  static Expected<std::unique_ptr<Visit>> begin(const GuestFlags& flags, const std::string& profile,
                                                CommandContext& context) {
    std::unique_ptr<Visit> visit(new Visit(context));
    NS_ASSIGN_OR_RETURN(const GuestNetwork network, guest_network(flags, profile, context));
    visit->network_ = network.id;
    NS_ASSIGN_OR_RETURN(visit->host_, start_guest(network, flags, context));
    NS_ASSIGN_OR_RETURN(const Acquaintance known, get_acquainted(*visit->host_, network, context));
    visit->contacts_ = contacts_of(known);
    visit->disk_ = make_thread_executor("ns-fetch", disk_queue);
    visit->host_->run([&] {
      visit->pool_ = std::make_unique<net::PeerPool>(visit->host_->transport(), visit->host_->executor(),
                                                     visit->host_->clock());
    });
    return visit;
  }
  ~Visit() {
    if (host_) host_->run([this] { pool_.reset(); });
  }

  const Hash256& network() const { return network_; }
  std::vector<exchange::Claim> newest() {
    return wait_for<std::vector<exchange::Claim>>(*host_, [&](auto done) {
      exchange::ask_names(*pool_, contacts_, newest_checkpoint_name, answer_patience, nullptr,
                          std::move(done));
    });
  }

  Expected<void> fetch(const exchange::FetchRequest& request, const std::string& label) {
    struct Outcome {
      std::mutex mutex;
      std::condition_variable changed;
      std::optional<Expected<exchange::FetchReport>> report;
    } outcome;
    std::unique_ptr<exchange::ContentFetch> fetch;
    host_->run([&] {
      exchange::FetchServices services{*pool_,
                                       host_->executor(),
                                       *disk_,
                                       host_->clock(),
                                       context_.files,
                                       context_.logger,
                                       &host_->conduct(),
                                       [this](const auto& found) { found(contacts_); }};
      fetch = std::make_unique<exchange::ContentFetch>(std::move(services), request, exchange::FetchOptions{},
                                                       [&outcome](Expected<exchange::FetchReport> report) {
                                                         const std::lock_guard lock(outcome.mutex);
                                                         outcome.report = std::move(report);
                                                         outcome.changed.notify_all();
                                                       });
    });
    ProgressLine progress(context_.output, context_.clock, label);
    std::unique_lock lock(outcome.mutex);
    while (!outcome.report && !context_.stop.cancelled()) {
      outcome.changed.wait_for(lock, look);
      if (outcome.report) break;
      lock.unlock();
      std::uint64_t here = 0;
      host_->run([&] { here = fetch->bytes_here(); });
      progress.update(here, request.size.value_or(0));
      lock.lock();
    }
    lock.unlock();
    host_->run([&] { fetch.reset(); });
    if (!outcome.report) return make_error(ErrorCode::Cancelled, "stopped; what came is kept");
    if (!outcome.report->ok()) return outcome.report->error();
    const exchange::FetchReport& report = **outcome.report;
    context_.output.note(fmt::format("{}: {} bytes from {} node(s), {} were here already", label,
                                     report.received_bytes, report.holders, report.resumed_bytes));
    return {};
  }

 private:
  explicit Visit(CommandContext& context) : context_(context) {}

  CommandContext& context_;
  Hash256 network_{};
  std::unique_ptr<PeerHost> host_;
  std::vector<net::Contact> contacts_;
  std::unique_ptr<net::PeerPool> pool_;
  std::unique_ptr<Executor> disk_;  // its tasks speak with the host's executor, so it ends first
};

}  // namespace

Expected<std::vector<OfferedCheckpoint>> offered_checkpoints(const GuestFlags& flags,
                                                             const std::string& profile,
                                                             CommandContext& context) {
  NS_ASSIGN_OR_RETURN(const auto visit, Visit::begin(flags, profile, context));
  std::map<std::string, OfferedCheckpoint> offers;
  for (const exchange::Claim& claim : visit->newest()) {
    const std::string folder(as_text(claim.named.note));
    if (!checkpoint::is_folder_name(folder)) continue;
    OfferedCheckpoint& offer = offers[to_hex(claim.named.content.hash)];
    offer.id = to_hex(claim.named.content.hash);
    offer.folder = folder;
    offer.step = claim.named.version;
    offer.nodes.push_back(claim.by.id);
  }
  std::vector<OfferedCheckpoint> list;
  for (auto& [id, offer] : offers) list.push_back(std::move(offer));
  std::sort(list.begin(), list.end(), [](const auto& a, const auto& b) { return a.step > b.step; });
  return list;
}

Expected<void> fetch_checkpoint(const std::string& id, const std::string& folder, const GuestFlags& flags,
                                const std::string& profile, CommandContext& context) {
  const auto hash = hash_from_hex(id);
  if (!hash.ok())
    return make_error(ErrorCode::InvalidArgument,
                      fmt::format("{} is no checkpoint's id: 64 hexadecimal digits, as `neuroshardd "
                                  "checkpoint fetch` lists them",
                                  id));
  NS_ASSIGN_OR_RETURN(const auto visit, Visit::begin(flags, profile, context));
  NS_RETURN_IF_ERROR(context.files.create_directories(folder));
  exchange::FetchRequest request;
  request.hash = *hash;
  request.max_bytes = checkpoint::max_manifest_bytes;
  request.path = folder + "/" + manifest_file;
  if (!context.files.exists(request.path)) NS_RETURN_IF_ERROR(visit->fetch(request, manifest_file));
  NS_ASSIGN_OR_RETURN(const Bytes bytes,
                      storage::read_file(context.files, request.path, checkpoint::max_manifest_bytes));
  auto manifest = checkpoint::parse_manifest(bytes);
  if (!manifest.ok()) return std::move(manifest).error().with_context("the manifest with this id");
  NS_RETURN_IF_ERROR(checkpoint::verify_signature(*manifest));
  if (manifest->network_id != visit->network())
    return make_error(ErrorCode::InvalidArgument, "the checkpoint with this id belongs to another network");
  for (const checkpoint::FileRecord& file : manifest->files) {
    request.hash = file.sha256;
    request.size = request.max_bytes = file.bytes;
    request.path = folder + "/" + file.name;
    if (!context.files.exists(request.path)) NS_RETURN_IF_ERROR(visit->fetch(request, file.name));
  }
  return {};
}

}  // namespace neuroshard::app
