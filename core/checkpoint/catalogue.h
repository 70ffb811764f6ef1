// The checkpoints of a data directory: which there are, which one training continues from, and what a person
// may do with them. Reading needs no lock; changing belongs to the owner of the data directory.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "core/base/expected.h"
#include "core/checkpoint/manifest.h"
#include "core/storage/file_env.h"

namespace neuroshard::checkpoint {

// Folders looked at; more than retention ever leaves. Further ones are not listed.
inline constexpr std::size_t max_listed = 10'000;

struct Verdict {
  WallTime at{};
  bool intact = false;
};

struct Entry {
  std::string name;  // of the folder
  std::string path;
  std::uint64_t bytes = 0;  // on the disk, damaged files included
  bool pinned = false;
  bool pinned_by_program = false;  // not by a person: the program may unpin it
  bool chosen = false;             // by restore, and nothing was saved since
  bool undo = false;               // a restore went away from it, and may be taken back
  std::string
      damage;  // what is wrong, for a person; empty: complete as far as names, sizes and signature tell
  Manifest manifest;               // empty when damaged
  Hash256 manifest_hash{};         // SHA-256 of manifest.json; zeros when damaged
  std::optional<Verdict> verdict;  // of the last time that all its bytes were read
  bool complete() const { return damage.empty(); }
  // Imported slots of a model, not all of it: nothing that training as a whole can continue from.
  bool is_part() const;
};

// A checkpoint's folder anywhere, whatever its name: what a copy from elsewhere holds. entry.name is what it
// should be called. Errors as the damage of a listed one, and NotFound.
Expected<Entry> open_folder(storage::FileEnv& env, const std::string& path);

// For an import of what is here: AlreadyExists, and what to do if it is damaged.
Error already_here(const Entry& entry);

// Threads: any, over a file environment that allows it.
class Catalogue {
 public:
  Catalogue(storage::FileEnv& env, std::string root) : env_(&env), root_(std::move(root)) {}

  // The import of the checkpoint with this id, the SHA-256 of its manifest; damaged ones count. Nothing: none.
  Expected<std::optional<Entry>> imported_from(const Hash256& id) const;

  // Newest first, by save, not by step; damaged ones last. No folder yet: an empty list.
  Expected<std::vector<Entry>> list() const;
  // By name, by the beginning of a name, or by step ("latest": current()). NotFound, or InvalidArgument when
  // several fit; both say what to type.
  Expected<Entry> find(const std::string& what) const;

  // The checkpoints that training may continue from, parts left out, best first: the chosen one, else the
  // newest complete one; then, should loading it find damage, its forerunners; then all other complete ones,
  // newest first.
  Expected<std::vector<Entry>> candidates() const;
  // The first of candidates(); nothing when there is none.
  Expected<std::optional<Entry>> current() const;

  // Makes a complete checkpoint the one to continue from (InvalidArgument: a part). Nothing is deleted:
  // choosing the earlier newest one undoes it. The next save takes over by itself.
  Expected<void> choose(const std::string& name);

  // The state that a restore went away from: kept whatever the retention rules say, up to a step and a time.
  // A new one replaces the one before; an empty name forgets it.
  struct Undo {
    std::string name;
    std::uint64_t step = 0;        // of that checkpoint
    std::uint64_t until_step = 0;  // of the model, and
    WallTime until{};              // the time: from both on it can't be undone
    bool over(std::uint64_t model_step, WallTime now) const {
      return model_step >= until_step && now >= until;
    }
  };
  Expected<void> keep_for_undo(const Undo& undo);
  // Nothing: none, or its checkpoint is gone.
  std::optional<Undo> undo() const;

  // The result of verify(), stored beside the checkpoint's files.
  Expected<void> note_verdict(const std::string& name, const Verdict& verdict);

  // A person's pin stands; the program's becomes a person's.
  enum class PinnedBy : std::uint8_t { Person, Program };
  Expected<void> pin(const std::string& name, PinnedBy by = PinnedBy::Person);
  Expected<void> unpin(const std::string& name);
  // Of the program's pins only those of the newest checkpoints stay, so many.
  Expected<void> unpin_older(std::size_t kept);
  // Denied when pinned or chosen. Renamed away first, so a kill never leaves half a checkpoint under its
  // name.
  Expected<void> remove(const std::string& name);

  // The number of the next save.
  Expected<std::uint64_t> next_sequence() const;
  const std::string& root() const { return root_; }

 private:
  struct Choice {
    std::string name;
    std::uint64_t after_sequence = 0;  // holds until a save with a higher number exists
  };
  Entry read_entry(const std::string& name) const;
  std::optional<Choice> read_choice() const;
  std::optional<Undo> read_undo() const;
  Expected<Entry> existing(const std::string& name) const;

  storage::FileEnv* env_;
  std::string root_;
};

}  // namespace neuroshard::checkpoint
