#include "app/node/commands/diagnostics_bundle.h"

#include <fmt/chrono.h>
#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <utility>

#include "app/node/commands/core_client.h"
#include "app/node/commands/open_directory.h"
#include "app/node/output/redaction.h"
#include "app/node/output/snapshot_text.h"
#include "core/platform/file/paths.h"
#include "core/platform/process/account.h"
#include "core/platform/process/crash_record.h"
#include "core/platform/process/process_memory.h"
#include "core/platform/sensor/cpu.h"

namespace neuroshard::app {
namespace {

using Json = nlohmann::ordered_json;

std::string iso_time(WallTime at) {
  return fmt::format(
      "{:%Y-%m-%dT%H:%M:%SZ}",
      fmt::gmtime(std::chrono::system_clock::to_time_t(std::chrono::floor<std::chrono::seconds>(at))));
}

std::string dump(const Json& json) {
  return json.dump(2, ' ', false, nlohmann::json::error_handler_t::replace) + "\n";
}

Json problem(const Error& error) {
  return {{"unavailable", error.describe()}};
}

// Returns the last `most` bytes of a file, from the beginning of a line.
Expected<std::string> read_end(storage::FileEnv& files, const std::string& path, std::uint64_t most) {
  NS_ASSIGN_OR_RETURN(const auto file, files.open_read(path));
  const std::uint64_t bytes = std::min(file->size(), most);
  std::string text(static_cast<std::size_t>(bytes), '\0');
  NS_RETURN_IF_ERROR(
      file->read_at(file->size() - bytes, {reinterpret_cast<std::uint8_t*>(text.data()), text.size()}));
  if (bytes < file->size()) text.erase(0, std::min(text.find('\n'), text.size() - 1) + 1);
  return text;
}

class Gatherer {
 public:
  Gatherer(CommandContext& context, std::string directory)
      : context_(context), directory_(std::move(directory)), redactor_(sharing_redactor(directory_)) {}

  DiagnosticsBundle gather() {
    about();
    auto client = CoreClient::attach(context_);
    core(client);
    settings(client);
    logs();
    crashes();
    return {std::move(files_), redactor_.counts()};
  }

 private:
  void add(const std::string& name, std::string what, const std::string& text) {
    files_.push_back({redactor_.apply(name), std::move(what), redactor_.apply(text)});
  }

  void about() {
    const platform::CpuInfo cpu = platform::cpu_info();
    const platform::AvailableMemory memory = platform::available_memory();
    const auto environment = platform::process_environment();
    const auto free = context_.files.free_bytes(directory_);
    Json json = {{"program", "neuroshardd"},
                 {"version", program_version()},
                 {"data_directory_format", config::data_directory_format},
                 {"made", iso_time(context_.clock.wall_now())},
                 {"system", platform::system_name()},
                 {"processor", cpu.model},
                 {"instruction_sets", cpu.isa_name()},
                 {"usable_processors", cpu.usable_cpus},
                 {"memory_bytes", memory.total},
                 {"memory_available_bytes", memory.available},
                 {"memory_limited_by", memory.limited_by},
                 {"disk_free_bytes", free.ok() ? Json(*free) : Json()},
                 {"data_directory", directory_}};
    for (const char* name : {"XDG_CURRENT_DESKTOP", "XDG_SESSION_TYPE", "LANG", "TZ"}) {
      if (const std::string value = environment(name); !value.empty()) json[name] = value;
    }
    add("about.json", "version, system, processor, memory and disk", dump(json));
  }

  void core(Expected<std::unique_ptr<CoreClient>>& client) {
    Json json = client.ok() ? snapshot_json(*(*client)->node().snapshot()) : problem(client.error());
    if (!client.ok()) json["running"] = false;
    add("status.json", "state of the core", dump(json));
  }

  void settings(Expected<std::unique_ptr<CoreClient>>& client) {
    Json json;
    if (client.ok()) {
      using Entries = std::vector<node::SettingEntry>;
      const auto entries = (*client)->ask<Entries>(
          [](node::Node& node, node::Reply<Entries> reply) { return node.query_settings(std::move(reply)); });
      if (entries.ok()) {
        for (const node::SettingEntry& entry : *entries)
          json[entry.name] = {{"value", entry.value}, {"origin", entry.origin}};
        return add("settings.json", "settings and their origin", dump(json));
      }
    }
    const auto text = read_end(context_.files, directory_ + "/settings.toml", config::max_settings_bytes);
    if (!text.ok()) json = problem(text.error());
    add(text.ok() ? "settings.toml" : "settings.json", "settings file", text.ok() ? *text : dump(json));
  }

  void logs() {
    const std::string folder = directory_ + "/logs";
    const auto entries = context_.files.list(folder);
    if (!entries.ok()) return add("logs/none.json", "why there is no log", dump(problem(entries.error())));
    std::size_t count = 0;
    for (const storage::DirectoryEntry& entry : *entries) {
      // The rotated files are left out: the newest lines are the useful ones.
      const bool log = entry.name.size() > 4 && entry.name.compare(entry.name.size() - 4, 4, ".log") == 0;
      if (entry.is_directory || !log || count++ >= diagnostics_log_files) continue;
      const auto text = read_end(context_.files, folder + "/" + entry.name, diagnostics_log_bytes);
      add("logs/" + entry.name, "the last lines of the log", text.ok() ? *text : dump(problem(text.error())));
    }
  }

  void crashes() {
    const std::string folder = directory_ + "/crash";
    std::size_t count = 0;
    for (const platform::CrashRecord& record :
         platform::read_crash_records(folder, read_told_crashes(context_.files, folder))) {
      ++count;
      const Json json = {{"signal", record.signal},
                         {"time", iso_time(record.time)},
                         {"build", record.build},
                         {"pid", record.pid},
                         {"address", fmt::format("{:#x}", record.address)},
                         {"program_counter", fmt::format("{:#x}", record.program_counter)}};
      add(fmt::format("crash/{}.json", count), "crash record", dump(json));
    }
  }

  CommandContext& context_;
  const std::string directory_;
  Redactor redactor_;
  std::vector<DiagnosticsFile> files_;
};

}  // namespace

DiagnosticsBundle gather_diagnostics(CommandContext& context) {
  const auto directory = data_directory_path(context);
  return Gatherer(context, directory.ok() ? *directory : std::string()).gather();
}

}  // namespace neuroshard::app
