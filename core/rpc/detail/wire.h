// Conversions between our values and gRPC's: errors and statuses, messages and buffers, hellos.
#pragma once

#include <grpcpp/impl/codegen/config_protobuf.h>
#include <grpcpp/support/byte_buffer.h>
#include <grpcpp/support/status.h>

#include <optional>
#include <string>

#include <proto/peer.pb.h>
#include "core/base/byte_chain.h"
#include "core/base/expected.h"
#include "core/net/hello.h"
#include "core/platform/socket/ip_address.h"

namespace neuroshard::rpc::detail {

namespace wire = ::neuroshard::peer::v1;

inline constexpr const char* hello_path = "/neuroshard.peer.v1.Peer/Hello";
inline constexpr const char* call_path = "/neuroshard.peer.v1.Peer/Call";
inline constexpr const char* stream_path = "/neuroshard.peer.v1.Peer/Stream";
inline constexpr const char* hello_key = "neuroshard-hello-bin";
inline constexpr std::size_t max_hello_bytes = 256;
// The bytes that a message adds to its body on the wire.
inline constexpr std::size_t message_overhead = 64;
inline constexpr int max_metadata_bytes = 8 << 10;

grpc::Status to_status(const Error& error);
// Another node's text is cut, and its control characters are removed.
Error to_error(const grpc::Status& status);

grpc::ByteBuffer to_buffer(const grpc::protobuf::MessageLite& message);
bool from_buffer(grpc::ByteBuffer* buffer, grpc::protobuf::MessageLite* message);

// The method of an encoded CallRequest, without reading its body: 0 unless it comes first.
std::uint32_t first_method(grpc::ByteBuffer* buffer);

// A Chunk as these two make it, without copies: the buffer owns the data, and the chunk shares it.
struct StreamChunk {
  ByteChain data;
  bool last = false;
  std::uint32_t method = 0;
};
grpc::ByteBuffer data_chunk(Bytes data);
// Nothing: it can't be read.
std::optional<StreamChunk> read_chunk(grpc::ByteBuffer* buffer);

std::string encode_hello(const net::Hello& hello);
// Corrupt: not a hello, or too long.
Expected<net::Hello> decode_hello(const std::string& bytes);

// "ipv4:192.0.2.1:9000", "ipv6:%5B2001:db8::1%5D:9000": gRPC's names of the other end of a connection.
Expected<platform::Endpoint> endpoint_of_peer(const std::string& peer);
std::string target_of(const platform::Endpoint& endpoint);

}  // namespace neuroshard::rpc::detail
