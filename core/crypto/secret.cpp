#include "core/crypto/secret.h"

#include <algorithm>
#include <utility>

#include "core/crypto/keys.h"

namespace neuroshard::crypto {

Secret::Secret(std::size_t size) : data_(std::make_unique<std::uint8_t[]>(size)), size_(size) {}

Secret Secret::copy_of(ByteSpan bytes) {
  Secret secret(bytes.size());
  std::copy(bytes.begin(), bytes.end(), secret.data_.get());
  return secret;
}

Secret::Secret(Secret&& other) noexcept
    : data_(std::move(other.data_)), size_(std::exchange(other.size_, 0)) {}

Secret& Secret::operator=(Secret&& other) noexcept {
  if (this != &other) {
    wipe(bytes());
    data_ = std::move(other.data_);
    size_ = std::exchange(other.size_, 0);
  }
  return *this;
}

Secret::~Secret() {
  wipe(bytes());
}

}  // namespace neuroshard::crypto
