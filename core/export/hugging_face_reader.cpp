#include "core/export/hugging_face_reader.h"

#include <fmt/format.h>

#include <nlohmann/json.hpp>
#include <optional>

#include "core/base/check.h"
#include "core/compute/module.h"
#include "core/export/detail/file_bytes.h"
#include "core/export/hugging_face.h"

namespace neuroshard::exporting {
namespace {

using nlohmann::json;

constexpr int max_nesting = 16;

Error corrupt(std::string what) {
  return make_error(ErrorCode::Corrupt, fmt::format("{} {}", hugging_face_config, what));
}

Error unsupported(std::string what) {
  return make_error(ErrorCode::Unsupported,
                    fmt::format("{}: NeuroShard's model has no {}", hugging_face_config, what));
}

// Refuses deep nesting while parsing, before it costs memory.
Expected<json> parse(ByteSpan file) {
  if (file.size() > max_config_bytes) return make_error(ErrorCode::Exhausted, "config.json is too large");
  bool deep = false;
  json value = json::parse(
      file.begin(), file.end(),
      [&deep](int depth, json::parse_event_t, json&) {
        deep = deep || depth > max_nesting;
        return !deep;
      },
      false);
  if (deep || value.is_discarded() || !value.is_object()) return corrupt("is not a JSON object");
  return value;
}

class Config {
 public:
  explicit Config(const json& object) : object_(object) {}

  Expected<std::uint32_t> number(const char* key, std::optional<std::uint32_t> absent = {}) const {
    const auto found = object_.find(key);
    if (found == object_.end() || found->is_null()) {
      if (absent) return *absent;
      return corrupt(fmt::format("lacks {}", key));
    }
    if (!found->is_number_unsigned() || found->get<std::uint64_t>() > 0xffffffffu)
      return corrupt(fmt::format("has a {} that is not a number", key));
    return found->get<std::uint32_t>();
  }
  Expected<float> real(const char* key, double absent) const {
    const auto found = object_.find(key);
    if (found == object_.end()) return static_cast<float>(absent);
    if (!found->is_number()) return corrupt(fmt::format("has a {} that is not a number", key));
    return static_cast<float>(found->get<double>());
  }
  // Absent, null and false are all off.
  bool on(const char* key) const {
    const auto found = object_.find(key);
    return found != object_.end() && !found->is_null() && *found != json(false);
  }
  std::string text(const char* key) const {
    const auto found = object_.find(key);
    return found != object_.end() && found->is_string() ? found->get<std::string>() : std::string();
  }

