#include <fmt/format.h>

#include <limits>
#include <nlohmann/json.hpp>
#include <set>

#include "core/base/check.h"
#include "core/tensor/safetensors.h"

namespace neuroshard::tensor {
namespace {

Error invalid(std::string message) {
  return make_error(ErrorCode::InvalidArgument, std::move(message));
}

Expected<void> check_spec(const TensorSpec& spec, std::uint64_t begin, std::set<std::string_view>& names) {
  if (spec.name.empty() || spec.name.size() > max_name_bytes || spec.name == "__metadata__") {
    return invalid(fmt::format("\"{}\" cannot be a tensor's name", spec.name.substr(0, 64)));
  }
  if (!names.insert(spec.name).second)
    return invalid(fmt::format("the tensor \"{}\" is given twice", spec.name));
  if (spec.dims.size() > max_dims)
    return invalid(fmt::format("the tensor \"{}\" has too many dimensions", spec.name));
  if (begin % byte_size(spec.type) != 0) {
    return invalid(fmt::format("the tensor \"{}\" would not be aligned; put wider types first", spec.name));
  }
  return {};
}

}  // namespace

Expected<SafetensorsWriter> SafetensorsWriter::plan(Span<const TensorSpec> tensors,
                                                    const std::map<std::string, std::string>& metadata) {
  if (tensors.size() > max_tensors || metadata.size() > max_metadata_entries) {
    return invalid("too many tensors or metadata for one file");
  }
  // nlohmann's objects are ordered maps: sorted keys, one spelling.
  nlohmann::json header = nlohmann::json::object();
  if (!metadata.empty()) header["__metadata__"] = metadata;
  SafetensorsWriter writer;
  std::set<std::string_view> names;
  for (const TensorSpec& spec : tensors) {
    const std::uint64_t begin = writer.data_bytes_;
    NS_RETURN_IF_ERROR(check_spec(spec, begin, names));
    NS_ASSIGN_OR_RETURN(const std::uint64_t bytes, tensor_bytes(spec.dims, spec.type));
    if (bytes > std::numeric_limits<std::uint64_t>::max() / 2 - begin)
      return invalid("the file would be too large");
    writer.data_bytes_ += bytes;
    header[spec.name] = {
        {"dtype", to_string(spec.type)}, {"shape", spec.dims}, {"data_offsets", {begin, writer.data_bytes_}}};
  }
  // Replace: names and metadata that are not UTF-8 must not throw.
  std::string text = header.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace);
  const std::uint64_t unpadded = 8 + text.size();
  text.append(static_cast<std::size_t>((data_alignment - unpadded % data_alignment) % data_alignment), ' ');
  if (text.size() > max_header_bytes) return invalid("the safetensors header would be too large");
  append_le<std::uint64_t>(writer.header_, text.size());
  writer.header_.insert(writer.header_.end(), text.begin(), text.end());
  return writer;
}

Expected<void> SafetensorsWriter::begin(const Sink& sink) {
  return sink(header_);
}

Expected<void> SafetensorsWriter::append(ByteSpan bytes, const Sink& sink) {
  NS_CHECK(bytes.size() <= data_bytes_ - appended_);
  appended_ += bytes.size();
  return sink(bytes);
}

Expected<void> SafetensorsWriter::finish() const {
  if (appended_ == data_bytes_) return {};
  return invalid(fmt::format("{} bytes of tensors are missing", data_bytes_ - appended_));
}

}  // namespace neuroshard::tensor
