// A population of nodes of the chain that train together in the simulated world. The nodes are those of
// core/chain and core/rounds, with their signatures, on virtual time. The world sees all nodes at once and
// checks whether two blocks of one height ever differ, whether a contribution counts twice, and whether all
// hold the certified anchors.
//
// Threads: one. Same options, same run.
#pragma once

#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <unordered_map>
#include <vector>

#include "core/chain/node.h"
#include "core/rounds/training_rounds.h"
#include "core/sim/chain_shared.h"
#include "core/sim/host_learners.h"
#include "core/sim/network.h"
#include "core/sim/world.h"

namespace neuroshard::sim {

// Room for payloads and anchors; while the disk is full, it takes nothing new, and nor do the chain's files.
class DiskSpool final : public Spool {
 public:
  Expected<std::unique_ptr<SpoolItem>> create(std::uint64_t bytes) override {
    if (full) return make_error(ErrorCode::Exhausted, "the disk is full; free some space");
    return memory_.create(bytes);
  }
  bool full = false;

 private:
  MemorySpool memory_;
};

// A node's disk: what was written survives the node.
struct ChainDisk {
  DiskSpool spool;
  std::map<chain::ChainStore::Record, std::shared_ptr<const Bytes>> records;
  std::uint64_t first = 0;
  std::vector<std::shared_ptr<const Bytes>> blocks;
  std::map<rounds::RoundStore::Record, ByteSourcePtr> rounds;
  std::map<rounds::RoundStore::Record, int> failing;  // of the next writes of a record, so many fail
  // By row, newest first: round and anchor. Where rows can be taken back, all that a row can return to.
  std::map<std::uint32_t, std::deque<std::pair<std::uint64_t, rounds::Anchor>>> anchors;
  std::uint32_t size = 0;  // of the model, from the next start on
};

struct ChainWorldOptions {
  std::uint64_t seed = 1;
  std::size_t nodes = 4;
  std::size_t founders = 0;          // nodes that the genesis names; 0: all
  std::size_t nodes_per_wallet = 1;  // consecutive ones
  bool open_start = false;           // no genesis beforehand: the nodes make one
  // All begin from a snapshot of the registry after the first block, as newcomers may. For more nodes than
  // can sign a genesis.
  bool from_snapshot = false;
  std::uint32_t beacon_length = 4096;
  NetworkOptions network;
  TrainerOptions trainer;
  chain::ChainOptions chain;         // rules' network, delegation and anchors are filled in
  rounds::TrainingOptions training;  // chain and shapes are filled in
  std::size_t fragments = 1;         // rows; each round closes one of them
  // Rows of a node, asked at each start; null: the rows are fragments, and all nodes hold all of them. Else each round closes all rows, and
  // the model trains each row by itself.
  std::function<chain::RowSet(std::size_t node)> rows_of;
  std::vector<float> initial;                                // the first anchor's weights
  Duration work_time = std::chrono::milliseconds(20);        // of a computation beside the protocol
  Duration disk_time = std::chrono::milliseconds(1);         // of a write
  std::size_t contacts = 8;                                  // that a directory gives to whom asks for some
  std::function<rounds::RoundRoom*(std::size_t node)> room;  // of its user's limits; null: no limits
  std::function<rounds::StepPool*(std::size_t node)>
      steps;                   // that makes its outer steps; null: as the protocol says
  rounds::ResizeRow resize;    // null: the model keeps its size. The number of a row's values stays the same
  bool omissions_bind = true;  // false: what a test shows to be needed is left away
};

// The cost of a node's part so far.
struct NodeCost {
  std::uint64_t messages = 0;  // requests and answers that it sent
  std::uint64_t bytes = 0;     // of them
  std::uint64_t received = 0;  // bytes
  std::uint64_t checks = 0;    // signatures verified
  std::uint64_t written = 0;   // bytes to its disk, without anchors
};

struct ChainWorldSeen {
  std::uint64_t blocks = 0, rounds = 0;
  std::uint64_t conflicts = 0;  // two blocks of one height of one history
  std::uint64_t twice = 0;      // an honest node's work counted in two rounds
  std::uint64_t contributions = 0, rows_carried = 0;
  std::map<std::uint64_t, std::size_t> contributors;  // by round
  std::uint64_t wrong_anchors = 0;                    // honest nodes took different anchors for one hash
  Duration longest_pause{};                           // between two blocks
};

class ChainWorld {
 public:
  using MakeModel = std::function<std::unique_ptr<LocalModel>(std::size_t node, std::uint64_t lives)>;
  using MakeDistortion = std::function<RoundTrainer::Distortion(std::size_t node)>;
  // The way out of a Byzantine node, which may change things; null where honest. The caller given is the
  // honest one.
  using MakeCaller = std::function<std::unique_ptr<net::PeerCaller>(std::size_t node, net::PeerCaller& out,
                                                                    const crypto::KeyPair& key)>;
  // Answers for a Byzantine node; false: the honest node answers.
  using Answers = std::function<bool(const net::Caller& from, net::Method method, ByteSpan request,
                                     const net::Respond& respond)>;
  // Changes the sections that an honest leader would propose.
  using ChangeSections = std::function<void(const chain::ChainTip& tip, chain::Sections* sections)>;
  ChainWorld(ChainWorldOptions options, MakeModel make_model, MakeDistortion distortion = {},
             MakeCaller caller = {});
  ~ChainWorld();

  World& world() { return world_; }
  Network& network() { return network_; }
  std::size_t size() const { return hosts_.size(); }
  const Hash256& network_id() const { return options_.chain.rules.network; }

