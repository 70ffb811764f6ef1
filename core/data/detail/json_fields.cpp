#include "core/data/detail/json_fields.h"

#include <fmt/format.h>

#include "core/base/limits.h"

namespace neuroshard::data::detail {
namespace {

// Checked before parsing, so that a deeply nested document never becomes a deep tree.
bool nests_too_deeply(ByteSpan bytes) {
  std::uint32_t depth = 0;
  bool in_string = false;
  for (std::size_t i = 0; i < bytes.size(); ++i) {
    const std::uint8_t c = bytes[i];
    if (in_string) {
      if (c == '\\') {
        ++i;
      } else if (c == '"') {
        in_string = false;
      }
    } else if (c == '"') {
      in_string = true;
    } else if (c == '[' || c == '{') {
      if (++depth > limits::max_json_depth) return true;
    } else if ((c == ']' || c == '}') && depth > 0) {
      --depth;
    }
  }
  return false;
}

}  // namespace

Expected<nlohmann::json> parse_object(ByteSpan bytes, std::uint64_t max_bytes, std::string_view what) {
  if (bytes.size() > max_bytes) {
    return make_error(ErrorCode::Exhausted,
                      fmt::format("{} has {} bytes; at most {} are accepted", what, bytes.size(), max_bytes));
  }
  if (nests_too_deeply(bytes))
    return make_error(ErrorCode::Corrupt, fmt::format("{} nests too deeply", what));
  nlohmann::json value =
      nlohmann::json::parse(bytes.begin(), bytes.end(), nullptr, /*allow_exceptions=*/false);
  if (!value.is_object()) {
    return make_error(ErrorCode::Corrupt, fmt::format("{} is not a JSON object", what));
  }
  return value;
}

Error Fields::wrong(const char* name, std::string_view problem) const {
  return make_error(ErrorCode::Corrupt, fmt::format("{}: \"{}\" {}", where_, name, problem));
}

Expected<std::uint64_t> Fields::number(const char* name, std::uint64_t max) const {
  const auto found = object_.find(name);
  if (found == object_.end()) return wrong(name, "is missing");
  if (!found->is_number_integer()) return wrong(name, "is not a whole number");
  if (!found->is_number_unsigned() && found->get<std::int64_t>() < 0) return wrong(name, "is negative");
  const auto value = found->get<std::uint64_t>();
  if (value > max) return wrong(name, fmt::format("is {}; at most {} is accepted", value, max));
  return value;
}

Expected<std::int64_t> Fields::time_ms(const char* name) const {
  constexpr std::uint64_t max_time = 253'402'300'800'000;  // the year 10000
  NS_ASSIGN_OR_RETURN(const std::uint64_t value, number(name, max_time));
  return static_cast<std::int64_t>(value);
}

Expected<std::string> Fields::text(const char* name, std::size_t max_length) const {
  const auto found = object_.find(name);
  if (found == object_.end()) return wrong(name, "is missing");
  if (!found->is_string()) return wrong(name, "is not text");
  const auto& value = found->get_ref<const std::string&>();
  if (value.size() > max_length) return wrong(name, fmt::format("has more than {} bytes", max_length));
  return value;
}

Expected<bool> Fields::flag(const char* name) const {
  const auto found = object_.find(name);
  if (found == object_.end()) return wrong(name, "is missing");
  if (!found->is_boolean()) return wrong(name, "is neither true nor false");
  return found->get<bool>();
}

Expected<Bytes> Fields::hex(const char* name, std::size_t max_bytes) const {
  NS_ASSIGN_OR_RETURN(const std::string value, text(name, 2 * max_bytes));
  auto bytes = from_hex(value);
  if (!bytes.ok()) return wrong(name, "is not hexadecimal");
  return std::move(bytes).value();
}

Expected<Hash256> Fields::hash(const char* name) const {
  NS_ASSIGN_OR_RETURN(const std::string value, text(name, 64));
  const auto parsed = hash_from_hex(value);
  if (!parsed.ok()) return wrong(name, "is not a SHA-256 of 64 hexadecimal characters");
  return *parsed;
}

Expected<const nlohmann::json*> Fields::array(const char* name, std::size_t max_items) const {
  const auto found = object_.find(name);
  if (found == object_.end()) return wrong(name, "is missing");
  if (!found->is_array()) return wrong(name, "is not a list");
  if (found->size() > max_items) return wrong(name, fmt::format("has more than {} items", max_items));
  return &*found;
}

Expected<const nlohmann::json*> Fields::object(const char* name) const {
  const auto found = object_.find(name);
  if (found == object_.end()) return wrong(name, "is missing");
  if (!found->is_object()) return wrong(name, "is not an object");
  return &*found;
}

Bytes to_document(const nlohmann::json& value) {
  // Text that is not UTF-8 (a path, say) is shown with replacement characters rather than refused.
  const std::string text = value.dump(2, ' ', false, nlohmann::json::error_handler_t::replace) + "\n";
  return Bytes(text.begin(), text.end());
}

}  // namespace neuroshard::data::detail
