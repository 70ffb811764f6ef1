#include "core/release/look.h"

#include <fmt/format.h>

namespace neuroshard::release {
namespace {

constexpr std::string_view list_name = "SHA256SUMS", signature_name = "SHA256SUMS.minisig";

bool is_space(char c) {
  return c == ' ' || c == '\t';
}

// The value of `name:value` among the words of a comment. Empty: the comment has none, or two.
std::string_view value_of(std::string_view name, std::string_view comment) {
  std::string_view found;
  int times = 0;
  for (std::size_t at = 0; at < comment.size();) {
    std::size_t end = at;
    while (end < comment.size() && !is_space(comment[end])) ++end;
    const std::string_view word = comment.substr(at, end - at);
    at = end + 1;
    if (word.size() <= name.size() || word.substr(0, name.size()) != name || word[name.size()] != ':')
      continue;
    found = word.substr(name.size() + 1);
    ++times;
  }
  return times == 1 ? found : std::string_view();
}

}  // namespace

Expected<Version> version_of_comment(std::string_view comment) {
  if (value_of("file", comment) != list_name)
    return make_error(ErrorCode::Corrupt, fmt::format("the signature is not one of the file {}", list_name));
  auto version = Version::parse(value_of("version", comment));
  if (!version.ok()) return make_error(ErrorCode::Corrupt, "the signature names no version");
  return version;
}

Expected<Version> signed_version(const crypto::MinisignKey& key, ByteSpan list, ByteSpan signature) {
  NS_ASSIGN_OR_RETURN(const crypto::MinisignSignature parsed, crypto::parse_minisign_signature(signature));
  NS_RETURN_IF_ERROR(crypto::verify_minisign(key, list, parsed));
  return version_of_comment(parsed.trusted_comment);
}

Expected<Version> look(const Place& place, const std::optional<Version>& seen, Source& source,
                       const CancelToken& cancel) {
  NS_ASSIGN_OR_RETURN(const Bytes list, source.fetch(fmt::format("{}/{}", place.url, list_name), cancel));
  NS_ASSIGN_OR_RETURN(const Bytes signature,
                      source.fetch(fmt::format("{}/{}", place.url, signature_name), cancel));
  NS_ASSIGN_OR_RETURN(Version version, signed_version(place.key, list, signature));
  if (seen && version < *seen)
    return make_error(
        ErrorCode::Denied,
        fmt::format("the newest version there was {} before and is {} now; somebody may be hiding "
                    "the newer one",
                    seen->text(), version.text()));
  return version;
}

}  // namespace neuroshard::release
