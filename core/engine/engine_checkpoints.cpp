// Commands on checkpoints. What only reads and writes files runs on a thread of its own beside the training;
// a restore verifies there, and then takes the place of the next step.
#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <thread>

#include "core/checkpoint/compare.h"
#include "core/checkpoint/export.h"
#include "core/checkpoint/retention.h"
#include "core/checkpoint/writer.h"
#include "core/engine/detail/checkpoint_entry.h"
#include "core/engine/detail/engine_core.h"

namespace neuroshard::engine::detail {
namespace {

constexpr Duration progress_period = std::chrono::milliseconds(100);
constexpr std::size_t max_name = 256, max_path = 4096;

Expected<void> check_name(const std::string& name) {
  if (!name.empty() && name.size() <= max_name) return {};
  return make_error(ErrorCode::InvalidArgument, "give the name of a checkpoint");
}

// Relative to what, nobody could tell: the caller is another process.
Expected<void> check_path(const std::string& path) {
  if (path.size() <= max_path && std::filesystem::path(path).is_absolute()) return {};
  return make_error(ErrorCode::InvalidArgument,
                    fmt::format("'{}' is no full path on the machine of this node", path.substr(0, 200)));
}

Expected<void> check_network(const checkpoint::Entry& entry, const Hash256& network) {
  if (!entry.complete()) {
    return make_error(ErrorCode::Corrupt,
                      fmt::format("the checkpoint {} is damaged: {}", entry.name, entry.damage));
  }
  if (entry.manifest.network_id == network) return {};
  return make_error(
      ErrorCode::InvalidArgument,
      fmt::format("the checkpoint {} belongs to another network than this data directory", entry.name));
}

checkpoint::PruneRules rules_of(const node::PrunePolicy& policy) {
  return {policy.keep_newest, policy.keep_every_steps, policy.keep_best};
}

}  // namespace

node::CheckpointEntry checkpoint_entry(const checkpoint::Entry& from) {
  node::CheckpointEntry entry;
  entry.name = from.name;
  entry.step = from.manifest.step;
  entry.at = from.manifest.saved_at;
  entry.bytes = from.bytes;
  entry.loss = from.manifest.losses.training;
  entry.held_out_loss = from.manifest.losses.held_out;
  entry.pinned = from.pinned;
  entry.complete = from.complete();
  entry.parent = from.manifest.parent;
  if (from.complete()) entry.hash = to_hex(from.manifest_hash);
  if (from.verdict) {
    entry.verified_at = from.verdict->at;
    entry.intact = from.verdict->intact;
  }
  return entry;
}

checkpoint::Catalogue EngineCore::catalogue() const {
  return checkpoint::Catalogue(services_.files, directory_->checkpoints_path());
}

checkpoint::Progress EngineCore::progress_teller(node::CommandId id, const std::string& activity) {
  auto told = std::make_shared<std::optional<MonotonicTime>>();
  return [this, id, activity, told](std::uint64_t done, std::uint64_t total) {
    const MonotonicTime now = services_.clock.monotonic_now();
    if (*told && now - **told < progress_period) return;
    *told = now;
    // Lost when the queue is full: the next one says more.
    static_cast<void>(
        core_->post([this, event = node::CommandProgress{id, activity, done, total}] { emit(event); }));
  };
}

void EngineCore::start_file_work(node::CommandId id, const std::string& activity, FileWork work,
                                 std::function<void(Expected<node::CommandResult>)> then) {
  const CancelToken token = cancellable_[id].token();
  const bool posted = files_->post([this, id, activity, token, work = std::move(work), then] {
    auto outcome = [&]() -> Expected<node::CommandResult> {
      if (token.cancelled()) return make_error(ErrorCode::Cancelled, "cancelled before it began");
      return work({token, progress_teller(id, activity)});
    }();
    const auto after = [this, id, then, outcome = std::move(outcome)] {
      cancellable_.erase(id);
      then(outcome);
      advance();
    };
    // The core's queue is full only while it is flooded, and it works that off.
    while (!core_->post(after)) std::this_thread::yield();
  });
  if (posted) return;
  cancellable_.erase(id);
  then(make_error(ErrorCode::Busy, "too much work on checkpoints is waiting; try again later"));
}

Expected<node::CommandId> EngineCore::accept_file_command(std::string activity, FileWork work) {
  return accept([this, activity = std::move(activity), work = std::move(work)](node::CommandId id) {
    start_file_work(id, activity, work, [this, id](Expected<node::CommandResult> outcome) {
      if (!outcome.ok()) return done(id, outcome.error());
      done(id, std::nullopt, std::move(*outcome));
    });
  });
}

Expected<void> EngineCore::cancel(node::CommandId id) {
  static_cast<void>(core_->post([this, id] {
    const auto at = cancellable_.find(id);
    if (at != cancellable_.end()) at->second.cancel();
  }));
  return {};
}

Expected<node::CommandId> EngineCore::verify_checkpoint(const std::string& name) {
  NS_RETURN_IF_ERROR(check_name(name));
  return accept_file_command(
      "verifying " + name, [this, name](const FileJob& job) -> Expected<node::CommandResult> {
        checkpoint::Catalogue all = catalogue();
        NS_ASSIGN_OR_RETURN(const checkpoint::Entry entry, all.find(name));
        const Expected<void> good = checkpoint::verify(services_.files, entry, job.progress, job.cancel);
        if (!good.ok() && good.error().code == ErrorCode::Cancelled) return good.error();
        // Kept as far as the disk takes it; the answer does not depend on that.
        static_cast<void>(all.note_verdict(entry.name, {services_.clock.wall_now(), good.ok()}).ok());
        tell_checkpoints_changed();
        return node::CommandResult(node::VerifyResult{
            entry.name, good.ok(), good.ok() ? std::string() : good.error().describe(), entry.bytes});
      });
}

Expected<node::CommandId> EngineCore::compare_checkpoints(const std::string& first,
                                                          const std::string& second) {
  NS_RETURN_IF_ERROR(check_name(first));
  NS_RETURN_IF_ERROR(check_name(second));
  return accept_file_command(
      "comparing", [this, first, second](const FileJob& job) -> Expected<node::CommandResult> {
        const checkpoint::Catalogue all = catalogue();
        NS_ASSIGN_OR_RETURN(const checkpoint::Entry a, all.find(first));
        NS_ASSIGN_OR_RETURN(const checkpoint::Entry b, all.find(second));
        NS_ASSIGN_OR_RETURN(const checkpoint::Comparison found,
                            checkpoint::compare(services_.files, a, b, job.progress, job.cancel));
        node::CheckpointComparison result{
            checkpoint_entry(a), checkpoint_entry(b), {}, found.all.distance, found.all.relative};
        for (const checkpoint::SlotComparison& slot : found.slots) {
          if (result.slots.size() >= node::max_page) break;
          result.slots.push_back({compute::to_string(slot.slot), slot.distance.distance,
                                  slot.distance.relative, slot.distance.cosine});
        }
        return node::CommandResult(std::move(result));
      });
}

Expected<node::CommandId> EngineCore::pin_checkpoint(const std::string& name, bool pinned) {
  NS_RETURN_IF_ERROR(check_name(name));
  return accept_file_command(pinned ? "pinning" : "unpinning",
                             [this, name, pinned](const FileJob&) -> Expected<node::CommandResult> {
                               checkpoint::Catalogue all = catalogue();
                               NS_ASSIGN_OR_RETURN(const checkpoint::Entry entry, all.find(name));
                               NS_RETURN_IF_ERROR(pinned ? all.pin(entry.name) : all.unpin(entry.name));
                               tell_checkpoints_changed();
                               return node::CommandResult();
                             });
}

Expected<node::CommandId> EngineCore::delete_checkpoint(const std::string& name) {
  NS_RETURN_IF_ERROR(check_name(name));
  return accept_file_command(
      "deleting " + name, [this, name](const FileJob&) -> Expected<node::CommandResult> {
        checkpoint::Catalogue all = catalogue();
        NS_ASSIGN_OR_RETURN(const checkpoint::Entry entry, all.find(name));
        NS_ASSIGN_OR_RETURN(const auto current, all.current());
        if (current && current->name == entry.name) {
          return make_error(ErrorCode::Denied,
                            fmt::format("{} is the newest checkpoint, which training goes on from after a "
                                        "restart; restore another one first",
                                        entry.name));
        }
        NS_RETURN_IF_ERROR(all.remove(entry.name));
        if (entry.undo) {
          NS_RETURN_IF_ERROR(all.keep_for_undo({}));
          static_cast<void>(core_->post([this] {
            draft_.undo = {};
            publish();
          }));
        }
        tell_checkpoints_changed();
        return node::CommandResult();
      });
}

Expected<node::CommandId> EngineCore::prune_checkpoints(const node::PrunePolicy& policy) {
  return accept_file_command("deleting", [this, policy](const FileJob& job) -> Expected<node::CommandResult> {
    checkpoint::Catalogue all = catalogue();
    NS_ASSIGN_OR_RETURN(const auto entries, all.list());
    const auto doomed = checkpoint::plan_prune(entries, rules_of(policy));
    std::uint64_t count = 0;
    for (const std::string& name : doomed) {
      if (job.cancel.cancelled()) {
        tell_checkpoints_changed();
        return make_error(ErrorCode::Cancelled, fmt::format("stopped after {} of {}", count, doomed.size()));
      }
      NS_RETURN_IF_ERROR(all.remove(name));
      job.progress(++count, doomed.size());
    }
    tell_checkpoints_changed();
    return node::CommandResult();
  });
}

Expected<void> EngineCore::query_prune(const node::PrunePolicy& policy,
                                       node::Reply<node::PrunePreview> reply) {
  return ask_reader([this, policy, reply = std::move(reply)] {
    reply_on_core(reply, [&]() -> Expected<node::PrunePreview> {
      NS_ASSIGN_OR_RETURN(const auto entries, catalogue().list());
      node::PrunePreview preview;
      preview.remove = checkpoint::plan_prune(entries, rules_of(policy));
      preview.kept = static_cast<std::uint32_t>(entries.size() - preview.remove.size());
      for (const checkpoint::Entry& entry : entries)
        if (std::find(preview.remove.begin(), preview.remove.end(), entry.name) != preview.remove.end())
          preview.bytes += entry.bytes;
      if (preview.remove.size() > node::max_page) preview.remove.resize(node::max_page);
      return preview;
    }());
  });
}

Expected<node::CommandId> EngineCore::export_checkpoint(const std::string& name, const std::string& format,
                                                        const std::string& path) {
  NS_RETURN_IF_ERROR(check_name(name));
  NS_RETURN_IF_ERROR(check_path(path));
  if (format != "safetensors" && format != "checkpoint") {
    return make_error(
        ErrorCode::InvalidArgument,
        fmt::format("a checkpoint is exported as \"safetensors\" or \"checkpoint\", not as \"{}\"",
                    format.substr(0, 40)));
  }
  return accept_file_command(
      "exporting " + name, [this, name, format, path](const FileJob& job) -> Expected<node::CommandResult> {
        NS_ASSIGN_OR_RETURN(const checkpoint::Entry entry, catalogue().find(name));
        if (services_.files.exists(path)) {
          return make_error(ErrorCode::AlreadyExists, path + " exists already; choose another name");
        }
        const auto write = format == "checkpoint" ? checkpoint::export_folder : checkpoint::export_weights;
        NS_RETURN_IF_ERROR(write(services_.files, entry, path, job.progress, job.cancel));
        return node::CommandResult();
      });
}

Expected<node::CommandId> EngineCore::import_checkpoint(const std::string& path) {
  NS_RETURN_IF_ERROR(check_path(path));
  return accept_file_command("importing", [this, path](const FileJob& job) -> Expected<node::CommandResult> {
    NS_ASSIGN_OR_RETURN(const checkpoint::Entry source, checkpoint::open_folder(services_.files, path));
    NS_RETURN_IF_ERROR(check_network(source, network_id_));
    NS_RETURN_IF_ERROR(
        checkpoint::Writer::make_root(services_.files, catalogue().root(), directory_->format_path()));
    auto writer = checkpoint::Writer::beside(services_.files, directory_->node_key(), catalogue().root());
    NS_ASSIGN_OR_RETURN(const checkpoint::SaveResult saved, writer.adopt(source, job.progress, job.cancel));
    tell_checkpoints_changed();
    return node::CommandResult(node::ImportResult{saved.name});
  });
}

void EngineCore::tell_checkpoints_changed() {
  while (!core_->post([this] { emit(node::CheckpointsChanged{}); })) std::this_thread::yield();
}

Expected<node::CommandId> EngineCore::restore_checkpoint(const std::string& name) {
  NS_RETURN_IF_ERROR(check_name(name));
  return accept([this, name](node::CommandId id) { begin_restore(id, name, false); });
}

Expected<node::CommandId> EngineCore::undo_restore() {
  return accept([this](node::CommandId id) {
    if (draft_.undo.checkpoint.empty())
      return done(id, make_error(ErrorCode::NotFound, "there is no restore that could be undone"));
    begin_restore(id, draft_.undo.checkpoint, true);
  });
}

void EngineCore::begin_restore(node::CommandId id, const std::string& name, bool undo) {
  if (restore_) return done(id, make_error(ErrorCode::Busy, "a checkpoint is being restored already"));
  restore_ = Restore{id, undo, std::nullopt};
  auto found = std::make_shared<checkpoint::Entry>();
  const auto verify = [this, name, found](const FileJob& job) -> Expected<node::CommandResult> {
    NS_ASSIGN_OR_RETURN(*found, catalogue().find(name));
    NS_RETURN_IF_ERROR(check_network(*found, network_id_));
    NS_RETURN_IF_ERROR(checkpoint::verify(services_.files, *found, job.progress, job.cancel));
    return node::CommandResult();
  };
  start_file_work(id, "reading " + name, verify,
                  [this, id, found](const Expected<node::CommandResult>& read) {
                    if (!read.ok()) {
                      restore_.reset();
                      return done(id, read.error());
                    }
                    restore_->entry = *found;
                    // A step that is thrown away: the state before it is the one that is kept.
                    if (run_ && run_->prepared && !stop_requested_) cancel_.cancel();
                  });
}

void EngineCore::restore_job() {
  struct Outcome {
    Expected<std::uint64_t> step = std::uint64_t{0};
    checkpoint::Catalogue::Undo undo;
  };
  if (run_) {
    draft_.training.activity = "restoring a checkpoint";
    set_state(node::RunState::Starting);
    publish();
  }
  start_job([this, restore = *restore_] {
    Outcome outcome;
    outcome.step = [&]() -> Expected<std::uint64_t> {
      // What was trained since the last checkpoint is what an undo goes back to.
      if (session_) NS_RETURN_IF_ERROR(session_->finish());
      checkpoint::Catalogue all = catalogue();
      NS_ASSIGN_OR_RETURN(const auto before, all.current());
      const checkpoint::Entry& entry = *restore.entry;
      if (!restore.undo && before && before->name != entry.name) {
        outcome.undo = {before->name, before->manifest.step, entry.manifest.step + node::undo_steps,
                        services_.clock.wall_now() + node::undo_time};
      }
      NS_RETURN_IF_ERROR(all.choose(entry.name));
      NS_RETURN_IF_ERROR(all.keep_for_undo(outcome.undo));
      close_session();
      text_session_.reset();
      return entry.manifest.step;
    }();
    return [this, outcome = std::move(outcome)] { on_restored(outcome.step, outcome.undo); };
  });
}

void EngineCore::on_restored(Expected<std::uint64_t> step, const checkpoint::Catalogue::Undo& undo) {
  const Restore restore = *std::exchange(restore_, std::nullopt);
  if (!step.ok()) {
    // The model is as it was and goes on.
    draft_.training.activity.clear();
    if (run_ && run_->prepared && !stop_requested_) set_state(node::RunState::Training);
    return done(restore.command, std::move(step).error());
  }
  draft_.undo = {undo.name, undo.step};
  undo_ = undo;
  session_open_ = false;
  text_model_open_ = false;
  unsaved_ = false;
  node::TrainingView& training = draft_.training;
  training.step = *step;
  training.last_step.reset();
  training.smoothed_loss.reset();
  draft_.checkpoint.newest = restore.entry->name;
  if (run_) {
    run_->prepared = false;
    run_->plan.text_path.clear();  // it was imported before
    run_->plan.steps = 0;
    run_->plan.until_step = run_->target_step;
    if (run_->command != 0) done(std::exchange(run_->command, restore.command));
    run_->command = restore.command;  // done when the model is there
  }
  publish();
  emit(node::CheckpointsChanged{});
  if (!run_) done(restore.command);
}

void EngineCore::open_undo() {
  const auto undo = catalogue().undo();
  const auto current = catalogue().current();
  if (!undo || !current.ok() || !*current) return;
  if (undo->over((*current)->manifest.step, services_.clock.wall_now())) return;
  draft_.undo = {undo->name, undo->step};
  undo_ = *undo;
}

void EngineCore::forget_undo_when_over() {
  if (draft_.undo.checkpoint.empty() || !undo_.over(draft_.training.step, services_.clock.wall_now())) return;
  draft_.undo = {};
  undo_over_ = true;  // with the next step, on the thread that restores
}

}  // namespace neuroshard::engine::detail
