// neuroshardd network invite, and the question before an invitation is followed.
#pragma once

#include <string>

#include "app/node/command.h"
#include "core/config/invite_link.h"

namespace neuroshard::app {

void add_invite_command(CLI::App& network, CommandContext& context);

// Follows an invitation: the link's profile becomes that of the command. Returns what the link says. yes: the user has agreed already; else the terminal asks. Errors: Cancelled (the answer
// was no), InvalidArgument (there is no terminal and no --yes; --profile was given, too), those of
// config/invite_link.h.
Expected<config::InviteLink> follow_invitation(const std::string& link, bool yes, CommandContext& context);

}  // namespace neuroshard::app
