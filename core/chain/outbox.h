// Items that this node must tell others: each goes to each recipient again and again, with growing pauses,
// until that one has it or refuses it for good. Bounded: one item per key.
//
// All outlive it. Threads: the executor's.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <vector>

#include "core/base/clock.h"
#include "core/base/lifetime.h"
#include "core/chain/messages.h"
#include "core/net/peer_caller.h"

namespace neuroshard::chain {

// The addresses of nodes.
class Peers {
 public:
  virtual ~Peers() = default;
  // Nothing: not known at the moment.
  virtual std::optional<net::Contact> find(const net::NodeId& id) = 0;
  // Nodes of the network, for a node that does not know its members yet: a bounded, varying choice from as many
  // address groups as there are.
  virtual std::vector<net::Contact> some() = 0;
  // Everybody who could know of another node was asked, and knows of none.
  virtual bool nobody() const { return false; }
};

struct OutboxOptions {
  Duration allowed = std::chrono::seconds(5);  // for thinking and the way; bytes have their own time
  Duration first_pause = std::chrono::seconds(1);
  Duration longest_pause = std::chrono::seconds(15);
};

class Outbox {
 public:
  using Answered = std::function<void(const net::NodeId& from, const PostAnswer& answer)>;
  Outbox(net::PeerCaller& caller, Peers& peers, const Clock& clock, OutboxOptions options, Answered answered);
  ~Outbox();

  // An item with this key is replaced.
  void put(std::uint64_t key, Bytes item, const std::vector<net::NodeId>& to);
  void put(std::uint64_t key, const ChainItem& item, const std::vector<net::NodeId>& to);
  // Not once more to a recipient that was restarted: what this node passes on. Kept no longer than needed.
  void put_once(std::uint64_t key, const ChainItem& item, const std::vector<net::NodeId>& to);
  void drop(std::uint64_t key);
  // All keys in [first, last].
  void drop_range(std::uint64_t first, std::uint64_t last);
  // Sends what is due; put() does it too.
  void pump();
  // A peer gave a sign of life: what waits for it goes out at once.
  void heard(const net::NodeId& from);
  // A peer was restarted and has forgotten what it took: all of it goes out once more.
  void again(const net::NodeId& to);
  std::size_t waiting() const;
  std::uint64_t bytes_sent() const { return bytes_sent_; }

 private:
  struct Recipient;
  struct Item;
  void send(std::uint64_t key, Item& item, const net::NodeId& to);
  void answered(std::uint64_t key, std::uint64_t serial, const net::NodeId& from, Expected<Bytes> answer);

  net::PeerCaller& caller_;
  Peers& peers_;
  const Clock& clock_;
  const OutboxOptions options_;
  const Answered answered_;
  std::map<std::uint64_t, std::unique_ptr<Item>> items_;
  std::uint64_t serial_ = 0, bytes_sent_ = 0;
  Lifetime lifetime_;
};

}  // namespace neuroshard::chain
