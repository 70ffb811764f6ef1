// Records of nodes, and what the swarm's messages make of bytes: what is read is within its bounds and writes
// itself back.
#include "core/base/check.h"
#include "core/net/node_record.h"
#include "core/swarm/messages.h"

using namespace neuroshard;  // NOLINT

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const ByteSpan input{data, size};
  if (const auto record = net::decode_node_record(input); record.ok()) {
    NS_CHECK(record->endpoints.size() <= net::max_endpoints && record->slots.size() <= net::max_slots);
    const Bytes again = net::encode_node_record(*record);
    NS_CHECK(again == Bytes(input.begin(), input.end()));
    static_cast<void>(net::check_node_record(*record, Hash256{}, WallTime{}));
  }
  if (const auto records = swarm::decode_records(input); records.ok()) {
    NS_CHECK(records->size() <= swarm::max_records);
    std::vector<const net::NodeRecord*> pointers;
    for (const net::NodeRecord& record : *records) pointers.push_back(&record);
    NS_CHECK(swarm::encode_records(pointers) == Bytes(input.begin(), input.end()));
  }
  if (const auto answer = swarm::decode_dial_back(input); answer.ok())
    NS_CHECK(answer->why.size() <= swarm::max_reason);
  static_cast<void>(swarm::decode_count(input));
  static_cast<void>(swarm::decode_peers_request(input));
  static_cast<void>(swarm::decode_port(input));
  return 0;
}
