// The constant parts of an ONNX graph, which are equal for every request, and einsum's letters.
#include <algorithm>
#include <array>
#include <map>

#include "core/partition/import/detail/onnx_operator.h"

namespace neuroshard::partition::detail {
namespace {

using Shape = OnnxShape;
using Values = std::vector<std::int64_t>;

// Letters of an einsum's terms, spaces left out. Empty where it is not plain (an ellipsis).
std::vector<std::string> terms_of(const OnnxOperator& op, std::string* result) {
  std::string equation = op.text("equation", "");
  equation.erase(std::remove(equation.begin(), equation.end(), ' '), equation.end());
  const std::size_t arrow = equation.find("->");
  if (arrow == std::string::npos || equation.find('.') != std::string::npos) return {};
  *result = equation.substr(arrow + 2);
  std::vector<std::string> terms(1);
  for (const char c : equation.substr(0, arrow)) {
    if (c == ',') {
      terms.emplace_back();
    } else {
      terms.back() += c;
    }
  }
  return terms;
}

std::map<char, std::int64_t> letters_of(const OnnxOperator& op, std::string* result) {
  const std::vector<std::string> terms = terms_of(op, result);
  std::map<char, std::int64_t> letters;
  for (std::size_t i = 0; i < terms.size(); ++i) {
    const auto shape = op.shape(i);
    if (!shape || shape->size() != terms[i].size()) return {};
    for (std::size_t k = 0; k < terms[i].size(); ++k) {
      auto& size = letters[terms[i][k]];
      size = std::max(size, (*shape)[k]);
    }
  }
  return letters;
}

// Of these a quotient that is no integer is not known here; one of integers is cut.
bool is_real(OnnxType type) {
  return type == OnnxType::Float || type == OnnxType::Double || type == OnnxType::Float16 ||
         type == OnnxType::Bfloat16;
}

std::optional<Values> elementwise(const OnnxOperator& op) {
  if (op.input_count() != 2) return {};  // Max and Min may have others
  const bool cuts = !is_real(op.type(0));
  const auto a = op.values(0), b = op.values(1);
  if (!a || !b) return {};
  const std::size_t count = std::max(a->size(), b->size());
  if ((a->size() != count && a->size() != 1) || (b->size() != count && b->size() != 1)) return {};
  Values result;
  for (std::size_t i = 0; i < count; ++i) {
    const std::int64_t x = (*a)[a->size() == 1 ? 0 : i], y = (*b)[b->size() == 1 ? 0 : i];
    // In unsigned arithmetic: a damaged file must not overflow.
    const auto ux = static_cast<std::uint64_t>(x), uy = static_cast<std::uint64_t>(y);
    if (op.name() == "Add") {
      result.push_back(static_cast<std::int64_t>(ux + uy));
    } else if (op.name() == "Sub") {
      result.push_back(static_cast<std::int64_t>(ux - uy));
    } else if (op.name() == "Mul") {
      result.push_back(static_cast<std::int64_t>(ux * uy));
    } else if (op.name() == "Div" && y != 0 && !(y == -1 && x == INT64_MIN) && (cuts || x % y == 0)) {
      result.push_back(x / y);
    } else if (op.name() == "Equal") {
      result.push_back(x == y);
    } else if (op.name() == "Max" || op.name() == "Min") {
      result.push_back(op.name() == "Max" ? std::max(x, y) : std::min(x, y));
    } else {
      return {};
    }
  }
  return result;
}

std::optional<Values> gather(const OnnxOperator& op) {
  const auto x = op.values(0), indices = op.values(1);
  const auto shape = op.shape(0);
  if (!x || !indices || !shape || shape->size() != 1) return {};
  Values result;
  for (const std::int64_t index : *indices) {
    const auto at = axis_of(index, x->size());
    if (!at) return {};
    result.push_back((*x)[*at]);
  }
  return result;
}

std::optional<Values> concat(const OnnxOperator& op) {
  Values result;
  for (std::size_t i = 0; i < op.input_count(); ++i) {
    const auto part = op.values(i);
    if (!part || !op.shape(i) || op.shape(i)->size() != 1) return {};
    result.insert(result.end(), part->begin(), part->end());
  }
  return result;
}

std::optional<Values> slice(const OnnxOperator& op, const OnnxValue& output) {
  const auto x = op.values(0);
  const auto shape = op.shape(0);
  bool unknown = false;
  const auto starts = op.setting("starts", 1, &unknown), steps = op.setting("steps", 4, &unknown);
  if (!x || !shape || shape->size() != 1 || !starts || starts->size() != 1 || !output.shape) return {};
  const auto size = static_cast<std::int64_t>(x->size());
  const std::int64_t step = steps && !steps->empty() ? (*steps)[0] : 1;
  std::int64_t from = (*starts)[0] < 0 ? std::max<std::int64_t>((*starts)[0], -size) + size : (*starts)[0];
  if (step < 0) from = std::min(from, size - 1);
  Values result;
  for (std::int64_t i = 0; i < (*output.shape)[0]; ++i) {
    const std::int64_t at = from + i * step;
    if (at < 0 || at >= size) return {};
    result.push_back((*x)[static_cast<std::size_t>(at)]);
  }
  return result;
}

std::optional<Values> where(const OnnxOperator& op) {
  const auto condition = op.values(0), a = op.values(1), b = op.values(2);
  if (!condition || !a || !b) return {};
  const std::size_t count = std::max({condition->size(), a->size(), b->size()});
  Values result;
  for (std::size_t i = 0; i < count; ++i) {
    const auto pick = [&](const Values& list) { return list.size() == 1 ? 0 : i; };
    if (pick(*condition) >= condition->size() || pick(*a) >= a->size() || pick(*b) >= b->size()) return {};
    result.push_back((*condition)[pick(*condition)] != 0 ? (*a)[pick(*a)] : (*b)[pick(*b)]);
  }
  return result;
}

std::optional<Values> filled(const OnnxOperator& op, double count) {
  const OnnxAttribute* value = op.attribute("value");
  if (!value || !value->tensor || !value->tensor->has_values || value->tensor->integers.size() != 1 ||
      count > static_cast<double>(max_onnx_constant))
    return {};
  return Values(static_cast<std::size_t>(count), value->tensor->integers[0]);
}

std::optional<Values> range(const OnnxOperator& op, double count) {
  if (count > static_cast<double>(max_onnx_constant)) return {};
  Values result;
  for (std::uint64_t i = 0; i < static_cast<std::uint64_t>(count); ++i) {
    result.push_back(static_cast<std::int64_t>(static_cast<std::uint64_t>((*op.values(0))[0]) +
                                               i * static_cast<std::uint64_t>((*op.values(2))[0])));
  }
  return result;
}

}  // namespace

std::optional<OnnxShape> einsum_shape(const OnnxOperator& op) {
  std::string result;
  const std::map<char, std::int64_t> letters = letters_of(op, &result);
  if (letters.empty()) return {};
  Shape shape;
  for (const char c : result) {
    const auto at = letters.find(c);
    if (at == letters.end()) return {};
    shape.push_back(at->second);
  }
  return shape;
}

double einsum_volume(const OnnxOperator& op) {
  std::string result;
  double volume = 1;
  for (const auto& [letter, size] : letters_of(op, &result)) volume *= static_cast<double>(size);
  return volume;
}

bool is_constant(const OnnxOperator& op) {
  constexpr auto random = std::to_array<std::string_view>(
      {"RandomNormal", "RandomUniform", "RandomNormalLike", "RandomUniformLike", "Bernoulli", "Multinomial"});
  if (std::find(random.begin(), random.end(), op.name()) != random.end()) return false;
  if (op.name() == "If" || op.name() == "Loop" || op.name() == "Scan") return false;
  for (std::size_t i = 0; i < op.input_count(); ++i) {
    if (op.given(i) && !op.constant(i)) return false;
  }
  return true;
}

void fold_integers(const OnnxOperator& op, OnnxValue* output) {
  if (!output->shape || output->elements() > static_cast<double>(max_onnx_constant)) return;
  const std::string_view name = op.name();
  std::optional<Values> result;
  if (name == "Identity" || name == "Cast" || name == "Squeeze" || name == "Unsqueeze" || name == "Reshape") {
    // A cast to reals keeps the integers: what matters here is where they go on as sizes.
    result = op.values(0);
  } else if (name == "Gather") {
    result = gather(op);
  } else if (name == "Concat") {
    result = concat(op);
  } else if (name == "Slice") {
    result = slice(op, *output);
  } else if (name == "Where") {
    result = where(op);
  } else if (name == "ConstantOfShape") {
    result = filled(op, output->elements());
  } else if (name == "Expand" && op.values(0) && op.values(0)->size() == 1) {
    result = Values(static_cast<std::size_t>(output->elements()), (*op.values(0))[0]);
  } else if (name == "Range" && op.values(0) && op.values(2)) {
    result = range(op, output->elements());
  } else if (name == "ReduceProd" && op.values(0) && output->elements() == 1) {
    std::uint64_t product = 1;
    const Values factors = *op.values(0);
    for (const std::int64_t value : factors) product *= static_cast<std::uint64_t>(value);
    result = Values{static_cast<std::int64_t>(product)};
  } else {
    result = elementwise(op);
  }
  if (!result || static_cast<double>(result->size()) != output->elements()) return;
  output->integers = std::move(result);
  output->constant = true;
}

}  // namespace neuroshard::partition::detail
