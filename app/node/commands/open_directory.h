// Opening the data directory that the command line names, and the flags of settings.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "app/node/command.h"
#include "core/config/data_directory.h"
#include "core/platform/process/crash_record.h"

namespace neuroshard::app {

// --data-dir, else NEUROSHARD_DATA_DIR, else the user's default directory. Not created, not checked.
Expected<std::string> data_directory_path(const CommandContext& context);

// Settings given as flags; fill it with add_setting_flags and hand it to open_data_directory.
struct SettingFlags {
  std::vector<std::pair<config::Setting, std::string>> given;
};
// One flag per entry of `settings` (--cpu-threads, --memory-limit …); empty = all of the table.
void add_setting_flags(CLI::App& command, std::shared_ptr<SettingFlags> flags,
                       std::vector<config::Setting> settings = {});

// The error of its lock while another process has the directory. The lock is tried only if its recorded holder lives: a core
// that starts anew in its process waits for a lock that is taken for a moment (OpenMode::Stay).
std::optional<Error> directory_in_use(const std::string& path, const Clock& clock);

// Such an error with a hint: no control file of a running node on the directory is in this user's place for it.
Error without_control_file(Error in_use);

// The crash records of this folder that a start has told, for platform::read_crash_records().
std::string read_told_crashes(storage::FileEnv& files, const std::string& folder);

// A directory that is open and locked, with its log file.
struct OpenedDirectory {
  std::unique_ptr<Logger> logger;  // into D/logs/neuroshardd.log, warnings to the terminal as well
  std::unique_ptr<config::DataDirectory> directory;
  std::optional<platform::CrashRecorder> crash_recorder;  // into D/crash, not with OpenMode::Existing
  std::string crash_notice;  // that the program crashed since the last start; empty = it did not
};

enum class OpenMode {
  Create,    // makes what is missing; the words of a new wallet go to standard error once
  Existing,  // NotFound when there is no data directory yet
  Stay,      // as Create, for a process that goes on: it waits while a command has the directory for a moment
  Join,      // as Stay; a directory that was only set up changes to the network of the context's profile
};
// Busy names the pid of the process that has it and the remedy, with the hint of without_control_file() where it
// holds; main exits with 75.
Expected<OpenedDirectory> open_data_directory(CommandContext& context, OpenMode mode,
                                              const SettingFlags& flags = {});

}  // namespace neuroshard::app
