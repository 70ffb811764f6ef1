// One attacker with thousands of ids in eight address groups against nodes that meet by their books: it
// introduces its ids to everybody, answers with nothing but its own records, and names addresses that it does
// not have. Real records, signatures and books; calls are instant. The control is the rule without caps: a
// full book forgets what expires first, and every record is passed on.
#include <QtTest>
#include <deque>
#include <unordered_map>
#include <unordered_set>

#include "core/net/node_book.h"
#include "tests/support/keys.h"
#include "tests/support/test_main.h"
#include "tests/support/time.h"

using namespace neuroshard;
using namespace neuroshard::net;
using namespace neuroshard::test;  // NOLINT
using platform::Endpoint;
using platform::IpAddress;

namespace {

using Records = std::vector<const NodeRecord*>;
struct KeyHash {
  std::size_t operator()(const crypto::PublicKey& key) const { return load_le<std::size_t>(key.data()); }
};
using Informed = std::unordered_set<crypto::PublicKey, KeyHash>;

constexpr std::size_t book_size = 1000;  // less than the attacker's ids
constexpr std::uint16_t attacker_ids = 5000, first_attacker = 1000;
constexpr std::size_t members = 10;
constexpr Duration beat = 20 * second;  // half as often as real nodes
constexpr int introductions = 5;        // of the attacker, to each node and beat

std::chrono::milliseconds ms(Duration length) {
  return std::chrono::duration_cast<std::chrono::milliseconds>(length);
}

// The rule that this test shows to be needed, for a book of the same size.
class GuardedBook {
 public:
  GuardedBook() : book_(Hash256{}, false, limits()) {}
  void set_members(std::function<bool(const NodeId&)> is_member) { book_.set_members(std::move(is_member)); }
  void put(const NodeRecord& record, WallTime now, const Caller& informant) {
    (void)book_.put(record, now, informant);
  }
  void reached(const NodeId& id, const Endpoint& at, WallTime now) { book_.reached(id, at, now); }
  Records all(WallTime now) const { return book_.all(now); }
  Records told(WallTime now, Rng& rng) const { return spread(book_.proven(now), 20, rng); }
  const NodeRecord* choose(WallTime now, const Informed& informed, Rng& rng) {
    const auto from = book_.to_inform(
        now, ++turn_ % 2 == 0, [](const NodeRecord&) { return true; },
        [&](const NodeRecord& one) { return informed.count(one.node_key) != 0; });
    return from.empty() ? nullptr : spread(from, 1, rng).front();
  }
  Records used(WallTime now, Rng& rng) const { return spread(book_.proven(now), 8, rng); }

 private:
  static NodeBookLimits limits() {
    NodeBookLimits limits;
    limits.most = book_size;
    return limits;
  }
  NodeBook book_;
  std::size_t turn_ = 0;
};

class PlainBook {
 public:
  void set_members(const std::function<bool(const NodeId&)>&) {}
  void put(const NodeRecord& record, WallTime now, const Caller&) {
    const NodeId id = record.id();
    const auto known = records_.find(id);
    if (known != records_.end() && record.sequence <= known->second.sequence) return;
    if (!check_node_record(record, Hash256{}, now).ok()) return;
    if (known == records_.end() && records_.size() >= book_size)
      records_.erase(std::min_element(records_.begin(), records_.end(), [](const auto& a, const auto& b) {
        return a.second.expires < b.second.expires;
      }));
    records_[id] = record;
  }
  void reached(const NodeId&, const Endpoint&, WallTime) {}
  Records all(WallTime now) const {
    Records living;
    for (const auto& [id, record] : records_)
      if (now < record.expires) living.push_back(&record);
    return living;
  }
  Records told(WallTime now, Rng& rng) const { return some(all(now), 20, rng); }
  const NodeRecord* choose(WallTime now, const Informed& informed, Rng& rng) const {
    Records from = all(now), uninformed = from;
    std::erase_if(uninformed, [&](const NodeRecord* one) { return informed.count(one->node_key) != 0; });
    if (!uninformed.empty()) from = uninformed;
    return from.empty() ? nullptr : from[rng.below(from.size())];
  }
  Records used(WallTime now, Rng& rng) const { return some(all(now), 8, rng); }

