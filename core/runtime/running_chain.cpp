#include "core/runtime/running_chain.h"

#include <array>
#include <utility>

#include "core/config/model_part.h"

namespace neuroshard::runtime {
namespace {

// States that stay besides the newest: a row can be taken back; or a change of size that nobody certified was the last one
// written.
std::size_t earlier_states(const config::ConsensusPart& consensus) {
  if (!config::model_parts(consensus).empty()) return chain::rounds_to_settle;
  return consensus.sizes.empty() ? 0 : 1;
}

}  // namespace

Expected<std::unique_ptr<RunningChain>> RunningChain::open(const std::string& directory,
                                                           const config::ConsensusPart& consensus,
                                                           const RuntimeServices& runtime,
                                                           Executor& executor) {
  const std::string folder = directory + "/chain";
  std::unique_ptr<RunningChain> chain(new RunningChain());
  NS_ASSIGN_OR_RETURN(
      chain->files_,
      engine::ChainFiles::open(runtime.files, folder, earlier_states(consensus), runtime.logger, executor));
  NS_ASSIGN_OR_RETURN(chain->own_files_,
                      engine::RoundFiles::open(runtime.files, folder + "/own", runtime.logger, executor));
  return chain;
}

void RunningChain::begin(const Services& services, const Model& model, const crypto::Delegation& delegation,
                         const ChainTrust& trust, ChainBeginning& beginning, Events events) {
  Logger& logger = services.runtime.logger;
  for (const std::string& note : beginning.notes) logger.warning("rounds", note);
  rows_ = model.facts.fragments.size();
  held_ = model.facts.rows;
  training_ = std::make_unique<rounds::TrainingRounds>(
      rounds::TrainingServices{services.key, services.caller, services.peers, services.executor,
                               services.clock, model.learners, *own_files_, services.work, services.spool,
                               services.checks, logger, nullptr, nullptr, services.batches, services.room,
                               model.resize},
      training_options(model.facts), std::move(events.anchor));
  content_ = std::make_unique<ObservedContent>(*training_, std::move(events.blocks));
  chain::ChainOptions options = chain_options(model.facts, delegation, beginning.hashes);
  trust.fill(options);
  Hash256 beacon_seed{};
  std::array<std::uint8_t, 8> seed{};
  services.runtime.entropy.fill({beacon_seed.data(), beacon_seed.size()});
  services.runtime.entropy.fill({seed.data(), seed.size()});
  node_ = std::make_unique<chain::ChainNode>(
      chain::ChainServices{services.key, services.caller, services.peers, services.executor, services.clock,
                           *files_, services.checks, nullptr, *content_, logger, services.traffic},
      std::move(options), beacon_seed, load_le<std::uint64_t>(seed.data()));
  training_->attach(*node_);
  offer_states(beginning);
  training_->start();
  node_->start();
}

void RunningChain::offer_states(ChainBeginning& beginning) {
  for (std::uint32_t row = 0; row < rows_; ++row) {
    if (!held_.has(row)) continue;
    if (auto& kept = beginning.kept[row]; !kept.empty() && has_blocks()) {
      kept_[row] = kept.front().round;
      for (engine::StateFile& state : kept) training_->offer(row, state.round, std::move(state.state));
    } else if (beginning.first[row]) {
      training_->offer(row, 0, beginning.first[row]);
    }
  }
}

// The block that names the state may go to the disk after it.
void RunningChain::keep(std::uint32_t row, std::uint64_t round, const rounds::Anchor& anchor) {
  if (const auto kept = kept_.find(row); kept == kept_.end() || kept->second != round) {
    // The first state of a new part: those of the former one are of no use any more.
    for (std::uint32_t other = 0; kept_.empty() && other < rows_; ++other)
      if (!held_.has(other)) files_->forget_row(other);
    kept_[row] = round;
    files_->save_row(row, round, anchor);
  }
  if (training_->view().holds) files_->release();
}

}  // namespace neuroshard::runtime
