// What the model and its data look like: the layer map, the experts, the training text, tokens.
#include <algorithm>
#include <cmath>

#include "core/compute/slot.h"
#include "core/crypto/hash.h"
#include "core/data/encoder.h"
#include "core/engine/detail/engine_core.h"

namespace neuroshard::engine::detail {
namespace {

const char* kind_text(compute::SlotKind kind) {
  switch (kind) {
    case compute::SlotKind::Embed: return "embed";
    case compute::SlotKind::Layer: return "layer";
    case compute::SlotKind::Expert: return "expert";
    case compute::SlotKind::Head: break;
  }
  return "head";
}

bool is_local(const data::ShardEntry& shard) {
  return shard.url.find("://") == std::string::npos;
}

}  // namespace

Expected<void> EngineCore::query_slots(node::Reply<std::vector<node::SlotEntry>> reply) {
  constexpr std::uint64_t copies = 4;  // weights, gradients and two moments
  return ask_core([this, reply = std::move(reply)] {
    const compute::ModelShape shape = config::model_shape(directory_->profile().consensus);
    std::vector<node::SlotEntry> slots;
    for (const compute::SlotId id : compute::model_slots(shape)) {
      if (slots.size() >= node::max_slots) break;
      const std::uint64_t parameters = compute::slot_parameter_count(shape, id);
      slots.push_back({compute::to_string(id), kind_text(id.kind), id.layer, id.expert, parameters,
                       copies * sizeof(float) * parameters, true, std::nullopt});
    }
    reply(std::move(slots));
  });
}

Expected<void> EngineCore::query_experts(node::Reply<std::vector<node::ExpertLoad>> reply) {
  return ask_core([this, reply = std::move(reply)] { reply(experts_); });
}

node::DataView EngineCore::describe_data(const data::Dataset& dataset) const {
  node::DataView view;
  const data::Manifest& manifest = dataset.manifest();
  const bool published = services_.files.exists(directory_->data_path() + "/published") &&
                         !services_.files.exists(directory_->data_path() + "/" + data::manifest_file_name);
  view.source = published ? directory_->profile().directory.manifest_url : directory_->data_path();
  if (const std::string trouble = dataset.trouble(); !trouble.empty()) view.source += " (" + trouble + ")";
  if (published) view.manifest = to_hex(crypto::sha256(data::encode_manifest(manifest)));
  view.cache_limit_bytes = 0;
  view.shard_count = manifest.shards.size();
  for (const data::ShardEntry& shard : manifest.shards) {
    (shard.split == data::Split::Train ? view.train_tokens : view.held_out_tokens) += shard.tokens;
    const std::string path =
        published ? directory_->data_path() + "/published/shards/" + to_hex(shard.sha256) + ".pt"
                  : directory_->data_path() + "/" + shard.url;
    const bool here = (published || is_local(shard)) && services_.files.exists(path);
    if (here) view.cache_bytes += shard.size;
    if (view.shards.size() >= node::max_page) continue;
    node::ShardEntry entry;
    entry.index = shard.id;
    entry.name = shard.url;
    if (shard.split == data::Split::HeldOut) entry.name += " (held out)";
    entry.state = here ? "cached" : "missing";
    entry.tokens = shard.tokens;
    entry.bytes = shard.size;
    entry.hash = to_hex(shard.sha256);
    view.shards.push_back(std::move(entry));
  }
  view.vocabulary = dataset.tokenizer().vocab_size();
  view.merges = static_cast<std::uint32_t>(dataset.tokenizer().merges().size());
  view.tokenizer_hash = to_hex(manifest.tokenizer_hash);
  return view;
}

void EngineCore::complete_data(node::DataView* view) const {
  const node::TrainingView& training = draft_.training;
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
  for (node::ShardEntry& shard : view->shards) shard.in_use = shard_in_use_ && shard.index == *shard_in_use_;
}

Expected<void> EngineCore::query_data(node::Reply<node::DataView> reply) {
  return ask_core([this, reply = std::move(reply)] {
    if (data_.shard_count != 0) {
      node::DataView view = data_;
      complete_data(&view);
      return reply(std::move(view));
    }
    // No session yet: what the directory holds.
    const bool posted = reader_->post([this, reply] {
      auto view = [&]() -> Expected<node::DataView> {
        const auto dataset = open_own_text();
        if (!dataset.ok() && dataset.error().code == ErrorCode::NotFound) return node::DataView{};
        if (!dataset.ok()) return dataset.error();
        return describe_data(**dataset);
      }();
      static_cast<void>(core_->post([this, reply, view = std::move(view)]() mutable {
        if (view.ok()) complete_data(&*view);
        reply(std::move(view));
      }));
    });
    if (!posted) reply(make_error(ErrorCode::Busy, "too many questions are waiting; try again in a moment"));
  });
}

Expected<std::unique_ptr<data::Dataset>> EngineCore::open_own_text() const {
  data::ManifestTrust trust;
  trust.publisher = directory_->node_key().public_key();
  trust.network_id = Bytes(network_id_.begin(), network_id_.end());
  return data::open_local_dataset(services_.files, directory_->data_path(), trust);
}

Expected<void> EngineCore::query_tokens(const std::string& text,
                                        node::Reply<std::vector<node::TokenPiece>> reply) {
  if (text.size() > node::max_token_text) {
    return make_error(ErrorCode::InvalidArgument, "the text is too long: at most 4 KiB are taken apart");
  }
  return ask_core([this, text, reply = std::move(reply)] {
    const bool posted = reader_->post([this, text, reply, known = tokenizer_] {
      reply_on_core(reply, [&]() -> Expected<std::vector<node::TokenPiece>> {
        std::shared_ptr<const data::Tokenizer> tokenizer = known;
        if (!tokenizer) {
          NS_ASSIGN_OR_RETURN(const auto dataset, open_own_text());
          tokenizer = std::make_shared<const data::Tokenizer>(dataset->tokenizer());
        }
        std::vector<node::TokenPiece> pieces;
        for (const data::TokenId id : data::Encoder(tokenizer).encode(as_bytes(text)))
          pieces.push_back({id, std::string(as_text(tokenizer->token_bytes(id)))});
        return pieces;
      }());
    });
    if (!posted) reply(make_error(ErrorCode::Busy, "too many questions are waiting; try again in a moment"));
  });
}

}  // namespace neuroshard::engine::detail
