// Base64 for links (RFC 4648 §5, "base64url", without padding).
#pragma once

#include <string>
#include <string_view>

#include "core/base/bytes.h"
#include "core/base/expected.h"

namespace neuroshard {

std::string to_base64url(ByteSpan bytes);
// InvalidArgument: another character, a length that cannot be, bits that are left over. So each text that is
// accepted is the only one of its bytes.
Expected<Bytes> from_base64url(std::string_view text);

}  // namespace neuroshard
