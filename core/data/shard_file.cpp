#include "core/data/shard_file.h"

#include <fmt/format.h>

#include "core/crypto/hash.h"
#include "core/data/pt_file.h"

namespace neuroshard::data {

std::string shard_file_name(ShardId id) {
  return fmt::format("shard_{}.pt", id);
}

bool is_shard_file_name(std::string_view name) {
  constexpr std::string_view begin = "shard_", end = ".pt";
  if (name.size() <= begin.size() + end.size() || !name.starts_with(begin) || !name.ends_with(end))
    return false;
  name.remove_prefix(begin.size());
  name.remove_suffix(end.size());
  return name.find_first_not_of("0123456789") == std::string_view::npos;
}

Expected<ShardEntry> write_shard(storage::FileEnv& env, const std::string& directory, ShardId id,
                                 Span<const std::int32_t> tokens, const std::string& source, Split split) {
  NS_ASSIGN_OR_RETURN(const Bytes file, encode_pt(tokens));
  ShardEntry entry;
  entry.id = id;
  entry.url = shard_file_name(id);
  entry.size = file.size();
  entry.sha256 = crypto::sha256(file);
  entry.tokens = tokens.size();
  entry.source = source;
  entry.split = split;
  NS_RETURN_IF_ERROR(
      storage::write_file_atomic(env, directory + "/" + entry.url, file, /*world_readable=*/true));
  return entry;
}

namespace {

Expected<std::vector<std::int32_t>> read_checked(storage::FileEnv& env, const std::string& path,
                                                 const ShardEntry& entry, std::uint32_t vocab_size) {
  const auto corrupt = [&](const std::string& problem) {
    return make_error(ErrorCode::Corrupt, fmt::format("shard {} ({}) {}", entry.id, path, problem));
  };
  auto file = storage::read_file(env, path, entry.size);
  if (!file.ok()) {
    if (file.error().code != ErrorCode::Exhausted) return std::move(file).error();
    return corrupt(fmt::format("is larger than the {} bytes that the manifest states", entry.size));
  }
  if (file->size() != entry.size) {
    return corrupt(fmt::format("has {} bytes; the manifest states {}", file->size(), entry.size));
  }
  if (crypto::sha256(*file) != entry.sha256) {
    return corrupt("does not have the SHA-256 that the manifest states: it is damaged or was changed");
  }
  auto tokens = decode_pt(*file, entry.tokens);
  if (!tokens.ok())
    return std::move(tokens).error().with_context(fmt::format("shard {} ({})", entry.id, path));
  if (tokens->size() != entry.tokens) {
    return corrupt(fmt::format("has {} tokens; the manifest states {}", tokens->size(), entry.tokens));
  }
  for (std::size_t i = 0; i < tokens->size(); ++i) {
    if (static_cast<std::uint32_t>((*tokens)[i]) >= vocab_size) {
      return corrupt(
          fmt::format("has the token {} at {}, but the tokenizer knows {}", (*tokens)[i], i, vocab_size));
    }
  }
  return tokens;
}

}  // namespace

Expected<std::vector<std::int32_t>> read_shard(storage::FileEnv& env, const std::string& path,
                                               const ShardEntry& entry, std::uint32_t vocab_size) {
  auto tokens = read_checked(env, path, entry, vocab_size);
  if (tokens.ok() || entry.source != own_source) return tokens;
  Error error = std::move(tokens).error();
  if (error.code == ErrorCode::Corrupt || error.code == ErrorCode::NotFound)
    error.message += fmt::format(
        ". Put {} back from a backup; without one, delete manifest.json and manifest.json.sig in {}, "
        "and give all of your text again with --text",
        entry.url, storage::parent_of(path));
  return error;
}

}  // namespace neuroshard::data
