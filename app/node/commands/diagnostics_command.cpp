// neuroshardd diagnostics: a zip file for a report of a problem, without secrets.
#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <nlohmann/json.hpp>

#include "app/node/commands/diagnostics_bundle.h"
#include "core/storage/zip_writer.h"

namespace neuroshard::app {
namespace {

struct DiagnosticsFlags {
  std::string out;
  bool preview = false;
};

void show(const DiagnosticsBundle& bundle, const DiagnosticsFlags& flags, CommandContext& context) {
  nlohmann::ordered_json json = {
      {"out", flags.preview ? nlohmann::ordered_json() : nlohmann::ordered_json(flags.out)}};
  json["files"] = nlohmann::ordered_json::array();
  for (const DiagnosticsFile& file : bundle.files) {
    nlohmann::ordered_json entry = {{"name", file.name}, {"bytes", file.text.size()}, {"what", file.what}};
    if (flags.preview) entry["text"] = file.text;  // exactly what would be in it
    json["files"].push_back(std::move(entry));
    context.output.line(fmt::format("{:<24} {:>8} bytes  {}", file.name, file.text.size(), file.what));
  }
  json["redacted"] = nlohmann::ordered_json::object();
  std::string taken_out;
  for (const auto& [kind, count] : bundle.redacted) {
    json["redacted"][kind] = count;
    taken_out += fmt::format("{}{} × {}", taken_out.empty() ? "" : ", ", count, kind);
  }
  context.output.json_line(json);
  context.output.line(fmt::format("redacted: {}", taken_out.empty() ? "nothing" : taken_out));
}

Expected<void> diagnostics(const DiagnosticsFlags& flags, CommandContext& context) {
  if (!flags.preview && flags.out.empty()) {
    return make_error(ErrorCode::InvalidArgument, "requires --out FILE, e.g. --out report.zip, or --preview");
  }
  if (!flags.preview && context.files.exists(flags.out))
    return make_error(ErrorCode::AlreadyExists,
                      fmt::format("{} already exists; choose another name", flags.out));
  const DiagnosticsBundle bundle = gather_diagnostics(context);
  if (!flags.preview) {
    std::vector<storage::ZipEntry> entries;
    for (const DiagnosticsFile& file : bundle.files)
      entries.push_back({"neuroshard/" + file.name, file.text});
    NS_ASSIGN_OR_RETURN(const Bytes zip, storage::make_zip(entries, context.clock.wall_now()));
    NS_RETURN_IF_ERROR(storage::write_file_atomic(context.files, flags.out, zip));
  }
  show(bundle, flags, context);
  if (!flags.preview)
    context.output.line(
        fmt::format("Wrote {}. Nothing was sent; review the file before you share it", flags.out));
  return {};
}

}  // namespace

void add_diagnostics_command(CLI::App& root, CommandContext& context) {
  auto flags = std::make_shared<DiagnosticsFlags>();
  CLI::App& command = add_command(
      root, "diagnostics", "Write a zip file for a problem report, without secrets; sends nothing",
      {"neuroshardd diagnostics --preview", "neuroshardd diagnostics --out report.zip"});
  command.add_option("--out", flags->out, "the zip file to write")->type_name("FILE");
  command.add_flag("--preview", flags->preview,
                   "list the contents and how much was redacted, but write nothing (--json: also the texts)");
  set_body(command, context, [flags, &context] { return diagnostics(*flags, context); });
}

}  // namespace neuroshard::app
