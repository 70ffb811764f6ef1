// neuroshardd network invite, and what following an invitation asks first.
#pragma once

#include <string>
#include <vector>

#include "app/node/command.h"

namespace neuroshard::app {

void add_invite_command(CLI::App& network, CommandContext& context);

// Follows an invitation: the profile of the command becomes that of the link, and its peers, as
// "[ID@]HOST:PORT", are returned. yes: the person has agreed already; else it is asked on the terminal.
// Cancelled: the answer was no.  InvalidArgument: there is nobody to ask and no --yes; --profile was given
// besides; the link (see engine/invite_link.h).
Expected<std::vector<std::string>> follow_invitation(const std::string& link, bool yes,
                                                     CommandContext& context);

}  // namespace neuroshard::app
