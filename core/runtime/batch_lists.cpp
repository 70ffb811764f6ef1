#include "core/runtime/batch_lists.h"

#include <fmt/format.h>

#include <algorithm>

#include "core/crypto/hash.h"
#include "core/data/batch_list.h"

namespace neuroshard::runtime {
namespace {

constexpr std::size_t disk_queue = 64;

Expected<Hash256> hash_in(const std::string& name) {
  return hash_from_hex(name.substr(std::min(name.size(), name.find('-') + 1)));
}

}  // namespace

std::string batch_list_name(std::uint64_t round, const Hash256& hash) {
  return fmt::format("{:010}-{}", round, to_hex(hash));
}

BatchLists::BatchLists(Services services, std::string folder, const Hash256& network)
    : services_(services),
      folder_(std::move(folder)),
      network_(network),
      node_(std::make_shared<net::Mailbox>(services.node)),
      disk_(make_thread_executor("ns-batches", disk_queue)) {
  static_cast<void>(disk_->post([this] { offer_kept(); }));
}

BatchLists::~BatchLists() = default;

void BatchLists::keep(std::uint64_t round, const Hash256& opening, Bytes batches,
                      std::function<void(const Hash256&)> done) {
  auto answer = [this, done = std::move(done)](const Expected<Hash256>& kept) {
    if (!kept.ok())
      services_.logger.warning("rounds", "this contribution names no batches: " + kept.error().describe());
    node_->put([done, hash = kept.ok() ? *kept : Hash256{}] { done(hash); });
  };
  const bool posted = disk_->post([this, round, opening, batches = std::move(batches), answer] {
    answer(write(round, opening, batches));
    drop_old();
  });
  if (!posted) answer(make_error(ErrorCode::Busy, "the disk is too slow"));
}

Expected<Hash256> BatchLists::write(std::uint64_t round, const Hash256& opening, ByteSpan batches) {
  data::BatchList list;
  NS_ASSIGN_OR_RETURN(list.work, data::decode_batch_work(batches));
  list.network = network_;
  list.opening = opening;
  list.round = round;
  data::sign_batch_list(list, services_.key);
  const Bytes bytes = data::encode_batch_list(list);
  if (bytes.size() > data::max_batch_list_bytes)
    return make_error(ErrorCode::Exhausted, "the list of its batches is too long");
  const Hash256 hash = crypto::sha256(bytes);
  const std::string name = batch_list_name(round, hash);
  NS_RETURN_IF_ERROR(services_.files.create_directories(folder_));
  NS_RETURN_IF_ERROR(storage::write_file_atomic(services_.files, folder_ + "/" + name, bytes));
  offer(hash, bytes.size(), name);
  return hash;
}

void BatchLists::offer(const Hash256& hash, std::uint64_t size, const std::string& name) {
  if (services_.peers == nullptr) return;
  data::PeerFile file;
  file.sha256 = hash;
  file.size = file.max_bytes = size;
  file.path = folder_ + "/" + name;
  services_.peers->offer(file);
}

// A file that is not what its name says is of no use to others: they check its hash.
void BatchLists::offer_kept() {
  if (!services_.files.exists(folder_)) return;
  const auto entries = services_.files.list(folder_);
  if (!entries.ok()) return;
  for (const storage::DirectoryEntry& entry : *entries) {
    const auto hash = hash_in(entry.name);
    const auto bytes =
        storage::read_file(services_.files, folder_ + "/" + entry.name, data::max_batch_list_bytes);
    if (hash.ok() && bytes.ok() && crypto::sha256(*bytes) == *hash) offer(*hash, bytes->size(), entry.name);
  }
}

void BatchLists::drop_old() {
  const auto entries = services_.files.list(folder_);
  if (!entries.ok() || entries->size() <= kept_batch_lists) return;
  for (std::size_t i = 0; i + kept_batch_lists < entries->size(); ++i) {
    const std::string& name = (*entries)[i].name;
    static_cast<void>(services_.files.remove_file(folder_ + "/" + name));
    const auto hash = hash_in(name);
    if (hash.ok() && services_.peers != nullptr) services_.peers->withdraw(*hash);
  }
}

}  // namespace neuroshard::runtime
