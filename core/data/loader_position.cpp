// LoaderPosition as text.
#include <cmath>

#include "core/data/detail/json_fields.h"
#include "core/data/loader.h"

namespace neuroshard::data {
namespace {

using nlohmann::json;

constexpr std::size_t max_position_bytes = 256u << 10;
constexpr const char* where = "loader position";

Expected<LoaderPosition::InNetwork> read_network(const detail::Fields& position) {
  NS_ASSIGN_OR_RETURN(const json* value, position.object("network"));
  const detail::Fields fields(*value, where);
  LoaderPosition::InNetwork network;
  NS_ASSIGN_OR_RETURN(network.round, fields.number("round"));
  NS_ASSIGN_OR_RETURN(network.draw.round, fields.number("draw_round"));
  NS_ASSIGN_OR_RETURN(network.draw.beacon, fields.hash("draw_beacon"));
  NS_ASSIGN_OR_RETURN(const std::uint64_t total, fields.number("draw_total", max_manifest_shards));
  network.draw.total = static_cast<std::uint32_t>(total);
  NS_ASSIGN_OR_RETURN(network.batches, fields.number("batches"));
  NS_ASSIGN_OR_RETURN(const Bytes runs, fields.hex("runs", max_batch_runs * batch_run_bytes));
  NS_ASSIGN_OR_RETURN(network.runs, decode_runs(runs));
  NS_ASSIGN_OR_RETURN(network.run_open, fields.flag("run_open"));
  if (network.run_open && network.runs.empty()) return fields.wrong("run_open", "is set without a run");
  return network;
}

}  // namespace

std::string LoaderPosition::to_json() const {
  json losses = json::array();
  for (const float loss : recent_losses) losses.push_back(static_cast<double>(loss));
  json value = {{"round", round},
                {"shard_id", shard_id},
                {"shard_index", shard_index},
                {"round_offset", round_offset},
                {"steps_on_shard", steps_on_shard},
                {"tokens_on_shard", tokens_on_shard},
                {"recent_losses", std::move(losses)},
                {"started", started}};
  if (in_network) {
    value["network"] = {{"round", in_network->round},
                        {"draw_round", in_network->draw.round},
                        {"draw_beacon", to_hex(in_network->draw.beacon)},
                        {"draw_total", in_network->draw.total},
                        {"batches", in_network->batches},
                        {"runs", to_hex(encode_runs(in_network->runs))},
                        {"run_open", in_network->run_open}};
  }
  return value.dump();
}

Expected<LoaderPosition> LoaderPosition::from_json(std::string_view text) {
  NS_ASSIGN_OR_RETURN(const json value, detail::parse_object(as_bytes(text), max_position_bytes, where));
  const detail::Fields fields(value, where);
  LoaderPosition position;
  NS_ASSIGN_OR_RETURN(position.round, fields.number("round"));
  NS_ASSIGN_OR_RETURN(const std::uint64_t id, fields.number("shard_id", 0xffffffffu));
  position.shard_id = static_cast<ShardId>(id);
  NS_ASSIGN_OR_RETURN(const std::uint64_t index, fields.number("shard_index", 0xffffffffu));
  position.shard_index = static_cast<std::uint32_t>(index);
  NS_ASSIGN_OR_RETURN(position.round_offset, fields.number("round_offset"));
  NS_ASSIGN_OR_RETURN(position.steps_on_shard, fields.number("steps_on_shard"));
  NS_ASSIGN_OR_RETURN(position.tokens_on_shard, fields.number("tokens_on_shard"));
  NS_ASSIGN_OR_RETURN(position.started, fields.flag("started"));
  NS_ASSIGN_OR_RETURN(const json* losses, fields.array("recent_losses", max_rotation_window));
  for (const json& loss : *losses) {
    const double number = loss.is_number() ? loss.get<double>() : std::nan("");
    if (!std::isfinite(static_cast<float>(number))) {
      return fields.wrong("recent_losses", "has a value that is not a finite number");
    }
    position.recent_losses.push_back(static_cast<float>(number));
  }
  if (value.contains("network")) {
    NS_ASSIGN_OR_RETURN(position.in_network, read_network(fields));
  }
  return position;
}

}  // namespace neuroshard::data
