// A tiny model's training state with recognisable floats, for tests of checkpoints.
#pragma once

#include <cmath>
#include <vector>

#include "core/checkpoint/loader.h"
#include "core/checkpoint/manifest.h"
#include "core/checkpoint/tensors.h"
#include "core/crypto/keys.h"

namespace neuroshard::testing {

inline compute::ModelShape tiny_shape() {
  compute::ModelShape shape;
  shape.layers = 1;
  shape.hidden = 8;
  shape.head_dim = 4;
  shape.heads = 2;
  shape.kv_heads = 1;
  shape.ffn = 8;
  shape.experts = 2;
  shape.experts_per_token = 1;
  shape.vocab = 12;
  shape.sequence = 4;
  return shape;
}

inline crypto::KeyPair tiny_key(std::uint8_t seed = 7) {
  Hash256 bytes{};
  bytes.fill(seed);
  return crypto::KeyPair::from_seed(bytes);
}

// Every float of the state is a function of (salt, position); some are NaN payloads, infinities and -0, whose
// bits must survive.
struct TinyState {
  explicit TinyState(std::uint32_t salt, compute::ModelShape model = tiny_shape()) : shape(model) {
    for (const compute::SlotId slot : compute::model_slots(shape)) {
      auto& buffers = slots.emplace_back();
      buffers.id = slot;
      for (std::vector<float>* values : {&buffers.parameters, &buffers.moment1, &buffers.moment2}) {
        values->resize(static_cast<std::size_t>(compute::slot_parameter_count(shape, slot)));
      }
    }
    fill(salt);
  }

  // In place, as an optimizer would.
  void fill(std::uint32_t salt) {
    std::uint32_t position = 0;
    for (auto& buffers : slots) {
      for (std::vector<float>* values : {&buffers.parameters, &buffers.moment1, &buffers.moment2}) {
        for (float& value : *values) value = make_float(salt * 2654435761u + position++);
      }
    }
    extra = {make_float(salt), 0.5f};
  }

  static float make_float(std::uint32_t bits) {
    bits *= 2246822519u;
    float value;
    std::memcpy(&value, &bits, sizeof(value));
    return value;
  }

  checkpoint::TensorView view() const {
    checkpoint::TensorView result;
    for (const auto& slot : slots)
      result.slots.push_back({slot.id, slot.parameters, slot.moment1, slot.moment2});
    result.extras.push_back({"router_bias", {1, 2}, extra});
    return result;
  }

  checkpoint::LoadRequest request() {
    checkpoint::LoadRequest result;
    result.shape = shape;
    result.slots = compute::model_slots(shape);
    result.target = [this](compute::SlotId id) -> Expected<checkpoint::SlotTarget> {
      for (auto& slot : slots) {
        if (slot.id == id) return checkpoint::SlotTarget{slot.parameters, slot.moment1, slot.moment2};
      }
      return make_error(ErrorCode::NotFound, "no such slot");
    };
    result.extra = [this](const checkpoint::ExtraTensor& tensor) -> Expected<void> {
      extra.assign(tensor.values.begin(), tensor.values.end());
      return {};
    };
    return result;
  }

  bool same_bits(const TinyState& other) const {
    const auto equal = [](const std::vector<float>& a, const std::vector<float>& b) {
      return a.size() == b.size() && std::memcmp(a.data(), b.data(), a.size() * sizeof(float)) == 0;
    };
    for (std::size_t i = 0; i < slots.size(); ++i) {
      if (!equal(slots[i].parameters, other.slots[i].parameters)) return false;
      if (!equal(slots[i].moment1, other.slots[i].moment1)) return false;
      if (!equal(slots[i].moment2, other.slots[i].moment2)) return false;
    }
    return equal(extra, other.extra);
  }

  struct Buffers {
    compute::SlotId id;
    std::vector<float> parameters, moment1, moment2;
  };
  compute::ModelShape shape;
  std::vector<Buffers> slots;
  std::vector<float> extra;
};

inline checkpoint::Manifest tiny_manifest(std::uint64_t step,
                                          const compute::ModelShape& shape = tiny_shape()) {
  checkpoint::Manifest manifest;
  manifest.architecture = shape;
  manifest.architecture_version = 1;
  manifest.wallet = "0123456789abcdef";
  manifest.network_id.fill(3);
  manifest.step = step;
  manifest.tokens_seen = step * 4096;
  manifest.micro_batch = 4;
  manifest.rng = {1, 2, 3, ~std::uint64_t{0}};
  manifest.loader_position = R"({"shard":1,"offset":"ü"})";
  manifest.trainer_state = "{}";
  manifest.losses = {2.5 + 1.0 / static_cast<double>(step + 1), 1.0 / 3.0};
  manifest.saved_at = WallTime(std::chrono::milliseconds(1'700'000'000'000));
  manifest.written_today = {19'675, 123};
  return manifest;
}

}  // namespace neuroshard::testing
