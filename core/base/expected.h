// Expected<T>: a value or an Error. C++17, because std::expected is not in GCC 12 and the compute module sees
// this.
//
//   Expected<Manifest> parse(ByteSpan bytes);
//   NS_ASSIGN_OR_RETURN(Manifest manifest, parse(bytes));   // returns the Error to the caller
//   NS_RETURN_IF_ERROR(file.sync());
#pragma once

#include <optional>
#include <utility>
#include <variant>

#include "core/base/check.h"
#include "core/base/error.h"

namespace neuroshard {

template <class T>
class [[nodiscard]] Expected {
 public:
  Expected(T value) : state_(std::in_place_index<0>, std::move(value)) {}      // NOLINT: implicit on purpose
  Expected(Error error) : state_(std::in_place_index<1>, std::move(error)) {}  // NOLINT

  bool ok() const { return state_.index() == 0; }
  explicit operator bool() const { return ok(); }

  // Reading the value of a failure, or the error of a success, is a bug.
  T& value() & {
    NS_CHECK(ok());
    return *std::get_if<0>(&state_);
  }
  const T& value() const& {
    NS_CHECK(ok());
    return *std::get_if<0>(&state_);
  }
  T&& value() && {
    NS_CHECK(ok());
    return std::move(*std::get_if<0>(&state_));
  }
  T& operator*() & { return value(); }
  const T& operator*() const& { return value(); }
  T&& operator*() && { return std::move(*this).value(); }
  T* operator->() { return &value(); }
  const T* operator->() const { return &value(); }

  const Error& error() const& {
    NS_CHECK(!ok());
    return *std::get_if<1>(&state_);
  }
  Error&& error() && {
    NS_CHECK(!ok());
    return std::move(*std::get_if<1>(&state_));
  }

  T value_or(T fallback) const& { return ok() ? value() : std::move(fallback); }

 private:
  std::variant<T, Error> state_;
};

template <>
class [[nodiscard]] Expected<void> {
 public:
  Expected() = default;
  Expected(Error error) : error_(std::move(error)) {}  // NOLINT: implicit on purpose

  bool ok() const { return !error_.has_value(); }
  explicit operator bool() const { return ok(); }
  const Error& error() const& {
    NS_CHECK(!ok());
    return *error_;
  }
  Error&& error() && {
    NS_CHECK(!ok());
    return std::move(*error_);
  }

 private:
  std::optional<Error> error_;
};

}  // namespace neuroshard

#define NS_CONCAT_INNER(a, b) a##b
#define NS_CONCAT(a, b) NS_CONCAT_INNER(a, b)
#define NS_RETURN_IF_ERROR(expression)                        \
  do {                                                        \
    auto ns_result = (expression);                            \
    if (!ns_result.ok()) return std::move(ns_result).error(); \
  } while (false)
#define NS_ASSIGN_OR_RETURN(declaration, expression) \
  NS_ASSIGN_OR_RETURN_INNER(NS_CONCAT(ns_result_, __LINE__), declaration, expression)
#define NS_ASSIGN_OR_RETURN_INNER(result, declaration, expression) \
  auto result = (expression);                                      \
  if (!result.ok()) return std::move(result).error();              \
  declaration = std::move(result).value()
