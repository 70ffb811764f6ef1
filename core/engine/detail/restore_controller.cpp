#include "core/engine/detail/restore_controller.h"

#include <utility>

#include "core/engine/detail/checkpoint_commands.h"

namespace neuroshard::engine::detail {

RestoreController::RestoreController(const EngineContext& context, FileJobs& files, SessionHost& host,
                                     TrainingController& training)
    : context_(context), files_(files), host_(host), training_(training), draft_(context.publisher.draft()) {}

void RestoreController::open() {
  const checkpoint::Catalogue catalogue = context_.catalogue();
  const auto current = catalogue.current();
  if (!current.ok() || !*current) return;
  draft_.checkpoint = {(*current)->name, (*current)->manifest.saved_at};
  draft_.training.step = (*current)->manifest.step;
  const auto undo = catalogue.undo();
  if (!undo || undo->over((*current)->manifest.step, context_.services.clock.wall_now())) return;
  draft_.undo = {undo->name, undo->step};
  undo_ = *undo;
}

Expected<node::CommandId> RestoreController::restore(const std::string& name) {
  NS_RETURN_IF_ERROR(check_checkpoint_name(name));
  return context_.commands.accept([this, name](node::CommandId id) { begin(id, name, false); });
}

Expected<node::CommandId> RestoreController::undo() {
  return context_.commands.accept([this](node::CommandId id) {
    if (draft_.undo.checkpoint.empty()) {
      return context_.commands.done(id, make_error(ErrorCode::NotFound, "there is no restore to undo"));
    }
    begin(id, draft_.undo.checkpoint, true);
  });
}

void RestoreController::begin(node::CommandId id, const std::string& name, bool undo) {
  if (restore_) {
    return context_.commands.done(id, make_error(ErrorCode::Busy, "a checkpoint is being restored already"));
  }
  restore_ = Restore{id, undo, std::nullopt};
  auto found = std::make_shared<Verified>();
  files_.start(
      id, "reading " + name,
      [this, name, found](const FileJobs::Tools& tools) -> Expected<node::CommandResult> {
        NS_ASSIGN_OR_RETURN(*found, verify(name, tools));
        return node::CommandResult();
      },
      [this, found](const Expected<node::CommandResult>& read) { on_verified(read, *found); });
}

Expected<RestoreController::Verified> RestoreController::verify(const std::string& name,
                                                                const FileJobs::Tools& tools) {
  NS_ASSIGN_OR_RETURN(checkpoint::Entry entry, context_.catalogue().find(name));
  NS_RETURN_IF_ERROR(check_checkpoint_network(entry, context_.directory.network_id()));
  NS_RETURN_IF_ERROR(checkpoint::verify(context_.services.files, entry, tools.progress, tools.cancel));
  const std::uint64_t step = entry.manifest.step;
  const std::optional<double>& held_out = entry.manifest.losses.held_out;
  // Measured at that step or before it; the manifest does not say when.
  const auto evaluated_at = held_out ? context_.history->step_of("val_loss", *held_out, step) : std::nullopt;
  return Verified{std::move(entry), evaluated_at.value_or(step)};
}

void RestoreController::on_verified(const Expected<node::CommandResult>& read, const Verified& found) {
  if (!read.ok()) {
    const Restore restore = *std::exchange(restore_, std::nullopt);
    return context_.commands.done(restore.command, read.error());
  }
  restore_->found = found;
  training_.interrupt_for_restore();
}

bool RestoreController::undo_is_over() const {
  return !draft_.undo.checkpoint.empty() &&
         undo_.over(draft_.training.step, context_.services.clock.wall_now());
}

bool RestoreController::start_next() {
  if (restore_ && restore_->found) {
    restore_job();
    return true;
  }
  if (!undo_is_over()) return false;
  draft_.undo = {};
  context_.publisher.publish();
  // On the compute thread, like the restore that wrote it. If the disk refuses, the checkpoint stays longer.
  context_.jobs.start([this](const CancelToken&) { return context_.catalogue().keep_for_undo({}); },
                      [](const Expected<void>& forgotten) { static_cast<void>(forgotten.ok()); });
  return true;
}

void RestoreController::restore_job() {
  training_.restore_begins();
  context_.jobs.start([this, restore = *restore_](const CancelToken&) { return exchange(restore); },
                      [this](const Expected<checkpoint::Catalogue::Undo>& undo) { on_exchanged(undo); });
}

Expected<checkpoint::Catalogue::Undo> RestoreController::exchange(const Restore& restore) {
  // The undo also keeps the steps since the last checkpoint.
  NS_RETURN_IF_ERROR(host_.finish());
  checkpoint::Catalogue all = context_.catalogue();
  NS_ASSIGN_OR_RETURN(const auto before, all.current());
  const checkpoint::Entry& entry = restore.found->entry;
  checkpoint::Catalogue::Undo undo;
  if (!restore.undo && before && before->name != entry.name) {
    undo = {before->name, before->manifest.step, entry.manifest.step + node::undo_steps,
            context_.services.clock.wall_now() + node::undo_time};
  }
  NS_RETURN_IF_ERROR(all.choose(entry.name));
  NS_RETURN_IF_ERROR(all.keep_for_undo(undo));
  host_.close();
  host_.close_text_model();
  return undo;
}

void RestoreController::on_exchanged(const Expected<checkpoint::Catalogue::Undo>& undo) {
  const Restore restore = *std::exchange(restore_, std::nullopt);
  if (!undo.ok()) {
    training_.restore_failed();
    return context_.commands.done(restore.command, undo.error());
  }
  draft_.undo = {undo->name, undo->step};
  undo_ = *undo;
  const bool goes_on = training_.restored(restore.found->entry, restore.found->evaluated_at, restore.command);
  context_.publisher.publish();
  context_.publisher.emit(node::CheckpointsChanged{});
  if (!goes_on) context_.commands.done(restore.command);
}

}  // namespace neuroshard::engine::detail
