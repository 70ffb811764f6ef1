// Valid messages of one network, recorded while its nodes speak, or taken apart from its blocks. A fuzzer
// begins with them, so network id, heights and hashes are right, and its changes reach what lies behind the
// first checks.
#pragma once

#include <compare>
#include <deque>
#include <map>
#include <optional>
#include <string>

#include "core/base/rng.h"
#include "core/chain/history.h"
#include "core/net/peer_caller.h"

namespace neuroshard::test {

// A method and, of ChainPost, the kind of the item.
struct MessageKind {
  static constexpr std::uint8_t other = 255;  // of no kind that there is
  net::Method method{};
  std::uint8_t item = 0;
  friend auto operator<=>(const MessageKind&, const MessageKind&) = default;
};
std::string to_string(const MessageKind& kind);  // "ChainPost 33", "DhtStore"
MessageKind kind_of(net::Method method, ByteSpan request);

struct Message {
  net::Method method{};
  Bytes request;
};

// Threads: one.
class MessagePool {
 public:
  static constexpr std::size_t kept = 24;  // newest messages of a kind
  static constexpr std::size_t most_hashes = 256;

  explicit MessagePool(const Hash256& network) : network_(network) {}

  const Hash256& network() const { return network_; }
  void learn(net::Method method, ByteSpan request);
  // The messages that led to a block, from the block and its certificate: proposal, votes, lock, statements,
  // evidence, vectors, and the block itself.
  void learn_block(const chain::CertifiedBlock& block);
  void learn_hash(const Hash256& hash);

  bool empty() const { return messages_.empty(); }
  std::size_t kinds() const { return messages_.size(); }
  bool knows(const MessageKind& kind) const { return messages_.count(kind) != 0; }
  // Each kind is as likely as any other; of a kind, the newer messages are likelier.
  const Message& any(Rng& rng) const;
  const Message& any_of(const MessageKind& kind, Rng& rng) const;  // which it knows
  // Of what its messages name; zeros without any.
  Hash256 any_hash(Rng& rng) const;
  // The newest block that it learned; null: none.
  const chain::CertifiedBlock* newest() const { return newest_ ? &*newest_ : nullptr; }

 private:
  void learn_hashes(net::Method method, ByteSpan request);
  void learn_item(const Bytes& item) { learn(net::Method::ChainPost, item); }

  const Hash256 network_;
  std::map<MessageKind, std::deque<Message>> messages_;
  std::deque<Hash256> hashes_;
  std::optional<chain::CertifiedBlock> newest_;
};

}  // namespace neuroshard::test
