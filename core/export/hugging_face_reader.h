// Reads a Hugging Face folder back: the shape from its configuration, and the weights. It accepts what NeuroShard's model can
// express and refuses everything else by name.  Threads: one.
#pragma once

#include <memory>
#include <string>

#include "core/base/bytes.h"
#include "core/base/expected.h"
#include "core/base/span.h"
#include "core/compute/model_shape.h"
#include "core/compute/slot.h"
#include "core/storage/file_env.h"
#include "core/tensor/safetensors.h"

namespace neuroshard::exporting {

inline constexpr std::uint64_t max_config_bytes = 1u << 20;

// config.json of a LlamaForCausalLM or MixtralForCausalLM. Unknown keys are passed over. Errors: Corrupt, Unsupported
// (names what our model does not have: biases, tied embeddings, a sliding window, another activation or rotation).
Expected<compute::ModelShape> parse_hugging_face_config(ByteSpan file);

class HuggingFaceModel {
 public:
  // Checks the configuration, then the header of the weights; reads no weight. Corrupt: a tensor is missing or has another
  // shape.  Unsupported: a tensor that our model does not have, weights that are not F32, F16 or BF16, weights in several files.
  static Expected<HuggingFaceModel> open(storage::FileEnv& env, const std::string& folder);

  const compute::ModelShape& shape() const { return shape_; }
  // The parameters of a slot in the order of its flat buffer. values: exactly slot_parameter_count floats.
  // Corrupt, here and below: a value is not a finite number.
  Expected<void> read_slot(compute::SlotId slot, Span<float> values);
  // `values.size()` of a parameter from `first` on, as fp32.
  Expected<void> read_parameter(const compute::ParameterInfo& parameter, std::uint64_t first,
                                Span<float> values) {
    return read(*header_.find(parameter.name), first, values);
  }

 private:
  HuggingFaceModel() = default;
  Expected<void> check_layout() const;
  std::string extra_tensor() const;
  Expected<void> read(const tensor::TensorEntry& entry, std::uint64_t first, Span<float> values);

  compute::ModelShape shape_;
  std::unique_ptr<tensor::ByteSource> file_;
  tensor::SafetensorsHeader header_;
};

}  // namespace neuroshard::exporting
