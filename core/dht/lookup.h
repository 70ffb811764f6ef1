// One iterative lookup over disjoint paths (Baumgart, Mies: S/Kademlia, 2007). Each path walks towards the
// target on its own, one call at a time, and no node is asked by two paths: a member that answers with its
// accomplices spoils its own path only. A value counts as found when a quorum of paths each reached a member
// that holds it, so one liar with an old copy does not decide; paths that came to nothing are replaced by new
// ones from other first contacts, up to a bound. At the end a few more of those near the target are asked, by
// nobody's advice in particular.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <unordered_map>
#include <unordered_set>
#include <vector>

#include "core/dht/messages.h"
#include "core/net/peer_caller.h"

namespace neuroshard::dht {

inline constexpr std::size_t max_known = 100;

struct LookupOptions {
  std::size_t paths = 3;        // alpha: walked at the same time
  std::size_t least_paths = 3;  // walked in any case
  std::size_t max_paths = 12;   // in all
  std::size_t width = 4;        // a path ends when so many of its nearest have answered
  std::size_t path_calls = 14;  // at most, of one path
  double radius = 1;  // share of all ids, around the target, where a path's last members must lie: see near()
  std::size_t quorum = 6;  // paths that found the value
  // Members near the target that are asked besides when all holders agree: liars that replay an old record
  // name each other only, but somebody on the way to them has named others.
  std::size_t confirm = 1;
  std::size_t per_group = 2;  // members of one address group that are asked; 0 = no limit
  std::size_t anchored = 3;   // each so many-th path begins at an anchor; 0 = none does
  int tries = 2;              // calls to one member, the later ones only when a path has nobody else to ask
  // Contacts from one answer that may fail, none answering, before the rest of that answer is dropped.
  int source_failures = 3;
};

// A contact that the lookup knows at its end. `source` tells whose answer named it first; equal numbers, one
// answer.
struct KnownContact {
  net::Contact contact;
  std::size_t source = 0;
};

struct LookupResult {
  std::vector<net::Contact> answered;  // nearest first
  std::vector<KnownContact>
      known;  // those, and what they named and nobody asked; nearest first, max_known at most
  std::vector<Record> records;  // valid ones, of each publisher the highest sequence
  std::size_t holders = 0;      // members that had a valid record
  std::size_t messages = 0;     // calls made
  std::size_t failures = 0;     // of them without an answer
  std::size_t paths = 0;
  std::size_t hops =
      0;  // from us to the nearest member that answered; for a value: to the farthest holder that was asked
};

class Lookup : public std::enable_shared_from_this<Lookup> {
 public:
  struct Services {
    // Calls one member; the lookup sees the answer later.
    std::function<void(const net::Contact&, net::CallDone)> ask;
    std::function<bool(const Record&)> valid;  // belongs to the target, is signed, has not expired
    std::function<void(LookupResult)> done;    // once
  };

  // method: DhtFindNode or DhtFindValue. first: our own contacts, nearest first; anchors: members that we
  // know of from elsewhere, in any order: where liars were the first to fill our table, the paths that begin
  // there are the only ones that they do not lead. order: random, nobody else's to know. Threads: one. Keeps
  // itself alive until done or stop().
  Lookup(const net::NodeId& self, const net::NodeId& target, net::Method method, bool one_lan,
         LookupOptions options, std::vector<net::Contact> first, std::vector<net::Contact> anchors,
         const net::NodeId& order, Services services);
  void start();
  // Forgets the rest; done is not called.
  void stop();

 private:
  enum class Status : std::uint8_t { Fresh, Waiting, Answered, Failed };
  struct Candidate {
    net::Contact contact;
    Status status = Status::Fresh;
    std::size_t hop = 1;
    std::size_t source = 0;
    int tries = 0;
  };
  struct Source {
    int failures = 0;
    bool answered = false;
  };
  struct Path {
    std::vector<Candidate> candidates;  // nearest first
    std::vector<Source> sources;
    std::size_t calls = 0;
    bool ended = false;
    bool holder = false;
  };

  void open_paths(std::size_t count);
  bool begin_at_anchors(Path& path);
  void advance(std::size_t path);
  bool near(const net::NodeId& id) const;
  Candidate* next(Path& path);
  Candidate* again(Path& path);
  bool may_ask(const Path& path, const Candidate& candidate) const;
  void ask(std::size_t path, Candidate& candidate);
  void answered(std::size_t path, const net::NodeId& id, const Expected<Bytes>& answer);
  void take(Path& path, const Candidate& from, Found found);
  void add(Path& path, const net::Contact& contact, std::size_t hop, std::size_t source);
  void end(std::size_t path);
  bool confirm();
  void collect_known();
  void finish();

  net::NodeId self_, target_;
  net::Method method_;
  bool one_lan_;
  LookupOptions options_;
  std::vector<net::Contact> first_, anchors_;
  net::NodeId order_;
  Services services_;
  std::vector<Path> paths_;
  std::unordered_set<net::NodeId, net::NodeIdHash> asked_;
  std::unordered_map<std::uint64_t, std::size_t> asked_in_group_;
  std::size_t confirmed_ = 0, confirming_ = 0;
  bool agree_ = true;  // all holders, about each publisher
  std::map<crypto::PublicKey, Record> records_;
  std::vector<Candidate> members_;  // that answered
  LookupResult result_;
  bool over_ = false;
};

}  // namespace neuroshard::dht
