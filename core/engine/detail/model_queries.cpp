#include "core/engine/detail/model_queries.h"

#include <cmath>
#include <utility>

#include "core/compute/shape_limits.h"
#include "core/compute/stage_range.h"
#include "core/config/model_part.h"
#include "core/data/encoder.h"
#include "core/engine/detail/data_view.h"
#include "core/engine/router_load.h"
#include "core/engine/training_data.h"

namespace neuroshard::engine::detail {
namespace {

static_assert(node::max_layers == compute::shape_limits::layers);
static_assert(node::max_experts == compute::shape_limits::experts);

const char* kind_text(compute::SlotKind kind) {
  switch (kind) {
    case compute::SlotKind::Embed: return "embed";
    case compute::SlotKind::Layer: return "layer";
    case compute::SlotKind::Expert: return "expert";
    case compute::SlotKind::Head: break;
  }
  return "head";
}

}  // namespace

ModelQueries::ModelQueries(const EngineContext& context, DiskReader& reader)
    : context_(context),
      reader_(reader),
      experts_(RouterLoad(config::model_shape(context.directory.profile().consensus)).view()) {}

// Where every node holds the whole model, the members hold the same one; without rounds nobody else does. Where the
// members hold parts, so many hold the slot's part.
ModelQueries::Holding ModelQueries::holding(compute::SlotId slot) const {
  const node::RoundsView& rounds = context_.publisher.draft().rounds;
  const std::vector<compute::StageRange> parts = config::model_parts(context_.directory.profile().consensus);
  if (parts.empty()) {
    if (!rounds.taking_part) return {true, 1};
    return {true, rounds.members == 0 ? std::nullopt : std::optional(rounds.members)};
  }
  Holding holding{false, std::nullopt};
  for (std::size_t i = 0; i < parts.size(); ++i) {
    if (!compute::holds(parts[i], slot)) continue;
    holding.mine = rounds.part && rounds.part->number == i + 1;
    if (rounds.part && i < rounds.part->holders.size()) holding.replicas = rounds.part->holders[i];
  }
  return holding;
}

Expected<void> ModelQueries::slots(node::Reply<std::vector<node::SlotEntry>> reply) {
  constexpr std::uint64_t copies = 4;  // weights, gradients and two moments
  return context_.commands.ask([this, reply = std::move(reply)] {
    const compute::ModelShape shape = config::model_shape(context_.directory.profile().consensus);
    std::vector<node::SlotEntry> slots;
    for (const compute::SlotId id : compute::model_slots(shape)) {
      if (slots.size() >= node::max_slots) break;
      const std::uint64_t parameters = compute::slot_parameter_count(shape, id);
      const Holding held = holding(id);
      slots.push_back({compute::to_string(id), kind_text(id.kind), id.layer, id.expert, parameters,
                       copies * sizeof(float) * parameters, held.mine, held.replicas});
    }
    reply(std::move(slots));
  });
}

Expected<void> ModelQueries::experts(node::Reply<std::vector<node::ExpertLoad>> reply) {
  return context_.commands.ask([this, reply = std::move(reply)] {
    std::vector<node::ExpertLoad> experts = experts_;
    for (node::ExpertLoad& expert : experts) {
      const Holding held = holding({compute::SlotKind::Expert, expert.layer, expert.expert});
      expert.mine = held.mine;
      expert.replicas = held.replicas;
    }
    reply(std::move(experts));
  });
}

void ModelQueries::set_data(node::DataView data, std::shared_ptr<const data::Tokenizer> tokenizer) {
  data_ = std::move(data);
  if (tokenizer) tokenizer_ = std::move(tokenizer);
}

void ModelQueries::set_step(std::uint64_t tokens_seen, std::vector<node::ExpertLoad> experts,
                            std::optional<data::ShardId> shard) {
  tokens_seen_ = tokens_seen;
  experts_ = std::move(experts);
  shard_ = shard;
}

Expected<void> ModelQueries::data(node::Reply<node::DataView> reply) {
  return context_.commands.ask([this, reply = std::move(reply)] {
    if (data_.shard_count != 0) return answer_data(reply, data_);
    const auto asked = reader_.read([this, reply] { read_data(reply); });
    if (!asked.ok()) reply(asked.error());
  });
}

// Without a model: the data of the directory.
void ModelQueries::read_data(const node::Reply<node::DataView>& reply) {
  auto view = [&]() -> Expected<node::DataView> {
    const auto dataset = open_own_text(context_.directory, context_.services.files);
    if (!dataset.ok() && dataset.error().code == ErrorCode::NotFound) return node::DataView{};
    if (!dataset.ok()) return dataset.error();
    return describe_data(context_.directory, context_.services.files, **dataset);
  }();
  static_cast<void>(context_.core.post([this, reply, view = std::move(view)] { answer_data(reply, view); }));
}

void ModelQueries::answer_data(const node::Reply<node::DataView>& reply, Expected<node::DataView> view) {
  if (view.ok()) complete(&*view);
  reply(std::move(view));
}

// Adds the values that only the training has.
void ModelQueries::complete(node::DataView* view) const {
  const node::TrainingView& training = context_.publisher.draft().training;
  if (training.last_step) view->tokens_seen = training.last_step->tokens;
  if (tokens_seen_) view->tokens_seen = *tokens_seen_;
  if (view->train_tokens > 0)
    view->epochs = static_cast<double>(view->tokens_seen) / static_cast<double>(view->train_tokens);
  // A loss in nats per token and in bits per byte of the same text say how many bytes a token has.
  const auto& evaluation = training.last_evaluation;
  if (evaluation && evaluation->bits_per_byte && *evaluation->bits_per_byte > 0) {
    view->bytes_per_token = evaluation->loss / (std::log(2.0) * *evaluation->bits_per_byte);
    view->text_bytes = static_cast<std::uint64_t>(
        view->bytes_per_token * static_cast<double>(view->train_tokens + view->held_out_tokens));
  }
  for (node::ShardEntry& shard : view->shards) shard.in_use = shard_ && shard.index == *shard_;
}

Expected<void> ModelQueries::tokens(const std::string& text,
                                    node::Reply<std::vector<node::TokenPiece>> reply) {
  if (text.size() > node::max_token_text) {
    return make_error(ErrorCode::InvalidArgument, "the text is too long: at most 4 KiB are tokenized");
  }
  return context_.commands.ask([this, text, reply = std::move(reply)] {
    const auto asked =
        reader_.read([this, text, reply, known = tokenizer_] { reader_.answer(reply, split(text, known)); });
    if (!asked.ok()) reply(asked.error());
  });
}

// Reading thread.
Expected<std::vector<node::TokenPiece>> ModelQueries::split(
    const std::string& text, std::shared_ptr<const data::Tokenizer> known) const {
  std::shared_ptr<const data::Tokenizer> tokenizer = std::move(known);
  if (!tokenizer) {
    NS_ASSIGN_OR_RETURN(const auto dataset, open_own_text(context_.directory, context_.services.files));
    tokenizer = std::make_shared<const data::Tokenizer>(dataset->tokenizer());
  }
  std::vector<node::TokenPiece> pieces;
  for (const data::TokenId id : data::Encoder(tokenizer).encode(as_bytes(text)))
    pieces.push_back({id, std::string(as_text(tokenizer->token_bytes(id)))});
  return pieces;
}

}  // namespace neuroshard::engine::detail
