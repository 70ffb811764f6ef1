#include "app/node/commands/plan/plan_input.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>

#include "app/node/output/quantity.h"
#include "core/base/utf8.h"

namespace neuroshard::app {
namespace {

using nlohmann::json;

constexpr int max_depth = 6;
constexpr std::size_t max_text = 256;
constexpr std::size_t max_measurements = 1'000;
constexpr double max_value = 1e24;
constexpr double max_memory = 1e18;
constexpr const char* joined_id = "(you)";

// Names and values in the message are those of foreign files.
Error invalid(const std::string& message) {
  return make_error(ErrorCode::InvalidArgument, one_line(message));
}

std::string place_of(ByteSpan bytes, std::size_t offset) {
  std::size_t line = 1, column = 1;
  for (std::size_t i = 0; i + 1 < std::min(offset, bytes.size() + 1); ++i) {
    if (bytes[i] == '\n') {
      ++line;
      column = 1;
    } else {
      ++column;
    }
  }
  return fmt::format("line {}, column {}", line, column);
}

Expected<json> parse(ByteSpan bytes) {
  if (bytes.size() > max_plan_file_bytes) {
    return make_error(ErrorCode::Exhausted, fmt::format("the peers file has {} bytes; the most is {}",
                                                        bytes.size(), max_plan_file_bytes));
  }
  bool too_deep = false;
  const auto watch = [&](int depth, json::parse_event_t, json&) {
    too_deep = too_deep || depth > max_depth;
    return !too_deep;
  };
  // nlohmann/json reports by exceptions; they end here.
  try {
    json document = json::parse(bytes.begin(), bytes.end(), watch);
    if (too_deep) return invalid(fmt::format("the peers file nests deeper than {} levels", max_depth));
    return document;
  } catch (const json::parse_error& e) {
    return invalid(fmt::format("the peers file is not valid JSON at {}", place_of(bytes, e.byte)));
  } catch (const json::exception& e) {
    return invalid(fmt::format("the peers file is not valid JSON: {}", e.what()));
  }
}

// One peer's members; `where` opens every message.
class PeerReader {
 public:
  PeerReader(const json& object, std::string where) : object_(object), where_(std::move(where)) {}

  Expected<void> only(std::initializer_list<std::string_view> known) const {
    for (const auto& [name, value] : object_.items()) {
      if (std::find(known.begin(), known.end(), name) == known.end())
        return invalid(fmt::format("{}: unknown field \"{}\"", where_, name.substr(0, max_text)));
    }
    return {};
  }
  bool has(const char* name) const { return object_.contains(name); }
  const json& at(const char* name) const { return *object_.find(name); }
  const std::string& where() const { return where_; }

  Expected<std::string> text(const char* name) const {
    const auto at = object_.find(name);
    if (at == object_.end()) return std::string();
    if (!at->is_string() || at->get_ref<const std::string&>().size() > max_text)
      return invalid(fmt::format("{}: \"{}\" must be text of at most {} bytes", where_, name, max_text));
    return at->get<std::string>();
  }

  // A number, or text with a unit.
  Expected<double> quantity(const char* name, double most, bool bytes) const {
    const auto at = object_.find(name);
    if (at == object_.end()) return invalid(fmt::format("{} has no \"{}\"", where_, name));
    const std::string field = fmt::format("{}: \"{}\"", where_, name);
    if (at->is_string()) {
      const auto& text = at->get_ref<const std::string&>();
      auto value = bytes ? parse_bytes(field, text) : parse_operations(field, text);
      if (!value.ok()) return invalid(value.error().message);
      return value;
    }
    if (!at->is_number()) return invalid(field + " must be a number, or text with a unit like \"8GiB\"");
    return checked(field, at->get<double>(), most);
  }

  static Expected<double> checked(const std::string& field, double value, double most) {
    if (value > 0 && value <= most) return value;
    return invalid(fmt::format("{} is {}; it must be above 0 and at most {:g}", field, value, most));
  }

