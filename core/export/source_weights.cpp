#include "core/export/source_weights.h"

#include <fmt/format.h>

#include <algorithm>

#include "core/checkpoint/file_names.h"
#include "core/crypto/hash.h"
#include "core/export/detail/file_bytes.h"

namespace neuroshard::exporting {
namespace {

constexpr std::uint64_t progress_step = 16u << 20;
constexpr std::size_t chunk_bytes = std::size_t{1} << 20;
constexpr std::uint64_t chunk_floats = chunk_bytes / sizeof(float);

Error damaged() {
  return make_error(ErrorCode::Corrupt, fmt::format("the content of {} is damaged; nothing was exported",
                                                    checkpoint::weights_file_name));
}

// The router's choice depends on biases that other programs do not have, unless all of them are zero.
Expected<void> check_router_bias(storage::FileEnv& env, const checkpoint::Entry& entry) {
  NS_ASSIGN_OR_RETURN(auto opened, env.open_read(entry.path + "/" + checkpoint::optimizer_file_name));
  detail::FileBytes file(std::move(opened));
  NS_ASSIGN_OR_RETURN(const tensor::SafetensorsHeader header, tensor::read_safetensors_header(file));
  const tensor::TensorEntry* const bias = header.find(checkpoint::router_bias_tensor);
  if (bias == nullptr) return {};
  if (bias->bytes > checkpoint::max_extra_bytes || bias->spec.type != tensor::DType::F32)
    return make_error(ErrorCode::Corrupt, "the checkpoint's balancing biases are damaged");
  std::vector<float> values(static_cast<std::size_t>(bias->bytes / sizeof(float)));
  NS_RETURN_IF_ERROR(tensor::read_tensor(
      file, header, *bias, {reinterpret_cast<std::uint8_t*>(values.data()), values.size() * sizeof(float)}));
  if (std::all_of(values.begin(), values.end(), [](float value) { return value == 0.0f; })) return {};
  return make_error(
      ErrorCode::InvalidArgument,
      "the router of this model chooses experts with balancing biases (router_bias_gamma_nano of its "
      "profile), which MixtralForCausalLM and llama.cpp do not have; export as safetensors");
}

}  // namespace

Expected<void> ExportMeter::add(std::uint64_t bytes) {
  if (cancel_.cancelled())
    return make_error(ErrorCode::Cancelled, "stopped before the end; nothing was exported");
  done_ = std::min(done_ + bytes, total_);
  if (!progress_ || (done_ - reported_ < progress_step && done_ != total_)) return {};
  reported_ = done_;
  progress_(done_, total_);
  return {};
}

Expected<SourceWeights> SourceWeights::open(storage::FileEnv& env, const checkpoint::Entry& entry,
                                            ExportMeter& meter) {
  if (!entry.complete()) return make_error(ErrorCode::Corrupt, entry.damage);
  if (entry.is_part()) {
    return make_error(
        ErrorCode::InvalidArgument,
        fmt::format("the checkpoint {} has only a part of the model; other programs need all of it",
                    entry.name));
  }
  NS_RETURN_IF_ERROR(check_router_bias(env, entry));
  SourceWeights weights(entry.manifest.architecture, meter);
  NS_ASSIGN_OR_RETURN(auto opened, env.open_read(entry.path + "/" + checkpoint::weights_file_name));
  weights.file_ = std::make_unique<detail::FileBytes>(std::move(opened));
  NS_ASSIGN_OR_RETURN(weights.header_, tensor::read_safetensors_header(*weights.file_));
  NS_RETURN_IF_ERROR(weights.check_layout());
  meter.set_total(2 * weights.file_->size());
  NS_RETURN_IF_ERROR(weights.verify(entry.manifest.file(checkpoint::weights_file_name)->sha256));
  return weights;
}

Expected<void> SourceWeights::check_layout() {
  std::size_t expected = 0;
  for (const compute::SlotId slot : compute::model_slots(shape_)) {
    for (const compute::ParameterInfo& parameter : compute::slot_parameters(shape_, slot)) {
      ++expected;
      const tensor::TensorEntry* const found = header_.find(parameter.name);
      if (found == nullptr || found->spec.type != tensor::DType::F32 || found->spec.dims != parameter.dims) {
        return make_error(ErrorCode::Corrupt,
                          fmt::format("the tensor {} is missing or has another shape", parameter.name));
      }
    }
  }
  if (header_.tensors.size() == expected) return {};
  return make_error(ErrorCode::Corrupt,
                    fmt::format("{} has tensors that are not of this model", checkpoint::weights_file_name));
}

Expected<void> SourceWeights::verify(const Hash256& expected) {
  crypto::Sha256 whole;
  Bytes chunk(chunk_bytes);
  const auto take = [&](std::uint64_t offset, std::uint64_t bytes, crypto::Sha256* own) -> Expected<void> {
    for (const std::uint64_t end = offset + bytes; offset < end;) {
      const auto now = static_cast<std::size_t>(std::min<std::uint64_t>(end - offset, chunk.size()));
      NS_RETURN_IF_ERROR(file_->read_at(offset, {chunk.data(), now}));
      whole.update(ByteSpan(chunk.data(), now));
      if (own != nullptr) own->update(ByteSpan(chunk.data(), now));
      NS_RETURN_IF_ERROR(meter_->add(now));
      offset += now;
    }
    return {};
  };
  NS_RETURN_IF_ERROR(take(0, header_.data_offset, nullptr));
  for (const tensor::TensorEntry& entry : header_.tensors) {  // they tile the data
    crypto::Sha256 own;
    NS_RETURN_IF_ERROR(take(header_.data_offset + entry.begin, entry.bytes, &own));
    hashes_.push_back(own.finish());
  }
  if (whole.finish() != expected) return damaged();
  return {};
}

Expected<void> SourceWeights::read(const compute::ParameterInfo& parameter, std::uint64_t unit,
                                   const Use& use) {
  const tensor::TensorEntry* const entry = header_.find(parameter.name);
  const std::uint64_t most = std::max(unit, chunk_floats / unit * unit);
  std::vector<float> piece(static_cast<std::size_t>(std::min(most, parameter.count)));
  crypto::Sha256 hash;
  std::uint64_t offset = header_.data_offset + entry->begin;
  for (std::uint64_t left = parameter.count; left > 0;) {
    const Span<float> values(piece.data(),
                             static_cast<std::size_t>(std::min<std::uint64_t>(left, piece.size())));
    const MutableByteSpan bytes(reinterpret_cast<std::uint8_t*>(values.data()), values.size_bytes());
    NS_RETURN_IF_ERROR(file_->read_at(offset, bytes));
    hash.update(ByteSpan(bytes.data(), bytes.size()));
    NS_RETURN_IF_ERROR(use({values.data(), values.size()}));
    NS_RETURN_IF_ERROR(meter_->add(bytes.size()));
    offset += bytes.size();
    left -= values.size();
  }
  if (hash.finish() != hashes_[static_cast<std::size_t>(entry - header_.tensors.data())]) return damaged();
  return {};
}

}  // namespace neuroshard::exporting
