#include "core/tensor/dtype.h"

#include <fmt/format.h>

namespace neuroshard::tensor {
namespace {

struct Row {
  DType type;
  std::string_view name;
  std::uint32_t bytes;
};
constexpr Row rows[] = {
    {DType::Bool, "BOOL", 1},      {DType::U8, "U8", 1},          {DType::I8, "I8", 1},
    {DType::F8E5M2, "F8_E5M2", 1}, {DType::F8E4M3, "F8_E4M3", 1}, {DType::I16, "I16", 2},
    {DType::U16, "U16", 2},        {DType::F16, "F16", 2},        {DType::BF16, "BF16", 2},
    {DType::I32, "I32", 4},        {DType::U32, "U32", 4},        {DType::F32, "F32", 4},
    {DType::F64, "F64", 8},        {DType::I64, "I64", 8},        {DType::U64, "U64", 8}};

constexpr bool in_order() {
  for (std::size_t i = 0; i < std::size(rows); ++i) {
    if (static_cast<std::size_t>(rows[i].type) != i) return false;
  }
  return true;
}
static_assert(in_order(), "rows are indexed by DType");

}  // namespace

std::uint32_t byte_size(DType type) {
  return rows[static_cast<std::size_t>(type)].bytes;
}

std::string_view to_string(DType type) {
  return rows[static_cast<std::size_t>(type)].name;
}

Expected<DType> parse_dtype(std::string_view name) {
  for (const Row& row : rows) {
    if (row.name == name) return row.type;
  }
  return make_error(
      ErrorCode::Unsupported,
      fmt::format("the element type \"{}\" is not one that this program reads", name.substr(0, 32)));
}

}  // namespace neuroshard::tensor
