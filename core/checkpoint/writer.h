// Writes one checkpoint: a temporary folder, every file and the folder brought to the disk, one rename, the
// parent folder brought to the disk. A kill or a power cut at any instant leaves the checkpoints before it,
// and this one whole or absent.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <string>
#include <utility>

#include "core/base/expected.h"
#include "core/checkpoint/catalogue.h"
#include "core/checkpoint/loader.h"
#include "core/checkpoint/manifest.h"
#include "core/checkpoint/tensors.h"
#include "core/crypto/keys.h"
#include "core/storage/file_env.h"

namespace neuroshard::checkpoint {

struct SaveResult {
  std::string name;         // of the folder below the root
  std::uint64_t bytes = 0;  // of its files
  Manifest manifest;        // as written: with sequence, hashes and signature
};

using Pause = std::function<void()>;

// Only the owner of the data directory makes one, and only one: opening removes what a killed save left
// behind. An import may be under way beside it. env and node_key outlive it.  Threads: one at a time.
class Writer {
 public:
  // Creates `root` if needed (make_root) and finds where counting goes on.
  static Expected<Writer> open(storage::FileEnv& env, const crypto::KeyPair& node_key,
                               const std::string& root, const std::string& mark = {});

  // Makes `root` if it is not there, and only inside a folder that is there and, when a `mark` is given, only
  // while this file exists: it tells the owner's directory from the empty place of a disk that was taken
  // away. Errors: NotFound, and those of the disk.
  static Expected<void> make_root(storage::FileEnv& env, const std::string& root, const std::string& mark);

  // Of an import that was killed. Before the first import of this process.
  static void remove_unfinished_import(storage::FileEnv& env, const std::string& root);

  // One that only adopts, beside the writer that saves: takes nothing away.
  static Writer beside(storage::FileEnv& env, const crypto::KeyPair& node_key, const std::string& root) {
    return Writer(env, node_key, root);
  }

  // The checkpoint that training continues from, named as the parent of the next save.
  void set_parent(std::string name) { parent_ = std::move(name); }

  // manifest: as the caller knows it; slots, files, sequence, parent, instance and signature are set here.
  // Errors: InvalidArgument (tensors that are not the architecture's), Exhausted (disk full, also when it is
  // foreseen), Denied (read-only), Io. After a failure nothing of this save is left, as far as the disk
  // allows, and the next save starts afresh.
  // pause: called between pieces of about a megabyte, without anything locked; a caller that wants little of
  // the processor sleeps there.
  Expected<SaveResult> save(Manifest manifest, const TensorView& tensors, const Pause& pause = {});

  // Bytes of tensors that failed saves wrote since the last call.
  std::uint64_t take_wasted() { return std::exchange(wasted_, 0); }

  // Copies a checkpoint from elsewhere below the root: verified first, hashed on the way, signed anew by this
  // node with its origin noted, pinned, and never the newest by itself: choose() makes training continue from
  // it. Errors as for save(), Corrupt, Cancelled and AlreadyExists: nothing is copied then.
  Expected<SaveResult> adopt(const Entry& source, const Progress& progress = {},
                             const CancelToken& cancel = {});

  // Writes a model from elsewhere, such as another program's, below the root: signed by this node, pinned, and never the newest by
  // itself, as an adopted one. manifest and errors as for save(), and those of the tensors' sources.
  Expected<SaveResult> take_in(Manifest manifest, const TensorView& tensors);

  // Bytes that save() will write for these slots, within a few KiB.
  static std::uint64_t estimate_bytes(const compute::ModelShape& shape, Span<const compute::SlotId> slots);

  const std::string& root() const { return root_; }

 private:
  Writer(storage::FileEnv& env, const crypto::KeyPair& node_key, std::string root)
      : env_(&env), node_key_(&node_key), root_(std::move(root)) {}
  Expected<SaveResult> write_folder(Manifest& manifest, const TensorView& tensors, const std::string& folder,
                                    const std::function<void(std::size_t)>& after_chunk);
  Expected<void> pin_folder(const std::string& folder);
  Expected<SaveResult> copy_folder(const Entry& source, Manifest& manifest, const std::string& folder,
                                   const CancelToken& cancel);
  Expected<SaveResult> seal_folder(Manifest& manifest, const std::string& folder);
  Expected<void> check_room(std::uint64_t bytes);

  storage::FileEnv* env_;
  const crypto::KeyPair* node_key_;
  std::string root_;
  std::uint64_t next_sequence_ = 1;
  std::string parent_;
  std::uint64_t wasted_ = 0;
};

}  // namespace neuroshard::checkpoint
