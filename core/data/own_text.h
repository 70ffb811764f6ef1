// The text of this node's person under another tokenizer: nodes of one network share a tokenizer, and text that
// was encoded before the node joined has its own (docs/protocol/data.md).
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>

#include "core/base/cancel.h"
#include "core/base/clock.h"
#include "core/base/expected.h"
#include "core/crypto/keys.h"
#include "core/data/dataset.h"
#include "core/storage/file_env.h"

namespace neuroshard::data {

struct OwnTextPlace {
  std::string directory;  // the node's D/data
  Bytes network_id;       // empty without a network
  std::uint64_t shard_tokens = 2'500'000;
};

// Makes a tokenizer that of the node's own text. Shards of another one are decoded and encoded again: the text itself
// need not be there any more. False: nothing changed. on_progress: tokens read, and all of them; on this thread.
// Killed at any moment, the directory keeps its last complete state, and the next call goes on.
// Errors: Corrupt (tokenizer_file, or the shards), Cancelled, those of the disk.
Expected<bool> use_tokenizer(storage::FileEnv& env, const Clock& clock, const crypto::KeyPair& node_key,
                             const OwnTextPlace& place, ByteSpan tokenizer_file,
                             const std::function<void(std::uint64_t done, std::uint64_t total)>& on_progress,
                             const CancelToken& cancel);

// The node's own shards, with ids from first_own_shard on. NotFound: it has none.
Expected<std::unique_ptr<Dataset>> open_own_text(storage::FileEnv& env, const std::string& directory,
                                                 const ManifestTrust& trust);

// Published and own shards as one dataset, with the manifest of both. Both have one tokenizer.
// InvalidArgument: they have two, or an id of a published shard is not below first_own_shard.
Expected<std::unique_ptr<Dataset>> join_datasets(std::unique_ptr<Dataset> published,
                                                 std::unique_ptr<Dataset> own);

}  // namespace neuroshard::data
