// A model as a folder that the Hugging Face libraries open: a dense model as LlamaForCausalLM, a mixture of experts as
// MixtralForCausalLM. Our names, shapes and rotation are theirs (core/compute/slot.cpp), so the weights stay as they are.
#pragma once

#include <string>
#include <vector>

#include "core/checkpoint/manifest.h"
#include "core/export/source_weights.h"
#include "core/export/stored_type.h"
#include "core/export/vocabulary.h"

namespace neuroshard::exporting {

inline constexpr const char* hugging_face_config = "config.json";
inline constexpr const char* hugging_face_weights = "model.safetensors";

struct TextFile {
  std::string name;
  std::string content;
};

// tokenizer.json, tokenizer_config.json, generation_config.json, README.md; config.json last: a folder without it is no model.
std::vector<TextFile> hugging_face_texts(const checkpoint::Manifest& manifest,
                                         const std::string& checkpoint_id, const Vocabulary& vocabulary,
                                         StoredType type);

// model.safetensors, in the order of the slots. type: not Q8_0.
Expected<void> write_hugging_face_weights(storage::FileEnv& env, const std::string& path,
                                          SourceWeights& weights, StoredType type);

}  // namespace neuroshard::exporting
