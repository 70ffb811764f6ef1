// The content of an ONNX file, as far as costs need it: operators, shapes, sizes of weights. Weights
// themselves are skipped, also where they lie in other files, whose paths are never followed. Field numbers:
// onnx.proto of ONNX IR version 8 and later (github.com/onnx/onnx/blob/main/onnx/onnx.proto).
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "core/base/bytes.h"
#include "core/base/expected.h"

namespace neuroshard::partition {

inline constexpr std::size_t max_onnx_rank = 32;
// Integers of a constant that shapes may depend on; longer constants are only sizes.
inline constexpr std::size_t max_onnx_constant = 4096;
// Integers that all operators' constant outputs keep together, far more than the shapes of any network take.
inline constexpr std::size_t max_onnx_folded = 4'000'000;

// TensorProto.DataType.
enum class OnnxType : std::uint32_t {
  Undefined = 0,
  Float = 1,
  Uint8 = 2,
  Int8 = 3,
  Uint16 = 4,
  Int16 = 5,
  Int32 = 6,
  Int64 = 7,
  String = 8,
  Bool = 9,
  Float16 = 10,
  Double = 11,
  Uint32 = 12,
  Uint64 = 13,
  Complex64 = 14,
  Complex128 = 15,
  Bfloat16 = 16
};
// Bytes of one element; 0 for texts and unknown types, 0.5 for the 4-bit types.
double element_bytes(OnnxType type);

// One dimension: a number, or a name that the user gives a number (also "" = unnamed).
struct OnnxDimension {
  std::int64_t size = -1;  // < 0: open
  std::string name;
};

struct OnnxTensorType {
  OnnxType type = OnnxType::Undefined;
  bool has_shape = false;
  std::vector<OnnxDimension> dims;
};

// An initializer or the value of a Constant.
struct OnnxTensor {
  std::string name;
  OnnxType type = OnnxType::Undefined;
  std::vector<std::int64_t> dims;
  bool external = false;               // its values lie in another file
  bool has_values = false;             // integers() are all of it
  std::vector<std::int64_t> integers;  // of small integer tensors
  std::vector<double> reals;           // of fp32 tensors of at most max_onnx_rank numbers (scales of Resize)
};

struct OnnxGraph;

struct OnnxAttribute {
  double real = 0;
  std::int64_t integer = 0;
  std::string text;
  std::vector<std::int64_t> integers;
  std::size_t reals = 0;               // how many numbers a list of reals has
  std::shared_ptr<OnnxTensor> tensor;  // null: none
  std::vector<std::shared_ptr<OnnxGraph>> graphs;
};

struct OnnxNode {
  std::string name, op, domain;
  std::vector<std::string> inputs, outputs;  // "" = left out
  std::map<std::string, OnnxAttribute> attributes;
};

struct OnnxGraph {
  std::string name;
  std::vector<OnnxNode> nodes;
  std::vector<OnnxTensor> initializers;
  std::vector<std::pair<std::string, OnnxTensorType>> inputs, outputs, values;
};

struct OnnxModel {
  std::int64_t ir_version = 0;
  std::string producer;
  std::int64_t opset = 0;  // of the default domain
  OnnxGraph graph;
};

// Any bytes are safe.  Corrupt: not a model, or cut off; Exhausted: more nodes, inputs, attributes or nested
// graphs than limits allow; Unsupported: functions of the model's own
// (ModelProto.functions), sparse weights.
Expected<OnnxModel> parse_onnx(ByteSpan bytes);

}  // namespace neuroshard::partition
