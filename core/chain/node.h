// A node of the chain: it has or fetches a history, follows it, votes when it is in the committee, and says
// when it goes and comes back (docs/protocol/chain.md). A BlockContent makes and judges the rounds.
//
//   Starting   → Beginning (no history on the disk) | Following
//   Beginning  → Following (a genesis was made, or a history fetched)
//   Following  → Voting (this node is in the next block's committee)
//   Voting     → Following
//   any        → Ended
//
// Threads: the executor's, all members. All services outlive the node.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "core/base/log.h"
#include "core/chain/continuation.h"
#include "core/chain/durable_state.h"
#include "core/chain/height.h"
#include "core/chain/membership.h"
#include "core/chain/open_start.h"
#include "core/chain/restart_guard.h"
#include "core/chain/rights.h"
#include "core/chain/server.h"
#include "core/chain/sync.h"
#include "core/chain/vouching.h"
#include "core/net/method_table.h"

namespace neuroshard::chain {

struct ChainServices {
  const crypto::KeyPair& key;
  net::PeerCaller& caller;
  Peers& peers;
  Executor& executor;
  const Clock& clock;
  ChainStore& store;
  SignatureChecks& checks;
  RegistryCache* cache = nullptr;  // null: none but the tip's
  BlockContent& content;
  Logger& logger;
  net::TrafficMeter* traffic = nullptr;  // null: no limit of the month's data
};

struct ChainOptions {
  ChainRules rules;
  crypto::Delegation delegation;  // of this node's wallet
  std::optional<HeldVoucher> voucher;
  std::uint32_t beacon_length = beacon_chain_length;
  RowSet rows;                // that this node holds
  bool follows_plan = false;  // where members hold some rows: else its owner chose them
  bool vouch_on_lan = false;  // for candidates of the own local network: an open start
  // Loopback addresses are of it, too. Callers that come through a relay have them.
  bool vouch_on_loopback = false;
  TrustAnchor trust;
  InitialModel model;  // for a genesis
  OpenStartOptions open_start;
  AgreementOptions agreement;
  SyncOptions sync;
  OutboxOptions outbox;
  RecoveryOptions recovery;
  Duration tick = std::chrono::milliseconds(500);
};

enum class NodeState : std::uint8_t { Starting, Beginning, Following, Voting, Ended };
std::string_view to_string(NodeState state);

struct ChainView {
  NodeState state = NodeState::Starting;
  Hash256 genesis{};
  std::uint64_t height = 0, round = 0;
  std::uint32_t view = 0;
  bool member = false, voter = false, active = false;
  std::size_t members = 0, voters = 0, committee = 0;
  std::uint64_t active_units = 0, heard_units = 0;
  std::vector<net::NodeId> missing;  // of the committee: not heard lately
  bool block_due = false, stalled = false;
  bool runs_twice = false;   // another process has this node's key (restart_guard.h)
  bool lacks_votes = false;  // its record of them can't be read, so it does not vote on the next block
  bool revoked = false;      // this node's wallet has revoked its key
  Outlook outlook = Outlook::Certifies;
  std::optional<Hash256> asks_succession;  // waits for this node's person, as a proposal or adopted by others
  bool refused_anchors = false;            // no history yet, and a peer begins with other weights
  // The network's, or the one that it will have, where this node's initial model is for another.
  std::optional<Hash256> wanted_tokenizer;
  std::uint64_t evidence = 0;                        // proofs that this node found or received
  bool is_writable = true;                           // false: votes can't be saved, so this node is silent
  std::uint64_t bytes_sent = 0, bytes_received = 0;  // of posts
  AdmissionProgress admission;
  ChainSync::Seen peers;
};

class ChainNode final : public ChainPort {
 public:
  ChainNode(ChainServices services, ChainOptions options, const Hash256& beacon_seed, std::uint64_t seed);
  ~ChainNode() override;

  // Reads the disk and begins.
  void start();
  // A peer's call of one of the chain's methods. The reply names the fault that a post proves: honest nodes
  // write no other bytes, and check signatures before they pass anything on.
  void on_call(const net::Caller& from, net::Method method, ByteSpan request, const net::Reply& reply);

