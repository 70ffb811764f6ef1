// Nodes that begin a network together, and what carries their messages: on virtual time, with delays, losses,
// late joiners and deaths. Header only.
#pragma once

#include <algorithm>
#include <functional>
#include <map>
#include <memory>
#include <set>

#include "core/base/rng.h"
#include "core/chain/open_start.h"
#include "tests/unit/chain/small_chain.h"

namespace neuroshard::chain::small {

using std::chrono::milliseconds;
using std::chrono::minutes;
using std::chrono::seconds;

inline MonotonicTime at(Duration since_start) {
  return MonotonicTime(std::chrono::hours(1) + since_start);
}
inline WallTime wall_at(Duration since_start) {
  return WallTime(milliseconds(first_ms) + std::chrono::duration_cast<milliseconds>(since_start));
}

// One node and what it has said last.
struct Node {
  Party party;
  ChainRules rules = rules_of();
  SignatureChecks checks;
  OpenStart start;
  explicit Node(std::uint16_t number, std::vector<crypto::PublicKey> founders = {},
                std::optional<crypto::PublicKey> required = {}, Hash256 tokenizer = {})
      : party(party_of(number)),
        start(rules, {}, party.node, founder_of(party), {anchors(), tokenizer}, required, checks) {
    std::sort(founders.begin(), founders.end());
    rules.founders = std::move(founders);
  }
  OpenStart::Output tick(Duration now, bool nobody = false) {
    return start.tick(at(now), wall_at(now), nobody);
  }
  Verdict hello(const Party& from, Duration now) {
    return start.take(net::Caller{from.id, {}}, GenesisHello{founder_of(from)}, at(now));
  }
  Verdict propose(const Party& from, const BlockPtr& block, Duration now, OpenStart::Output* output) {
    return start.take(from.id, GenesisProposal{block}, at(now), wall_at(now), output);
  }
};

// Nodes 0 to count - 1, the one with the lowest id first.
inline std::vector<std::uint16_t> by_id(std::size_t count) {
  std::vector<std::uint16_t> numbers;
  for (std::uint16_t i = 0; i < count; ++i) numbers.push_back(i);
  std::sort(numbers.begin(), numbers.end(),
            [](std::uint16_t a, std::uint16_t b) { return party_of(a).id < party_of(b).id; });
  return numbers;
}

// Of these nodes, made at this time.
inline BlockPtr genesis_of(const std::vector<std::uint16_t>& numbers, Duration now = {}) {
  std::vector<Party> parties;
  for (const std::uint16_t number : numbers) parties.push_back(party_of(number));
  return Chain(std::move(parties))
      .genesis(first_ms + static_cast<std::uint64_t>(now / milliseconds(1)))
      .block;
}

// The first of this kind that goes to all; null: none.
template <class Item>
const Item* find_item(const OpenStart::Output& output) {
  for (const ChainItem& item : output.to_all)
    if (const auto* found = std::get_if<Item>(&item)) return found;
  return nullptr;
}

inline std::size_t founders_of(const CertifiedBlock& genesis) {
  return genesis.block->body.genesis->founders.size();
}

// Nodes on virtual time. Messages have delays and get lost; a node that has a genesis gives it to those that
// still begin, as the node around an OpenStart does.
class StartBus {
 public:
  struct Options {
    std::size_t nodes = 2;
    double loss = 0;
    Duration longest_delay = milliseconds(300);
    Duration last_join{};
    std::uint64_t seed = 1;
    // Each node begins with a tokenizer of its own, and takes over another one in this time, silently.
    std::optional<Duration> take_over = std::nullopt;
  };
  explicit StartBus(Options options) : options_(options), rng_(options.seed) {
    for (std::uint16_t i = 0; i < options.nodes; ++i) {
      Seat seat;
      seat.node = options.take_over ? with_tokenizer(i, tokenizer_of(i)) : std::make_unique<Node>(i);
      seat.joins = options.last_join * static_cast<std::int64_t>(rng_.below(1000)) / 1000;
      seat.next_tick = seat.joins;
      seats_.push_back(std::move(seat));
    }
  }
  // A message that may not pass.
  std::function<bool(std::size_t from, std::size_t to, const ChainItem& item)> stops;
  // From this time on the node neither speaks nor listens.
  void dies(std::size_t node, Duration when) { seats_[node].dies = when; }

