#include "core/export/gguf_reader.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <unordered_set>

namespace neuroshard::exporting {
namespace {

constexpr std::size_t window_bytes = std::size_t{64} << 10;

Error corrupt(std::string what) {
  return make_error(ErrorCode::Corrupt, "the GGUF file " + std::move(what));
}

float float_of(std::uint32_t bits) {
  float value;
  std::memcpy(&value, &bits, sizeof value);
  return value;
}

// The file from front to back.
class Cursor {
 public:
  explicit Cursor(tensor::ByteSource& source)
      : source_(source), end_(std::min(source.size(), max_gguf_header_bytes)) {}

  std::uint64_t position() const { return at_; }
  std::uint64_t left() const { return end_ - at_; }
  // Of things of at least so many bytes each.
  Expected<void> check_count(std::uint64_t count, std::uint64_t least_bytes) const {
    if (count <= left() / least_bytes) return {};
    if (end_ < source_.size())
      return make_error(ErrorCode::Exhausted, "the header of the GGUF file is too large");
    return corrupt("ends within its header");
  }

  Expected<void> read(MutableByteSpan target) {
    NS_RETURN_IF_ERROR(check_count(target.size(), 1));
    while (!target.empty()) {
      if (at_ < begin_ || at_ >= begin_ + window_.size()) NS_RETURN_IF_ERROR(fill());
      const auto from = static_cast<std::size_t>(at_ - begin_);
      const std::size_t now = std::min(target.size(), window_.size() - from);
      std::memcpy(target.data(), window_.data() + from, now);
      at_ += now;
      target = target.subspan(now);
    }
    return {};
  }
  template <class T>
  Expected<T> number() {
    std::uint8_t bytes[sizeof(T)];
    NS_RETURN_IF_ERROR(read({bytes, sizeof bytes}));
    return load_le<T>(bytes);
  }
  Expected<std::string> text(std::uint64_t most) {
    NS_ASSIGN_OR_RETURN(const auto size, number<std::uint64_t>());
    NS_RETURN_IF_ERROR(check_count(size, 1));
    if (size > most)
      return make_error(ErrorCode::Exhausted, fmt::format("the GGUF file has a name of {} bytes", size));
    std::string value(static_cast<std::size_t>(size), '\0');
    NS_RETURN_IF_ERROR(read({reinterpret_cast<std::uint8_t*>(value.data()), value.size()}));
    return value;
  }

 private:
  Expected<void> fill() {
    begin_ = at_;
    window_.resize(static_cast<std::size_t>(std::min<std::uint64_t>(window_bytes, end_ - at_)));
    return source_.read_at(begin_, {window_.data(), window_.size()});
  }

