#include "core/engine/trainer_state.h"

#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <utility>

#include "core/rounds/fragments.h"
#include "core/train/schedule.h"

namespace neuroshard::engine {
namespace {

Error damaged_place() {
  return make_error(ErrorCode::Corrupt,
                    "The checkpoint's place in a round can't be read; choose another checkpoint.");
}

nlohmann::json place_json(const RoundPlace& place) {
  return {{"round", place.round},
          {"anchor", to_hex(place.anchor)},
          {"steps", place.steps},
          {"tokens", place.tokens}};
}

Expected<RoundPlace> decode_place(const nlohmann::json& json) {
  RoundPlace place;
  for (const auto& [field, value] : {std::pair{"round", &place.round}, std::pair{"steps", &place.steps},
                                     std::pair{"tokens", &place.tokens}}) {
    if (!json.is_object() || !json.contains(field) || !json[field].is_number_unsigned())
      return damaged_place();
    *value = json[field].get<std::uint64_t>();
  }
  if (!json.contains("anchor") || !json["anchor"].is_string()) return damaged_place();
  const auto anchor = hash_from_hex(json["anchor"].get<std::string>());
  if (!anchor.ok()) return damaged_place();
  place.anchor = *anchor;
  return place;
}

// Neither: a checkpoint of training without rounds.
Expected<std::vector<RoundPlace>> decode_places(const nlohmann::json& json) {
  std::vector<RoundPlace> places;
  if (json.contains("round")) {
    NS_ASSIGN_OR_RETURN(const RoundPlace place, decode_place(json["round"]));
    places.push_back(place);
  } else if (json.contains("fragments")) {
    const nlohmann::json& fragments = json["fragments"];
    if (!fragments.is_array() || fragments.size() > rounds::max_fragments) return damaged_place();
    for (const nlohmann::json& one : fragments) {
      NS_ASSIGN_OR_RETURN(const RoundPlace place, decode_place(one));
      places.push_back(place);
    }
  }
  return places;
}

}  // namespace

std::string encode_trainer_state(const TrainerState& state) {
  nlohmann::json json{{"format", 1},
                      {"tokenizer", to_hex(state.tokenizer_hash)},
                      {"memory_limit", state.memory_limit},
                      {"max_micro_batch", state.max_micro_batch}};
  const bool in_rounds = std::any_of(state.places.begin(), state.places.end(),
                                     [](const RoundPlace& place) { return place.round != 0; });
  if (in_rounds && state.places.size() == 1) {
    json["round"] = place_json(state.places.front());
  } else if (in_rounds) {
    json["fragments"] = nlohmann::json::array();
    for (const RoundPlace& place : state.places) json["fragments"].push_back(place_json(place));
  }
  if (state.since_arrival > 0 && state.since_arrival < train::rewarm_steps)
    json["since_arrival"] = state.since_arrival;
  return json.dump();
}

Expected<void> decode_trainer_state(const std::string& text, TrainerState* state) {
  const auto json = nlohmann::json::parse(text, nullptr, false);
  const auto missing = [](const char* field) {
    return make_error(
        ErrorCode::Corrupt,
        fmt::format("The checkpoint's training state has no usable \"{}\"; choose another checkpoint.",
                    field));
  };
  if (!json.is_object() || !json.contains("tokenizer") || !json["tokenizer"].is_string())
    return missing("tokenizer");
  const auto tokenizer = hash_from_hex(json["tokenizer"].get<std::string>());
  if (!tokenizer.ok()) return missing("tokenizer");
  state->tokenizer_hash = *tokenizer;
  for (const auto& [field, value] : {std::pair{"memory_limit", &state->memory_limit},
                                     std::pair{"max_micro_batch", &state->max_micro_batch}}) {
    if (!json.contains(field) || !json[field].is_number_unsigned()) return missing(field);
    *value = json[field].get<std::uint64_t>();
  }
  state->since_arrival = 0;
  if (json.contains("since_arrival")) {
    if (!json["since_arrival"].is_number_unsigned()) return missing("since_arrival");
    state->since_arrival = json["since_arrival"].get<std::uint64_t>();
  }
  NS_ASSIGN_OR_RETURN(state->places, decode_places(json));
  return {};
}

}  // namespace neuroshard::engine
