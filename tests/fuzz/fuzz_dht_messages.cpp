// Messages and records of the hash table: the first byte chooses the request; what is read writes itself
// back.
#include "core/base/check.h"
#include "core/dht/messages.h"

using namespace neuroshard;  // NOLINT

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  if (size == 0) return 0;
  constexpr net::Method methods[] = {net::Method::DhtPing, net::Method::DhtFindNode,
                                     net::Method::DhtFindValue, net::Method::DhtStore};
  const net::Method method = methods[data[0] % 4];
  const ByteSpan input{data + 1, size - 1};
  if (const auto request = dht::decode_request(method, input); request.ok()) {
    NS_CHECK(dht::encode_request(method, *request) == Bytes(input.begin(), input.end()));
  }
  for (const bool one_lan : {false, true}) {
    const auto found = dht::decode_found(method, input, one_lan);
    if (!found.ok()) continue;
    NS_CHECK(found->records.size() <= dht::max_answer_records && found->contacts.size() <= dht::max_contacts);
  }
  std::size_t used = 0;
  if (const auto record = dht::decode_record(input, used); record.ok()) {
    NS_CHECK(used <= input.size() && used <= dht::max_record_bytes);
    NS_CHECK(dht::encode_record(*record) ==
             Bytes(input.begin(), input.begin() + static_cast<std::ptrdiff_t>(used)));
    static_cast<void>(dht::check_record(*record, Hash256{}, WallTime{}));
  }
  static_cast<void>(dht::decode_endpoint(input));
  return 0;
}
