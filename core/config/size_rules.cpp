#include <fmt/format.h>

#include "core/chain/rules.h"
#include "core/compute/growth.h"
#include "core/compute/module.h"
#include "core/compute/shape_limits.h"
#include "core/config/detail/size_rules.h"
#include "core/rounds/sync.h"

namespace neuroshard::config::detail {
namespace {

Error bad(const std::string& problem) {
  return make_error(ErrorCode::InvalidArgument, "profile field 'sizes' " + problem);
}

Error bad_shape(const ModelGrowth& size, std::string_view problem) {
  return bad(fmt::format("has {}x{}, {}", size.layers, size.hidden, problem));
}

Error bad_memory(const ModelGrowth& size, std::string_view problem) {
  return bad(fmt::format("has {}, {}", to_text(size), problem));
}

Expected<void> check_network(const ConsensusPart& c) {
  if (c.sizes.size() > max_profile_sizes)
    return bad(fmt::format("has {} sizes; at most {} are allowed", c.sizes.size(), max_profile_sizes));
  if (c.grows == 0) return bad("must be empty where grows is 0");
  if (c.inner_steps == 0) return bad("must be empty in a network without an outer loop");
  if (rounds::sync_choice(c.sync).value_or(rounds::SyncChoice{}).fragments > 1)
    return bad(
        "must be empty where sync is \"fragments=P\": rounds of fragments end at different steps, so at none "
        "could the whole model change");
  return {};
}

Expected<void> check_tiers(const ModelGrowth& size, const ModelGrowth& before) {
  for (const auto& [what, tiers, least] :
       {std::tuple{"a member", size.member_tiers, before.member_tiers},
        std::tuple{"all members", size.network_tiers, before.network_tiers}}) {
    if (tiers < 1 || tiers > chain::most_memory_tiers)
      return bad_memory(size, fmt::format("where the memory of {} must be between 1 and {} times 500 MB",
                                          what, chain::most_memory_tiers));
    if (tiers < least)
      return bad_memory(
          size,
          fmt::format("where the memory of {} must be at least {}, that of the size before", what, least));
  }
  return {};
}

}  // namespace

Expected<void> check_sizes(const ConsensusPart& c) {
  if (c.sizes.empty()) return {};
  NS_RETURN_IF_ERROR(check_network(c));
  ModelGrowth before{c.layers, c.hidden, 0, 0};
  for (std::size_t i = 0; i < c.sizes.size(); ++i) {
    const ModelGrowth& size = c.sizes[i];
    // Before the shape, whose numbers have fewer bits.
    if (size.layers > compute::shape_limits::layers || size.hidden > compute::shape_limits::hidden)
      return bad_shape(size, fmt::format("and a model has at most {} layers of width {}",
                                         compute::shape_limits::layers, compute::shape_limits::hidden));
    if (size.layers < before.layers || size.hidden < before.hidden ||
        (size.layers == before.layers && size.hidden == before.hidden))
      return bad_shape(size,
                       fmt::format("which must be deeper or wider than {}x{}, the size before it, and in "
                                   "neither way smaller",
                                   before.layers, before.hidden));
    if (size.hidden % c.head_dim != 0)
      return bad_shape(size, fmt::format("whose width must be a multiple of head_dim, {}", c.head_dim));
    if (size.hidden * c.ffn_percent % 100 != 0)
      return bad_shape(
          size, fmt::format("of whose width {} %, ffn_percent, must be a whole number", c.ffn_percent));
    const compute::ModelShape shape = model_shape(at_size(c, i + 1));
    if (const auto valid = compute::validate(shape); !valid.ok())
      return bad_shape(size, "which no model can have: " + valid.error().message);
    if (const auto grown = compute::check_growth(model_shape(at_size(c, i)), shape); !grown.ok())
      return bad_shape(size, "which does not continue the size before it: " + grown.error().message);
    NS_RETURN_IF_ERROR(check_tiers(size, before));
    before = size;
  }
  return {};
}

}  // namespace neuroshard::config::detail
