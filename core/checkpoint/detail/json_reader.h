// Reads fields of a JSON object with types and bounds; remembers the first thing that is wrong. Private.
#pragma once

#include <fmt/format.h>

#include <cstdint>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <utility>

#include "core/base/bytes.h"
#include "core/base/error.h"

namespace neuroshard::checkpoint::detail {

// True when no bracket nests deeper than `depth`: held before parsing, because a tree of a million brackets
// would cost a hundred times its text.
bool nesting_within(std::string_view json, std::size_t depth);

class JsonReader {
 public:
  explicit JsonReader(const nlohmann::json& object) : object_(object) {
    if (!object.is_object()) fail("an object is missing");
  }

  bool ok() const { return !error_; }
  Error error() const { return *error_; }
  void fail(std::string message) {
    if (!error_) error_ = make_error(ErrorCode::Corrupt, "the manifest is damaged: " + std::move(message));
  }

  const nlohmann::json* optional(const char* key) {
    if (!ok()) return nullptr;
    const auto found = object_.find(key);
    return found == object_.end() ? nullptr : &*found;
  }
  const nlohmann::json* required(const char* key) {
    const auto* value = optional(key);
    if (value == nullptr) fail(fmt::format("{} is missing", key));
    return value;
  }

  template <class T>
  void read_unsigned(const char* key, T& out,
                     std::uint64_t most = static_cast<std::uint64_t>(static_cast<T>(-1))) {
    const auto* value = required(key);
    if (value == nullptr) return;
    if (!value->is_number_unsigned() || value->get<std::uint64_t>() > most)
      return fail(fmt::format("{} is not a valid number", key));
    out = static_cast<T>(value->get<std::uint64_t>());
  }
  void read_signed(const char* key, std::int64_t& out);
  void read_float(const char* key, float& out);
  void read_optional_double(const char* key, std::optional<double>& out);
  void read_text(const char* key, std::string& out, std::size_t most);
  template <std::size_t N>
  void read_hex(const char* key, std::array<std::uint8_t, N>& out) {
    std::string text;
    read_text(key, text, 2 * N);
    if (!ok()) return;
    const auto bytes = from_hex(text);
    if (!bytes.ok() || bytes->size() != N) return fail(fmt::format("{} is not {} hexadecimal bytes", key, N));
    std::copy(bytes->begin(), bytes->end(), out.begin());
  }

 private:
  const nlohmann::json& object_;
  std::optional<Error> error_;
};

}  // namespace neuroshard::checkpoint::detail
