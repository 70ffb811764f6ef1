// The flags of commands that ask a network as a guest (core/runtime/guest.h): --at and --lan.
#pragma once

#include <string>
#include <vector>

#include "app/node/command.h"
#include "core/runtime/guest.h"

namespace neuroshard::app {

struct GuestFlags {
  std::vector<std::string> at;
  bool lan = false;
};
// The flags outlive the command's body.
void add_guest_flags(CLI::App& command, GuestFlags& flags);

// profile: the network when the command line has no --profile; empty: none.
runtime::GuestOptions guest_options(const GuestFlags& flags, const std::string& profile,
                                    const CommandContext& context);

// Shows what a guest tries as notes.
runtime::NoteFunction guest_notes(CommandContext& context);

}  // namespace neuroshard::app
