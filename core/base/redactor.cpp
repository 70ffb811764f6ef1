#include "core/base/redactor.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cctype>
#include <mutex>
#include <utility>

namespace neuroshard {
namespace {

constexpr std::size_t least_wallet_words = 6;  // ordinary English has no such run of them
constexpr std::size_t least_hex = 32, least_base64 = 40;
constexpr std::size_t longest_address = 256;
constexpr std::size_t most_numbers = 4096;  // distinct values, of each kind
constexpr auto npos = std::string_view::npos;

// Names after which a secret stands. A longer name that ends in one counts: wallet_token.
constexpr std::array<std::string_view, 11> secret_names = {
    "token",    "cookie",  "password",    "passwd",        "passphrase", "secret",
    "mnemonic", "api_key", "private_key", "authorization", "apikey"};

bool is_word(char c) {
  return std::isalnum(static_cast<unsigned char>(c)) != 0 || c == '_';
}
bool is_space(char c) {
  return c == ' ' || c == '\t' || c == '\n' || c == '\r';
}
char lower(char c) {
  return static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
}
std::string lower(std::string_view text) {
  std::string result(text);
  for (char& c : result) c = lower(c);
  return result;
}

// Where the run of characters that `belongs` holds for ends.
template <class Belongs>
std::size_t run_end(std::string_view text, std::size_t at, Belongs belongs) {
  while (at < text.size() && belongs(text[at])) ++at;
  return at;
}

bool bounded(std::string_view text, std::size_t begin, std::size_t end) {
  return (begin == 0 || !is_word(text[begin - 1])) && (end >= text.size() || !is_word(text[end]));
}

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

bool is_secret_name(std::string_view name) {
  std::string plain = lower(name);
  std::replace(plain.begin(), plain.end(), '-', '_');
  return std::any_of(secret_names.begin(), secret_names.end(), [&plain](std::string_view secret) {
    return plain.size() >= secret.size() && plain.compare(plain.size() - secret.size(), npos, secret) == 0;
  });
}

// "0.25", "4096": a measure such as bytes_per_token, not a secret.
bool is_small_number(std::string_view value) {
  return !value.empty() && value.size() <= 10 && std::all_of(value.begin(), value.end(), [](char c) {
    return std::isdigit(static_cast<unsigned char>(c)) != 0 || c == '.';
  });
}

// The value after a secret's name: [begin, end). Empty when none follows.
std::pair<std::size_t, std::size_t> assigned_value(std::string_view text, std::size_t after, bool flag) {
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

// Four numbers up to 255.
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

// An IPv6 or a hardware address, not a time of day or a scope.
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
  const auto in_name = [](char c) { return is_word(c) || c == '-'; };
  std::string result;
  std::size_t from = 0;
  for (std::size_t at = 0; at < text.size();) {
    if (!in_name(text[at])) {
      ++at;
      continue;
    }
    const std::size_t name_end = run_end(text, at, in_name);
    const std::string_view name = text.substr(at, name_end - at);
    at = name_end;
    if (!is_secret_name(name)) continue;
    const auto [begin, end] = assigned_value(text, name_end, name.substr(0, 2) == "--");
    const std::string_view value = text.substr(begin, end - begin);
    if (value.empty() || value.front() == '<' || is_small_number(value) || value == "null") continue;
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
    const std::size_t end =
        run_end(text, at, [](char c) { return !is_space(c) && c != '/' && c != '"' && c != '\''; });
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
      const std::size_t end = run_end(text, at, is_letter);
      const bool alone = bounded(text, at, end) || (at >= 2 && text[at - 2] == '\\');
      if (alone && end - at <= 8 && options_.is_wallet_word(lower(text.substr(at, end - at)))) {
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
      const bool between = is_space(c) || std::isdigit(static_cast<unsigned char>(c)) != 0 ||
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
      return end == result.size() || (!is_word(result[end]) && result[end] != '-');
    });
    if (count != 0) counts_["home folder"] += count;
  }
  // Somebody else's home folder.
  for (const std::string_view parent : {"/home", "/Users", "\\Users"}) {
    std::string next;
    std::size_t from = 0;
    for (std::size_t at = 0; (at = result.find(parent, at)) != npos;) {
      at += parent.size();
      const std::size_t separator = run_end(result, at, [](char c) { return c == '/' || c == '\\'; });
      const std::size_t end = run_end(
          result, separator, [](char c) { return is_word(c) || c == '-' || c == '.' || (c & 0x80) != 0; });
      if (separator == at || end == separator) continue;
      next.append(result, from, separator - from).append("<user>");
      ++counts_["user name"];
      from = at = end;
    }
    result = next.append(result, from);
  }
  const auto whole_word = [&result](std::size_t begin, std::size_t end) {
    return bounded(result, begin, end);
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
  const auto in_key = [](char c) { return is_word(c) || c == '+' || c == '/' || c == '=' || c == '-'; };
  const auto in_hex = [](char c) { return is_word(c); };
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
    const std::size_t end = run_end(text, at, in_key);
    if (end - at >= least_base64 && is_base64_key(text.substr(at, end - at)) &&
        !is_hex(text.substr(at, end - at))) {
      take(at, end);
      at = end;
      continue;
    }
    // Hexadecimal may stand between slashes and dashes: in paths and names.
    while (at < end) {
      const std::size_t stop = run_end(text, at, in_hex);
      std::size_t begin = at;
      if (stop - begin > 2 && text[begin] == '0' && lower(text[begin + 1]) == 'x') begin += 2;
      if (stop - begin >= least_hex && is_hex(text.substr(begin, stop - begin))) take(begin, stop);
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
  const auto in_mail = [](char c) { return is_word(c) || c == '.' || c == '-' || c == '+'; };
  std::string result;
  std::size_t from = 0;
  const auto take = [&](std::size_t begin, std::size_t end, const char* kind) {
    result.append(text.substr(from, begin - from)).append(number(kind, text.substr(begin, end - begin)));
    from = end;
  };
  for (std::size_t at = 0; at < text.size();) {
    // A bound on the work for long runs of such characters.
    const std::string_view window = text.substr(0, at + longest_address);
    if (at != 0 && is_word(text[at - 1])) {
      ++at;
      continue;
    }
    std::size_t end = run_end(window, at, in_mail);
    if (end > at && end < text.size() && text[end] == '@' && text[at] != '.') {
      std::size_t domain = run_end(window, end + 1, in_mail);
      while (domain > end + 1 && text[domain - 1] == '.') --domain;
      if (text.substr(end + 1, domain - end - 1).find('.') != npos) {
        take(at, domain, "e-mail");
        at = domain;
        continue;
      }
    }
    end = run_end(window, at, in_v4);
    while (end > at && text[end - 1] == '.') --end;
    if (end - at >= 7 && bounded(text, at, end) && is_ipv4(text.substr(at, end - at)) &&
        !is_here_only(text.substr(at, end - at))) {
      take(at, end, "address");
      at = end;
      continue;
    }
    end = run_end(window, at, in_address);
    if (end - at >= 4 && bounded(text, at, end) && is_colon_address(text.substr(at, end - at))) {
      take(at, end, "address");
      at = end;
      continue;
    }
    ++at;
  }
  return result.append(text.substr(from));
}

namespace {

class RedactingLogger final : public Logger {
 public:
  RedactingLogger(Logger& target, Redactor redactor) : target_(target), redactor_(std::move(redactor)) {}
  void write(const LogRecord& record) override {
    LogRecord clean = record;
    {
      std::lock_guard lock(mutex_);
      clean.message = redactor_.apply(record.message);
    }
    target_.write(clean);
  }

 private:
  Logger& target_;
  std::mutex mutex_;
  Redactor redactor_;
};

}  // namespace

std::unique_ptr<Logger> make_redacting_logger(Logger& target, Redactor redactor) {
  return std::make_unique<RedactingLogger>(target, std::move(redactor));
}

}  // namespace neuroshard
