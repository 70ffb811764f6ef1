// The part of multicast DNS (RFC 6762) and its service discovery (RFC 6763) that nodes of one local network
// need: the question for _neuroshard._tcp.local and the answer with a node's port and network. Other programs
// see an ordinary service. Answers are read in every form that the RFCs allow: compressed names, records in
// any order and section, and records of other kinds.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "core/base/bytes.h"
#include "core/base/expected.h"
#include "core/platform/socket/ip_address.h"

namespace neuroshard::rendezvous {

inline constexpr std::size_t max_mdns_bytes = 1440;   // of ours, in one datagram
inline constexpr std::size_t max_mdns_services = 16;  // of one datagram; the rest is ignored

// A node of the local network.
struct MdnsService {
  std::string instance;  // label, 1 … 63 bytes: the first 16 digits of the node's id
  Hash256 network_id{};
  std::uint16_t port = 0;
  platform::IpAddress address{};  // IPv4; not read from answers: the datagram's source counts
};

struct MdnsMessage {
  bool question = false;              // for our service
  std::vector<MdnsService> services;  // of an answer; only those with port and network
};

Bytes encode_mdns_question();
// ttl: seconds; 0 = it goes away (RFC 6762 §10.1).
Bytes encode_mdns_answer(const MdnsService& service, std::uint32_t ttl);
// Any bytes are safe. Corrupt: not a DNS message. A message about other services has neither question nor
// services.
Expected<MdnsMessage> decode_mdns(ByteSpan bytes);

}  // namespace neuroshard::rendezvous
