// neuroshardd network invite, and what following an invitation asks first.
#pragma once

#include <string>
#include <vector>

#include "app/node/command.h"

namespace neuroshard::app {

// Named in a link beside the profile's own addresses: enough to find one that is up, few enough for a small
// QR code.
inline constexpr std::size_t peers_by_itself = 3;

void add_invite_command(CLI::App& network, CommandContext& context);

// Follows an invitation: the profile of the command becomes that of the link, and its peers, as
// "[ID@]HOST:PORT", are returned. yes: the person has agreed already; else it is asked on the terminal.
// Cancelled: the answer was no.  InvalidArgument: there is nobody to ask and no --yes; --profile was given
// besides; the link (see engine/invite_link.h).
Expected<std::vector<std::string>> follow_invitation(const std::string& link, bool yes,
                                                     CommandContext& context);

}  // namespace neuroshard::app
