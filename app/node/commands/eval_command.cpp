// neuroshardd eval: measures a checkpoint on a text, beside an n-gram baseline, and lists earlier results. It reads the
// checkpoint's files, so it also works beside a running core.
#include <fmt/chrono.h>
#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <cmath>
#include <filesystem>
#include <nlohmann/json.hpp>

#include "app/node/commands/open_directory.h"
#include "app/node/output/progress.h"
#include "core/checkpoint/catalogue.h"
#include "core/crypto/hash.h"
#include "core/engine/checkpoint_model.h"
#include "core/engine/checkpoint_tokenizer.h"
#include "core/evaluation/evaluate.h"
#include "core/evaluation/record.h"
#include "core/platform/file/paths.h"

namespace neuroshard::app {
namespace {

using evaluation::Record;
using evaluation::Side;

struct EvalFlags {
  std::string text;
  std::string which = "latest";
  std::string baseline;  // text of the n-grams; empty = the sample text
  std::uint32_t stride = 0;
  std::size_t questions = 200;
  std::uint64_t seed = 1;
  std::uint32_t threads = 0;
  bool list = false;
};

struct Text {
  std::string name, hash;
  Bytes bytes;
};

double share(std::uint32_t right, std::uint32_t questions) {
  return questions == 0 ? 0.0 : static_cast<double>(right) / questions;
}

nlohmann::ordered_json json_of(const Side& side, const Record& record) {
  nlohmann::ordered_json json = {
      {"perplexity", std::exp(side.loss)}, {"loss", side.loss}, {"bits_per_byte", side.bits_per_byte}};
  if (record.cloze_questions > 0) {
    json["cloze_right"] = side.cloze_right;
    json["cloze_accuracy"] = share(side.cloze_right, record.cloze_questions);
  }
  return json;
}

nlohmann::ordered_json json_of(const Record& r) {
  return {{"at_ms", to_unix_ms(r.at)},
          {"checkpoint", r.checkpoint},
          {"checkpoint_hash", r.checkpoint_hash},
          {"step", r.step},
          {"text", r.text},
          {"text_hash", r.text_hash},
          {"bytes", r.text_bytes},
          {"tokens", r.text_tokens},
          {"window", r.window},
          {"stride", r.stride},
          {"model", json_of(r.model, r)},
          {"ngram", json_of(r.baseline, r)},
          {"ngram_text", r.baseline_text},
          {"ngram_text_hash", r.baseline_text_hash},
          {"cloze_questions", r.cloze_questions},
          {"cloze_choices", r.cloze_choices},
          {"cloze_seed", r.cloze_seed}};
}

std::string cloze_text(const Side& side, const Record& r) {
  return r.cloze_questions == 0 ? "-"
                                : fmt::format("{:.1f} %", 100 * share(side.cloze_right, r.cloze_questions));
}

void show_line(const char* name, const Side& side, const Record& record, CommandContext& context) {
  context.output.line(fmt::format("{:<8}  {:>12.3f}  {:>13.4f}  {:>10}", name, std::exp(side.loss),
                                  side.bits_per_byte, cloze_text(side, record)));
}

// asked: most questions of the cloze task.
void show(const Record& r, std::size_t asked, CommandContext& context) {
  context.output.json_line(json_of(r));
  context.output.line(fmt::format("{} (step {}) on {}: {} bytes, {} tokens", r.checkpoint, r.step, r.text,
                                  r.text_bytes, r.text_tokens));
  context.output.line(
      fmt::format("{:<8}  {:>12}  {:>13}  {:>10}", "", "perplexity", "bits per byte", "cloze"));
  show_line("model", r.model, r, context);
  show_line("n-gram", r.baseline, r, context);
  if (asked == 0) return;
  context.output.note(r.cloze_questions == 0
                          ? std::string("The text has no words for the cloze task.")
                          : fmt::format("Cloze: {} questions, {} choices, chance {:.1f} %. n-grams of {}.",
                                        r.cloze_questions, r.cloze_choices, 100.0 / r.cloze_choices,
                                        r.baseline_text));
}

Expected<std::string> existing_directory(CommandContext& context) {
  NS_ASSIGN_OR_RETURN(std::string path, data_directory_path(context));
  if (context.files.exists(path)) return path;
  return make_error(ErrorCode::NotFound,
                    fmt::format("data directory {} not found; set another one with --data-dir", path));
}

Expected<void> list(CommandContext& context) {
  NS_ASSIGN_OR_RETURN(const std::string directory, existing_directory(context));
  NS_ASSIGN_OR_RETURN(const evaluation::Records found, evaluation::read_records(context.files, directory));
  if (found.newest.empty()) {
    context.output.note("There are no evaluations yet: neuroshardd eval FILE");
    return {};
  }
  context.output.line(fmt::format("{:<16}  {:>8}  {:<10}  {:<20}  {:>8}  {:>8}  {:>8}  {:>8}", "when (UTC)",
                                  "step", "checkpoint", "text", "bits/B", "n-gram", "cloze", "n-gram"));
  for (const Record& r : found.newest) {
    context.output.json_line(json_of(r));
    const auto seconds = std::chrono::floor<std::chrono::seconds>(r.at.time_since_epoch()).count();
    context.output.line(
        fmt::format("{:%Y-%m-%d %H:%M}  {:>8}  {:<10}  {:<20}  {:>8.4f}  {:>8.4f}  {:>8}  {:>8}",
                    fmt::gmtime(static_cast<std::time_t>(seconds)), r.step, r.checkpoint_hash.substr(0, 8),
                    fmt::format("{:.11} {:.8}", r.text, r.text_hash), r.model.bits_per_byte,
                    r.baseline.bits_per_byte, cloze_text(r.model, r), cloze_text(r.baseline, r)));
  }
  if (found.unreadable > 0)
    context.output.note(
        fmt::format("{} line(s) of {} can't be read.", found.unreadable, evaluation::record_file_name));
  return {};
}

Expected<Text> read_text(const std::string& path, CommandContext& context) {
  Text text;
  NS_ASSIGN_OR_RETURN(text.bytes, storage::read_file(context.files, path, evaluation::max_text_bytes));
  text.name = std::filesystem::path(path).filename().string();
  text.hash = to_hex(crypto::sha256(text.bytes));
  return text;
}

// The text that ships beside the program.
Expected<std::string> sample_text_path() {
  NS_ASSIGN_OR_RETURN(const std::string program, platform::executable_path());
  return storage::parent_of(storage::parent_of(program)) + "/share/neuroshardd/sample-text/richard-iii.txt";
}

Expected<evaluation::NGram> learn_baseline(const Text& text, data::Encoder& encoder) {
  const std::vector<data::TokenId> stream = evaluation::stream_of(encoder, text.bytes);
  return evaluation::NGram::learn({stream.data(), stream.size()}, encoder.tokenizer().vocab_size());
}

Record make_record(const evaluation::Result& result, const evaluation::Options& options,
                   const checkpoint::Entry& entry, const Text& text, const Text& baseline) {
  const auto side = [&](const evaluation::Score& score) {
    return Side{result.loss(score), result.bits_per_byte(score), score.cloze_right};
  };
  Record record;
  record.checkpoint = entry.name;
  record.checkpoint_hash = to_hex(entry.manifest_hash);
  record.step = entry.manifest.step;
  record.text = text.name;
  record.text_hash = text.hash;
  record.text_bytes = result.bytes;
  record.text_tokens = result.tokens;
  record.window = options.window;
  record.stride = options.stride;
  record.model = side(result.model);
  record.baseline = side(result.baseline);
  record.baseline_text = baseline.name;
  record.baseline_text_hash = baseline.hash;
  record.cloze_questions = result.questions;
  record.cloze_choices = evaluation::cloze_choices;
  record.cloze_seed = options.seed;
  return record;
}

Expected<void> run_eval(const EvalFlags& flags, CommandContext& context) {
  if (flags.list) return list(context);
  if (flags.text.empty())
    return make_error(ErrorCode::InvalidArgument,
                      "name a text file to measure on, or --list earlier results");
  NS_ASSIGN_OR_RETURN(const std::string directory, existing_directory(context));
  NS_ASSIGN_OR_RETURN(const Text text, read_text(flags.text, context));
  std::string baseline_path = flags.baseline;
  if (baseline_path.empty()) {
    NS_ASSIGN_OR_RETURN(baseline_path, sample_text_path());
  }
  NS_ASSIGN_OR_RETURN(const Text baseline, read_text(baseline_path, context));
  const checkpoint::Catalogue catalogue(context.files, directory + "/checkpoints");
  NS_ASSIGN_OR_RETURN(const checkpoint::Entry entry, catalogue.find(flags.which));
  NS_ASSIGN_OR_RETURN(data::Tokenizer tokenizer,
                      engine::checkpoint_tokenizer(context.files, entry, directory + "/data"));
  const std::string tokenizer_hash = to_hex(tokenizer.hash());
  data::Encoder encoder(std::make_shared<const data::Tokenizer>(std::move(tokenizer)));
  NS_ASSIGN_OR_RETURN(const evaluation::NGram ngram, learn_baseline(baseline, encoder));

  ProgressLine progress(context.output, context.clock, "load");
  const auto show_progress = [&](std::uint64_t done, std::uint64_t total) { progress.update(done, total); };
  NS_ASSIGN_OR_RETURN(
      const compute::StagePtr stage,
      engine::open_checkpoint_model(context.files, context.logger, entry,
                                    {{.threads = flags.threads}, show_progress, context.stop}));
  evaluation::Options options;
  options.window = entry.manifest.architecture.sequence;
  options.stride = flags.stride == 0 ? std::max(1u, options.window / 2) : flags.stride;
  options.questions = flags.questions;
  options.seed = flags.seed;
  progress.clear();
  progress.set_label("evaluate");
  NS_ASSIGN_OR_RETURN(
      const evaluation::Result result,
      evaluation::evaluate(*stage, ngram, encoder, text.bytes, options, show_progress, context.stop));
  progress.clear();
  Record record = make_record(result, options, entry, text, baseline);
  record.at = context.clock.wall_now();
  record.tokenizer_hash = tokenizer_hash;
  show(record, flags.questions, context);
  return evaluation::append_record(context.files, directory, record);
}

}  // namespace

void add_eval_command(CLI::App& root, CommandContext& context) {
  auto flags = std::make_shared<EvalFlags>();
  CLI::App& command = add_command(
      root, "eval", "Measure a checkpoint on a text: perplexity, bits per byte, a cloze task, beside n-grams",
      {"neuroshardd eval held-out.txt",
       "neuroshardd eval held-out.txt --checkpoint 120 --baseline training.txt",
       "neuroshardd eval --list --json"});
  command.add_option("text", flags->text, "text file that the model was not trained on; any bytes")
      ->type_name("FILE");
  command
      .add_option("--checkpoint", flags->which,
                  "a name or its beginning, a step, or \"latest\" (default: the current checkpoint)")
      ->type_name("CHECKPOINT");
  command
      .add_option("--baseline", flags->baseline,
                  "text that the n-grams are learned from (default: the sample text)")
      ->type_name("FILE");
  command
      .add_option("--stride", flags->stride, "tokens from one window to the next (default: half of a window)")
      ->type_name("N");
  command.add_option("--cloze", flags->questions, "most questions of the cloze task; 0 = none (default 200)")
      ->type_name("N")
      ->check(CLI::Range(0, 10'000));
  command.add_option("--seed", flags->seed, "of the cloze task (default 1)")->type_name("N");
  command.add_option("--threads", flags->threads, "threads to compute with; 0 = all (default)")
      ->type_name("N");
  command.add_flag("--list", flags->list, "show the results so far, newest first");
  set_body(command, context, [flags, &context] { return run_eval(*flags, context); });
}

}  // namespace neuroshard::app
