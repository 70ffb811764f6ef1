#include "core/net/node_record.h"

#include <fmt/format.h>

#include <algorithm>

#include "core/base/check.h"

namespace neuroshard::net {
namespace {

constexpr std::string_view magic = "NSNR";
constexpr std::uint16_t format_version = 1;
constexpr std::size_t head_bytes = 109;
constexpr std::size_t endpoint_bytes = 19;
constexpr std::size_t slot_bytes = 5;

std::size_t encoded_size(const NodeRecord& record) {
  return head_bytes + (record.delegation ? crypto::delegation_bytes : 0) +
         record.endpoints.size() * endpoint_bytes + record.slots.size() * slot_bytes + record.program.size() +
         sizeof(crypto::Signature);
}

Bytes signed_part(const NodeRecord& record) {
  Bytes bytes(magic.begin(), magic.end());
  append_le(bytes, format_version);
  append_le(bytes, static_cast<std::uint16_t>(encoded_size(record)));
  bytes.insert(bytes.end(), record.node_key.begin(), record.node_key.end());
  append_le(bytes, record.sequence);
  append_le(bytes, to_unix_ms(record.made));
  append_le(bytes, to_unix_ms(record.expires));
  append_le(bytes, record.features);
  append_le(bytes, static_cast<std::uint16_t>(record.version.major));
  append_le(bytes, static_cast<std::uint16_t>(record.version.minor));
  append_le(bytes, record.memory_bytes);
  append_le(bytes, record.tokens_per_second);
  append_le(bytes, record.upload);
  append_le(bytes, record.download);
  bytes.push_back(record.delegation ? 1 : 0);
  bytes.push_back(static_cast<std::uint8_t>(record.endpoints.size()));
  append_le(bytes, static_cast<std::uint16_t>(record.slots.size()));
  bytes.push_back(static_cast<std::uint8_t>(record.program.size()));
  if (record.delegation) {
    const Bytes delegation = crypto::encode_delegation(*record.delegation);
    bytes.insert(bytes.end(), delegation.begin(), delegation.end());
  }
  for (const NodeEndpoint& at : record.endpoints) {
    bytes.push_back(static_cast<std::uint8_t>(at.reach));
    bytes.insert(bytes.end(), at.endpoint.ip.bytes.begin(), at.endpoint.ip.bytes.end());
    append_le(bytes, at.endpoint.port);
  }
  for (const HeldSlot& slot : record.slots) {
    bytes.push_back(static_cast<std::uint8_t>(slot.kind));
    append_le(bytes, slot.layer);
    append_le(bytes, slot.expert);
  }
  bytes.insert(bytes.end(), record.program.begin(), record.program.end());
  return bytes;
}

Error corrupt(const char* what) {
  return make_error(ErrorCode::Corrupt, fmt::format("the node's record {}", what));
}

void read_head(const std::uint8_t* at, NodeRecord* record) {
  const auto time = [at](std::size_t offset) {
    return WallTime(std::chrono::milliseconds(load_le<std::int64_t>(at + offset)));
  };
  std::copy_n(at + 8, record->node_key.size(), record->node_key.begin());
  record->sequence = load_le<std::uint64_t>(at + 40);
  record->made = time(48);
  record->expires = time(56);
  record->features = load_le<std::uint64_t>(at + 64);
  record->version = {load_le<std::uint16_t>(at + 72), load_le<std::uint16_t>(at + 74)};
  record->memory_bytes = load_le<std::uint64_t>(at + 76);
  record->tokens_per_second = load_le<std::uint32_t>(at + 84);
  record->upload = load_le<std::uint64_t>(at + 88);
  record->download = load_le<std::uint64_t>(at + 96);
}

Expected<NodeEndpoint> read_endpoint(const std::uint8_t* at) {
  NodeEndpoint endpoint;
  if (at[0] < static_cast<std::uint8_t>(Reach::Direct) || at[0] > static_cast<std::uint8_t>(Reach::Turn))
    return corrupt("names an unknown way to reach it");
  endpoint.reach = static_cast<Reach>(at[0]);
  std::copy_n(at + 1, endpoint.endpoint.ip.bytes.size(), endpoint.endpoint.ip.bytes.begin());
  endpoint.endpoint.port = load_le<std::uint16_t>(at + 17);
  if (endpoint.endpoint.port == 0) return corrupt("names port 0");
  return endpoint;
}

}  // namespace

Expected<void> sign_node_record(NodeRecord& record, const crypto::KeyPair& node, const Hash256& network_id) {
  std::sort(record.slots.begin(), record.slots.end());
  record.slots.erase(std::unique(record.slots.begin(), record.slots.end()), record.slots.end());
  if (record.endpoints.size() > max_endpoints || record.slots.size() > max_slots ||
      record.program.size() > max_program_name) {
    return make_error(
        ErrorCode::InvalidArgument,
        fmt::format("a node's record names at most {} endpoints and {} slots", max_endpoints, max_slots));
  }
  record.node_key = node.public_key();
  record.signature = node.sign(crypto::Purpose::NodeRecord, network_id, signed_part(record));
  return {};
}

Bytes encode_node_record(const NodeRecord& record) {
  Bytes bytes = signed_part(record);
  bytes.insert(bytes.end(), record.signature.begin(), record.signature.end());
  NS_CHECK(bytes.size() <= max_node_record_bytes);
  return bytes;
}

Expected<NodeRecord> decode_node_record(ByteSpan bytes) {
  if (bytes.size() < head_bytes || as_text(bytes.first(magic.size())) != magic)
    return make_error(ErrorCode::Corrupt, "this is not a node's record");
  const std::uint8_t* at = bytes.data();
  if (load_le<std::uint16_t>(at + 4) > format_version)
    return make_error(ErrorCode::Unsupported, "the node's record has a newer version; update this program");
  const std::size_t endpoints = at[105], slots = load_le<std::uint16_t>(at + 106), program = at[108];
  const std::size_t whole = head_bytes + (at[104] != 0 ? crypto::delegation_bytes : 0) +
                            endpoints * endpoint_bytes + slots * slot_bytes + program +
                            sizeof(crypto::Signature);
  if (load_le<std::uint16_t>(at + 4) != format_version || at[104] > 1 || endpoints > max_endpoints ||
      slots > max_slots || program > max_program_name || bytes.size() != whole ||
      load_le<std::uint16_t>(at + 6) != whole)
    return corrupt("has lengths that do not fit together");
  NodeRecord record;
  read_head(at, &record);
  const bool delegated = at[104] == 1;
  at += head_bytes;
  if (delegated) {
    NS_ASSIGN_OR_RETURN(record.delegation, crypto::decode_delegation({at, crypto::delegation_bytes}));
    at += crypto::delegation_bytes;
  }
  for (std::size_t i = 0; i < endpoints; ++i, at += endpoint_bytes) {
    NS_ASSIGN_OR_RETURN(const NodeEndpoint endpoint, read_endpoint(at));
    record.endpoints.push_back(endpoint);
  }
  for (std::size_t i = 0; i < slots; ++i, at += slot_bytes) {
    const HeldSlot slot{static_cast<SlotKind>(at[0]), load_le<std::uint16_t>(at + 1),
                        load_le<std::uint16_t>(at + 3)};
    if (at[0] < 1 || at[0] > 4 || (i > 0 && !(record.slots.back() < slot)))
      return corrupt("names slots that do not exist");
    record.slots.push_back(slot);
  }
  record.program.assign(reinterpret_cast<const char*>(at), program);
  if (std::any_of(record.program.begin(), record.program.end(), [](char c) { return c <= 0x20 || c > 0x7e; }))
    return corrupt("names a program in other characters than letters, digits and signs");
  at += program;
  std::copy_n(at, record.signature.size(), record.signature.begin());
  return record;
}

Expected<void> check_node_record(const NodeRecord& record, const Hash256& network_id, WallTime now) {
  const auto denied = [](const char* why) {
    return make_error(ErrorCode::Denied, fmt::format("the node's record {}", why));
  };
  if (now >= record.expires) return denied("has expired");
  if (record.made > now + clock_skew) return denied("was made in the future (are both clocks right?)");
  if (record.expires > record.made + longest_node_record) return denied("claims to live for more than a day");
  if (record.delegation)
    NS_RETURN_IF_ERROR(crypto::check_delegation(*record.delegation, record.node_key, network_id, now));
  if (!crypto::verify(record.node_key, crypto::Purpose::NodeRecord, network_id, signed_part(record),
                      record.signature))
    return denied("is not signed by its node, or not for this network");
  return {};
}

bool is_signed_by_its_node(const NodeRecord& record, const Hash256& network_id) {
  return crypto::verify(record.node_key, crypto::Purpose::NodeRecord, network_id, signed_part(record),
                        record.signature);
}

bool never_held(const NodeRecord& record, const Hash256& network_id) {
  if (!is_signed_by_its_node(record, network_id)) return true;
  if (!record.delegation) return false;
  const WallTime expires = record.delegation->expires;
  if (expires == WallTime::min()) return true;
  const WallTime its_own = expires - std::chrono::milliseconds(1);
  return !crypto::check_delegation(*record.delegation, record.node_key, network_id, its_own).ok();
}

}  // namespace neuroshard::net