 private:
  const json& object_;
};

Expected<void> check_kind(const Config& config, bool sparse) {
  if (config.text("hidden_act") != "silu") return unsupported("activation but silu");
  if (config.on("tie_word_embeddings")) return unsupported("tied embeddings (tie_word_embeddings)");
  if (config.on("rope_scaling")) return unsupported("scaled rotation (rope_scaling)");
  if (config.on("sliding_window")) return unsupported("sliding window (sliding_window)");
  if (!sparse && (config.on("attention_bias") || config.on("mlp_bias")))
    return unsupported("biases (attention_bias, mlp_bias)");
  return {};
}

Expected<void> read_sizes(const Config& config, compute::ModelShape* shape) {
  NS_ASSIGN_OR_RETURN(shape->layers, config.number("num_hidden_layers"));
  NS_ASSIGN_OR_RETURN(shape->hidden, config.number("hidden_size"));
  NS_ASSIGN_OR_RETURN(shape->heads, config.number("num_attention_heads"));
  if (shape->heads == 0) return corrupt("has a num_attention_heads of 0");
  NS_ASSIGN_OR_RETURN(shape->kv_heads, config.number("num_key_value_heads", shape->heads));
  NS_ASSIGN_OR_RETURN(shape->head_dim, config.number("head_dim", shape->hidden / shape->heads));
  NS_ASSIGN_OR_RETURN(shape->ffn, config.number("intermediate_size"));
  NS_ASSIGN_OR_RETURN(shape->vocab, config.number("vocab_size"));
  NS_ASSIGN_OR_RETURN(shape->sequence, config.number("max_position_embeddings"));
  NS_ASSIGN_OR_RETURN(shape->rms_epsilon, config.real("rms_norm_eps", 1e-6));
  return {};
}

}  // namespace

Expected<compute::ModelShape> parse_hugging_face_config(ByteSpan file) {
  NS_ASSIGN_OR_RETURN(const json object, parse(file));
  const Config config(object);
  const std::string kind = config.text("model_type");
  const bool sparse = kind == "mixtral";
  if (!sparse && kind != "llama") return unsupported(fmt::format("architecture \"{}\"", kind.substr(0, 40)));
  NS_RETURN_IF_ERROR(check_kind(config, sparse));
  compute::ModelShape shape;
  NS_RETURN_IF_ERROR(read_sizes(config, &shape));
  NS_ASSIGN_OR_RETURN(shape.rope_theta, config.real("rope_theta", sparse ? 1e6 : 1e4));
  if (sparse) {
    NS_ASSIGN_OR_RETURN(shape.experts, config.number("num_local_experts"));
    NS_ASSIGN_OR_RETURN(shape.experts_per_token, config.number("num_experts_per_tok"));
    if (shape.experts < 2) return unsupported("router for a single expert");
  }
  Expected<void> valid = compute::validate(shape);
  if (!valid.ok()) return std::move(valid).error().with_context(hugging_face_config);
  return shape;
}

Expected<HuggingFaceModel> HuggingFaceModel::open(storage::FileEnv& env, const std::string& folder) {
  HuggingFaceModel model;
  NS_ASSIGN_OR_RETURN(const Bytes config,
                      storage::read_file(env, folder + "/" + hugging_face_config, max_config_bytes));
  NS_ASSIGN_OR_RETURN(model.shape_, parse_hugging_face_config(config));
  NS_ASSIGN_OR_RETURN(auto file, env.open_read(folder + "/" + hugging_face_weights));
  model.file_ = std::make_unique<detail::FileBytes>(std::move(file));
  NS_ASSIGN_OR_RETURN(model.header_, tensor::read_safetensors_header(*model.file_));
  NS_RETURN_IF_ERROR(model.check_layout());
  return model;
}

Expected<void> HuggingFaceModel::check_layout() const {
  std::size_t expected = 0;
  for (const compute::SlotId slot : compute::model_slots(shape_)) {
    for (const compute::ParameterInfo& parameter : compute::slot_parameters(shape_, slot)) {
      ++expected;
      const tensor::TensorEntry* const entry = header_.find(parameter.name);
      if (entry == nullptr || entry->spec.dims != parameter.dims)
        return make_error(ErrorCode::Corrupt, fmt::format("{}: the tensor {} is missing or has another shape",
                                                          hugging_face_weights, parameter.name));
      if (entry->spec.type != tensor::DType::F32)
        return make_error(ErrorCode::Unsupported,
                          fmt::format("{}: {} is {}, not F32", hugging_face_weights, parameter.name,
                                      tensor::to_string(entry->spec.type)));
    }
  }
  if (header_.tensors.size() == expected) return {};
  return make_error(ErrorCode::Corrupt,
                    fmt::format("{} has tensors that the configuration does not name", hugging_face_weights));
}

Expected<void> HuggingFaceModel::read_slot(compute::SlotId slot, Span<float> values) {
  NS_CHECK(values.size() == compute::slot_parameter_count(shape_, slot));
  for (const compute::ParameterInfo& parameter : compute::slot_parameters(shape_, slot)) {
    const Span<float> part =
        values.subspan(static_cast<std::size_t>(parameter.offset), static_cast<std::size_t>(parameter.count));
    NS_RETURN_IF_ERROR(
        tensor::read_tensor(*file_, header_, *header_.find(parameter.name),
                            {reinterpret_cast<std::uint8_t*>(part.data()), part.size_bytes()}));
  }
  return {};
}

}  // namespace neuroshard::exporting
