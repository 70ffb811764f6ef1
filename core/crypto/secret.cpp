#include "core/crypto/secret.h"

#include <algorithm>
#include <utility>

#include "core/base/check.h"
#include "core/crypto/detail/sodium.h"

namespace neuroshard::crypto {

namespace {

// Of whole pages, which nothing else shares. A lock that the system refuses is not an error.
std::uint8_t* allocate(std::size_t size) {
  detail::require_sodium();
  auto* const bytes = static_cast<std::uint8_t*>(sodium_malloc(size));
  NS_CHECK(bytes != nullptr);
  std::fill_n(bytes, size, std::uint8_t{0});
  return bytes;
}

}  // namespace

void Secret::Free::operator()(std::uint8_t* bytes) const {
  sodium_free(bytes);  // wipes
}

Secret::Secret(std::size_t size) : data_(size == 0 ? nullptr : allocate(size)), size_(size) {}

Secret Secret::copy_of(ByteSpan bytes) {
  Secret secret(bytes.size());
  std::copy(bytes.begin(), bytes.end(), secret.data_.get());
  return secret;
}

Secret::Secret(Secret&& other) noexcept
    : data_(std::move(other.data_)), size_(std::exchange(other.size_, 0)) {}

Secret& Secret::operator=(Secret&& other) noexcept {
  if (this != &other) {
    data_ = std::move(other.data_);
    size_ = std::exchange(other.size_, 0);
  }
  return *this;
}

Secret::~Secret() = default;

}  // namespace neuroshard::crypto
