// evaluations.jsonl of a data directory: one line of JSON for each evaluation, the newest last. A line is appended at once, so
// a command may add one beside a running core. A line that can't be read (a power cut, a newer version) is left out.
//
// Keys: version (1), at (ms since 1970), checkpoint, checkpoint_hash, step, tokenizer_hash, text {name, hash, bytes, tokens},
// window, stride, model and baseline {loss, bits_per_byte, cloze_right}, baseline_text {name, hash}, cloze {questions, choices, seed}.
// loss: nats per token. Hashes: SHA-256, hexadecimal.  Threads: any.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "core/base/clock.h"
#include "core/base/expected.h"
#include "core/storage/file_env.h"

namespace neuroshard::evaluation {

inline constexpr const char* record_file_name = "evaluations.jsonl";
inline constexpr std::uint64_t max_record_file_bytes = std::uint64_t{8} << 20;  // of a longer file the newest
inline constexpr std::size_t max_record_bytes = 4096;                           // one line
inline constexpr std::size_t max_record_name = 200;                             // bytes of a name

struct Side {
  double loss = 0, bits_per_byte = 0;
  std::uint32_t cloze_right = 0;
};
struct Record {
  WallTime at{};
  std::string checkpoint, checkpoint_hash;
  std::uint64_t step = 0;
  std::string tokenizer_hash;
  std::string text, text_hash;
  std::uint64_t text_bytes = 0, text_tokens = 0;
  std::uint32_t window = 0, stride = 0;
  Side model, baseline;
  std::string baseline_text, baseline_text_hash;
  std::uint32_t cloze_questions = 0, cloze_choices = 0;
  std::uint64_t cloze_seed = 0;
};

// One line, without its end.
std::string to_json(const Record& record);
// Corrupt: not such a line. Any text is safe.
Expected<Record> parse_record(std::string_view line);

// directory: of the data. Longer names are cut.
Expected<void> append_record(storage::FileEnv& env, const std::string& directory, const Record& record);

struct Records {
  std::vector<Record> newest;    // first
  std::uint64_t unreadable = 0;  // lines
};
// None yet: empty.
Expected<Records> read_records(storage::FileEnv& env, const std::string& directory);

}  // namespace neuroshard::evaluation
