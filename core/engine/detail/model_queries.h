// Queries about the model and its data: the layer map, the experts' load, the training text, and the tokens
// of a text.
//
// Threads: the queries from any thread; what sets a value, and the replies, on the core executor.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "core/compute/slot.h"
#include "core/data/dataset.h"
#include "core/data/tokenizer.h"
#include "core/engine/detail/disk_reader.h"
#include "core/engine/detail/engine_context.h"
#include "core/node/queries.h"

namespace neuroshard::engine::detail {

class ModelQueries {
 public:
  ModelQueries(const EngineContext& context, DiskReader& reader);

  Expected<void> slots(node::Reply<std::vector<node::SlotEntry>> reply);
  Expected<void> experts(node::Reply<std::vector<node::ExpertLoad>> reply);
  Expected<void> data(node::Reply<node::DataView> reply);
  Expected<void> tokens(const std::string& text, node::Reply<std::vector<node::TokenPiece>> reply);

  // Sets the data of the model that is ready.
  void set_data(node::DataView data, std::shared_ptr<const data::Tokenizer> tokenizer);
  // Another state of the model was restored.
  void set_tokens_seen(std::uint64_t tokens) { tokens_seen_ = tokens; }
  // After a training step: sets the tokens seen so far and the shard that the step read.
  void set_step(std::uint64_t tokens_seen, std::vector<node::ExpertLoad> experts,
                std::optional<data::ShardId> shard);

 private:
  struct Holding {
    bool mine = false;
    std::optional<std::uint32_t> replicas;  // nodes that hold it; nothing: not known
  };
  Holding holding(compute::SlotId slot) const;
  void read_data(const node::Reply<node::DataView>& reply);  // reading thread
  void answer_data(const node::Reply<node::DataView>& reply, Expected<node::DataView> view);
  void complete(node::DataView* view) const;
  Expected<std::vector<node::TokenPiece>> split(const std::string& text,
                                                std::shared_ptr<const data::Tokenizer> known) const;

  const EngineContext& context_;
  DiskReader& reader_;
  std::vector<node::ExpertLoad> experts_;
  node::DataView data_;  // shard_count 0: no model has been ready yet
  std::shared_ptr<const data::Tokenizer> tokenizer_;
  std::optional<std::uint64_t> tokens_seen_;
  std::optional<data::ShardId> shard_;
};

}  // namespace neuroshard::engine::detail
