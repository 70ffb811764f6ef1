#include "core/runtime/checkpoint_fetch.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>

#include "core/checkpoint/file_names.h"
#include "core/checkpoint/loader.h"
#include "core/checkpoint/slot_tensors.h"
#include "core/checkpoint/writer.h"
#include "core/exchange/names.h"

namespace neuroshard::runtime {
namespace {

constexpr const char* manifest_file = "manifest.json";
constexpr const char* newest_word = "newest";
constexpr std::size_t folder_digits = 16;  // of the id
constexpr std::uint64_t spare_bytes = 64u << 20;
constexpr std::size_t most_tried = 8;  // offers of "newest": anybody can make many that nobody delivers

std::vector<OfferedCheckpoint> offers_of(GuestVisit& visit) {
  std::map<std::string, OfferedCheckpoint> offers;
  for (const exchange::Claim& claim : visit.named(newest_checkpoint_name)) {
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

struct Candidate {
  Hash256 id{};
  std::optional<std::uint64_t> step;  // as its offer says
};

// The best one first.
Expected<std::vector<Candidate>> candidates(const std::string& text, GuestVisit& visit) {
  std::vector<Candidate> found;
  if (text != newest_word) {
    if (const auto id = hash_from_hex(text); id.ok()) {
      found.push_back({*id, std::nullopt});
      return found;
    }
    return make_error(
        ErrorCode::InvalidArgument,
        fmt::format("{} is not the id of a checkpoint: give 64 hexadecimal digits, as `neuroshardd "
                    "checkpoint fetch` lists them, or \"{}\"",
                    text, newest_word));
  }
  for (const OfferedCheckpoint& offer : offers_of(visit)) {
    NS_ASSIGN_OR_RETURN(const Hash256 id, hash_from_hex(offer.id));
    if (found.size() < most_tried) found.push_back({id, offer.step});
  }
  if (found.empty()) return make_error(ErrorCode::NotFound, "no reachable node offers a checkpoint");
  return found;
}

Expected<std::vector<compute::SlotId>> slots_of(const std::vector<std::string>& texts) {
  std::vector<compute::SlotId> slots;
  for (const std::string& text : texts) {
    NS_ASSIGN_OR_RETURN(const compute::SlotId slot, compute::parse_slot(text));
    slots.push_back(slot);
  }
  return slots;
}

Expected<checkpoint::Manifest> fetch_manifest(GuestVisit& visit, const Hash256& id,
                                              const std::string& folder) {
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

// The manifest of the first candidate that can be true, and its folder.
struct Chosen {
  checkpoint::Manifest manifest;
  std::string folder;
  Hash256 id{};
};

Expected<Chosen> choose(const std::vector<Candidate>& all, const std::string& folder, GuestVisit& visit,
                        const FetchSession& session) {
  NS_ASSIGN_OR_RETURN(const config::NetworkProfile profile,
                      config::load_network_profile(visit.files(), session.guest.profile));
  Error last;
  for (const Candidate& one : all) {
    const std::string id = to_hex(one.id), work = folder + "/" + id.substr(0, folder_digits);
    visit.set_path("/checkpoints/" + id);
    NS_RETURN_IF_ERROR(visit.files().create_directories(work));
    auto manifest = fetch_manifest(visit, one.id, work);
    Expected<void> checked;
    if (manifest.ok()) checked = check_offer(*manifest, profile.consensus, one.step);
    if (manifest.ok() && checked.ok()) return Chosen{std::move(*manifest), work, one.id};
    last = manifest.ok() ? checked.error() : manifest.error();
    const bool false_offer = last.code == ErrorCode::InvalidArgument || last.code == ErrorCode::Corrupt ||
                             last.code == ErrorCode::Unsupported;
    if (false_offer) NS_RETURN_IF_ERROR(visit.files().remove_tree(work));
    if (!false_offer && last.code != ErrorCode::Unavailable) return last;
    if (all.size() > 1 && session.observer.note)
      session.observer.note(fmt::format("The offer {} is passed over: {}", id, last.describe()));
  }
  return last;
}

// Removes files of interrupted fetches of other checkpoints. Best effort.
void remove_others(storage::FileEnv& files, const std::string& folder, const std::string& kept) {
  const auto entries = files.list(folder);
  if (!entries.ok()) return;
  for (const storage::DirectoryEntry& entry : *entries)
    if (entry.is_directory && folder + "/" + entry.name != kept)
      static_cast<void>(files.remove_tree(folder + "/" + entry.name));
}

bool has_a_size_of(const config::ConsensusPart& consensus, const compute::ModelShape& shape) {
  for (std::size_t size = 0; size <= consensus.sizes.size(); ++size)
    if (checkpoint::same_shape(config::model_shape(config::at_size(consensus, size)), shape)) return true;
  return false;
}

Expected<void> fetch_content(GuestVisit& visit, const Hash256& hash, std::uint64_t bytes,
                             const std::string& folder, const std::string& name) {
  exchange::FetchRequest request;
  request.hash = hash;
  request.size = request.max_bytes = bytes;
  request.path = folder + "/" + name;
  return visit.fetch(request, name);
}

// Fetches the slots' parts of the checkpoint's files and makes a checkpoint of them.
Expected<std::string> fetch_slots(GuestVisit& visit, const checkpoint::Manifest& manifest,
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
  std::uint64_t sum = 0;
  for (const checkpoint::SlotRun& run : runs) sum += run.bytes;
  NS_RETURN_IF_ERROR(check_fetch_room(visit.files(), folder, sum));
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
  NS_ASSIGN_OR_RETURN(const auto visit, GuestVisit::begin(session));
  return offers_of(*visit);
}

Expected<FetchedCheckpoint> fetch_checkpoint(const CheckpointChoice& choice, const std::string& folder,
                                             const FetchSession& session) {
  NS_ASSIGN_OR_RETURN(const std::vector<compute::SlotId> slots, slots_of(choice.slots));
  NS_ASSIGN_OR_RETURN(const auto visit, GuestVisit::begin(session));
  NS_ASSIGN_OR_RETURN(const std::vector<Candidate> all, candidates(choice.id, *visit));
  NS_ASSIGN_OR_RETURN(const Chosen chosen, choose(all, folder, *visit, session));
  const auto wanted = choice.check ? choice.check(chosen.id) : Expected<void>();
  if (!wanted.ok()) {
    NS_RETURN_IF_ERROR(visit->files().remove_tree(chosen.folder));
    return wanted.error();
  }
  const checkpoint::Manifest& manifest = chosen.manifest;
  FetchedCheckpoint fetched;
  fetched.work = fetched.folder = chosen.folder;
  remove_others(visit->files(), folder, fetched.work);
  if (!slots.empty()) {
    NS_ASSIGN_OR_RETURN(fetched.folder, fetch_slots(*visit, manifest, slots, fetched.work));
    return fetched;
  }
  NS_RETURN_IF_ERROR(check_fetch_room(visit->files(), fetched.work, manifest.file_bytes()));
  for (const checkpoint::FileRecord& file : manifest.files)
    NS_RETURN_IF_ERROR(fetch_content(*visit, file.sha256, file.bytes, fetched.work, file.name));
  return fetched;
}

Expected<void> check_fetch_room(storage::FileEnv& files, const std::string& folder, std::uint64_t bytes) {
  std::uint64_t here = 0;
  if (const auto entries = files.list(folder); entries.ok())
    for (const storage::DirectoryEntry& entry : *entries) here += entry.size;
  const std::uint64_t needed = bytes - std::min(bytes, here) + spare_bytes;
  const auto free = files.free_bytes(folder);
  if (!free.ok() || *free >= needed) return {};  // a file system that cannot tell is tried
  return make_error(ErrorCode::Exhausted,
                    fmt::format("the checkpoint requires {} MiB more, but only {} MiB are free at {}; "
                                "free some space",
                                (needed >> 20) + 1, *free >> 20, folder));
}

Expected<void> check_offer(const checkpoint::Manifest& manifest, const config::ConsensusPart& consensus,
                           std::optional<std::uint64_t> step) {
  if (step && *step != manifest.step)
    return make_error(ErrorCode::InvalidArgument,
                      fmt::format("the offer says step {}, but its manifest step {}", *step, manifest.step));
  const compute::ModelShape& shape = manifest.architecture;
  if (!has_a_size_of(consensus, shape))
    return make_error(ErrorCode::InvalidArgument,
                      fmt::format("the checkpoint has a model of {} layers of width {}, which this "
                                  "network does not have",
                                  shape.layers, shape.hidden));
  // Names first: each is there once, so the sum of the sizes can't overflow.
  for (const checkpoint::FileRecord& file : manifest.files)
    if (file.name != checkpoint::weights_file_name && file.name != checkpoint::optimizer_file_name &&
        file.name != checkpoint::slot_index_file)
      return make_error(ErrorCode::Unsupported,
                        fmt::format("the checkpoint has a file {}, which this version does not know; "
                                    "install a newer version, or choose another checkpoint",
                                    file.name));
  // Headers and the index of slots are smaller than the extra tensors may be.
  const std::uint64_t most =
      checkpoint::Writer::estimate_bytes(shape, compute::model_slots(shape)) + checkpoint::max_extra_bytes;
  if (manifest.file_bytes() > most)
    return make_error(ErrorCode::InvalidArgument,
                      fmt::format("the checkpoint has {} bytes; one of this model has {} at most",
                                  manifest.file_bytes(), most));
  return {};
}

}  // namespace neuroshard::runtime
