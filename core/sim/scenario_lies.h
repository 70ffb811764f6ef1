// What both sorts of scenarios know of liars and of deltas.
#pragma once

#include <optional>
#include <string_view>
#include <vector>

#include "core/outer/attack.h"
#include "core/sim/round_liar.h"

namespace neuroshard::sim {

std::optional<Lie> lie_of(std::string_view scenario);
std::optional<outer::Attack> attack_of(std::string_view scenario);
// Over all pairs; 0 without any.
double mean_cosine(const std::vector<std::vector<float>>& deltas);

}  // namespace neuroshard::sim
