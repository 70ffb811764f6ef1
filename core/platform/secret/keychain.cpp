#include "core/platform/secret/keychain.h"

namespace neuroshard::platform {

Expected<void> MemoryKeychain::store(const std::string& item, const std::string&, ByteSpan secret) {
  items_[item] = Bytes(secret.begin(), secret.end());
  return {};
}

Expected<Bytes> MemoryKeychain::load(const std::string& item) {
  const auto found = items_.find(item);
  if (found == items_.end()) return make_error(ErrorCode::NotFound, "item not found in the keychain");
  return found->second;
}

Expected<void> MemoryKeychain::remove(const std::string& item) {
  items_.erase(item);
  return {};
}

}  // namespace neuroshard::platform
