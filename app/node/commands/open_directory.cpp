#include "app/node/commands/open_directory.h"

#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>

#include "app/node/output/redaction.h"
#include "core/base/redacting_logger.h"
#include "core/config/former_names.h"
#include "core/control/control_file.h"
#include "core/platform/file/directory_lock.h"
#include "core/platform/file/paths.h"
#include "core/platform/process/process_identity.h"

namespace neuroshard::app {
namespace {

// Writes all records to the file, without secrets, and those for the user to the terminal.
class DirectoryLogger final : public Logger {
 public:
  DirectoryLogger(std::unique_ptr<Logger> file, Logger& terminal)
      : file_(std::move(file)), terminal_(terminal) {
    if (file_) redacting_ = make_redacting_logger(*file_, log_redactor());
  }
  void write(const LogRecord& record) override {
    if (redacting_) redacting_->write(record);
    terminal_.write(record);
  }

 private:
  std::unique_ptr<Logger> file_, redacting_;
  Logger& terminal_;
};

LogLevel log_level(const std::string& word) {
  if (word == "debug") return LogLevel::Debug;
  if (word == "warning") return LogLevel::Warning;
  return word == "error" ? LogLevel::Error : LogLevel::Info;
}

constexpr std::uint64_t max_marker_bytes = 4096;

std::string marker_in(const std::string& folder) {
  return folder + "/told";
}

constexpr Duration moment = std::chrono::seconds(2);

// Reports crashes of earlier processes once: returns the newest one's notice, or an empty one. A file beside
// the records remembers the reported ones.
std::string tell_crashes(CommandContext& context, const config::DataDirectory& directory, Logger& logger) {
  const std::string told = read_told_crashes(context.files, directory.crash_path());
  const auto records = platform::read_crash_records(directory.crash_path(), told);
  std::string newest;
  for (const platform::CrashRecord& record : platform::untold_crashes(records, told)) {
    std::string notice = fmt::format(
        "an earlier neuroshardd (process {}) crashed with {}; the crash record is {}/{}. Nothing was sent; "
        "\"neuroshardd diagnostics\" creates a file for a report",
        record.pid, record.signal, directory.crash_path(), record.file);
    logger.warning("crash", notice);
    if (newest.empty()) newest = std::move(notice);
  }
  // On a full disk nothing is remembered, and the next start reports the crash again.
  if (const std::string all = platform::told_crashes(records); all != told)
    static_cast<void>(
        storage::write_file_atomic(context.files, marker_in(directory.crash_path()), as_bytes(all)).ok());
  return newest;
}

}  // namespace

std::string read_told_crashes(storage::FileEnv& files, const std::string& folder) {
  const auto bytes = storage::read_file(files, marker_in(folder), max_marker_bytes);
  return bytes.ok() ? std::string(as_text(*bytes)) : std::string();
}

std::optional<Error> directory_in_use(const std::string& path, const Clock& clock) {
  // The record stays when the holder has ended, and another process may have its number now.
  if (!platform::may_live({platform::read_lock_holder(path).pid, 0})) return std::nullopt;
  const auto lock = platform::DirectoryLock::acquire(path, clock);
  if (lock.ok() || lock.error().code != ErrorCode::Busy) return std::nullopt;
  return lock.error();
}

Error without_control_file(Error in_use) {
  in_use.message += fmt::format(
      ". Commands find \"neuroshardd run\" by a control file, and {} has none of a running node on "
      "this directory. If the node was started with another XDG_RUNTIME_DIR, set the same one",
      platform::runtime_directory(platform::process_environment()));
  return in_use;
}

Expected<std::string> data_directory_path(const CommandContext& context) {
  if (!context.data_dir.empty()) return context.data_dir;
  const auto environment = platform::process_environment();
  if (std::string path = environment("NEUROSHARD_DATA_DIR"); !path.empty()) return path;
  return platform::default_data_directory(environment);
}

void add_setting_flags(CLI::App& command, std::shared_ptr<SettingFlags> flags,
                       std::vector<config::Setting> settings) {
  for (const config::SettingInfo& info : config::settings_table()) {
    if (!settings.empty() && std::find(settings.begin(), settings.end(), info.id) == settings.end()) continue;
    std::string kind(config::to_string(info.type));
    if (info.type == config::SettingType::Choice) kind = info.choices;
    std::transform(kind.begin(), kind.end(), kind.begin(), [](unsigned char c) { return std::toupper(c); });
    command
        .add_option_function<std::string>(
            config::flag_name(info),
            [flags, id = info.id](const std::string& text) { flags->given.emplace_back(id, text); },
            fmt::format("{} (default {})", info.help,
                        *info.default_text == '\0' ? "none" : info.default_text))
        ->type_name(info.type == config::SettingType::Choice ? info.choices : kind);
  }
  for (const config::FormerName& former : config::former_names) {
    if (!settings.empty() && std::find(settings.begin(), settings.end(), former.id) == settings.end())
      continue;
    std::string flag = std::string("--") + former.name;
    std::replace(flag.begin(), flag.end(), '_', '-');
    command
        .add_option_function<std::string>(
            flag, [flags, id = former.id](const std::string& text) { flags->given.emplace_back(id, text); })
        ->group("");  // not in the help
  }
}

Expected<OpenedDirectory> open_data_directory(CommandContext& context, OpenMode mode,
                                              const SettingFlags& flags) {
  config::DataDirectoryOptions options;
  NS_ASSIGN_OR_RETURN(options.path, data_directory_path(context));
  options.profile = context.profile;
  options.create = mode != OpenMode::Existing;
  options.joins = mode == OpenMode::Join;
  if (mode == OpenMode::Stay || mode == OpenMode::Join) options.lock_patience = moment;
  options.setting_flags = flags.given;
  options.on_new_wallet = [&context](std::string_view words) {
    context.output.once(
        fmt::format("A new wallet was created. These words are its only backup; write them down, they are "
                    "shown once:\n\n    {}\n",
                    words));
  };
  OpenedDirectory opened;
  auto directory =
      config::DataDirectory::open(options, {context.files, context.entropy, context.clock, context.logger});
  if (!directory.ok() && directory.error().code == ErrorCode::Busy) {
    const std::string runtime = platform::runtime_directory(platform::process_environment());
    if (!control::find_core(runtime, options.path).ok()) return without_control_file(directory.error());
  }
  NS_ASSIGN_OR_RETURN(opened.directory, std::move(directory));
  FileLogOptions log;
  log.path = opened.directory->logs_path() + "/neuroshardd.log";
  log.file_level = log_level(opened.directory->settings().word(config::Setting::LogLevel));
  opened.logger = std::make_unique<DirectoryLogger>(make_file_logger(log), context.logger);
  if (mode != OpenMode::Existing) {
    opened.crash_notice = tell_crashes(context, *opened.directory, *opened.logger);
    auto recorder =
        platform::CrashRecorder::install(opened.directory->crash_path(), "neuroshardd " + program_version());
    if (recorder.ok()) opened.crash_recorder.emplace(std::move(*recorder));
  }
  return opened;
}

}  // namespace neuroshard::app
