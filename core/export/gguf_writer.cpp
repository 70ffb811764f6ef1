#include "core/export/gguf_writer.h"

#include <fmt/format.h>

#include <cstring>
#include <set>

#include "core/base/check.h"

namespace neuroshard::exporting {
namespace {

constexpr std::size_t max_dims = 4;

std::uint64_t aligned(std::uint64_t bytes) {
  return (bytes + gguf_alignment - 1) / gguf_alignment * gguf_alignment;
}

void append_text(Bytes& out, std::string_view text) {
  append_le(out, static_cast<std::uint64_t>(text.size()));
  const ByteSpan bytes = as_bytes(text);
  out.insert(out.end(), bytes.begin(), bytes.end());
}

void append_type(Bytes& out, GgufType type) {
  append_le(out, static_cast<std::uint32_t>(type));
}

struct ValueWriter {
  Bytes& out;

  void operator()(std::uint32_t value) const { number(GgufType::U32, value); }
  void operator()(std::int32_t value) const { number(GgufType::I32, value); }
  void operator()(std::uint64_t value) const { number(GgufType::U64, value); }
  void operator()(std::int64_t value) const { number(GgufType::I64, value); }
  void operator()(float value) const {
    std::uint32_t bits;
    std::memcpy(&bits, &value, sizeof bits);
    number(GgufType::F32, bits);
  }
  void operator()(double value) const {
    std::uint64_t bits;
    std::memcpy(&bits, &value, sizeof bits);
    number(GgufType::F64, bits);
  }
  void operator()(bool value) const {
    append_type(out, GgufType::Bool);
    out.push_back(value ? 1 : 0);
  }
  void operator()(const std::string& value) const {
    append_type(out, GgufType::String);
    append_text(out, value);
  }
  void operator()(const std::vector<std::string>& values) const {
    begin_array(GgufType::String, values.size());
    for (const std::string& value : values) append_text(out, value);
  }
  void operator()(const std::vector<std::int32_t>& values) const {
    begin_array(GgufType::I32, values.size());
    for (const std::int32_t value : values) append_le(out, value);
  }

 private:
  template <class T>
  void number(GgufType type, T value) const {
    append_type(out, type);
    append_le(out, value);
  }
  void begin_array(GgufType type, std::uint64_t count) const {
    append_type(out, GgufType::Array);
    append_type(out, type);
    append_le(out, count);
  }

 public:
  explicit ValueWriter(Bytes& bytes) : out(bytes) {}
};

Expected<void> place(GgufTensor& tensor, std::uint64_t* end) {
  if (tensor.dims.empty() || tensor.dims.size() > max_dims) {
    return make_error(ErrorCode::InvalidArgument,
                      fmt::format("the tensor {} has {} dimensions; GGUF has 1 to {}", tensor.name,
                                  tensor.dims.size(), max_dims));
  }
  if (tensor.type == StoredType::Q8_0 && tensor.dims.front() % q8_0_block != 0) {
    return make_error(
        ErrorCode::InvalidArgument,
        fmt::format("rows of {} values can't be stored as q8_0 ({})", tensor.dims.front(), tensor.name));
  }
  std::uint64_t count = 1;
  for (const std::uint64_t dim : tensor.dims) count *= dim;
  tensor.offset = *end;
  tensor.bytes = stored_bytes(tensor.type, count);
  *end = aligned(*end + tensor.bytes);
  return {};
}

}  // namespace

Expected<GgufWriter> GgufWriter::plan(const std::vector<GgufEntry>& entries,
                                      std::vector<GgufTensor> tensors) {
  GgufWriter writer;
  Bytes& out = writer.header_;
  append_le(out, gguf_magic);
  append_le(out, gguf_version);
  append_le(out, static_cast<std::uint64_t>(tensors.size()));
  append_le(out, static_cast<std::uint64_t>(entries.size()));
  for (const GgufEntry& entry : entries) {
    append_text(out, entry.key);
    std::visit(ValueWriter(out), entry.value);
  }
  std::uint64_t end = 0;
  std::set<std::string> names;
  for (GgufTensor& tensor : tensors) {
    if (!names.insert(tensor.name).second)
      return make_error(ErrorCode::InvalidArgument, fmt::format("two tensors have the name {}", tensor.name));
    NS_RETURN_IF_ERROR(place(tensor, &end));
    append_text(out, tensor.name);
    append_le(out, static_cast<std::uint32_t>(tensor.dims.size()));
    for (const std::uint64_t dim : tensor.dims) append_le(out, dim);
    append_le(out, ggml_type(tensor.type));
    append_le(out, tensor.offset);
  }
  out.resize(static_cast<std::size_t>(aligned(out.size())));
  writer.tensors_ = std::move(tensors);
  return writer;
}

std::uint64_t GgufWriter::file_bytes() const {
  if (tensors_.empty()) return header_.size();
  return header_.size() + tensors_.back().offset + aligned(tensors_.back().bytes);
}

Expected<void> GgufWriter::begin(const Sink& sink) {
  return sink(header_);
}

Expected<void> GgufWriter::append(ByteSpan bytes, const Sink& sink) {
  NS_CHECK(tensor_ < tensors_.size() && bytes.size() <= tensors_[tensor_].bytes - written_);
  NS_RETURN_IF_ERROR(sink(bytes));
  written_ += bytes.size();
  const std::uint64_t whole = tensors_[tensor_].bytes;
  if (written_ < whole) return {};
  ++tensor_;
  written_ = 0;
  const Bytes padding(static_cast<std::size_t>(aligned(whole) - whole));
  return padding.empty() ? Expected<void>() : sink(padding);
}

Expected<void> GgufWriter::finish() const {
  if (tensor_ == tensors_.size()) return {};
  return make_error(ErrorCode::InvalidArgument,
                    fmt::format("the tensor {} is not complete", tensors_[tensor_].name));
}

}  // namespace neuroshard::exporting
