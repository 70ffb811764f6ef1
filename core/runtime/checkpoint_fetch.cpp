#include "core/runtime/checkpoint_fetch.h"

#include <fmt/format.h>

#include <algorithm>
#include <condition_variable>
#include <map>
#include <mutex>

#include "core/checkpoint/manifest.h"
#include "core/checkpoint/slot_tensors.h"
#include "core/exchange/fetch.h"
#include "core/exchange/names.h"

namespace neuroshard::runtime {
namespace {

constexpr std::size_t disk_queue = 256;
constexpr Duration answer_patience = std::chrono::seconds(5);
constexpr Duration progress_period = std::chrono::milliseconds(100);
constexpr const char* manifest_file = "manifest.json";
constexpr const char* newest_word = "newest";
constexpr std::size_t folder_digits = 16;  // of the id

// A guest with its connections and a thread for the disk.
class Visit {
 public:
  static Expected<std::unique_ptr<Visit>> begin(const FetchSession& session) {
    std::unique_ptr<Visit> visit(new Visit(session));
    const NoteFunction& note = session.observer.note;
    NS_ASSIGN_OR_RETURN(const GuestNetwork network, guest_network(session.guest, session.services.files));
    visit->network_ = network.id;
    NS_ASSIGN_OR_RETURN(visit->host_, start_guest(network, session.guest, session.services));
    NS_ASSIGN_OR_RETURN(const Acquaintance known, get_acquainted(*visit->host_, network, note));
    visit->paths_ = std::make_unique<GuestPaths>(*visit->host_, network, session.guest, known);
    // Without the hash table, only the nodes that the source knows are asked.
    auto table = GuestTable::open(*visit->host_, network, session.guest, known, *visit->paths_);
    if (table.ok())
      visit->table_ = std::move(*table);
    else if (note)
      note(table.error().describe());
    visit->disk_ = make_thread_executor("ns-fetch", disk_queue);
    return visit;
  }

  const Hash256& network() const { return network_; }
  storage::FileEnv& files() const { return session_.services.files; }
  crypto::Entropy& entropy() const { return session_.services.entropy; }
  std::vector<exchange::Claim> newest() {
    return wait_for<std::vector<exchange::Claim>>(*host_, [&](auto done) {
      exchange::ask_names(paths_->caller(), paths_->contacts(), newest_checkpoint_name, answer_patience,
                          nullptr, std::move(done));
    });
  }

  // The checkpoint that contents are fetched of from now on.
  void set_checkpoint(const Hash256& id) { path_ = "/checkpoints/" + to_hex(id); }

  // Does nothing when the file exists.
  Expected<void> fetch(const exchange::FetchRequest& request, const std::string& name) {
    if (files().exists(request.path)) return {};
    Outcome outcome;
    std::unique_ptr<exchange::ContentFetch> fetch;
    host_->run([&] { fetch = start_fetch(request, outcome); });
    wait_until_done(request, name, *fetch, outcome);
    FetchObserver::File file{name, {}, 0};
    host_->run([&] {
      file.relayed = paths_->relayed();
      fetch.reset();
    });
    const FetchObserver& observer = session_.observer;
    if (observer.ended) observer.ended(name);
    if (!outcome.report) return make_error(ErrorCode::Cancelled, "stopped; the parts that arrived are kept");
    if (!outcome.report->ok()) return outcome.report->error();
    file.report = **outcome.report;
    if (observer.fetched) observer.fetched(file);
    return {};
  }

 private:
  // Filled on the executor, waited for by the caller.
  struct Outcome {
    std::mutex mutex;
    std::condition_variable changed;
    std::optional<Expected<exchange::FetchReport>> report;
  };