  tensor::ByteSource& source_;
  const std::uint64_t end_;
  std::uint64_t at_ = 0, begin_ = 0;
  Bytes window_;
};

Expected<GgufValue> read_array(Cursor& file) {
  NS_ASSIGN_OR_RETURN(const auto type, file.number<std::uint32_t>());
  NS_ASSIGN_OR_RETURN(const auto count, file.number<std::uint64_t>());
  if (type == static_cast<std::uint32_t>(GgufType::String)) {
    NS_RETURN_IF_ERROR(file.check_count(count, sizeof(std::uint64_t)));
    std::vector<std::string> values;
    values.reserve(static_cast<std::size_t>(count));
    for (std::uint64_t i = 0; i < count; ++i) {
      NS_ASSIGN_OR_RETURN(std::string value, file.text(max_gguf_header_bytes));
      values.push_back(std::move(value));
    }
    return GgufValue(std::move(values));
  }
  if (type != static_cast<std::uint32_t>(GgufType::I32))
    return make_error(ErrorCode::Unsupported, fmt::format("the GGUF file has an array of the type {}", type));
  NS_RETURN_IF_ERROR(file.check_count(count, sizeof(std::int32_t)));
  std::vector<std::int32_t> values(static_cast<std::size_t>(count));
  NS_RETURN_IF_ERROR(
      file.read({reinterpret_cast<std::uint8_t*>(values.data()), values.size() * sizeof(std::int32_t)}));
  return GgufValue(std::move(values));
}

template <class Stored, class Kept = Stored>
Expected<GgufValue> read_number(Cursor& file) {
  NS_ASSIGN_OR_RETURN(const Stored value, file.number<Stored>());
  return GgufValue(static_cast<Kept>(value));
}

Expected<GgufValue> read_value(Cursor& file) {
  NS_ASSIGN_OR_RETURN(const auto type, file.number<std::uint32_t>());
  switch (static_cast<GgufType>(type)) {
    case GgufType::U8: return read_number<std::uint8_t, std::uint32_t>(file);
    case GgufType::I8: return read_number<std::int8_t, std::int32_t>(file);
    case GgufType::U16: return read_number<std::uint16_t, std::uint32_t>(file);
    case GgufType::I16: return read_number<std::int16_t, std::int32_t>(file);
    case GgufType::U32: return read_number<std::uint32_t>(file);
    case GgufType::I32: return read_number<std::int32_t>(file);
    case GgufType::U64: return read_number<std::uint64_t>(file);
    case GgufType::I64: return read_number<std::int64_t>(file);
    case GgufType::F32: {
      NS_ASSIGN_OR_RETURN(const auto bits, file.number<std::uint32_t>());
      return GgufValue(float_of(bits));
    }
    case GgufType::F64: {
      NS_ASSIGN_OR_RETURN(const auto bits, file.number<std::uint64_t>());
      double value;
      std::memcpy(&value, &bits, sizeof value);
      return GgufValue(value);
    }
    case GgufType::Bool: {
      NS_ASSIGN_OR_RETURN(const auto byte, file.number<std::uint8_t>());
      if (byte > 1) return corrupt("has a truth value that is neither 0 nor 1");
      return GgufValue(byte == 1);
    }
    case GgufType::String: {
      NS_ASSIGN_OR_RETURN(std::string value, file.text(max_gguf_header_bytes));
      return GgufValue(std::move(value));
    }
    case GgufType::Array: return read_array(file);
  }
  return make_error(ErrorCode::Unsupported,
                    fmt::format("the GGUF file has a value of the unknown type {}", type));
}

Expected<StoredType> stored_type_of(std::uint32_t number, const std::string& name) {
  for (const StoredType type : {StoredType::F32, StoredType::F16, StoredType::BF16, StoredType::Q8_0})
    if (ggml_type(type) == number) return type;
  return make_error(ErrorCode::Unsupported,
                    fmt::format("the tensor {} is stored as ggml type {}", name, number));
}

Expected<GgufTensor> read_tensor_entry(Cursor& file) {
  GgufTensor tensor;
  NS_ASSIGN_OR_RETURN(tensor.name, file.text(max_gguf_name_bytes));
  NS_ASSIGN_OR_RETURN(const auto dims, file.number<std::uint32_t>());
  if (dims == 0 || dims > 4) return corrupt(fmt::format("has a tensor with {} dimensions", dims));
  for (std::uint32_t i = 0; i < dims; ++i) {
    NS_ASSIGN_OR_RETURN(const auto dim, file.number<std::uint64_t>());
    tensor.dims.push_back(dim);
  }
  NS_ASSIGN_OR_RETURN(const auto type, file.number<std::uint32_t>());
  NS_ASSIGN_OR_RETURN(tensor.type, stored_type_of(type, tensor.name));
  NS_ASSIGN_OR_RETURN(tensor.offset, file.number<std::uint64_t>());
  NS_ASSIGN_OR_RETURN(const std::uint64_t count,
                      tensor::element_count({tensor.dims.data(), tensor.dims.size()}));
  if (count > std::uint64_t{1} << 60) return corrupt("has a tensor that is too large");
  if (tensor.type == StoredType::Q8_0 && tensor.dims[0] % q8_0_block != 0)
    return corrupt(fmt::format("has rows of {} values as q8_0", tensor.dims[0]));
  tensor.bytes = stored_bytes(tensor.type, count);
  return tensor;
}

std::uint64_t aligned(std::uint64_t bytes) {
  return (bytes + gguf_alignment - 1) / gguf_alignment * gguf_alignment;
}

Expected<void> check_places(const GgufHeader& header, std::uint64_t file_bytes) {
  if (header.data_offset > file_bytes) return corrupt("ends within its header");
  const std::uint64_t room = file_bytes - header.data_offset;
  std::uint64_t end = 0;
  std::unordered_set<std::string> names;
  for (const GgufTensor& tensor : header.tensors) {
    if (!names.insert(tensor.name).second)
      return corrupt(fmt::format("has the tensor {} twice", tensor.name));
    if (tensor.offset != aligned(end))
      return corrupt(fmt::format("has a hole or an overlap before {}", tensor.name));
    if (tensor.offset > room || tensor.bytes > room - tensor.offset)
      return corrupt(fmt::format("ends within the tensor {}", tensor.name));
    end = tensor.offset + tensor.bytes;
  }
  return {};
}

}  // namespace

const GgufTensor* GgufHeader::tensor(const std::string& name) const {
  const auto found =
      std::find_if(tensors.begin(), tensors.end(), [&](const GgufTensor& t) { return t.name == name; });
  return found == tensors.end() ? nullptr : &*found;
}

Expected<GgufHeader> read_gguf_header(tensor::ByteSource& source) {
  Cursor file(source);
  NS_ASSIGN_OR_RETURN(const auto magic, file.number<std::uint32_t>());
  if (magic != gguf_magic) return corrupt("does not begin with GGUF");
  NS_ASSIGN_OR_RETURN(const auto version, file.number<std::uint32_t>());
  if (version != gguf_version)
    return make_error(ErrorCode::Unsupported,
                      fmt::format("the GGUF file has version {}, not {}", version, gguf_version));
  NS_ASSIGN_OR_RETURN(const auto tensors, file.number<std::uint64_t>());
  NS_ASSIGN_OR_RETURN(const auto entries, file.number<std::uint64_t>());
  if (tensors > max_gguf_tensors || entries > max_gguf_entries)
    return make_error(ErrorCode::Exhausted,
                      fmt::format("the GGUF file has {} tensors and {} keys", tensors, entries));
  GgufHeader header;
  std::unordered_set<std::string> keys;
  for (std::uint64_t i = 0; i < entries; ++i) {
    NS_ASSIGN_OR_RETURN(std::string key, file.text(max_gguf_name_bytes));
    if (!keys.insert(key).second) return corrupt(fmt::format("has the key {} twice", key));
    NS_ASSIGN_OR_RETURN(GgufValue value, read_value(file));
    header.entries.push_back({std::move(key), std::move(value)});
  }
  const auto* const alignment = header.value<std::uint32_t>("general.alignment");
  if (alignment != nullptr && *alignment != gguf_alignment)
    return make_error(ErrorCode::Unsupported, fmt::format("the GGUF file has the alignment {}", *alignment));
  for (std::uint64_t i = 0; i < tensors; ++i) {
    NS_ASSIGN_OR_RETURN(GgufTensor tensor, read_tensor_entry(file));
    header.tensors.push_back(std::move(tensor));
  }
  header.data_offset = aligned(file.position());
  NS_RETURN_IF_ERROR(check_places(header, source.size()));
  return header;
}

}  // namespace neuroshard::exporting
