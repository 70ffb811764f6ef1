#include "core/data/unicode_classes.h"

#include <utf8proc.h>

namespace neuroshard::data {
namespace {

// Categories Zs, Zl and Zp are white space; of the control characters beyond ASCII only U+0085 is.
CharacterClass class_of(utf8proc_int32_t code_point) {
  switch (utf8proc_category(code_point)) {
    case UTF8PROC_CATEGORY_LU:
    case UTF8PROC_CATEGORY_LL:
    case UTF8PROC_CATEGORY_LT:
    case UTF8PROC_CATEGORY_LM:
    case UTF8PROC_CATEGORY_LO: return CharacterClass::Letter;
    case UTF8PROC_CATEGORY_ND:
    case UTF8PROC_CATEGORY_NL:
    case UTF8PROC_CATEGORY_NO: return CharacterClass::Number;
    case UTF8PROC_CATEGORY_ZS:
    case UTF8PROC_CATEGORY_ZL:
    case UTF8PROC_CATEGORY_ZP: return CharacterClass::Space;
    default: return code_point == 0x85 ? CharacterClass::Space : CharacterClass::Other;
  }
}

bool continues(std::uint8_t byte) {
  return (byte & 0xC0) == 0x80;
}

}  // namespace

Character read_multibyte_character(const std::uint8_t* at, const std::uint8_t* end) {
  const std::uint8_t lead = *at;
  const auto left = end - at;
  if (lead >= 0xC2 && lead <= 0xDF && left >= 2 && continues(at[1])) {
    return {class_of((lead & 0x1F) << 6 | (at[1] & 0x3F)), 2};
  }
  if (lead >= 0xE0 && lead <= 0xEF && left >= 3 && continues(at[1]) && continues(at[2])) {
    const utf8proc_int32_t code = (lead & 0x0F) << 12 | (at[1] & 0x3F) << 6 | (at[2] & 0x3F);
    const bool surrogate = code >= 0xD800 && code <= 0xDFFF;
    if (code >= 0x800 && !surrogate) return {class_of(code), 3};
  }
  if (lead >= 0xF0 && lead <= 0xF4 && left >= 4 && continues(at[1]) && continues(at[2]) && continues(at[3])) {
    const utf8proc_int32_t code =
        (lead & 0x07) << 18 | (at[1] & 0x3F) << 12 | (at[2] & 0x3F) << 6 | (at[3] & 0x3F);
    if (code >= 0x10000 && code <= 0x10FFFF) return {class_of(code), 4};
  }
  return {CharacterClass::Other, 1};
}

}  // namespace neuroshard::data
