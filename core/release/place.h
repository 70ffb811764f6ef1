// Where a build looks for releases: chosen when it is configured (NS_RELEASES_URL, NS_RELEASES_KEY).
#pragma once

#include <string>

#include "core/base/expected.h"
#include "core/crypto/minisign.h"

namespace neuroshard::release {

struct Place {
  std::string url;          // a folder with SHA256SUMS and SHA256SUMS.minisig, without a slash at its end
  crypto::MinisignKey key;  // signs every release
};

// InvalidArgument: the address is neither https nor, for tests, http to this computer's own address
// (127.0.0.1, [::1]), has a user, a query or a fragment, or the key is not one of minisign.
Expected<Place> parse_place(const std::string& url, const std::string& key);

}  // namespace neuroshard::release
