#include "app/node/commands/guest_flags.h"

#include <CLI/CLI.hpp>

namespace neuroshard::app {

void add_guest_flags(CLI::App& command, GuestFlags& flags) {
  command
      .add_option("--at", flags.at,
                  "tracker or node to ask; may be repeated (default: those of the profile)")
      ->type_name("[ID@]HOST:PORT")
      ->allow_extra_args(false);  // else it takes the words that follow, too
  command.add_flag("--lan", flags.lan, "for a private network: allow private addresses");
}

runtime::GuestOptions guest_options(const GuestFlags& flags, const std::string& profile,
                                    const CommandContext& context) {
  return {context.profile.empty() ? profile : context.profile, flags.at, flags.lan};
}

runtime::NoteFunction guest_notes(CommandContext& context) {
  return [&context](std::string_view text) { context.output.note(text); };
}

}  // namespace neuroshard::app
