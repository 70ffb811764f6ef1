// The Secret Service through libsecret. Its headers give the types; the library is opened on first use.
#include <dlfcn.h>
#include <fmt/format.h>
#include <libsecret/secret.h>

#include <cstring>

#include "core/platform/secret/keychain.h"

namespace neuroshard::platform {
namespace {

constexpr const char* library_name = "libsecret-1.so.0";
constexpr const char* attribute = "item";

const SecretSchema* schema() {
  static const SecretSchema value = [] {
    SecretSchema s{};
    s.name = "org.neuroshard.Wallet";
    s.flags = SECRET_SCHEMA_NONE;
    s.attributes[0] = {attribute, SECRET_SCHEMA_ATTRIBUTE_STRING};
    return s;
  }();
  return &value;
}

// The few functions that are used.
struct Functions {
  decltype(&secret_password_store_sync) store = nullptr;
  decltype(&secret_password_lookup_sync) lookup = nullptr;
  decltype(&secret_password_clear_sync) clear = nullptr;
  decltype(&secret_password_free) free_password = nullptr;
  decltype(&g_error_free) free_error = nullptr;

  bool complete() const {
    return store != nullptr && lookup != nullptr && clear != nullptr && free_password != nullptr &&
           free_error != nullptr;
  }
};

template <class F>
void find(void* library, const char* name, F& function) {
  function = reinterpret_cast<F>(dlsym(library, name));
}

Error unavailable(std::string_view reason) {
  return make_error(
      ErrorCode::Unavailable,
      fmt::format("the desktop keychain is not available ({}): run inside a desktop session, or choose "
                  "the protection passphrase or none",
                  reason));
}

void wipe_text(char* text) {
  explicit_bzero(text, std::strlen(text));
}

class LibsecretKeychain final : public Keychain {
 public:
  Expected<void> store(const std::string& item, const std::string& label, ByteSpan secret) override {
    NS_RETURN_IF_ERROR(load_library());
    std::string hex = to_hex(secret);  // the service keeps text
    GError* failed = nullptr;
    functions_.store(schema(), SECRET_COLLECTION_DEFAULT, label.c_str(), hex.c_str(), nullptr, &failed,
                     attribute, item.c_str(), nullptr);
    wipe_text(hex.data());
    return result(failed);
  }

  Expected<Bytes> load(const std::string& item) override {
    NS_RETURN_IF_ERROR(load_library());
    GError* failed = nullptr;
    char* hex = functions_.lookup(schema(), nullptr, &failed, attribute, item.c_str(), nullptr);
    if (failed != nullptr) return take_error(failed);
    if (hex == nullptr) {
      return make_error(
          ErrorCode::NotFound,
          "the desktop keychain has no key for this wallet: restore the wallet from its words or backup");
    }
    auto secret = from_hex(hex);
    functions_.free_password(hex);  // wipes
    if (!secret.ok())
      return make_error(ErrorCode::Corrupt, "the desktop keychain's key for this wallet is damaged");
    return secret;
  }

  Expected<void> remove(const std::string& item) override {
    NS_RETURN_IF_ERROR(load_library());
    GError* failed = nullptr;
    functions_.clear(schema(), nullptr, &failed, attribute, item.c_str(), nullptr);
    return result(failed);
  }

 private:
  // The library stays open: GLib starts threads that must not lose their code.
  Expected<void> load_library() {
    if (functions_.complete()) return {};
    void* library = dlopen(library_name, RTLD_NOW | RTLD_LOCAL);
    if (library == nullptr) return unavailable(fmt::format("{} is not installed", library_name));
    find(library, "secret_password_store_sync", functions_.store);
    find(library, "secret_password_lookup_sync", functions_.lookup);
    find(library, "secret_password_clear_sync", functions_.clear);
    find(library, "secret_password_free", functions_.free_password);
    find(library, "g_error_free", functions_.free_error);
    if (!functions_.complete()) return unavailable(fmt::format("{} lacks a function", library_name));
    return {};
  }

  Expected<void> result(GError* failed) {
    if (failed != nullptr) return take_error(failed);
    return {};
  }

  Error take_error(GError* failed) {
    Error error = unavailable(failed->message);
    functions_.free_error(failed);
    return error;
  }

  Functions functions_;
};

}  // namespace

std::unique_ptr<Keychain> make_desktop_keychain() {
  return std::make_unique<LibsecretKeychain>();
}

}  // namespace neuroshard::platform
