#include "core/export/hugging_face_reader.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <nlohmann/json.hpp>
#include <optional>
#include <set>

#include "core/base/check.h"
#include "core/compute/module.h"
#include "core/export/detail/file_bytes.h"
#include "core/export/detail/json_object.h"
#include "core/export/hugging_face.h"
#include "core/export/stored_type.h"

namespace neuroshard::exporting {
namespace {

using nlohmann::json;

Error corrupt(std::string what) {
  return make_error(ErrorCode::Corrupt, fmt::format("{} {}", hugging_face_config, what));
}

Error unsupported(std::string what) {
  return make_error(ErrorCode::Unsupported,
                    fmt::format("{}: NeuroShard's model has no {}", hugging_face_config, what));
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
  bool has(const char* key) const { return object_.contains(key); }
  // Absent, null and false are all off.
  bool on(const char* key) const {
    const auto found = object_.find(key);
    return found != object_.end() && !found->is_null() && *found != json(false);
  }
  // The object under the key; null where it is absent or null.
  Expected<const json*> part(const char* key) const {
    const auto found = object_.find(key);
    if (found == object_.end() || found->is_null()) return static_cast<const json*>(nullptr);
    if (!found->is_object()) return corrupt(fmt::format("has a {} that is not an object", key));
    return &*found;
  }
  std::string text(const char* key) const {
    const auto found = object_.find(key);
    return found != object_.end() && found->is_string() ? found->get<std::string>() : std::string();
  }

 private:
  const json& object_;
};

// Whether a description of the rotation asks for more than its base: for a type but "default", or for a
// factor without any type.
bool is_scaled(const json& rotation) {
  bool typed = false;
  for (const char* key : {"rope_type", "type"}) {
    if (!rotation.contains(key)) continue;
    if (Config(rotation).text(key) != "default") return true;
    typed = true;
  }
  return !typed && rotation.contains("factor");
}

Expected<void> check_kind(const Config& config, bool sparse) {
  if (config.text("hidden_act") != "silu") return unsupported("activation but silu");
  if (config.on("tie_word_embeddings")) return unsupported("tied embeddings (tie_word_embeddings)");
  if (config.on("rope_scaling")) {
    NS_ASSIGN_OR_RETURN(const json* const scaling, config.part("rope_scaling"));
    if (is_scaled(*scaling)) return unsupported("scaled rotation (rope_scaling)");
  }
  if (config.on("sliding_window")) return unsupported("sliding window (sliding_window)");
  if (!sparse && (config.on("attention_bias") || config.on("mlp_bias")))
    return unsupported("biases (attention_bias, mlp_bias)");
  return {};
}

Expected<void> read_sizes(const Config& config, bool sparse, compute::ModelShape* shape) {
  NS_ASSIGN_OR_RETURN(shape->layers, config.number("num_hidden_layers"));
  NS_ASSIGN_OR_RETURN(shape->hidden, config.number("hidden_size"));
  NS_ASSIGN_OR_RETURN(shape->heads, config.number("num_attention_heads"));
  if (shape->heads == 0) return corrupt("has a num_attention_heads of 0");
  // In both, null means as many as there are heads. MixtralConfig alone has another default.
  constexpr std::uint32_t kv_heads_of_mixtral = 8;
  const bool defaulted = sparse && !config.has("num_key_value_heads");
  NS_ASSIGN_OR_RETURN(shape->kv_heads,
                      config.number("num_key_value_heads", defaulted ? kv_heads_of_mixtral : shape->heads));
  NS_ASSIGN_OR_RETURN(shape->head_dim, config.number("head_dim", shape->hidden / shape->heads));
  NS_ASSIGN_OR_RETURN(shape->ffn, config.number("intermediate_size"));
  NS_ASSIGN_OR_RETURN(shape->vocab, config.number("vocab_size"));
  NS_ASSIGN_OR_RETURN(shape->sequence, config.number("max_position_embeddings"));
  // Transformers' defaults of LlamaConfig and MixtralConfig.
  NS_ASSIGN_OR_RETURN(shape->rms_epsilon, config.real("rms_norm_eps", sparse ? 1e-5 : 1e-6));
  return {};
}

// rope_theta. Transformers 5 writes it into rope_parameters, together with what rope_scaling describes.
Expected<float> read_rotation(const Config& config, double usual) {
  NS_ASSIGN_OR_RETURN(const float theta, config.real("rope_theta", usual));
  NS_ASSIGN_OR_RETURN(const json* const parameters, config.part("rope_parameters"));
  if (parameters == nullptr) return theta;
  if (is_scaled(*parameters)) return unsupported("scaled rotation (rope_parameters)");
  return Config(*parameters).real("rope_theta", double{theta});
}

bool is_readable(tensor::DType type) {
  return type == tensor::DType::F32 || type == tensor::DType::F16 || type == tensor::DType::BF16;
}

}  // namespace

Expected<compute::ModelShape> parse_hugging_face_config(ByteSpan file) {
  NS_ASSIGN_OR_RETURN(const json object,
                      detail::parse_json_object(file, hugging_face_config, max_config_bytes));
  const Config config(object);
  const std::string kind = config.text("model_type");
  const bool sparse = kind == "mixtral";
  if (!sparse && kind != "llama") return unsupported(fmt::format("architecture \"{}\"", kind.substr(0, 40)));
  NS_RETURN_IF_ERROR(check_kind(config, sparse));
  compute::ModelShape shape;
  NS_RETURN_IF_ERROR(read_sizes(config, sparse, &shape));
  NS_ASSIGN_OR_RETURN(shape.rope_theta, read_rotation(config, sparse ? 1e6 : 1e4));
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
  const std::string weights = folder + "/" + hugging_face_weights;
  if (!env.exists(weights) && env.exists(weights + ".index.json"))
    return make_error(
        ErrorCode::Unsupported,
        fmt::format("the weights are in several files; join them into one {}", hugging_face_weights));
  NS_ASSIGN_OR_RETURN(auto file, env.open_read(weights));
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
      if (!is_readable(entry->spec.type))
        return make_error(ErrorCode::Unsupported,
                          fmt::format("{}: {} is {}, not F32, F16 or BF16", hugging_face_weights,
                                      parameter.name, tensor::to_string(entry->spec.type)));
    }
  }
  if (header_.tensors.size() == expected) return {};
  return make_error(ErrorCode::Unsupported, fmt::format("{}: NeuroShard's model has no tensor {}",
                                                        hugging_face_weights, extra_tensor()));
}

