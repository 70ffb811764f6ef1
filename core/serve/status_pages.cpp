#include "core/serve/status_pages.h"

#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>

namespace neuroshard::serve {
namespace {

using Json = nlohmann::ordered_json;

std::int64_t seconds_of(WallTime at) {
  return to_unix_ms(at) / 1000;
}

std::uint64_t step_of(const std::string& checkpoint) {
  return std::strtoull(checkpoint.c_str(), nullptr, 10);  // its name begins with the step
}

std::string dump(const Json& value) {
  return value.dump(-1, ' ', false, Json::error_handler_t::replace);
}

template <class T>
Json or_null(const std::optional<T>& value) {
  return value ? Json(*value) : Json();
}

Json text_or_null(const std::string& text) {
  return text.empty() ? Json() : Json(text);
}

// At the last step of each bucket. The newest bucket may reach beyond the steps that are done.
Json points(const node::Series& series, std::uint64_t newest) {
  Json list = Json::array();
  for (const node::SeriesBucket& bucket : series.buckets) {
    const std::uint64_t last = std::min(bucket.first_step + bucket.width - 1, newest);
    list.push_back({{"step", std::max(bucket.first_step, last)}, {"loss", bucket.mean}});
  }
  return list;
}

Json diloco(const node::RoundsView& rounds) {
  const double share = rounds.inner_steps == 0 ? 0 : static_cast<double>(rounds.steps) / rounds.inner_steps;
  return {{"enabled", rounds.taking_part},
          {"inner_step_count", rounds.steps},
          {"inner_steps_total", rounds.inner_steps},
          {"progress", std::min(1.0, share)},
          {"outer_step_count", rounds.round}};
}

// Writes families in the exposition format: HELP, TYPE, one sample.
class Exposition {
 public:
  void add(const char* name, const char* type, const char* help, double value) {
    text_ += fmt::format("# HELP {0} {1}\n# TYPE {0} {2}\n{0} {3}\n", name, help, type, value);
  }
  void add(const char* name, const char* type, const char* help, const std::optional<double>& value) {
    if (value) add(name, type, help, *value);
  }
  void info(const char* name, const char* help,
            const std::vector<std::pair<const char*, std::string>>& labels) {
    text_ += fmt::format("# HELP {0} {1}\n# TYPE {0} gauge\n{0}{{", name, help);
    for (std::size_t i = 0; i < labels.size(); ++i)
      text_ += fmt::format("{}{}=\"{}\"", i == 0 ? "" : ",", labels[i].first, escaped(labels[i].second));
    text_ += "} 1\n";
  }
  std::string take() { return std::move(text_); }

