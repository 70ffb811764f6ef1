// A signature of minisign and what its comment says, as a web server gives them; with a first byte of 1 the key
// of a build, 2 a version, 3 a comment under a signature that is not checked.
#include "core/base/check.h"
#include "core/base/version.h"
#include "core/crypto/minisign.h"
#include "core/release/look.h"

using namespace neuroshard;  // NOLINT

namespace {

void check_signature(ByteSpan input) {
  const auto signature = crypto::parse_minisign_signature(input);
  if (!signature.ok()) return;
  NS_CHECK(input.size() <= crypto::max_minisign_bytes);
  NS_CHECK(signature->trusted_comment.find('\n') == std::string::npos);
  crypto::MinisignKey key;
  key.id = signature->key_id;
  // A key whose secret half no input holds, so nothing may be accepted.
  key.key = crypto::PublicKey{0xd7, 0x5a, 0x98, 0x01, 0x82, 0xb1, 0x0a, 0xb7, 0xd5, 0x4b, 0xfe,
                              0xd3, 0xc9, 0x64, 0x07, 0x3a, 0x0e, 0xe1, 0x72, 0xf3, 0xda, 0xa6,
                              0x23, 0x25, 0xaf, 0x02, 0x1a, 0x68, 0xf7, 0x07, 0x51, 0x1a};
  NS_CHECK(!crypto::verify_minisign(key, as_bytes("a list"), *signature).ok());
  NS_CHECK(!release::signed_version(key, as_bytes("a list"), input).ok());
}

void check_version(std::string_view text) {
  const auto version = Version::parse(text);
  if (version.ok()) NS_CHECK(version->text() == text && !(*version < *version));
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  if (size == 0) return 0;
  const ByteSpan rest{data + 1, size - 1};
  switch (data[0]) {
    case 1: static_cast<void>(crypto::parse_minisign_key(as_text(rest)).ok()); break;
    case 2: check_version(as_text(rest)); break;
    case 3: static_cast<void>(release::version_of_comment(as_text(rest)).ok()); break;
    default: check_signature(rest);
  }
  return 0;
}
