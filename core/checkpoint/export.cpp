#include "core/checkpoint/export.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <nlohmann/json.hpp>

#include "core/checkpoint/detail/hashing_file.h"
#include "core/checkpoint/detail/layout.h"
#include "core/crypto/hash.h"
#include "core/tensor/safetensors.h"

namespace neuroshard::checkpoint {
namespace {

constexpr std::uint64_t progress_step = 16u << 20;

std::string describe(const compute::ModelShape& shape) {
  // The keys of a Mixtral configuration where it has one.
  const nlohmann::json json = {{"num_hidden_layers", shape.layers},
                               {"hidden_size", shape.hidden},
                               {"head_dim", shape.head_dim},
                               {"num_attention_heads", shape.heads},
                               {"num_key_value_heads", shape.kv_heads},
                               {"intermediate_size", shape.ffn},
                               {"num_local_experts", shape.experts},
                               {"num_experts_per_tok", shape.experts_per_token},
                               {"vocab_size", shape.vocab},
                               {"max_position_embeddings", shape.sequence},
                               {"rope_theta", shape.rope_theta},
                               {"rms_norm_eps", shape.rms_epsilon}};
  return json.dump();
}

std::map<std::string, std::string> metadata_of(const Entry& entry) {
  const Manifest& m = entry.manifest;
  std::map<std::string, std::string> metadata = {
      {"format", "pt"},
      {"neuroshard.architecture", describe(m.architecture)},
      {"neuroshard.checkpoint", entry.name},
      {"neuroshard.network_id", to_hex(m.network_id)},
      {"neuroshard.wallet", m.wallet},
      {"neuroshard.instance", to_hex(m.instance)},
      {"neuroshard.step", fmt::format("{}", m.step)},
      {"neuroshard.tokens_seen", fmt::format("{}", m.tokens_seen)}};
  if (m.losses.training) metadata["neuroshard.training_loss"] = fmt::format("{}", *m.losses.training);
  if (m.losses.held_out) metadata["neuroshard.held_out_loss"] = fmt::format("{}", *m.losses.held_out);
  return metadata;
}

Error cancelled() {
  return make_error(ErrorCode::Cancelled, "stopped before the end; nothing was exported");
}

struct Source {
  std::unique_ptr<detail::FileSource> bytes;
  tensor::SafetensorsHeader header;
  FileRecord record;
};

Expected<Source> open_source(storage::FileEnv& env, const Entry& entry) {
  if (!entry.complete()) return make_error(ErrorCode::Corrupt, entry.damage);
  Source source;
  source.record = *entry.manifest.file(detail::weights_file);
  NS_ASSIGN_OR_RETURN(auto file, env.open_read(entry.path + "/" + detail::weights_file));
  source.bytes = std::make_unique<detail::FileSource>(std::move(file));
  NS_ASSIGN_OR_RETURN(source.header, tensor::read_safetensors_header(*source.bytes));
  return source;
}

// Everything of the source passes the hash; its data also passes to the file.
Expected<void> copy_data(Source& source, tensor::SafetensorsWriter& layout,
                         const tensor::SafetensorsWriter::Sink& sink, const Progress& progress,
                         const CancelToken& cancel) {
  crypto::Sha256 hash;
  const std::uint64_t total = source.bytes->size();
  std::uint64_t reported = 0;
  Bytes chunk(detail::chunk_bytes);
  for (std::uint64_t at = 0; at < total;) {
    if (cancel.cancelled()) return cancelled();
    const std::uint64_t part_end = at < source.header.data_offset ? source.header.data_offset : total;
    const auto now = static_cast<std::size_t>(std::min<std::uint64_t>(part_end - at, chunk.size()));
    const MutableByteSpan piece(chunk.data(), now);
    NS_RETURN_IF_ERROR(source.bytes->read_at(at, piece));
    hash.update(ByteSpan(piece.data(), piece.size()));
    if (at >= source.header.data_offset) {
      NS_RETURN_IF_ERROR(layout.append(ByteSpan(piece.data(), piece.size()), sink));
    }
    at += now;
    if (progress && (at - reported >= progress_step || at == total)) {
      reported = at;
      progress(at, total);
    }
  }
  if (hash.finish() != source.record.sha256) {
    return make_error(ErrorCode::Corrupt, fmt::format("the content of {} is damaged; nothing was exported",
                                                      detail::weights_file));
  }
  return layout.finish();
}

// Beside `path`; then under its name.
Expected<void> write_export(storage::FileEnv& env, Source& source, const Entry& entry,
                            const std::string& path, const Progress& progress, const CancelToken& cancel) {
  std::vector<tensor::TensorSpec> specs;
  for (const tensor::TensorEntry& item : source.header.tensors) specs.push_back(item.spec);
  NS_ASSIGN_OR_RETURN(auto layout, tensor::SafetensorsWriter::plan(specs, metadata_of(entry)));
  // Exports are large and often go to another disk: the checkpoints of the run stay in the page cache.
  NS_ASSIGN_OR_RETURN(const storage::TemporaryFile temporary,
                      env.open_temporary(path, {.bytes = layout.file_bytes(), .world_readable = true}));
  const tensor::SafetensorsWriter::Sink sink = [&](ByteSpan bytes) { return temporary.file->append(bytes); };
  Expected<void> written = layout.begin(sink);
  if (written.ok()) written = copy_data(source, layout, sink, progress, cancel);
  if (written.ok()) written = temporary.file->sync();
  if (written.ok()) written = temporary.file->close();
  if (written.ok()) written = env.rename(temporary.path, path);
  if (!written.ok()) (void)env.remove_file(temporary.path);
  return written;
}

Expected<void> copy_file(storage::FileEnv& env, const Entry& entry, const FileRecord& record,
                         const std::string& folder, const std::function<void(std::uint64_t)>& copied,
                         const CancelToken& cancel) {
  NS_ASSIGN_OR_RETURN(auto opened, env.open_read(entry.path + "/" + record.name));
  detail::FileSource from(std::move(opened));
  NS_ASSIGN_OR_RETURN(auto to,
                      detail::HashingFile::create_large(env, folder, record.name, {.bytes = record.bytes}));
  Bytes chunk(detail::chunk_bytes);
  for (std::uint64_t at = 0; at < record.bytes;) {
    if (cancel.cancelled()) return cancelled();
    const auto now = static_cast<std::size_t>(std::min<std::uint64_t>(record.bytes - at, chunk.size()));
    NS_RETURN_IF_ERROR(from.read_at(at, MutableByteSpan(chunk.data(), now)));
    NS_RETURN_IF_ERROR(to.append(ByteSpan(chunk.data(), now)));
    copied(now);
    at += now;
  }
  NS_ASSIGN_OR_RETURN(const FileRecord written, to.finish());
  if (written.sha256 == record.sha256) return {};
  return make_error(ErrorCode::Corrupt,
                    fmt::format("the content of {} is damaged; nothing was exported", record.name));
}

Expected<void> write_folder(storage::FileEnv& env, const Entry& entry, const std::string& folder,
                            const Progress& progress, const CancelToken& cancel) {
  const std::uint64_t total = entry.manifest.file_bytes();
  std::uint64_t done = 0, reported = 0;
  const auto copied = [&](std::uint64_t bytes) {
    done += bytes;
    if (!progress || (done - reported < progress_step && done != total)) return;
    reported = done;
    progress(done, total);
  };
  for (const FileRecord& record : entry.manifest.files)
    NS_RETURN_IF_ERROR(copy_file(env, entry, record, folder, copied, cancel));
  NS_ASSIGN_OR_RETURN(const Bytes manifest,
                      storage::read_file(env, entry.path + "/" + detail::manifest_file, max_manifest_bytes));
  NS_ASSIGN_OR_RETURN(auto file, detail::HashingFile::create(env, folder, detail::manifest_file));
  NS_RETURN_IF_ERROR(file.append(manifest));
  NS_RETURN_IF_ERROR(file.finish());
  return env.sync_directory(folder);
}

}  // namespace

std::string export_file_name(const Manifest& manifest) {
  // The wallet is text of whoever signed: only what cannot lead elsewhere enters a file's name.
  std::string wallet;
  for (const char c : manifest.wallet) {
    if ((c >= '0' && c <= '9') || (c >= 'a' && c <= 'z')) wallet += c;
  }
  return fmt::format("neuroshard-{}-{}-step{}.safetensors",
                     wallet.empty() ? "nowallet" : wallet.substr(0, 16),
                     to_hex(manifest.instance).substr(0, 8), manifest.step);
}

Expected<std::uint64_t> export_weights(storage::FileEnv& env, const Entry& entry, const std::string& path,
                                       const Progress& progress, const CancelToken& cancel) {
  NS_ASSIGN_OR_RETURN(Source source, open_source(env, entry));
  // Those of an export that was killed are as large as this one.
  (void)env.remove_leftovers(storage::parent_of(path), storage::LeftoverScope::Folder);
  if (Expected<void> written = write_export(env, source, entry, path, progress, cancel); !written.ok())
    return std::move(written).error().with_context("exporting");
  NS_ASSIGN_OR_RETURN(const auto file, env.open_read(path));
  return file->size();
}

Expected<std::uint64_t> export_folder(storage::FileEnv& env, const Entry& entry, const std::string& path,
                                      const Progress& progress, const CancelToken& cancel) {
  if (!entry.complete()) return make_error(ErrorCode::Corrupt, entry.damage);
  NS_RETURN_IF_ERROR(env.create_new_directory(path));
  Expected<void> written = write_folder(env, entry, path, progress, cancel);
  if (!written.ok()) {
    (void)env.remove_tree(path);
    return std::move(written).error().with_context("exporting");
  }
  return entry.manifest.file_bytes();
}

}  // namespace neuroshard::checkpoint
