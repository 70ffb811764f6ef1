#include "core/checkpoint/detail/layout.h"

namespace neuroshard::checkpoint::detail {
namespace {

void add(std::vector<tensor::TensorSpec>& specs, const std::vector<compute::ParameterInfo>& parameters,
         const char* suffix) {
  for (const compute::ParameterInfo& info : parameters) {
    specs.push_back({info.name + suffix, tensor::DType::F32, info.dims});
  }
}

}  // namespace

std::vector<tensor::TensorSpec> weight_specs(const compute::ModelShape& shape,
                                             Span<const compute::SlotId> slots) {
  std::vector<tensor::TensorSpec> specs;
  for (const compute::SlotId slot : slots) add(specs, compute::slot_parameters(shape, slot), "");
  return specs;
}

std::vector<tensor::TensorSpec> optimizer_specs(const compute::ModelShape& shape,
                                                Span<const compute::SlotId> slots,
                                                Span<const ExtraTensor> extras) {
  std::vector<tensor::TensorSpec> specs;
  for (const compute::SlotId slot : slots) {
    const auto parameters = compute::slot_parameters(shape, slot);
    add(specs, parameters, moment1_suffix);
    add(specs, parameters, moment2_suffix);
  }
  for (const ExtraTensor& extra : extras)
    specs.push_back({extra_prefix + extra.name, tensor::DType::F32, extra.dims});
  return specs;
}

}  // namespace neuroshard::checkpoint::detail
