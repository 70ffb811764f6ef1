// Asks peers for what this node lacks of the round in progress: contributions that must be in the close, or
// that the close names, and payloads. Gives peers what they ask for.
//
// Until the close, payloads go only to members whose own contribution is here: they can't copy them any more.
// All services outlive it. Threads: the executor's.
#pragma once

#include <deque>
#include <functional>
#include <map>
#include <optional>
#include <set>
#include <utility>
#include <vector>

#include "core/base/clock.h"
#include "core/base/lifetime.h"
#include "core/chain/outbox.h"
#include "core/rounds/fetch.h"
#include "core/rounds/vector_book.h"

namespace neuroshard::rounds {

class RoundExchange {
 public:
  struct Services {
    net::PeerCaller& caller;
    chain::Peers& peers;
    RoundFetcher& fetcher;
    ContributionBook& book;
    VectorBook& vectors;
    const Clock& clock;
    RoundWork& work;
  };
  struct Events {
    std::function<void()> arrived;
    std::function<void(const chain::Evidence&)> found_evidence;
    std::function<void(const Error&)> cannot;  // this node can't keep a payload now; it tries again
  };
  RoundExchange(Services services, const chain::ChainRules& rules, FetchOptions options,
                const net::NodeId& self, Events events);

  // A new round: the books are about to be opened.
  void open();
  // A close that was certified on `before`: what it has of a member may contradict what this node was sent.
  void compare(const chain::ChainTip& before, const chain::CloseSection& close);
  // The payloads of this node's own contribution, which is in the book. readings: empty after a restart. Then the node
  // checks them first, and asks for those that are wrong.
  void take_own(std::uint32_t member, const std::vector<Payload>& payloads,
                const std::vector<PayloadReading>& readings);
  // Own payloads are being checked.
  bool checks() const { return !checking_.empty(); }
  // Asks for what is missing. payloads: this node may have them before the close. behind: this node sees no end
  // of the round yet, so it also asks for what the others' vectors name.
  void ask(const chain::ChainTip& tip, bool payloads, bool behind);
  // A payload or a contribution of this round or of the one before; where results can be taken back, of all rounds that are
  // not settled. Leaves of a payload only for members, and where members check rows. No payload is read as a whole. NotFound.
  Expected<Bytes> piece(const net::NodeId& from, const PieceRequest& request,
                        const chain::ChainTip& tip) const;
  // The contribution that the close names, not another one of the same member.
  static bool is_certified(const HeldContribution& held, std::uint32_t member, const chain::ChainTip& tip);

 private:
  // Member and root: a contribution may name the root of another member's payload.
  using PayloadKey = std::pair<std::uint32_t, Hash256>;
  struct WantedPayload {
    std::uint32_t member = 0;
    chain::RowWork work;
    PayloadKey key() const { return {member, work.payload}; }
  };
  // After each failure it rests for longer: a contribution may have no payload at all.
  struct AskedPayload {
    bool under_way = false;
    Duration pause{};      // before the last try
    MonotonicTime next{};  // not before
  };
  void check_own(const WantedPayload& wanted, const net::NodeId& contributor, const Payload& payload);
  void ask_for_contributions(const chain::ChainTip& tip, bool behind);
  void ask_for_contribution(std::uint32_t member, const chain::ChainTip& tip);
  void ask_for_payloads(const chain::ChainTip& tip);
  // At once only as many as most_candidates_at_once() says.
  void ask_for_some(std::vector<WantedPayload> wanted, const chain::ChainTip& tip);
  // False: it is under way, or rests.
  bool ask_for_payload(const WantedPayload& wanted, const chain::ChainTip& tip);
  void got_payload(const WantedPayload& wanted, Expected<ByteSourcePtr> payload,
                   const PayloadReading& reading);
  void take(std::uint32_t member, const net::NodeId& id, const HeldContributionPtr& held);
  // row: of the payload; nothing: of the contribution.
  std::vector<net::NodeId> holders(std::uint32_t member, std::optional<std::uint32_t> row,
                                   const chain::ChainTip& tip);

  Services services_;
  const chain::ChainRules& rules_;
  const FetchOptions options_;
  const net::NodeId self_;
  const Events events_;
  // Of earlier rounds, newest first: for peers that are a step behind, and those that check rows.
  std::deque<ContributionBook> earlier_;
  std::optional<chain::ChainTip> tip_;  // of the last ask()
  std::map<PayloadKey, AskedPayload> payloads_;
  std::set<PayloadKey> checking_;  // own ones; nobody is asked for them meanwhile
  std::set<std::uint32_t> contributions_;
  bool closed_ = false;         // the round, at the last ask()
  bool all_certified_ = false;  // each contribution that the close names is here
  std::uint64_t questions_ = 0;
  Lifetime lifetime_;
};

}  // namespace neuroshard::rounds
