#include "core/base/detail/sensitive_text.h"

#include <algorithm>
#include <array>
#include <cctype>

namespace neuroshard::detail {
namespace {

constexpr auto npos = std::string_view::npos;

// Names after which a secret stands. A longer name that ends in one counts: wallet_token.
constexpr std::array<std::string_view, 11> secret_names = {
    "token",    "cookie",  "password",    "passwd",        "passphrase", "secret",
    "mnemonic", "api_key", "private_key", "authorization", "apikey"};

}  // namespace

bool is_word(char c) {
  return std::isalnum(static_cast<unsigned char>(c)) != 0 || c == '_';
}
bool is_space(char c) {
  return c == ' ' || c == '\t' || c == '\n' || c == '\r';
}
std::string lower(std::string_view text) {
  std::string result(text);
  for (char& c : result) c = static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
  return result;
}

bool bounded(std::string_view text, std::size_t begin, std::size_t end) {
  return (begin == 0 || !is_word(text[begin - 1])) && (end >= text.size() || !is_word(text[end]));
}

bool is_secret_name(std::string_view name) {
  std::string plain = lower(name);
  std::replace(plain.begin(), plain.end(), '-', '_');
  return std::any_of(secret_names.begin(), secret_names.end(), [&plain](std::string_view secret) {
    return plain.size() >= secret.size() && plain.compare(plain.size() - secret.size(), npos, secret) == 0;
  });
}

bool is_small_number(std::string_view value) {
  return !value.empty() && value.size() <= 10 && std::all_of(value.begin(), value.end(), [](char c) {
    return std::isdigit(static_cast<unsigned char>(c)) != 0 || c == '.';
  });
}

TextRange assigned_value(std::string_view text, std::size_t after, bool flag) {
  std::size_t at = after;
  if (at < text.size() && text[at] == '\\') ++at;  // JSON inside JSON
  if (at < text.size() && (text[at] == '"' || text[at] == '\'')) ++at;
  at = run_end(text, at, [](char c) { return c == ' ' || c == '\t'; });
  const bool assigned = at < text.size() && (text[at] == '=' || text[at] == ':');
  if (!assigned && !(flag && at > after)) return {after, after};
  if (assigned) at = run_end(text, at + 1, [](char c) { return c == ' ' || c == '\t'; });
  if (at < text.size() && text[at] == '\\') ++at;
  if (at < text.size() && (text[at] == '"' || text[at] == '\'')) {
    const char quote = text[at];
    const std::size_t end =
        run_end(text, at + 1, [quote](char c) { return c != quote && c != '\\' && c != '\n'; });
    return {at + 1, end};
  }
  std::size_t end =
      run_end(text, at, [](char c) { return !is_space(c) && std::string_view(",;)&]}\"'").find(c) == npos; });
  const std::string word = lower(text.substr(at, end - at));
  if (word == "bearer" || word == "basic")
    end = run_end(text, end + (end < text.size()),
                  [](char c) { return !is_space(c) && c != '"' && c != '\''; });
  return {at, end};
}

bool is_base64_key(std::string_view run) {
  std::size_t upper = 0, small = 0, digits = 0, slashes = 0;
  for (const char c : run) {
    upper += std::isupper(static_cast<unsigned char>(c)) != 0;
    small += std::islower(static_cast<unsigned char>(c)) != 0;
    digits += std::isdigit(static_cast<unsigned char>(c)) != 0;
    slashes += c == '/';
  }
  if (run.front() == '/') return false;  // a path
  return slashes == 0 ? upper >= 1 && small >= 1 && digits >= 1
                      : slashes <= 3 && upper >= 6 && small >= 6 && digits >= 3;
}

bool is_hex(std::string_view run) {
  return std::all_of(run.begin(), run.end(),
                     [](char c) { return std::isxdigit(static_cast<unsigned char>(c)) != 0; });
}

bool is_ipv4(std::string_view text) {
  int parts = 0;
  while (true) {
    const std::size_t end = std::min(text.find('.'), text.size());
    if (end == 0 || end > 3) return false;
    int value = 0;
    for (const char c : text.substr(0, end)) value = value * 10 + (c - '0');
    if (value > 255 || ++parts > 4) return false;
    if (end == text.size()) return parts == 4;
    text.remove_prefix(end + 1);
  }
}

bool is_colon_address(std::string_view text) {
  const auto colons = std::count(text.begin(), text.end(), ':');
  std::size_t longest = 0, group = 0, digits = 0;
  for (const char c : text) {
    group = c == ':' ? 0 : group + 1;
    digits += c != ':';
    longest = std::max(longest, group);
  }
  if (longest > 4 || digits < 2) return false;
  if (colons == 5) return longest == 2 && text.size() == 17;  // hardware
  return colons == 7 || (colons >= 2 && colons < 8 && text.find("::") != npos);
}

bool is_here_only(std::string_view address) {
  return address.substr(0, 4) == "127." || address == "0.0.0.0";
}

}  // namespace neuroshard::detail
