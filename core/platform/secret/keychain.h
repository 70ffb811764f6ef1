// The desktop's keychain: keeps a few secrets, each under the name of an item. Linux: the Secret Service
// (GNOME Keyring, KWallet) through libsecret, which is loaded on first use, so that nothing else pays for it.
// Elsewhere every call is Unavailable.
#pragma once

#include <map>
#include <memory>
#include <string>

#include "core/base/bytes.h"
#include "core/base/expected.h"

namespace neuroshard::platform {

// Calls may block while the desktop asks the person to unlock the keychain. Threads: one at a time.
// Errors of all: Unavailable (no keychain here: no desktop session, no library; the message says what to use
// instead).
class Keychain {
 public:
  virtual ~Keychain() = default;
  // Replaces. `label` is what the desktop's own program shows for it.
  virtual Expected<void> store(const std::string& item, const std::string& label, ByteSpan secret) = 0;
  // NotFound: no such item. The caller wipes the result.
  virtual Expected<Bytes> load(const std::string& item) = 0;
  // A missing item is success.
  virtual Expected<void> remove(const std::string& item) = 0;
};

std::unique_ptr<Keychain> make_desktop_keychain();

// In memory; for tests.
class MemoryKeychain final : public Keychain {
 public:
  Expected<void> store(const std::string& item, const std::string& label, ByteSpan secret) override;
  Expected<Bytes> load(const std::string& item) override;
  Expected<void> remove(const std::string& item) override;

 private:
  std::map<std::string, Bytes> items_;
};

}  // namespace neuroshard::platform