 private:
  static Records some(Records from, std::size_t most, Rng& rng) {
    for (std::size_t i = 0; i + 1 < from.size(); ++i)
      std::swap(from[i], from[i + rng.below(from.size() - i)]);
    from.resize(std::min(from.size(), most));
    return from;
  }
  std::map<NodeId, NodeRecord> records_;
};

NodeRecord make_record(const crypto::KeyPair& key, const Endpoint& at, WallTime now, Duration life) {
  NodeRecord record;
  record.made = now;
  record.expires = now + ms(life);
  record.sequence = static_cast<std::uint64_t>(to_unix_ms(now));
  record.endpoints = {{Reach::Direct, at}};
  record.program = "test";
  if (!sign_node_record(record, key, Hash256{}).ok()) qFatal("not signed");
  return record;
}

// The attacker answers at the even ones of its addresses. The odd ones are elsewhere, each in another group.
class Attacker {
 public:
  explicit Attacker(WallTime now) {
    for (std::uint16_t i = 0; i < attacker_ids; ++i) {
      const auto high = static_cast<std::uint8_t>(i / 250), low = static_cast<std::uint8_t>(1 + i % 250);
      const Endpoint own{IpAddress::v4(50, static_cast<std::uint8_t>(i / 2 % 8), 0, low), 9000};
      const Endpoint false_one{IpAddress::v4(60, high, low, 1), 9000};
      keys_.push_back(key_numbered(static_cast<std::uint16_t>(first_attacker + i)));
      records_.push_back(make_record(keys_.back(), i % 2 == 0 ? own : false_one, now, 24 * hour));
      ids_.push_back(records_.back().id());
      by_key_[keys_.back().public_key()] = i;
      from_.push_back(own);
    }
  }
  bool is(const crypto::PublicKey& key) const { return by_key_.count(key) != 0; }
  bool answers(const crypto::PublicKey& key) const { return by_key_.at(key) % 2 == 0; }
  const NodeRecord& record(std::size_t i) const { return records_[i % records_.size()]; }
  Caller caller(std::size_t i) const { return {ids_[i % ids_.size()], from_[i % from_.size()]}; }

 private:
  std::vector<crypto::KeyPair> keys_;
  std::vector<NodeRecord> records_;
  std::vector<NodeId> ids_;
  std::vector<Endpoint> from_;
  std::unordered_map<crypto::PublicKey, std::size_t, KeyHash> by_key_;
};

struct Seen {
  std::size_t fewest_contacts = 0;  // honest ones in a book
  double honest_share = 0;          // of the nodes that a node would ask next
  std::size_t members_lost = 0;     // pairs of members of which one does not know the other
};

template <class Book>
class Town {
 public:
  explicit Town(std::size_t count) : attacker_(now_) {
    for (std::size_t i = 0; i < count; ++i) {
      nodes_.emplace_back(key_numbered(static_cast<std::uint16_t>(i)),
                          Endpoint{IpAddress::v4(40, static_cast<std::uint8_t>(i), 0, 1), 9000});
      honest_[nodes_.back().key.public_key()] = i;
      honest_ids_[nodes_.back().id] = i;
    }
    const auto is_member = [this](const NodeId& id) {
      const auto found = honest_ids_.find(id);
      return found != honest_ids_.end() && found->second < members;
    };
    for (std::size_t i = 0; i < std::min(members, count); ++i) nodes_[i].book.set_members(is_member);
  }

  void run(Duration peace, Duration attack) {
    for (Duration passed{0}; passed < peace + attack; passed += beat, now_ += ms(beat))
      for (Node& node : nodes_) {
        if (now_ >= node.renew) {
          node.record = make_record(node.key, node.at, now_, hour);
          node.renew = now_ + ms(30 * minute);
          node.informed.clear();
        }
        if (passed >= peace)
          for (int i = 0; i < introductions; ++i, ++next_)
            node.book.put(attacker_.record(next_), now_, attacker_.caller(next_));
        exchange(node);
      }
  }