  explicit Visit(const FetchSession& session) : session_(session) {}
  std::unique_ptr<exchange::ContentFetch> start_fetch(const exchange::FetchRequest& request,
                                                      Outcome& outcome) {
    exchange::FetchServices services{paths_->caller(),
                                     host_->executor(),
                                     *disk_,
                                     host_->clock(),
                                     files(),
                                     session_.services.logger,
                                     &host_->conduct(),
                                     [this](const auto& found) { find(found); }};
    return std::make_unique<exchange::ContentFetch>(std::move(services), request, exchange::FetchOptions{},
                                                    [&outcome](Expected<exchange::FetchReport> report) {
                                                      const std::lock_guard lock(outcome.mutex);
                                                      outcome.report = std::move(report);
                                                      outcome.changed.notify_all();
                                                    });
  }
  void wait_until_done(const exchange::FetchRequest& request, const std::string& name,
                       exchange::ContentFetch& fetch, Outcome& outcome) {
    std::unique_lock lock(outcome.mutex);
    while (!outcome.report && !session_.stop.cancelled()) {
      outcome.changed.wait_for(lock, progress_period);
      if (outcome.report) break;
      lock.unlock();
      std::uint64_t here = 0;
      host_->run([&] { here = fetch.bytes_here(); });
      if (session_.observer.progress) session_.observer.progress(name, here, request.size.value_or(0));
      lock.lock();
    }
  }
  void find(const std::function<void(std::vector<net::Contact>)>& found) {
    found(paths_->contacts());
    if (table_) table_->find_publishers(path_, found);
  }

