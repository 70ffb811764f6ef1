// A peer's messages over gRPC: hellos, messages in pieces, the texts of errors, the name of the other end.
#include <grpcpp/support/slice.h>

#include <algorithm>

#include "core/base/check.h"
#include "core/base/utf8.h"
#include "core/net/peer_channel.h"
#include "core/rpc/detail/wire.h"

using namespace neuroshard;  // NOLINT
namespace wire = rpc::detail::wire;

namespace {

// As it comes from a connection: cut anywhere.
grpc::ByteBuffer in_pieces(ByteSpan bytes, std::size_t piece) {
  std::vector<grpc::Slice> slices;
  for (std::size_t at = 0; at < bytes.size(); at += piece)
    slices.emplace_back(bytes.data() + at, std::min(piece, bytes.size() - at));
  return grpc::ByteBuffer(slices.data(), slices.size());
}

template <class Message>
void read_message(ByteSpan bytes, std::size_t piece) {
  Message message, again;
  grpc::ByteBuffer buffer = in_pieces(bytes, piece);
  if (!rpc::detail::from_buffer(&buffer, &message)) return;
  NS_CHECK(message.SpaceUsedLong() < 64 * bytes.size() + 4096);
  grpc::ByteBuffer written = rpc::detail::to_buffer(message);
  NS_CHECK(rpc::detail::from_buffer(&written, &again));
  NS_CHECK(again.SerializeAsString() == message.SerializeAsString());
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  if (size == 0) return 0;
  const ByteSpan rest{data + 1, size - 1};
  const std::string text(as_text(rest));
  if (const auto hello = rpc::detail::decode_hello(text); hello.ok()) {
    NS_CHECK(hello->program.size() <= net::max_program_name);
    for (const char c : hello->program) NS_CHECK(c > 0x20 && c < 0x7f);  // shown to people, sent as text
    const auto again = rpc::detail::decode_hello(rpc::detail::encode_hello(*hello));
    NS_CHECK(again.ok() && again->network_id == hello->network_id && again->port == hello->port);
    static_cast<void>(net::check_hello(*hello, *again));
  }
  const std::size_t piece = 1 + data[0] % 32;
  read_message<wire::Hello>(rest, piece);
  read_message<wire::CallRequest>(rest, piece);
  read_message<wire::CallReply>(rest, piece);
  read_message<wire::Chunk>(rest, piece);
  const Error error = rpc::detail::to_error(grpc::Status(static_cast<grpc::StatusCode>(data[0] % 20), text));
  NS_CHECK(error.message.size() <= net::max_error_text);
  NS_CHECK(valid_utf8(error.message) == error.message);
  for (const char c : error.message) NS_CHECK(static_cast<unsigned char>(c) >= 0x20 && c != 0x7f);
  if (const auto endpoint = rpc::detail::endpoint_of_peer(text); endpoint.ok()) {
    const auto again = rpc::detail::endpoint_of_peer(rpc::detail::target_of(*endpoint));
    NS_CHECK(again.ok() && *again == *endpoint);
  }
  return 0;
}
