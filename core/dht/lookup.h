// One iterative lookup over disjoint paths (Baumgart, Mies: S/Kademlia, 2007). Each path walks towards the
// target on its own, one call at a time. No node answers two paths, so a Byzantine member spoils only its own
// path; a wrong address that one path tried doesn't keep another path from the member. A value counts as
// found when a quorum of paths each reached a holder, so one holder of an old copy does not decide. A path
// that fails is replaced by a new one from another first contact, up to a bound. At the end the lookup calls
// a few more of the members near the target, whichever path named them.
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
  std::size_t least_paths = 3;  // walked at least
  std::size_t max_paths = 12;   // in all
  std::size_t width = 4;        // a path ends when so many of its nearest have answered
  std::size_t path_calls = 14;  // at most, of one path
  double radius =
      1;  // share of all ids around the target in which a path's last members must lie: see near()
  std::size_t quorum = 6;  // paths that found the value
  // Members near the target that are called, too, when all holders agree. Byzantine members that replay an
  // old record name only each other, but a member on the way to them may have named others.
  std::size_t confirm = 1;
  std::size_t per_group = 2;  // members of one address group that are called; 0 = no limit
  std::size_t anchored = 3;   // every n-th path begins at an anchor; 0 = none
  int tries = 2;              // calls to one member; later ones only if the path has no other member to call
  // After so many contacts of one answer failed and none answered, the rest of that answer is dropped.
  int source_failures = 3;
};

// A contact that the lookup knows at its end. `source`: the answer that named it first; equal numbers mean
// one answer.
struct KnownContact {
  net::Contact contact;
  std::size_t source = 0;
};

struct LookupResult {
  std::vector<net::Contact> answered;  // nearest first
  std::vector<KnownContact>
      known;  // and those that they named and the lookup did not call; nearest first, max_known at most
  std::vector<Record> records;  // valid ones, of each publisher the highest sequence
  std::size_t holders = 0;      // members that had a valid record
  std::size_t messages = 0;     // calls made
  std::size_t failures = 0;     // calls without an answer
  std::size_t paths = 0;
  std::size_t hops =
      0;  // calls from here to the nearest member that answered; for a value: to the farthest holder called
};

class Lookup : public std::enable_shared_from_this<Lookup> {
 public:
  struct Services {
    // Calls one member; the lookup handles the answer later.
    std::function<void(const net::Contact&, net::CallDone)> ask;
    std::function<bool(const Record&)> valid;  // belongs to the target, is signed, has not expired
    std::function<void(LookupResult)> done;    // once
  };

  // method: DhtFindNode or DhtFindValue. first: the own contacts, nearest first. anchors: members known from
  // outside the table, in any order; if Byzantine members filled the table first, only the paths from anchors
  // avoid them. order: random, and unknown to others.
  // Threads: one. Keeps itself alive until it is done or stop() is called.
  Lookup(const net::NodeId& self, const net::NodeId& target, net::Method method, bool one_lan,
         LookupOptions options, std::vector<net::Contact> first, std::vector<net::Contact> anchors,
         const net::NodeId& order, Services services);
  void start();
  // Ends the lookup; done is not called.
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
  bool was_called(const net::Contact& contact) const;
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
  std::unordered_set<net::NodeId, net::NodeIdHash> answered_;
  std::unordered_map<net::NodeId, std::vector<platform::Endpoint>, net::NodeIdHash> called_at_;
  std::unordered_map<std::uint64_t, std::size_t> asked_in_group_;
  std::size_t confirmed_ = 0, confirming_ = 0;
  bool agree_ = true;  // all holders gave the same record of each publisher
  std::map<crypto::PublicKey, Record> records_;
  std::vector<Candidate> members_;  // those that answered
  LookupResult result_;
  bool over_ = false;
};

}  // namespace neuroshard::dht
