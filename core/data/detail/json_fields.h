// Strict reading of JSON documents that come from a disk, a peer or a person: bounded, typed, with errors
// that name the field. Private to this folder, because nlohmann/json stays out of public headers.
#pragma once

#include <cstdint>
#include <limits>
#include <nlohmann/json.hpp>
#include <string>
#include <string_view>

#include "core/base/bytes.h"
#include "core/base/expected.h"

namespace neuroshard::data::detail {

// Corrupt("<what> …") when it is no JSON object, larger than max_bytes, or nested beyond
// limits::max_json_depth.
Expected<nlohmann::json> parse_object(ByteSpan bytes, std::uint64_t max_bytes, std::string_view what);

// Fields of one object; `where` opens every message ("manifest.json: shard 3").
class Fields {
 public:
  Fields(const nlohmann::json& object, std::string where) : object_(object), where_(std::move(where)) {}

  Expected<std::uint64_t> number(const char* name,
                                 std::uint64_t max = std::numeric_limits<std::uint64_t>::max()) const;
  Expected<std::int64_t> time_ms(const char* name) const;
  Expected<std::string> text(const char* name, std::size_t max_length) const;
  Expected<bool> flag(const char* name) const;
  // 64 hexadecimal characters.
  Expected<Hash256> hash(const char* name) const;
  Expected<Bytes> hex(const char* name, std::size_t max_bytes) const;
  Expected<const nlohmann::json*> array(const char* name, std::size_t max_items) const;
  Expected<const nlohmann::json*> object(const char* name) const;

  Error wrong(const char* name, std::string_view problem) const;

 private:
  const nlohmann::json& object_;
  std::string where_;
};

// The document as it is stored: indented by two, keys sorted, a newline at the end.
Bytes to_document(const nlohmann::json& value);

}  // namespace neuroshard::data::detail
