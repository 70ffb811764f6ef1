#include "core/data/manifest_store.h"

#include <fmt/format.h>

#include <set>
#include <vector>

#include "core/crypto/hash.h"
#include "core/data/shard_file.h"

namespace neuroshard::data {
namespace {

constexpr const char* pending_suffix = ".new";
constexpr std::uint64_t max_signature_bytes = 4096;

}  // namespace

Expected<void> check_manifest_size(std::uint64_t bytes, std::uint64_t most) {
  if (bytes <= most) return {};
  return make_error(ErrorCode::Exhausted,
                    fmt::format("the list of shards and texts would have {} bytes; at most {} are accepted; "
                                "join small files into larger ones",
                                bytes, most));
}

Expected<void> keep_pending_manifest(storage::FileEnv& env, const std::string& directory,
                                     const ManifestTrust& trust) {
  const std::string path = directory + "/" + manifest_file_name;
  if (!env.exists(path + pending_suffix)) return {};
  const auto bytes = storage::read_file(env, path + pending_suffix, max_manifest_bytes);
  const auto signature =
      storage::read_file(env, directory + "/" + manifest_signature_file_name, max_signature_bytes);
  if (!bytes.ok() || !signature.ok() || !open_manifest(*bytes, *signature, trust).ok()) return {};
  NS_RETURN_IF_ERROR(env.rename(path + pending_suffix, path));
  return env.sync_directory(directory);
}

Expected<void> store_manifest(storage::FileEnv& env, const std::string& directory, const Manifest& manifest,
                              const crypto::KeyPair& key) {
  const std::string path = directory + "/" + manifest_file_name;
  const std::string signature_path = directory + "/" + manifest_signature_file_name;
  const Bytes bytes = encode_manifest(manifest);
  NS_RETURN_IF_ERROR(check_manifest_size(bytes.size()));
  NS_RETURN_IF_ERROR(keep_pending_manifest(env, directory, {key.public_key(), manifest.network_id}));
  const Bytes signature = encode_manifest_signature(sign_manifest(key, manifest, bytes));
  // Signature before manifest: whoever finds a new signature finds the new manifest under the pending name.
  NS_RETURN_IF_ERROR(storage::write_file_atomic(env, path + pending_suffix, bytes, true));
  NS_RETURN_IF_ERROR(storage::write_file_atomic(env, signature_path, signature, true));
  NS_RETURN_IF_ERROR(env.rename(path + pending_suffix, path));
  return env.sync_directory(directory);
}

Expected<Manifest> load_manifest(storage::FileEnv& env, const std::string& directory,
                                 const ManifestTrust& trust) {
  const std::string path = directory + "/" + manifest_file_name;
  const std::string signature_path = directory + "/" + manifest_signature_file_name;
  const bool pending = env.exists(path + pending_suffix);
  if (!env.exists(path) && !pending) {
    return make_error(ErrorCode::NotFound, fmt::format("{} not found in {}", manifest_file_name, directory));
  }
  // Before its first signature, a directory holds nothing.
  if (!env.exists(signature_path) && !env.exists(path)) {
    return make_error(ErrorCode::NotFound, fmt::format("signed manifest not found in {}", directory));
  }
  NS_ASSIGN_OR_RETURN(const Bytes signature, storage::read_file(env, signature_path, max_signature_bytes));
  Expected<Manifest> manifest = make_error(ErrorCode::NotFound, "");
  if (env.exists(path)) {
    NS_ASSIGN_OR_RETURN(const Bytes bytes, storage::read_file(env, path, max_manifest_bytes));
    manifest = open_manifest(bytes, signature, trust);
  }
  if (!manifest.ok() && pending) {
    NS_ASSIGN_OR_RETURN(const Bytes bytes,
                        storage::read_file(env, path + pending_suffix, max_manifest_bytes));
    auto other = open_manifest(bytes, signature, trust);
    if (other.ok() || manifest.error().code == ErrorCode::NotFound) manifest = std::move(other);
  }
  if (!manifest.ok()) return std::move(manifest).error().with_context(path);
  return manifest;
}

void remove_unlisted_shards(storage::FileEnv& env, const std::string& directory, const ManifestTrust& trust) {
  const auto manifest = load_manifest(env, directory, trust);
  if (!manifest.ok()) {
    if (manifest.error().code != ErrorCode::NotFound) return;
    // A manifest may still list them: one of its two files is lost.
    for (const char* const name : {manifest_file_name, manifest_signature_file_name})
      if (env.exists(directory + "/" + name)) return;
  }
  std::set<std::string> listed;
  if (manifest.ok())
    for (const ShardEntry& shard : manifest->shards) listed.insert(shard.url);
  const auto files = env.list(directory);
  if (!files.ok()) return;
  std::vector<std::string> unlisted;
  for (const storage::DirectoryEntry& file : *files)
    if (!file.is_directory && is_shard_file_name(file.name) && listed.count(file.name) == 0)
      unlisted.push_back(file.name);
  // A power cut must not bring back an older manifest, whose shards are gone.
  if (unlisted.empty() || !env.sync_directory(directory).ok()) return;
  for (const std::string& name : unlisted) (void)env.remove_file(directory + "/" + name);
}

std::string pending_tokenizer_path(const std::string& directory) {
  return directory + "/" + tokenizer_file_name + pending_suffix;
}

Expected<std::shared_ptr<const Tokenizer>> load_tokenizer(storage::FileEnv& env, const std::string& directory,
                                                          const Manifest& manifest) {
  std::string path = directory + "/" + tokenizer_file_name;
  const std::string pending = pending_tokenizer_path(directory);
  auto bytes = storage::read_file(env, path, max_tokenizer_file_bytes);
  const auto is_right = [&] { return bytes.ok() && crypto::sha256(*bytes) == manifest.tokenizer_hash; };
  if (!is_right() && env.exists(pending)) {
    path = pending;
    bytes = storage::read_file(env, path, max_tokenizer_file_bytes);
  }
  if (!bytes.ok()) return std::move(bytes).error();
  if (!is_right()) {
    return make_error(ErrorCode::Corrupt,
                      fmt::format("{} is not the tokenizer that the signed manifest names", path));
  }
  auto tokenizer = parse_tokenizer(*bytes);
  if (!tokenizer.ok()) return std::move(tokenizer).error().with_context(path);
  return std::shared_ptr<const Tokenizer>(std::make_shared<Tokenizer>(std::move(tokenizer).value()));
}

}  // namespace neuroshard::data
