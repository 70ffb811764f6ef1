// One look at the place of releases: which version is there, and whether its owner signed that. Nothing of it is
// installed, and nothing else is fetched.
//
// A release is a file SHA256SUMS with a signature of minisign, whose trusted comment says "version:0.2.0
// file:SHA256SUMS" and may say more. Only what is signed is believed.
#pragma once

#include <optional>

#include "core/base/version.h"
#include "core/release/place.h"
#include "core/release/source.h"

namespace neuroshard::release {

// The version that a trusted comment names. Corrupt: it names none, or another file.
Expected<Version> version_of_comment(std::string_view comment);

// The version that a signed list names. Corrupt: not a signature, or as version_of_comment().
// Unsupported, Denied: as parse_minisign_signature() and verify_minisign().
Expected<Version> signed_version(const crypto::MinisignKey& key, ByteSpan list, ByteSpan signature);

// Fetches the list and its signature, and returns the version that they name. Denied: the signature is refused, or
// the version is older than `seen`, the newest one that was seen there before: somebody may be hiding it. Corrupt,
// Unsupported: as above. Unavailable, Timeout, Cancelled: the source's.
//
// Threads: one that may wait for the source.
Expected<Version> look(const Place& place, const std::optional<Version>& seen, Source& source,
                       const CancelToken& cancel);

}  // namespace neuroshard::release
