// The model of a data directory that no node uses, for commands that read or write text with it.
#pragma once

#include <memory>
#include <string>

#include "app/node/commands/open_directory.h"
#include "core/engine/training_session.h"

namespace neuroshard::app {

struct TextSession {
  OpenedDirectory opened;  // outlives the session
  std::unique_ptr<engine::TrainingSession> session;
  engine::SessionInfo info;
};

// checkpoint: a name, its beginning, or a step; empty: the newest. Errors: those of open_data_directory() and
// TrainingSession::prepare(); Cancelled by the context.
Expected<TextSession> open_text_session(CommandContext& context, const SettingFlags& settings,
                                        const std::string& checkpoint);

}  // namespace neuroshard::app
