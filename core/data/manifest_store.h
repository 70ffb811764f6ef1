// A signed manifest and its tokenizer in a directory. Two files can't be replaced in one instant, so the new
// pair is written beside the old one first; a reader that finds the pair half replaced takes the other half
// from there.
#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include "core/base/expected.h"
#include "core/data/manifest.h"
#include "core/data/tokenizer.h"
#include "core/storage/file_env.h"

namespace neuroshard::data {

// Exhausted: the encoded manifest is larger than a reader accepts.
Expected<void> check_manifest_size(std::uint64_t bytes, std::uint64_t most = max_manifest_bytes);
// Killed at any moment, load_manifest finds the old or the new manifest.
Expected<void> store_manifest(storage::FileEnv& env, const std::string& directory, const Manifest& manifest,
                              const crypto::KeyPair& key);
// To be called before a manifest is written under the pending name: a stop of an earlier store_manifest() may
// have left the only manifest of the present signature there. It gets its own name.
Expected<void> keep_pending_manifest(storage::FileEnv& env, const std::string& directory,
                                     const ManifestTrust& trust);
// NotFound: there is no manifest. Otherwise as open_manifest.
Expected<Manifest> load_manifest(storage::FileEnv& env, const std::string& directory,
                                 const ManifestTrust& trust);
// Removes shards that the directory's manifest does not list: an import that failed, was stopped or was killed
// left them. Nothing is removed where the manifest can't be read. Best effort.
void remove_unlisted_shards(storage::FileEnv& env, const std::string& directory, const ManifestTrust& trust);

// Where a tokenizer waits for the manifest that names it: tokenizer.json is replaced after the manifest.
std::string pending_tokenizer_path(const std::string& directory);
// The directory's tokenizer that the manifest names. Corrupt: it has none.
Expected<std::shared_ptr<const Tokenizer>> load_tokenizer(storage::FileEnv& env, const std::string& directory,
                                                          const Manifest& manifest);

}  // namespace neuroshard::data
