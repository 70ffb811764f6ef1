// manifest.json of a checkpoint (docs/protocol/checkpoints.md): what was trained, by whom, how far, and the
// hashes of the files beside it. Canonical JSON: what parse_manifest accepts re-encodes to the same bytes, so
// a changed byte is either refused by the parser or breaks the signature. Format version 1; a newer one is
// refused with a clear word.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "core/base/bytes.h"
#include "core/base/clock.h"
#include "core/base/expected.h"
#include "core/base/rng.h"
#include "core/compute/model_shape.h"
#include "core/compute/slot.h"
#include "core/crypto/keys.h"

namespace neuroshard::checkpoint {

inline constexpr std::uint32_t manifest_format = 1;
// Bounds: checked before anything is allocated.
inline constexpr std::size_t max_manifest_bytes = 4u << 20;
inline constexpr std::size_t max_state_bytes = 1u << 20;  // of each opaque state text
inline constexpr std::size_t max_files = 16;
inline constexpr std::size_t max_short_text = 256;
// The manifest of an imported checkpoint as it came, beside the one that this node signed.
inline constexpr const char* original_manifest_file = "original.json";

struct FileRecord {
  std::string name;  // a plain file name
  std::uint64_t bytes = 0;
  Hash256 sha256{};
};

// Nats per token, by split (docs/protocol/data.md: losses say which split). Absent: not measured, or not
// finite.
struct Losses {
  std::optional<double> training;
  std::optional<double> held_out;
};

// The bytes that this run wrote on one UTC day, for the daily write budget across restarts.
struct DailyWrites {
  std::int64_t day = 0;  // days since 1970-01-01
  std::uint64_t bytes = 0;
};

struct Manifest {
  // Counts saves in this data directory: the highest is the newest, also after going back to an earlier step.
  // The writer sets it and parent. 0: imported, never the newest by itself.
  std::uint64_t sequence = 0;
  std::string parent;  // name of the checkpoint before it in this run, "" for the first
  std::string origin;  // "" or where it was imported from, for a person

  std::string wallet;  // wallet id, 16 hex characters, or ""
  Hash256 instance{};  // node id of the signing node; the writer sets it
  Hash256 network_id{};
  compute::ModelShape architecture;
  std::uint32_t architecture_version = 0;
  std::vector<compute::SlotId> slots;

  std::uint64_t step = 0;
  std::uint64_t round = 0;
  std::uint64_t inner_step = 0;
  std::uint64_t tokens_seen = 0;
  std::uint32_t micro_batch = 0;
  Rng::State rng{};
  std::string loader_position;  // opaque text of core/data
  std::string trainer_state;    // opaque text of the engine
  Losses losses;
  WallTime saved_at{};
  DailyWrites written_today;  // this save included

  std::vector<FileRecord> files;  // the writer fills them in
  crypto::PublicKey node_key{};
  crypto::Signature signature{};

  std::uint64_t file_bytes() const;
  const FileRecord* file(const std::string& name) const;
};

// Sets instance and node_key, signs, and gives the bytes of manifest.json.
Bytes sign_and_encode(Manifest& manifest, const crypto::KeyPair& node_key);
// Structure, bounds and canonical form; not the signature. Errors: Corrupt, Unsupported (newer), Exhausted (a
// bound).
Expected<Manifest> parse_manifest(ByteSpan bytes);
// The node key signed exactly this manifest, and the instance is that key's node id.
Expected<void> verify_signature(const Manifest& manifest);

// "{step, ten digits}-{first 8 hex digits of the SHA-256 of manifest.json}": sorts by step.
std::string folder_name(std::uint64_t step, ByteSpan manifest_bytes);
bool is_folder_name(const std::string& name);

}  // namespace neuroshard::checkpoint
