#include "core/checkpoint/writer.h"

#include <fmt/format.h>

#include <algorithm>
#include <optional>

#include "core/checkpoint/catalogue.h"
#include "core/checkpoint/detail/hashing_file.h"
#include "core/checkpoint/detail/layout.h"
#include "core/checkpoint/loader.h"
#include "core/checkpoint/slot_index.h"

namespace neuroshard::checkpoint {
namespace {

using detail::AfterChunk;
using detail::HashingFile;
using tensor::SafetensorsWriter;

// Manifest, two headers and what a file system adds.
constexpr std::uint64_t overhead_bytes = 256u << 10;

Expected<void> check_tensors(const Manifest& manifest, const TensorView& tensors) {
  for (const SlotTensors& slot : tensors.slots) {
    const std::uint64_t count = compute::slot_parameter_count(manifest.architecture, slot.id);
    if (slot.parameters.size() != count || slot.moment1.size() != count || slot.moment2.size() != count) {
      return make_error(
          ErrorCode::InvalidArgument,
          fmt::format("slot {} should have {} parameters and as many moments, but has {}, {} and {}",
                      compute::to_string(slot.id), count, slot.parameters.size(), slot.moment1.size(),
                      slot.moment2.size()));
    }
  }
  for (const ExtraTensor& extra : tensors.extras) {
    NS_ASSIGN_OR_RETURN(const std::uint64_t count, tensor::element_count(extra.dims));
    if (count != extra.values.size()) {
      return make_error(ErrorCode::InvalidArgument,
                        fmt::format("the extra tensor {} has the wrong shape", extra.name));
    }
  }
  return {};
}

using Runs = std::vector<SlotRun>;

// The file's header, its slots and what follows them, each as a run. `append`: one slot's tensors.
class RunsOfFile {
 public:
  RunsOfFile(HashingFile& file, SafetensorsWriter& layout, RunFile which, Runs& runs)
      : file_(file), layout_(layout), which_(which), runs_(runs) {}

  Expected<void> begin() {
    return run({RunOf::Header, which_, {}, 0, 0, {}}, [this] { return layout_.begin(sink_); });
  }
  Expected<void> slot(compute::SlotId slot, std::initializer_list<Floats> tensors) {
    return run({RunOf::Slot, which_, slot, 0, 0, {}}, [&]() -> Expected<void> {
      for (const Floats& values : tensors)
        NS_RETURN_IF_ERROR(values.each_part([this](ByteSpan bytes) { return layout_.append(bytes, sink_); }));
      return {};
    });
  }
  Expected<void> extras(const std::vector<ExtraTensor>& extras) {
    if (extras.empty()) return {};
    return run({RunOf::Extras, which_, {}, 0, 0, {}}, [&]() -> Expected<void> {
      for (const ExtraTensor& extra : extras)
        NS_RETURN_IF_ERROR(layout_.append(as_bytes(extra.values), sink_));
      return {};
    });
  }
  Expected<FileRecord> finish() {
    NS_RETURN_IF_ERROR(layout_.finish());
    return file_.finish();
  }

 private:
  template <class Write>
  Expected<void> run(SlotRun of, const Write& write) {
    file_.begin_run();
    NS_RETURN_IF_ERROR(write());
    runs_.push_back(file_.end_run(of));
    return {};
  }

