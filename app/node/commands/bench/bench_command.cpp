#include "app/node/commands/bench/bench_command.h"

#include <fmt/format.h>
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <filesystem>
#include <memory>
#include <nlohmann/json.hpp>

#include "app/node/command.h"
#include "app/node/commands/bench/bench_row.h"
#include "core/platform/sensor/cpu.h"

namespace neuroshard::app {
namespace {

using nlohmann::ordered_json;

constexpr BenchRow rows[] = {
    {"memory", "memory bandwidth: copying, and the triad a = b + s·c", bench_memory},
    {"tokenizer", "encoding text, one thread", bench_tokenizer},
    {"merge-learning", "learning a vocabulary of 4096 from text, one thread", bench_merge_learning},
    {"safetensors", "writing and reading weight files in the page cache", bench_safetensors},
    {"startup", "starting neuroshardd for --help and wallet show", bench_startup},
    {"gemm", "matrix products in fp32 and bf16: the limit of training", bench_gemm},
    {"nanogpt", "training 0.8 M parameters, 4 layers of width 128", bench_nanogpt},
    {"dense25m", "training 25 M parameters, 8 layers of width 512", bench_dense25m},
    {"training", "training the model of the profile solo", bench_training},
    {"halves", "the backward pass of 4 dense layers in two halves, beside the whole pass", bench_halves},
    {"halves-solo", "the same with the model of the profile solo, ends and experts", bench_halves_of_solo},
    {"moe-layer", "a layer of 8 experts beside the dense layer of the same work", bench_moe_layer},
    {"optimizer", "AdamW and clipping of 25 M parameters", bench_optimizer},
    {"generation", "generating with 144 M parameters, one sequence", bench_generation},
    {"checkpoint", "training the profile solo with and without checkpoints beside it", bench_checkpoint},
};

struct BenchFlags {
  std::vector<std::string> rows;
  double seconds = 10;
  std::uint32_t rounds = 7;
  std::uint32_t threads = 0;
  std::string text;
  std::string scratch;
  std::string precision = "auto";
  bool list = false;
};

double shown_speed(const Speed& speed, const BenchUnit& unit) {
  return speed.median / unit.scale;
}

double reached(const BenchTarget& target, const BenchReport& report) {
  for (const Speed& speed : report.result.contenders) {
    if (speed.name == target.contender)
      return target.ratio ? speed.ratio_median : shown_speed(speed, report.unit);
  }
  return 0;
}

std::string_view verdict(const BenchTarget& target, const BenchReport& report) {
  if (!report.result.steady) return "unknown";
  const double value = reached(target, report);
  return value >= target.goal ? "goal" : value >= target.first ? "first" : "missed";
}

ordered_json speed_json(const Speed& speed, const BenchUnit& unit) {
  return {{"name", speed.name},
          {"unit", unit.name},
          {"median", speed.median / unit.scale},
          {"best", speed.best / unit.scale},
          {"ratio_median", speed.ratio_median},
          {"ratio_best", speed.ratio_best}};
}

ordered_json report_json(const BenchRow& row, const BenchReport& report) {
  ordered_json object = {{"row", row.name},
                         {"yardstick", speed_json(report.result.yardstick, report.yardstick_unit)}};
  ordered_json& contenders = object["contenders"] = ordered_json::array();
  for (const Speed& speed : report.result.contenders) contenders.push_back(speed_json(speed, report.unit));
  object["rounds_kept"] = report.result.kept;
  object["rounds_dropped"] = report.result.dropped;
  object["steady"] = report.result.steady;
  ordered_json& targets = object["targets"] = ordered_json::array();
  for (const BenchTarget& target : report.targets) {
    targets.push_back({{"contender", target.contender},
                       {"unit", target.ratio ? "ratio" : report.unit.name},
                       {"first", target.first},
                       {"goal", target.goal},
                       {"reached", std::string(verdict(target, report))}});
  }
  ordered_json& notes = object["notes"] = ordered_json::object();
  for (const auto& [name, value] : report.notes) notes[name] = value;
  return object;
}

void print_speed(Output& output, const Speed& speed, const BenchUnit& unit, const std::string& ratio) {
  output.line(fmt::format("  {:<18} {:>12.2f} {:>12.2f}  {:<9} {:>9}", speed.name, speed.median / unit.scale,
                          speed.best / unit.scale, unit.name, ratio));
}

void print_report(Output& output, const BenchRow& row, const BenchReport& report) {
  output.line(fmt::format("{}: {}", row.name, row.description));
  output.line(fmt::format("  {:<18} {:>12} {:>12}  {:<9} {:>9}", "", "median", "best", "", "ratio"));
  print_speed(output, report.result.yardstick, report.yardstick_unit, "yardstick");
  for (const Speed& speed : report.result.contenders) {
    print_speed(output, speed, report.unit, fmt::format("{:.4f}", speed.ratio_median));
  }
  output.line(
      fmt::format("  {} rounds kept, {} dropped{}", report.result.kept, report.result.dropped,
                  report.result.steady ? "" : "; inconclusive, because the machine was too unsteady"));
  for (const BenchTarget& target : report.targets) {
    const std::string unit = target.ratio ? "of the yardstick" : report.unit.name;
    output.line(fmt::format("  target for {}: {} {}, later {}: {}", target.contender, target.first, unit,
                            target.goal, verdict(target, report)));
  }
  std::string notes;
  for (const auto& [name, value] : report.notes)
    notes += fmt::format("{}{} {}", notes.empty() ? "" : ", ", name, value);
  if (!notes.empty()) output.line("  " + notes);
  output.line("");
}

void print_list(Output& output) {
  for (const BenchRow& row : bench_rows()) {
    output.line(fmt::format("{:<16} {}", row.name, row.description));
    output.json_line({{"row", row.name}, {"description", row.description}});
  }
}

Expected<std::vector<const BenchRow*>> chosen_rows(const std::vector<std::string>& names) {
  std::vector<const BenchRow*> chosen;
  for (const std::string& name : names) {
    const auto all = bench_rows();
    const auto found =
        std::find_if(all.begin(), all.end(), [&](const BenchRow& row) { return name == row.name; });
    if (found == all.end()) {
      return make_error(ErrorCode::InvalidArgument,
                        fmt::format("row '{}' not found; see neuroshardd bench --list", name));
    }
    chosen.push_back(found);
  }
  if (names.empty()) {
    for (const BenchRow& row : bench_rows()) chosen.push_back(&row);
  }
  return chosen;
}

// A directory of this process below the chosen or the system's directory for temporary files. The destructor
// removes it.
class Scratch {
 public:
  static Expected<std::unique_ptr<Scratch>> make(storage::FileEnv& files, std::string parent) {
    if (parent.empty()) {
      std::error_code failed;
      parent = std::filesystem::temp_directory_path(failed).string();
      if (failed)
        return make_error(ErrorCode::NotFound,
                          "found no directory for temporary files; set one with --scratch");
    }
    const std::string path = fmt::format("{}/neuroshard-bench-{}", parent, getpid());
    NS_RETURN_IF_ERROR(files.create_directories(path));
    return std::make_unique<Scratch>(files, path);
  }
  Scratch(storage::FileEnv& files, std::string path) : files_(files), path_(std::move(path)) {}
  ~Scratch() { (void)files_.remove_tree(path_); }
  const std::string& path() const { return path_; }

