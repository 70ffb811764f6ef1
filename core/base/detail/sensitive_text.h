// The forms in which a text carries secrets and addresses; redactor.h says which of them are taken out. Pure. Any
// bytes are safe.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

namespace neuroshard::detail {

// Letters, digits and "_" of ASCII.
bool is_word(char c);
bool is_space(char c);
std::string lower(std::string_view text);

// Where the run of characters that `belongs` holds for ends.
template <class Belongs>
std::size_t run_end(std::string_view text, std::size_t at, Belongs belongs) {
  while (at < text.size() && belongs(text[at])) ++at;
  return at;
}

// No letter, digit or "_" stands directly before or after [begin, end).
bool bounded(std::string_view text, std::size_t begin, std::size_t end);

// A name after which a secret stands: token, wallet_token, --api-key.
bool is_secret_name(std::string_view name);
// "0.25", "4096": a measure such as bytes_per_token, not a secret.
bool is_small_number(std::string_view value);

struct TextRange {
  std::size_t begin = 0, end = 0;
  friend bool operator==(const TextRange&, const TextRange&) = default;
};
// The value that a text assigns to the name before `after`, without its quotes: of "token = x", of JSON, of JSON in a
// JSON text, of a header. flag: the name is one of a command line, whose value needs no sign between. Empty: none.
TextRange assigned_value(std::string_view text, std::size_t after, bool flag);

// Of 40 characters or more, says the caller: a key, not a path and not a long name.
bool is_base64_key(std::string_view run);
bool is_hex(std::string_view run);

// Four numbers up to 255. text: of digits and dots.
bool is_ipv4(std::string_view text);
// An IPv6 or a hardware address, not a time of day or a scope. text: of hexadecimal digits and colons.
bool is_colon_address(std::string_view text);
// An IPv4 address that says nothing about where the computer is.
bool is_here_only(std::string_view address);

}  // namespace neuroshard::detail
