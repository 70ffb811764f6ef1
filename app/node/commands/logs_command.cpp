// neuroshardd logs: the records of the running core, or of a directory without one.
#include <fmt/chrono.h>
#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <deque>
#include <nlohmann/json.hpp>

#include "app/node/commands/core_client.h"
#include "app/node/commands/open_directory.h"
#include "core/history/event_log.h"
#include "core/storage/database.h"

namespace neuroshard::app {
namespace {

constexpr Duration look = std::chrono::milliseconds(500);
constexpr std::int32_t known_state_version = 1;  // of state.db: history/schema.h

struct LogsFlags {
  std::size_t lines = 50;
  bool follow = false;
  std::string level = "info";
};

// Requests a page of records after a cursor.
using Source = std::function<Expected<node::LogPage>(const node::LogQuery&)>;

LogLevel level_of(const std::string& word) {
  if (word == "debug") return LogLevel::Debug;
  if (word == "warning") return LogLevel::Warning;
  return word == "error" ? LogLevel::Error : LogLevel::Info;
}

void show(const node::LogEntry& entry, CommandContext& context) {
  context.output.json_line({{"sequence", entry.sequence},
                            {"time_ms", to_unix_ms(entry.at)},
                            {"level", std::string(to_string(entry.record.level))},
                            {"category", entry.record.category},
                            {"message", entry.record.message}});
  const auto seconds =
      std::chrono::system_clock::to_time_t(std::chrono::floor<std::chrono::seconds>(entry.at));
  context.output.line(fmt::format("{:%Y-%m-%d %H:%M:%S} {:<7} {:<10} {}", fmt::localtime(seconds),
                                  to_string(entry.record.level), entry.record.category,
                                  entry.record.message));
}

void show_dropped(std::uint64_t dropped, CommandContext& context) {
  if (dropped == 0) return;
  context.output.json_line({{"dropped", dropped}});
  context.output.line(fmt::format("… {} older records were deleted", dropped));
}

// Prints the last records and returns the cursor after them.
Expected<std::uint64_t> show_last(const LogsFlags& flags, const Source& source, CommandContext& context) {
  node::LogQuery query{0, node::max_page, level_of(flags.level)};
  std::deque<node::LogEntry> last;
  while (true) {
    NS_ASSIGN_OR_RETURN(node::LogPage page, source(query));
    for (node::LogEntry& entry : page.entries) last.push_back(std::move(entry));
    while (last.size() > flags.lines) last.pop_front();
    query.after = page.next;
    if (!page.more) break;
  }
  for (const node::LogEntry& entry : last) show(entry, context);
  return query.after;
}

Expected<void> logs_of_core(const LogsFlags& flags, CoreClient& client, CommandContext& context) {
  const Source source = [&client](const node::LogQuery& query) {
    return client.ask<node::LogPage>([&query](node::Node& node, node::Reply<node::LogPage> reply) {
      return node.query_logs(query, std::move(reply));
    });
  };
  NS_ASSIGN_OR_RETURN(std::uint64_t after, show_last(flags, source, context));
  while (flags.follow && context.output.writable()) {
    if (client.node().link().state != control::LinkState::Connected) {
      context.output.note("the core has stopped");
      return {};
    }
    auto page = source({after, node::max_page, level_of(flags.level)});
    if (!page.ok()) {
      if (context.stop.cancelled() || page.error().code == ErrorCode::Unavailable) return {};
      return page.error();
    }
    show_dropped(page->dropped, context);
    for (const node::LogEntry& entry : page->entries) show(entry, context);
    after = page->next;
    if (!page->more && context.stop_signal->wait_for(look)) return {};
  }
  return {};
}

// Only reads, without the directory's lock and keys, so that it disturbs no process that has them or is about
// to take them.
Expected<void> logs_of_directory(const LogsFlags& flags, CommandContext& context) {
  NS_ASSIGN_OR_RETURN(const std::string path, data_directory_path(context));
  if (!context.files.exists(path + "/FORMAT")) {
    return make_error(ErrorCode::NotFound, fmt::format("data directory {} not found", path));
  }
  const std::string file = path + "/state.db";
  if (!context.files.exists(file)) return {};  // nothing has happened yet
  storage::DatabaseOptions options;
  options.read_only = true;
  NS_ASSIGN_OR_RETURN(storage::Database database, storage::Database::open(file, options));
  NS_ASSIGN_OR_RETURN(const std::int32_t version, database.user_version());
  if (version == 0) return {};
  if (version > known_state_version) {
    return make_error(
        ErrorCode::Unsupported,
        fmt::format("{} was written by a newer neuroshardd; use that version to read it", file));
  }
  history::EventLog log(database, context.clock);
  const Source source = [&log](const node::LogQuery& query) -> Expected<node::LogPage> {
    NS_ASSIGN_OR_RETURN(const auto events, log.after(static_cast<std::int64_t>(query.after),
                                                     static_cast<std::uint32_t>(query.limit), query.least));
    node::LogPage page;
    page.next = static_cast<std::uint64_t>(events.next);
    page.more = events.more;
    for (const history::Event& event : events.events) {
      page.entries.push_back({static_cast<std::uint64_t>(event.sequence),
                              WallTime(std::chrono::milliseconds(event.time_ms)),
                              {event.level, event.category, event.text}});
    }
    return page;
  };
  NS_RETURN_IF_ERROR(show_last(flags, source, context));
  return {};
}

Expected<void> logs(const LogsFlags& flags, CommandContext& context) {
  auto client = CoreClient::attach(context);
  if (client.ok()) return logs_of_core(flags, **client, context);
  const ErrorCode code = client.error().code;
  // Busy: a program without a control service, such as train, has the directory.
  const bool readable = code == ErrorCode::Unavailable || code == ErrorCode::Busy;
  if (!readable || flags.follow || !context.control_file.empty()) return std::move(client).error();
  return logs_of_directory(flags, context);
}

}  // namespace

void add_logs_command(CLI::App& root, CommandContext& context) {
  auto flags = std::make_shared<LogsFlags>();
  CLI::App& command =
      add_command(root, "logs", "Show the records of a node: checkpoints, data, warnings, errors",
                  {"neuroshardd logs", "neuroshardd logs --follow --level warning"});
  command.add_option("--lines", flags->lines, "number of recent records to show first (default 50)")
      ->type_name("N");
  command.add_flag("--follow", flags->follow, "show new records until Ctrl-C or until the core stops");
  command.add_option("--level", flags->level, "minimum level: debug, info, warning, error")
      ->type_name("LEVEL")
      ->check(CLI::IsMember({"debug", "info", "warning", "error"}));
  set_body(
      command, context, [flags, &context] { return logs(*flags, context); }, WorksWith::AnyComputer);
}

}  // namespace neuroshard::app
