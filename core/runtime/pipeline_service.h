// The pipeline of a running node whose network's members hold parts of the model (docs/protocol/pipeline.md): a stage for
// the part that this node holds, and a driver for the text that it trains on. The registry of the chain says who holds the
// other parts (part_holders.h). Texts that are generated have a stage and drivers of their own (part_texts.h).
//
// A driver's holders are others in each round: where parts have different numbers of holders, none of them has less to do
// for long and so comes too late with its contributions. While the compute thread does something else for longer than
// `patience_with_idleness`, the stages are paused, and drivers go around them.
//
// Threads: the host's executor, unless a comment says otherwise. Errors: none; what is missing is in the view and the log.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "core/base/lifetime.h"
#include "core/config/model_part.h"
#include "core/engine/pipeline_trainer.h"
#include "core/net/method_table.h"
#include "core/node/snapshot.h"
#include "core/pipeline/driver.h"
#include "core/pipeline/peer_lines.h"
#include "core/pipeline/stage_worker.h"
#include "core/runtime/part_holders.h"
#include "core/runtime/part_texts.h"
#include "core/runtime/peer_host.h"

namespace neuroshard::runtime {

class PipelineService final {
 public:
  static constexpr Duration patience_with_idleness = std::chrono::seconds(3);

  struct Services {  // all outlive it
    PeerHost& host;
    const Clock& clock;
    Logger& logger;
    crypto::Entropy& entropy;
  };
  // Any thread. part: that this node holds first; the models that come may be of others.
  PipelineService(const Services& services, const config::ConsensusPart& consensus, const Hash256& network,
                  std::uint32_t part, PartHolders::FindRegistry registry, PartTexts::FindAnchor anchor);
  ~PipelineService();
  // For the engine.  Threads: any.
  const std::shared_ptr<engine::PipelineTrainer>& trainer() const { return trainer_; }

  void open(std::uint64_t seed, bool one_lan);
  void close();

  node::PartView view() const;
  // Millions of FLOP/s while this node trains; 0: not known yet.
  std::uint32_t speed() const;
  // Why no text of this node is trained on; empty: it is.
  const std::string& trouble() const { return trouble_; }

 private:
  void take(const net::Caller& from, std::shared_ptr<net::PeerStream> stream);
  void on_ready(const engine::PipelinePart& part);
  void on_gone();
  void tick();
  void watch_idleness();
  void review_sessions();
  void end_round();
  void drive();
  void log_lost(const pipeline::Lost& lost);
  void end_driver();
  std::vector<node::HopView> path() const;
  std::vector<std::uint32_t> part_speeds(const chain::Registry& registry) const;
  pipeline::Surroundings around();
  pipeline::Route route(const chain::Registry& registry, std::vector<pipeline::RouteHop> hops) const;
  Expected<void> admit(const pipeline::Route& route) const;

  const Services services_;
  const Bytes network_;
  const compute::ModelShape shape_;
  const std::uint64_t pipeline_bytes_;
  const PartTexts::FindAnchor find_anchor_;
  PartHolders holders_;
  const std::shared_ptr<engine::PipelineTrainer> trainer_;

  pipeline::ExchangeLog exchanges_;
  std::unique_ptr<pipeline::PeerLines> lines_;
  std::optional<engine::PipelinePart> part_;
  std::unique_ptr<pipeline::SessionTable> sessions_;  // before what serves them
  std::unique_ptr<pipeline::StageWorker> worker_;
  std::unique_ptr<PartTexts> texts_;
  std::unique_ptr<pipeline::Driver> driver_;
  std::uint64_t driver_round_ = 0;             // in which the driver's route was chosen or found right
  std::uint64_t finished_ = 0, replaced_ = 0;  // by earlier drivers
  std::uint64_t lost_ = 0;                     // by stages of earlier models
  std::uint64_t exchanged_in_ = 0;             // the round of exchanges_
  chain::RegistryPtr reviewed_;                // by which the sessions were reviewed last
  std::map<net::NodeId, MonotonicTime> told_;  // when the log said last that this node does not answer
  std::string trouble_;
  std::optional<net::MethodTable::Registration> streams_;
  std::unique_ptr<TimerHandle> timer_;
  Lifetime lifetime_;
};

}  // namespace neuroshard::runtime
