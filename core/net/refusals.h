// Counts refused connections and requests by reason. The counts show a user that somebody attacks this node,
// or that its own clock is wrong.
#pragma once

#include <array>
#include <atomic>
#include <cstdint>
#include <string_view>

namespace neuroshard::net {

enum class Refusal : std::uint8_t {
  // Before TLS.
  TooManyConnections,  // in all
  TooManyOfAddress,    // from one address
  TooSlow,             // sent its request too late or too slowly
  NotTls,              // plaintext, garbage
  OldTls,              // offers no TLS 1.3
  // The certificate.
  NoCertificate,
  BadCertificate,
  NotEd25519,
  NotYetValid,
  Expired,
  WrongId,  // another node answers at the dialled address
  Banned,
  // The messages.
  NoHello,
  OtherNetwork,
  OtherVersion,
  TooLarge,  // a message over the limit
  Malformed,
  TooManyCalls,
  UnknownMethod,
  // Of connections.
  Unearned,     // too many bytes that belong to no answered call
  NoCalls,      // open for too long without an answered call
  MemoryShort,  // ended because the machine is short of memory
  Count_,
};

// "another network", for tables.
std::string_view to_string(Refusal refusal);

// Threads: any.
class RefusalCounts {
 public:
  void count(Refusal refusal) { counts_[static_cast<std::size_t>(refusal)].fetch_add(1); }
  std::uint64_t of(Refusal refusal) const { return counts_[static_cast<std::size_t>(refusal)].load(); }
  std::uint64_t all() const;

 private:
  std::array<std::atomic<std::uint64_t>, static_cast<std::size_t>(Refusal::Count_)> counts_{};
};

}  // namespace neuroshard::net
