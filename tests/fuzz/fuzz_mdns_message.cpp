// Datagrams of the local network: what is read is within its bounds.
#include "core/base/check.h"
#include "core/rendezvous/mdns_message.h"

using namespace neuroshard;  // NOLINT

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const auto message = rendezvous::decode_mdns({data, size});
  if (!message.ok()) return 0;
  NS_CHECK(message->services.size() <= rendezvous::max_mdns_services);
  for (const rendezvous::MdnsService& service : message->services) {
    NS_CHECK(service.port != 0 && !service.instance.empty() && service.instance.size() <= 63);
    const auto again = rendezvous::decode_mdns(rendezvous::encode_mdns_answer(service, 120));
    NS_CHECK(again.ok() && again->services.size() == 1);
    NS_CHECK(again->services[0].network_id == service.network_id && again->services[0].port == service.port);
  }
  return 0;
}
