#include "core/tensor/shape.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <limits>

namespace neuroshard::tensor {
namespace {

constexpr std::uint64_t most = std::numeric_limits<std::uint64_t>::max();

Error too_large(Span<const std::uint64_t> dims) {
  return make_error(ErrorCode::Exhausted, fmt::format("a tensor of shape {} is too large", to_string(dims)));
}

}  // namespace

Expected<std::uint64_t> element_count(Span<const std::uint64_t> dims) {
  std::uint64_t count = 1;
  bool empty = false;
  for (const std::uint64_t dim : dims) {
    if (dim == 0) {
      empty = true;
      continue;  // the other dimensions are still held against overflow
    }
    if (count > most / dim) return too_large(dims);
    count *= dim;
  }
  return empty ? 0 : count;
}

Expected<std::uint64_t> tensor_bytes(Span<const std::uint64_t> dims, DType type) {
  NS_ASSIGN_OR_RETURN(const std::uint64_t count, element_count(dims));
  if (count > most / byte_size(type)) return too_large(dims);
  return count * byte_size(type);
}

std::string to_string(Span<const std::uint64_t> dims) {
  return fmt::format("[{}]", fmt::join(dims, ", "));
}

}  // namespace neuroshard::tensor
