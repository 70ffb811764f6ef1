// Messages between nodes, and between nodes and trackers, as bytes. Readers check every length.
//
//   method             request                           answer
//   ping               up to 64 bytes                    the same bytes
//   peers              count u8 · own record, or none    records, the answering node's among them
//   address echo       –                                 the caller's endpoint as seen here (18 bytes)
//   dial back          port u16                          reached u8 · if not, the reason as text
//   relay reserve      –                                 a ticket (16 bytes, nat/relay_head.h)
//   punch              the caller's hole, an endpoint    the answering node's hole (puncher.h)
//   let in             the caller's endpoint             empty (turn_ingress.h)
//   tracker register   the caller's record               the caller's endpoint as seen here
//   tracker heartbeat  –                                 empty; NotFound: register again
//   tracker peers      count u8                          records
//
//   records: u8 count ≤ 50, then each: length u16 · node record (net/node_record.h)
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

// own: null or unsigned: left out, as a guest does.
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
  std::string why;  // the reason, if it was not reached
};
Bytes encode_dial_back(const DialBackAnswer& answer);
Expected<DialBackAnswer> decode_dial_back(ByteSpan bytes);

}  // namespace neuroshard::swarm
