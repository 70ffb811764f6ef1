// What nodes say to each other and to trackers, as bytes. Readers check every length before they believe it.
//
//   ping               up to 64 bytes            answer: the same
//   peers              count u8 · record of who asks, or nothing   answer: records, that of who answers among
//   them address echo       –                         answer: the endpoint that the caller is seen at (18
//   bytes) dial back          port u16                  answer: reached u8 · why not, in words relay reserve
//   –                         answer: a ticket (16 bytes, nat/relay_head.h) punch              the caller's
//   hole, an endpoint   answer: the called one's (puncher.h) tracker register   the caller's node record
//   answer: the endpoint that the caller is seen at tracker heartbeat  –                         answer:
//   empty; NotFound: register again tracker peers      count u8                  answer: records records u8
//   count ≤ 50, then each: length u16 · node record (net/node_record.h)
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "core/base/bytes.h"
#include "core/base/expected.h"
#include "core/nat/relay_head.h"
#include "core/net/node_record.h"

namespace neuroshard::swarm {

inline constexpr std::size_t max_ping_bytes = 64;
inline constexpr std::size_t max_records = 50;
inline constexpr std::size_t max_reason = 200;

Bytes encode_records(const std::vector<const net::NodeRecord*>& records);
// The signatures are not checked. Corrupt.
Expected<std::vector<net::NodeRecord>> decode_records(ByteSpan bytes);

Bytes encode_count(std::size_t count);
Expected<std::size_t> decode_count(ByteSpan bytes);

// own: null or not signed yet: left out, as a guest does.
Bytes encode_peers_request(std::size_t count, const net::NodeRecord* own);
struct PeersRequest {
  std::size_t count = 0;
  std::optional<net::NodeRecord> own;
};
// The signature is not checked; a record of a newer version is left out. Corrupt.
Expected<PeersRequest> decode_peers_request(ByteSpan bytes);

Bytes encode_port(std::uint16_t port);
Expected<std::uint16_t> decode_port(ByteSpan bytes);

Expected<nat::RelayTicket> decode_ticket(ByteSpan bytes);

struct DialBackAnswer {
  bool reached = false;
  std::string why;  // when it was not
};
Bytes encode_dial_back(const DialBackAnswer& answer);
Expected<DialBackAnswer> decode_dial_back(ByteSpan bytes);

}  // namespace neuroshard::swarm
