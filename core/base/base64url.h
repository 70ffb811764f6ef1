// Base64 for links (RFC 4648 §5, "base64url", without padding).
#pragma once

#include <string>
#include <string_view>

#include "core/base/bytes.h"
#include "core/base/expected.h"

namespace neuroshard {

std::string to_base64url(ByteSpan bytes);
// InvalidArgument: another character, an impossible length, leftover bits. So each byte string has
// exactly one accepted text.
Expected<Bytes> from_base64url(std::string_view text);

}  // namespace neuroshard