  // A node's power button. Its disk survives.
  void start(std::size_t node);
  void start_all();
  void kill(std::size_t node);
  bool running(std::size_t node) const { return hosts_.at(node)->alive != nullptr; }
  ChainDisk& disk(std::size_t node) { return hosts_.at(node)->disk; }
  void set_part(std::size_t node, int part);
  void set_honest(std::size_t node, bool honest) { hosts_.at(node)->honest = honest; }
  // Both make the node Byzantine.
  void set_answers(std::size_t node, Answers answers);
  void set_sections(std::size_t node, ChangeSections change);
  void set_step_time(std::size_t node, Duration step_time) { hosts_.at(node)->step_time = step_time; }
  void set_voucher(std::size_t node, chain::HeldVoucher voucher) { hosts_.at(node)->voucher = voucher; }

  chain::ChainNode& chain(std::size_t node) { return *hosts_.at(node)->chain; }
  rounds::TrainingRounds& training(std::size_t node) { return *hosts_.at(node)->training; }
  HostLearners& learners(std::size_t node) { return *hosts_.at(node)->learners; }
  RoundTrainer& trainer(std::size_t node) { return learners(node).whole(); }
  const net::NodeId& id(std::size_t node) const { return hosts_.at(node)->id; }
  const crypto::KeyPair& key(std::size_t node) const { return hosts_.at(node)->key; }
  std::uint64_t height(std::size_t node) const;  // 0 without a history
  std::uint64_t round(std::size_t node) const;

  // Runs until every running honest node has the result of `round`, at most for `limit`; whether they have.
  bool run_to_round(std::uint64_t round, Duration limit);
  bool run_until(const std::function<bool()>& condition, Duration limit);
  const ChainWorldSeen& seen() const { return seen_; }
  NodeCost cost(std::size_t node) const;
  // The newest certified anchor of row 0; null before the first round.
  const rounds::Anchor& newest_anchor() const { return newest_.front().second; }
  // The weights of the newest certified anchors of all rows.
  std::vector<float> newest_weights() const;
  // Share of running honest nodes that hold the newest anchors.
  double agreement_rate() const;

 private:
  class Directory;
  class Store;
  class RoundsStore;
  class Work;
  class CountingCaller;
  class Watched;  // passes blocks on to the rounds and looks at them
  struct Host {
    Host(crypto::KeyPair pair, crypto::KeyPair wallet_pair, SharedChecks& shared);
    ~Host();
    const crypto::KeyPair key, wallet;
    const net::NodeId id;
    sim::Host address = 0;
    ChainDisk disk;
    Duration step_time{};
    std::uint64_t lives = 0;
    bool honest = true;
    std::optional<chain::HeldVoucher> voucher;
    chain::RowSet rows;  // that it holds
    Answers answers;
    ChangeSections change_sections;
    NodeCost cost;  // without the checks
    CountedChecks counted;
    // Of one life, in the order of their making.
    std::shared_ptr<bool> alive;
    std::unique_ptr<HostExecutor> executor;
    std::unique_ptr<LocalModel> model;
    std::unique_ptr<HostLearners> learners;
    std::unique_ptr<Directory> directory;
    std::unique_ptr<Store> store;
    std::unique_ptr<RoundsStore> rounds_store;
    std::unique_ptr<Work> work;
    std::unique_ptr<net::PeerCaller> counting, caller;
    std::unique_ptr<rounds::TrainingRounds> training;
    std::unique_ptr<Watched> watched;
    std::unique_ptr<chain::ChainNode> chain;
    void end();
  };

  crypto::Delegation delegation(const Host& host) const;
  chain::CertifiedBlock make_genesis();
  chain::CertifiedBlock sign_genesis(const chain::BlockBody& body, const std::vector<const Host*>& signers);
  void begin_at_snapshot();
  void on_call(std::size_t node, const net::Caller& from, net::Method method, ByteSpan request,
               const net::Respond& respond);
  bool is_honest(const chain::Registry& registry, std::uint32_t member) const;
  void saw_anchor(std::size_t node, std::uint64_t round, std::uint32_t row, const rounds::Anchor& anchor);
  void saw_block(std::size_t node, const chain::ChainTip& before, const chain::CertifiedBlock& block);

  ChainWorldOptions options_;
  NullLogger logger_;
  World world_;
  Network network_;
  SharedChecks checks_;
  SharedChain cache_;
  SharedRounds pool_;
  SharedSteps steps_;
  BytesPool disks_;
  std::vector<std::unique_ptr<Host>> hosts_;
  std::unordered_map<net::NodeId, std::size_t, net::NodeIdHash> by_id_;
  std::vector<rounds::Fragment> fragments_;                       // by row
  std::vector<rounds::Anchor> initial_;                           // by row
  std::vector<std::pair<std::uint64_t, rounds::Anchor>> newest_;  // by row: round, anchor
  std::optional<chain::CertifiedBlock> genesis_;
  MakeModel make_model_;
  MakeDistortion make_distortion_;
  MakeCaller make_caller_;
  ChainWorldSeen seen_;
  std::map<std::pair<Hash256, std::uint64_t>, Hash256> blocks_;  // by genesis and height
  std::map<Hash256, std::uint64_t> counted_;  // work of honest nodes: the round that counted it
  std::deque<std::pair<Hash256, rounds::Anchor>>
      anchors_;  // the last ones, as the first honest node took them
  std::optional<MonotonicTime> last_block_;
};

}  // namespace neuroshard::sim
