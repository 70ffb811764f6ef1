// Keyed hashes of foreign protocols: HMAC (RFC 2104) over SHA-1 and SHA-256, and MD5, which STUN's long-term
// credentials are made with (RFC 8489 §9.2.2). Nothing of ours uses SHA-1 or MD5.
#pragma once

#include <array>

#include "core/base/bytes.h"

namespace neuroshard::crypto {

std::array<std::uint8_t, 20> hmac_sha1(ByteSpan key, ByteSpan bytes);
Hash256 hmac_sha256(ByteSpan key, ByteSpan bytes);
std::array<std::uint8_t, 16> md5(ByteSpan bytes);

// In a time that depends on the lengths only.
bool equal_in_constant_time(ByteSpan a, ByteSpan b);

}  // namespace neuroshard::crypto
