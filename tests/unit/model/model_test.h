// Shared by the tests of the compute module: loading it, small models, and comparisons.
#pragma once

#include <algorithm>
#include <cmath>
#include <string>
#include <vector>

#include "core/base/log.h"
#include "core/base/rng.h"
#include "core/compute/module.h"

namespace neuroshard::model_test {

using compute::call_without_backward;
using compute::ExpertProvider;
using compute::ForwardMetrics;
using compute::initialise_slot;
using compute::load_module;
using compute::load_module_file;
using compute::LoadedModule;
using compute::make_stage;
using compute::MicroBatch;
using compute::model_slots;
using compute::ModelShape;
using compute::Module;
using compute::module_abi_version;
using compute::module_build_id;
using compute::ModuleInfo;
using compute::ModuleOptions;
using compute::ParameterInfo;
using compute::RouterOptions;
using compute::slot_parameters;
using compute::SlotBuffer;
using compute::SlotBuffers;
using compute::SlotId;
using compute::SlotKind;
using compute::Stage;
using compute::StagePtr;
using compute::StageSpec;
using compute::Status;
using compute::StepMetrics;
using compute::StepOptions;
using compute::to_error;
using compute::to_string;

inline Expected<LoadedModule> load(std::uint32_t threads = 2, std::uint64_t memory_limit = 0,
                                   const std::string& max_isa = {}, const std::string& precision = "fp32") {
  static NullLogger logger;
  ModuleOptions options;
  options.threads = threads;
  options.memory_limit = memory_limit;
  max_isa.copy(options.max_isa, sizeof options.max_isa - 1);
  precision.copy(options.precision, sizeof options.precision - 1);
  options.precision[std::min(precision.size(), sizeof options.precision - 1)] = 0;
  return load_module("cpu", options, logger);
}

inline ModelShape small_shape(std::uint32_t experts = 4) {
  ModelShape shape;
  shape.layers = 2;
  shape.hidden = 32;
  shape.head_dim = 8;
  shape.heads = 4;
  shape.kv_heads = 2;
  shape.ffn = 48;
  shape.experts = experts;
  shape.experts_per_token = experts > 1 ? 2 : 1;
  shape.vocab = 61;
  shape.sequence = 16;
  return shape;
}

inline StageSpec whole_model(const ModelShape& shape) {
  StageSpec spec;
  spec.shape = shape;
  spec.layer_count = shape.layers;
  spec.embed = true;
  spec.head = true;
  return spec;
}

inline void initialise(Stage& stage, const ModelShape& shape, float scale = 1.0f) {
  for (std::uint32_t i = 0; i < stage.slot_count(); ++i) {
    const SlotBuffers buffers = stage.slot(i);
    const Span<float> values(buffers.parameters, buffers.count);
    initialise_slot(shape, buffers.id, Hash256{4, 2}, values);
    if (scale != 1.0f) {
      for (float& value : values) value *= value == 1.0f ? 1.0f : scale;
    }
  }
  stage.parameters_changed();
}

inline StagePtr stage_of(Module& module, const StageSpec& spec, float scale = 1.0f) {
  Expected<StagePtr> stage = make_stage(module, spec);
  if (!stage.ok()) return nullptr;
  initialise(**stage, spec.shape, scale);
  return std::move(stage).value();
}

// Random tokens and their successors.
struct Batch {
  std::vector<std::int32_t> tokens;
  std::vector<std::int32_t> targets;
  MicroBatch view;

  Batch(const ModelShape& shape, std::uint32_t batch, std::uint32_t sequence, std::uint64_t seed) {
    Rng rng(seed);
    for (std::uint32_t i = 0; i < batch * sequence; ++i) {
      tokens.push_back(static_cast<std::int32_t>(rng.below(shape.vocab)));
      targets.push_back(static_cast<std::int32_t>(rng.below(shape.vocab)));
    }
    view.batch = batch;
    view.sequence = sequence;
    view.tokens = tokens.data();
    view.targets = targets.data();
  }
  Batch(const Batch&) = delete;
  Batch& operator=(const Batch&) = delete;
};

inline std::vector<float> gradients(Stage& stage) {
  std::vector<float> all;
  for (std::uint32_t i = 0; i < stage.slot_count(); ++i) {
    const SlotBuffers buffers = stage.slot(i);
    all.insert(all.end(), buffers.gradient, buffers.gradient + buffers.count);
  }
  return all;
}
inline std::vector<float> parameters(Stage& stage) {
  std::vector<float> all;
  for (std::uint32_t i = 0; i < stage.slot_count(); ++i) {
    const SlotBuffers buffers = stage.slot(i);
    all.insert(all.end(), buffers.parameters, buffers.parameters + buffers.count);
  }
  return all;
}

// Largest |a − b| / max(1, largest |b|); infinite for different sizes or a value that is not a number.
inline double distance(const std::vector<float>& a, const std::vector<float>& b) {
  if (a.size() != b.size()) return HUGE_VAL;
  double difference = 0;
  double scale = 1;
  for (std::size_t i = 0; i < a.size(); ++i) {
    if (!std::isfinite(a[i]) || !std::isfinite(b[i])) return HUGE_VAL;
    difference = std::max(difference, std::abs(double{a[i]} - b[i]));
    scale = std::max(scale, std::abs(double{b[i]}));
  }
  return difference / scale;
}

}  // namespace neuroshard::model_test

// A Status that must be a success.
#define NS_VERIFY_OK(call)                              \
  do {                                                  \
    const neuroshard::compute::Status ns_status = call; \
    QVERIFY2(ns_status.ok(), ns_status.message);        \
  } while (false)
