#include "app/node/commands/consent.h"

#include "core/platform/process/terminal.h"

namespace neuroshard::app {

Expected<void> ask_consent(const std::string& question, const std::string& what) {
  const auto answer = platform::prompt(question, /*hidden=*/false);
  if (!answer.ok() && answer.error().code == ErrorCode::Unavailable)
    return make_error(ErrorCode::InvalidArgument,
                      what + " requires your consent, but there is no terminal: add --yes");
  if (!answer.ok()) return answer.error();
  if (*answer == "y" || *answer == "Y" || *answer == "yes") return {};
  return make_error(ErrorCode::Cancelled, "declined; nothing was changed");
}

}  // namespace neuroshard::app
