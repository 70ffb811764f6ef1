#include "core/net/refusals.h"

namespace neuroshard::net {

std::string_view to_string(Refusal refusal) {
  switch (refusal) {
    case Refusal::TooManyConnections: return "too many connections";
    case Refusal::TooManyOfAddress: return "too many connections of one address";
    case Refusal::TooSlow: return "too slow";
    case Refusal::NotTls: return "not a TLS connection";
    case Refusal::OldTls: return "TLS older than 1.3";
    case Refusal::NoCertificate: return "no certificate";
    case Refusal::BadCertificate: return "unreadable certificate";
    case Refusal::NotEd25519: return "certificate with another kind of key";
    case Refusal::NotYetValid: return "certificate not valid yet";
    case Refusal::Expired: return "expired certificate";
    case Refusal::WrongId: return "another node than expected";
    case Refusal::Banned: return "banned";
    case Refusal::NoHello: return "no hello";
    case Refusal::OtherNetwork: return "another network";
    case Refusal::OtherVersion: return "another version of the protocol";
    case Refusal::TooLarge: return "message too large";
    case Refusal::Malformed: return "malformed message";
    case Refusal::TooManyCalls: return "too many calls at the same time";
    case Refusal::UnknownMethod: return "unknown method";
    case Refusal::Unearned: return "bytes that belong to no call";
    case Refusal::NoCalls: return "connection without calls";
    case Refusal::MemoryShort: return "this machine is short of memory";
    case Refusal::Count_: break;
  }
  return "unknown";
}

std::uint64_t RefusalCounts::all() const {
  std::uint64_t sum = 0;
  for (const auto& count : counts_) sum += count.load();
  return sum;
}

}  // namespace neuroshard::net
