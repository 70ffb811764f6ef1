#include "core/engine/detail/data_view.h"

#include <utility>

#include "core/crypto/hash.h"
#include "core/engine/training_data.h"

namespace neuroshard::engine::detail {
namespace {

bool is_local(const data::ShardEntry& shard) {
  return shard.url.find("://") == std::string::npos;
}

}  // namespace

node::DataView describe_data(const config::DataDirectory& directory, storage::FileEnv& files,
                             const data::Dataset& dataset) {
  node::DataView view;
  const data::Manifest& manifest = dataset.manifest();
  const std::string folder = directory.data_path();
  const bool published =
      files.exists(folder + "/published") && !files.exists(folder + "/" + data::manifest_file_name);
  view.source = published ? directory.profile().directory.manifest_url : folder;
  if (const std::string trouble = dataset.trouble(); !trouble.empty()) view.source += " (" + trouble + ")";
  if (published) view.cache_limit_bytes = published_cache_bytes(directory);
  if (published) view.manifest = to_hex(crypto::sha256(data::encode_manifest(manifest)));
  view.shard_count = manifest.shards.size();
  for (const data::ShardEntry& shard : manifest.shards) {
    (shard.split == data::Split::Train ? view.train_tokens : view.held_out_tokens) += shard.tokens;
    const std::string path =
        published ? folder + "/published/shards/" + to_hex(shard.sha256) + ".pt" : folder + "/" + shard.url;
    const bool here = (published || is_local(shard)) && files.exists(path);
    if (here) view.cache_bytes += shard.size;
    if (view.shards.size() >= node::max_page) continue;
    node::ShardEntry entry;
    entry.index = shard.id;
    entry.name = shard.url;
    if (shard.split == data::Split::HeldOut) entry.name += " (held out)";
    entry.state = here ? "cached" : "missing";
    entry.tokens = shard.tokens;
    entry.bytes = shard.size;
    entry.hash = to_hex(shard.sha256);
    view.shards.push_back(std::move(entry));
  }
  view.vocabulary = dataset.tokenizer().vocab_size();
  view.merges = static_cast<std::uint32_t>(dataset.tokenizer().merges().size());
  view.tokenizer_hash = to_hex(manifest.tokenizer_hash);
  return view;
}

Expected<std::unique_ptr<data::Dataset>> open_own_text(const config::DataDirectory& directory,
                                                       storage::FileEnv& files) {
  data::ManifestTrust trust;
  trust.publisher = directory.node_key().public_key();
  const Hash256 network = directory.network_id();
  trust.network_id = Bytes(network.begin(), network.end());
  return data::open_local_dataset(files, directory.data_path(), trust);
}

}  // namespace neuroshard::engine::detail
