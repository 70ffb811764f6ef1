#include "core/export/model_import.h"

#include <memory>
#include <utility>
#include <vector>

#include "core/base/byte_source.h"
#include "core/base/check.h"
#include "core/checkpoint/file_names.h"
#include "core/compute/growth.h"
#include "core/export/hugging_face.h"
#include "core/export/hugging_face_tokenizer.h"
#include "core/export/source_weights.h"

namespace neuroshard::exporting {
namespace {

// One parameter of the folder as the fp32 bytes of a checkpoint. Reads whole floats.
class ParameterBytes final : public ByteSource {
 public:
  ParameterBytes(HuggingFaceModel& model, compute::ParameterInfo parameter, ExportMeter& meter)
      : model_(model), parameter_(std::move(parameter)), meter_(meter) {}

  std::uint64_t size() const override { return parameter_.count * sizeof(float); }
  Expected<void> read_at(std::uint64_t offset, MutableByteSpan target) const override {
    NS_CHECK(offset % sizeof(float) == 0 && target.size() % sizeof(float) == 0);
    std::vector<float> values(target.size() / sizeof(float));
    NS_RETURN_IF_ERROR(
        model_.read_parameter(parameter_, offset / sizeof(float), {values.data(), values.size()}));
    std::memcpy(target.data(), values.data(), target.size());
    return meter_.add(target.size());
  }

 private:
  HuggingFaceModel& model_;
  compute::ParameterInfo parameter_;
  ExportMeter& meter_;
};

// A slot of a larger model that continues the folder's. It is computed at the first read and forgotten after the last.
class GrownSlot final : public ByteSource {
 public:
  GrownSlot(HuggingFaceModel& model, const compute::ModelShape& shape, compute::SlotId slot,
            const Hash256& seed, ExportMeter& meter)
      : model_(model), shape_(shape), slot_(slot), seed_(seed), meter_(meter) {}

  std::uint64_t size() const override { return compute::slot_parameter_count(shape_, slot_) * sizeof(float); }
  Expected<void> read_at(std::uint64_t offset, MutableByteSpan target) const override {
    if (values_.empty()) NS_RETURN_IF_ERROR(compute_values());
    std::memcpy(target.data(), reinterpret_cast<const std::uint8_t*>(values_.data()) + offset, target.size());
    if (offset + target.size() == size()) values_ = {};
    return meter_.add(target.size());
  }

 private:
  Expected<void> compute_values() const {
    std::vector<float> old;
    if (const auto from = compute::grown_from(model_.shape(), shape_, slot_)) {
      old.resize(static_cast<std::size_t>(compute::slot_parameter_count(model_.shape(), *from)));
      for (const compute::ParameterInfo& parameter : compute::slot_parameters(model_.shape(), *from))
        NS_RETURN_IF_ERROR(model_.read_parameter(
            parameter, 0, {old.data() + parameter.offset, static_cast<std::size_t>(parameter.count)}));
    }
    values_.resize(static_cast<std::size_t>(compute::slot_parameter_count(shape_, slot_)));
    compute::grow_slot(model_.shape(), shape_, slot_, {old.data(), old.size()}, seed_,
                       {values_.data(), values_.size()});
    return {};
  }

  HuggingFaceModel& model_;
  const compute::ModelShape shape_;
  const compute::SlotId slot_;
  const Hash256 seed_;
  ExportMeter& meter_;
  mutable std::vector<float> values_;  // one thread reads
};

}  // namespace

bool is_hugging_face_folder(storage::FileEnv& env, const std::string& folder) {
  return env.exists(folder + "/" + hugging_face_config) && !env.exists(folder + "/manifest.json");
}

Expected<ImportSource> open_hugging_face_folder(storage::FileEnv& env, const std::string& folder) {
  NS_ASSIGN_OR_RETURN(HuggingFaceModel model, HuggingFaceModel::open(env, folder));
  NS_ASSIGN_OR_RETURN(const Bytes file, storage::read_file(env, folder + "/" + hugging_face_tokenizer,
                                                           max_hugging_face_tokenizer_bytes));
  NS_ASSIGN_OR_RETURN(data::Tokenizer tokenizer, parse_hugging_face_tokenizer(file, model.shape().vocab));
  return ImportSource{std::move(model), std::move(tokenizer)};
}

Expected<checkpoint::SaveResult> import_model(checkpoint::Writer& writer, ImportSource& source,
                                              checkpoint::Manifest manifest, const Hash256& seed,
                                              const checkpoint::Progress& progress,
                                              const CancelToken& cancel) {
  const compute::ModelShape& shape = manifest.architecture;
  NS_RETURN_IF_ERROR(compute::check_growth(source.model.shape(), shape));
  const bool grows = !checkpoint::same_shape(source.model.shape(), shape);
  ExportMeter meter(progress, cancel);
  meter.set_total(compute::model_parameter_count(shape) * sizeof(float));
  checkpoint::TensorView view;
  for (const compute::SlotId slot : compute::model_slots(shape)) {
    std::vector<ByteSourcePtr> parts;
    if (grows) parts.push_back(std::make_shared<GrownSlot>(source.model, shape, slot, seed, meter));
    for (compute::ParameterInfo& parameter :
         grows ? std::vector<compute::ParameterInfo>() : compute::slot_parameters(shape, slot))
      parts.push_back(std::make_shared<ParameterBytes>(source.model, std::move(parameter), meter));
    const auto count = static_cast<std::size_t>(compute::slot_parameter_count(shape, slot));
    const ByteSourcePtr zeros = zero_bytes(count * sizeof(float));
    view.slots.push_back({slot, {joined(std::move(parts)), 0, count}, {zeros, 0, count}, {zeros, 0, count}});
  }
  const std::vector<float> biases(std::size_t{shape.layers} * shape.experts);
  view.extras.push_back(
      {checkpoint::router_bias_extra, {shape.layers, shape.experts}, {biases.data(), biases.size()}});
  Expected<checkpoint::SaveResult> saved = writer.take_in(std::move(manifest), view);
  if (!saved.ok()) return std::move(saved).error().with_context("importing a model");
  return saved;
}

}  // namespace neuroshard::exporting
