#include "app/gui/core_words.h"

namespace neuroshard::gui {
namespace {

using ui::BannerContent;
using ui::Tone;

int seconds(Duration wait) {
  return static_cast<int>(std::chrono::duration_cast<std::chrono::seconds>(wait).count());
}

QString text_of(const Error& error) {
  return QString::fromStdString(error.describe());
}

// An error's text, with another sentence after it.
QString before_sentence(const Error& error, const QString& next) {
  const QString text = text_of(error);
  return text + (text.endsWith(u'.') ? QStringLiteral(" ") : QStringLiteral(". ")) + next;
}

}  // namespace

std::optional<BannerContent> CoreWords::banner(const CoreStatus& status, const CoreActions& actions) {
  BannerContent banner;
  banner.details = status.said;
  switch (status.phase) {
    case CorePhase::Closed: return std::nullopt;
    case CorePhase::Looking:
      banner.title = status.remote ? tr("Connecting to the other computer") : tr("Looking for the core");
      banner.text = status.remote ? text_of(status.error) : QString();
      if (status.remote) banner.actions = {{tr("Return to this computer"), actions.back, false}};
      return banner;
    case CorePhase::Starting:
      banner.title = status.safe_mode ? tr("Starting the core in safe mode") : tr("Starting the core");
      banner.text = tr("The core opens the data and resumes training from the last checkpoint.");
      if (status.safe_mode) banner.text = tr("The core opens the data. It does not train in safe mode.");
      return banner;
    case CorePhase::Running:
      if (status.safe_mode) {
        banner.tone = Tone::Warning;
        banner.title = tr("Safe mode: training is off");
        banner.text =
            tr("The core crashed %n time(s) within ten minutes and now runs without training. Checkpoints, "
               "wallet and logs are available; data and settings are unchanged.",
               nullptr, static_cast<int>(status.crashes));
        banner.actions = {{tr("Restart normally"), actions.try_normally, true}};
        return banner;
      }
      if (status.crashes == 0 || status.dismissed) return std::nullopt;
      banner.tone = Tone::Warning;
      banner.title = tr("The core crashed and was restarted");
      banner.text =
          tr("Training resumes from the last checkpoint. The core crashed %n time(s) within ten minutes; "
             "after three crashes it starts in safe mode. Diagnostics has the details.",
             nullptr, static_cast<int>(status.crashes));
      banner.can_close = true;
      banner.on_close = actions.dismiss;
      return banner;
    case CorePhase::Waiting:
      banner.tone = Tone::Danger;
      banner.title = status.crashed ? tr("The core crashed") : tr("The core could not start");
      banner.text = tr("The core restarts in %n second(s).", nullptr, seconds(status.wait));
      if (!status.crashed) banner.text = before_sentence(status.error, banner.text);
      banner.actions = {{tr("Start now"), actions.start_now, true}};
      return banner;
    case CorePhase::Stopped:
      banner.tone = status.crashed ? Tone::Danger : Tone::Info;
      banner.title = status.crashed ? tr("The core crashed") : tr("The core has stopped");
      banner.text = status.ours ? tr("Another program stopped it. Everything is saved.")
                                : tr("Another program started this core, so NeuroShard does not restart it.");
      banner.actions = {{tr("Start the core here"), actions.start_now, true}};
      return banner;
    case CorePhase::Failed:
      banner.tone = Tone::Danger;
      banner.text = text_of(status.error);
      if (!status.remote) {
        banner.title = tr("The core is not running");
        banner.actions = {{tr("Try again"), actions.start_now, true}};
        return banner;
      }
      banner.title = tr("NeuroShard can't reach the other computer");
      if (status.error.code == ErrorCode::Denied)
        banner.title = tr("The other computer refuses the connection");
      if (status.error.code == ErrorCode::Corrupt) banner.title = tr("This file is not an invitation");
      banner.actions = {{tr("Return to this computer"), actions.back, true}};
      return banner;
    case CorePhase::WrongVersion:
      banner.tone = Tone::Danger;
      banner.title = tr("The core has another version");
      banner.text = text_of(status.error);
      if (status.ours) {
        banner.text =
            tr("The core started before NeuroShard was upgraded. Restart it; it saves a checkpoint first.");
        banner.details = text_of(status.error);
        banner.actions = {{tr("Restart the core"), actions.restart, true}};
      }
      return banner;
    case CorePhase::Stopping:
      banner.title = tr("The core is stopping");
      banner.text = tr("The core writes the last checkpoint.");
      return banner;
  }
  return std::nullopt;
}

BannerContent CoreWords::elsewhere(const QString& data_directory, bool may_steer,
                                   const std::function<void()>& back) {
  BannerContent banner;
  banner.title =
      may_steer ? tr("You are connected to another computer") : tr("You are looking at another computer");
  banner.text = tr("All values, settings and paths here belong to the other computer.");
  if (!may_steer)
    banner.text +=
        ' ' + tr("You can see everything and change nothing. To change something, ask its owner for an "
                 "invitation with the scope \"steer\".");
  if (!data_directory.isEmpty()) banner.text += ' ' + tr("Its data is in %1.").arg(data_directory);
  banner.actions = {{tr("Return to this computer"), back, false}};
  return banner;
}

std::optional<ui::CoreLife> CoreWords::life(const CoreStatus& status) {
  using ui::DisplayState;
  switch (status.phase) {
    case CorePhase::Closed: return ui::CoreLife{DisplayState::Idle, tr("Not running"), {}};
    case CorePhase::Looking:
    case CorePhase::Starting: return ui::CoreLife{DisplayState::Syncing, tr("Starting"), {}};
    case CorePhase::Running: return std::nullopt;
    case CorePhase::Stopping: return ui::CoreLife{DisplayState::Syncing, tr("Stopping"), {}};
    case CorePhase::Stopped:
      if (!status.crashed) return ui::CoreLife{DisplayState::Idle, tr("Stopped"), {}};
      break;
    case CorePhase::Waiting:
    case CorePhase::Failed:
    case CorePhase::WrongVersion: break;
  }
  const auto content = banner(status, {});
  return ui::CoreLife{DisplayState::Error, tr("Needs attention"), content ? content->title : QString()};
}

CoreWords::Farewell CoreWords::farewell() {
  return {tr("NeuroShard has quit"), tr("The core finishes its last checkpoint and ends by itself.")};
}

}  // namespace neuroshard::gui
