#include <fmt/format.h>

#include <algorithm>
#include <numeric>

#include "core/base/check.h"
#include "core/tensor/detail/header_events.h"
#include "core/tensor/safetensors.h"

namespace neuroshard::tensor {
namespace {

constexpr std::uint64_t length_field = 8;

Error corrupt(std::string message) {
  return make_error(ErrorCode::Corrupt, std::move(message));
}

// The header's length, held against the file and the bound before anybody allocates for it.
Expected<std::uint64_t> header_length(ByteSpan field, std::uint64_t file_size) {
  if (field.size() < length_field || file_size < length_field) {
    return corrupt("the file is too short to be a safetensors file; it was cut off or is something else");
  }
  const auto length = load_le<std::uint64_t>(field.data());
  if (length > max_header_bytes) {
    return make_error(ErrorCode::Exhausted,
                      fmt::format("the safetensors header claims {} bytes, more than the {} that "
                                  "are allowed; the file is damaged or something else",
                                  length, max_header_bytes));
  }
  if (length < 2 || length > file_size - length_field) {
    return corrupt(fmt::format("the safetensors header claims {} bytes in a file of {}; it was cut off",
                               length, file_size));
  }
  return length;
}

Expected<void> check_tiling(SafetensorsHeader& header) {
  auto& tensors = header.tensors;
  std::sort(tensors.begin(), tensors.end(), [](const TensorEntry& a, const TensorEntry& b) {
    return std::pair(a.begin, a.bytes) < std::pair(b.begin, b.bytes);
  });
  std::uint64_t at = 0;
  for (const TensorEntry& entry : tensors) {
    if (entry.begin != at) {
      return corrupt(
          fmt::format("the tensor \"{}\" starts at byte {} of the data, where {} is due: tensors {}",
                      entry.spec.name, entry.begin, at, entry.begin < at ? "overlap" : "leave a hole"));
    }
    if (entry.begin % byte_size(entry.spec.type) != 0) {
      return corrupt(fmt::format("the tensor \"{}\" is not aligned to its elements", entry.spec.name));
    }
    if (entry.bytes > header.data_bytes - at) {
      return corrupt(fmt::format("the tensor \"{}\" reaches beyond the end of the file; it was cut off",
                                 entry.spec.name));
    }
    at += entry.bytes;
  }
  if (at != header.data_bytes) {
    return corrupt(fmt::format("{} bytes at the end belong to no tensor", header.data_bytes - at));
  }
  return {};
}

Expected<void> index_names(SafetensorsHeader& header) {
  const auto& tensors = header.tensors;
  header.by_name.resize(tensors.size());
  std::iota(header.by_name.begin(), header.by_name.end(), 0u);
  std::sort(header.by_name.begin(), header.by_name.end(),
            [&](std::uint32_t a, std::uint32_t b) { return tensors[a].spec.name < tensors[b].spec.name; });
  for (std::size_t i = 1; i < tensors.size(); ++i) {
    const std::string& name = tensors[header.by_name[i]].spec.name;
    if (name == tensors[header.by_name[i - 1]].spec.name)
      return corrupt(fmt::format("the tensor \"{}\" is named twice", name));
  }
  return {};
}

}  // namespace

const TensorEntry* SafetensorsHeader::find(const std::string& name) const {
  const auto at = std::lower_bound(
      by_name.begin(), by_name.end(), name,
      [&](std::uint32_t index, const std::string& key) { return tensors[index].spec.name < key; });
  if (at == by_name.end() || tensors[*at].spec.name != name) return nullptr;
  return &tensors[*at];
}

Expected<SafetensorsHeader> parse_safetensors_header(ByteSpan prefix, std::uint64_t file_size) {
  NS_ASSIGN_OR_RETURN(const std::uint64_t length, header_length(prefix, file_size));
  if (prefix.size() - length_field < length) return corrupt("the safetensors header is cut off");
  const ByteSpan text = prefix.subspan(length_field, static_cast<std::size_t>(length));
  if (text[0] != '{') return corrupt("the safetensors header does not begin with an object");
  SafetensorsHeader header;
  header.data_offset = length_field + length;
  header.data_bytes = file_size - header.data_offset;
  detail::HeaderEvents events(header);
  const bool parsed = nlohmann::json::sax_parse(text.begin(), text.end(), &events);
  if (events.error()) return *events.error();
  if (!parsed) return corrupt("the safetensors header is not valid JSON");
  NS_RETURN_IF_ERROR(check_tiling(header));
  NS_RETURN_IF_ERROR(index_names(header));
  return header;
}

Expected<SafetensorsHeader> read_safetensors_header(ByteSource& source) {
  const std::uint64_t size = source.size();
  std::uint8_t field[length_field];
  if (size < length_field) return header_length({}, size).error();
  NS_RETURN_IF_ERROR(source.read_at(0, field));
  NS_ASSIGN_OR_RETURN(const std::uint64_t length, header_length(ByteSpan(field), size));
  Bytes prefix(static_cast<std::size_t>(length_field + length));
  NS_RETURN_IF_ERROR(source.read_at(0, prefix));
  return parse_safetensors_header(prefix, size);
}

Expected<void> read_tensor(ByteSource& source, const SafetensorsHeader& header, const TensorEntry& entry,
                           MutableByteSpan target) {
  NS_CHECK(target.size() == entry.bytes);
  return source.read_at(header.data_offset + entry.begin, target);
}

}  // namespace neuroshard::tensor
