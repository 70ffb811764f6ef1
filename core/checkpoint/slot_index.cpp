#include "core/checkpoint/slot_index.h"

#include <fmt/format.h>

#include "core/checkpoint/detail/layout.h"

namespace neuroshard::checkpoint {
namespace {

constexpr std::uint32_t magic = 0x4953'534e;  // "NSSI"
constexpr std::uint32_t version = 1;
constexpr std::size_t head_bytes = 12;
constexpr std::uint8_t header_mark = 4, extras_mark = 5;

Error damaged(const char* what) {
  return make_error(ErrorCode::Corrupt, fmt::format("{} is damaged: {}", slot_index_file, what));
}

std::uint8_t mark_of(const SlotRun& run) {
  if (run.of == RunOf::Header) return header_mark;
  if (run.of == RunOf::Extras) return extras_mark;
  return static_cast<std::uint8_t>(run.slot.kind);
}

Expected<SlotRun> decode_run(ByteSpan bytes) {
  SlotRun run;
  const std::uint8_t mark = bytes[0];
  if (mark > extras_mark || bytes[1] > 1) return damaged("a run of an unknown kind");
  run.of = mark == header_mark ? RunOf::Header : mark == extras_mark ? RunOf::Extras : RunOf::Slot;
  run.file = static_cast<RunFile>(bytes[1]);
  const auto layer = load_le<std::uint32_t>(bytes.data() + 2);
  const auto expert = load_le<std::uint32_t>(bytes.data() + 6);
  if (run.of == RunOf::Slot)
    run.slot = {static_cast<compute::SlotKind>(mark), layer, expert};
  else if (layer != 0 || expert != 0)
    return damaged("a reserved field is set");
  run.offset = load_le<std::uint64_t>(bytes.data() + 10);
  run.bytes = load_le<std::uint64_t>(bytes.data() + 18);
  if (load_le<std::uint32_t>(bytes.data() + 26) != 0) return damaged("a reserved field is set");
  std::copy_n(bytes.data() + 30, run.sha256.size(), run.sha256.begin());
  return run;
}

// The runs of one file, from its first to its last byte; at: where they begin in the list.
Expected<void> check_file(const std::vector<SlotRun>& runs, std::size_t& at, RunFile file,
                          const Manifest& manifest) {
  const FileRecord* const record =
      manifest.file(file == RunFile::Weights ? detail::weights_file : detail::optimizer_file);
  if (record == nullptr) return damaged("its file is not in the manifest");
  std::uint64_t end = 0;
  const auto take = [&](RunOf of, compute::SlotId slot, std::optional<std::uint64_t> bytes) {
    if (at >= runs.size()) return false;
    const SlotRun& run = runs[at++];
    if (run.of != of || run.file != file || run.slot != slot || run.offset != end || run.bytes == 0 ||
        run.bytes > record->bytes - end || (bytes && run.bytes != *bytes))
      return false;
    end += run.bytes;
    return true;
  };
  const Error wrong = damaged("its runs do not match the manifest");
  if (!take(RunOf::Header, {}, std::nullopt)) return wrong;
  const std::uint64_t tensors = file == RunFile::Weights ? 1 : 2;
  for (const compute::SlotId slot : manifest.slots)
    if (!take(RunOf::Slot, slot,
              tensors * sizeof(float) * compute::slot_parameter_count(manifest.architecture, slot)))
      return wrong;
  if (file == RunFile::Optimizer && end < record->bytes && !take(RunOf::Extras, {}, record->bytes - end))
    return wrong;
  if (end != record->bytes) return wrong;
  return {};
}

}  // namespace

const char* file_of(const SlotRun& run) {
  return run.file == RunFile::Weights ? detail::weights_file : detail::optimizer_file;
}

Bytes encode_slot_index(const std::vector<SlotRun>& runs) {
  Bytes bytes;
  bytes.reserve(head_bytes + runs.size() * slot_run_bytes);
  append_le(bytes, magic);
  append_le(bytes, version);
  append_le(bytes, static_cast<std::uint32_t>(runs.size()));
  for (const SlotRun& run : runs) {
    bytes.push_back(mark_of(run));
    bytes.push_back(static_cast<std::uint8_t>(run.file));
    append_le(bytes, run.slot.layer);
    append_le(bytes, run.slot.expert);
    append_le(bytes, run.offset);
    append_le(bytes, run.bytes);
    append_le(bytes, std::uint32_t{0});
    bytes.insert(bytes.end(), run.sha256.begin(), run.sha256.end());
  }
  return bytes;
}

Expected<std::vector<SlotRun>> decode_slot_index(ByteSpan bytes, const Manifest& manifest) {
  if (bytes.size() < head_bytes || load_le<std::uint32_t>(bytes.data()) != magic)
    return damaged("its header is invalid");
  if (load_le<std::uint32_t>(bytes.data() + 4) > version)
    return make_error(
        ErrorCode::Unsupported,
        fmt::format("{} was written by a newer version of this program; install it", slot_index_file));
  const auto count = load_le<std::uint32_t>(bytes.data() + 8);
  if (load_le<std::uint32_t>(bytes.data() + 4) != version || count > max_slot_runs ||
      bytes.size() != head_bytes + count * slot_run_bytes)
    return damaged("its length does not match its header");
  std::vector<SlotRun> runs;
  runs.reserve(count);
  for (std::size_t i = 0; i < count; ++i) {
    NS_ASSIGN_OR_RETURN(SlotRun run, decode_run(bytes.subspan(head_bytes + i * slot_run_bytes)));
    runs.push_back(run);
  }
  std::size_t at = 0;
  NS_RETURN_IF_ERROR(check_file(runs, at, RunFile::Weights, manifest));
  NS_RETURN_IF_ERROR(check_file(runs, at, RunFile::Optimizer, manifest));
  if (at != runs.size()) return damaged("it has more runs than the manifest");
  return runs;
}

}  // namespace neuroshard::checkpoint
