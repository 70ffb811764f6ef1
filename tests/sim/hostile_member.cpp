#include "tests/sim/hostile_member.h"

#include <algorithm>

namespace neuroshard::testing {

void HostileMember::handle(const net::Caller& from, net::Method method, ByteSpan bytes,
                           const net::Respond& respond) {
  const auto request = dht::decode_request(method, bytes);
  if (!request.ok()) return respond(request.error());
  switch (method) {
    case net::Method::DhtPing: return respond(dht::encode_endpoint(from.endpoint));
    case net::Method::DhtStore:
      first_.try_emplace(request->record.path + to_hex(request->record.publisher), request->record);
      return respond(Bytes{});
    default: return respond(dht::encode_found(method, held(request->target), contacts(request->target)));
  }
}

std::vector<const dht::Record*> HostileMember::held(const net::NodeId& key) const {
  std::vector<const dht::Record*> records;
  if (around_.hostility != Hostility::Stale) return records;
  for (const auto& [name, record] : first_)
    if (dht::key_of(around_.network_id, record.path) == key && records.size() < dht::max_answer_records)
      records.push_back(&record);
  return records;
}

std::vector<net::Contact> HostileMember::contacts(const net::NodeId& target) const {
  if (around_.hostility == Hostility::Invent) return invented(target);
  std::vector<net::Contact> near = around_.accomplices;
  const std::size_t kept = std::min(near.size(), dht::max_contacts);
  std::partial_sort(
      near.begin(), near.begin() + static_cast<std::ptrdiff_t>(kept), near.end(),
      [&](const net::Contact& a, const net::Contact& b) { return net::closer(target, a.id, b.id); });
  near.resize(kept);
  return near;
}

std::vector<net::Contact> HostileMember::invented(const net::NodeId& target) const {
  std::vector<net::Contact> contacts;
  for (std::size_t i = 0; i < dht::max_contacts; ++i) {
    net::NodeId id = target;
    for (std::size_t b = 3; b < id.size(); ++b) id[b] = static_cast<std::uint8_t>(around_.rng.below(256));
    contacts.push_back({id, around_.nobody()});
  }
  return contacts;
}

}  // namespace neuroshard::testing
