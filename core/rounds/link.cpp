#include "core/rounds/link.h"

#include "core/rounds/detail/reader.h"

namespace neuroshard::rounds {
namespace {

constexpr std::string_view magic = "NSRL1";

Error corrupt(const char* what) {
  return make_error(ErrorCode::Corrupt, what);
}

}  // namespace

bool operator==(const RoundLink& a, const RoundLink& b) {
  const auto content = [](const RoundLink& link) { return link.content ? *link.content : Bytes(); };
  const auto roster = [](const RoundLink& link) { return link.roster ? link.roster->hash : Hash256{}; };
  return a.certificate == b.certificate && content(a) == content(b) && roster(a) == roster(b);
}

Bytes encode_link(const RoundLink& link) {
  Bytes certificate = encode_quorum(link.certificate);
  if (!link.grouped()) return certificate;
  Bytes bytes(magic.begin(), magic.end());
  append_part(bytes, certificate);
  append_part(bytes, link.content ? *link.content : Bytes());
  append_part(bytes, link.roster ? encode_roster(*link.roster) : Bytes());
  return bytes;
}

Expected<RoundLink> decode_link(ByteSpan bytes) {
  if (bytes.size() < magic.size() || as_text(bytes.first(magic.size())) != magic) {
    NS_ASSIGN_OR_RETURN(RoundCertificate certificate, decode_quorum(bytes));
    return RoundLink(std::move(certificate));
  }
  Reader in(bytes.subspan(magic.size()));
  const ByteSpan certificate = in.part(), content = in.part(), roster = in.part();
  if (!in.at_end() || content.size() > max_content_bytes)
    return corrupt("a certified round's lengths do not fit together");
  RoundLink link;
  NS_ASSIGN_OR_RETURN(link.certificate, decode_quorum(certificate, true));
  link.content = std::make_shared<const Bytes>(content.begin(), content.end());
  if (!roster.empty()) {
    NS_ASSIGN_OR_RETURN(link.roster, decode_roster(roster));
  }
  return link;
}

}  // namespace neuroshard::rounds
