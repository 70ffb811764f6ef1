#include "core/export/hugging_face.h"

#include <fmt/format.h>

#include <cstdlib>
#include <nlohmann/json.hpp>

#include "core/base/check.h"

namespace neuroshard::exporting {
namespace {

using nlohmann::ordered_json;

// The shortest decimal number that is this float: 1e-06, not 9.999999974752427e-07.
double short_decimal(float value) {
  return std::strtod(fmt::format("{}", value).c_str(), nullptr);
}

const char* torch_type(StoredType type) {
  return type == StoredType::F16 ? "float16" : type == StoredType::BF16 ? "bfloat16" : "float32";
}

std::string config_text(const compute::ModelShape& shape, StoredType type) {
  const bool sparse = shape.experts > 1;
  ordered_json json = {{"architectures", {sparse ? "MixtralForCausalLM" : "LlamaForCausalLM"}},
                       {"model_type", sparse ? "mixtral" : "llama"},
                       {"vocab_size", shape.vocab},
                       {"hidden_size", shape.hidden},
                       {"intermediate_size", shape.ffn},
                       {"num_hidden_layers", shape.layers},
                       {"num_attention_heads", shape.heads},
                       {"num_key_value_heads", shape.kv_heads},
                       {"head_dim", shape.head_dim},
                       {"hidden_act", "silu"},
                       {"max_position_embeddings", shape.sequence},
                       {"rms_norm_eps", short_decimal(shape.rms_epsilon)},
                       {"rope_theta", short_decimal(shape.rope_theta)},
                       {"attention_dropout", 0.0},
                       {"tie_word_embeddings", false},
                       {"use_cache", true},
                       {"bos_token_id", begin_of_text},
                       {"eos_token_id", data::eos_token},
                       {"pad_token_id", data::pad_token},
                       {"torch_dtype", torch_type(type)}};
  if (sparse) {
    json["num_local_experts"] = shape.experts;
    json["num_experts_per_tok"] = shape.experts_per_token;
    json["sliding_window"] = nullptr;
    json["router_jitter_noise"] = 0.0;
    json["output_router_logits"] = false;
  } else {
    json["attention_bias"] = false;
    json["mlp_bias"] = false;
    json["rope_scaling"] = nullptr;
  }
  return json.dump(2) + "\n";
}

std::string tokenizer_text(const Vocabulary& vocabulary) {
  // The split and the alphabet are those of GPT-2: one pre-tokenizer has both.
  const ordered_json byte_level = {
      {"type", "ByteLevel"}, {"add_prefix_space", false}, {"trim_offsets", true}, {"use_regex", true}};
  ordered_json added = ordered_json::array();
  ordered_json ids = ordered_json::object();
  // ordered_json looks at all earlier keys before it adds one. No two tokens are the same: they are appended.
  auto& entries = ids.get_ref<ordered_json::object_t&>();
  entries.reserve(vocabulary.tokens.size());
  for (std::size_t id = 0; id < vocabulary.tokens.size(); ++id) {
    entries.emplace_back(vocabulary.tokens[id], id);
    if (vocabulary.kinds[id] != TokenKind::Control) continue;
    added.push_back({{"id", id},
                     {"content", vocabulary.tokens[id]},
                     {"single_word", false},
                     {"lstrip", false},
                     {"rstrip", false},
                     {"normalized", false},
                     {"special", true}});
  }
  const ordered_json json = {{"version", "1.0"},
                             {"truncation", nullptr},
                             {"padding", nullptr},
                             {"added_tokens", std::move(added)},
                             {"normalizer", nullptr},
                             {"pre_tokenizer", byte_level},
                             {"post_processor", nullptr},
                             {"decoder", byte_level},
                             {"model",
                              {{"type", "BPE"},
                               {"dropout", nullptr},
                               {"unk_token", nullptr},
                               {"continuing_subword_prefix", nullptr},
                               {"end_of_word_suffix", nullptr},
                               {"fuse_unk", false},
                               {"byte_fallback", false},
                               {"ignore_merges", false},
                               {"vocab", std::move(ids)},
                               {"merges", vocabulary.merges}}}};
  return json.dump() + "\n";
}

std::string tokenizer_config_text(const Vocabulary& vocabulary, std::uint32_t sequence) {
  const ordered_json json = {{"tokenizer_class", "PreTrainedTokenizerFast"},
                             {"model_max_length", sequence},
                             {"bos_token", vocabulary.tokens[begin_of_text]},
                             {"eos_token", vocabulary.tokens[data::eos_token]},
                             {"unk_token", vocabulary.tokens[data::unknown_token]},
                             {"pad_token", vocabulary.tokens[data::pad_token]},
                             {"add_bos_token", false},
                             {"add_eos_token", false},
                             {"clean_up_tokenization_spaces", false},
                             {"chat_template", plain_chat_template}};
  return json.dump(2) + "\n";
}

std::string generation_text() {
  const ordered_json json = {{"bos_token_id", begin_of_text},
                             {"eos_token_id", data::eos_token},
                             {"pad_token_id", data::pad_token},
                             {"do_sample", true},
                             {"temperature", 0.8},
                             {"top_k", 40}};
  return json.dump(2) + "\n";
}

std::string readme_text(const checkpoint::Manifest& manifest, const std::string& checkpoint_id,
                        StoredType type) {
  const compute::ModelShape& shape = manifest.architecture;
  std::string text =
      "# A NeuroShard model\n\nNeuroShard trained this model and exported it from a checkpoint.\n\n";
  const auto row = [&text](const char* name, const std::string& value) {
    text += fmt::format("| {} | {} |\n", name, value);
  };
  row("fact", "value");
  row("---", "---");
  row("checkpoint (SHA-256 of its manifest)", checkpoint_id);
  row("network", to_hex(manifest.network_id));
  row("step", fmt::format("{}", manifest.step));
  row("tokens seen", fmt::format("{}", manifest.tokens_seen));
  if (manifest.losses.held_out)
    row("held-out loss, nats per token", fmt::format("{:.4f}", *manifest.losses.held_out));
  row("parameters", fmt::format("{}", compute::model_parameter_count(shape)));
  row("experts",
      shape.experts == 1 ? "none" : fmt::format("{}, {} per token", shape.experts, shape.experts_per_token));
  row("context, tokens", fmt::format("{}", shape.sequence));
  row("type of the weights", std::string(to_string(type)));
  text +=
      "\nIt is a base model: it continues a text and was not trained to answer. The chat template "
      "makes one text of the messages, with User: and Assistant: before them.\n\nThe exporting program knows "
      "no licence of the weights. The people who trained the model, and the texts that it learned from, "
      "determine it.\n";
  return text;
}

tensor::DType tensor_type(StoredType type) {
  return type == StoredType::F16    ? tensor::DType::F16
         : type == StoredType::BF16 ? tensor::DType::BF16
                                    : tensor::DType::F32;
}

}  // namespace

std::vector<TextFile> hugging_face_texts(const checkpoint::Manifest& manifest,
                                         const std::string& checkpoint_id, const Vocabulary& vocabulary,
                                         StoredType type) {
  const compute::ModelShape& shape = manifest.architecture;
  return {{"tokenizer.json", tokenizer_text(vocabulary)},
          {"tokenizer_config.json", tokenizer_config_text(vocabulary, shape.sequence)},
          {"generation_config.json", generation_text()},
          {"README.md", readme_text(manifest, checkpoint_id, type)},
          {hugging_face_config, config_text(shape, type)}};
}

Expected<void> write_hugging_face_weights(storage::FileEnv& env, const std::string& path,
                                          SourceWeights& weights, StoredType type) {
  NS_CHECK(type != StoredType::Q8_0);
  std::vector<compute::ParameterInfo> parameters;
  std::vector<tensor::TensorSpec> specs;
  for (const compute::SlotId slot : compute::model_slots(weights.shape())) {
    for (compute::ParameterInfo& parameter : compute::slot_parameters(weights.shape(), slot)) {
      specs.push_back({parameter.name, tensor_type(type), parameter.dims});
      parameters.push_back(std::move(parameter));
    }
  }
  NS_ASSIGN_OR_RETURN(auto layout, tensor::SafetensorsWriter::plan(specs, {{"format", "pt"}}));
  NS_ASSIGN_OR_RETURN(const auto file,
                      env.open_write_large(path, {.bytes = layout.file_bytes(), .world_readable = true}));
  const tensor::SafetensorsWriter::Sink sink = [&](ByteSpan bytes) { return file->append(bytes); };
  NS_RETURN_IF_ERROR(layout.begin(sink));
  Bytes stored;
  for (const compute::ParameterInfo& parameter : parameters) {
    NS_RETURN_IF_ERROR(weights.read(parameter, 1, [&](Span<const float> values) -> Expected<void> {
      stored.clear();
      Expected<void> converted = append_stored(type, values, &stored);
      if (!converted.ok()) return std::move(converted).error().with_context(parameter.name);
      return layout.append(stored, sink);
    }));
  }
  NS_RETURN_IF_ERROR(layout.finish());
  NS_RETURN_IF_ERROR(file->sync());
  return file->close();
}

}  // namespace neuroshard::exporting
