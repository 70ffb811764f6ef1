// neuroshardd network invite, and the question before an invitation is followed.
#pragma once

#include <string>
#include <vector>

#include "app/node/command.h"

namespace neuroshard::app {

void add_invite_command(CLI::App& network, CommandContext& context);

// Follows an invitation: the link's profile becomes that of the command. Returns the link's peers, as
// "[ID@]HOST:PORT". yes: the user has agreed already; else the terminal asks. Errors: Cancelled (the answer
// was no), InvalidArgument (there is no terminal and no --yes; --profile was given, too), those of
// config/invite_link.h.
Expected<std::vector<std::string>> follow_invitation(const std::string& link, bool yes,
                                                     CommandContext& context);

}  // namespace neuroshard::app
