// The outcome of an item that a peer sent to the chain. Values are protocol.
#pragma once

#include <cstdint>
#include <string_view>

namespace neuroshard::chain {

enum class Verdict : std::uint8_t {
  Taken = 0,
  Known = 1,         // had it already
  Malformed = 2,     // bytes
  OtherHistory = 3,  // binds to a block that is not in this chain
  Past = 4,          // of an earlier height or round
  Later = 5,         // the answering node is behind and catches up: send it again
  NotMember = 6,
  BadSignature = 7,
  NotLeader = 8,
  OtherView = 9,
  BadCertificate = 10,
  Inadmissible = 11,  // no block could contain it
  Equivocation = 12,  // excludes something that its signer sent before
  Limit = 13,         // no room, or too often: later
  Busy = 14,          // nothing certified yet: later
  Late = 15,          // a contribution after this voter's vector
  TooManyTokens = 16,
  OtherCodec = 17,
  TooLarge = 18,
  Copied = 19,  // another member's payload
  Count_
};
std::string_view to_string(Verdict verdict);
// The recipient can take the item, or refuses it, only later.
constexpr bool wants_it_later(Verdict verdict) {
  return verdict == Verdict::Later || verdict == Verdict::Busy || verdict == Verdict::Limit;
}

}  // namespace neuroshard::chain