  void run(Duration until) {
    for (; now_ < until; now_ += milliseconds(20)) {
      while (!messages_.empty() && messages_.begin()->first <= now_) {
        Message message = std::move(messages_.begin()->second);
        messages_.erase(messages_.begin());
        if (is_there(message.to)) deliver(message);
      }
      for (std::size_t i = 0; i < seats_.size(); ++i) {
        Seat& seat = seats_[i];
        if (!is_there(i) || seat.genesis || now_ < seat.next_tick) continue;
        seat.next_tick = now_ + milliseconds(500);
        handle(i, seat.node->tick(now_));
        if (const auto wanted = seat.node->start.wanted_tokenizer(); wanted && options_.take_over) {
          seat.node = with_tokenizer(static_cast<std::uint16_t>(i), *wanted);
          seat.next_tick = seat.silent_until = now_ + *options_.take_over;
        }
      }
    }
  }

  std::vector<CertifiedBlock> geneses() const {  // of those that live
    std::vector<CertifiedBlock> all;
    for (std::size_t i = 0; i < seats_.size(); ++i)
      if (seats_[i].genesis && now_ < seats_[i].dies) all.push_back(*seats_[i].genesis);
    return all;
  }
  static Hash256 tokenizer_of(std::uint16_t node) {
    Hash256 tokenizer{};
    tokenizer.fill(static_cast<std::uint8_t>(node + 1));
    return tokenizer;
  }
  // Ever completed by somebody.
  const std::set<Hash256>& completed() const { return completed_; }
  Duration first_at() const { return first_at_; }

 private:
  struct Seat {
    std::unique_ptr<Node> node;
    Duration joins{}, next_tick{}, silent_until{}, dies = std::chrono::hours(99);
    std::optional<CertifiedBlock> genesis;
  };
  struct Message {
    std::size_t from = 0, to = 0;
    ChainItem item;
  };
  static std::unique_ptr<Node> with_tokenizer(std::uint16_t number, const Hash256& tokenizer) {
    return std::make_unique<Node>(number, std::vector<crypto::PublicKey>(), std::nullopt, tokenizer);
  }
  bool is_there(std::size_t node) const {
    const Seat& seat = seats_[node];
    return now_ >= seat.joins && now_ >= seat.silent_until && now_ < seat.dies;
  }

  void send(std::size_t from, std::size_t to, const ChainItem& item) {
    if (from == to || rng_.uniform() < options_.loss || (stops && stops(from, to, item))) return;
    const auto delay = options_.longest_delay * static_cast<std::int64_t>(rng_.below(1000)) / 1000;
    messages_.emplace(now_ + delay, Message{from, to, item});
  }
  void handle(std::size_t from, const OpenStart::Output& output) {
    for (const ChainItem& item : output.to_all)
      for (std::size_t to = 0; to < seats_.size(); ++to) send(from, to, item);
    if (output.to_one)
      for (std::size_t to = 0; to < seats_.size(); ++to)
        if (seats_[to].node->party.id == output.to_one->first) send(from, to, output.to_one->second);
    if (!output.genesis) return;
    if (completed_.empty()) first_at_ = now_;
    completed_.insert(output.genesis->block->hash);
    seats_[from].genesis = output.genesis;
  }
  void deliver(const Message& message) {
    Seat& seat = seats_[message.to];
    if (const auto* post = std::get_if<CertifiedPost>(&message.item)) {
      if (!seat.genesis && History::begin({seat.node->rules, seat.node->checks, nullptr}, *post->block).ok())
        seat.genesis = post->block;
      return;
    }
    if (seat.genesis)
      return send(message.to, message.from, CertifiedPost{0, seat.genesis->block->hash, seat.genesis});
    OpenStart::Output output;
    const net::NodeId& from = seats_[message.from].node->party.id;
    OpenStart& start = seat.node->start;
    if (const auto* hello = std::get_if<GenesisHello>(&message.item))
      start.take(net::Caller{from, {}}, *hello, at(now_));
    else if (const auto* proposal = std::get_if<GenesisProposal>(&message.item))
      start.take(from, *proposal, at(now_), wall_at(now_), &output);
    else if (const auto* signature = std::get_if<GenesisSignature>(&message.item))
      start.take(from, *signature, &output);
    handle(message.to, output);
  }

  const Options options_;
  Rng rng_;
  Duration now_{}, first_at_{};
  std::vector<Seat> seats_;
  std::multimap<Duration, Message> messages_;
  std::set<Hash256> completed_;
};

}  // namespace neuroshard::chain::small
