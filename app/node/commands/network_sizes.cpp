#include "app/node/commands/network_sizes.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <cmath>
#include <nlohmann/json.hpp>
#include <numeric>
#include <optional>

#include "app/node/output/quantity.h"
#include "core/chain/rules.h"
#include "core/compute/slot.h"
#include "core/config/model_part.h"
#include "core/engine/member_memory.h"
#include "core/plan/network_memory.h"
#include "core/runtime/growth_rules.h"

namespace neuroshard::app {
namespace {

constexpr std::string_view every_size = "all";
constexpr std::size_t most_flag_text = 80;  // characters of a wrong one that are shown

// A size as the flag names it.
struct WantedSize {
  std::uint64_t layers = 0, hidden = 0;
  std::optional<std::uint64_t> member_tiers, network_tiers;
};

std::uint64_t tiers_of(std::uint64_t bytes) {
  return (bytes + plan::memory_tier_bytes - 1) / plan::memory_tier_bytes;
}

bool take_number(std::string_view& text, std::uint64_t& number) {
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (error != std::errc()) return false;
  text.remove_prefix(static_cast<std::size_t>(end - text.data()));
  return true;
}

Expected<WantedSize> parse_wanted(const std::string& flag) {
  WantedSize size;
  std::string_view text = flag;
  const auto is_next = [&text](char c) {
    if (text.empty() || text.front() != c) return false;
    text.remove_prefix(1);
    return true;
  };
  if (!take_number(text, size.layers) || !is_next('x') || !take_number(text, size.hidden) ||
      (!text.empty() && text.front() != '@'))
    return make_error(ErrorCode::InvalidArgument,
                      fmt::format("--grow-to can't be '{}'; it must be LAYERSxWIDTH like 6x256, "
                                  "LAYERSxWIDTH@MEMORY like 6x256@2GB, LAYERSxWIDTH@MEMORY/MEMORY like "
                                  "6x256@2GB/7GB, or {}",
                                  flag.substr(0, most_flag_text), every_size));
  if (!is_next('@')) return size;
  const auto memory = [&flag](std::string_view part) -> Expected<std::uint64_t> {
    NS_ASSIGN_OR_RETURN(
        const double bytes,
        parse_bytes("the memory of --grow-to " + flag.substr(0, most_flag_text), std::string(part)));
    return tiers_of(static_cast<std::uint64_t>(std::ceil(bytes)));
  };
  const std::size_t slash = text.find('/');
  NS_ASSIGN_OR_RETURN(size.member_tiers, memory(text.substr(0, slash)));
  if (slash != std::string_view::npos) {
    NS_ASSIGN_OR_RETURN(size.network_tiers, memory(text.substr(slash + 1)));
  }
  return size;
}

// Those of the ladder of shapes, after the profile's own.
Expected<std::vector<WantedSize>> all_sizes(const config::ConsensusPart& consensus) {
  const plan::GrowthRules rules = runtime::growth_rules(consensus);
  if (auto valid = plan::validate(rules); !valid.ok())
    return std::move(valid).error().with_context("--grow-to all");
  std::vector<WantedSize> sizes;
  const std::vector<plan::Rung> ladder = plan::ladder(rules);
  for (const plan::ModelSize& size : plan::model_sizes(rules, [](const auto&) { return 0; })) {
    const auto rung = std::find_if(ladder.begin(), ladder.end(), [&size](const plan::Rung& one) {
      return one.shape.layers == size.shape.layers && one.shape.hidden == size.shape.hidden;
    });
    // The rules choose it from so much memory on.
    sizes.push_back({size.shape.layers, size.shape.hidden, std::nullopt, tiers_of(rung->required_bytes)});
  }
  sizes.erase(sizes.begin());
  if (sizes.empty())
    return make_error(ErrorCode::InvalidArgument,
                      "--grow-to all: the network's model is the largest already");
  sizes.resize(std::min(sizes.size(), config::max_profile_sizes));
  return sizes;
}

Expected<std::vector<WantedSize>> wanted_sizes(const std::vector<std::string>& flags,
                                               const config::ConsensusPart& consensus) {
  if (std::find(flags.begin(), flags.end(), every_size) != flags.end()) {
    if (flags.size() == 1) return all_sizes(consensus);
    return make_error(ErrorCode::InvalidArgument,
                      "--grow-to all has every size already; name either it or single sizes");
  }
  std::vector<WantedSize> sizes;
  for (const std::string& flag : flags) {
    NS_ASSIGN_OR_RETURN(WantedSize size, parse_wanted(flag));
    sizes.push_back(size);
  }
  return sizes;
}

std::string memory_of(std::uint64_t tiers) {
  return gigabytes(tiers * plan::memory_tier_bytes);
}

// Memory for the size that the profile is at, in whole tiers. Two copies of the model have room in what all members offer, unless a
// person says what each needs. That can be more than the memory plan of a member says, and not less: members that can't hold the
// model would count as such that can.
Expected<void> find_needs(const config::ConsensusPart& consensus, const WantedSize& wanted,
                          config::ModelGrowth& size) {
  const std::vector<std::uint64_t> parts = engine::part_bytes(consensus);
  const std::uint64_t least = tiers_of(*std::max_element(parts.begin(), parts.end()));
  if (wanted.member_tiers) {
    if (*wanted.member_tiers < least)
      return make_error(
          ErrorCode::InvalidArgument,
          fmt::format("--grow-to {}x{}: {} is too little, because a member needs {} for that model",
                      wanted.layers, wanted.hidden, memory_of(*wanted.member_tiers), memory_of(least)));
    size.member_tiers = *wanted.member_tiers;
    size.network_tiers = wanted.network_tiers.value_or(size.member_tiers);
    return {};
  }
  const std::uint64_t together = std::accumulate(parts.begin(), parts.end(), std::uint64_t{0});
  size.member_tiers = least;
  size.network_tiers = std::max(tiers_of(plan::required_bytes(together, plan::least_replicas)),
                                wanted.network_tiers.value_or(0));
  // Of a whole model no member can hold less than one copy.
  if (parts.size() == 1)
    size.network_tiers = std::max(size.network_tiers, plan::least_replicas * size.member_tiers);
  return {};
}

}  // namespace

Expected<void> take_sizes(const std::vector<std::string>& flags, config::ConsensusPart& consensus) {
  consensus.sizes.clear();
  consensus.grows = 1;
  NS_RETURN_IF_ERROR(validate(consensus));
  NS_ASSIGN_OR_RETURN(const std::vector<WantedSize> wanted, wanted_sizes(flags, consensus));
  // The shapes are checked before anything is computed of them.
  for (const WantedSize& size : wanted) consensus.sizes.push_back({size.layers, size.hidden, 1, 1});
  NS_RETURN_IF_ERROR(validate(consensus));
  const bool every = flags.front() == every_size;
  config::ModelGrowth before;
  for (std::size_t i = 0; i < wanted.size(); ++i) {
    config::ModelGrowth& size = consensus.sizes[i];
    NS_RETURN_IF_ERROR(find_needs(config::at_size(consensus, i + 1), wanted[i], size));
    // A larger model never needs less: the sizes before it may have a person's numbers.
    if (!wanted[i].member_tiers) size.member_tiers = std::max(size.member_tiers, before.member_tiers);
    size.network_tiers = std::max(size.network_tiers, before.network_tiers);
    if (every && i > 0 && std::max(size.member_tiers, size.network_tiers) > chain::most_memory_tiers) {
      consensus.sizes.resize(i);
      break;
    }
    before = size;
  }
  return validate(consensus);
}

void show_sizes(const config::ConsensusPart& consensus, Output& out, nlohmann::ordered_json& document) {
  if (consensus.sizes.empty()) return;
  out.line(
      "Sizes that the model may grow to, and the memory that each member and all members have to offer:");
  for (std::size_t i = 0; i < consensus.sizes.size(); ++i) {
    const config::ModelGrowth& size = consensus.sizes[i];
    const std::uint64_t parameters =
        compute::model_parameter_count(config::model_shape(config::at_size(consensus, i + 1)));
    out.line(fmt::format("  {:<28} {} parameters; {} of each, {} of all",
                         fmt::format("{} layers of width {}", size.layers, size.hidden),
                         human_count(parameters), memory_of(size.member_tiers),
                         memory_of(size.network_tiers)));
    document["grows_to"].push_back({{"layers", size.layers},
                                    {"hidden", size.hidden},
                                    {"parameters", parameters},
                                    {"member_bytes", size.member_tiers * plan::memory_tier_bytes},
                                    {"network_bytes", size.network_tiers * plan::memory_tier_bytes}});
  }
  out.line("");
}

std::string human_count(std::uint64_t count) {
  if (count >= 1'000'000'000) return fmt::format("{:.2f} billion", static_cast<double>(count) / 1e9);
  if (count >= 1'000'000) return fmt::format("{:.2f} million", static_cast<double>(count) / 1e6);
  return fmt::format("{}", count);
}

}  // namespace neuroshard::app
