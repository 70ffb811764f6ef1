#include "core/checkpoint/slot_tensors.h"

#include <fmt/format.h>

#include <algorithm>

#include "core/checkpoint/detail/layout.h"

namespace neuroshard::checkpoint {
namespace {

// Owns what a TensorView shows.
struct Part {
  struct Slot {
    compute::SlotId id;
    std::vector<float> weights, moments;
  };
  std::vector<Slot> slots;
  std::vector<tensor::TensorEntry> extra_entries;
  std::vector<float> extras;

  TensorView view() const {
    TensorView view;
    for (const Slot& slot : slots) {
      const Span<const float> moments(slot.moments);
      const std::size_t count = slot.weights.size();
      view.slots.push_back({slot.id, slot.weights, moments.first(count), moments.subspan(count)});
    }
    std::size_t at = 0;
    const std::string prefix = detail::extra_prefix;
    for (const tensor::TensorEntry& entry : extra_entries) {
      const std::size_t count = entry.bytes / sizeof(float);
      view.extras.push_back({entry.spec.name.substr(prefix.size()), entry.spec.dims,
                             Span<const float>(extras).subspan(at, count)});
      at += count;
    }
    return view;
  }
};

Expected<std::vector<float>> read_floats(storage::FileEnv& env, const std::string& path, const SlotRun& run) {
  NS_ASSIGN_OR_RETURN(const auto file, env.open_read(path));
  if (file->size() != run.bytes || run.bytes % sizeof(float) != 0)
    return make_error(ErrorCode::Corrupt, path + " does not have the size that the index states");
  std::vector<float> values(static_cast<std::size_t>(run.bytes / sizeof(float)));
  NS_RETURN_IF_ERROR(file->read_at(0, {reinterpret_cast<std::uint8_t*>(values.data()), run.bytes}));
  return values;
}

// Names and shapes of the extra tensors, which follow the slots in their file.
Expected<std::vector<tensor::TensorEntry>> read_extra_entries(storage::FileEnv& env, const std::string& path,
                                                              std::uint64_t file_bytes) {
  NS_ASSIGN_OR_RETURN(const Bytes header, storage::read_file(env, path, tensor::max_header_bytes));
  NS_ASSIGN_OR_RETURN(const tensor::SafetensorsHeader parsed,
                      tensor::parse_safetensors_header(header, file_bytes));
  std::vector<tensor::TensorEntry> entries;
  for (const tensor::TensorEntry& entry : parsed.tensors) {
    if (entry.spec.name.rfind(detail::extra_prefix, 0) != 0) continue;
    if (entry.spec.type != tensor::DType::F32)
      return make_error(ErrorCode::Corrupt, fmt::format("the tensor {} is not fp32", entry.spec.name));
    entries.push_back(entry);
  }
  return entries;
}

}  // namespace

Expected<std::vector<SlotRun>> runs_of_slots(const std::vector<SlotRun>& index,
                                             const std::vector<compute::SlotId>& slots) {
  for (const compute::SlotId slot : slots)
    if (std::none_of(index.begin(), index.end(),
                     [&](const SlotRun& run) { return run.of == RunOf::Slot && run.slot == slot; }))
      return make_error(ErrorCode::InvalidArgument,
                        fmt::format("the checkpoint does not hold {}", compute::to_string(slot)));
  const bool has_extras =
      std::any_of(index.begin(), index.end(), [](const SlotRun& run) { return run.of == RunOf::Extras; });
  std::vector<SlotRun> runs;
  for (const SlotRun& run : index) {
    const bool wanted = run.of == RunOf::Slot ? std::find(slots.begin(), slots.end(), run.slot) != slots.end()
                                              : has_extras && run.file == RunFile::Optimizer;
    if (wanted) runs.push_back(run);
  }
  return runs;
}

std::string run_file_name(const SlotRun& run) {
  std::string what = run.of == RunOf::Header   ? "header"
                     : run.of == RunOf::Extras ? "extras"
                                               : compute::to_string(run.slot);
  std::replace(what.begin(), what.end(), ' ', '-');
  return (run.file == RunFile::Weights ? "weights-" : "optimizer-") + what;
}

Expected<SaveResult> make_part(storage::FileEnv& env, const crypto::KeyPair& key, Manifest source,
                               const std::string& source_name, const std::vector<SlotRun>& runs,
                               const std::string& folder, const std::string& root) {
  const FileRecord* const optimizer = source.file(detail::optimizer_file);
  if (optimizer == nullptr) return make_error(ErrorCode::Corrupt, "the manifest names no optimizer state");
  Part part;
  for (const SlotRun& run : runs) {
    const std::string path = folder + "/" + run_file_name(run);
    if (run.of == RunOf::Header) {
      NS_ASSIGN_OR_RETURN(part.extra_entries, read_extra_entries(env, path, optimizer->bytes));
      continue;
    }
    NS_ASSIGN_OR_RETURN(std::vector<float> values, read_floats(env, path, run));
    if (run.of == RunOf::Extras) {
      part.extras = std::move(values);
      continue;
    }
    auto slot = std::find_if(part.slots.begin(), part.slots.end(),
                             [&](const Part::Slot& s) { return s.id == run.slot; });
    if (slot == part.slots.end()) slot = part.slots.insert(slot, {run.slot, {}, {}});
    (run.file == RunFile::Weights ? slot->weights : slot->moments) = std::move(values);
  }
  std::uint64_t extra_bytes = 0;
  for (const tensor::TensorEntry& entry : part.extra_entries) extra_bytes += entry.bytes;
  if (extra_bytes != part.extras.size() * sizeof(float))
    return make_error(ErrorCode::Corrupt, "the extra tensors do not match the file's header");
  for (const Part::Slot& slot : part.slots)
    if (slot.moments.size() != 2 * slot.weights.size())
      return make_error(ErrorCode::Corrupt,
                        fmt::format("the moments of {} do not match the number of its weights",
                                    compute::to_string(slot.id)));
  if (source.origin.empty())
    source.origin = fmt::format("{} of node {}", source_name, to_hex(source.instance).substr(0, 16));
  NS_ASSIGN_OR_RETURN(Writer writer, Writer::open(env, key, root));
  return writer.save(std::move(source), part.view());
}

}  // namespace neuroshard::checkpoint
