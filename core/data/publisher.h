// `genesis build`: folders of text become a signed genesis dataset (docs/protocol/data.md): tokenizer.json,
// shard_{id}.pt, manifest.json and its signature, ready to be served as they are.
//
// The output depends only on the text and the settings, not on threads, places or
// interruptions. Bounded memory: text is streamed; a shard and a few pieces are held at a time.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "core/base/cancel.h"
#include "core/base/clock.h"
#include "core/base/expected.h"
#include "core/crypto/keys.h"
#include "core/data/dataset.h"
#include "core/data/manifest.h"
#include "core/storage/file_env.h"

namespace neuroshard::data {

// The public sources that a mainnet dataset is planned from; `genesis build` takes any text.
struct KnownSource {
  const char* name;
  std::uint32_t target_shards;
  bool active;
};
inline constexpr KnownSource known_sources[] = {
    {"FineWeb-Edu", 500'000, true}, {"FineWeb", 50'000, false}, {"RedPajama", 3'000, false},
    {"SlimPajama", 2'000, false},   {"C4", 1'000, false},
};

struct TextInput {
  std::string source;  // its name in the manifest
  std::string path;    // a file or a folder
};

struct PublishProgress {
  enum class Phase : std::uint8_t { Scanning, LearningMerges, Encoding, Finishing };
  Phase phase = Phase::Scanning;
  std::uint64_t done = 0;   // files, merges or bytes of text
  std::uint64_t total = 0;  // 0: not known
  std::uint64_t shards = 0;
  std::uint64_t tokens = 0;
};
std::string_view to_string(PublishProgress::Phase phase);

struct PublishOptions {
  std::vector<TextInput> inputs;  // each source once
  std::string output_directory;  // created when missing; empty, or an unfinished build with the same settings
  Bytes network_id;
  std::uint32_t vocabulary = 32'768;
  std::uint64_t shard_tokens = 2'500'000;
  std::uint64_t learning_bytes = 256ull << 20;  // of each source, to learn merges from
  std::uint32_t threads = 1;
  std::function<void(const PublishProgress&)> on_progress;  // on the calling thread
  CancelToken cancel;
};

struct PublishResult {
  std::uint64_t files = 0;
  std::uint64_t files_skipped = 0;
  std::uint64_t bytes = 0;
  std::uint64_t shards = 0;
  std::uint64_t shards_kept = 0;  // written by an earlier, interrupted run
  std::uint64_t train_tokens = 0;
  std::uint64_t held_out_tokens = 0;
  std::uint32_t vocabulary = 0;
  bool already_complete = false;  // this very build was finished before: nothing was done
};

// Killed at any moment, the same call goes on behind the last finished shard. AlreadyExists: the directory
// holds something else. InvalidArgument: settings or text changed since the interrupted run, with the remedy.
Expected<PublishResult> build_dataset(storage::FileEnv& env, const Clock& clock,
                                      const crypto::KeyPair& publisher, const PublishOptions& options);

struct VerifyReport {
  std::uint64_t shards = 0;
  std::uint64_t tokens = 0;
  std::uint64_t bytes = 0;
  std::uint64_t bad_shards = 0;
  std::vector<std::string> problems;  // the first few, one line each
};

// Loads every shard: size, SHA-256, tensor, number of tokens and their range. Manifest, signature, totals and
// tokenizer were checked when the dataset was opened. An error only when it could not go on (Cancelled,
// disk).
Expected<VerifyReport> verify_shards(
    Dataset& dataset, const CancelToken& cancel,
    const std::function<void(std::uint64_t done, std::uint64_t total)>& on_progress);

}  // namespace neuroshard::data
