#include "core/dht/messages.h"

#include <algorithm>

#include "core/base/check.h"

namespace neuroshard::dht {
namespace {

constexpr std::uint8_t version = 1;
constexpr std::size_t head_bytes = 3;
constexpr std::size_t endpoint_bytes = 18;
constexpr std::size_t contact_bytes = 32 + endpoint_bytes;

Error corrupt(const char* what) {
  return make_error(ErrorCode::Corrupt, what);
}

void append_endpoint(Bytes& bytes, const platform::Endpoint& endpoint) {
  bytes.insert(bytes.end(), endpoint.ip.bytes.begin(), endpoint.ip.bytes.end());
  append_le(bytes, endpoint.port);
}

platform::Endpoint read_endpoint(const std::uint8_t* at) {
  platform::Endpoint endpoint;
  std::copy_n(at, endpoint.ip.bytes.size(), endpoint.ip.bytes.begin());
  endpoint.port = load_le<std::uint16_t>(at + endpoint.ip.bytes.size());
  return endpoint;
}

}  // namespace

Bytes encode_endpoint(const platform::Endpoint& endpoint) {
  Bytes bytes;
  append_endpoint(bytes, endpoint);
  return bytes;
}

Expected<platform::Endpoint> decode_endpoint(ByteSpan bytes) {
  if (bytes.size() != endpoint_bytes) return corrupt("an address and port have another length");
  return read_endpoint(bytes.data());
}

Bytes encode_request(net::Method method, const Request& request) {
  Bytes bytes = {version};
  append_le(bytes, request.port);
  if (method == net::Method::DhtFindNode || method == net::Method::DhtFindValue)
    bytes.insert(bytes.end(), request.target.begin(), request.target.end());
  if (method == net::Method::DhtStore) {
    const Bytes record = encode_record(request.record);
    bytes.insert(bytes.end(), record.begin(), record.end());
  }
  return bytes;
}

Expected<Request> decode_request(net::Method method, ByteSpan bytes) {
  if (bytes.size() < head_bytes) return corrupt("the request is too short");
  if (bytes[0] != version)
    return make_error(ErrorCode::Unsupported, "the request has another version of the table's messages");
  Request request;
  request.port = load_le<std::uint16_t>(bytes.data() + 1);
  const ByteSpan body = bytes.subspan(head_bytes);
  switch (method) {
    case net::Method::DhtPing:
      if (!body.empty()) return corrupt("a ping carries nothing");
      return request;
    case net::Method::DhtFindNode:
    case net::Method::DhtFindValue:
      if (body.size() != request.target.size()) return corrupt("the request does not name 32 bytes to find");
      std::copy_n(body.begin(), request.target.size(), request.target.begin());
      return request;
    case net::Method::DhtStore: {
      std::size_t used = 0;
      NS_ASSIGN_OR_RETURN(request.record, decode_record(body, used));
      if (used != body.size()) return corrupt("bytes follow the record");
      return request;
    }
    default: break;
  }
  return make_error(ErrorCode::Unsupported, "this is no request to the table");
}

Bytes encode_found(net::Method method, const std::vector<const Record*>& records,
                   const std::vector<net::Contact>& contacts) {
  NS_CHECK(records.size() <= max_answer_records && contacts.size() <= max_contacts);
  Bytes bytes;
  if (method == net::Method::DhtFindValue) {
    bytes.push_back(static_cast<std::uint8_t>(records.size()));
    for (const Record* record : records) {
      const Bytes encoded = encode_record(*record);
      bytes.insert(bytes.end(), encoded.begin(), encoded.end());
    }
  }
  bytes.push_back(static_cast<std::uint8_t>(contacts.size()));
  for (const net::Contact& contact : contacts) {
    bytes.insert(bytes.end(), contact.id.begin(), contact.id.end());
    append_endpoint(bytes, contact.endpoint);
  }
  return bytes;
}

Expected<Found> decode_found(net::Method method, ByteSpan bytes, bool one_lan) {
  Found found;
  std::size_t at = 0;
  if (method == net::Method::DhtFindValue) {
    if (bytes.empty() || bytes[0] > max_answer_records) return corrupt("the answer claims too many records");
    const std::size_t records = bytes[0];
    at = 1;
    for (std::size_t i = 0; i < records; ++i) {
      std::size_t used = 0;
      NS_ASSIGN_OR_RETURN(Record record, decode_record(bytes.subspan(at), used));
      found.records.push_back(std::move(record));
      at += used;
    }
  }
  if (at >= bytes.size() || bytes[at] > max_contacts || bytes.size() != at + 1 + bytes[at] * contact_bytes) {
    return corrupt("the answer's contacts have a wrong length");
  }
  const std::size_t contacts = bytes[at++];
  for (std::size_t i = 0; i < contacts; ++i, at += contact_bytes) {
    net::Contact contact;
    std::copy_n(bytes.data() + at, contact.id.size(), contact.id.begin());
    contact.endpoint = read_endpoint(bytes.data() + at + contact.id.size());
    if (contact.endpoint.port != 0 && (one_lan || platform::globally_routable(contact.endpoint.ip)))
      found.contacts.push_back(contact);
  }
  return found;
}

}  // namespace neuroshard::dht
