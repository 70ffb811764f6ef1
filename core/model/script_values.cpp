#include "core/model/script_values.h"

#include <ATen/core/Tensor.h>
#include <ATen/ops/from_blob.h>

#include <cstring>
#include <limits>

namespace neuroshard::model {
namespace {

using c10::IValue;

enum class Tag : std::uint32_t { None, Tensor, Int, Float, Bool, String, List, Tuple };

constexpr int max_depth = 16;  // of lists in lists
constexpr std::size_t alignment = 64;
// An absurd size is refused before it is multiplied.
constexpr std::int64_t max_elements = std::int64_t{1} << 40;

constexpr at::ScalarType scalar_types[] = {at::kFloat, at::kDouble, at::kHalf, at::kBFloat16, at::kLong,
                                           at::kInt,   at::kShort,  at::kChar, at::kByte,     at::kBool};

template <class T>
void append(std::vector<std::uint8_t>& message, T value) {
  const std::size_t at = message.size();
  message.resize(at + sizeof value);
  std::memcpy(message.data() + at, &value, sizeof value);
}

void pad(std::vector<std::uint8_t>& message, std::size_t to) {
  message.resize((message.size() + to - 1) / to * to);
}

void append_tag(std::vector<std::uint8_t>& message, Tag tag) {
  append(message, static_cast<std::uint32_t>(tag));
}

void append_tensor(const at::Tensor& given, std::vector<std::uint8_t>& message) {
  if (given.layout() != at::kStrided || given.is_quantized() || !given.device().is_cpu())
    throw ScriptMessageError("A sparse or quantised tensor can't be sent from block to block.");
  if (given.dim() > static_cast<std::int64_t>(compute::max_script_dims))
    throw ScriptMessageError("A tensor of more than 8 dimensions can't be sent from block to block.");
  const auto type = std::find(std::begin(scalar_types), std::end(scalar_types), given.scalar_type());
  if (type == std::end(scalar_types))
    throw ScriptMessageError("A tensor of complex numbers can't be sent from block to block.");
  const at::Tensor tensor = given.contiguous();
  append(message, static_cast<std::uint32_t>(type - std::begin(scalar_types)));
  append(message, static_cast<std::uint32_t>(tensor.dim()));
  append(message, std::uint32_t{0});
  for (const std::int64_t size : tensor.sizes()) append(message, size);
  pad(message, alignment);
  if (tensor.nbytes() == 0) return;
  const auto* bytes = static_cast<const std::uint8_t*>(tensor.data_ptr());
  message.insert(message.end(), bytes, bytes + tensor.nbytes());
}

void append_sequence(Tag tag, c10::ArrayRef<IValue> values, std::vector<std::uint8_t>& message) {
  append_tag(message, tag);
  append(message, std::uint32_t{0});
  append(message, static_cast<std::uint64_t>(values.size()));
  for (const IValue& value : values) append_value(value, message);
}

}  // namespace

void append_value(const IValue& value, std::vector<std::uint8_t>& message) {
  if (value.isTensor() && value.toTensor().defined()) {
    append_tag(message, Tag::Tensor);
    append_tensor(value.toTensor(), message);
  } else if (value.isNone()) {
    append_tag(message, Tag::None);
  } else if (value.isInt() || value.isDouble() || value.isBool()) {
    append_tag(message, value.isInt() ? Tag::Int : value.isDouble() ? Tag::Float : Tag::Bool);
    append(message, std::uint32_t{0});
    if (value.isDouble()) {
      append(message, value.toDouble());
    } else {
      append(message, value.isInt() ? value.toInt() : std::int64_t{value.toBool()});
    }
  } else if (value.isString()) {
    const std::string& text = value.toStringRef();
    append_tag(message, Tag::String);
    append(message, std::uint32_t{0});
    append(message, static_cast<std::uint64_t>(text.size()));
    message.insert(message.end(), text.begin(), text.end());
  } else if (value.isList()) {
    append_sequence(Tag::List, value.toListRef().vec(), message);
  } else if (value.isTuple()) {
    append_sequence(Tag::Tuple, value.toTupleRef().elements().vec(), message);
  } else {
    throw ScriptMessageError(
        "A value that is not a tensor, number, text, list or tuple can't be sent from block to block.");
  }
  pad(message, 8);
}

const std::uint8_t* ScriptMessageReader::take(std::uint64_t bytes) {
  if (bytes > message_.size() - at_) throw ScriptMessageError("A message ends inside a value.");
  const std::uint8_t* start = message_.data() + at_;
  at_ += static_cast<std::size_t>(bytes);
  return start;
}

std::uint64_t ScriptMessageReader::number() {
  std::uint64_t value = 0;
  std::memcpy(&value, take(sizeof value), sizeof value);
  return value;
}

at::Tensor ScriptMessageReader::tensor() {
  std::uint32_t head[3];
  std::memcpy(head, take(sizeof head), sizeof head);
  if (head[0] >= std::size(scalar_types) || head[1] > compute::max_script_dims)
    throw ScriptMessageError("A message holds a tensor of an unknown kind.");
  const at::ScalarType type = scalar_types[head[0]];
  std::vector<std::int64_t> sizes(head[1]);
  std::int64_t elements = 1;
  for (std::int64_t& size : sizes) {
    size = static_cast<std::int64_t>(number());
    if (size < 0 || size > max_elements || (size > 0 && elements > max_elements / size))
      throw ScriptMessageError("A message holds a tensor that is too large.");
    elements *= size;
  }
  static_cast<void>(take((alignment - at_ % alignment) % alignment));
  const auto bytes = static_cast<std::uint64_t>(elements) * c10::elementSize(type);
  const std::uint8_t* data = take(bytes);
  // The tensor is only read, or written by the one block that received it.
  const at::Tensor view =
      at::from_blob(const_cast<std::uint8_t*>(data), sizes, at::TensorOptions().dtype(type));
  return reinterpret_cast<std::uintptr_t>(data) % 16 == 0 && bytes > 0 ? view : view.clone();
}

IValue ScriptMessageReader::next(const c10::TypePtr& type) {
  return next(type, 0);
}

IValue ScriptMessageReader::next(const c10::TypePtr& given, int depth) {
  if (depth > max_depth) throw ScriptMessageError("A message nests its lists too deeply.");
  std::uint32_t tag = 0;
  std::memcpy(&tag, take(sizeof tag), sizeof tag);
  c10::TypePtr type = given;
  if (const auto optional = type->cast<c10::OptionalType>()) type = optional->getElementType();
  const auto skip_zeros = [&] { static_cast<void>(take(sizeof(std::uint32_t))); };
  IValue value;
  switch (static_cast<Tag>(tag)) {
    case Tag::None: break;
    case Tag::Tensor: value = tensor(); break;
    case Tag::Int:
      skip_zeros();
      value = static_cast<std::int64_t>(number());
      break;
    case Tag::Bool:
      skip_zeros();
      value = number() != 0;
      break;
    case Tag::Float: {
      skip_zeros();
      const std::uint64_t bits = number();
      double real = 0;
      std::memcpy(&real, &bits, sizeof real);
      value = real;
      break;
    }
    case Tag::String: {
      skip_zeros();
      const std::uint64_t length = number();
      const std::uint8_t* text = take(length);
      value = std::string(reinterpret_cast<const char*>(text), static_cast<std::size_t>(length));
      break;
    }
    case Tag::List:
    case Tag::Tuple: {
      skip_zeros();
      const std::uint64_t count = number();
      if (count > compute::max_script_nodes)
        throw ScriptMessageError("A message holds a list that is too long.");
      const auto list = type->cast<c10::ListType>();
      const auto tuple = type->cast<c10::TupleType>();
      if (static_cast<Tag>(tag) == Tag::List ? list == nullptr
                                             : tuple == nullptr || tuple->elements().size() != count)
        throw ScriptMessageError("A message holds a value of another type than the block expects.");
      std::vector<IValue> items;
      for (std::uint64_t i = 0; i < count; ++i)
        items.push_back(next(list ? list->getElementType() : tuple->elements()[i], depth + 1));
      if (list) {
        c10::impl::GenericList typed(list->getElementType());
        for (IValue& item : items) typed.push_back(std::move(item));
        value = IValue(std::move(typed));
      } else {
        value = c10::ivalue::Tuple::create(std::move(items));
      }
      break;
    }
    default: throw ScriptMessageError("A message holds a value of an unknown kind.");
  }
  static_cast<void>(take((8 - at_ % 8) % 8));
  // Operators trust the types of their arguments.
  if (!value.type()->isSubtypeOf(*given))
    throw ScriptMessageError("A message holds a value of another type than the block expects.");
  return value;
}

void ScriptMessageReader::finish() const {
  if (at_ != message_.size()) throw ScriptMessageError("A message is longer than its values.");
}

at::ScalarType scalar_type(compute::ScriptType type) {
  return scalar_types[static_cast<std::size_t>(type)];
}

void flatten(const IValue& value, std::vector<IValue>& leaves) {
  if (value.isTuple()) {
    for (const IValue& item : value.toTupleRef().elements()) flatten(item, leaves);
  } else if (value.isList()) {
    for (const IValue& item : value.toListRef()) flatten(item, leaves);
  } else if (value.isGenericDict()) {
    for (const auto& entry : value.toGenericDict()) flatten(entry.value(), leaves);
  } else if (value.isTensor() || value.isScalar() || value.isBool()) {
    leaves.push_back(value);
  }
}

double value_bytes(const IValue& value) {
  std::vector<IValue> leaves;
  flatten(value, leaves);
  double bytes = leaves.empty() ? 8 : 0;
  for (const IValue& leaf : leaves) {
    const bool tensor = leaf.isTensor() && leaf.toTensor().defined();
    bytes += tensor ? static_cast<double>(leaf.toTensor().numel()) *
                          static_cast<double>(leaf.toTensor().element_size())
                    : 8;
  }
  return bytes;
}

}  // namespace neuroshard::model
