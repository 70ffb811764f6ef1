// Shapes of every tensor of an ONNX graph, from those of its inputs and weights: the operators' own rules
// (github.com/onnx/onnx/blob/main/docs/Operators.md), with small integer constants followed through, because
// exporters compute the shapes of Reshape, Slice and Expand inside the graph. Where an operator has no rule
// here, the shape that the file states is taken.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <unordered_map>
#include <vector>

#include "core/partition/import/onnx_model.h"

namespace neuroshard::partition {

using OnnxShape = std::vector<std::int64_t>;

struct OnnxValue {
  OnnxType type = OnnxType::Undefined;
  std::optional<OnnxShape> shape;  // none: not known
  // Same for every request: a weight, or computed from weights and shapes alone.
  bool constant = false;
  // The integers of a small constant. Also of inputs' shapes, which are fixed here.
  std::optional<std::vector<std::int64_t>> integers;
  std::vector<double> reals;  // of a small constant of fp32; empty: not known

  double elements() const;  // 0 when not known
  double bytes() const { return elements() * element_bytes(type); }
};

// Values by name; the outputs of a node that is not understood have no shape.
using OnnxValues = std::unordered_map<std::string, OnnxValue>;

// Inputs of one node, in order; left-out ones have no shape and are not constant. None is null.
using OnnxInputs = std::vector<const OnnxValue*>;

// One node's outputs from its inputs. Never fails: what can't be told stays unknown. `opset` decides where
// attributes became inputs.
std::vector<OnnxValue> infer_outputs(const OnnxNode& node, const OnnxInputs& inputs, std::int64_t opset);

// No negative dimension, at most max_onnx_rank, 2^40 in one dimension and 1e15 elements: what a file claims
// beyond it is a slip or an attack, and arithmetic with it would overflow.
bool is_sensible(const OnnxShape& shape);

// Two shapes as numpy broadcasts them; none when they don't fit.
std::optional<OnnxShape> broadcast(const OnnxShape& a, const OnnxShape& b);

}  // namespace neuroshard::partition
