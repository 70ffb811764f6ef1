// Bytes that must not stay behind in memory: a passphrase, words, a token, a file that holds one of them.
#pragma once

#include <cstddef>
#include <memory>
#include <string_view>

#include "core/base/bytes.h"

namespace neuroshard::crypto {

// A buffer of fixed size, wiped when destroyed or moved from. Its pages are locked against swapping as far as
// the system's limit permits (ulimit -l), and left out of core dumps. Movable only: a copy is made by name. The
// views live as long as the object.  Threads: one.
class Secret {
 public:
  Secret() = default;
  explicit Secret(std::size_t size);  // zeros
  static Secret copy_of(ByteSpan bytes);
  static Secret copy_of(std::string_view text) { return copy_of(as_bytes(text)); }
  Secret(Secret&& other) noexcept;
  Secret& operator=(Secret&& other) noexcept;
  ~Secret();

  std::size_t size() const { return size_; }
  bool empty() const { return size_ == 0; }
  MutableByteSpan bytes() { return {data_.get(), size_}; }
  ByteSpan bytes() const { return {data_.get(), size_}; }
  // The same bytes, seen as text.
  std::string_view text() const { return as_text(bytes()); }

 private:
  struct Free {
    void operator()(std::uint8_t* bytes) const;
  };
  std::unique_ptr<std::uint8_t, Free> data_;
  std::size_t size_ = 0;
};

}  // namespace neuroshard::crypto
