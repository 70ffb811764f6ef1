#include "core/export/model_export.h"

#include <fmt/format.h>

#include "core/base/check.h"
#include "core/checkpoint/export.h"
#include "core/export/gguf_model.h"
#include "core/export/gguf_writer.h"
#include "core/export/hugging_face.h"
#include "core/export/source_weights.h"
#include "core/export/vocabulary.h"

namespace neuroshard::exporting {
namespace {

constexpr struct {
  Format format;
  std::string_view name;
} formats[] = {{Format::Safetensors, "safetensors"},
               {Format::Checkpoint, "checkpoint"},
               {Format::HuggingFace, "huggingface"},
               {Format::Gguf, "gguf"}};

Error wrong(std::string message) {
  return make_error(ErrorCode::InvalidArgument, std::move(message));
}

Expected<std::uint64_t> write_gguf(storage::FileEnv& env, const ExportRequest& request,
                                   const std::string& temporary_of, SourceWeights& weights,
                                   const Vocabulary& vocabulary) {
  const StoredType type = request.format.type;
  NS_ASSIGN_OR_RETURN(
      const auto entries,
      gguf_entries(request.entry.manifest, to_hex(request.entry.manifest_hash), vocabulary, type));
  const std::vector<GgufPart> parts = gguf_parts(weights.shape(), type);
  std::vector<GgufTensor> tensors;
  for (const GgufPart& part : parts) tensors.push_back(part.tensor);
  NS_ASSIGN_OR_RETURN(GgufWriter layout, GgufWriter::plan(entries, std::move(tensors)));
  NS_ASSIGN_OR_RETURN(
      const storage::TemporaryFile temporary,
      env.open_temporary(temporary_of, {.bytes = layout.file_bytes(), .world_readable = true}));
  const GgufWriter::Sink sink = [&](ByteSpan bytes) { return temporary.file->append(bytes); };
  Expected<void> written = layout.begin(sink);
  for (std::size_t i = 0; i < parts.size() && written.ok(); ++i)
    written = read_part(weights, parts[i], [&](ByteSpan bytes) { return layout.append(bytes, sink); });
  if (written.ok()) written = layout.finish();
  if (written.ok()) written = temporary.file->sync();
  if (written.ok()) written = temporary.file->close();
  if (written.ok()) written = env.rename(temporary.path, temporary_of);
  if (!written.ok()) {
    (void)env.remove_file(temporary.path);
    return std::move(written).error();
  }
  return layout.file_bytes();
}

Expected<std::uint64_t> fill_folder(storage::FileEnv& env, const ExportRequest& request,
                                    SourceWeights& weights, const Vocabulary& vocabulary) {
  const std::string weights_path = request.path + "/" + hugging_face_weights;
  NS_RETURN_IF_ERROR(write_hugging_face_weights(env, weights_path, weights, request.format.type));
  NS_ASSIGN_OR_RETURN(const auto file, env.open_read(weights_path));
  std::uint64_t bytes = file->size();
  for (const TextFile& text : hugging_face_texts(request.entry.manifest, to_hex(request.entry.manifest_hash),
                                                 vocabulary, request.format.type)) {
    NS_RETURN_IF_ERROR(
        storage::write_file_atomic(env, request.path + "/" + text.name, as_bytes(text.content), true));
    bytes += text.content.size();
  }
  NS_RETURN_IF_ERROR(env.sync_directory(request.path));
  return bytes;
}

Expected<std::uint64_t> write_hugging_face(storage::FileEnv& env, const ExportRequest& request,
                                           SourceWeights& weights, const Vocabulary& vocabulary) {
  NS_RETURN_IF_ERROR(env.create_new_directory(request.path));
  Expected<std::uint64_t> written = fill_folder(env, request, weights, vocabulary);
  if (!written.ok()) (void)env.remove_tree(request.path);
  return written;
}

Expected<std::uint64_t> write_for_others(storage::FileEnv& env, const ExportRequest& request,
                                         const checkpoint::Progress& progress, const CancelToken& cancel) {
  NS_CHECK(request.tokenizer != nullptr);
  if (request.format.format == Format::HuggingFace && env.exists(request.path))
    return make_error(ErrorCode::AlreadyExists, request.path + " already exists; choose another name");
  if (!request.entry.complete()) return make_error(ErrorCode::Corrupt, request.entry.damage);
  NS_ASSIGN_OR_RETURN(const Vocabulary vocabulary,
                      make_vocabulary(*request.tokenizer, request.entry.manifest.architecture.vocab));
  ExportMeter meter(progress, cancel);
  NS_ASSIGN_OR_RETURN(SourceWeights weights, SourceWeights::open(env, request.entry, meter));
  if (request.format.format == Format::HuggingFace)
    return write_hugging_face(env, request, weights, vocabulary);
  // Those of an export that was killed are as large as this one.
  (void)env.remove_leftovers(storage::parent_of(request.path), storage::LeftoverScope::Folder);
  return write_gguf(env, request, request.path, weights, vocabulary);
}

}  // namespace

Expected<ExportFormat> parse_export_format(std::string_view text, std::string_view type) {
  const std::size_t colon = text.find(':');
  const std::string_view name = text.substr(0, colon);
  if (colon != std::string_view::npos) {
    if (!type.empty()) return wrong("the type of the weights is given twice");
    type = text.substr(colon + 1);
  }
  for (const auto& candidate : formats) {
    if (candidate.name != name) continue;
    ExportFormat result{candidate.format, StoredType::F32};
    if (colon == std::string_view::npos && type.empty()) return result;
    NS_ASSIGN_OR_RETURN(result.type, parse_stored_type(type));
    if (result.type != StoredType::F32 && !needs_tokenizer(result.format))
      return wrong(fmt::format("the format {} keeps the weights as f32", name));
    if (result.type == StoredType::Q8_0 && result.format == Format::HuggingFace)
      return wrong("a Hugging Face folder has f32, f16 or bf16; q8_0 is for gguf");
    return result;
  }
  return wrong(fmt::format("a checkpoint is exported as {}, not as \"{}\"",
                           fmt::join(export_format_names(), ", "), name.substr(0, 40)));
}

std::vector<std::string> export_format_names() {
  std::vector<std::string> names;
  for (const auto& entry : formats) names.emplace_back(entry.name);
  return names;
}

bool needs_tokenizer(Format format) {
  return format == Format::HuggingFace || format == Format::Gguf;
}

bool makes_folder(Format format) {
  return format == Format::HuggingFace || format == Format::Checkpoint;
}

std::string export_name(const checkpoint::Manifest& manifest, ExportFormat format) {
  const std::string file = checkpoint::export_file_name(manifest);
  const std::string stem = file.substr(0, file.rfind('.'));
  switch (format.format) {
    case Format::Safetensors: return file;
    case Format::Checkpoint: return stem;
    case Format::HuggingFace: return stem + "-hf";
    case Format::Gguf: break;
  }
  return fmt::format("{}-{}.gguf", stem, to_string(format.type));
}

Expected<std::uint64_t> export_model(storage::FileEnv& env, const ExportRequest& request,
                                     const checkpoint::Progress& progress, const CancelToken& cancel) {
  if (request.format.format == Format::Safetensors)
    return checkpoint::export_weights(env, request.entry, request.path, progress, cancel);
  if (request.format.format == Format::Checkpoint)
    return checkpoint::export_folder(env, request.entry, request.path, progress, cancel);
  Expected<std::uint64_t> written = write_for_others(env, request, progress, cancel);
  if (!written.ok()) return std::move(written).error().with_context("exporting");
  return written;
}

}  // namespace neuroshard::exporting
