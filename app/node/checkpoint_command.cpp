// neuroshardd checkpoint list | verify | restore | delete | pin | unpin | export | import
//
// Reading commands (list, verify, export) need no lock and work beside a running node; the others own the
// data directory while they run.
#include "app/node/checkpoint_command.h"

#include <fmt/chrono.h>
#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <nlohmann/json.hpp>

#include "app/node/command.h"
#include "app/node/open_directory.h"
#include "app/node/progress.h"
#include "core/checkpoint/catalogue.h"
#include "core/checkpoint/export.h"
#include "core/checkpoint/loader.h"
#include "core/checkpoint/writer.h"

namespace neuroshard::app {
namespace {

using checkpoint::Catalogue;
using checkpoint::Entry;

struct CheckpointFlags {
  std::string which;  // name, its beginning, a step, or "latest"
  std::string path;   // --out, or the folder to import
  bool all = false;
  bool force = false;
};
using Flags = std::shared_ptr<CheckpointFlags>;

std::string time_text(WallTime time) {
  // Years 0 to 9999; a signed manifest may still hold any number.
  const auto seconds = std::chrono::floor<std::chrono::seconds>(time.time_since_epoch()).count();
  if (seconds < -62'167'219'200 || seconds > 253'402'300'799) return "?";
  return fmt::format("{:%Y-%m-%d %H:%M:%S}", fmt::gmtime(static_cast<std::time_t>(seconds)));
}

std::string loss_text(const std::optional<double>& loss) {
  return loss ? fmt::format("{:.4f}", *loss) : "-";
}

nlohmann::ordered_json to_json(const Entry& entry, bool current) {
  const checkpoint::Manifest& m = entry.manifest;
  nlohmann::ordered_json json = {{"name", entry.name},           {"path", entry.path},
                                 {"complete", entry.complete()}, {"current", current},
                                 {"chosen", entry.chosen},       {"pinned", entry.pinned},
                                 {"bytes", entry.bytes}};
  if (!entry.complete()) {
    json["damage"] = entry.damage;
    return json;
  }
  json.update({{"step", m.step},
               {"tokens", m.tokens_seen},
               {"saved_at_ms", m.saved_at.time_since_epoch().count()},
               {"wallet", m.wallet},
               {"instance", to_hex(m.instance)},
               {"network_id", to_hex(m.network_id)},
               {"parent", m.parent}});
  if (m.losses.training) json["loss"] = *m.losses.training;
  if (m.losses.held_out) json["val_loss"] = *m.losses.held_out;
  if (!m.origin.empty()) json["origin"] = m.origin;
  return json;
}

std::string marks_of(const Entry& entry, bool current) {
  std::string marks;
  const auto add = [&](const char* mark) { marks += (marks.empty() ? "" : ", ") + std::string(mark); };
  if (current) add("continues here");
  if (entry.pinned) add("pinned");
  if (!entry.manifest.origin.empty()) add("imported");
  if (!entry.complete()) marks += (marks.empty() ? "" : ", ") + ("damaged: " + entry.damage);
  return marks;
}

// The checkpoints of the data directory, without a lock.
Expected<Catalogue> read_only_catalogue(CommandContext& context) {
  NS_ASSIGN_OR_RETURN(const std::string path, data_directory_path(context));
  if (!context.files.exists(path)) {
    return make_error(ErrorCode::NotFound, fmt::format("there is no data directory {}; give another one with "
                                                       "--data-dir, or make one: neuroshardd train --help",
                                                       path));
  }
  return Catalogue(context.files, path + "/checkpoints");
}

Expected<void> list_checkpoints(CommandContext& context) {
  NS_ASSIGN_OR_RETURN(const Catalogue catalogue, read_only_catalogue(context));
  NS_ASSIGN_OR_RETURN(const std::vector<Entry> entries, catalogue.list());
  NS_ASSIGN_OR_RETURN(const std::optional<Entry> current, catalogue.current());
  if (entries.empty()) {
    context.output.note("There is no checkpoint yet; training makes one: neuroshardd train --help");
    return {};
  }
  context.output.line(fmt::format("{:<19}  {:<19}  {:>9}  {:>8}  {:>8}  {:>10}", "checkpoint", "saved (UTC)",
                                  "tokens", "loss", "held out", "size"));
  for (const Entry& entry : entries) {
    const bool is_current = current && entry.name == current->name;
    const checkpoint::Manifest& m = entry.manifest;
    context.output.json_line(to_json(entry, is_current));
    context.output.line(fmt::format("{:<19}  {:<19}  {:>9}  {:>8}  {:>8}  {:>10}  {}", entry.name,
                                    entry.complete() ? time_text(m.saved_at) : "-", m.tokens_seen,
                                    loss_text(m.losses.training), loss_text(m.losses.held_out),
                                    format_bytes(entry.bytes), marks_of(entry, is_current)));
  }
  return {};
}

Expected<void> verify_checkpoints(const CheckpointFlags& flags, CommandContext& context) {
  NS_ASSIGN_OR_RETURN(const Catalogue catalogue, read_only_catalogue(context));
  std::vector<Entry> entries;
  if (flags.all) {
    NS_ASSIGN_OR_RETURN(entries, catalogue.list());
  } else {
    NS_ASSIGN_OR_RETURN(Entry entry, catalogue.find(flags.which));
    entries.push_back(std::move(entry));
  }
  for (const Entry& entry : entries) {
    if (context.stop.cancelled()) return make_error(ErrorCode::Cancelled, "stopped before the end");
    ProgressLine progress(context.output, context.clock, entry.name);
    const Expected<void> result = checkpoint::verify(
        context.files, entry, [&](std::uint64_t done, std::uint64_t total) { progress.update(done, total); });
    progress.clear();
    if (!result.ok()) context.exit_code = ExitCode::Failure;
    const std::string trouble = result.ok() ? std::string() : result.error().describe();
    context.output.line(result.ok() ? fmt::format("{}  good", entry.name)
                                    : fmt::format("{}  DAMAGED: {}", entry.name, trouble));
    nlohmann::ordered_json json = {{"name", entry.name}, {"good", result.ok()}};
    if (!result.ok()) json["damage"] = trouble;
    context.output.json_line(json);
  }
  return {};
}

Expected<void> restore_checkpoint(const CheckpointFlags& flags, CommandContext& context) {
  NS_ASSIGN_OR_RETURN(const OpenedDirectory opened, open_data_directory(context, OpenMode::Existing));
  const engine::DataDirectory& directory = *opened.directory;
  Catalogue catalogue(context.files, directory.checkpoints_path());
  NS_ASSIGN_OR_RETURN(const Entry entry, catalogue.find(flags.which));
  if (entry.complete() && entry.manifest.network_id != directory.network_id()) {
    return make_error(
        ErrorCode::InvalidArgument,
        fmt::format("the checkpoint {} belongs to another network than this data directory", entry.name));
  }
  // Better now than at the next start.
  NS_RETURN_IF_ERROR(checkpoint::verify(context.files, entry));
  NS_ASSIGN_OR_RETURN(const std::optional<Entry> before, catalogue.current());
  NS_RETURN_IF_ERROR(catalogue.choose(entry.name));
  const std::string undo = before ? before->name : std::string();
  context.output.line(fmt::format("Training continues from {} (step {}).", entry.name, entry.manifest.step));
  if (!undo.empty() && undo != entry.name) {
    context.output.line(fmt::format("Undo: neuroshardd checkpoint restore {}", undo));
  }
  context.output.json_line({{"restored", entry.name}, {"step", entry.manifest.step}, {"before", undo}});
  return {};
}

Expected<void> delete_checkpoint(const CheckpointFlags& flags, CommandContext& context) {
  NS_ASSIGN_OR_RETURN(const OpenedDirectory opened, open_data_directory(context, OpenMode::Existing));
  Catalogue catalogue(context.files, opened.directory->checkpoints_path());
  NS_ASSIGN_OR_RETURN(const Entry entry, catalogue.find(flags.which));
  NS_ASSIGN_OR_RETURN(const std::optional<Entry> current, catalogue.current());
  if (current && current->name == entry.name && !flags.force) {
    return make_error(
        ErrorCode::Denied,
        fmt::format("{} is the checkpoint that training continues from; delete it with --force, or "
                    "restore another one first",
                    entry.name));
  }
  NS_RETURN_IF_ERROR(catalogue.remove(entry.name));
  context.output.line(fmt::format("Deleted {} ({}).", entry.name, format_bytes(entry.bytes)));
  context.output.json_line({{"deleted", entry.name}, {"bytes", entry.bytes}});
  return {};
}

Expected<void> pin_checkpoint(const CheckpointFlags& flags, CommandContext& context, bool pin) {
  NS_ASSIGN_OR_RETURN(const OpenedDirectory opened, open_data_directory(context, OpenMode::Existing));
  Catalogue catalogue(context.files, opened.directory->checkpoints_path());
  NS_ASSIGN_OR_RETURN(const Entry entry, catalogue.find(flags.which));
  NS_RETURN_IF_ERROR(pin ? catalogue.pin(entry.name) : catalogue.unpin(entry.name));
  context.output.line(pin ? fmt::format("{} is kept until you unpin or delete it.", entry.name)
                          : fmt::format("{} is kept as long as the retention rules say.", entry.name));
  context.output.json_line({{"name", entry.name}, {"pinned", pin}});
  return {};
}

Expected<void> export_checkpoint(const CheckpointFlags& flags, CommandContext& context) {
  NS_ASSIGN_OR_RETURN(const Catalogue catalogue, read_only_catalogue(context));
  NS_ASSIGN_OR_RETURN(const Entry entry, catalogue.find(flags.which));
  const std::string path = flags.path.empty() ? checkpoint::export_file_name(entry.manifest) : flags.path;
  if (!flags.force && context.files.exists(path)) {
    return make_error(
        ErrorCode::AlreadyExists,
        fmt::format("{} exists already; choose another --out, or replace it with --force", path));
  }
  ProgressLine progress(context.output, context.clock, "export");
  NS_ASSIGN_OR_RETURN(
      const std::uint64_t bytes,
      checkpoint::export_weights(context.files, entry, path, [&](std::uint64_t done, std::uint64_t total) {
        progress.update(done, total);
      }));
  progress.clear();
  context.output.line(fmt::format("Wrote {} ({}) from {}.", path, format_bytes(bytes), entry.name));
  context.output.json_line({{"name", entry.name}, {"file", path}, {"bytes", bytes}});
  return {};
}

Expected<void> import_checkpoint(const CheckpointFlags& flags, CommandContext& context) {
  NS_ASSIGN_OR_RETURN(const OpenedDirectory opened, open_data_directory(context, OpenMode::Existing));
  const engine::DataDirectory& directory = *opened.directory;
  NS_ASSIGN_OR_RETURN(const Entry source, checkpoint::open_folder(context.files, flags.path));
  if (source.manifest.network_id != directory.network_id()) {
    return make_error(
        ErrorCode::InvalidArgument,
        fmt::format("the checkpoint in {} belongs to another network than this data directory", flags.path));
  }
  NS_ASSIGN_OR_RETURN(auto writer, checkpoint::Writer::open(context.files, directory.node_key(),
                                                            directory.checkpoints_path()));
  NS_ASSIGN_OR_RETURN(const checkpoint::SaveResult result, writer.adopt(source));
  context.output.line(fmt::format("Imported {} as {}. To continue from it: neuroshardd checkpoint restore {}",
                                  flags.path, result.name, result.name));
  context.output.json_line({{"imported", result.name}, {"from", source.name}, {"bytes", result.bytes}});
  return {};
}

CLI::App& add_one(CLI::App& group, CommandContext& context, const char* name, const char* help,
                  std::vector<std::string> examples, const Flags& flags,
                  Expected<void> (*body)(const CheckpointFlags&, CommandContext&)) {
  CLI::App& command = add_command(group, name, help, std::move(examples));
  set_body(command, context, [flags, &context, body] { return body(*flags, context); });
  return command;
}

void add_which(CLI::App& command, const Flags& flags, bool required) {
  if (!required) flags->which = "latest";
  CLI::Option* option =
      command.add_option("checkpoint", flags->which, "name, the beginning of one, a step, or \"latest\"");
  option->type_name("CHECKPOINT");
  if (required) option->required();
}

void add_keeping(CLI::App& group, CommandContext& context) {
  auto deleted = std::make_shared<CheckpointFlags>();
  CLI::App& remove = add_one(group, context, "delete", "Delete a checkpoint",
                             {"neuroshardd checkpoint delete 120"}, deleted, delete_checkpoint);
  add_which(remove, deleted, true);
  remove.add_flag("--force", deleted->force, "also the one that training continues from");

  auto pinned = std::make_shared<CheckpointFlags>();
  CLI::App& pin =
      add_one(group, context, "pin", "Keep a checkpoint whatever the retention rules say",
              {"neuroshardd checkpoint pin latest"}, pinned,
              [](const CheckpointFlags& f, CommandContext& c) { return pin_checkpoint(f, c, true); });
  add_which(pin, pinned, true);
  auto unpinned = std::make_shared<CheckpointFlags>();
  CLI::App& unpin = add_one(
      group, context, "unpin", "Let the retention rules decide again", {"neuroshardd checkpoint unpin 120"},
      unpinned, [](const CheckpointFlags& f, CommandContext& c) { return pin_checkpoint(f, c, false); });
  add_which(unpin, unpinned, true);
}

void add_sharing(CLI::App& group, CommandContext& context) {
  auto exported = std::make_shared<CheckpointFlags>();
  CLI::App& out = add_one(
      group, context, "export", "Write the weights as one plain safetensors file",
      {"neuroshardd checkpoint export --out model.safetensors", "neuroshardd checkpoint export 120 --json"},
      exported, export_checkpoint);
  add_which(out, exported, false);
  out.add_option("--out", exported->path, "file to write (default: a name made of wallet, node and step)")
      ->type_name("FILE");
  out.add_flag("--force", exported->force, "replace the file");

  auto imported = std::make_shared<CheckpointFlags>();
  CLI::App& in =
      add_one(group, context, "import", "Copy a checkpoint's folder from elsewhere into this data directory",
              {"neuroshardd checkpoint import /media/usb/0000000120-1a2b3c4d"}, imported, import_checkpoint);
  in.add_option("folder", imported->path, "a checkpoint's folder")->type_name("FOLDER")->required();
}

}  // namespace

void add_checkpoint_command(CLI::App& root, CommandContext& context) {
  CLI::App& group =
      add_command(root, "checkpoint", "Saved states of training: list, verify, restore, keep, export",
                  {"neuroshardd checkpoint list"});
  CLI::App& list = add_command(group, "list", "Show all checkpoints, newest first",
                               {"neuroshardd checkpoint list", "neuroshardd checkpoint list --json"});
  set_body(list, context, [&context] { return list_checkpoints(context); });

  auto verified = std::make_shared<CheckpointFlags>();
  CLI::App& verify = add_one(
      group, context, "verify", "Read every byte and check signature, hashes and format",
      {"neuroshardd checkpoint verify", "neuroshardd checkpoint verify --all"}, verified, verify_checkpoints);
  add_which(verify, verified, false);
  verify.add_flag("--all", verified->all, "every checkpoint");

  auto restored = std::make_shared<CheckpointFlags>();
  CLI::App& restore =
      add_one(group, context, "restore",
              "Continue training from this checkpoint; nothing is deleted, and restoring the one "
              "before undoes it",
              {"neuroshardd checkpoint restore 120"}, restored, restore_checkpoint);
  add_which(restore, restored, true);
  add_keeping(group, context);
  add_sharing(group, context);
}

}  // namespace neuroshard::app