 private:
  static std::string escaped(const std::string& value) {
    std::string result;
    for (const char c : value) {
      if (c == '\\' || c == '"') result += '\\';
      result += c == '\n' ? std::string("\\n") : std::string(1, c);
    }
    return result;
  }
  std::string text_;
};

void add_training(Exposition& to, const node::Snapshot& view) {
  const auto& step = view.training.last_step;
  to.add("neuroshard_training_steps", "counter", "Steps done by this model.",
         static_cast<double>(view.training.step));
  to.add("neuroshard_training_active", "gauge", "1 while this node trains.",
         view.state == node::RunState::Training ? 1.0 : 0.0);
  to.add("neuroshard_training_loss", "gauge", "Smoothed training loss, nats per token.",
         view.training.smoothed_loss);
  if (step) {
    to.add("neuroshard_training_tokens", "counter", "Tokens that this model was trained on.",
           static_cast<double>(step->tokens));
    to.add("neuroshard_training_tokens_per_second", "gauge", "Speed of the newest step.",
           step->tokens_per_second);
    to.add("neuroshard_gradient_norm", "gauge", "Gradient norm of the newest step.", step->gradient_norm);
    to.add("neuroshard_learning_rate", "gauge", "Learning rate of the newest step.", step->learning_rate);
  }
  if (view.training.last_evaluation)
    to.add("neuroshard_held_out_loss", "gauge", "Loss on held-out text, nats per token.",
           view.training.last_evaluation->loss);
}

void add_network(Exposition& to, const node::Snapshot& view) {
  if (view.peers.taking_part)
    to.add("neuroshard_peers_connected", "gauge", "Connected peers.",
           static_cast<double>(view.peers.connected));
  const node::RoundsView& rounds = view.rounds;
  if (!rounds.taking_part) return;
  to.add("neuroshard_round", "gauge", "Newest outer round with a result.", static_cast<double>(rounds.round));
  to.add("neuroshard_round_members", "gauge", "Members of the rounds.", static_cast<double>(rounds.members));
  to.add("neuroshard_contributions_counted", "counter", "Contributions of this node that counted.",
         static_cast<double>(rounds.contributed));
  to.add("neuroshard_contributions_left_out", "counter", "Contributions of this node that did not count.",
         static_cast<double>(rounds.left_out));
  to.add("neuroshard_network_loss", "gauge", "Median loss of the network's nodes.", rounds.global.loss);
}

}  // namespace

std::string model_id(const node::Snapshot& view) {
  if (view.checkpoint.newest.empty() && view.training.step == 0) return {};
  return "neuroshard-" + view.program.network;
}

std::string model_fingerprint(const node::Snapshot& view) {
  const std::string& name = view.checkpoint.newest;
  if (name.empty()) return fmt::format("step-{}", view.training.step);
  const std::uint64_t saved = step_of(name);
  if (view.training.step > saved) return fmt::format("{}+{}", name, view.training.step - saved);
  return name;
}

std::string models_page(const node::Snapshot& view) {
  Json list = Json::array();
  if (const std::string id = model_id(view); !id.empty()) {
    list.push_back({{"id", id},
                    {"object", "model"},
                    {"created", seconds_of(view.checkpoint.newest_at)},
                    {"owned_by", "neuroshard"},
                    {"checkpoint", text_or_null(view.checkpoint.newest)},
                    {"step", view.training.step}});
  }
  return dump({{"object", "list"}, {"data", std::move(list)}});
}

std::string health_page(const node::Snapshot& view) {
  return dump({{"status", view.state == node::RunState::Failed ? "failed" : "ok"},
               {"state", std::string(node::to_string(view.state))}});
}

std::string stats_page(const node::Snapshot& view) {
  const auto& step = view.training.last_step;
  Json reasons = Json::array();
  for (const node::PauseReason& reason : view.pause_reasons) reasons.push_back(reason.key);
  return dump({{"version", view.program.version},
               {"network", view.program.network},
               {"node_id", view.identity.node_id},
               {"wallet_id", text_or_null(view.identity.wallet_id)},
               {"instance_id", view.identity.instance_id},
               {"training_status", std::string(node::to_string(view.state))},
               {"training_enabled", view.contributing},
               {"pause_reasons", reasons},
               {"training_rounds", view.training.step},
               {"token_count", step ? Json(step->tokens) : Json()},
               {"current_loss", step ? Json(step->loss) : Json()},
               {"tokens_per_second", step ? Json(step->tokens_per_second) : Json()},
               {"model", text_or_null(model_id(view))},
               {"checkpoint", text_or_null(view.checkpoint.newest)},
               {"my_params", view.model.parameters},
               {"device", text_or_null(view.compute.device)},
               {"peer_count", view.peers.taking_part ? Json(view.peers.connected) : Json()},
               {"system",
                {{"cpu_share", or_null(view.resources.cpu_share)},
                 {"ram_total_bytes", view.resources.memory_total_bytes},
                 {"process_ram_bytes", view.resources.resident_bytes},
                 {"memory_limit_bytes", view.resources.memory_limit_bytes},
                 {"disk_free_bytes", view.resources.disk_free_bytes}}},
               {"diloco", diloco(view.rounds)}});
}

std::string training_page(const node::Snapshot& view) {
  const node::RoundsView& rounds = view.rounds;
  const node::GlobalTrainingView& global = rounds.global;
  const bool known = rounds.taking_part && global.reports > 0;
  const auto if_known = [known](Json value) { return known ? value : Json(); };
  std::string trend = global.loss_trend.empty() ? "insufficient_data" : global.loss_trend;
  std::replace(trend.begin(), trend.end(), ' ', '_');
  const auto& step = view.training.last_step;
  return dump({{"global_avg_loss", or_null(global.loss)},
               {"global_min_loss", or_null(global.least_loss)},
               {"hash_agreement_rate", or_null(global.hash_agreement)},
               {"total_nodes_training", if_known(global.training_nodes)},
               {"outer_syncs", if_known(global.outer_syncs)},
               {"sync_success_rate", or_null(global.sync_success)},
               {"global_steps", if_known(global.steps)},
               {"global_tokens", if_known(global.tokens)},
               {"data_shards_covered", if_known(global.data_shards)},
               {"is_converging", if_known(global.converging)},
               {"training_verified", if_known(global.verified)},
               {"training_verified_reason", text_or_null(global.verified_reason)},
               {"loss_trend", trend},
               {"local",
                {{"node_id", view.identity.node_id},
                 {"training_rounds", view.training.step},
                 {"current_loss", step ? Json(step->loss) : Json()},
                 {"is_training", view.state == node::RunState::Training},
                 {"model_hash", text_or_null(rounds.anchor)}}},
               {"diloco", diloco(rounds)}});
}

std::string history_page(const node::Snapshot& view, const node::Series& loss, const node::Series& held_out) {
  const std::uint64_t newest = view.training.step;
  Json improvement;
  if (loss.buckets.size() > 1 && loss.buckets.front().mean > 0)
    improvement = 100 * (1 - loss.buckets.back().mean / loss.buckets.front().mean);
  return dump({{"loss_checkpoints", points(loss, newest)},
               {"held_out_checkpoints", points(held_out, newest)},
               {"improvement_percent", improvement}});
}

std::string network_page(const node::NetworkView& network) {
  Json peers = Json::array();
  for (const node::PeerEntry& peer : network.peers) {
    peers.push_back({{"id", peer.id},
                     {"address", peer.address},
                     {"way", peer.way},
                     {"connected", peer.connected},
                     {"round_trip_seconds", or_null(peer.round_trip)},
                     {"version", text_or_null(peer.version)},
                     {"bytes_in", peer.bytes_in},
                     {"bytes_out", peer.bytes_out}});
  }
  return dump({{"taking_part", network.taking_part},
               {"listens_at", text_or_null(network.listens_at)},
               {"reach", network.reach},
               {"summary", network.summary},
               {"known_nodes", network.known_nodes},
               {"bytes_in", network.bytes_in},
               {"bytes_out", network.bytes_out},
               {"peers", peers}});
}

std::string layers_page(const std::vector<node::SlotEntry>& slots) {
  Json list = Json::array();
  for (const node::SlotEntry& slot : slots) {
    list.push_back({{"name", slot.name},
                    {"kind", slot.kind},
                    {"layer", slot.layer},
                    {"parameters", slot.parameters},
                    {"bytes", slot.bytes},
                    {"mine", slot.mine},
                    {"replicas", or_null(slot.replicas)}});
  }
  return dump({{"layers", list}});
}

std::string experts_page(const std::vector<node::ExpertLoad>& experts) {
  Json list = Json::array();
  for (const node::ExpertLoad& expert : experts) {
    list.push_back({{"layer", expert.layer},
                    {"expert", expert.expert},
                    {"share", expert.mine ? Json(expert.share) : Json()},
                    {"bias", expert.mine ? Json(expert.bias) : Json()},
                    {"mine", expert.mine},
                    {"replicas", or_null(expert.replicas)},
                    {"tokens", expert.mine ? Json(expert.tokens) : Json()}});
  }
  return dump({{"experts", list}});
}

std::string checkpoints_page(const node::CheckpointPage& page) {
  Json list = Json::array();
  for (const node::CheckpointEntry& entry : page.entries) {
    list.push_back({{"name", entry.name},
                    {"step", entry.step},
                    {"saved_at", seconds_of(entry.at)},
                    {"bytes", entry.bytes},
                    {"loss", or_null(entry.loss)},
                    {"held_out_loss", or_null(entry.held_out_loss)},
                    {"pinned", entry.pinned},
                    {"complete", entry.complete},
                    {"hash", text_or_null(entry.hash)},
                    {"intact", or_null(entry.intact)}});
  }
  return dump({{"checkpoints", list}, {"more", page.more}});
}

std::string metrics_page(const node::Snapshot& view, const ServerFigures& server) {
  Exposition to;
  to.info("neuroshard_build_info", "Version of the program and its network.",
          {{"version", view.program.version}, {"network", view.program.network}});
  if (const std::string id = model_id(view); !id.empty())
    to.info("neuroshard_model_info", "The model and its newest checkpoint.",
            {{"model", id}, {"checkpoint", view.checkpoint.newest}});
  add_training(to, view);
  add_network(to, view);
  to.add("neuroshard_resident_bytes", "gauge", "Memory of the process.",
         static_cast<double>(view.resources.resident_bytes));
  to.add("neuroshard_disk_free_bytes", "gauge", "Free space of the data directory's disk.",
         static_cast<double>(view.resources.disk_free_bytes));
  to.add("neuroshard_cpu_share", "gauge", "Share of the machine's processors that the process uses.",
         view.resources.cpu_share);
  to.add("neuroshard_http_requests_total", "counter", "Requests answered.",
         static_cast<double>(server.requests));
  to.add("neuroshard_http_refused_total", "counter", "Requests refused (key, host, limits).",
         static_cast<double>(server.refused));
  to.add("neuroshard_http_connections", "gauge", "Open connections.",
         static_cast<double>(server.connections));
  to.add("neuroshard_generated_texts_total", "counter", "Texts generated over HTTP.",
         static_cast<double>(server.texts));
  to.add("neuroshard_generated_tokens_total", "counter", "Tokens generated over HTTP.",
         static_cast<double>(server.tokens));
  to.add("neuroshard_texts_running", "gauge", "Texts that are being generated over HTTP.",
         static_cast<double>(server.texts_running));
  to.add("neuroshard_texts_waiting", "gauge", "Texts that wait for their turn.",
         static_cast<double>(server.texts_waiting));
  return to.take();
}

}  // namespace neuroshard::serve
