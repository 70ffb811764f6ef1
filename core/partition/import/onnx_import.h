// Computation graphs of ONNX models: one node per operator, costs from the operators' shapes.
//
// What is the same for every request is no node: weights and whatever is computed from them and from shapes
// alone is counted as parameters of the operators that read it, at each of them (every block that needs a
// weight holds a copy). An operator with several outputs that are read becomes a node and one port per
// output, which share a block: a tensor has one producer and one size.
// Operators (2 per multiply-add): products 2mnk; convolutions 2 · outputs · channels/group · kernel;
// recurrent cells by their products; the rest a few operations per element. Bytes are those of inputs,
// parameters and outputs; reshapes and the like move nothing.
#pragma once

#include <map>
#include <string>

#include "core/base/bytes.h"
#include "core/partition/graph/machine_model.h"
#include "core/partition/import/onnx_shapes.h"

namespace neuroshard::partition {

// A protobuf message of two gigabytes or more is not valid; larger models keep their weights beside the file.
inline constexpr std::uint64_t max_onnx_file_bytes = (std::uint64_t{2} << 30) - 1;

struct OnnxOptions {
  // Sizes of open dimensions, by the name in the file ("batch") or "input:axis" ("tokens:1").
  std::map<std::string, std::int64_t> dimensions;
};

// Whether a file's first bytes look like an ONNX model.
bool is_onnx(ByteSpan head);

// Any bytes are safe.  Errors: those of parse_onnx(); InvalidArgument names an open dimension without a size,
// the tensors whose shapes are not known, an operator that reads what nobody makes.
Expected<CostedGraph> import_onnx(ByteSpan bytes, const OnnxOptions& options);

// The first half of it: type and shape of every tensor, known or not.
Expected<OnnxValues> infer_onnx(ByteSpan bytes, const OnnxOptions& options);

}  // namespace neuroshard::partition
