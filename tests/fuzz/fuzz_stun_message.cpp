// STUN and TURN messages: whatever reads can be asked for everything, and signs and reads again when copied.
#include "core/base/check.h"
#include "core/nat/stun_message.h"

using neuroshard::ByteSpan;
using namespace neuroshard::nat::stun;  // NOLINT

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const ByteSpan bytes(data, size);
  if (size >= 4) (void)message_size(bytes);
  const auto message = Message::parse(bytes);
  if (!message.ok()) return 0;
  NS_CHECK(size <= max_message_bytes && message_size(bytes).value() == size);
  (void)message->mapped_address();
  (void)message->authentic(neuroshard::as_bytes("key"));
  const auto failure = message->failure();
  NS_CHECK(!failure || (failure->code >= 300 && failure->code < 700));
  for (const Attribute attribute : {Attribute::XorPeerAddress, Attribute::XorRelayedAddress}) {
    const auto endpoint = message->xor_address(attribute);
    if (!endpoint) continue;
    MessageWriter writer(message->message_class(), message->method(), message->transaction());
    writer.add_xor_address(attribute, *endpoint).sign_sha1(neuroshard::as_bytes("key")).add_fingerprint();
    const auto again = Message::parse(writer.bytes());
    NS_CHECK(again.ok() && again->xor_address(attribute) == endpoint);
    NS_CHECK(again->authentic(neuroshard::as_bytes("key")) && again->method() == message->method());
  }
  return 0;
}