 private:
  const json& object_;
  std::string where_;
};

Expected<double> read_speed(const PeerReader& reader, double layer_work) {
  if (reader.has("speed") == reader.has("seconds_per_layer"))
    return invalid(reader.where() + " needs exactly one of \"speed\" and \"seconds_per_layer\"");
  double declared = 0;
  if (reader.has("speed")) {
    NS_ASSIGN_OR_RETURN(declared, reader.quantity("speed", max_value, false));
  } else {
    NS_ASSIGN_OR_RETURN(const double seconds, reader.quantity("seconds_per_layer", max_value, false));
    declared = layer_work / seconds;
  }
  if (!reader.has("measured")) return declared;
  const json& list = reader.at("measured");
  const std::string field = reader.where() + ": \"measured\"";
  if (!list.is_array() || list.size() > max_measurements)
    return invalid(fmt::format("{} must be a list of at most {} speeds", field, max_measurements));
  std::vector<double> measured;
  for (const json& entry : list) {
    if (!entry.is_number()) return invalid(field + " holds something that is not a number");
    NS_ASSIGN_OR_RETURN(const double value, PeerReader::checked(field, entry.get<double>(), max_value));
    measured.push_back(value);
  }
  return plan::counted_speed(declared, std::move(measured));
}

Expected<std::optional<plan::Holding>> read_range(const PeerReader& reader, const std::string& id) {
  if (!reader.has("range")) return std::optional<plan::Holding>();
  const json& range = reader.at("range");
  const auto bound = [](const json& value) {
    return value.is_number_unsigned() && value.get<std::uint64_t>() <= plan::most_units;
  };
  if (!range.is_array() || range.size() != 2 || !bound(range[0]) || !bound(range[1]) ||
      range[0] >= range[1]) {
    return invalid(fmt::format("{}: \"range\" must be [first, end] with 0 ≤ first < end ≤ {}", reader.where(),
                               plan::most_units));
  }
  plan::Holding holding;
  holding.id = id;
  holding.range = {range[0].get<std::uint32_t>(), range[1].get<std::uint32_t>()};
  if (reader.has("dealt")) {
    if (!reader.at("dealt").is_boolean())
      return invalid(reader.where() + ": \"dealt\" is neither true nor false");
    holding.dealt = reader.at("dealt").get<bool>();
  }
  return std::optional<plan::Holding>(std::move(holding));
}

Expected<void> read_peer(const json& object, std::size_t position, double layer_work, PlanFile& file) {
  std::string where = fmt::format("the peer at position {}", position + 1);
  if (!object.is_object()) return invalid(where + " is not an object");
  const PeerReader reader(object, std::move(where));
  NS_RETURN_IF_ERROR(reader.only(
      {"id", "owner", "memory", "speed", "seconds_per_layer", "measured", "up", "down", "range", "dealt"}));
  plan::PlanPeer peer;
  NS_ASSIGN_OR_RETURN(peer.id, reader.text("id"));
  if (peer.id.empty()) return invalid(reader.where() + " has no \"id\"");
  NS_ASSIGN_OR_RETURN(peer.owner, reader.text("owner"));
  if (peer.owner.empty()) peer.owner = peer.id;
  NS_ASSIGN_OR_RETURN(const double memory, reader.quantity("memory", max_memory, true));
  peer.memory = static_cast<std::uint64_t>(memory);
  NS_ASSIGN_OR_RETURN(peer.speed, read_speed(reader, layer_work));
  NS_ASSIGN_OR_RETURN(peer.up, reader.quantity("up", max_memory, true));
  peer.down = peer.up;
  if (reader.has("down")) {
    NS_ASSIGN_OR_RETURN(peer.down, reader.quantity("down", max_memory, true));
  }
  NS_ASSIGN_OR_RETURN(auto holding, read_range(reader, peer.id));
  if (holding) file.present.push_back(std::move(*holding));
  file.peers.push_back(std::move(peer));
  return {};
}

double lower_median(const std::vector<plan::PlanPeer>& peers, double plan::PlanPeer::*field) {
  std::vector<double> values;
  for (const plan::PlanPeer& peer : peers) values.push_back(peer.*field);
  const auto middle = values.begin() + static_cast<std::ptrdiff_t>((values.size() - 1) / 2);
  std::nth_element(values.begin(), middle, values.end());
  return *middle;
}

Expected<void> set_value(plan::PlanPeer& peer, const std::string& name, const std::string& value) {
  const std::string flag = "--what-if " + name;
  if (name == "owner") {
    peer.owner = value;
    return {};
  }
  if (name == "memory") {
    NS_ASSIGN_OR_RETURN(const double bytes, parse_bytes(flag, value));
    peer.memory = static_cast<std::uint64_t>(bytes);
    return {};
  }
  if (name == "speed") {
    NS_ASSIGN_OR_RETURN(peer.speed, parse_operations(flag, value));
    return {};
  }
  if (name == "up" || name == "down") {
    NS_ASSIGN_OR_RETURN((name == "up" ? peer.up : peer.down), parse_bytes(flag, value));
    return {};
  }
  return invalid(
      fmt::format("--what-if has no value \"{}\"; use memory, speed, up, down and owner, or leave=ID",
                  name.substr(0, max_text)));
}

}  // namespace

Expected<PlanFile> parse_plan_file(ByteSpan bytes, double layer_work) {
  NS_ASSIGN_OR_RETURN(json document, parse(bytes));
  if (document.is_object()) {
    for (const auto& [name, value] : document.items()) {
      if (name != "peers")
        return invalid(fmt::format("the peers file: unknown field \"{}\"", name.substr(0, max_text)));
    }
    if (document.contains("peers")) document = json(document["peers"]);
  }
  if (!document.is_array())
    return invalid("the peers file is neither a list nor an object with a list \"peers\"");
  if (document.empty()) return invalid("the peers file lists no peers");
  if (document.size() > plan::most_peers) {
    return invalid(
        fmt::format("the peers file lists {} peers; the most is {}", document.size(), plan::most_peers));
  }
  PlanFile file;
  for (std::size_t i = 0; i < document.size(); ++i)
    NS_RETURN_IF_ERROR(read_peer(document[i], i, layer_work, file));
  return file;
}

Expected<PlanChange> parse_plan_change(const std::string& text, const std::vector<plan::PlanPeer>& peers) {
  const auto known = [&](const std::string& id) {
    return std::any_of(peers.begin(), peers.end(), [&](const plan::PlanPeer& peer) { return peer.id == id; });
  };
  PlanChange change;
  if (text.rfind("leave=", 0) == 0) {
    change.leaves = text.substr(6);
    if (!known(change.leaves)) {
      return make_error(ErrorCode::NotFound, fmt::format("--what-if leave: the file has no peer '{}'",
                                                         change.leaves.substr(0, max_text)));
    }
    return change;
  }
  plan::PlanPeer peer;
  peer.id = peer.owner = joined_id;
  peer.speed = lower_median(peers, &plan::PlanPeer::speed);
  peer.up = lower_median(peers, &plan::PlanPeer::up);
  peer.down = lower_median(peers, &plan::PlanPeer::down);
  for (std::size_t start = 0; start <= text.size();) {
    const std::size_t end = std::min(text.find(',', start), text.size());
    const std::string part = text.substr(start, end - start);
    const std::size_t sign = part.find('=');
    if (sign == std::string::npos)
      return invalid(
          fmt::format("--what-if: '{}' is not NAME=VALUE, like memory=8GiB", part.substr(0, max_text)));
    NS_RETURN_IF_ERROR(set_value(peer, part.substr(0, sign), part.substr(sign + 1)));
    start = end + 1;
  }
  if (peer.memory == 0) return invalid("--what-if needs memory=BYTES, like memory=8GiB, or leave=ID");
  if (known(peer.id)) return invalid(fmt::format("--what-if: the file already has a peer '{}'", peer.id));
  change.joins = std::move(peer);
  return change;
}

}  // namespace neuroshard::app
