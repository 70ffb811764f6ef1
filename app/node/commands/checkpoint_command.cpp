// neuroshardd checkpoint list | verify | export | compare: the commands that only read. They also work beside
// a running node. The commands that change something are in checkpoint_change_command.cpp.
#include "app/node/commands/checkpoint_command.h"

#include <fmt/chrono.h>
#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <nlohmann/json.hpp>
#include <optional>

#include "app/node/command.h"
#include "app/node/commands/core_client.h"
#include "app/node/commands/open_directory.h"
#include "app/node/output/progress.h"
#include "core/checkpoint/catalogue.h"
#include "core/checkpoint/compare.h"
#include "core/checkpoint/loader.h"
#include "core/engine/checkpoint_tokenizer.h"
#include "core/export/model_export.h"

namespace neuroshard::app {
namespace {

using checkpoint::Catalogue;
using checkpoint::Entry;

struct CheckpointFlags {
  std::string which;  // name, its beginning, a step, or "latest"
  std::string other;  // the second checkpoint of a comparison
  std::string path;   // --out
  std::string format = "safetensors";
  std::string type;  // of the exported weights; "" = f32
  bool all = false;
  bool force = false;
};
using Flags = std::shared_ptr<CheckpointFlags>;

std::string time_text(WallTime time) {
  // Only years 0 to 9999: a signed manifest may hold any number.
  const auto seconds = std::chrono::floor<std::chrono::seconds>(time.time_since_epoch()).count();
  if (seconds < -62'167'219'200 || seconds > 253'402'300'799) return "?";
  return fmt::format("{:%Y-%m-%d %H:%M:%S}", fmt::gmtime(static_cast<std::time_t>(seconds)));
}

std::string loss_text(const std::optional<double>& loss) {
  return loss ? fmt::format("{:.4f}", *loss) : "-";
}

nlohmann::ordered_json to_json(const Entry& entry, bool current) {
  const checkpoint::Manifest& m = entry.manifest;
  nlohmann::ordered_json json = {{"name", entry.name},           {"path", entry.path},
                                 {"complete", entry.complete()}, {"current", current},
                                 {"chosen", entry.chosen},       {"pinned", entry.pinned},
                                 {"bytes", entry.bytes}};
  if (!entry.complete()) {
    json["damage"] = entry.damage;
    return json;
  }
  json.update({{"step", m.step},
               {"tokens", m.tokens_seen},
               {"saved_at_ms", m.saved_at.time_since_epoch().count()},
               {"wallet", m.wallet},
               {"instance", to_hex(m.instance)},
               {"network_id", to_hex(m.network_id)},
               {"parent", m.parent}});
  if (m.losses.training) json["loss"] = *m.losses.training;
  if (m.losses.held_out) json["val_loss"] = *m.losses.held_out;
  if (!m.origin.empty()) json["origin"] = m.origin;
  return json;
}

std::string marks_of(const Entry& entry, bool current) {
  std::string marks;
  const auto add = [&](const char* mark) { marks += (marks.empty() ? "" : ", ") + std::string(mark); };
  if (current) add("continues here");
  if (entry.pinned) add("pinned");
  if (!entry.manifest.origin.empty()) add("imported");
  if (!entry.complete()) marks += (marks.empty() ? "" : ", ") + ("damaged: " + entry.damage);
  return marks;
}

// Reads the checkpoints of the data directory without a lock.
Expected<Catalogue> read_only_catalogue(CommandContext& context) {
  NS_ASSIGN_OR_RETURN(const std::string path, data_directory_path(context));
  if (!context.files.exists(path)) {
    return make_error(ErrorCode::NotFound, fmt::format("data directory {} not found; set another one with "
                                                       "--data-dir, or create one: neuroshardd train --help",
                                                       path));
  }
  return Catalogue(context.files, path + "/checkpoints");
}

Expected<void> list_checkpoints(CommandContext& context) {
  NS_ASSIGN_OR_RETURN(const Catalogue catalogue, read_only_catalogue(context));
  NS_ASSIGN_OR_RETURN(const std::vector<Entry> entries, catalogue.list());
  NS_ASSIGN_OR_RETURN(const std::optional<Entry> current, catalogue.current());
  if (entries.empty()) {
    context.output.note("There are no checkpoints yet; training creates them: neuroshardd train --help");
    return {};
  }
  context.output.line(fmt::format("{:<19}  {:<19}  {:>9}  {:>8}  {:>8}  {:>10}", "checkpoint", "saved (UTC)",
                                  "tokens", "loss", "held out", "size"));
  for (const Entry& entry : entries) {
    const bool is_current = current && entry.name == current->name;
    const checkpoint::Manifest& m = entry.manifest;
    context.output.json_line(to_json(entry, is_current));
    context.output.line(fmt::format("{:<19}  {:<19}  {:>9}  {:>8}  {:>8}  {:>10}  {}", entry.name,
                                    entry.complete() ? time_text(m.saved_at) : "-", m.tokens_seen,
                                    loss_text(m.losses.training), loss_text(m.losses.held_out),
                                    format_bytes(entry.bytes), marks_of(entry, is_current)));
  }
  return {};
}

// A running core remembers the result of its own verification, so it does the work if there is one.
Expected<std::string> trouble_of(const Entry& entry, CoreClient* client, CommandContext& context) {
  if (client != nullptr) {
    NS_ASSIGN_OR_RETURN(
        const node::CommandResult outcome,
        client->run([&](node::Node& node) { return node.verify_checkpoint(entry.name); }, entry.name));
    const auto* result = std::get_if<node::VerifyResult>(&outcome);
    if (result == nullptr) return make_error(ErrorCode::Internal, "the core returned no result");
    return result->problem;
  }
  ProgressLine progress(context.output, context.clock, entry.name);
  const Expected<void> result = checkpoint::verify(
      context.files, entry, [&](std::uint64_t done, std::uint64_t total) { progress.update(done, total); },
      context.stop);
  if (!result.ok() && result.error().code == ErrorCode::Cancelled) return result.error();
  return result.ok() ? std::string() : result.error().describe();
}

Expected<void> verify_checkpoints(const CheckpointFlags& flags, CommandContext& context) {
  NS_ASSIGN_OR_RETURN(const auto client, CoreClient::find(context));
  NS_ASSIGN_OR_RETURN(const Catalogue catalogue, read_only_catalogue(context));
  std::vector<Entry> entries;
  if (flags.all) {
    NS_ASSIGN_OR_RETURN(entries, catalogue.list());
  } else {
    NS_ASSIGN_OR_RETURN(Entry entry, catalogue.find(flags.which));
    entries.push_back(std::move(entry));
  }
  for (const Entry& entry : entries) {
    if (context.stop.cancelled()) return make_error(ErrorCode::Cancelled, "stopped before the end");
    NS_ASSIGN_OR_RETURN(const std::string trouble, trouble_of(entry, client.get(), context));
    const bool good = trouble.empty();
    if (!good) context.exit_code = ExitCode::Failure;
    context.output.line(good ? fmt::format("{}  good", entry.name)
                             : fmt::format("{}  DAMAGED: {}", entry.name, trouble));
    nlohmann::ordered_json json = {{"name", entry.name}, {"good", good}};
    if (!good) json["damage"] = trouble;
    context.output.json_line(json);
  }
  return {};
}

// Reads beside a running core, without it. The tokenizer is of the same data directory.
Expected<std::uint64_t> write_export(const exporting::ExportRequest& request, CommandContext& context) {
  exporting::ExportRequest complete = request;
  std::optional<data::Tokenizer> tokenizer;
  if (exporting::needs_tokenizer(request.format.format)) {
    NS_ASSIGN_OR_RETURN(const std::string directory, data_directory_path(context));
    NS_ASSIGN_OR_RETURN(tokenizer,
                        engine::checkpoint_tokenizer(context.files, request.entry, directory + "/data"));
    complete.tokenizer = &*tokenizer;
  }
  ProgressLine progress(context.output, context.clock, "export");
  return exporting::export_model(
      context.files, complete, [&](std::uint64_t done, std::uint64_t total) { progress.update(done, total); },
      context.stop);
}

Expected<void> export_checkpoint(const CheckpointFlags& flags, CommandContext& context) {
  NS_ASSIGN_OR_RETURN(const exporting::ExportFormat format,
                      exporting::parse_export_format(flags.format, flags.type));
  NS_ASSIGN_OR_RETURN(const Catalogue catalogue, read_only_catalogue(context));
  NS_ASSIGN_OR_RETURN(const Entry entry, catalogue.find(flags.which));
  const bool folder = exporting::makes_folder(format.format);
  const std::string path = !flags.path.empty() ? flags.path
                           : format.format == exporting::Format::Checkpoint
                               ? entry.name
                               : export_name(entry.manifest, format);
  if ((!flags.force || folder) && context.files.exists(path)) {
    return make_error(ErrorCode::AlreadyExists, fmt::format("{} already exists; choose another --out{}", path,
                                                            folder ? "" : ", or replace it with --force"));
  }
  NS_ASSIGN_OR_RETURN(const std::uint64_t bytes, write_export({entry, format, nullptr, path}, context));
  context.output.line(fmt::format("Wrote {} ({}) from {}.", path, format_bytes(bytes), entry.name));
  context.output.json_line({{"name", entry.name},
                            {"format", flags.format},
                            {"type", exporting::to_string(format.type)},
                            {"file", path},
                            {"bytes", bytes}});
  return {};
}

Expected<void> compare_checkpoints(const CheckpointFlags& flags, CommandContext& context) {
  NS_ASSIGN_OR_RETURN(const Catalogue catalogue, read_only_catalogue(context));
  NS_ASSIGN_OR_RETURN(const Entry first, catalogue.find(flags.which));
  NS_ASSIGN_OR_RETURN(const Entry second, catalogue.find(flags.other));
  ProgressLine progress(context.output, context.clock, "compare");
  NS_ASSIGN_OR_RETURN(
      const checkpoint::Comparison result,
      checkpoint::compare(
          context.files, first, second,
          [&](std::uint64_t done, std::uint64_t total) { progress.update(done, total); }, context.stop));
  progress.clear();
  const auto json_of = [](const checkpoint::WeightDistance& d) {
    return nlohmann::ordered_json{{"distance", d.distance}, {"relative", d.relative}, {"cosine", d.cosine}};
  };
  nlohmann::ordered_json json = {
      {"first", first.name}, {"second", second.name}, {"all", json_of(result.all)}};
  context.output.line(fmt::format("{}: loss {}, held out {}", first.name,
                                  loss_text(first.manifest.losses.training),
                                  loss_text(first.manifest.losses.held_out)));
  context.output.line(fmt::format("{}: loss {}, held out {}", second.name,
                                  loss_text(second.manifest.losses.training),
                                  loss_text(second.manifest.losses.held_out)));
  context.output.line(
      fmt::format("{:<12}  {:>12}  {:>10}  {:>10}", "slot", "distance", "relative", "cosine"));
  const auto line = [&](const std::string& name, const checkpoint::WeightDistance& d) {
    context.output.line(
        fmt::format("{:<12}  {:>12.6g}  {:>10.4g}  {:>10.6f}", name, d.distance, d.relative, d.cosine));
  };
  for (const checkpoint::SlotComparison& slot : result.slots) {
    const std::string name = compute::to_string(slot.slot);
    line(name, slot.distance);
    nlohmann::ordered_json entry = {{"slot", name}};
    entry.update(json_of(slot.distance));
    json["slots"].push_back(std::move(entry));
  }
  line("all", result.all);
  context.output.json_line(json);
  return {};
}

CLI::App& add_one(CLI::App& group, CommandContext& context, const char* name, const char* help,
                  std::vector<std::string> examples, const Flags& flags,
                  Expected<void> (*body)(const CheckpointFlags&, CommandContext&)) {
  CLI::App& command = add_command(group, name, help, std::move(examples));
  set_body(command, context, [flags, &context, body] { return body(*flags, context); });
  return command;
}

void add_which(CLI::App& command, const Flags& flags, bool required) {
  if (!required) flags->which = "latest";
  CLI::Option* option =
      command.add_option("checkpoint", flags->which, "a name or its beginning, a step, or \"latest\"");
  option->type_name("CHECKPOINT");
  if (required) option->required();
}

void add_sharing(CLI::App& group, CommandContext& context) {
  auto exported = std::make_shared<CheckpointFlags>();
  CLI::App& out = add_one(group, context, "export",
                          "Write the model for other programs, or the whole checkpoint for another node",
                          {"neuroshardd checkpoint export --out model.safetensors",
                           "neuroshardd checkpoint export --format gguf --type q8_0 --out model.gguf",
                           "neuroshardd checkpoint export 120 --format huggingface --json"},
                          exported, export_checkpoint);
  add_which(out, exported, false);
  out.add_option("--out", exported->path,
                 "file or folder to write (default: named after wallet, node and step)")
      ->type_name("PATH");
  out.add_option("--format", exported->format,
                 "safetensors (weights only, default), checkpoint (a folder for another node), huggingface "
                 "(a folder) or "
                 "gguf (a file for llama.cpp)")
      ->check(CLI::IsMember(exporting::export_format_names()));
  out.add_option("--type", exported->type,
                 "how weights are stored: f32 (default); f16, bf16 (huggingface, gguf); q8_0 (gguf)")
      ->check(CLI::IsMember({"f32", "f16", "bf16", "q8_0"}));
  out.add_flag("--force", exported->force, "replace an existing file");

  auto compared = std::make_shared<CheckpointFlags>();
  CLI::App& compare = add_one(group, context, "compare",
                              "Measure how far the weights of two checkpoints differ, layer by layer",
                              {"neuroshardd checkpoint compare 120 latest"}, compared, compare_checkpoints);
  add_which(compare, compared, true);
  compare.add_option("other", compared->other, "the second checkpoint, named in the same way")
      ->type_name("CHECKPOINT")
      ->required();
}

}  // namespace

void add_checkpoint_command(CLI::App& root, CommandContext& context) {
  CLI::App& group =
      add_command(root, "checkpoint", "Saved states of training: list, verify, restore, keep, export",
                  {"neuroshardd checkpoint list"});
  CLI::App& list = add_command(group, "list", "Show all checkpoints, newest first",
                               {"neuroshardd checkpoint list", "neuroshardd checkpoint list --json"});
  set_body(list, context, [&context] { return list_checkpoints(context); });

  auto verified = std::make_shared<CheckpointFlags>();
  CLI::App& verify = add_one(
      group, context, "verify", "Read every byte and check signature, hashes and format",
      {"neuroshardd checkpoint verify", "neuroshardd checkpoint verify --all"}, verified, verify_checkpoints);
  add_which(verify, verified, false);
  verify.add_flag("--all", verified->all, "verify every checkpoint");

  add_checkpoint_changes(group, context);
  add_sharing(group, context);
}

}  // namespace neuroshard::app
