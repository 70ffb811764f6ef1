// Following the chain that others hold: asks peers how far they are, fetches blocks that this node lacks, and
// verifies a foreign history beside its own. Decides nothing about which history is right beyond what
// TrustAnchor and the merge rule say.
//
// Threads: the executor's. All services outlive it.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>

#include "core/base/executor.h"
#include "core/base/lifetime.h"
#include "core/base/rng.h"
#include "core/chain/history.h"
#include "core/chain/messages.h"
#include "core/chain/outbox.h"
#include "core/chain/status.h"
#include "core/chain/stranger_fetches.h"

namespace neuroshard::chain {

struct SyncOptions {
  Duration poll = std::chrono::seconds(5);
  Duration allowed = std::chrono::seconds(5);
  std::size_t asked_at_once = 3;
  // A newcomer asks so many address groups before it takes a history, or for so long where there are fewer.
  std::size_t address_groups = 3;
  Duration ask_for = std::chrono::seconds(6);
};

class ChainSync {
 public:
  struct Host {
    // The node's own history; null: none yet.
    std::function<const History*()> history;
    // Blocks that follow the own tip, in order; the first error ends the fetch from this peer.
    std::function<Expected<void>(const CertifiedBlock& block)> append;
    // A verified foreign history that takes the own one's place, or is the first.
    std::function<void(History history)> adopt;
    // A peer's status, whatever its history.
    std::function<void(const net::Contact& from, const ChainStatus& status)> on_status;
    std::function<StatusRequest()> status_request;
    // The next block is known and waits for this node's person: its blocks are fetched seldom, to look for another one.
    std::function<bool()> waits_for_person;
  };
  ChainSync(History::Services services, net::PeerCaller& caller, Peers& peers, Executor& executor,
            const Clock& clock, SyncOptions options, TrustAnchor trust, const net::NodeId& self,
            std::uint64_t seed, StrangerFetches& strangers, Host host);

  // Polls when it is time; called at every tick.
  void tick();
  // This peer is ahead, as its answer or announcement says.
  void catch_up(const net::NodeId& from);
  void catch_up(const net::Contact& from);
  // The same of a stranger, within its limits. One at a time, beside all others: strangers that do not answer keep
  // nobody waiting.
  void catch_up_stranger(const net::Caller& from);
  // For its status, unless it was asked and has not answered yet.
  void ask(const net::NodeId& peer);
  // For people and alerts.
  struct Seen {
    std::size_t answering = 0;                 // peers that answered lately
    std::map<Hash256, std::size_t> histories;  // genesis: peers that hold it
    std::uint64_t highest = 0;                 // of this history
    std::string refused;  // why a peer's history was not taken, the last time; empty: never
  };
  Seen seen() const;
  // Every node that was asked lately has no history either, or claims one and shows nothing of it; or none
  // answers.
  bool finds_no_history() const;
  bool fetches() const { return !fetching_.empty(); }

 private:
  struct Answer {
    net::Contact contact;
    ChainStatus status;
    MonotonicTime at{};
  };
  // Calls with limits for what strangers answer.
  void call(const net::Contact& contact, net::Method method, Bytes request, net::CallDone done);
  void ask_status(const net::Contact& contact);
  void got_status(const net::Contact& contact, const ChainStatus& status);
  void consider(const net::Contact& contact, const ChainStatus& status);
  void fetch_blocks(const net::Contact& contact);
  bool got_blocks(const net::Contact& contact, Expected<Bytes> answer);  // whether there were new ones
  void fetch_foreign(const net::Contact& contact, const Hash256& genesis);
  void got_foreign(const net::Contact& contact, const Hash256& genesis, Expected<Bytes> answer);
  bool begins_fetch(const net::NodeId& id);
  // Without the stranger whose word is followed.
  std::size_t counted(const std::set<net::NodeId>& ids) const;
  void free_stranger();
  bool wants_foreign(const ChainStatus& status) const;
  std::size_t answering(const Hash256& genesis) const;
  bool is_believed(const net::NodeId& id) const;
  void did_not_show(const net::NodeId& source, const Hash256& genesis);
  void finish_foreign(const Hash256& genesis);
  std::size_t groups_asked() const;
  MeetingSide side(const History& history) const;

  History::Services services_;
  net::PeerCaller& caller_;
  Peers& peers_;
  Executor& executor_;
  const Clock& clock_;
  const SyncOptions options_;
  const TrustAnchor trust_;
  const net::NodeId self_;
  Rng rng_;
  StrangerFetches& strangers_;
  Host host_;
  std::map<net::NodeId, Answer> answers_;
  std::set<net::NodeId> asked_;                     // status under way
  std::set<net::NodeId> fetching_;                  // blocks under way
  std::vector<net::Contact> others_;                // asked once these came
  std::optional<net::NodeId> stranger_;             // whose word is followed now
  std::map<net::NodeId, MonotonicTime> gave_none_;  // strangers whose word was nothing, and when
  struct Foreign {
    ForeignChain chain;
    std::set<net::NodeId> sources;
  };
  std::map<Hash256, Foreign> foreign_;  // by genesis
  // True histories that this node's own goes before: when that was found, and how many answered for them.
  std::map<Hash256, std::pair<MonotonicTime, std::size_t>> compared_;
  // Peers whose claims about other histories were not shown to be true, this often in succession.
  std::map<net::NodeId, std::size_t> unshown_;
  std::string refused_;
  MonotonicTime next_poll_{};
  MonotonicTime look_again_{};  // while the next block waits for the person
  std::optional<MonotonicTime> first_answer_;
  Lifetime lifetime_;
};

}  // namespace neuroshard::chain
