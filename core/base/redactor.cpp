#include "core/base/redactor.h"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <utility>

#include "core/base/detail/sensitive_text.h"

namespace neuroshard {
namespace {

constexpr std::size_t least_wallet_words = 6;  // ordinary English has no such run of them
constexpr std::size_t least_hex = 32, least_base64 = 40;
constexpr std::size_t longest_address = 256;
constexpr std::size_t most_numbers = 4096;  // distinct values, of each kind
constexpr auto npos = std::string_view::npos;

// Each `find` that `fits` is replaced.
template <class Fits>
std::string replaced(std::string_view text, std::string_view find, std::string_view with,
                     std::uint64_t& count, Fits fits) {
  std::string result;
  std::size_t from = 0, at = 0;
  while ((at = text.find(find, at)) != npos) {
    if (!fits(at, at + find.size())) {
      ++at;
      continue;
    }
    result.append(text.substr(from, at - from)).append(with);
    from = at = at + find.size();
    ++count;
  }
  return result.append(text.substr(from));
}

}  // namespace

Redactor::Redactor(Options options) : options_(std::move(options)) {
  while (options_.home.size() > 1 && (options_.home.back() == '/' || options_.home.back() == '\\'))
    options_.home.pop_back();
}

void Redactor::add_secret(std::string value) {
  if (value.size() < shortest_secret) return;
  secrets_.push_back(std::move(value));
  std::sort(secrets_.begin(), secrets_.end(),
            [](const std::string& a, const std::string& b) { return a.size() > b.size(); });
}

std::string Redactor::apply(std::string_view text) {
  std::string result = without_named_secrets(text);
  result = without_private_keys(result);
  result = without_assignments(result);
  result = without_credentials(result);
  if (options_.is_wallet_word) result = without_wallet_words(result);
  result = without_long_keys(result);
  if (options_.personal) result = without_people(without_addresses(result));
  return result;
}

std::string Redactor::number(const char* kind, std::string_view value) {
  ++counts_[kind];
  auto& known = numbers_[kind];
  auto at = known.find(value);
  if (at == known.end() && known.size() == most_numbers) return fmt::format("<{}>", kind);
  if (at == known.end()) at = known.emplace(std::string(value), known.size() + 1).first;
  return fmt::format("<{} {}>", kind, at->second);
}

std::string Redactor::without_named_secrets(std::string_view text) {
  std::string result(text);
  for (const std::string& secret : secrets_) {
    std::uint64_t count = 0;
    result = replaced(result, secret, "<secret>", count, [](std::size_t, std::size_t) { return true; });
    if (count != 0) counts_["secret"] += count;
  }
  return result;
}

std::string Redactor::without_private_keys(std::string_view text) {
  constexpr std::string_view begin = "-----BEGIN ", end = "-----END ", mark = "PRIVATE KEY-----";
  std::string result;
  std::size_t from = 0;
  for (std::size_t at = 0; (at = text.find(begin, at)) != npos;) {
    const std::size_t title = text.find(mark, at);
    if (title == npos || title - at > 64) {
      at += begin.size();
      continue;
    }
    std::size_t stop = text.find(end, title);
    stop = stop == npos ? npos : text.find("-----", stop + end.size());
    result.append(text.substr(from, at - from)).append("<private key>");
    ++counts_["secret"];
    from = at = stop == npos ? text.size() : stop + 5;  // without an end: cut off, so all of the rest
  }
  return result.append(text.substr(from));
}

std::string Redactor::without_assignments(std::string_view text) {
  const auto in_name = [](char c) { return detail::is_word(c) || c == '-'; };
  std::string result;
  std::size_t from = 0;
  for (std::size_t at = 0; at < text.size();) {
    if (!in_name(text[at])) {
      ++at;
      continue;
    }
    const std::size_t name_end = detail::run_end(text, at, in_name);
    const std::string_view name = text.substr(at, name_end - at);
    at = name_end;
    if (!detail::is_secret_name(name)) continue;
    const auto [begin, end] = detail::assigned_value(text, name_end, name.substr(0, 2) == "--");
    const std::string_view value = text.substr(begin, end - begin);
    if (value.empty() || value.front() == '<' || detail::is_small_number(value) || value == "null") continue;
    result.append(text.substr(from, begin - from)).append("<secret>");
    ++counts_["secret"];
    from = at = end;
  }
  return result.append(text.substr(from));
}

std::string Redactor::without_credentials(std::string_view text) {
  std::string result;
  std::size_t from = 0;
  for (std::size_t at = 0; (at = text.find("://", at)) != npos;) {
    at += 3;
    const std::size_t end = detail::run_end(
        text, at, [](char c) { return !detail::is_space(c) && c != '/' && c != '"' && c != '\''; });
    const std::size_t sign = text.substr(at, end - at).rfind('@');
    if (sign == npos || sign == 0) continue;
    result.append(text.substr(from, at - from)).append("<credentials>");
    ++counts_["secret"];
    from = at = at + sign;
  }
  return result.append(text.substr(from));
}

// Words may be numbered, quoted, in a list, or each on its line.
std::string Redactor::without_wallet_words(std::string_view text) {
  const auto is_letter = [](char c) { return std::isalpha(static_cast<unsigned char>(c)) != 0; };
  std::string result;
  std::size_t from = 0, first = 0, last = 0, words = 0;
  const auto end_of_phrase = [&] {
    if (words >= least_wallet_words) {
      result.append(text.substr(from, first - from)).append("<wallet words>");
      ++counts_["wallet words"];
      from = last;
    }
    words = 0;
  };
  for (std::size_t at = 0; at < text.size();) {
    const char c = text[at];
    if (is_letter(c)) {
      const std::size_t end = detail::run_end(text, at, is_letter);
      const bool alone = detail::bounded(text, at, end) || (at >= 2 && text[at - 2] == '\\');
      if (alone && end - at <= 8 && options_.is_wallet_word(detail::lower(text.substr(at, end - at)))) {
        if (words++ == 0) first = at;
        last = end;
      } else {
        end_of_phrase();
      }
      at = end;
    } else if (c == '\\' && at + 1 < text.size()) {
      at += 2;  // "\n" of JSON
    } else {
      // Enough between two words, and no more than a list needs.
      const bool between = detail::is_space(c) || std::isdigit(static_cast<unsigned char>(c)) != 0 ||
                           std::string_view(",.;:\"'[]()#-|").find(c) != npos;
      if (!between || (words != 0 && at - last > 16)) end_of_phrase();
      ++at;
    }
  }
  end_of_phrase();
  return result.append(text.substr(from));
}

std::string Redactor::without_people(std::string_view text) {
  std::string result(text);
  if (options_.home.size() > 1) {
    std::uint64_t count = 0;
    result = replaced(result, options_.home, "~", count, [&result](std::size_t, std::size_t end) {
      return end == result.size() || (!detail::is_word(result[end]) && result[end] != '-');
    });
    if (count != 0) counts_["home folder"] += count;
  }
  // Somebody else's home folder.
  for (const std::string_view parent : {"/home", "/Users", "\\Users"}) {
    std::string next;
    std::size_t from = 0;
    for (std::size_t at = 0; (at = result.find(parent, at)) != npos;) {
      at += parent.size();
      const std::size_t separator = detail::run_end(result, at, [](char c) { return c == '/' || c == '\\'; });
      const std::size_t end = detail::run_end(result, separator, [](char c) {
        return detail::is_word(c) || c == '-' || c == '.' || (c & 0x80) != 0;
      });
      if (separator == at || end == separator) continue;
      next.append(result, from, separator - from).append("<user>");
      ++counts_["user name"];
      from = at = end;
    }
    result = next.append(result, from);
  }
  const auto whole_word = [&result](std::size_t begin, std::size_t end) {
    return detail::bounded(result, begin, end);
  };
  // "root" is nobody's name and part of many words' meaning.
  if (options_.user.size() >= 3 && options_.user != "root") {
    std::uint64_t count = 0;
    result = replaced(result, options_.user, "<user>", count, whole_word);
    if (count != 0) counts_["user name"] += count;
  }
  if (options_.host.size() >= 3 && options_.host != "localhost") {
    std::uint64_t count = 0;
    result = replaced(result, options_.host, "<computer>", count, whole_word);
    if (count != 0) counts_["computer name"] += count;
  }
  return result;
}

std::string Redactor::without_long_keys(std::string_view text) {
  const auto in_key = [](char c) {
    return detail::is_word(c) || c == '+' || c == '/' || c == '=' || c == '-';
  };
  const auto in_hex = [](char c) { return detail::is_word(c); };
  std::string result;
  std::size_t from = 0;
  const auto take = [&](std::size_t begin, std::size_t end) {
    result.append(text.substr(from, begin - from)).append(number("id", text.substr(begin, end - begin)));
    from = end;
  };
  for (std::size_t at = 0; at < text.size();) {
    if (!in_key(text[at])) {
      ++at;
      continue;
    }
    const std::size_t end = detail::run_end(text, at, in_key);
    if (end - at >= least_base64 && detail::is_base64_key(text.substr(at, end - at)) &&
        !detail::is_hex(text.substr(at, end - at))) {
      take(at, end);
      at = end;
      continue;
    }
    // Hexadecimal may stand between slashes and dashes: in paths and names.
    while (at < end) {
      const std::size_t stop = detail::run_end(text, at, in_hex);
      std::size_t begin = at;
      if (stop - begin > 2 && text[begin] == '0' && (text[begin + 1] == 'x' || text[begin + 1] == 'X'))
        begin += 2;
      if (stop - begin >= least_hex && detail::is_hex(text.substr(begin, stop - begin))) take(begin, stop);
      at = std::max(stop, at + 1);
    }
  }
  return result.append(text.substr(from));
}

std::string Redactor::without_addresses(std::string_view text) {
  const auto in_address = [](char c) {
    return std::isxdigit(static_cast<unsigned char>(c)) != 0 || c == ':';
  };
  const auto in_v4 = [](char c) { return std::isdigit(static_cast<unsigned char>(c)) != 0 || c == '.'; };
  const auto in_mail = [](char c) { return detail::is_word(c) || c == '.' || c == '-' || c == '+'; };
  std::string result;
  std::size_t from = 0;
  const auto take = [&](std::size_t begin, std::size_t end, const char* kind) {
    result.append(text.substr(from, begin - from)).append(number(kind, text.substr(begin, end - begin)));
    from = end;
  };
  for (std::size_t at = 0; at < text.size();) {
    // A bound on the work for long runs of such characters.
    const std::string_view window = text.substr(0, at + longest_address);
    if (at != 0 && detail::is_word(text[at - 1])) {
      ++at;
      continue;
    }
    std::size_t end = detail::run_end(window, at, in_mail);
    if (end > at && end < text.size() && text[end] == '@' && text[at] != '.') {
      std::size_t domain = detail::run_end(window, end + 1, in_mail);
      while (domain > end + 1 && text[domain - 1] == '.') --domain;
      if (text.substr(end + 1, domain - end - 1).find('.') != npos) {
        take(at, domain, "e-mail");
        at = domain;
        continue;
      }
    }
    end = detail::run_end(window, at, in_v4);
    while (end > at && text[end - 1] == '.') --end;
    if (end - at >= 7 && detail::bounded(text, at, end) && detail::is_ipv4(text.substr(at, end - at)) &&
        !detail::is_here_only(text.substr(at, end - at))) {
      take(at, end, "address");
      at = end;
      continue;
    }
    end = detail::run_end(window, at, in_address);
    if (end - at >= 4 && detail::bounded(text, at, end) &&
        detail::is_colon_address(text.substr(at, end - at))) {
      take(at, end, "address");
      at = end;
      continue;
    }
    ++at;
  }
  return result.append(text.substr(from));
}

}  // namespace neuroshard
