// neuroshardd history export: the series of the training history as files for other programs. A running core writes them
// itself, so nothing that it has not stored yet is missing.
#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <filesystem>
#include <nlohmann/json.hpp>

#include "app/node/commands/core_client.h"
#include "app/node/commands/open_directory.h"
#include "core/history/export.h"
#include "core/node/records.h"

namespace neuroshard::app {
namespace {

struct HistoryFlags {
  std::string format = "csv";
  std::string path;
};

// Reads the database without the directory's lock.
Expected<void> export_stored(history::ExportFormat format, const std::string& path, CommandContext& context) {
  NS_ASSIGN_OR_RETURN(const std::string directory, data_directory_path(context));
  const std::string stored = directory + "/state.db";
  if (!context.files.exists(stored))
    return make_error(ErrorCode::NotFound,
                      fmt::format("{} has no history: nothing was trained there yet", directory));
  NS_ASSIGN_OR_RETURN(storage::Database database,
                      storage::Database::open(stored, {.read_only = true, .create = false}));
  NS_ASSIGN_OR_RETURN(const auto series, history::SeriesStore::open(database));
  const history::SeriesSource source{series->names(),
                                     [&series](const std::string& name, std::int64_t from, std::int64_t to) {
                                       return series->query(name, from, to, history::max_query_buckets);
                                     }};
  NS_RETURN_IF_ERROR(
      history::export_history(context.files, source, format, path, context.clock.wall_now(), context.stop));
  return {};
}

Expected<void> export_history(const HistoryFlags& flags, CommandContext& context) {
  NS_ASSIGN_OR_RETURN(const history::ExportFormat format, history::parse_export_format(flags.format));
  const std::string path = flags.path.empty() ? history::export_file_name(format) : flags.path;
  NS_ASSIGN_OR_RETURN(const auto client, CoreClient::find(context));
  if (client) {
    std::error_code failed;
    const std::string absolute = std::filesystem::absolute(path, failed).string();
    NS_RETURN_IF_ERROR(client->run(
        [&](node::Node& node) { return node.records().export_history(flags.format, absolute); }, "export"));
  } else {
    NS_RETURN_IF_ERROR(export_stored(format, path, context));
  }
  context.output.line(fmt::format("Wrote {}.", path));
  context.output.json_line({{"format", flags.format}, {"path", path}});
  return {};
}

}  // namespace

void add_history_command(CLI::App& root, CommandContext& context) {
  CLI::App& group = add_command(root, "history", "The recorded course of the training",
                                {"neuroshardd history export --format tensorboard --out runs/mine"});
  auto flags = std::make_shared<HistoryFlags>();
  CLI::App& command = add_command(
      group, "export", "Write loss, speed and the other series for other programs",
      {"neuroshardd history export --out history.csv", "neuroshardd history export --format jsonl",
       "neuroshardd history export --format tensorboard --out runs/mine"});
  command
      .add_option("--format", flags->format, "csv (default), jsonl, or tensorboard (a folder of event files)")
      ->check(CLI::IsMember(history::export_format_names()));
  command.add_option("--out", flags->path, "new file or folder (default: history.csv, …)")->type_name("PATH");
  set_body(command, context, [flags, &context] { return export_history(*flags, context); });
}

}  // namespace neuroshard::app