  void advance() override;
  void set_ready(bool ready) override;
  // Says that this node goes, and votes on until the block that says so; or comes back.
  void set_away(bool away);
  // Once it has begun; see OwnMembership.
  void want(MemberWishes wishes);
  // The chain shows this node dormant or not at all: the others go on without it.
  bool is_away() const;
  // Gives a voucher of this node's wallet, for an invitation. Denied: this node's wallet has no vote.
  Expected<HeldVoucher> give_voucher(std::uint64_t expires_ms);
  // A revocation that its wallet has signed: to all voters. NotFound: this node has no history. Denied says why no
  // block can contain it.
  Expected<void> revoke(const Statement& revocation);

  void post(std::uint64_t key, const RoundsPost& item, Reach reach,
            const std::vector<net::NodeId>& only) override;
  void drop_post(std::uint64_t key) override;
  void add_evidence(const Evidence& evidence) override;
  bool may_sign(std::uint64_t round) const override { return restart_.may_sign(round); }

  // Going on without voters that are gone: a person's decision.
  Continuation& continuation() { return continuation_; }

  const History* history() const { return history_ ? &*history_ : nullptr; }
  Expected<Hash256> beacon_reveal(std::uint64_t round) override;
  ChainView view() const;
  ChainStatus status() const;

 private:
  void tick();
  void enter(NodeState state);
  // ---- node.cpp: history
  void begin_history(History history, bool fresh);
  Expected<void> take_block(const CertifiedBlock& block, bool live);
  void on_new_tip(const CertifiedBlock& block, bool live);
  void open_height();
  void retire_height();
  void announce(const CertifiedBlock& block);
  void try_open_start();
  void handle(OpenStart::Output output);
  void say_missing_statement();
  void send_heartbeat();

  // ---- node_calls.cpp: what peers send
  net::Answer on_post(const net::Caller& caller, ByteSpan request);
  Expected<Bytes> on_status_request(const net::NodeId& from, ByteSpan request);
  Verdict on_item(const net::Caller& caller, ChainItem& item);
  Verdict on_agreement(const net::NodeId& from, const AgreementItem& item, std::uint64_t height,
                       const Hash256& previous);
  Verdict on_certified(const net::Caller& caller, const CertifiedPost& post);
  Verdict on_heartbeat(const net::NodeId& from, const Heartbeat& heartbeat);
  Verdict take_evidence(const Evidence& evidence);
  void on_answer(const net::NodeId& from, const PostAnswer& answer);
  void on_status(const net::Contact& from, const ChainStatus& status);

  ChainServices services_;
  const ChainOptions options_;
  const net::NodeId self_;
  const Hash256 beacon_seed_;  // for a data directory that has none yet
  Rng rng_;
  DurableState durable_;
  ChainServer server_;
  Outbox outbox_;
  Relay relay_;
  Mempool mempool_;
  PresenceWatch presence_;
  LocalMemory local_;
  std::optional<OwnMembership> membership_;  // from start() on
  RestartGuard restart_;
  StrangerFetches strangers_;
  ChainSync sync_;
  Continuation continuation_;
  Vouching vouching_;
  std::optional<OpenStart> open_start_;
  std::optional<History> history_;
  std::unique_ptr<Height> height_;
  KeptVotes kept_votes_;
  NodeState state_ = NodeState::Starting;
  bool away_ = false;                      // a person or a shutdown said so
  bool ready_ = false;                     // the content holds what a voter needs
  std::optional<std::uint32_t> led_view_;  // of the newest block, if this node proposed it
  std::uint32_t led_by_ = 0;               // the member that led the newest block's view
  std::vector<Evidence> own_evidence_;     // that no block has yet
  std::uint64_t relayed_ = 0;
  bool is_behind_blocks_ = false;  // this node's wall clock
  // It may have taken votes on the next block before a start, or before it opened the height once more.
  bool forgot_votes_ = true;
  MonotonicTime next_heartbeat_{};
  Statement said_;  // the last own statement
  std::uint64_t evidence_ = 0, bytes_received_ = 0;
  std::unique_ptr<TimerHandle> timer_;
  Lifetime lifetime_;
};

}  // namespace neuroshard::chain
