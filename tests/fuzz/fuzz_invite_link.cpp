// An invitation from a message or a QR code: what is accepted is within its bounds and writes itself back.
// The input is the content behind the checksum, or, with a first byte of 1, the link as text. A first byte of 2 or
// 3 is that version of the content, else it is the first one.
#include "core/base/base64url.h"
#include "core/base/check.h"
#include "core/config/invite_link.h"
#include "core/crypto/hash.h"

using namespace neuroshard;  // NOLINT

namespace {

std::string sealed(ByteSpan content, std::uint8_t version) {
  const Hash256 sum = crypto::sha256(content);
  Bytes whole{version, sum[0], sum[1], sum[2], sum[3]};
  whole.insert(whole.end(), content.begin(), content.end());
  return "neuroshard:join?to=" + to_base64url(whole);
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  if (size == 0) return 0;
  const ByteSpan rest{data + 1, size - 1};
  const auto link = config::parse_invite_link(
      data[0] == 1 ? std::string(as_text(rest)) : sealed(rest, data[0] == 2 || data[0] == 3 ? data[0] : 1));
  if (const auto bytes = from_base64url(as_text(rest)); bytes.ok())
    NS_CHECK(to_base64url(*bytes) == as_text(rest));
  if (!link.ok()) return 0;
  NS_CHECK(link->peers.size() <= config::max_invited_peers);
  NS_CHECK(config::validate(link->profile.consensus).ok() && config::validate(link->profile.directory).ok());
  const auto text = config::format_invite_link(*link);
  NS_CHECK(text.ok());
  const auto again = config::parse_invite_link(*text);
  NS_CHECK(again.ok() && again->peers == link->peers);
  NS_CHECK(again->trust.genesis == link->trust.genesis && again->trust.recent == link->trust.recent &&
           again->trust.founder_wallet == link->trust.founder_wallet);
  NS_CHECK(again->voucher.has_value() == link->voucher.has_value());
  if (link->voucher)
    NS_CHECK(again->voucher->voucher == link->voucher->voucher &&
             again->voucher->secret == link->voucher->secret);
  NS_CHECK(config::format_network_profile(again->profile) == config::format_network_profile(link->profile));
  return 0;
}