  const FetchSession& session_;
  Hash256 network_{};
  std::unique_ptr<PeerHost> host_;
  std::unique_ptr<GuestPaths> paths_;
  std::string path_;                   // in the hash table
  std::unique_ptr<GuestTable> table_;  // null: no member of it is known
  std::unique_ptr<Executor> disk_;     // its tasks post to the host's executor, so it ends first
};

std::vector<OfferedCheckpoint> offers_of(Visit& visit) {
  std::map<std::string, OfferedCheckpoint> offers;
  for (const exchange::Claim& claim : visit.newest()) {
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

Expected<Hash256> id_of(const std::string& text, Visit& visit) {
  if (text != newest_word) {
    auto id = hash_from_hex(text);
    if (id.ok()) return id;
    return make_error(
        ErrorCode::InvalidArgument,
        fmt::format("{} is not the id of a checkpoint: give 64 hexadecimal digits, as `neuroshardd "
                    "checkpoint fetch` lists them, or \"{}\"",
                    text, newest_word));
  }
  const std::vector<OfferedCheckpoint> offers = offers_of(visit);
  if (offers.empty()) return make_error(ErrorCode::NotFound, "no reachable node offers a checkpoint");
  return hash_from_hex(offers.front().id);
}

Expected<std::vector<compute::SlotId>> slots_of(const std::vector<std::string>& texts) {
  std::vector<compute::SlotId> slots;
  for (const std::string& text : texts) {
    NS_ASSIGN_OR_RETURN(const compute::SlotId slot, compute::parse_slot(text));
    slots.push_back(slot);
  }
  return slots;
}

Expected<checkpoint::Manifest> fetch_manifest(Visit& visit, const Hash256& id, const std::string& folder) {
  exchange::FetchRequest request;
  request.hash = id;
  request.max_bytes = checkpoint::max_manifest_bytes;
  request.path = folder + "/" + manifest_file;
  NS_RETURN_IF_ERROR(visit.fetch(request, manifest_file));
  NS_ASSIGN_OR_RETURN(const Bytes bytes,
                      storage::read_file(visit.files(), request.path, checkpoint::max_manifest_bytes));
  auto manifest = checkpoint::parse_manifest(bytes);
  if (!manifest.ok()) return std::move(manifest).error().with_context("the manifest with this id");
  NS_RETURN_IF_ERROR(checkpoint::verify_signature(*manifest));
  if (manifest->network_id != visit.network())
    return make_error(ErrorCode::InvalidArgument, "the checkpoint with this id belongs to another network");
  return std::move(*manifest);
}

Expected<void> fetch_content(Visit& visit, const Hash256& hash, std::uint64_t bytes,
                             const std::string& folder, const std::string& name) {
  exchange::FetchRequest request;
  request.hash = hash;
  request.size = request.max_bytes = bytes;
  request.path = folder + "/" + name;
  return visit.fetch(request, name);
}

// Fetches the slots' parts of the checkpoint's files and makes a checkpoint of them.
Expected<std::string> fetch_slots(Visit& visit, const checkpoint::Manifest& manifest,
                                  const std::vector<compute::SlotId>& slots, const std::string& folder) {
  const checkpoint::FileRecord* const record = manifest.file(checkpoint::slot_index_file);
  if (record == nullptr || record->bytes > checkpoint::max_slot_index_bytes)
    return make_error(ErrorCode::Unsupported,
                      "an earlier version saved this checkpoint without an index of its slots: "
                      "fetch the whole checkpoint, without --slot");
  NS_RETURN_IF_ERROR(fetch_content(visit, record->sha256, record->bytes, folder, record->name));
  NS_ASSIGN_OR_RETURN(const Bytes bytes, storage::read_file(visit.files(), folder + "/" + record->name,
                                                            checkpoint::max_slot_index_bytes));
  NS_ASSIGN_OR_RETURN(const auto index, checkpoint::decode_slot_index(bytes, manifest));
  NS_ASSIGN_OR_RETURN(const auto runs, checkpoint::runs_of_slots(index, slots));
  for (const checkpoint::SlotRun& run : runs)
    NS_RETURN_IF_ERROR(fetch_content(visit, run.sha256, run.bytes, folder, checkpoint::run_file_name(run)));
  NS_ASSIGN_OR_RETURN(const Bytes text, storage::read_file(visit.files(), folder + "/" + manifest_file,
                                                           checkpoint::max_manifest_bytes));
  const std::string parts = folder + "/part";
  NS_RETURN_IF_ERROR(visit.files().remove_tree(parts));
  NS_ASSIGN_OR_RETURN(
      const auto made,
      checkpoint::make_part(visit.files(), crypto::KeyPair::generate(visit.entropy()), manifest,
                            checkpoint::folder_name(manifest.step, text), runs, folder, parts));
  return parts + "/" + made.name;
}

}  // namespace

Expected<std::vector<OfferedCheckpoint>> offered_checkpoints(const FetchSession& session) {
  NS_ASSIGN_OR_RETURN(const auto visit, Visit::begin(session));
  return offers_of(*visit);
}

Expected<FetchedCheckpoint> fetch_checkpoint(const CheckpointChoice& choice, const std::string& folder,
                                             const FetchSession& session) {
  NS_ASSIGN_OR_RETURN(const std::vector<compute::SlotId> slots, slots_of(choice.slots));
  NS_ASSIGN_OR_RETURN(const auto visit, Visit::begin(session));
  NS_ASSIGN_OR_RETURN(const Hash256 id, id_of(choice.id, *visit));
  visit->set_checkpoint(id);
  FetchedCheckpoint fetched;
  fetched.work = fetched.folder = folder + "/" + to_hex(id).substr(0, folder_digits);
  NS_RETURN_IF_ERROR(session.services.files.create_directories(fetched.work));
  NS_ASSIGN_OR_RETURN(const checkpoint::Manifest manifest, fetch_manifest(*visit, id, fetched.work));
  if (!slots.empty()) {
    NS_ASSIGN_OR_RETURN(fetched.folder, fetch_slots(*visit, manifest, slots, fetched.work));
    return fetched;
  }
  for (const checkpoint::FileRecord& file : manifest.files)
    NS_RETURN_IF_ERROR(fetch_content(*visit, file.sha256, file.bytes, fetched.work, file.name));
  return fetched;
}

}  // namespace neuroshard::runtime
