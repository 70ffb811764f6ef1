// A model with a tokenizer that is small, and large enough that every part of it shows in an export.
#pragma once

#include <memory>
#include <vector>

#include "core/data/tokenizer.h"
#include "tests/support/checkpoint_sample.h"

namespace neuroshard::testing {

inline compute::ModelShape small_shape(std::uint32_t experts) {
  compute::ModelShape shape;
  shape.layers = 2;
  shape.hidden = 32;
  shape.head_dim = 8;
  shape.heads = 4;
  shape.kv_heads = 2;
  shape.ffn = 48;
  shape.experts = experts;
  shape.experts_per_token = experts > 1 ? 2 : 1;
  shape.vocab = 280;
  shape.sequence = 16;
  return shape;
}

// Weights large enough that every part of the model shows in the logits; norms that are not all 1.
inline void fill(TinyState& state) {
  for (TinyState::Buffers& slot : state.slots) {
    compute::initialise_slot(state.shape, slot.id, Hash256{9},
                             {slot.parameters.data(), slot.parameters.size()});
    for (std::size_t i = 0; i < slot.parameters.size(); ++i) {
      float& value = slot.parameters[i];
      value = value == 1.0f ? 1.0f + 0.05f * static_cast<float>(i % 7) : value * 12;
    }
  }
  state.extra = {0.0f, 0.0f};  // no balancing biases
}

inline std::shared_ptr<const data::Tokenizer> small_tokenizer() {
  const auto byte = [](char c) { return data::first_byte_token + static_cast<unsigned char>(c); };
  std::vector<data::Merge> merges = {{byte(' '), byte('t')}, {byte('h'), byte('e')}, {266, 267},
                                     {byte('o'), byte('r')}, {byte('l'), byte('l')}, {byte('1'), byte('2')},
                                     {byte(' '), byte(' ')}};
  return std::make_shared<const data::Tokenizer>(data::Tokenizer::from_merges(std::move(merges), {}).value());
}

// Outside of the class: moc takes the name of the field for a keyword.
inline std::vector<TinyState::Buffers>& buffers_of(TinyState& state) {
  return state.slots;
}

}  // namespace neuroshard::testing