// The first tensor that no slot has.
std::string HuggingFaceModel::extra_tensor() const {
  std::set<std::string> known;
  for (const compute::SlotId slot : compute::model_slots(shape_))
    for (compute::ParameterInfo& parameter : compute::slot_parameters(shape_, slot))
      known.insert(std::move(parameter.name));
  for (const tensor::TensorEntry& entry : header_.tensors)
    if (known.count(entry.spec.name) == 0) return entry.spec.name;
  return {};
}

Expected<void> HuggingFaceModel::read(const tensor::TensorEntry& entry, std::uint64_t first,
                                      Span<float> values) {
  const std::uint32_t size = tensor::byte_size(entry.spec.type);
  Bytes stored(values.size() * size);
  NS_RETURN_IF_ERROR(file_->read_at(header_.data_offset + entry.begin + first * size, stored));
  if (entry.spec.type == tensor::DType::F32) {
    std::memcpy(values.data(), stored.data(), stored.size());
  } else {
    for (std::size_t i = 0; i < values.size(); ++i) {
      const auto bits = load_le<std::uint16_t>(stored.data() + i * size);
      values[i] = entry.spec.type == tensor::DType::BF16 ? from_bf16(bits) : from_f16(bits);
    }
  }
  if (std::all_of(values.begin(), values.end(), [](float value) { return std::isfinite(value); })) return {};
  return make_error(ErrorCode::Corrupt, fmt::format("{}: {} has a value that is not a finite number",
                                                    hugging_face_weights, entry.spec.name));
}

Expected<void> HuggingFaceModel::read_slot(compute::SlotId slot, Span<float> values) {
  NS_CHECK(values.size() == compute::slot_parameter_count(shape_, slot));
  for (const compute::ParameterInfo& parameter : compute::slot_parameters(shape_, slot)) {
    const Span<float> part =
        values.subspan(static_cast<std::size_t>(parameter.offset), static_cast<std::size_t>(parameter.count));
    NS_RETURN_IF_ERROR(read(*header_.find(parameter.name), 0, part));
  }
  return {};
}

}  // namespace neuroshard::exporting