  Seen seen() {
    Seen seen;
    seen.fewest_contacts = nodes_.size();
    std::size_t used = 0, honest = 0;
    for (Node& node : nodes_) {
      Informed known;
      for (const NodeRecord* record : node.book.all(now_))
        if (honest_.count(record->node_key) != 0) known.insert(record->node_key);
      seen.fewest_contacts = std::min(seen.fewest_contacts, known.size());
      for (const NodeRecord* record : node.book.used(now_, rng_)) {
        ++used;
        honest += honest_.count(record->node_key);
      }
      if (honest_ids_.at(node.id) >= members) continue;
      for (std::size_t i = 0; i < members; ++i)
        if (nodes_[i].id != node.id)
          seen.members_lost += known.count(nodes_[i].key.public_key()) == 0 ? 1 : 0;
    }
    seen.honest_share = used == 0 ? 0 : static_cast<double>(honest) / static_cast<double>(used);
    return seen;
  }

 private:
  struct Node {
    Node(crypto::KeyPair pair, const Endpoint& place)
        : key(std::move(pair)), at(place), id(crypto::node_id(key.public_key())) {}
    const crypto::KeyPair key;
    const Endpoint at;
    const NodeId id;
    NodeRecord record;
    WallTime renew{};
    Book book;
    Informed informed;
  };

  void exchange(Node& node) {
    const NodeRecord* const chosen = node.book.choose(now_, node.informed, rng_);
    // The first node is everybody's first peer, by their configuration.
    const crypto::PublicKey to = chosen == nullptr ? nodes_.front().key.public_key() : chosen->node_key;
    if (to == node.key.public_key()) return;
    node.informed.insert(to);
    if (attacker_.is(to)) return take_bait(node, *chosen);
    Node& other = nodes_[honest_.at(to)];
    other.book.put(node.record, now_, {node.id, {node.at.ip, 40'000}});
    const Caller informant{other.id, other.at};
    std::vector<NodeRecord> answer{other.record};
    for (const NodeRecord* record : other.book.told(now_, rng_)) answer.push_back(*record);
    for (const NodeRecord& record : answer)
      if (record.sequence != 0 && record.id() != node.id) node.book.put(record, now_, informant);
    node.book.reached(other.id, other.at, now_);
  }

  void take_bait(Node& node, const NodeRecord& to) {
    if (!attacker_.answers(to.node_key)) return;
    const std::size_t begin = rng_.below(attacker_ids);
    const Caller informant{to.id(), to.endpoints.front().endpoint};
    node.book.reached(informant.id, informant.endpoint, now_);
    for (std::size_t i = 0; i < 20; ++i) node.book.put(attacker_.record(begin + i), now_, informant);
  }

  WallTime now_ = WallTime(std::chrono::hours(500'000));
  Rng rng_{11};
  Attacker attacker_;
  std::deque<Node> nodes_;
  std::unordered_map<crypto::PublicKey, std::size_t, KeyHash> honest_;
  std::map<NodeId, std::size_t> honest_ids_;
  std::size_t next_ = 0;
};

}  // namespace

class TestEclipse : public QObject {
  Q_OBJECT
 private Q_SLOTS:
  void honest_nodes_keep_each_other();
  void a_book_without_caps_loses_them();
};

template <class Book>
Seen outcome(const char* rule, std::size_t nodes) {
  Town<Book> town(nodes);
  town.run(10 * minute, 75 * minute);
  const Seen seen = town.seen();
  qInfo("%s: at least %zu honest contacts, %.0f %% of the nodes asked are honest, %zu members lost", rule,
        seen.fewest_contacts, 100 * seen.honest_share, seen.members_lost);
  return seen;
}

void TestEclipse::honest_nodes_keep_each_other() {
  const Seen seen = outcome<GuardedBook>("guarded", 50);
  QVERIFY(seen.fewest_contacts >= 8);
  QVERIFY(seen.honest_share >= 0.5);
  QCOMPARE(seen.members_lost, std::size_t{0});
}

void TestEclipse::a_book_without_caps_loses_them() {
  const Seen seen = outcome<PlainBook>("plain", 10);
  QVERIFY(seen.fewest_contacts < 8);
  QVERIFY(seen.honest_share < 0.1);
  QVERIFY(seen.members_lost > 0);
}

NS_TEST(TestEclipse)
#include "test_eclipse.moc"