  HashingFile& file_;
  SafetensorsWriter& layout_;
  RunFile which_;
  Runs& runs_;
  SafetensorsWriter::Sink sink_ = [this](ByteSpan bytes) { return file_.append(bytes); };
};

Expected<FileRecord> write_weights(storage::FileEnv& env, const std::string& folder, const Manifest& manifest,
                                   const TensorView& tensors, const AfterChunk& after_chunk, Runs& runs) {
  // The format's own readers expect this key.
  NS_ASSIGN_OR_RETURN(auto layout,
                      SafetensorsWriter::plan(detail::weight_specs(manifest.architecture, manifest.slots),
                                              {{"format", "pt"}}));
  NS_ASSIGN_OR_RETURN(HashingFile file, HashingFile::create_large(env, folder, detail::weights_file,
                                                                  {.bytes = layout.file_bytes()}));
  file.set_after_chunk(&after_chunk);
  RunsOfFile out(file, layout, RunFile::Weights, runs);
  NS_RETURN_IF_ERROR(out.begin());
  for (const SlotTensors& slot : tensors.slots) NS_RETURN_IF_ERROR(out.slot(slot.id, {slot.parameters}));
  return out.finish();
}

Expected<FileRecord> write_optimizer(storage::FileEnv& env, const std::string& folder,
                                     const Manifest& manifest, const TensorView& tensors,
                                     const AfterChunk& after_chunk, Runs& runs) {
  NS_ASSIGN_OR_RETURN(
      auto layout, SafetensorsWriter::plan(
                       detail::optimizer_specs(manifest.architecture, manifest.slots, tensors.extras), {}));
  NS_ASSIGN_OR_RETURN(HashingFile file, HashingFile::create_large(env, folder, detail::optimizer_file,
                                                                  {.bytes = layout.file_bytes()}));
  file.set_after_chunk(&after_chunk);
  RunsOfFile out(file, layout, RunFile::Optimizer, runs);
  NS_RETURN_IF_ERROR(out.begin());
  for (const SlotTensors& slot : tensors.slots)
    NS_RETURN_IF_ERROR(out.slot(slot.id, {slot.moment1, slot.moment2}));
  NS_RETURN_IF_ERROR(out.extras(tensors.extras));
  return out.finish();
}

Error disk_gone(const std::string& folder) {
  return make_error(ErrorCode::NotFound,
                    fmt::format("the folder {} is missing; is its disk connected?", folder));
}

// Makes a folder, and never what it is in: when the disk of the data was taken away, its place must not be
// filled up on another disk.
Expected<void> make_folder(storage::FileEnv& env, const std::string& path) {
  const std::string parent = storage::parent_of(path);
  if (!parent.empty() && !env.exists(parent)) return disk_gone(parent);
  return env.create_directories(path);
}

}  // namespace

Expected<void> Writer::make_root(storage::FileEnv& env, const std::string& root, const std::string& mark) {
  if (env.exists(root)) return {};
  // Its place may still be there, as an empty folder.
  if (!mark.empty() && !env.exists(mark)) return disk_gone(storage::parent_of(mark));
  return make_folder(env, root);
}

Expected<Writer> Writer::open(storage::FileEnv& env, const crypto::KeyPair& node_key, const std::string& root,
                              const std::string& mark) {
  Writer writer(env, node_key, root);
  NS_RETURN_IF_ERROR(make_root(env, root, mark));
  NS_ASSIGN_OR_RETURN(const auto names, env.list(root));
  for (const storage::DirectoryEntry& item : names) {
    const bool leftover =
        item.name == detail::saving_folder || item.name.rfind(detail::deleting_prefix, 0) == 0;
    // Best effort: on a read-only disk it stays, and its names are never taken for a checkpoint.
    if (leftover) (void)env.remove_tree(root + "/" + item.name);
  }
  NS_ASSIGN_OR_RETURN(writer.next_sequence_, Catalogue(env, root).next_sequence());
  return writer;
}

void Writer::remove_unfinished_import(storage::FileEnv& env, const std::string& root) {
  const std::string folder = root + "/" + detail::importing_folder;
  // Best effort, too: the next import replaces it.
  if (env.exists(folder)) (void)env.remove_tree(folder);
}

std::uint64_t Writer::estimate_bytes(const compute::ModelShape& shape, Span<const compute::SlotId> slots) {
  return Snapshot::bytes_for(shape, slots) + overhead_bytes;
}

Expected<void> Writer::check_room(std::uint64_t bytes) {
  // A file system that cannot tell is tried.
  const auto free = env_->free_bytes(root_);
  if (!free.ok() || *free >= bytes) return {};
  return make_error(
      ErrorCode::Exhausted,
      fmt::format(
          "a checkpoint requires {} MiB, but only {} MiB are free at {}; free some space or keep fewer "
          "checkpoints. Training continues",
          (bytes >> 20) + 1, *free >> 20, root_));
}

Expected<SaveResult> Writer::write_folder(Manifest& manifest, const TensorView& tensors,
                                          const std::string& folder, const AfterChunk& after_chunk) {
  NS_RETURN_IF_ERROR(env_->remove_tree(folder));
  NS_RETURN_IF_ERROR(make_folder(*env_, folder));
  Runs runs;
  NS_ASSIGN_OR_RETURN(FileRecord weights, write_weights(*env_, folder, manifest, tensors, after_chunk, runs));
  NS_ASSIGN_OR_RETURN(FileRecord optimizer,
                      write_optimizer(*env_, folder, manifest, tensors, after_chunk, runs));
  NS_ASSIGN_OR_RETURN(HashingFile index, HashingFile::create(*env_, folder, slot_index_file));
  NS_RETURN_IF_ERROR(index.append(encode_slot_index(runs)));
  NS_ASSIGN_OR_RETURN(FileRecord slots, index.finish());
  manifest.files = {std::move(weights), std::move(optimizer), std::move(slots)};
  if (manifest.sequence == 0) NS_RETURN_IF_ERROR(pin_folder(folder));
  return seal_folder(manifest, folder);
}

Expected<void> Writer::pin_folder(const std::string& folder) {
  NS_ASSIGN_OR_RETURN(HashingFile pin, HashingFile::create(*env_, folder, detail::pin_file));
  NS_RETURN_IF_ERROR(pin.finish());
  return {};
}

// Signs, writes the manifest as the last file, and gives the folder its name.
Expected<SaveResult> Writer::seal_folder(Manifest& manifest, const std::string& folder) {
  const Bytes encoded = sign_and_encode(manifest, *node_key_);
  if (encoded.size() > max_manifest_bytes) {
    return make_error(ErrorCode::InvalidArgument, "the state of a checkpoint's manifest is too large");
  }
  NS_ASSIGN_OR_RETURN(HashingFile file, HashingFile::create(*env_, folder, detail::manifest_file));
  NS_RETURN_IF_ERROR(file.append(encoded));
  NS_ASSIGN_OR_RETURN(const FileRecord written, file.finish());
  NS_RETURN_IF_ERROR(env_->sync_directory(folder));
  SaveResult result;
  result.name = folder_name(manifest.step, encoded);
  result.bytes = manifest.file_bytes() + written.bytes;
  NS_RETURN_IF_ERROR(env_->rename(folder, root_ + "/" + result.name));
  return result;
}

Expected<SaveResult> Writer::save(Manifest manifest, const TensorView& tensors, const Pause& pause) {
  manifest.slots.clear();
  for (const SlotTensors& slot : tensors.slots) manifest.slots.push_back(slot.id);
  NS_RETURN_IF_ERROR(check_tensors(manifest, tensors));
  manifest.sequence = next_sequence_;
  manifest.parent = parent_;
  NS_RETURN_IF_ERROR(check_room(estimate_bytes(manifest.architecture, manifest.slots)));

  const std::string folder = root_ + "/" + detail::saving_folder;
  std::uint64_t written = 0;
  const AfterChunk after_chunk = [&written, &pause](std::size_t bytes) {
    written += bytes;
    if (pause) pause();
  };
  Expected<SaveResult> result = write_folder(manifest, tensors, folder, after_chunk);
  wasted_ += written;  // unless the save succeeds
  if (!result.ok()) {
    (void)env_->remove_tree(folder);  // best effort; the next save and the next start try again
    return std::move(result).error().with_context("saving a checkpoint");
  }
  // From the rename on the checkpoint exists and its number is used, even if the power may still take it
  // back.
  next_sequence_ = manifest.sequence + 1;
  parent_ = result->name;
  NS_RETURN_IF_ERROR(env_->sync_directory(root_));
  wasted_ -= written;
  result->manifest = std::move(manifest);
  return result;
}

Expected<SaveResult> Writer::take_in(Manifest manifest, const TensorView& tensors) {
  manifest.slots.clear();
  for (const SlotTensors& slot : tensors.slots) manifest.slots.push_back(slot.id);
  NS_RETURN_IF_ERROR(check_tensors(manifest, tensors));
  manifest.sequence = 0;
  manifest.parent.clear();
  manifest.written_today = {};
  NS_RETURN_IF_ERROR(check_room(estimate_bytes(manifest.architecture, manifest.slots)));
  const std::string folder = root_ + "/" + detail::importing_folder;
  Expected<SaveResult> result = write_folder(manifest, tensors, folder, {});
  if (!result.ok()) {
    (void)env_->remove_tree(folder);
    return result;
  }
  NS_RETURN_IF_ERROR(env_->sync_directory(root_));
  result->manifest = std::move(manifest);
  return result;
}

Expected<SaveResult> Writer::copy_folder(const Entry& source, Manifest& manifest, const std::string& folder,
                                         const CancelToken& cancel) {
  NS_RETURN_IF_ERROR(env_->remove_tree(folder));
  NS_RETURN_IF_ERROR(make_folder(*env_, folder));
  Bytes chunk(detail::chunk_bytes);
  for (const FileRecord& record : source.manifest.files) {
    NS_ASSIGN_OR_RETURN(auto file, env_->open_read(source.path + "/" + record.name));
    detail::FileSource from(std::move(file));
    NS_ASSIGN_OR_RETURN(HashingFile to,
                        HashingFile::create_large(*env_, folder, record.name, {.bytes = record.bytes}));
    for (std::uint64_t at = 0; at < record.bytes;) {
      if (cancel.cancelled()) return make_error(ErrorCode::Cancelled, "stopped before the end");
      const auto now = static_cast<std::size_t>(std::min<std::uint64_t>(record.bytes - at, chunk.size()));
      NS_RETURN_IF_ERROR(from.read_at(at, MutableByteSpan(chunk.data(), now)));
      NS_RETURN_IF_ERROR(to.append(ByteSpan(chunk.data(), now)));
      at += now;
    }
    NS_ASSIGN_OR_RETURN(const FileRecord written, to.finish());
    if (written.sha256 != record.sha256) {
      return make_error(ErrorCode::Corrupt, fmt::format("{} changed while it was copied", record.name));
    }
  }
  // Under the manifest that it came with, others that look for it find it here, too.
  NS_ASSIGN_OR_RETURN(
      const Bytes original,
      storage::read_file(*env_, source.path + "/" + detail::manifest_file, max_manifest_bytes));
  NS_ASSIGN_OR_RETURN(HashingFile kept, HashingFile::create(*env_, folder, original_manifest_file));
  NS_RETURN_IF_ERROR(kept.append(original));
  NS_RETURN_IF_ERROR(kept.finish());
  NS_RETURN_IF_ERROR(pin_folder(folder));
  return seal_folder(manifest, folder);
}

Expected<SaveResult> Writer::adopt(const Entry& source, const Progress& progress, const CancelToken& cancel) {
  NS_ASSIGN_OR_RETURN(const std::optional<Entry> held,
                      Catalogue(*env_, root_).imported_from(source.manifest_hash));
  if (held) return already_here(*held);
  NS_RETURN_IF_ERROR(verify(*env_, source, progress, cancel));
  NS_RETURN_IF_ERROR(check_room(source.manifest.file_bytes() + overhead_bytes));
  Manifest manifest = source.manifest;
  manifest.sequence = 0;
  manifest.parent.clear();
  if (manifest.origin.empty())
    manifest.origin =
        fmt::format("{} of node {}", source.name, to_hex(source.manifest.instance).substr(0, 16));
  manifest.written_today = {};
  const std::string folder = root_ + "/" + detail::importing_folder;
  Expected<SaveResult> result = copy_folder(source, manifest, folder, cancel);
  if (!result.ok()) {
    (void)env_->remove_tree(folder);
    return std::move(result).error().with_context("importing a checkpoint");
  }
  NS_RETURN_IF_ERROR(env_->sync_directory(root_));
  result->manifest = std::move(manifest);
  return result;
}

}  // namespace neuroshard::checkpoint
