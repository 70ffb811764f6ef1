// A model as GGUF: which keys and tensors llama.cpp expects of the architecture "llama", and where the numbers come from.
//
// The rows of Q and K change their order: our rotation pairs row i with row i + D/2 of a head, that of llama.cpp pairs
// row 2i with row 2i + 1. The matrices of a layer's experts are stacked. The router and the norms stay fp32 in every type,
// as llama.cpp has them. Rows that Q8_0 does not divide are stored as F16.
#pragma once

#include "core/checkpoint/manifest.h"
#include "core/export/gguf.h"
#include "core/export/source_weights.h"
#include "core/export/vocabulary.h"

namespace neuroshard::exporting {

// Bounds of llama.cpp.
inline constexpr std::uint32_t llama_max_experts = 512;
inline constexpr std::uint32_t llama_max_layers = 512;

// One tensor of the file: the parameters that it consists of, one after the other.
struct GgufPart {
  GgufTensor tensor;
  std::vector<compute::ParameterInfo> parameters;
  std::uint32_t rotated_head = 0;  // D: the rows of each head change their order; 0: they stay
};

// checkpoint_id: 64 hexadecimal digits.  InvalidArgument: llama.cpp has bounds that the model exceeds.
Expected<std::vector<GgufEntry>> gguf_entries(const checkpoint::Manifest& manifest,
                                              const std::string& checkpoint_id, const Vocabulary& vocabulary,
                                              StoredType type);
std::vector<GgufPart> gguf_parts(const compute::ModelShape& shape, StoredType type);

// The bytes of one part, in order.
Expected<void> read_part(SourceWeights& weights, const GgufPart& part,
                         const std::function<Expected<void>(ByteSpan)>& use);

}  // namespace neuroshard::exporting
