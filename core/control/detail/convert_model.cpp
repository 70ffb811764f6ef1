// The layer map, the experts, the training data and tokens as messages.
#include "core/base/utf8.h"
#include "core/control/detail/convert.h"

namespace neuroshard::control::detail {
namespace {

// A remote core is not trusted: a window makes a grid as large as the largest numbers.
template <class Entry>
bool is_in_model(const Entry& entry) {
  return entry.layer() < node::max_layers && entry.expert() < node::max_experts;
}

}  // namespace

void encode(const std::vector<node::SlotEntry>& from, wire::SlotList* to) {
  for (const node::SlotEntry& slot : from) {
    wire::Slot* sent = to->add_slot();
    sent->set_name(slot.name);
    sent->set_kind(slot.kind);
    sent->set_layer(slot.layer);
    sent->set_expert(slot.expert);
    sent->set_parameters(slot.parameters);
    sent->set_bytes(slot.bytes);
    sent->set_mine(slot.mine);
    if (slot.replicas) sent->set_replicas(*slot.replicas);
  }
}

std::vector<node::SlotEntry> decode(const wire::SlotList& from) {
  std::vector<node::SlotEntry> to;
  for (const wire::Slot& sent : from.slot()) {
    if (to.size() >= node::max_slots) break;
    if (!is_in_model(sent)) continue;
    node::SlotEntry slot{sent.name(),       sent.kind(),  sent.layer(), sent.expert(),
                         sent.parameters(), sent.bytes(), sent.mine(),  std::nullopt};
    if (sent.has_replicas()) slot.replicas = sent.replicas();
    to.push_back(std::move(slot));
  }
  return to;
}

void encode(const std::vector<node::ExpertLoad>& from, wire::ExpertList* to) {
  for (const node::ExpertLoad& expert : from) {
    wire::Expert* sent = to->add_expert();
    sent->set_layer(expert.layer);
    sent->set_expert(expert.expert);
    sent->set_share(expert.share);
    sent->set_bias(expert.bias);
    sent->set_mine(expert.mine);
    if (expert.replicas) sent->set_replicas(*expert.replicas);
    sent->set_tokens(expert.tokens);
  }
}

std::vector<node::ExpertLoad> decode(const wire::ExpertList& from) {
  std::vector<node::ExpertLoad> to;
  for (const wire::Expert& sent : from.expert()) {
    if (to.size() >= node::max_slots) break;
    if (!is_in_model(sent)) continue;
    node::ExpertLoad expert{sent.layer(), sent.expert(), sent.share(), sent.bias(),
                            sent.mine(),  std::nullopt,  sent.tokens()};
    if (sent.has_replicas()) expert.replicas = sent.replicas();
    to.push_back(expert);
  }
  return to;
}

void encode(const node::DataView& from, wire::Data* to) {
  to->set_source(valid_utf8(from.source));
  to->set_manifest(from.manifest);
  to->set_train_tokens(from.train_tokens);
  to->set_held_out_tokens(from.held_out_tokens);
  to->set_text_bytes(from.text_bytes);
  to->set_cache_bytes(from.cache_bytes);
  to->set_cache_limit_bytes(from.cache_limit_bytes);
  to->set_tokens_seen(from.tokens_seen);
  to->set_epochs(from.epochs);
  to->set_vocabulary(from.vocabulary);
  to->set_merges(from.merges);
  to->set_tokenizer_hash(from.tokenizer_hash);
  to->set_bytes_per_token(from.bytes_per_token);
  to->set_shard_count(from.shard_count);
  for (const node::ShardEntry& shard : from.shards) {
    wire::Shard* sent = to->add_shard();
    sent->set_index(shard.index);
    sent->set_name(valid_utf8(shard.name));
    sent->set_state(shard.state);
    sent->set_tokens(shard.tokens);
    sent->set_bytes(shard.bytes);
    sent->set_in_use(shard.in_use);
    sent->set_hash(shard.hash);
  }
}

node::DataView decode(const wire::Data& from) {
  node::DataView to;
  to.source = from.source();
  to.manifest = from.manifest();
  to.train_tokens = from.train_tokens();
  to.held_out_tokens = from.held_out_tokens();
  to.text_bytes = from.text_bytes();
  to.cache_bytes = from.cache_bytes();
  to.cache_limit_bytes = from.cache_limit_bytes();
  to.tokens_seen = from.tokens_seen();
  to.epochs = from.epochs();
  to.vocabulary = from.vocabulary();
  to.merges = from.merges();
  to.tokenizer_hash = from.tokenizer_hash();
  to.bytes_per_token = from.bytes_per_token();
  to.shard_count = from.shard_count();
  for (const wire::Shard& sent : from.shard()) {
    to.shards.push_back(
        {sent.index(), sent.name(), sent.state(), sent.tokens(), sent.bytes(), sent.in_use(), sent.hash()});
  }
  return to;
}

void encode(const std::vector<node::TokenPiece>& from, wire::TokenList* to) {
  for (const node::TokenPiece& token : from) {
    wire::Token* sent = to->add_token();
    sent->set_id(token.id);
    sent->set_text(token.text);
  }
}

std::vector<node::TokenPiece> decode(const wire::TokenList& from) {
  std::vector<node::TokenPiece> to;
  for (const wire::Token& sent : from.token()) to.push_back({sent.id(), sent.text()});
  return to;
}

}  // namespace neuroshard::control::detail
