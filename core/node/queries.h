// Answers of queries: series, logs, checkpoints, the layer map, data, settings.
// Plain values, paged and bounded.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "core/base/clock.h"
#include "core/base/log.h"

namespace neuroshard::node {

inline constexpr std::size_t max_series_buckets = 4096;  // twice the pixels that a chart has
inline constexpr std::size_t max_page = 500;             // entries of one page
inline constexpr std::size_t max_slots = 16'384;     // of a layer map or a table of experts; the first ones
inline constexpr std::uint32_t max_layers = 1024;    // of a model, as its profile may have them
inline constexpr std::uint32_t max_experts = 1024;   // of a layer, likewise
inline constexpr std::size_t max_token_text = 4096;  // bytes of text that query_tokens takes apart

// A series by name ("loss", "val_loss", "tokens_per_s", …) over [from, to), by training step.
struct SeriesQuery {
  std::string name;
  std::uint64_t from_step = 0;
  std::uint64_t to_step = 0;  // 0 = to the end
  std::size_t buckets = 0;    // at most this many; 1 … max_series_buckets
};
struct SeriesBucket {
  std::uint64_t first_step = 0;
  std::uint64_t width = 1;  // steps
  std::uint64_t count = 0;  // values in it
  double least = 0, most = 0, mean = 0;
};
struct Series {
  std::string name;
  std::vector<SeriesBucket> buckets;  // ascending, without empty ones
};

struct LogQuery {
  std::uint64_t after = 0;  // sequence number of the last record seen; 0 = from the oldest kept
  std::size_t limit = 100;
  LogLevel least = LogLevel::Info;
};
struct LogEntry {
  std::uint64_t sequence = 0;
  WallTime at{};
  LogRecord record;
};
struct LogPage {
  std::vector<LogEntry> entries;  // ascending
  std::uint64_t next = 0;         // `after` of the following page; below the query's: the log was set back
  bool more = false;
  std::uint64_t dropped = 0;  // records between `after` and the first entry that are not kept any more
};

struct CheckpointQuery {
  std::string after;  // name of the last one seen; empty = from the newest
  std::size_t limit = 100;
};
struct CheckpointEntry {
  std::string name;
  std::uint64_t step = 0;
  WallTime at{};
  std::uint64_t bytes = 0;
  std::optional<double> loss;  // training; nats per token
  std::optional<double> held_out_loss;
  bool pinned = false;
  bool complete = true;
  std::string hash;                     // hex, of the manifest; empty for an incomplete one
  std::optional<WallTime> verified_at;  // when all its bytes were last checked (by this program), and
  std::optional<bool> intact;           // what that found; unknown = never checked since it was written
  std::string parent;                   // the save it went on from; empty = the first, or unknown
};
struct CheckpointPage {
  std::vector<CheckpointEntry> entries;  // newest first
  bool more = false;
};

// A policy for removing checkpoints. The newest, pinned ones, and those that an undo needs always stay.
struct PrunePolicy {
  std::uint32_t keep_newest = 5;
  std::uint32_t keep_every_steps = 0;  // besides: one for each so many steps; 0 = none
  std::uint32_t keep_best = 1;         // besides: the lowest held-out losses
};
struct PrunePreview {
  std::vector<std::string> remove;  // names, oldest first
  std::uint64_t bytes = 0;          // that become free
  std::uint32_t kept = 0;
};

// Two checkpoints side by side.
struct SlotDistance {
  std::string slot;     // "embed", "layer 3", "expert 3.5", "head"
  double distance = 0;  // Euclidean norm of the difference of the weights
  double relative = 0;  // the same over the norm of the first one's weights
  double cosine = 0;    // of the two weight vectors
};
struct CheckpointComparison {
  CheckpointEntry first, second;
  std::vector<SlotDistance> slots;    // in the order of the model; max_page at most
  double distance = 0, relative = 0;  // over all weights
};
struct VerifyResult {
  std::string name;
  bool intact = false;
  std::string problem;  // what is wrong and where; empty = intact
  std::uint64_t bytes = 0;
};
struct ImportResult {
  std::string name;  // of the new checkpoint in the catalogue
};
struct GenerateResult {
  std::uint32_t prompt_tokens = 0, tokens = 0;
  double prompt_seconds = 0, seconds = 0;
  std::string stopped_by;  // "length", "end of text", "stop sequence", "cancelled"
  std::uint64_t step = 0;  // of the model that answered
  // Asked for with GenerateRequest::embedding: the mean of the last hidden states, after the final norm, over the
  // prompt's tokens, scaled to length 1. As wide as the model.
  std::vector<float> embedding{};
};
using CommandResult =
    std::variant<std::monostate, CheckpointComparison, VerifyResult, ImportResult, GenerateResult>;

// Slots of the model: the layer map.
struct SlotEntry {
  std::string name;  // "embed", "layer 3", "expert 3.5", "head"
  std::string kind;  // "embed", "layer", "expert", "head"
  std::uint32_t layer = 0, expert = 0;
  std::uint64_t parameters = 0, bytes = 0;  // bytes: what holding it takes here (weights, gradients, moments)
  bool mine = false;
  std::optional<std::uint32_t> replicas;  // nodes that hold it; unknown before the rounds' members are known
};

// Router load: how many of the tokens each expert got lately (exponential mean over about 20 steps). Share, bias
// and tokens are known of experts that are held here.
struct ExpertLoad {
  std::uint32_t layer = 0, expert = 0;
  double share = 0;  // of the assignments of its layer; an even load is 1 / experts
  double bias = 0;   // of the router, for balance
  bool mine = false;
  std::optional<std::uint32_t> replicas;
  std::uint64_t tokens = 0;  // assignments since the model is held by this process
};

// Where the training text comes from.
// A node's own shards beside published ones have indexes from here on.
inline constexpr std::uint64_t first_own_shard = std::uint64_t{1} << 31;
struct ShardEntry {
  std::uint64_t index = 0;
  std::string name, state;  // "cached" (its file is on this disk) or "missing"
  std::uint64_t tokens = 0, bytes = 0;
  bool in_use = false;  // training reads it now
  std::string hash;
};
struct DataView {
  std::string source;    // folder, file or dataset
  std::string manifest;  // its id; empty for local text
  std::uint64_t train_tokens = 0, held_out_tokens = 0, text_bytes = 0, cache_bytes = 0;
  std::uint64_t cache_limit_bytes = 0;  // of published data; 0 = no limit
  std::uint64_t tokens_seen = 0;        // by this model
  double epochs = 0;                    // tokens_seen over train_tokens
  std::uint32_t vocabulary = 0, merges = 0;
  std::string tokenizer_hash;
  double bytes_per_token = 0;      // of the training text; 0 = unknown
  std::vector<ShardEntry> shards;  // the first max_page of shard_count
  std::uint64_t shard_count = 0;
};
// A text as the model sees it.
struct TokenPiece {
  std::uint32_t id = 0;
  std::string text;  // bytes of the token; may be part of a UTF-8 character
};

struct SettingEntry {
  std::string name, value, default_value, type, help, choices, origin;
  std::string title;        // short, for a form: "Memory limit"
  std::string group;        // "Limits", "Schedule", "Power", "Training", "Storage", "Network", "Appearance",
                            // "Notifications", "Advanced"
  std::string unit;         // "MiB", "s", ""
  bool at_restart = false;  // takes effect at the next start of the core
  std::uint64_t least = 0, most = 0;
  bool locked = false;  // forced by a flag or the environment
};

}  // namespace neuroshard::node
