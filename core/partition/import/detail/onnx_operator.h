// One ONNX operator with what is known of its inputs: what the rules for shapes and costs look at.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "core/partition/import/onnx_shapes.h"

namespace neuroshard::partition::detail {

// References outlive the object.
class OnnxOperator {
 public:
  OnnxOperator(const OnnxNode& node, const OnnxInputs& inputs, std::int64_t opset)
      : node_(node), inputs_(inputs), opset_(opset) {}

  std::string_view name() const { return node_.op; }
  std::string_view domain() const { return node_.domain; }
  std::int64_t opset() const { return opset_; }
  std::size_t input_count() const { return inputs_.size(); }
  std::size_t output_count() const { return node_.outputs.size(); }
  // Whether the input is there at all.
  bool given(std::size_t i) const { return i < node_.inputs.size() && !node_.inputs[i].empty(); }
  bool constant(std::size_t i) const { return i < inputs_.size() && inputs_[i]->constant; }
  std::optional<OnnxShape> shape(std::size_t i) const {
    return i < inputs_.size() ? inputs_[i]->shape : std::nullopt;
  }
  OnnxType type(std::size_t i) const { return i < inputs_.size() ? inputs_[i]->type : OnnxType::Undefined; }
  // The integers of a constant input.
  std::optional<std::vector<std::int64_t>> values(std::size_t i) const {
    return i < inputs_.size() ? inputs_[i]->integers : std::nullopt;
  }

  std::vector<double> reals(std::size_t i) const {
    return i < inputs_.size() ? inputs_[i]->reals : std::vector<double>();
  }

  bool has(const char* name) const { return node_.attributes.count(name) > 0; }
  const OnnxAttribute* attribute(const char* name) const {
    const auto at = node_.attributes.find(name);
    return at == node_.attributes.end() ? nullptr : &at->second;
  }
  // Clamped, so that products with dimensions stay far from overflow.
  std::int64_t integer(const char* name, std::int64_t otherwise) const {
    const OnnxAttribute* found = attribute(name);
    return found ? clamped(found->integer) : otherwise;
  }
  std::string text(const char* name, const char* otherwise) const {
    const OnnxAttribute* found = attribute(name);
    return found ? found->text : otherwise;
  }
  std::optional<std::vector<std::int64_t>> list(const char* name) const {
    const OnnxAttribute* found = attribute(name);
    return found ? std::optional(found->integers) : std::nullopt;
  }
  // Entry i of a list attribute, clamped.
  std::int64_t at(const char* name, std::size_t i, std::int64_t otherwise) const {
    const OnnxAttribute* found = attribute(name);
    return found && i < found->integers.size() ? clamped(found->integers[i]) : otherwise;
  }
  // A value that older operator sets have as an attribute and newer ones as input i; none: neither is there,
  // or the input is no constant (*unknown then).
  std::optional<std::vector<std::int64_t>> setting(const char* name, std::size_t i, bool* unknown) const {
    if (auto found = list(name)) return found;
    *unknown = given(i) && !values(i);
    return values(i);
  }

 private:
  static std::int64_t clamped(std::int64_t value) {
    constexpr std::int64_t most = std::int64_t{1} << 20;
    return value < -most ? -most : value > most ? most : value;
  }

  const OnnxNode& node_;
  const OnnxInputs& inputs_;
  std::int64_t opset_;
};

// −rank…rank−1 to 0…rank−1; none when out of range.
inline std::optional<std::size_t> axis_of(std::int64_t axis, std::size_t rank) {
  const auto r = static_cast<std::int64_t>(rank);
  if (axis < -r || axis >= r) return {};
  return static_cast<std::size_t>(axis < 0 ? axis + r : axis);
}

// The shape with the axes (none: all) reduced to 1, or left out.
std::optional<OnnxShape> without_axes(const OnnxShape& shape,
                                      const std::optional<std::vector<std::int64_t>>& axes, bool keep);
std::optional<OnnxShape> einsum_shape(const OnnxOperator& op);
// All that an einsum multiplies: the product of its different letters' sizes.
double einsum_volume(const OnnxOperator& op);

// Above any tensor's size (is_sensible), so that sums and products of two are far from overflow.
inline constexpr std::int64_t max_onnx_elements = std::int64_t{1} << 50;
// The product, or none when it leaves the range of a tensor's size.
std::optional<std::int64_t> onnx_elements(const OnnxShape& shape);

// Operators that make a tensor or change its type: true, and `y` (of the first input's type) is what it
// makes.
bool infer_made(const OnnxOperator& op, OnnxValue* y);
// Operators that move, cut, join or make tensors. Outputs of others stay unknown.
void infer_layout(const OnnxOperator& op, std::vector<OnnxValue>* outputs);

// Whether the outputs are the same for every request.
bool is_constant(const OnnxOperator& op);
// The integers of the output, where they follow from small constants.
void fold_integers(const OnnxOperator& op, OnnxValue* output);

}  // namespace neuroshard::partition::detail
