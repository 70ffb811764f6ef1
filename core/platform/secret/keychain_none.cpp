// Built where libsecret is missing.
#include "core/platform/secret/keychain.h"

namespace neuroshard::platform {
namespace {

Error not_built() {
  return make_error(
      ErrorCode::Unavailable,
      "this build has no access to a desktop keychain: choose the protection passphrase or none");
}

class NoKeychain final : public Keychain {
 public:
  Expected<void> store(const std::string&, const std::string&, ByteSpan) override { return not_built(); }
  Expected<Bytes> load(const std::string&) override { return not_built(); }
  Expected<void> remove(const std::string&) override { return not_built(); }
};

}  // namespace

std::unique_ptr<Keychain> make_desktop_keychain() {
  return std::make_unique<NoKeychain>();
}

}  // namespace neuroshard::platform
