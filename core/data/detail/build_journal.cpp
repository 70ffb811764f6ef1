#include "core/data/detail/build_journal.h"

#include <string_view>

#include "core/data/detail/json_fields.h"
#include "core/data/shard_file.h"

namespace neuroshard::data::detail {
namespace {

using nlohmann::json;

constexpr std::uint64_t max_plan_bytes = 1u << 20;
constexpr std::uint64_t max_journal_bytes = 1ull << 30;
constexpr std::uint64_t max_line_bytes = 4096;

std::string to_line(const FinishedShard& shard) {
  const json line = {{"id", shard.entry.id},
                     {"size", shard.entry.size},
                     {"sha256", to_hex(shard.entry.sha256)},
                     {"tokens", shard.entry.tokens},
                     {"source", shard.entry.source},
                     {"held_out", shard.entry.split == Split::HeldOut},
                     {"stream", shard.stream},
                     {"document", shard.position.document},
                     {"offset", shard.position.offset},
                     {"skip", shard.position.skip_tokens}};
  return line.dump() + "\n";
}

Expected<FinishedShard> parse_line(std::string_view text) {
  NS_ASSIGN_OR_RETURN(const json line, parse_object(as_bytes(text), max_line_bytes, "done.jsonl"));
  const Fields fields(line, "done.jsonl");
  FinishedShard shard;
  NS_ASSIGN_OR_RETURN(const std::uint64_t id, fields.number("id", 0xffffffffu));
  shard.entry.id = static_cast<ShardId>(id);
  shard.entry.url = shard_file_name(shard.entry.id);
  NS_ASSIGN_OR_RETURN(shard.entry.size, fields.number("size", max_shard_bytes));
  NS_ASSIGN_OR_RETURN(shard.entry.sha256, fields.hash("sha256"));
  NS_ASSIGN_OR_RETURN(shard.entry.tokens, fields.number("tokens", max_shard_tokens));
  NS_ASSIGN_OR_RETURN(shard.entry.source, fields.text("source", max_source_name));
  NS_ASSIGN_OR_RETURN(const bool held_out, fields.flag("held_out"));
  shard.entry.split = held_out ? Split::HeldOut : Split::Train;
  NS_ASSIGN_OR_RETURN(const std::uint64_t stream, fields.number("stream", 0xffffu));
  shard.stream = static_cast<std::uint32_t>(stream);
  NS_ASSIGN_OR_RETURN(shard.position.document, fields.number("document"));
  NS_ASSIGN_OR_RETURN(shard.position.offset, fields.number("offset"));
  NS_ASSIGN_OR_RETURN(shard.position.skip_tokens, fields.number("skip"));
  return shard;
}

}  // namespace

Expected<std::string> BuildJournal::plan() {
  if (!env_.exists(plan_path())) return std::string();
  NS_ASSIGN_OR_RETURN(const Bytes bytes, storage::read_file(env_, plan_path(), max_plan_bytes));
  return std::string(as_text(bytes));
}

Expected<void> BuildJournal::start(const std::string& plan) {
  NS_RETURN_IF_ERROR(env_.create_directories(folder_));
  NS_RETURN_IF_ERROR(storage::write_file_atomic(env_, done_path(), {}));
  return storage::write_file_atomic(env_, plan_path(), as_bytes(std::string_view(plan)));
}

Expected<std::vector<FinishedShard>> BuildJournal::finished() {
  std::vector<FinishedShard> shards;
  if (!env_.exists(done_path())) return shards;
  NS_ASSIGN_OR_RETURN(const Bytes bytes, storage::read_file(env_, done_path(), max_journal_bytes));
  const std::string_view text = as_text(bytes);
  std::size_t at = 0;
  while (at < text.size()) {
    const std::size_t end = text.find('\n', at);
    if (end == std::string_view::npos) break;
    auto shard = parse_line(text.substr(at, end - at));
    // Ids count up from 0: anything else is damage, and everything from there on is done again.
    if (!shard.ok() || shard->entry.id != shards.size()) break;
    shards.push_back(std::move(shard).value());
    at = end + 1;
  }
  if (at < text.size())
    NS_RETURN_IF_ERROR(storage::write_file_atomic(env_, done_path(), as_bytes(text.substr(0, at))));
  return shards;
}

Expected<void> BuildJournal::append(const FinishedShard& shard) {
  NS_ASSIGN_OR_RETURN(const auto file, env_.open_append(done_path()));
  const std::string line = to_line(shard);
  NS_RETURN_IF_ERROR(file->append(as_bytes(std::string_view(line))));
  NS_RETURN_IF_ERROR(file->sync());
  return file->close();
}

Expected<void> BuildJournal::remove() {
  return env_.remove_tree(folder_);
}

}  // namespace neuroshard::data::detail
