// neuroshardd checkpoint save | restore | undo | pin | unpin | delete | prune | import | fetch. The core that
// runs on the data directory makes the change beside its training. Without a core, this process makes it and
// owns the directory meanwhile.
#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <optional>

#include "app/node/commands/checkpoint_command.h"
#include "app/node/commands/core_client.h"
#include "app/node/commands/fetch_progress.h"
#include "app/node/commands/guest_flags.h"
#include "app/node/commands/open_directory.h"
#include "app/node/output/progress.h"
#include "core/base/bytes.h"
#include "core/base/utf8.h"
#include "core/checkpoint/catalogue.h"
#include "core/checkpoint/loader.h"
#include "core/checkpoint/retention.h"
#include "core/checkpoint/writer.h"
#include "core/engine/checkpoint_import.h"
#include "core/platform/file/directory_lock.h"

namespace neuroshard::app {
namespace {

using checkpoint::Catalogue;
using checkpoint::Entry;

struct ChangeFlags {
  std::string which;               // name, its beginning, a step, or "latest"
  std::string path;                // the folder to import
  GuestFlags guest;                // the network of others' checkpoints
  std::vector<std::string> slots;  // slots of the fetched checkpoint; empty = all
  bool force = false;
  bool preview = false;
  node::PrunePolicy keep;
};
using Flags = std::shared_ptr<ChangeFlags>;

// The place of the change: a core, or the directory that this process holds.
struct Place {
  std::unique_ptr<CoreClient> core;
  std::optional<OpenedDirectory> opened;
  std::optional<Catalogue> catalogue;
};

Expected<Place> find_place(CommandContext& context, OpenMode mode = OpenMode::Existing) {
  Place place;
  NS_ASSIGN_OR_RETURN(place.core, CoreClient::find(context));
  NS_ASSIGN_OR_RETURN(const std::string path, data_directory_path(context));
  place.catalogue.emplace(context.files, path + "/checkpoints");
  if (!place.core) {
    NS_ASSIGN_OR_RETURN(OpenedDirectory opened, open_data_directory(context, mode));
    place.opened.emplace(std::move(opened));
  }
  return place;
}

Expected<void> check_network(const Entry& entry, const OpenedDirectory& opened, const std::string& what) {
  if (!entry.complete() || entry.manifest.network_id == opened.directory->network_id()) return {};
  return make_error(
      ErrorCode::InvalidArgument,
      fmt::format("the checkpoint {} and this data directory belong to different networks", what));
}

Expected<void> save(const ChangeFlags&, CommandContext& context) {
  NS_ASSIGN_OR_RETURN(const auto client, CoreClient::attach(context));
  NS_RETURN_IF_ERROR(client->command([](node::Node& node) { return node.save_checkpoint(); }));
  const auto view = client->node().snapshot();
  context.output.line(fmt::format("Saved {}.", view->checkpoint.newest));
  context.output.json_line({{"saved", view->checkpoint.newest}, {"step", view->training.step}});
  return {};
}

void tell_restored(const std::string& name, std::uint64_t step, const std::string& before,
                   CommandContext& context) {
  context.output.line(fmt::format("Training continues from {} (step {}).", name, step));
  if (!before.empty() && before != name) context.output.line("Undo: neuroshardd checkpoint undo");
  context.output.json_line({{"restored", name}, {"step", step}, {"before", before}});
}

Expected<void> restore(const ChangeFlags& flags, CommandContext& context) {
  NS_ASSIGN_OR_RETURN(Place place, find_place(context));
  NS_ASSIGN_OR_RETURN(const Entry entry, place.catalogue->find(flags.which));
  if (place.core) {
    NS_RETURN_IF_ERROR(
        place.core->run([&](node::Node& node) { return node.restore_checkpoint(entry.name); }, entry.name));
    tell_restored(entry.name, entry.manifest.step, place.core->node().snapshot()->undo.checkpoint, context);
    return {};
  }
  NS_RETURN_IF_ERROR(check_network(entry, *place.opened, entry.name));
  // An error should appear now and not at the next start.
  NS_RETURN_IF_ERROR(checkpoint::verify(context.files, entry, {}, context.stop));
  NS_ASSIGN_OR_RETURN(const std::optional<Entry> before, place.catalogue->current());
  NS_RETURN_IF_ERROR(place.catalogue->choose(entry.name));
  if (before && before->name != entry.name) {
    NS_RETURN_IF_ERROR(place.catalogue->keep_for_undo({before->name, before->manifest.step,
                                                       entry.manifest.step + node::undo_steps,
                                                       context.clock.wall_now() + node::undo_time}));
  }
  tell_restored(entry.name, entry.manifest.step, before ? before->name : std::string(), context);
  return {};
}

Expected<void> undo(const ChangeFlags&, CommandContext& context) {
  NS_ASSIGN_OR_RETURN(Place place, find_place(context));
  if (place.core) {
    const node::UndoView back = place.core->node().snapshot()->undo;
    NS_RETURN_IF_ERROR(
        place.core->run([](node::Node& node) { return node.undo_restore(); }, back.checkpoint));
    tell_restored(back.checkpoint, back.step, {}, context);
    return {};
  }
  const auto back = place.catalogue->undo();
  NS_ASSIGN_OR_RETURN(const std::optional<Entry> current, place.catalogue->current());
  if (!back || (current && back->over(current->manifest.step, context.clock.wall_now())))
    return make_error(ErrorCode::NotFound, "there is no restore to undo");
  NS_RETURN_IF_ERROR(place.catalogue->choose(back->name));
  NS_RETURN_IF_ERROR(place.catalogue->keep_for_undo({}));
  tell_restored(back->name, back->step, {}, context);
  return {};
}

Expected<void> remove(const ChangeFlags& flags, CommandContext& context) {
  NS_ASSIGN_OR_RETURN(Place place, find_place(context));
  NS_ASSIGN_OR_RETURN(const Entry entry, place.catalogue->find(flags.which));
  if (place.core) {
    NS_RETURN_IF_ERROR(
        place.core->run([&](node::Node& node) { return node.delete_checkpoint(entry.name); }, entry.name));
  } else {
    NS_ASSIGN_OR_RETURN(const std::optional<Entry> current, place.catalogue->current());
    if (current && current->name == entry.name && !flags.force) {
      return make_error(
          ErrorCode::Denied,
          fmt::format("{} is the checkpoint that training continues from; delete it with --force, or "
                      "restore another one first",
                      entry.name));
    }
    NS_RETURN_IF_ERROR(place.catalogue->remove(entry.name));
  }
  context.output.line(fmt::format("Deleted {} ({}).", entry.name, format_bytes(entry.bytes)));
  context.output.json_line({{"deleted", entry.name}, {"bytes", entry.bytes}});
  return {};
}

Expected<void> pin(const ChangeFlags& flags, CommandContext& context, bool pinned) {
  NS_ASSIGN_OR_RETURN(Place place, find_place(context));
  NS_ASSIGN_OR_RETURN(const Entry entry, place.catalogue->find(flags.which));
  if (place.core) {
    NS_RETURN_IF_ERROR(place.core->run(
        [&](node::Node& node) { return node.pin_checkpoint(entry.name, pinned); }, entry.name));
  } else {
    NS_RETURN_IF_ERROR(pinned ? place.catalogue->pin(entry.name) : place.catalogue->unpin(entry.name));
  }
  context.output.line(pinned ? fmt::format("{} is kept until you unpin or delete it.", entry.name)
                             : fmt::format("The retention rules apply to {} again.", entry.name));
  context.output.json_line({{"name", entry.name}, {"pinned", pinned}});
  return {};
}

Expected<void> prune(const ChangeFlags& flags, CommandContext& context) {
  NS_ASSIGN_OR_RETURN(Place place, find_place(context));
  NS_ASSIGN_OR_RETURN(const std::vector<Entry> entries, place.catalogue->list());
  const auto names = checkpoint::plan_prune(
      entries, {flags.keep.keep_newest, flags.keep.keep_every_steps, flags.keep.keep_best});
  std::uint64_t bytes = 0;
  for (const Entry& entry : entries)
    if (std::find(names.begin(), names.end(), entry.name) != names.end()) bytes += entry.bytes;
  if (!flags.preview && place.core) {
    NS_RETURN_IF_ERROR(
        place.core->run([&](node::Node& node) { return node.prune_checkpoints(flags.keep); }, "prune"));
  } else if (!flags.preview) {
    for (const std::string& name : names) NS_RETURN_IF_ERROR(place.catalogue->remove(name));
  }
  for (const std::string& name : names)
    context.output.line(fmt::format("{} {}", flags.preview ? "would delete" : "deleted", name));
  context.output.line(
      fmt::format("{} of {} checkpoints, {}", names.size(), entries.size(), format_bytes(bytes)));
  context.output.json_line({{flags.preview ? "would_delete" : "deleted", names},
                            {"bytes", bytes},
                            {"kept", entries.size() - names.size()}});
  return {};
}

Expected<void> import_into(Place place, const ChangeFlags& flags, CommandContext& context) {
  std::string name;
  if (place.core) {
    std::error_code failed;
    const std::string path = std::filesystem::absolute(flags.path, failed).string();
    NS_ASSIGN_OR_RETURN(
        const node::CommandResult outcome,
        place.core->run([&](node::Node& node) { return node.import_checkpoint(path); }, "import"));
    if (const auto* imported = std::get_if<node::ImportResult>(&outcome)) name = imported->name;
  } else {
    NS_ASSIGN_OR_RETURN(auto writer,
                        checkpoint::Writer::open(context.files, place.opened->directory->node_key(),
                                                 place.opened->directory->checkpoints_path(),
                                                 place.opened->directory->format_path()));
    ProgressLine progress(context.output, context.clock, "import");
    NS_ASSIGN_OR_RETURN(
        const checkpoint::SaveResult result,
        engine::import_folder(
            {context.files, context.clock, *place.opened->directory, flags.path}, writer,
            [&](std::uint64_t done, std::uint64_t total) { progress.update(done, total); }, context.stop));
    name = result.name;
    if (!result.manifest.origin.empty())  // the text of another node
      context.output.line("From: " + one_line(result.manifest.origin) + ".");
  }
  context.output.line(fmt::format("Imported {} as {}. To continue from it: neuroshardd checkpoint restore {}",
                                  flags.path, name, name));
  context.output.json_line({{"imported", name}, {"from", flags.path}});
  return {};
}

Expected<void> import(const ChangeFlags& flags, CommandContext& context) {
  if (!context.files.exists(flags.path))
    return make_error(ErrorCode::NotFound, flags.path + " does not exist");
  NS_ASSIGN_OR_RETURN(Place place, find_place(context, OpenMode::Create));
  return import_into(std::move(place), flags, context);
}

// All of a checkpoint that was imported before need not be fetched.
Expected<void> refuse_held(const Hash256& id, const std::string& directory, CommandContext& context) {
  NS_ASSIGN_OR_RETURN(const std::optional<Entry> held,
                      Catalogue(context.files, directory + "/checkpoints").imported_from(id));
  if (held) return checkpoint::already_here(*held);
  return {};
}

// Without an id: lists what others offer. With one, a missing data directory is made.
Expected<void> fetch(const ChangeFlags& flags, CommandContext& context) {
  NS_ASSIGN_OR_RETURN(const std::string directory, data_directory_path(context));
  const std::string own = directory + "/profile.json";
  const runtime::GuestOptions guest =
      guest_options(flags.guest, context.files.exists(own) ? own : std::string(), context);
  const runtime::RuntimeServices services = context.services();
  const FetchProgress progress(context);
  const runtime::FetchSession session{guest, services, context.stop, progress.observer()};
  if (flags.which.empty()) {
    NS_ASSIGN_OR_RETURN(const auto offers, runtime::offered_checkpoints(session));
    for (const runtime::OfferedCheckpoint& offer : offers) {
      context.output.line(
          fmt::format("{}  {}  step {}, {} node(s)", offer.id, offer.folder, offer.step, offer.nodes.size()));
      context.output.json_line(
          {{"id", offer.id}, {"name", offer.folder}, {"step", offer.step}, {"nodes", offer.nodes.size()}});
    }
    if (offers.empty()) return make_error(ErrorCode::NotFound, "no reachable node offers a checkpoint");
    return {};
  }
  // An unusable data directory is reported before anything is fetched. A core may use it during the fetch.
  NS_RETURN_IF_ERROR(find_place(context, OpenMode::Create));
  const std::string folder = directory + "/fetched";
  NS_RETURN_IF_ERROR(context.files.create_directories(folder));
  auto lock = platform::DirectoryLock::acquire(folder, context.clock);
  if (!lock.ok()) return std::move(lock).error().with_context("another fetch may be under way");
  const auto check = [&](const Hash256& id) {
    return flags.slots.empty() ? refuse_held(id, directory, context) : Expected<void>();
  };
  // An id needs no other node for this; of "newest", the others know the id.
  if (const auto id = hash_from_hex(flags.which); id.ok()) NS_RETURN_IF_ERROR(check(*id));
  NS_ASSIGN_OR_RETURN(const runtime::FetchedCheckpoint fetched,
                      runtime::fetch_checkpoint({flags.which, flags.slots, check}, folder, session));
  ChangeFlags imported = flags;
  imported.path = fetched.folder;
  NS_ASSIGN_OR_RETURN(Place place, find_place(context));
  auto done = import_into(std::move(place), imported, context);
  // These files would be of no use to another try.
  const bool useless = !done.ok() && (done.error().code == ErrorCode::AlreadyExists ||
                                      done.error().code == ErrorCode::Corrupt);
  if (!done.ok() && !useless) return done;
  auto removed = context.files.remove_tree(fetched.work);
  return done.ok() ? removed : done;
}

Flags add_one(CLI::App& group, CommandContext& context, const char* name, const char* help,
              std::vector<std::string> examples, Expected<void> (*body)(const ChangeFlags&, CommandContext&),
              bool takes_checkpoint, WorksWith works = WorksWith::ThisComputer) {
  auto flags = std::make_shared<ChangeFlags>();
  CLI::App& command = add_command(group, name, help, std::move(examples));
  set_body(
      command, context, [flags, &context, body] { return body(*flags, context); }, works);
  if (takes_checkpoint) {
    command.add_option("checkpoint", flags->which, "a name or its beginning, a step, or \"latest\"")
        ->type_name("CHECKPOINT")
        ->required();
  }
  return flags;
}

}  // namespace

void add_checkpoint_changes(CLI::App& group, CommandContext& context) {
  add_one(group, context, "save", "Save a checkpoint of the running node now",
          {"neuroshardd checkpoint save"}, save, false, WorksWith::AnyComputer);
  add_one(group, context, "restore",
          "Continue training from this checkpoint; deletes nothing and can be undone",
          {"neuroshardd checkpoint restore 120"}, restore, true);
  add_one(group, context, "undo",
          "Undo the last restore, within ten minutes or 50 steps, whichever is longer",
          {"neuroshardd checkpoint undo"}, undo, false, WorksWith::AnyComputer);
  add_one(
      group, context, "pin", "Keep a checkpoint regardless of the retention rules",
      {"neuroshardd checkpoint pin latest"},
      [](const ChangeFlags& f, CommandContext& c) { return pin(f, c, true); }, true);
  add_one(
      group, context, "unpin", "Apply the retention rules to a checkpoint again",
      {"neuroshardd checkpoint unpin 120"},
      [](const ChangeFlags& f, CommandContext& c) { return pin(f, c, false); }, true);
  const Flags removed = add_one(group, context, "delete", "Delete a checkpoint",
                                {"neuroshardd checkpoint delete 120"}, remove, true);
  group.get_subcommand("delete")->add_flag(
      "--force", removed->force,
      "delete even the checkpoint that training continues from (not while the node runs)");
  const Flags pruned =
      add_one(group, context, "prune", "Delete the checkpoints that these rules do not keep",
              {"neuroshardd checkpoint prune --preview",
               "neuroshardd checkpoint prune --keep-newest 3 --keep-every 1000 --keep-best 1"},
              prune, false);
  CLI::App& rules = *group.get_subcommand("prune");
  rules
      .add_option("--keep-newest", pruned->keep.keep_newest,
                  "number of newest checkpoints to keep (default 5)")
      ->type_name("N");
  rules
      .add_option("--keep-every", pruned->keep.keep_every_steps,
                  "also keep one checkpoint per this many steps; 0 = none")
      ->type_name("STEPS");
  rules
      .add_option("--keep-best", pruned->keep.keep_best,
                  "also keep this many with the lowest held-out loss (default 1)")
      ->type_name("N");
  rules.add_flag("--preview", pruned->preview, "show what would be deleted, but delete nothing");
  const Flags imported =
      add_one(group, context, "import",
              "Copy a checkpoint, or a model in the layout of Hugging Face, into this data directory",
              {"neuroshardd checkpoint import /media/usb/0000000120-1a2b3c4d",
               "neuroshardd checkpoint import ~/model-hf --data-dir ./d"},
              import, false);
  group.get_subcommand("import")
      ->add_option("folder", imported->path,
                   "folder of the checkpoint, or with config.json, tokenizer.json and model.safetensors")
      ->type_name("FOLDER")
      ->required();
  const Flags fetched = add_one(
      group, context, "fetch",
      "Fetch a checkpoint from other nodes and import it; without an id, list the offers",
      {"neuroshardd checkpoint fetch --at 192.0.2.1:9000",
       "neuroshardd checkpoint fetch newest --profile village.json --at 192.0.2.1:8765",
       "neuroshardd checkpoint fetch ID --slot \"layer 3\" --slot \"expert 3.1\" --at 192.0.2.1:9000"},
      fetch, false);
  CLI::App& fetching = *group.get_subcommand("fetch");
  fetching
      .add_option("id", fetched->which,
                  "id of the checkpoint: 64 hexadecimal digits, or \"newest\" for the highest step")
      ->type_name("ID");
  fetching
      .add_option("--slot", fetched->slots,
                  "fetch only this slot: embed, \"layer L\", \"expert L.E\" or head; may be repeated")
      ->type_name("SLOT")
      ->allow_extra_args(false);  // otherwise it also takes the words that follow
  add_guest_flags(fetching, fetched->guest);
}

}  // namespace neuroshard::app
