#include "core/control/detail/dispatch.h"

#include <algorithm>

#include "core/control/detail/convert.h"

namespace neuroshard::control::detail {
namespace {

// A duration that is too long for the node stays too long, so that the node's own message says so.
std::chrono::seconds bounded(std::uint64_t seconds) {
  constexpr auto most = static_cast<std::uint64_t>(node::max_snooze.count()) + 1;
  return std::chrono::seconds(std::min(seconds, most));
}

}  // namespace

Expected<node::CommandId> dispatch(node::Node& node, const v1::CommandRequest& request,
                                   node::TextHandler on_text) {
  using Kind = v1::CommandRequest;
  switch (request.command_case()) {
    case Kind::kStartTraining:
      return node.start_training({request.start_training().text_path(), request.start_training().steps(),
                                  request.start_training().until_step()});
    case Kind::kStopTraining: return node.stop_training();
    case Kind::kSetContributing: return node.set_contributing(request.set_contributing().on());
    case Kind::kSnooze: return node.snooze(bounded(request.snooze().seconds()));
    case Kind::kFinish: return node.finish();
    case Kind::kOverrideRules: return node.override_rules(bounded(request.override_rules().seconds()));
    case Kind::kSaveCheckpoint: return node.save_checkpoint();
    case Kind::kRestoreCheckpoint: return node.restore_checkpoint(request.restore_checkpoint().name());
    case Kind::kUndoRestore: return node.undo_restore();
    case Kind::kVerifyCheckpoint: return node.verify_checkpoint(request.verify_checkpoint().name());
    case Kind::kCompareCheckpoints:
      return node.compare_checkpoints(request.compare_checkpoints().first(),
                                      request.compare_checkpoints().second());
    case Kind::kPinCheckpoint:
      return node.pin_checkpoint(request.pin_checkpoint().name(), request.pin_checkpoint().pinned());
    case Kind::kDeleteCheckpoint: return node.delete_checkpoint(request.delete_checkpoint().name());
    case Kind::kPruneCheckpoints: return node.prune_checkpoints(decode(request.prune_checkpoints()));
    case Kind::kExportCheckpoint:
      return node.export_checkpoint(request.export_checkpoint().name(), request.export_checkpoint().format(),
                                    request.export_checkpoint().path());
    case Kind::kImportCheckpoint: return node.import_checkpoint(request.import_checkpoint().path());
    case Kind::kExportHistory:
      return node.records().export_history(request.export_history().format(),
                                           request.export_history().path());
    case Kind::kGenerate: return node.generate(decode(request.generate()), std::move(on_text));
    case Kind::kSetSetting:
      return node.set_setting(request.set_setting().name(), request.set_setting().value());
    case Kind::kShutdown: return node.request_shutdown();
    case Kind::COMMAND_NOT_SET: break;
  }
  return make_error(ErrorCode::Unsupported, "this core does not know that command: upgrade it");
}

}  // namespace neuroshard::control::detail
