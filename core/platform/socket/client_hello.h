// The versions that a TLS client offers in its first record (RFC 8446 §4.1.2), as far as the listener needs
// them.
#pragma once

#include "core/base/bytes.h"

namespace neuroshard::platform {

enum class OfferedTls : std::uint8_t {
  Tls13,    // among others, perhaps
  Older,    // nothing as new as that
  Unknown,  // the hello goes on in a second record, or can't be read
};

// record: the whole first record with its head of five bytes. Nothing of it is believed.
OfferedTls offered_tls(ByteSpan record);

}  // namespace neuroshard::platform
