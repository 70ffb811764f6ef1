#include "core/swarm/messages.h"

#include <algorithm>

#include "core/base/check.h"
#include "core/base/utf8.h"

namespace neuroshard::swarm {

Bytes encode_records(const std::vector<const net::NodeRecord*>& records) {
  NS_CHECK(records.size() <= max_records);
  Bytes bytes = {static_cast<std::uint8_t>(records.size())};
  for (const net::NodeRecord* record : records) {
    const Bytes encoded = net::encode_node_record(*record);
    append_le(bytes, static_cast<std::uint16_t>(encoded.size()));
    bytes.insert(bytes.end(), encoded.begin(), encoded.end());
  }
  return bytes;
}

Expected<std::vector<net::NodeRecord>> decode_records(ByteSpan bytes) {
  const auto corrupt = [] { return make_error(ErrorCode::Corrupt, "the list of records can't be read"); };
  if (bytes.empty() || bytes[0] > max_records) return corrupt();
  std::vector<net::NodeRecord> records;
  std::size_t at = 1;
  for (std::size_t i = 0; i < bytes[0]; ++i) {
    if (bytes.size() - at < 2) return corrupt();
    const std::size_t size = load_le<std::uint16_t>(bytes.data() + at);
    at += 2;
    if (size > net::max_node_record_bytes || size > bytes.size() - at) return corrupt();
    NS_ASSIGN_OR_RETURN(net::NodeRecord record, net::decode_node_record(bytes.subspan(at, size)));
    records.push_back(std::move(record));
    at += size;
  }
  if (at != bytes.size()) return corrupt();
  return records;
}

Bytes encode_count(std::size_t count) {
  return {static_cast<std::uint8_t>(std::min(count, max_records))};
}

Expected<std::size_t> decode_count(ByteSpan bytes) {
  if (bytes.size() != 1) return make_error(ErrorCode::Corrupt, "the request does not say how many records");
  return std::min<std::size_t>(bytes[0], max_records);
}

Bytes encode_peers_request(std::size_t count, const net::NodeRecord* own) {
  Bytes bytes = encode_count(count);
  if (own == nullptr || own->sequence == 0) return bytes;
  const Bytes record = net::encode_node_record(*own);
  bytes.insert(bytes.end(), record.begin(), record.end());
  return bytes;
}

Expected<PeersRequest> decode_peers_request(ByteSpan bytes) {
  PeersRequest request;
  const std::size_t first = std::min<std::size_t>(bytes.size(), 1);
  NS_ASSIGN_OR_RETURN(request.count, decode_count(bytes.subspan(0, first)));
  if (bytes.size() == first) return request;
  auto own = net::decode_node_record(bytes.subspan(first));
  // A record of a newer version does not make its node faulty.
  if (!own.ok() && own.error().code != ErrorCode::Unsupported) return own.error();
  if (own.ok()) request.own = std::move(*own);
  return request;
}

Bytes encode_port(std::uint16_t port) {
  Bytes bytes;
  append_le(bytes, port);
  return bytes;
}

Expected<std::uint16_t> decode_port(ByteSpan bytes) {
  if (bytes.size() != 2 || load_le<std::uint16_t>(bytes.data()) == 0)
    return make_error(ErrorCode::Corrupt, "the request does not name a port");
  return load_le<std::uint16_t>(bytes.data());
}

Expected<nat::RelayTicket> decode_ticket(ByteSpan bytes) {
  nat::RelayTicket ticket{};
  if (bytes.size() != ticket.size()) return make_error(ErrorCode::Corrupt, "the relay's answer is no ticket");
  std::copy(bytes.begin(), bytes.end(), ticket.begin());
  return ticket;
}

Bytes encode_dial_back(const DialBackAnswer& answer) {
  Bytes bytes = {static_cast<std::uint8_t>(answer.reached ? 1 : 0)};
  const std::string why = valid_utf8(answer.why, max_reason);
  bytes.insert(bytes.end(), why.begin(), why.end());
  return bytes;
}

Expected<DialBackAnswer> decode_dial_back(ByteSpan bytes) {
  if (bytes.empty() || bytes[0] > 1 || bytes.size() > 1 + max_reason)
    return make_error(ErrorCode::Corrupt, "the answer to a dial-back can't be read");
  return DialBackAnswer{bytes[0] == 1, one_line(as_text(bytes.subspan(1)), max_reason)};
}

}  // namespace neuroshard::swarm
