// A node of the network's chain with the rounds as its content, and their files in D/chain. It is of one model: another tokenizer or
// another part is another object.
//
// open() gives it the files, begin() the rest. Errors of its work: none; problems are in the log and in the views.
// Threads: the executor's of its services, which outlive it.
#pragma once

#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "core/chain/node.h"
#include "core/engine/chain_files.h"
#include "core/engine/round_store.h"
#include "core/rounds/training_rounds.h"
#include "core/runtime/chain_beginning.h"
#include "core/runtime/chain_settings.h"
#include "core/runtime/chain_trust.h"
#include "core/runtime/observed_content.h"
#include "core/runtime/runtime_services.h"

namespace neuroshard::runtime {

class RunningChain final {
 public:
  struct Services {
    const crypto::KeyPair& key;
    const RuntimeServices& runtime;
    net::PeerCaller& caller;
    chain::Peers& peers;
    Executor& executor;
    const Clock& clock;
    net::TrafficMeter* traffic;
    rounds::RoundWork& work;
    Spool& spool;  // of payloads and states
    chain::SignatureChecks& checks;
    rounds::BatchKeeper* batches;
    rounds::RoundRoom* room;
  };
  struct Model {
    ChainFacts facts;
    std::vector<rounds::RoundLearner*> learners;  // by row
    rounds::ResizeRow resize;                     // null: the model keeps its size
  };
  struct Events {
    ObservedContent::Observer blocks;
    rounds::TrainingRounds::NewAnchor anchor;
  };

  // D: directory. executor: of the files' answers.  Errors: those of the disk.
  static Expected<std::unique_ptr<RunningChain>> open(const std::string& directory,
                                                      const config::ConsensusPart& consensus,
                                                      const RuntimeServices& runtime, Executor& executor);

  engine::ChainFiles& files() { return *files_; }
  bool has_blocks() const { return files_->block_count() > 0; }

  // Once. beginning: the states of the rows, as far as this node has them.
  void begin(const Services& services, const Model& model, const crypto::Delegation& delegation,
             const ChainTrust& trust, ChainBeginning& beginning, Events events);

  // Null before begin().
  chain::ChainNode* node() const { return node_.get(); }
  rounds::TrainingRounds* training() const { return training_.get(); }

  // The node holds this state, which the registry names: it goes to the disk, unless it is there.
  void keep(std::uint32_t row, std::uint64_t round, const rounds::Anchor& anchor);

 private:
  RunningChain() = default;
  void offer_states(ChainBeginning& beginning);

  std::unique_ptr<engine::ChainFiles> files_;
  std::unique_ptr<engine::RoundFiles> own_files_;
  std::size_t rows_ = 0;  // of the model
  chain::RowSet held_;
  std::map<std::uint32_t, std::uint64_t> kept_;  // by row: the round of the state on the disk
  std::unique_ptr<rounds::TrainingRounds> training_;
  std::unique_ptr<ObservedContent> content_;
  std::unique_ptr<chain::ChainNode> node_;
};

}  // namespace neuroshard::runtime
