// The safetensors header as a stream of JSON events: keeps what is asked for, refuses everything else on
// sight, so nothing grows beyond what the bytes themselves spell out. Private to core/tensor.
#pragma once

#include <nlohmann/json.hpp>
#include <optional>
#include <string>

#include "core/tensor/safetensors.h"

namespace neuroshard::tensor::detail {

class HeaderEvents final : public nlohmann::json_sax<nlohmann::json> {
 public:
  explicit HeaderEvents(SafetensorsHeader& header) : header_(header) {}
  // Set as soon as an event returned false.
  const std::optional<Error>& error() const { return error_; }

  bool start_object(std::size_t) override;
  bool end_object() override;
  bool start_array(std::size_t) override;
  bool end_array() override;
  bool key(string_t& name) override;
  bool string(string_t& value) override;
  bool number_unsigned(number_unsigned_t value) override;
  bool null() override { return unexpected("null"); }
  bool boolean(bool) override { return unexpected("a boolean"); }
  bool number_integer(number_integer_t) override { return unexpected("a negative number"); }
  bool number_float(number_float_t, const string_t&) override {
    return unexpected("a fraction or a number beyond 64 bits");
  }
  bool binary(binary_t&) override { return unexpected("binary"); }
  bool parse_error(std::size_t position, const std::string&, const nlohmann::detail::exception&) override;

 private:
  enum class Place { Start, Top, Metadata, Tensor, Shape, Offsets, Done };
  enum class Field { None, DType, Shape, Offsets };

  bool fail(ErrorCode code, std::string message);
  bool unexpected(std::string_view what);
  bool top_key(std::string& name);
  bool finish_tensor();

  SafetensorsHeader& header_;
  std::optional<Error> error_;
  Place place_ = Place::Start;
  Field field_ = Field::None;
  bool metadata_seen_ = false;
  bool entering_metadata_ = false;
  std::string metadata_key_;
  TensorEntry entry_;
  bool has_type_ = false;
  bool has_shape_ = false;
  std::uint64_t offsets_[2] = {0, 0};
  std::size_t offset_count_ = 0;
  bool has_offsets_ = false;
};

}  // namespace neuroshard::tensor::detail
