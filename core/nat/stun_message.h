// STUN messages (RFC 8489), with the methods and attributes of TURN (RFC 8656) and of TURN over TCP (RFC
// 6062). Reading makes a view of untrusted bytes: bounded, without allocation.
#pragma once

#include <array>
#include <optional>
#include <string_view>

#include "core/base/bytes.h"
#include "core/platform/socket/ip_address.h"

namespace neuroshard::nat::stun {

inline constexpr std::uint32_t magic_cookie = 0x2112A442;
inline constexpr std::size_t header_bytes = 20;
// Longer messages are refused. Servers send far shorter ones (one UDP packet, 1280 bytes).
inline constexpr std::size_t max_message_bytes = 2048;
inline constexpr std::size_t max_attributes = 64;

using TransactionId = std::array<std::uint8_t, 12>;

enum class Class : std::uint8_t { Request = 0, Indication = 1, Success = 2, Failure = 3 };

enum class Method : std::uint16_t {
  Binding = 0x001,
  Allocate = 0x003,
  Refresh = 0x004,
  CreatePermission = 0x008,
  Connect = 0x00a,
  ConnectionBind = 0x00b,
  ConnectionAttempt = 0x00c,
};

enum class Attribute : std::uint16_t {
  MappedAddress = 0x0001,
  Username = 0x0006,
  MessageIntegrity = 0x0008,
  ErrorCode = 0x0009,
  UnknownAttributes = 0x000a,
  Lifetime = 0x000d,
  XorPeerAddress = 0x0012,
  Realm = 0x0014,
  Nonce = 0x0015,
  XorRelayedAddress = 0x0016,
  RequestedTransport = 0x0019,
  MessageIntegritySha256 = 0x001c,
  XorMappedAddress = 0x0020,
  ConnectionId = 0x002a,
  Software = 0x8022,
  Fingerprint = 0x8028,
};

struct FailureCode {
  int code = 0;             // 300 … 699
  std::string_view reason;  // the server's text, for logs only
};

// A view: `bytes` must outlive it.  Threads: any.
class Message {
 public:
  // Exactly one message. Corrupt names the fault. A FINGERPRINT is checked if there is one.
  static Expected<Message> parse(ByteSpan bytes);

  Class message_class() const { return class_; }
  Method method() const { return method_; }
  const TransactionId& transaction() const { return transaction_; }
  ByteSpan bytes() const { return bytes_; }

  // The first attribute of this type that integrity covers (RFC 8489 §14.5: later ones don't count).
  std::optional<ByteSpan> find(Attribute attribute) const;
  std::optional<std::uint32_t> number(Attribute attribute) const;
  std::optional<std::string_view> text(Attribute attribute) const;
  // XOR-MAPPED-ADDRESS, XOR-PEER-ADDRESS, XOR-RELAYED-ADDRESS.
  std::optional<platform::Endpoint> xor_address(Attribute attribute) const;
  // XOR-MAPPED-ADDRESS, or MAPPED-ADDRESS of an old server.
  std::optional<platform::Endpoint> mapped_address() const;
  std::optional<FailureCode> failure() const;
  bool has_fingerprint() const { return fingerprint_; }
  // Whether MESSAGE-INTEGRITY-SHA256 or, without it, MESSAGE-INTEGRITY is there and made with this key.
  bool authentic(ByteSpan key) const;

 private:
  struct Place {
    std::size_t at = 0;  // of the attribute's header
    std::size_t size = 0;
  };
  Expected<void> walk();
  std::optional<Place> place(Attribute attribute, std::size_t end) const;

  ByteSpan bytes_;
  Class class_ = Class::Request;
  Method method_ = Method::Binding;
  TransactionId transaction_{};
  std::size_t covered_end_ = 0;  // attributes up to here are covered by integrity, or all without it
  bool fingerprint_ = false;
};

// The size of the message that begins with these bytes (at least 4), for streams. Corrupt: this is no STUN
// message, or one over the limit.
Expected<std::size_t> message_size(ByteSpan beginning);

// Writes a message; attributes in the order of the calls, then integrity, then the fingerprint.
class MessageWriter {
 public:
  MessageWriter(Class message_class, Method method, const TransactionId& transaction);
  MessageWriter& add(Attribute attribute, ByteSpan value);
  MessageWriter& add(Attribute attribute, std::string_view text) { return add(attribute, as_bytes(text)); }
  MessageWriter& add_number(Attribute attribute, std::uint32_t value);
  MessageWriter& add_xor_address(Attribute attribute, const platform::Endpoint& endpoint);
  MessageWriter& add_failure(int code, std::string_view reason);
  MessageWriter& sign_sha1(ByteSpan key);
  MessageWriter& sign_sha256(ByteSpan key);
  MessageWriter& add_fingerprint();
  const Bytes& bytes() const { return bytes_; }

 private:
  void set_length(std::size_t length);
  Bytes bytes_;
};

// MD5(username ":" realm ":" password), the key of long-term credentials (RFC 8489 §9.2.2). The texts are
// used unchanged: SASLprep is the caller's task, and plain ASCII needs none.
std::array<std::uint8_t, 16> long_term_key(std::string_view username, std::string_view realm,
                                           std::string_view password);

}  // namespace neuroshard::nat::stun
