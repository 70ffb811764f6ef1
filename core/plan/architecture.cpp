#include "core/plan/architecture.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>

#include "core/base/check.h"
#include "core/compute/module.h"
#include "core/compute/slot.h"

namespace neuroshard::plan {
namespace {

using compute::ModelShape;
using compute::StageSpec;

constexpr double gigabyte = 1e9;
constexpr double curve_unit_gb = 10;  // M/10
constexpr std::uint64_t curve_hidden = 256;
constexpr int curve_layers = 8;
constexpr std::uint32_t layer_step = 2;
constexpr std::array<std::uint64_t, 5> tier_starts{40'000'000'000, 100'000'000'000, 400'000'000'000,
                                                   1'600'000'000'000, 6'000'000'000'000};

std::uint32_t width_unit(const GrowthRules& rules) {
  return rules.heads_per_kv_head * rules.minimum.head_dim;
}

// layers ≤ 8·log2(M/10 + 1)  ⇔  2^layers ≤ (M/10 + 1)^8; no logarithm, whose last bit differs between libraries.
bool curve_allows_layers(std::uint32_t layers, std::uint64_t bytes) {
  const double base = static_cast<double>(bytes) / (curve_unit_gb * gigabyte) + 1;
  double power = base;
  for (int i = 1; i < curve_layers; i *= 2) power *= power;
  return std::ldexp(1.0, static_cast<int>(layers)) <= power;
}

// hidden ≤ 256·sqrt(M/10)  ⇔  hidden²·10 ≤ 256²·M
std::uint64_t curve_bytes_of_hidden(std::uint64_t hidden) {
  const std::uint64_t squared = hidden * hidden * static_cast<std::uint64_t>(curve_unit_gb * gigabyte);
  return (squared + curve_hidden * curve_hidden - 1) / (curve_hidden * curve_hidden);
}

std::uint64_t whole_tiers_above(std::uint64_t bytes) {
  return (bytes + memory_tier_bytes - 1) / memory_tier_bytes * memory_tier_bytes;
}

std::uint64_t curve_bytes_of_layers(std::uint32_t layers) {
  std::uint64_t low = 0, high = 1;  // tiers
  while (!curve_allows_layers(layers, high * memory_tier_bytes)) high *= 2;
  while (low + 1 < high) {
    const std::uint64_t middle = (low + high) / 2;
    (curve_allows_layers(layers, middle * memory_tier_bytes) ? high : low) = middle;
  }
  return high * memory_tier_bytes;
}

ModelShape widened(const GrowthRules& rules, std::uint32_t layers, std::uint32_t hidden) {
  ModelShape shape = rules.minimum;
  shape.layers = layers;
  if (hidden == shape.hidden) return shape;
  shape.hidden = hidden;
  shape.heads = hidden / shape.head_dim;
  shape.kv_heads = shape.heads / rules.heads_per_kv_head;
  shape.ffn = static_cast<std::uint32_t>(std::uint64_t{hidden} * rules.ffn_percent / 100);
  return shape;
}

Rung make_rung(const GrowthRules& rules, const ModelShape& shape, std::uint64_t curve_bytes) {
  Rung rung;
  rung.shape = shape;
  rung.copy_bytes = training_bytes(rules, shape);
  rung.curve_bytes = curve_bytes;
  rung.required_bytes = std::max(curve_bytes, required_bytes(rung.copy_bytes, least_replicas));
  return rung;
}

StageSpec whole_model(const ModelShape& shape) {
  StageSpec spec;
  spec.shape = shape;
  spec.layer_count = shape.layers;
  spec.embed = spec.head = true;
  return spec;
}

bool larger(const ModelShape& shape, const ModelShape& than) {
  return shape.layers > than.layers || shape.hidden > than.hidden;
}

// The last rung of which `needs` says that the memory is enough; the first one if none.
template <typename Needs>
std::size_t largest(const std::vector<Rung>& rungs, std::uint64_t contributed, Needs needs) {
  std::size_t best = 0;
  for (std::size_t i = 1; i < rungs.size() && needs(rungs[i]) <= contributed; ++i) best = i;
  return best;
}

}  // namespace

Expected<void> validate(const GrowthRules& rules) {
  NS_RETURN_IF_ERROR(compute::validate(rules.minimum));
  const auto bad = [](std::string message) {
    return make_error(ErrorCode::InvalidArgument, std::move(message));
  };
  if (rules.batch_tokens == 0 || rules.batch_tokens % rules.minimum.sequence != 0) {
    return bad(fmt::format("batch_tokens is {}; it must be a positive multiple of the sequence, {}",
                           rules.batch_tokens, rules.minimum.sequence));
  }
  if (!rules.grows) return {};
  if (rules.heads_per_kv_head == 0 || rules.heads_per_kv_head > most_hidden || rules.ffn_percent == 0) {
    return bad("heads_per_kv_head and ffn_percent must be positive");
  }
  if (rules.minimum.hidden % width_unit(rules) != 0) {
    return bad(fmt::format(
        "the minimum hidden is {}; a model that grows needs a multiple of {}, which is head_dim · "
        "heads_per_kv_head",
        rules.minimum.hidden, width_unit(rules)));
  }
  if (rules.minimum.layers > most_layers || rules.minimum.hidden > most_hidden) {
    return bad(
        fmt::format("the minimum has {} layers of width {}; a model that grows has at most {} of width {}",
                    rules.minimum.layers, rules.minimum.hidden, most_layers, most_hidden));
  }
  if (rules.minimum.layers % layer_step != 0) {
    return bad(fmt::format("the minimum has {} layers; a model that grows needs an even number",
                           rules.minimum.layers));
  }
  return {};
}

std::uint64_t training_bytes(const GrowthRules& rules, const ModelShape& shape) {
  return training_bytes(rules, whole_model(shape));
}

std::uint64_t training_bytes(const GrowthRules& rules, const StageSpec& spec) {
  const std::uint32_t sequence = spec.shape.sequence;
  return compute::estimate_memory(spec, rules.precision).total() +
         compute::estimate_workspace_bytes(spec, rules.precision, sequence, rules.threads) +
         rules.batch_tokens / sequence *
             compute::estimate_activation_bytes_per_sample(spec, rules.precision, sequence);
}

std::vector<Rung> ladder(const GrowthRules& rules) {
  std::vector<Rung> rungs{make_rung(rules, rules.minimum, 0)};
  std::uint64_t reached = 0;
  std::uint32_t layers = rules.minimum.layers, hidden = rules.minimum.hidden;
  const auto next_of = [](std::uint32_t value, std::uint32_t step, std::uint32_t most, auto bytes) {
    return value + step > most ? std::numeric_limits<std::uint64_t>::max() : bytes(value + step);
  };
  while (rules.grows) {
    const std::uint64_t deeper = next_of(layers, layer_step, most_layers, curve_bytes_of_layers);
    const std::uint64_t wider = next_of(hidden, width_unit(rules), most_hidden, curve_bytes_of_hidden);
    const std::uint64_t next = std::min(deeper, wider);
    if (next == std::numeric_limits<std::uint64_t>::max()) break;
    if (deeper <= wider) {
      layers += layer_step;
    } else {
      hidden += width_unit(rules);
    }
    reached = std::max(reached, whole_tiers_above(next));
    rungs.push_back(make_rung(rules, widened(rules, layers, hidden), reached));
    if (!compute::validate(rungs.back().shape).ok()) {
      rungs.pop_back();
      break;
    }
  }
  return rungs;
}

std::uint64_t counted_bytes(std::uint64_t memory_bytes) {
  return memory_bytes / memory_tier_bytes * memory_tier_bytes;
}

std::uint64_t required_bytes(std::uint64_t copy_bytes, std::uint32_t replicas) {
  // Without overflow: copy_bytes is below 2^50 (shape_limits.h).
  return (copy_bytes * replicas * 100 + usable_percent - 1) / usable_percent;
}

Tier tier_of(std::uint64_t contributed_bytes) {
  const auto above = std::upper_bound(tier_starts.begin(), tier_starts.end(), contributed_bytes);
  return static_cast<Tier>(above - tier_starts.begin());
}

std::string_view to_string(Tier tier) {
  constexpr std::array<std::string_view, 6> names{"Nano", "Micro", "Small", "Medium", "Large", "XL"};
  return names[static_cast<std::size_t>(tier)];
}

std::string_view to_string(NetworkState state) {
  switch (state) {
    case NetworkState::TooSmall: return "too small";
    case NetworkState::Forming: return "forming";
    case NetworkState::Ready: return "ready";
  }
  return "unknown";
}

std::optional<std::uint64_t> next_tier_bytes(Tier tier) {
  const auto index = static_cast<std::size_t>(tier);
  if (index >= tier_starts.size()) return std::nullopt;
  return tier_starts[index];
}

Architecture choose_architecture(const GrowthRules& rules, const std::vector<std::uint64_t>& contributed) {
  Architecture result;
  // The sum stops at the largest number: it is above all that the ladder asks for.
  constexpr std::uint64_t most = std::numeric_limits<std::uint64_t>::max();
  for (const std::uint64_t bytes : contributed)
    result.contributed_bytes += std::min(counted_bytes(bytes), most - result.contributed_bytes);
  const std::vector<Rung> rungs = ladder(rules);
  const std::size_t index =
      largest(rungs, result.contributed_bytes, [](const Rung& rung) { return rung.required_bytes; });
  result.tier = tier_of(result.contributed_bytes);
  result.shape = rungs[index].shape;
  result.copy_bytes = rungs[index].copy_bytes;
  if (index + 1 < rungs.size()) result.next = rungs[index + 1];
  const std::uint64_t one = required_bytes(result.copy_bytes, 1);
  const std::uint64_t replicated = required_bytes(result.copy_bytes, least_replicas);
  if (result.contributed_bytes >= replicated) {
    result.state = NetworkState::Ready;
  } else if (result.contributed_bytes >= one) {
    result.state = NetworkState::Forming;
    result.missing_bytes = replicated - result.contributed_bytes;
  } else {
    result.missing_bytes = one - result.contributed_bytes;
  }
  return result;
}

Change decide_change(const GrowthRules& rules, const ModelShape& present, std::uint64_t contributed_bytes) {
  const std::vector<Rung> rungs = ladder(rules);
  const std::uint64_t present_bytes = training_bytes(rules, present);
  if (contributed_bytes < required_bytes(present_bytes, least_replicas)) {
    const ModelShape& chosen =
        rungs[largest(rungs, contributed_bytes, [](const Rung& rung) { return rung.required_bytes; })].shape;
    const bool smaller = compute::model_parameter_count(chosen) < compute::model_parameter_count(present);
    return smaller ? Change{ChangeKind::Downgrade, chosen} : Change{ChangeKind::Keep, present};
  }
  const auto with_surplus = [](const Rung& rung) {
    const std::uint64_t copies = least_replicas * rung.copy_bytes;
    return std::max(rung.required_bytes, copies + copies / 100 * upgrade_surplus_percent);
  };
  const ModelShape& target = rungs[largest(rungs, contributed_bytes, with_surplus)].shape;
  const bool contains = target.layers >= present.layers && target.hidden >= present.hidden;
  const bool enough = compute::model_parameter_count(target) * 100 >=
                      compute::model_parameter_count(present) * upgrade_parameters_percent;
  if (contains && larger(target, present) && enough) return {ChangeKind::Upgrade, target};
  return {ChangeKind::Keep, present};
}

}  // namespace neuroshard::plan
