// A checkpoint for elsewhere, in any of the formats: the one entry for the command line and the engine.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "core/base/cancel.h"
#include "core/base/expected.h"
#include "core/checkpoint/catalogue.h"
#include "core/checkpoint/loader.h"
#include "core/data/tokenizer.h"
#include "core/export/stored_type.h"
#include "core/storage/file_env.h"

namespace neuroshard::exporting {

enum class Format : std::uint8_t {
  Safetensors,  // the weights, one file
  Checkpoint,   // all of it as a folder, for another node
  HuggingFace,  // a folder: weights, configuration, tokenizer
  Gguf,         // one file for llama.cpp and its relatives
};

struct ExportFormat {
  Format format = Format::Safetensors;
  StoredType type = StoredType::F32;
};

// format: "safetensors", "checkpoint", "huggingface" or "gguf"; of the last two also with a type behind a colon:
// "gguf:q8_0". type: "" or the type's own parameter. InvalidArgument: an unknown name, or a type that the format can't have.
Expected<ExportFormat> parse_export_format(std::string_view format, std::string_view type = {});
// The names of the formats, and those that need the tokenizer of the checkpoint.
std::vector<std::string> export_format_names();
bool needs_tokenizer(Format format);
bool makes_folder(Format format);
// A file or folder named after wallet, node and step.
std::string export_name(const checkpoint::Manifest& manifest, ExportFormat format);

struct ExportRequest {
  checkpoint::Entry entry;
  ExportFormat format;
  const data::Tokenizer* tokenizer = nullptr;  // of the checkpoint; only where needs_tokenizer()
  std::string path;
};

// A folder is new; a file is written beside `path` first and replaces an earlier one. Either is whole or absent: a failed or
// cancelled export leaves nothing. The checkpoint's content is hashed on the way. Memory: a few megabytes, or the rows of
// one head of Q, and the vocabulary. Returns the bytes written.
// Errors: AlreadyExists, InvalidArgument (the format can't express the model or its tokenizer), Corrupt, Denied,
// Exhausted, Io, Cancelled.
Expected<std::uint64_t> export_model(storage::FileEnv& env, const ExportRequest& request,
                                     const checkpoint::Progress& progress = {},
                                     const CancelToken& cancel = {});

}  // namespace neuroshard::exporting
