#include "core/engine/detail/data_view.h"

#include <algorithm>
#include <utility>

#include "core/crypto/hash.h"
#include "core/engine/training_data.h"

namespace neuroshard::engine::detail {
namespace {

static_assert(node::first_own_shard == data::first_own_shard);

bool is_local(const data::ShardEntry& shard) {
  return shard.url.find("://") == std::string::npos;
}

// SHA-256 of the manifest that the publisher signed: without the node's own shards.
std::string manifest_hash(data::Manifest manifest) {
  const auto own = std::find_if(manifest.shards.begin(), manifest.shards.end(),
                                [](const data::ShardEntry& shard) { return data::is_own_shard(shard.id); });
  manifest.shards.erase(own, manifest.shards.end());
  return to_hex(crypto::sha256(data::encode_manifest(manifest)));
}

std::string name_of(const data::ShardEntry& shard) {
  std::string name = shard.url;
  if (data::is_own_shard(shard.id)) name += " (own text)";
  if (shard.split == data::Split::HeldOut) name += " (held out)";
  return name;
}

}  // namespace

node::DataView describe_data(const config::DataDirectory& directory, storage::FileEnv& files,
                             const data::Dataset& dataset) {
  node::DataView view;
  const data::Manifest& manifest = dataset.manifest();
  const std::string folder = directory.data_path();
  const bool published = has_publisher(directory);
  view.source = published ? directory.profile().directory.manifest_url : folder;
  if (const std::string trouble = dataset.trouble(); !trouble.empty()) view.source += " (" + trouble + ")";
  if (published) view.cache_limit_bytes = published_cache_bytes(directory);
  if (published) view.manifest = manifest_hash(manifest);
  view.shard_count = manifest.shards.size();
  for (const data::ShardEntry& shard : manifest.shards) {
    (shard.split == data::Split::Train ? view.train_tokens : view.held_out_tokens) += shard.tokens;
    const bool cached = published && !data::is_own_shard(shard.id);
    const std::string path =
        cached ? folder + "/published/shards/" + to_hex(shard.sha256) + ".pt" : folder + "/" + shard.url;
    const bool here = (cached || is_local(shard)) && files.exists(path);
    if (here) view.cache_bytes += shard.size;
    if (view.shards.size() >= node::max_page) continue;
    node::ShardEntry entry;
    entry.index = shard.id;
    entry.name = name_of(shard);
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

}  // namespace neuroshard::engine::detail
