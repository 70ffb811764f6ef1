#include "app/node/checkpoint_offers.h"

#include "app/node/checkpoint_fetch.h"
#include "core/checkpoint/catalogue.h"

namespace neuroshard::app {
namespace {

constexpr Duration period = std::chrono::seconds(10);
// The one before the newest, too: somebody may be fetching it.
constexpr std::size_t most = 2;

}  // namespace

CheckpointOffers::CheckpointOffers(Services services, std::string root)
    : services_(services), root_(std::move(root)) {
  look();
}

CheckpointOffers::Found CheckpointOffers::read(storage::FileEnv& files, const std::string& root) {
  Found found;
  const auto entries = checkpoint::Catalogue(files, root).list();
  if (!entries.ok()) return found;
  for (const checkpoint::Entry& entry : *entries) {
    if (found.checkpoints.size() >= most) break;
    if (!entry.complete()) continue;
    const std::string path = entry.path + "/manifest.json";
    const auto manifest = files.open_read(path);
    if (!manifest.ok()) continue;
    const exchange::ContentRef content{entry.manifest_hash, (*manifest)->size()};
    const ByteSpan name = as_bytes(std::string_view(entry.name));
    found.checkpoints.push_back(
        {to_hex(entry.manifest_hash), {entry.manifest.step, content, Bytes(name.begin(), name.end())}});
    found.files.push_back({content, path});
    for (const checkpoint::FileRecord& file : entry.manifest.files)
      found.files.push_back({{file.sha256, file.bytes}, entry.path + "/" + file.name});
  }
  return found;
}

void CheckpointOffers::look() {
  static_cast<void>(
      services_.disk.post([this, root = root_, &files = services_.files, &executor = services_.executor,
                           alive = std::weak_ptr<bool>(alive_)] {
        const auto found = std::make_shared<const Found>(read(files, root));
        static_cast<void>(executor.post([this, alive, found] {
          if (!alive.expired()) take(*found);
        }));
      }));
  timer_ = services_.executor.post_after(period, [this] { look(); });
}

void CheckpointOffers::take(const Found& found) {
  std::set<Hash256> now;
  for (const auto& [content, path] : found.files)
    if (services_.server.offer(content, path)) now.insert(content.hash);
  for (const Hash256& hash : offered_)
    if (now.count(hash) == 0) services_.server.withdraw(hash);
  offered_ = std::move(now);
  ids_.clear();
  for (const auto& [id, named] : found.checkpoints) ids_.insert(id);
  if (!found.checkpoints.empty())
    services_.server.set_name(newest_checkpoint_name, found.checkpoints.front().second);
}

}  // namespace neuroshard::app
