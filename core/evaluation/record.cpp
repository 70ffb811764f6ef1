#include "core/evaluation/record.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <nlohmann/json.hpp>

#include "core/base/utf8.h"

namespace neuroshard::evaluation {
namespace {

using nlohmann::json;
using nlohmann::ordered_json;

constexpr std::uint32_t version = 1;
constexpr int max_nesting = 4;

ordered_json side_json(const Side& side) {
  return {{"loss", side.loss}, {"bits_per_byte", side.bits_per_byte}, {"cloze_right", side.cloze_right}};
}

// Reads the members of a line; remembers whether one is missing or of another kind.
class Reader {
 public:
  void text(const json& object, const char* key, std::string* value) {
    const auto at = object.find(key);
    if (at == object.end() || !at->is_string() || at->get_ref<const std::string&>().size() > max_record_name)
      return fail();
    *value = at->get<std::string>();
  }
  template <class T>
  void number(const json& object, const char* key, T* value) {
    const auto at = object.find(key);
    if (at == object.end() || !at->is_number_unsigned()) return fail();
    const auto found = at->get<std::uint64_t>();
    if (found > std::uint64_t{std::numeric_limits<T>::max()}) return fail();
    *value = static_cast<T>(found);
  }
  void real(const json& object, const char* key, double* value) {
    const auto at = object.find(key);
    if (at == object.end() || !at->is_number()) return fail();
    *value = at->get<double>();
    if (!std::isfinite(*value)) fail();
  }
  const json& object(const json& outer, const char* key) {
    static const json nothing = json::object();
    const auto at = outer.find(key);
    if (at != outer.end() && at->is_object()) return *at;
    fail();
    return nothing;
  }
  void side(const json& object, Side* side) {
    real(object, "loss", &side->loss);
    real(object, "bits_per_byte", &side->bits_per_byte);
    number(object, "cloze_right", &side->cloze_right);
  }
  void fail() { ok_ = false; }
  bool ok() const { return ok_; }

 private:
  bool ok_ = true;
};

bool nested_too_deep(std::string_view line) {
  int depth = 0;
  for (const char c : line) {
    depth += c == '{' || c == '[';
    depth -= c == '}' || c == ']';
    if (depth > max_nesting) return true;
  }
  return false;
}

// Valid before it is cut: U+FFFD has more bytes than what it replaces.
std::string shortened(const std::string& name) {
  return valid_utf8(name, max_record_name);
}

}  // namespace

std::string to_json(const Record& r) {
  const ordered_json line = {
      {"version", version},
      {"at", to_unix_ms(r.at)},
      {"checkpoint", r.checkpoint},
      {"checkpoint_hash", r.checkpoint_hash},
      {"step", r.step},
      {"tokenizer_hash", r.tokenizer_hash},
      {"text",
       {{"name", shortened(r.text)},
        {"hash", r.text_hash},
        {"bytes", r.text_bytes},
        {"tokens", r.text_tokens}}},
      {"window", r.window},
      {"stride", r.stride},
      {"model", side_json(r.model)},
      {"baseline", side_json(r.baseline)},
      {"baseline_text", {{"name", shortened(r.baseline_text)}, {"hash", r.baseline_text_hash}}},
      {"cloze", {{"questions", r.cloze_questions}, {"choices", r.cloze_choices}, {"seed", r.cloze_seed}}}};
  return line.dump(-1, ' ', false, ordered_json::error_handler_t::replace);
}

Expected<Record> parse_record(std::string_view line) {
  const Error wrong = make_error(ErrorCode::Corrupt, "a line of evaluations.jsonl can't be read");
  if (line.size() > max_record_bytes || nested_too_deep(line)) return wrong;
  const json object = json::parse(line, nullptr, false);
  if (object.is_discarded() || !object.is_object()) return wrong;
  Reader reader;
  Record r;
  std::uint32_t written_version = 0;
  std::uint64_t at = 0;
  reader.number(object, "version", &written_version);
  reader.number(object, "at", &at);
  reader.text(object, "checkpoint", &r.checkpoint);
  reader.text(object, "checkpoint_hash", &r.checkpoint_hash);
  reader.number(object, "step", &r.step);
  reader.text(object, "tokenizer_hash", &r.tokenizer_hash);
  const json& text = reader.object(object, "text");
  reader.text(text, "name", &r.text);
  reader.text(text, "hash", &r.text_hash);
  reader.number(text, "bytes", &r.text_bytes);
  reader.number(text, "tokens", &r.text_tokens);
  reader.number(object, "window", &r.window);
  reader.number(object, "stride", &r.stride);
  reader.side(reader.object(object, "model"), &r.model);
  reader.side(reader.object(object, "baseline"), &r.baseline);
  const json& baseline = reader.object(object, "baseline_text");
  reader.text(baseline, "name", &r.baseline_text);
  reader.text(baseline, "hash", &r.baseline_text_hash);
  const json& cloze = reader.object(object, "cloze");
  reader.number(cloze, "questions", &r.cloze_questions);
  reader.number(cloze, "choices", &r.cloze_choices);
  reader.number(cloze, "seed", &r.cloze_seed);
  constexpr std::uint64_t last_ms = 253'402'300'799'999;  // of the year 9999
  if (!reader.ok() || written_version != version || at > last_ms) return wrong;
  r.at = WallTime(std::chrono::milliseconds(at));
  return r;
}

Expected<void> append_record(storage::FileEnv& env, const std::string& directory, const Record& record) {
  const std::string path = directory + "/" + record_file_name;
  std::string line = to_json(record) + "\n";
  if (env.exists(path)) {
    NS_ASSIGN_OR_RETURN(const auto file, env.open_read(path));
    std::uint8_t last = '\n';
    if (file->size() > 0) NS_RETURN_IF_ERROR(file->read_at(file->size() - 1, {&last, 1}));
    if (last != '\n') line.insert(line.begin(), '\n');  // the line before was torn
  }
  NS_ASSIGN_OR_RETURN(const auto out, env.open_append(path));
  NS_RETURN_IF_ERROR(out->append(as_bytes(line)));
  NS_RETURN_IF_ERROR(out->sync());
  return out->close();
}

Expected<Records> read_records(storage::FileEnv& env, const std::string& directory) {
  const std::string path = directory + "/" + record_file_name;
  Records records;
  if (!env.exists(path)) return records;
  NS_ASSIGN_OR_RETURN(const auto file, env.open_read(path));
  const std::uint64_t bytes = std::min(file->size(), max_record_file_bytes);
  Bytes content(static_cast<std::size_t>(bytes));
  NS_RETURN_IF_ERROR(file->read_at(file->size() - bytes, content));
  std::string_view rest = as_text(content);
  // The first line of a part is rarely whole.
  if (bytes < file->size()) rest.remove_prefix(std::min(rest.find('\n'), rest.size() - 1) + 1);
  while (!rest.empty()) {
    const std::size_t end = std::min(rest.find('\n'), rest.size());
    const std::string_view line = rest.substr(0, end);
    rest.remove_prefix(std::min(end + 1, rest.size()));
    if (line.empty()) continue;
    Expected<Record> record = parse_record(line);
    if (record.ok())
      records.newest.push_back(std::move(*record));
    else
      ++records.unreadable;
  }
  std::reverse(records.newest.begin(), records.newest.end());
  return records;
}

}  // namespace neuroshard::evaluation
