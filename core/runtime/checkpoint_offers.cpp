#include "core/runtime/checkpoint_offers.h"

#include <limits>

#include "core/checkpoint/slot_index.h"
#include "core/crypto/hash.h"
#include "core/runtime/checkpoint_fetch.h"

namespace neuroshard::runtime {
namespace {

constexpr Duration inspection_period = std::chrono::seconds(5);
constexpr std::size_t most_imported = 4;
constexpr std::uint64_t share_of_free = 4;  // of the free space, one part for held checkpoints

}  // namespace

CheckpointOffers::CheckpointOffers(Services services, std::string root,
                                   std::shared_ptr<checkpoint::Holds> holds, checkpoint::OfferRules rules)
    : services_(services), root_(std::move(root)), holds_(std::move(holds)), offered_(rules) {
  inspect();
}

CheckpointOffers::~CheckpointOffers() {
  holds_->set({});
}

CheckpointOffers::Item CheckpointOffers::read_item(storage::FileEnv& files, const checkpoint::Entry& entry) {
  Item item;
  const auto add_manifest = [&](const std::string& name) {
    const std::string path = entry.path + "/" + name;
    const auto bytes = storage::read_file(files, path, checkpoint::max_manifest_bytes);
    if (!bytes.ok() || bytes->empty()) return exchange::ContentRef{};
    const exchange::ContentRef ref{crypto::sha256(*bytes), bytes->size()};
    item.ids.push_back(to_hex(ref.hash));
    item.contents.push_back({ref, path, 0});
    return ref;
  };
  const ByteSpan name = as_bytes(std::string_view(entry.name));
  item.named = {entry.manifest.step, add_manifest("manifest.json"), Bytes(name.begin(), name.end())};
  if (!entry.manifest.origin.empty()) add_manifest(checkpoint::original_manifest_file);
  for (const checkpoint::FileRecord& file : entry.manifest.files)
    item.contents.push_back({{file.sha256, file.bytes}, entry.path + "/" + file.name, 0});
  const auto index = storage::read_file(files, entry.path + "/" + checkpoint::slot_index_file,
                                        checkpoint::max_slot_index_bytes);
  if (!index.ok()) return item;  // of an earlier version: offered as a whole only
  const auto runs = checkpoint::decode_slot_index(*index, entry.manifest);
  if (!runs.ok()) return item;
  for (const checkpoint::SlotRun& run : *runs)
    item.contents.push_back({{run.sha256, run.bytes}, entry.path + "/" + file_of(run), run.offset});
  return item;
}

CheckpointOffers::Inventory CheckpointOffers::read(storage::FileEnv& files, const std::string& root,
                                                   const std::set<std::string>& offered) {
  Inventory found;
  const auto entries = checkpoint::Catalogue(files, root).list();
  if (!entries.ok()) return found;
  const auto free = files.free_bytes(root);
  found.room = free.ok() ? *free / share_of_free : std::numeric_limits<std::uint64_t>::max();
  for (const checkpoint::Entry& entry : *entries) {
    if (!entry.complete() || (entry.verdict && !entry.verdict->intact)) continue;
    const bool own = entry.manifest.sequence > 0;
    const bool may_be_offered = own ? found.newest_first.empty() || offered.count(entry.name) != 0
                                    : found.imported.size() < most_imported;
    if (may_be_offered) found.items[entry.name] = read_item(files, entry);
    if (own)
      found.newest_first.push_back({entry.name, entry.bytes});
    else if (may_be_offered)
      found.imported.push_back(entry.name);
  }
  return found;
}

void CheckpointOffers::inspect() {
  static_cast<void>(
      services_.disk.post([this, root = root_, &files = services_.files, &executor = services_.executor,
                           offered = offered_.names(), life = lifetime_.token()] {
        const auto found = std::make_shared<const Inventory>(read(files, root, offered));
        static_cast<void>(executor.post([this, life, found] {
          if (life.alive()) take(*found);
        }));
      }));
  timer_ = services_.executor.post_after(inspection_period, [this] { inspect(); });
}

// The server still holds what was offered, unless it found it damaged.
void CheckpointOffers::note_lost(const Inventory& found) {
  for (const auto& [hash, name] : hashes_)
    if (!services_.server.holds(hash)) lost_[name].insert(hash);
  std::set<std::string> there(found.imported.begin(), found.imported.end());
  for (const auto& own : found.newest_first) there.insert(own.name);
  std::erase_if(lost_, [&there](const auto& one) { return there.count(one.first) == 0; });
}

void CheckpointOffers::offer(const std::string& name, const Item& item, Offered& now) {
  const auto lost = lost_.find(name);
  for (const Content& content : item.contents) {
    const Hash256& hash = content.ref.hash;
    if (now.count(hash) != 0 || (lost != lost_.end() && lost->second.count(hash) != 0)) continue;
    if (services_.server.offer(content.ref, content.path, content.offset)) now[hash] = name;
  }
  if (!is_damaged(name)) ids_.insert(item.ids.begin(), item.ids.end());
}

void CheckpointOffers::take(const Inventory& found) {
  const auto asked = [this](const std::string& name) {
    std::optional<MonotonicTime> latest;
    for (const Hash256& hash : contents_[name])
      if (const auto at = services_.server.asked(hash); at && (!latest || *at > *latest)) latest = at;
    return latest;
  };
  note_lost(found);
  offered_.update(found.newest_first, asked, found.room, services_.clock.monotonic_now());
  const std::set<std::string> names = offered_.names();
  holds_->set(names);
  ids_.clear();
  contents_.clear();
  Offered now;
  const auto offer_named = [&](const std::string& name) {
    const auto item = found.items.find(name);
    if (item == found.items.end()) return;
    offer(name, item->second, now);
    for (const Content& content : item->second.contents) contents_[name].push_back(content.ref.hash);
  };
  offer_named(offered_.newest());
  const auto newest = found.items.find(offered_.newest());
  if (newest != found.items.end() && !is_damaged(newest->first) &&
      services_.server.holds(newest->second.named.content.hash))
    services_.server.set_name(newest_checkpoint_name, newest->second.named);
  for (const std::string& name : names)
    if (name != offered_.newest()) offer_named(name);
  for (const std::string& name : found.imported) offer_named(name);
  for (const auto& [hash, name] : hashes_)
    if (now.count(hash) == 0) services_.server.withdraw(hash);
  hashes_ = std::move(now);
}

}  // namespace neuroshard::runtime
