// What a node has to tell the other members of a round: each item goes to each of them again and again, with
// growing pauses, until that one has it or refuses it for good. Bounded: one item per key.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <vector>

#include "core/base/executor.h"
#include "core/net/peer_caller.h"
#include "core/rounds/messages.h"

namespace neuroshard::rounds {

// Where nodes are.  Threads: the executor's.
class RoundPeers {
 public:
  virtual ~RoundPeers() = default;
  // Nothing: not known at the moment.
  virtual std::optional<net::Contact> find(const net::NodeId& id) = 0;
  // Nodes that may hold the slot, for whoever does not know its members yet; a bounded, varying choice.
  virtual std::vector<net::Contact> some() = 0;
  // Everybody who could know of another node was asked, and knows of none.
  virtual bool nobody() const { return false; }
  // This node has signed two payloads for one round: proven to anybody, also where it told each of them only
  // to others. Nothing that it says need be heard for a while.
  virtual void proven_liar(const net::NodeId&) {}
};

struct OutboxOptions {
  Duration allowed = std::chrono::seconds(5);  // for thinking and the way; bytes have their own time
  Duration first_pause = std::chrono::seconds(1);
  Duration longest_pause = std::chrono::seconds(15);
};

class RoundOutbox {
 public:
  using Answered = std::function<void(const net::NodeId& from, const PostAnswer& answer)>;
  // All outlive it.  Threads: the executor's.
  RoundOutbox(net::PeerCaller& caller, RoundPeers& peers, const Clock& clock, OutboxOptions options,
              Answered answered);
  // An item with this key is replaced.
  void put(std::uint32_t key, const RoundItem& item, const std::vector<net::NodeId>& to);
  // The same for bytes that are a post already.
  void put(std::uint32_t key, std::shared_ptr<const Bytes> post, const std::vector<net::NodeId>& to);
  // The same, first in a first pause: drop() may show meanwhile who does not need it.
  void put_later(std::uint32_t key, const RoundItem& item, const std::vector<net::NodeId>& to);
  void drop(std::uint32_t key) { items_.erase(key); }
  void drop(std::uint32_t key, const net::NodeId& to);
  void clear() { items_.clear(); }
  // Sends what is due; call it now and then.
  void pump();
  // This node gives a sign of life: what waits for it in a long pause, after it was away, goes out at once.
  void heard(const net::NodeId& from);
  // It was started again, and has forgotten what it took: all of that goes out once more.
  void again(const net::NodeId& to);
  std::size_t waiting() const;
  // Who has not had all of it yet.
  std::vector<net::NodeId> untold() const;
  // Somebody has not had the item of this key yet.
  bool holds(std::uint32_t key) const;
  std::uint64_t bytes_sent() const { return bytes_sent_; }

 private:
  struct Recipient {
    MonotonicTime due{};
    Duration pause{};
    MonotonicTime sent{};
    bool under_way = false;
  };
  struct Item {
    std::uint64_t serial = 0;
    std::shared_ptr<const Bytes> bytes;
    std::map<net::NodeId, Recipient> to;
    std::map<net::NodeId, MonotonicTime> taken;  // and when
  };
  void set(std::uint32_t key, std::shared_ptr<const Bytes> post, const std::vector<net::NodeId>& to,
           MonotonicTime due);
  void send(std::uint32_t key, Item& item, const net::NodeId& to);
  void answered(std::uint32_t key, std::uint64_t serial, const net::NodeId& from, Expected<Bytes> answer);

  net::PeerCaller& caller_;
  RoundPeers& peers_;
  const Clock& clock_;
  const OutboxOptions options_;
  const Answered answered_;
  std::map<std::uint32_t, Item> items_;
  std::uint64_t serial_ = 0, bytes_sent_ = 0;
  std::shared_ptr<bool> alive_ = std::make_shared<bool>(true);
};

}  // namespace neuroshard::rounds
