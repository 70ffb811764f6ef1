#include "core/checkpoint/catalogue.h"

#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "core/checkpoint/detail/json_reader.h"
#include "core/checkpoint/detail/layout.h"
#include "core/crypto/hash.h"

namespace neuroshard::checkpoint {
namespace {

constexpr std::uint64_t max_choice_bytes = 4096;

// A small note of ours: anything wrong with it means that there is none.
nlohmann::json read_note(storage::FileEnv& env, const std::string& path) {
  const auto bytes = storage::read_file(env, path, max_choice_bytes);
  if (!bytes.ok()) return nullptr;
  return nlohmann::json::parse(bytes->begin(), bytes->end(), nullptr, false);
}

std::optional<Verdict> read_verdict(storage::FileEnv& env, const std::string& path) {
  const nlohmann::json root = read_note(env, path);
  std::uint64_t at_ms = 0, intact = 0;
  detail::JsonReader reader(root);
  reader.read_unsigned("at_ms", at_ms);
  reader.read_unsigned("intact", intact);
  constexpr std::uint64_t latest = 253'402'300'799'000;  // the year 9999
  if (!reader.ok() || at_ms > latest || intact > 1) return std::nullopt;
  return Verdict{WallTime(std::chrono::milliseconds(at_ms)), intact == 1};
}

// The checks that need no tensor data. *name: the name that the folder should have.
Expected<Manifest> check_folder(storage::FileEnv& env, const std::string& path,
                                const std::vector<storage::DirectoryEntry>& files, std::string* name,
                                Hash256* hash) {
  NS_ASSIGN_OR_RETURN(const Bytes bytes,
                      storage::read_file(env, path + "/" + detail::manifest_file, max_manifest_bytes));
  NS_ASSIGN_OR_RETURN(Manifest manifest, parse_manifest(bytes));
  NS_RETURN_IF_ERROR(verify_signature(manifest));
  *name = folder_name(manifest.step, bytes);
  *hash = crypto::sha256(bytes);
  for (const char* file : {detail::weights_file, detail::optimizer_file}) {
    if (manifest.file(file) == nullptr)
      return make_error(ErrorCode::Corrupt, fmt::format("{} is missing", file));
  }
  for (const FileRecord& record : manifest.files) {
    const auto found =
        std::find_if(files.begin(), files.end(), [&](const auto& f) { return f.name == record.name; });
    if (found == files.end() || found->is_directory) {
      return make_error(ErrorCode::Corrupt, fmt::format("{} is missing", record.name));
    }
    if (found->size != record.bytes) {
      return make_error(ErrorCode::Corrupt,
                        fmt::format("{} has {} bytes instead of {}", record.name, found->size, record.bytes));
    }
  }
  return manifest;
}

bool newer(const Entry& a, const Entry& b) {
  if (a.complete() != b.complete()) return a.complete();
  if (a.manifest.sequence != b.manifest.sequence) return a.manifest.sequence > b.manifest.sequence;
  return a.name > b.name;
}

}  // namespace

bool Entry::is_part() const {
  return complete() && !manifest.origin.empty() &&
         manifest.slots.size() < compute::model_slots(manifest.architecture).size();
}

Expected<Entry> open_folder(storage::FileEnv& env, const std::string& path) {
  Entry entry;
  entry.path = path;
  NS_ASSIGN_OR_RETURN(const auto files, env.list(path));
  for (const storage::DirectoryEntry& file : files) entry.bytes += file.size;
  NS_ASSIGN_OR_RETURN(entry.manifest, check_folder(env, path, files, &entry.name, &entry.manifest_hash));
  return entry;
}

Error already_here(const Entry& entry) {
  const bool damaged = !entry.complete() || (entry.verdict && !entry.verdict->intact);
  return make_error(ErrorCode::AlreadyExists,
                    fmt::format("this checkpoint is here already as {}{}", entry.name,
                                damaged ? ", but damaged: delete that one, then import it again" : ""));
}

Entry Catalogue::read_entry(const std::string& name) const {
  Entry entry;
  entry.name = name;
  entry.path = root_ + "/" + name;
  const auto files = env_->list(entry.path);
  if (!files.ok()) {
    entry.damage = files.error().message;
    return entry;
  }
  for (const storage::DirectoryEntry& file : *files) {
    entry.bytes += file.size;
    if (file.name == detail::pin_file) {
      entry.pinned = true;
      entry.pinned_by_program = file.size > 0;  // a person's pin is empty
    }
    if (file.name == detail::verdict_file)
      entry.verdict = read_verdict(*env_, entry.path + "/" + detail::verdict_file);
  }
  std::string fitting_name;
  auto manifest = check_folder(*env_, entry.path, *files, &fitting_name, &entry.manifest_hash);
  if (!manifest.ok()) {
    entry.damage = manifest.error().message;
    entry.manifest_hash = {};
  } else if (fitting_name != name) {
    entry.damage = "the folder's name does not match its manifest; it was renamed or mixed up";
  } else {
    entry.manifest = std::move(manifest).value();
  }
  return entry;
}

std::optional<Catalogue::Choice> Catalogue::read_choice() const {
  // Anything wrong with this file means no choice: the newest checkpoint is then the one.
  const auto bytes = storage::read_file(*env_, root_ + "/" + detail::choice_file, max_choice_bytes);
  if (!bytes.ok()) return std::nullopt;
  const nlohmann::json root = nlohmann::json::parse(bytes->begin(), bytes->end(), nullptr, false);
  Choice choice;
  detail::JsonReader reader(root);
  reader.read_text("name", choice.name, max_short_text);
  reader.read_unsigned("after_sequence", choice.after_sequence);
  if (!reader.ok() || !is_folder_name(choice.name)) return std::nullopt;
  return choice;
}

Expected<std::vector<Entry>> Catalogue::list() const {
  std::vector<Entry> entries;
  if (!env_->exists(root_)) return entries;
  NS_ASSIGN_OR_RETURN(const auto names, env_->list(root_));
  for (auto item = names.rbegin(); item != names.rend() && entries.size() < max_listed; ++item) {
    if (item->is_directory && is_folder_name(item->name)) entries.push_back(read_entry(item->name));
  }
  std::sort(entries.begin(), entries.end(), newer);
  if (const auto kept = read_undo())
    for (Entry& entry : entries) entry.undo = entry.complete() && entry.name == kept->name;
  const auto choice = read_choice();
  if (choice && (entries.empty() || entries.front().manifest.sequence <= choice->after_sequence)) {
    for (Entry& entry : entries) entry.chosen = entry.complete() && entry.name == choice->name;
  }
  return entries;
}

Expected<Entry> Catalogue::find(const std::string& what) const {
  if (what == "latest") {
    NS_ASSIGN_OR_RETURN(std::optional<Entry> entry, current());
    if (!entry) return make_error(ErrorCode::NotFound, "there is no complete checkpoint yet");
    return std::move(*entry);
  }
  NS_ASSIGN_OR_RETURN(std::vector<Entry> entries, list());
  std::vector<const Entry*> fitting;
  const bool is_number =
      !what.empty() && what.size() <= 18 && what.find_first_not_of("0123456789") == std::string::npos;
  const std::string as_step = is_number ? fmt::format("{:010}-", std::stoull(what)) : std::string();
  for (const Entry& entry : entries) {
    if (entry.name == what) return entry;
    const bool by_step = is_number && entry.name.rfind(as_step, 0) == 0;
    if (!what.empty() && (by_step || (!is_number && entry.name.rfind(what, 0) == 0)))
      fitting.push_back(&entry);
  }
  if (fitting.size() == 1) return *fitting.front();
  if (fitting.empty()) {
    return make_error(ErrorCode::NotFound,
                      fmt::format("checkpoint \"{}\" not found; see \"checkpoint list\"", what));
  }
  std::string names;
  for (const Entry* entry : fitting) names += (names.empty() ? "" : ", ") + entry->name;
  return make_error(ErrorCode::InvalidArgument,
                    fmt::format("several checkpoints match \"{}\"; give one of {}", what, names));
}

Expected<std::vector<Entry>> Catalogue::candidates() const {
  NS_ASSIGN_OR_RETURN(std::vector<Entry> rest, list());
  rest.erase(
      std::remove_if(rest.begin(), rest.end(), [](const Entry& e) { return !e.complete() || e.is_part(); }),
      rest.end());
  std::vector<Entry> ordered;
  const auto take = [&](std::vector<Entry>::iterator at) {
    ordered.push_back(std::move(*at));
    rest.erase(at);
  };
  const auto chosen = std::find_if(rest.begin(), rest.end(), [](const Entry& e) { return e.chosen; });
  if (chosen != rest.end()) {
    take(chosen);
  } else if (!rest.empty()) {
    take(rest.begin());
  }
  while (!ordered.empty()) {
    const std::string& parent = ordered.back().manifest.parent;
    const auto found =
        std::find_if(rest.begin(), rest.end(), [&](const Entry& e) { return e.name == parent; });
    if (found == rest.end()) break;
    take(found);
  }
  for (Entry& entry : rest) ordered.push_back(std::move(entry));
  return ordered;
}

Expected<std::optional<Entry>> Catalogue::imported_from(const Hash256& id) const {
  NS_ASSIGN_OR_RETURN(std::vector<Entry> entries, list());
  for (Entry& entry : entries) {
    const auto original =
        storage::read_file(*env_, entry.path + "/" + original_manifest_file, max_manifest_bytes);
    // Or a copy of the import.
    const bool itself = entry.complete() && entry.manifest.sequence == 0 && entry.manifest_hash == id;
    if (itself || (original.ok() && crypto::sha256(*original) == id))
      return std::optional<Entry>(std::move(entry));
  }
  return std::optional<Entry>();
}

Expected<std::optional<Entry>> Catalogue::current() const {
  NS_ASSIGN_OR_RETURN(std::vector<Entry> entries, candidates());
  if (entries.empty()) return std::optional<Entry>();
  return std::optional<Entry>(std::move(entries.front()));
}

Expected<Entry> Catalogue::existing(const std::string& name) const {
  if (!is_folder_name(name) || !env_->exists(root_ + "/" + name)) {
    return make_error(ErrorCode::NotFound, fmt::format("checkpoint {} not found in {}", name, root_));
  }
  NS_ASSIGN_OR_RETURN(const std::vector<Entry> entries, list());
  for (const Entry& entry : entries) {
    if (entry.name == name) return entry;
  }
  return read_entry(name);
}

Expected<void> Catalogue::choose(const std::string& name) {
  NS_ASSIGN_OR_RETURN(const Entry entry, existing(name));
  if (!entry.complete()) {
    return make_error(ErrorCode::Corrupt,
                      fmt::format("the checkpoint {} is damaged ({}); choose another", name, entry.damage));
  }
  if (entry.is_part()) {
    return make_error(
        ErrorCode::InvalidArgument,
        fmt::format("the checkpoint {} holds {} of the model's {} slots; training requires all of them", name,
                    entry.manifest.slots.size(), compute::model_slots(entry.manifest.architecture).size()));
  }
  NS_ASSIGN_OR_RETURN(const std::uint64_t next, next_sequence());
  const nlohmann::json root = {{"name", name}, {"after_sequence", next - 1}};
  return storage::write_file_atomic(*env_, root_ + "/" + detail::choice_file, as_bytes(root.dump(2) + "\n"));
}

std::optional<Catalogue::Undo> Catalogue::read_undo() const {
  const nlohmann::json root = read_note(*env_, root_ + "/" + detail::undo_file);
  Undo undo;
  detail::JsonReader reader(root);
  reader.read_text("name", undo.name, max_short_text);
  reader.read_unsigned("step", undo.step);
  reader.read_unsigned("until_step", undo.until_step);
  std::uint64_t until = 0;  // none in what older versions wrote
  if (root.contains("until_unix_ms")) reader.read_unsigned("until_unix_ms", until);
  if (!reader.ok() || !is_folder_name(undo.name)) return std::nullopt;
  undo.until = WallTime(std::chrono::milliseconds(until));
  return undo;
}

std::optional<Catalogue::Undo> Catalogue::undo() const {
  auto undo = read_undo();
  if (undo && !read_entry(undo->name).complete()) undo.reset();
  return undo;
}

Expected<void> Catalogue::keep_for_undo(const Undo& undo) {
  const std::string path = root_ + "/" + detail::undo_file;
  if (undo.name.empty()) {
    if (!env_->exists(path)) return {};
    NS_RETURN_IF_ERROR(env_->remove_file(path));
    return env_->sync_directory(root_);
  }
  const nlohmann::json root = {{"name", undo.name},
                               {"step", undo.step},
                               {"until_step", undo.until_step},
                               {"until_unix_ms", to_unix_ms(undo.until)}};
  return storage::write_file_atomic(*env_, path, as_bytes(root.dump(2) + "\n"));
}

Expected<void> Catalogue::note_verdict(const std::string& name, const Verdict& verdict) {
  NS_ASSIGN_OR_RETURN(const Entry entry, existing(name));
  const nlohmann::json root = {{"at_ms", std::max<std::int64_t>(0, to_unix_ms(verdict.at))},
                               {"intact", verdict.intact ? 1 : 0}};
  return storage::write_file_atomic(*env_, entry.path + "/" + detail::verdict_file,
                                    as_bytes(root.dump(2) + "\n"));
}

Expected<void> Catalogue::pin(const std::string& name, PinnedBy by) {
  NS_ASSIGN_OR_RETURN(const Entry entry, existing(name));
  const bool by_program = by == PinnedBy::Program;
  if (entry.pinned && (by_program || !entry.pinned_by_program)) return {};
  const std::string_view content = by_program ? "by the program\n" : "";
  return storage::write_file_atomic(*env_, entry.path + "/" + detail::pin_file, as_bytes(content));
}

Expected<void> Catalogue::unpin(const std::string& name) {
  NS_ASSIGN_OR_RETURN(const Entry entry, existing(name));
  if (!entry.pinned) return {};
  NS_RETURN_IF_ERROR(env_->remove_file(entry.path + "/" + detail::pin_file));
  return env_->sync_directory(entry.path);
}

Expected<void> Catalogue::unpin_older(std::size_t kept) {
  NS_ASSIGN_OR_RETURN(const std::vector<Entry> all, list());
  std::size_t seen = 0;
  for (const Entry& entry : all)
    if (entry.pinned_by_program && ++seen > kept) NS_RETURN_IF_ERROR(unpin(entry.name));
  return {};
}

Expected<void> Catalogue::remove(const std::string& name) {
  NS_ASSIGN_OR_RETURN(const Entry entry, existing(name));
  if (entry.pinned) {
    return make_error(ErrorCode::Denied, fmt::format("the checkpoint {} is pinned; unpin it first", name));
  }
  if (entry.chosen) {
    return make_error(
        ErrorCode::Denied,
        fmt::format("training continues from the checkpoint {}; restore another one first", name));
  }
  const std::string doomed = root_ + "/" + detail::deleting_prefix + name;
  NS_RETURN_IF_ERROR(env_->remove_tree(doomed));
  NS_RETURN_IF_ERROR(env_->rename(entry.path, doomed));
  NS_RETURN_IF_ERROR(env_->sync_directory(root_));
  return env_->remove_tree(doomed);
}

Expected<std::uint64_t> Catalogue::next_sequence() const {
  NS_ASSIGN_OR_RETURN(const std::vector<Entry> entries, list());
  std::uint64_t highest = 0;
  for (const Entry& entry : entries) highest = std::max(highest, entry.manifest.sequence);
  // A choice that outlived the saves it was made after must not come back to life when counting starts over.
  if (const auto choice = read_choice()) highest = std::max(highest, choice->after_sequence);
  return highest + 1;
}

}  // namespace neuroshard::checkpoint
