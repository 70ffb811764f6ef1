#include <fmt/format.h>

#include <utility>

#include "core/tensor/detail/header_events.h"

namespace neuroshard::tensor::detail {

bool HeaderEvents::fail(ErrorCode code, std::string message) {
  if (!error_) error_ = make_error(code, std::move(message));
  return false;
}

bool HeaderEvents::unexpected(std::string_view what) {
  const std::string where =
      entry_.spec.name.empty() ? "" : fmt::format(" near the tensor \"{}\"", entry_.spec.name);
  return fail(ErrorCode::Corrupt,
              fmt::format("the safetensors header has {} where none belongs{}", what, where));
}

bool HeaderEvents::parse_error(std::size_t position, const std::string&, const nlohmann::detail::exception&) {
  return fail(ErrorCode::Corrupt,
              fmt::format("the safetensors header is not valid JSON at byte {}", position));
}

bool HeaderEvents::start_object(std::size_t) {
  if (place_ == Place::Start) {
    place_ = Place::Top;
    return true;
  }
  if (place_ != Place::Top) return unexpected("an object");
  if (entering_metadata_) {
    place_ = Place::Metadata;
    return true;
  }
  place_ = Place::Tensor;
  field_ = Field::None;
  has_type_ = has_shape_ = has_offsets_ = false;
  offset_count_ = 0;
  return true;
}

bool HeaderEvents::end_object() {
  if (place_ == Place::Tensor) return finish_tensor();
  if (place_ == Place::Metadata) {
    place_ = Place::Top;
    return true;
  }
  place_ = Place::Done;
  return true;
}

bool HeaderEvents::finish_tensor() {
  if (!has_type_ || !has_shape_ || !has_offsets_) {
    return fail(ErrorCode::Corrupt,
                fmt::format("the tensor \"{}\" lacks its element type, shape or offsets", entry_.spec.name));
  }
  const auto bytes = tensor_bytes(entry_.spec.dims, entry_.spec.type);
  if (!bytes.ok()) return fail(ErrorCode::Corrupt, bytes.error().message);
  if (offsets_[1] < offsets_[0] || offsets_[1] - offsets_[0] != *bytes) {
    return fail(ErrorCode::Corrupt,
                fmt::format("the tensor \"{}\" of shape {} and type {} cannot lie at bytes {} to {}",
                            entry_.spec.name, tensor::to_string(entry_.spec.dims),
                            to_string(entry_.spec.type), offsets_[0], offsets_[1]));
  }
  entry_.begin = offsets_[0];
  entry_.bytes = *bytes;
  header_.tensors.push_back(std::move(entry_));
  entry_ = {};
  place_ = Place::Top;
  return true;
}

bool HeaderEvents::start_array(std::size_t) {
  if (place_ != Place::Tensor) return unexpected("a list");
  if (field_ == Field::Shape && !has_shape_) {
    place_ = Place::Shape;
    return true;
  }
  if (field_ == Field::Offsets && !has_offsets_) {
    place_ = Place::Offsets;
    return true;
  }
  return unexpected("a list");
}

bool HeaderEvents::end_array() {
  if (place_ == Place::Shape) {
    has_shape_ = true;
  } else {
    if (offset_count_ != 2) return unexpected("a list of offsets that is not a pair");
    has_offsets_ = true;
  }
  place_ = Place::Tensor;
  field_ = Field::None;
  return true;
}

bool HeaderEvents::top_key(std::string& name) {
  if (name.size() > max_name_bytes) return fail(ErrorCode::Exhausted, "a tensor's name is too long");
  entering_metadata_ = name == "__metadata__";
  if (entering_metadata_) {
    if (std::exchange(metadata_seen_, true)) return unexpected("__metadata__ twice");
    return true;
  }
  if (header_.tensors.size() >= max_tensors)
    return fail(ErrorCode::Exhausted, "the file names too many tensors");
  entry_ = {};
  entry_.spec.name = std::move(name);
  return true;
}

bool HeaderEvents::key(string_t& name) {
  if (place_ == Place::Top) return top_key(name);
  if (place_ == Place::Metadata) {
    if (header_.metadata.size() >= max_metadata_entries)
      return fail(ErrorCode::Exhausted, "too much metadata");
    if (header_.metadata.count(name) != 0) return unexpected("the same metadata key twice");
    metadata_key_ = std::move(name);
    return true;
  }
  if (name == "dtype" && !has_type_) {
    field_ = Field::DType;
  } else if (name == "shape" && !has_shape_) {
    field_ = Field::Shape;
  } else if (name == "data_offsets" && !has_offsets_) {
    field_ = Field::Offsets;
  } else {
    return unexpected("an unknown or repeated key");
  }
  return true;
}

bool HeaderEvents::string(string_t& value) {
  if (place_ == Place::Metadata) {
    header_.metadata.emplace(std::move(metadata_key_), std::move(value));
    return true;
  }
  if (place_ != Place::Tensor || field_ != Field::DType) return unexpected("a text");
  auto type = parse_dtype(value);
  if (!type.ok()) return fail(type.error().code, type.error().message);
  entry_.spec.type = *type;
  has_type_ = true;
  field_ = Field::None;
  return true;
}

bool HeaderEvents::number_unsigned(number_unsigned_t value) {
  if (place_ == Place::Shape) {
    if (entry_.spec.dims.size() >= max_dims)
      return fail(ErrorCode::Exhausted, "a tensor has too many dimensions");
    entry_.spec.dims.push_back(value);
    return true;
  }
  if (place_ == Place::Offsets && offset_count_ < 2) {
    offsets_[offset_count_++] = value;
    return true;
  }
  return unexpected("a number");
}

}  // namespace neuroshard::tensor::detail
