#include "core/config/model_part.h"

#include <fmt/format.h>

#include <algorithm>

#include "core/rounds/sync.h"

namespace neuroshard::config {
namespace {

constexpr std::uint64_t micro_batch_tokens = 1024;

}  // namespace

std::vector<compute::StageRange> model_parts(const ConsensusPart& consensus) {
  const std::uint32_t parts = rounds::sync_choice(consensus.sync).value_or(rounds::SyncChoice{}).parts;
  if (parts == 1) return {};
  return compute::cut_model(model_shape(consensus), parts);
}

Expected<std::optional<ModelPart>> own_part(const ConsensusPart& consensus, const Settings& settings) {
  const std::vector<compute::StageRange> parts = model_parts(consensus);
  if (parts.empty()) return std::optional<ModelPart>();
  const std::uint64_t chosen = settings.number(Setting::Part);
  if (chosen >= 1 && chosen <= parts.size()) {
    const auto index = static_cast<std::uint32_t>(chosen - 1);
    return std::optional(ModelPart{index, static_cast<std::uint32_t>(parts.size()), parts[index]});
  }
  std::string list;
  for (std::size_t i = 0; i < parts.size(); ++i)
    list += fmt::format("{}{}: {}", i == 0 ? "" : "; ", i + 1, to_text(parts[i]));
  return make_error(
      ErrorCode::InvalidArgument,
      fmt::format("The members of this network hold parts of the model: choose one in the settings, or with "
                  "--part 1 to {} "
                  "({}).",
                  parts.size(), list));
}

std::uint32_t pipeline_sequences(const ConsensusPart& consensus) {
  const std::uint64_t batch = std::max<std::uint64_t>(1, consensus.batch_tokens / consensus.sequence);
  std::uint64_t sequences = std::clamp<std::uint64_t>(micro_batch_tokens / consensus.sequence, 1, batch);
  while (batch % sequences != 0) --sequences;
  return static_cast<std::uint32_t>(sequences);
}

}  // namespace neuroshard::config
