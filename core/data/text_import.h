// People's own text (docs/protocol/data.md): a file or a folder becomes shards of the source "user" in the
// node's data directory, with the last 10 % of each file held out, listed in a manifest that the node key
// signs.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "core/base/cancel.h"
#include "core/base/clock.h"
#include "core/base/expected.h"
#include "core/base/log.h"
#include "core/crypto/keys.h"
#include "core/data/manifest.h"
#include "core/storage/file_env.h"

namespace neuroshard::data {

// Shown to the person before anything is used.
struct TextSummary {
  std::uint64_t files = 0;           // text files
  std::uint64_t bytes = 0;           // in them
  std::uint64_t skipped_binary = 0;  // not UTF-8 text
  std::uint64_t skipped_empty = 0;
  std::uint64_t skipped_unreadable = 0;       // no permission, or neither file nor folder
  std::vector<std::string> skipped_examples;  // a few of their paths
  std::string sample;                         // the beginning of the first text, valid UTF-8
};

struct ImportProgress {
  enum class Phase : std::uint8_t { Scanning, LearningMerges, Encoding, Finishing };
  Phase phase = Phase::Scanning;
  std::uint64_t done = 0;   // files, merges or bytes
  std::uint64_t total = 0;  // 0: not known
};
std::string_view to_string(ImportProgress::Phase phase);

// A tokenizer that others get shows frequent words of the text. With this frequency, rare ones are not in it.
inline constexpr std::uint64_t shared_tokenizer_frequency = 16;

struct ImportOptions {
  std::string path;            // the text
  std::string data_directory;  // the node's D/data; created when missing
  std::uint32_t sequence = 256;
  std::uint32_t vocabulary = 4096;    // of a tokenizer learned here, when the directory has none
  std::uint64_t least_frequency = 2;  // of a pair of tokens that becomes a token of it
  std::uint64_t shard_tokens = 2'500'000;
  std::uint32_t threads = 1;
  Bytes network_id;                                        // empty without a network
  std::uint64_t manifest_bytes = max_manifest_bytes;       // at most, before anything is encoded
  std::function<void(const ImportProgress&)> on_progress;  // on the calling thread
  CancelToken cancel;
};

struct ImportResult {
  std::uint64_t files_added = 0;
  std::uint64_t files_known = 0;  // imported before, by content: nothing was done for them
  TextSummary summary;
  std::uint64_t bytes_added = 0;
  std::uint64_t train_tokens_added = 0;
  std::uint64_t held_out_tokens_added = 0;
  std::uint64_t shards_added = 0;
  bool tokenizer_learned = false;
  std::uint32_t vocabulary = 0;
  // True when anything was added.
  bool changed() const { return shards_added != 0; }
};

// Adds the text that is not held yet. The same text again changes nothing; new or changed files add shards.
// A file that has grown adds only what was appended, so that its held-out end stays held out; a file changed
// in any other way (or below 1 KiB) counts as a new text.
// Killed at any moment, the directory keeps its last complete state; the next call removes shards that no
// manifest lists. A call that fails or is cancelled leaves none. InvalidArgument when the new text is too small
// for one sequence and nothing else is there: says how much is needed. Exhausted: too many files, before
// anything is encoded. A file that disappears meanwhile is left out and counts as unreadable. When its
// folder disappears, too, or its disk reports an error, the call fails: later all of the text may be there.
Expected<ImportResult> import_text(storage::FileEnv& env, const Clock& clock, const crypto::KeyPair& node_key,
                                   const ImportOptions& options);

}  // namespace neuroshard::data
