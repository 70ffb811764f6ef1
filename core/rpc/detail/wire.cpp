#include "core/rpc/detail/wire.h"

#include <google/protobuf/message_lite.h>
#include <grpcpp/support/proto_buffer_reader.h>
#include <grpcpp/support/proto_buffer_writer.h>

#include <algorithm>
#include <array>

#include "core/base/utf8.h"
#include "core/net/peer_channel.h"

namespace neuroshard::rpc::detail {
namespace {

struct Pair {
  ErrorCode code;
  grpc::StatusCode status;
};
constexpr Pair pairs[] = {{ErrorCode::InvalidArgument, grpc::StatusCode::INVALID_ARGUMENT},
                          {ErrorCode::NotFound, grpc::StatusCode::NOT_FOUND},
                          {ErrorCode::AlreadyExists, grpc::StatusCode::ALREADY_EXISTS},
                          {ErrorCode::Corrupt, grpc::StatusCode::DATA_LOSS},
                          {ErrorCode::Timeout, grpc::StatusCode::DEADLINE_EXCEEDED},
                          {ErrorCode::Unavailable, grpc::StatusCode::UNAVAILABLE},
                          {ErrorCode::Busy, grpc::StatusCode::ABORTED},
                          {ErrorCode::Exhausted, grpc::StatusCode::RESOURCE_EXHAUSTED},
                          {ErrorCode::Denied, grpc::StatusCode::PERMISSION_DENIED},
                          {ErrorCode::Unsupported, grpc::StatusCode::UNIMPLEMENTED},
                          {ErrorCode::Cancelled, grpc::StatusCode::CANCELLED},
                          {ErrorCode::Io, grpc::StatusCode::UNKNOWN},
                          {ErrorCode::Internal, grpc::StatusCode::INTERNAL},
                          {ErrorCode::Denied, grpc::StatusCode::UNAUTHENTICATED},
                          {ErrorCode::Unavailable, grpc::StatusCode::FAILED_PRECONDITION},
                          {ErrorCode::InvalidArgument, grpc::StatusCode::OUT_OF_RANGE}};

// Field 1 of a Chunk, length-delimited, in protobuf's encoding: a tag, the length as a varint, the bytes.
constexpr std::uint8_t data_tag = 0x0a;
constexpr std::size_t longest_varint = 5;  // of 32 bits

void give_back(void* bytes) {
  delete static_cast<Bytes*>(bytes);
}

}  // namespace

grpc::Status to_status(const Error& error) {
  const auto pair =
      std::find_if(std::begin(pairs), std::end(pairs), [&](const Pair& p) { return p.code == error.code; });
  return {pair == std::end(pairs) ? grpc::StatusCode::INTERNAL : pair->status,
          valid_utf8(error.message, net::max_error_text)};
}

Error to_error(const grpc::Status& status) {
  const auto pair = std::find_if(std::begin(pairs), std::end(pairs),
                                 [&](const Pair& p) { return p.status == status.error_code(); });
  std::string text = one_line(status.error_message(), net::max_error_text);
  // The library's own words; the other end's say more.
  if (text == "Deadline Exceeded") text = "no answer within the deadline";
  return make_error(pair == std::end(pairs) ? ErrorCode::Internal : pair->code, std::move(text));
}

grpc::ByteBuffer to_buffer(const grpc::protobuf::MessageLite& message) {
  grpc::ByteBuffer buffer;
  const auto size = static_cast<int>(message.ByteSizeLong());
  grpc::ProtoBufferWriter writer(&buffer, grpc::kProtoBufferWriterMaxBufferLength, size);
  static_cast<void>(message.SerializeToZeroCopyStream(&writer));
  return buffer;
}

bool from_buffer(grpc::ByteBuffer* buffer, grpc::protobuf::MessageLite* message) {
  grpc::ProtoBufferReader reader(buffer);
  return reader.status().ok() && message->ParseFromZeroCopyStream(&reader) && reader.status().ok();
}

std::uint32_t first_method(grpc::ByteBuffer* buffer) {
  constexpr std::uint8_t method_tag = 0x08;  // field 1, a varint
  std::vector<grpc::Slice> slices;
  if (!buffer->Dump(&slices).ok() || slices.empty()) return 0;
  const ByteSpan first(slices.front().begin(), slices.front().size());
  std::uint32_t method = 0;
  if (first.empty() || first[0] != method_tag) return 0;
  for (std::size_t used = 1; used < first.size() && used <= longest_varint; ++used) {
    method |= static_cast<std::uint32_t>(first[used] & 0x7f) << 7 * (used - 1);
    if ((first[used] & 0x80) == 0) return method;
  }
  return 0;
}

grpc::ByteBuffer data_chunk(Bytes data) {
  std::array<std::uint8_t, 1 + longest_varint> head{data_tag};
  std::size_t used = 1;
  for (std::size_t left = data.size(); used == 1 || left != 0; left >>= 7)
    head[used++] = static_cast<std::uint8_t>((left & 0x7f) | (left > 0x7f ? 0x80 : 0));
  auto* const owned = new Bytes(std::move(data));
  const std::array<grpc::Slice, 2> slices{grpc::Slice(head.data(), used),
                                          grpc::Slice(owned->data(), owned->size(), give_back, owned)};
  return {slices.data(), slices.size()};
}

std::optional<StreamChunk> read_chunk(grpc::ByteBuffer* buffer) {
  StreamChunk chunk;
  const auto owner = std::make_shared<std::vector<grpc::Slice>>();
  std::vector<grpc::Slice>& slices = *owner;
  const std::size_t size = buffer->Length();
  if (!buffer->Dump(&slices).ok()) return std::nullopt;
  // A message with data only, like nearly all: read here without a copy. Protobuf reads the others.
  if (!slices.empty() && slices.front().size() >= 2 && slices.front().begin()[0] == data_tag) {
    const grpc::Slice& first = slices.front();
    std::size_t length = 0, used = 1;
    bool more = true;
    for (; more && used < first.size() && used <= longest_varint; ++used) {
      length |= static_cast<std::size_t>(first.begin()[used] & 0x7f) << 7 * (used - 1);
      more = (first.begin()[used] & 0x80) != 0;
    }
    if (!more && length == size - used) {
      std::vector<ByteSpan> pieces;
      pieces.reserve(slices.size());
      for (const grpc::Slice& slice : slices) {
        const std::size_t skipped = &slice == &first ? used : 0;
        if (slice.size() > skipped) pieces.emplace_back(slice.begin() + skipped, slice.size() - skipped);
      }
      chunk.data = ByteChain(std::move(pieces), owner);
      return chunk;
    }
  }
  wire::Chunk message;
  if (!from_buffer(buffer, &message)) return std::nullopt;
  chunk.data = ByteChain(Bytes(message.data().begin(), message.data().end()));
  chunk.last = message.last();
  chunk.method = message.method();
  return chunk;
}

std::string encode_hello(const net::Hello& hello) {
  wire::Hello message;
  message.set_major(hello.version.major);
  message.set_minor(hello.version.minor);
  message.set_network_id(hello.network_id.data(), hello.network_id.size());
  message.set_features(hello.features);
  message.set_port(hello.port);
  message.set_program(hello.program.substr(0, net::max_program_name));
  return message.SerializeAsString();
}

Expected<net::Hello> decode_hello(const std::string& bytes) {
  wire::Hello message;
  net::Hello hello;
  if (bytes.size() > max_hello_bytes || !message.ParseFromString(bytes) ||
      message.network_id().size() != hello.network_id.size() || message.port() > 65535) {
    return make_error(ErrorCode::Corrupt, "the peer's hello can't be read");
  }
  hello.version = {message.major(), message.minor()};
  std::copy(message.network_id().begin(), message.network_id().end(), hello.network_id.begin());
  hello.features = message.features();
  hello.port = static_cast<std::uint16_t>(message.port());
  for (const char c : message.program().substr(0, net::max_program_name))
    hello.program += c > 0x20 && c < 0x7f ? c : '?';
  return hello;
}

Expected<platform::Endpoint> endpoint_of_peer(const std::string& peer) {
  const std::size_t colon = peer.find(':');
  if (colon == std::string::npos || peer.compare(0, 2, "ip") != 0)
    return make_error(ErrorCode::InvalidArgument, "the connection does not come from an IP address");
  std::string text;
  for (std::size_t i = colon + 1; i < peer.size(); ++i) {
    const bool escaped = peer[i] == '%' && peer.compare(i, 2, "%5") == 0 && i + 2 < peer.size();
    if (escaped)
      text += peer[i + 2] == 'B' || peer[i + 2] == 'b' ? '[' : ']';
    else
      text += peer[i];
    if (escaped) i += 2;
  }
  return platform::parse_endpoint(text);
}

std::string target_of(const platform::Endpoint& endpoint) {
  return (endpoint.ip.is_v4() ? "ipv4:" : "ipv6:") + platform::to_text(endpoint);
}

}  // namespace neuroshard::rpc::detail
