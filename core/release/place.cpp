#include "core/release/place.h"

#include <algorithm>

namespace neuroshard::release {
namespace {

constexpr std::string_view secure = "https://", plain = "http://";
constexpr std::string_view own_addresses[] = {"127.0.0.1", "[::1]"};

bool starts_with(std::string_view text, std::string_view head) {
  return text.substr(0, head.size()) == head;
}

bool is_own_address(std::string_view host) {
  return std::any_of(std::begin(own_addresses), std::end(own_addresses), [host](std::string_view own) {
    return host == own || (starts_with(host, own) && host[own.size()] == ':');
  });
}

bool is_plain_character(char c) {
  return c > ' ' && c < 0x7f && c != '@' && c != '?' && c != '#' && c != '\\' && c != '"';
}

bool is_usable(std::string_view url) {
  const bool is_secure = starts_with(url, secure);
  if (!is_secure && !starts_with(url, plain)) return false;
  const std::string_view rest = url.substr(is_secure ? secure.size() : plain.size());
  const std::string_view host = rest.substr(0, rest.find('/'));
  return !host.empty() && std::all_of(rest.begin(), rest.end(), is_plain_character) &&
         (is_secure || is_own_address(host));
}

}  // namespace

Expected<Place> parse_place(const std::string& url, const std::string& key) {
  Place place;
  place.url = url;
  while (!place.url.empty() && place.url.back() == '/') place.url.pop_back();
  if (!is_usable(place.url))
    return make_error(ErrorCode::InvalidArgument,
                      "the address of releases must begin with https:// and a host");
  NS_ASSIGN_OR_RETURN(place.key, crypto::parse_minisign_key(key));
  return place;
}

}  // namespace neuroshard::release
