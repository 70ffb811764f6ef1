// Span<T>: a view of contiguous values that somebody else owns. Ours, because std::span needs C++20 and these
// headers are shared with the C++17 compute module, where two standards must agree on one layout (pointer,
// then count).
#pragma once

#include <cstddef>
#include <type_traits>
#include <utility>

namespace neuroshard {

template <class T>
struct Span {
  using element_type = T;
  using value_type = std::remove_cv_t<T>;

  T* pointer = nullptr;
  std::size_t count = 0;

  constexpr Span() = default;
  constexpr Span(T* data, std::size_t size) : pointer(data), count(size) {}
  template <std::size_t N>
  constexpr Span(T (&array)[N]) : pointer(array), count(N) {}  // NOLINT: implicit on purpose
  // From any container with data() and size(); a temporary is refused unless the view is const.
  template <class C,
            class = std::enable_if_t<std::is_convertible_v<decltype(std::declval<C&>().data()), T*> &&
                                     (std::is_const_v<T> || std::is_lvalue_reference_v<C>)>>
  constexpr Span(C&& container) : pointer(container.data()), count(container.size()) {}  // NOLINT

  constexpr T* data() const { return pointer; }
  constexpr std::size_t size() const { return count; }
  constexpr std::size_t size_bytes() const { return count * sizeof(T); }
  constexpr bool empty() const { return count == 0; }
  constexpr T* begin() const { return pointer; }
  constexpr T* end() const { return pointer + count; }
  constexpr T& operator[](std::size_t i) const { return pointer[i]; }
  constexpr T& front() const { return pointer[0]; }
  constexpr T& back() const { return pointer[count - 1]; }
  constexpr Span first(std::size_t n) const { return Span(pointer, n); }
  constexpr Span last(std::size_t n) const { return Span(pointer + (count - n), n); }
  constexpr Span subspan(std::size_t offset) const { return Span(pointer + offset, count - offset); }
  constexpr Span subspan(std::size_t offset, std::size_t n) const { return Span(pointer + offset, n); }
};

}  // namespace neuroshard
