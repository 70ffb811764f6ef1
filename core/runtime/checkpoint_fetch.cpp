#include "core/runtime/checkpoint_fetch.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>

#include "core/checkpoint/manifest.h"
#include "core/checkpoint/slot_tensors.h"
#include "core/exchange/names.h"

namespace neuroshard::runtime {
namespace {

constexpr const char* manifest_file = "manifest.json";
constexpr const char* newest_word = "newest";
constexpr std::size_t folder_digits = 16;  // of the id

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

Expected<Hash256> id_of(const std::string& text, GuestVisit& visit) {
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
  NS_ASSIGN_OR_RETURN(const Hash256 id, id_of(choice.id, *visit));
  visit->set_path("/checkpoints/" + to_hex(id));
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
