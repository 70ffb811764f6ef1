#include <cmath>

#include "core/checkpoint/detail/json_reader.h"

namespace neuroshard::checkpoint::detail {

bool nesting_within(std::string_view json, std::size_t depth) {
  std::size_t open = 0;
  bool in_text = false;
  for (std::size_t i = 0; i < json.size(); ++i) {
    const char c = json[i];
    if (in_text) {
      if (c == '\\')
        ++i;
      else if (c == '"')
        in_text = false;
    } else if (c == '"') {
      in_text = true;
    } else if (c == '{' || c == '[') {
      if (++open > depth) return false;
    } else if ((c == '}' || c == ']') && open > 0) {
      --open;
    }
  }
  return true;
}

void JsonReader::read_signed(const char* key, std::int64_t& out) {
  const auto* value = required(key);
  if (value == nullptr) return;
  if (!value->is_number_integer() ||
      (value->is_number_unsigned() && value->get<std::uint64_t>() > static_cast<std::uint64_t>(INT64_MAX))) {
    return fail(fmt::format("{} is not a valid number", key));
  }
  out = value->get<std::int64_t>();
}

void JsonReader::read_float(const char* key, float& out) {
  const auto* value = required(key);
  if (value == nullptr) return;
  const double number = value->is_number() ? value->get<double>() : NAN;
  if (!std::isfinite(static_cast<float>(number))) return fail(fmt::format("{} is not a valid number", key));
  out = static_cast<float>(number);
}

void JsonReader::read_optional_double(const char* key, std::optional<double>& out) {
  const auto* value = optional(key);
  if (value == nullptr) return;
  const double number = value->is_number() ? value->get<double>() : NAN;
  if (!std::isfinite(number)) return fail(fmt::format("{} is not a valid number", key));
  out = number;
}

void JsonReader::read_text(const char* key, std::string& out, std::size_t most) {
  const auto* value = required(key);
  if (value == nullptr) return;
  if (!value->is_string() || value->get_ref<const std::string&>().size() > most) {
    return fail(fmt::format("{} is not a text of at most {} bytes", key, most));
  }
  out = value->get<std::string>();
}

}  // namespace neuroshard::checkpoint::detail
