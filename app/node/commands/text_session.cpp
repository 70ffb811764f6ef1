#include "app/node/commands/text_session.h"

#include <utility>

namespace neuroshard::app {

Expected<TextSession> open_text_session(CommandContext& context, const SettingFlags& settings,
                                        const std::string& checkpoint) {
  NS_ASSIGN_OR_RETURN(OpenedDirectory opened, open_data_directory(context, OpenMode::Existing, settings));
  NS_ASSIGN_OR_RETURN(auto session, engine::TrainingSession::create(
                                        *opened.directory, {context.files, context.clock, *opened.logger}));
  engine::PrepareOptions prepare;
  prepare.mode = engine::SessionMode::Generate;
  prepare.checkpoint = checkpoint;
  prepare.cancel = context.stop;
  NS_ASSIGN_OR_RETURN(engine::SessionInfo info, session->prepare(prepare));
  return TextSession{std::move(opened), std::move(session), std::move(info)};
}

}  // namespace neuroshard::app
