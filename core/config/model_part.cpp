#include "core/config/model_part.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>

#include "core/crypto/keys.h"
#include "core/rounds/sync.h"

namespace neuroshard::config {
namespace {

constexpr std::uint64_t micro_batch_tokens = 1024, bf16_bytes = 2;
constexpr std::uint64_t most_part_digits = 8;

std::string part_path(const DataDirectory& directory) {
  return directory.path() + "/part";
}

Error no_such_part(const std::vector<compute::StageRange>& parts, std::uint64_t chosen) {
  std::string list;
  for (std::size_t i = 0; i < parts.size(); ++i)
    list += fmt::format("{}{}: {}", i == 0 ? "" : "; ", i + 1, to_text(parts[i]));
  return make_error(
      ErrorCode::InvalidArgument,
      fmt::format("The model of this network has no part {}. Its parts are {}. Choose one of them in the "
                  "settings or with --part, or 0: then the network chooses.",
                  chosen, list));
}

// The one in the file, if that has one.
std::optional<std::uint32_t> kept_part(const DataDirectory& directory, storage::FileEnv& files) {
  std::uint32_t number = 0;
  if (const auto bytes = storage::read_file(files, part_path(directory), most_part_digits); bytes.ok()) {
    const char* text = reinterpret_cast<const char*>(bytes->data());
    if (std::from_chars(text, text + bytes->size(), number).ec != std::errc()) number = 0;
  }
  return number > 0 ? std::optional(number - 1) : std::nullopt;
}

// Micro-batches of all drivers. Windows are rounded up, for as many drivers as parts.
std::uint64_t most_under_way(const ConsensusPart& consensus) {
  return 3 * model_parts(consensus).size() + 2;
}

// Where the layers of the range are in the larger model, with the new ones after them.
compute::StageRange grown(compute::StageRange range, const compute::ModelShape& shape,
                          const compute::ModelShape& larger) {
  const auto moved = [&](std::uint64_t layer) {
    return static_cast<std::uint32_t>(layer * larger.layers / shape.layers);
  };
  const std::uint32_t first = moved(range.first_layer), end = moved(range.first_layer + range.layer_count);
  range.first_layer = first;
  range.layer_count = end - first;
  return range;
}

// Of one micro-batch between two parts.
std::uint64_t payload_bytes(const ConsensusPart& consensus) {
  return pipeline_sequences(consensus) * consensus.sequence * model_shape(consensus).hidden * bf16_bytes;
}

}  // namespace

std::vector<compute::StageRange> model_parts(const ConsensusPart& consensus) {
  const std::uint32_t parts = rounds::sync_choice(consensus.sync).value_or(rounds::SyncChoice{}).parts;
  if (parts == 1) return {};
  compute::ModelShape shape = model_shape(at_size(consensus, 0));
  std::vector<compute::StageRange> ranges = compute::cut_model(shape, parts);
  for (std::uint64_t size = 1; size <= consensus.size; ++size) {
    const compute::ModelShape larger = model_shape(at_size(consensus, size));
    for (compute::StageRange& range : ranges) range = grown(range, shape, larger);
    shape = larger;
  }
  return ranges;
}

Expected<std::optional<ModelPart>> own_part(const ConsensusPart& consensus, const Settings& settings,
                                            std::uint32_t planned) {
  const std::vector<compute::StageRange> parts = model_parts(consensus);
  if (parts.empty()) return std::optional<ModelPart>();
  const std::uint64_t chosen = settings.number(Setting::Part);
  if (chosen > parts.size()) return no_such_part(parts, chosen);
  const auto count = static_cast<std::uint32_t>(parts.size());
  const auto index = chosen == 0 ? planned % count : static_cast<std::uint32_t>(chosen - 1);
  return std::optional(ModelPart{index, count, parts[index], chosen == 0, false});
}

Expected<std::optional<ModelPart>> own_part(const DataDirectory& directory, storage::FileEnv& files) {
  const auto kept = kept_part(directory, files);
  const std::uint32_t drawn = crypto::node_id(directory.node_key().public_key())[0];
  NS_ASSIGN_OR_RETURN(auto part,
                      own_part(directory.profile().consensus, directory.settings(), kept.value_or(drawn)));
  if (part) part->drawn = part->follows_plan && !kept;
  return part;
}

Expected<void> keep_part(const DataDirectory& directory, storage::FileEnv& files, std::uint32_t index) {
  const std::string number = fmt::format("{}\n", index + 1);
  return storage::write_file_atomic(files, part_path(directory), as_bytes(number));
}

std::optional<std::uint32_t> next_fitting(const std::vector<bool>& fitting, std::uint32_t index) {
  const std::size_t count = fitting.size();
  for (std::size_t i = 0; i < count; ++i) {
    const std::size_t part = (index + i) % count;
    if (fitting[part]) return static_cast<std::uint32_t>(part);
  }
  return std::nullopt;
}

std::uint32_t pipeline_sequences(const ConsensusPart& consensus) {
  const std::uint64_t batch = std::max<std::uint64_t>(1, consensus.batch_tokens / consensus.sequence);
  std::uint64_t sequences = std::clamp<std::uint64_t>(micro_batch_tokens / consensus.sequence, 1, batch);
  while (batch % sequences != 0) --sequences;
  return static_cast<std::uint32_t>(sequences);
}

std::uint32_t pipeline_window(std::size_t parts, std::size_t members, std::size_t holders) {
  const std::size_t together = pipeline_depth(parts, 0),
                    drivers = std::max<std::size_t>(1, members / holders);
  return static_cast<std::uint32_t>(std::clamp<std::size_t>((together + drivers - 1) / drivers, 2, together));
}

// Each part has one micro-batch on its way to the head and one on its way back.
std::uint32_t pipeline_depth(std::size_t parts, std::size_t index) {
  return static_cast<std::uint32_t>(2 * (parts - index) + 2);
}

std::uint64_t pipeline_bytes(const ConsensusPart& consensus) {
  // Both a received payload and the sent one are kept.
  return 2 * most_under_way(consensus) * payload_bytes(consensus);
}

std::uint64_t part_payload_bytes(const ConsensusPart& consensus, const compute::StageRange& range) {
  const std::uint64_t under_way = most_under_way(consensus);
  const std::uint64_t of_step = consensus.batch_tokens / (pipeline_sequences(consensus) * consensus.sequence);
  return (std::min(under_way, of_step) + (range.embed ? 0 : under_way)) * payload_bytes(consensus);
}

}  // namespace neuroshard::config
