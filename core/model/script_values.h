// Values of a TorchScript graph as messages between blocks: tensors, numbers, truth values, None, texts,
// lists and tuples of them.
//
// A value is a tag (u32), then
//   tensor  type (u32), number of sizes (u32), zero (u32), sizes (i64 each), zeros up to a multiple of 64
//           bytes from the start of the message, elements, dense and row-major
//   int, float, bool   8 bytes            none   nothing
//   string  length (u64), bytes           list, tuple   count (u64), the values
// and everything is padded to a multiple of 8. Little-endian. The element type of a list is not in the
// message: both sides know the type.
#pragma once

#include <ATen/core/ivalue.h>
#include <ATen/core/jit_type.h>

#include <cstdint>
#include <vector>

#include "core/base/span.h"
#include "core/compute/script.h"

namespace neuroshard::model {

// An exception for a malformed message; guarded_script() turns it into a Status.
class ScriptMessageError : public std::exception {
 public:
  explicit ScriptMessageError(const char* text) : text_(text) {}
  const char* what() const noexcept override { return text_; }

 private:
  const char* text_;
};

// Appends. Throws ScriptMessageError for what has no form here (sparse and quantised tensors, dictionaries,
// objects).
void append_value(const c10::IValue& value, std::vector<std::uint8_t>& message);

// Reads the values of a message in turn.
class ScriptMessageReader {
 public:
  explicit ScriptMessageReader(Span<const std::uint8_t> message) : message_(message) {}
  // A tensor is a view of the message where its address allows it: the message has to outlive it.
  c10::IValue next(const c10::TypePtr& type);
  void finish() const;  // throws unless everything was read

 private:
  const std::uint8_t* take(std::uint64_t bytes);
  std::uint64_t number();
  at::Tensor tensor();
  c10::IValue next(const c10::TypePtr& type, int depth);

  Span<const std::uint8_t> message_;
  std::size_t at_ = 0;
};

at::ScalarType scalar_type(compute::ScriptType type);

// Tensors and numbers inside a value, depth first; None and texts are left out.
void flatten(const c10::IValue& value, std::vector<c10::IValue>& leaves);

// Sum over the value's tensors and numbers, 8 for what is neither.
double value_bytes(const c10::IValue& value);

}  // namespace neuroshard::model
