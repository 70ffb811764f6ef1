// A certified round as a chain has it, and as it travels and is kept: of one group, or of two levels. That
// of one group is its certificate; one of two levels is the certificate of a short name, the content that is
// named (grouped_body.h), and who made it.
//
//   one group    the certificate (certificate.h)
//   two levels   "NSRL1" · length u32 · certificate · length u32 · content ·
//   length u32 · roster, or nothing:
//                who has the round before knows the roster
#pragma once

#include <memory>

#include "core/rounds/dealing.h"

namespace neuroshard::rounds {

inline constexpr std::size_t max_content_bytes = 4u << 20;

struct RoundLink {
  RoundLink() = default;
  RoundLink(RoundCertificate of_one_group) : certificate(std::move(of_one_group)) {}
  RoundLink(RoundCertificate name, std::shared_ptr<const Bytes> body, RosterPtr members)
      : certificate(std::move(name)), content(std::move(body)), roster(std::move(members)) {}

  bool grouped() const { return certificate.body.grouped; }
  friend bool operator==(const RoundLink& a, const RoundLink& b);

  RoundCertificate certificate;
  std::shared_ptr<const Bytes> content;  // null: of one group
  RosterPtr roster;                      // of the members that made it; null: of one group, or left out
};

Bytes encode_link(const RoundLink& link);
// Any bytes are safe; only canonical ones are taken. Whether it is signed is
// for the chain.  Corrupt, Unsupported.
Expected<RoundLink> decode_link(ByteSpan bytes);

}  // namespace neuroshard::rounds