 private:
  storage::FileEnv& files_;
  std::string path_;
};

void print_machine(Output& output) {
  const platform::CpuInfo cpu = platform::cpu_info();
  const std::string model = cpu.model.empty() ? "unknown processor" : cpu.model;
  output.line(fmt::format("{}, {} usable, {}\n", model, cpu.usable_cpus, cpu.isa_name()));
  output.json_line(
      {{"machine", {{"cpu", model}, {"usable_cpus", cpu.usable_cpus}, {"isa", cpu.isa_name()}}}});
}

Expected<void> run_bench(const BenchFlags& flags, CommandContext& command) {
  if (flags.list) {
    print_list(command.output);
    return {};
  }
  NS_ASSIGN_OR_RETURN(const auto chosen, chosen_rows(flags.rows));
  NS_ASSIGN_OR_RETURN(const auto scratch, Scratch::make(command.files, flags.scratch));
  BenchContext context{command.clock, command.files,   command.logger, command.stop,   {},
                       flags.text,    scratch->path(), flags.threads,  flags.precision};
  context.rounds.rounds = flags.rounds;
  context.rounds.budget = std::chrono::duration_cast<Duration>(std::chrono::duration<double>(flags.seconds));
  print_machine(command.output);
  for (const BenchRow* row : chosen) {
    const auto report = row->run(context);
    if (report.ok()) {
      print_report(command.output, *row, *report);
      command.output.json_line(report_json(*row, *report));
      continue;
    }
    // A row that can't run here must not hide the others, unless the user named it or the program is to stop.
    if (chosen.size() == 1 || command.stop.cancelled()) return report.error();
    command.output.line(fmt::format("{}: {}\n", row->name, report.error().describe()));
    command.output.json_line({{"row", row->name}, {"error", report.error().describe()}});
    command.exit_code = ExitCode::Failure;
  }
  return {};
}

}  // namespace

Span<const BenchRow> bench_rows() {
  return rows;
}

void add_bench_command(CLI::App& root, CommandContext& context) {
  auto flags = std::make_shared<BenchFlags>();
  CLI::App& bench = add_command(root, "bench", "Measure this machine and this build",
                                {"neuroshardd bench", "neuroshardd bench --rows tokenizer memory --seconds 5",
                                 "neuroshardd bench --rows tokenizer --text ~/book.txt --json"});
  bench.add_option("--rows", flags->rows, "rows to measure (default: all)")->type_name("NAME...");
  bench.add_flag("--list", flags->list, "list the rows");
  bench.add_option("--seconds", flags->seconds, "start no new round of a row after this many seconds")
      ->check(CLI::Range(0.0, 3600.0).description(""))
      ->type_name("X")
      ->capture_default_str();
  bench.add_option("--rounds", flags->rounds, "steady rounds to measure; fewer than 5 are inconclusive")
      ->check(CLI::Range(1u, 1000u).description(""))
      ->type_name("N")
      ->capture_default_str();
  bench.add_option("--threads", flags->threads, "compute threads; 0 = all")
      ->check(CLI::Range(0u, 1024u).description(""))
      ->type_name("N")
      ->capture_default_str();
  bench
      .add_option("--precision", flags->precision,
                  "compute precision: fp32, bf16 or auto (the faster one on this processor)")
      ->check(CLI::IsMember({"fp32", "bf16", "auto"}).description(""))
      ->type_name("NAME")
      ->capture_default_str();
  bench.add_option("--text", flags->text, "text file for the tokenizer (default: generated text)")
      ->type_name("FILE");
  bench.add_option("--scratch", flags->scratch, "directory for temporary files")->type_name("DIR");
  set_body(bench, context, [flags, &context] { return run_bench(*flags, context); });
}

}  // namespace neuroshard::app
