// neuroshardd generate: lets the trained model continue a text.
#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <nlohmann/json.hpp>

#include "app/node/commands/core_client.h"
#include "app/node/commands/text_session.h"
#include "core/engine/generator.h"
#include "core/platform/process/terminal.h"

namespace neuroshard::app {
namespace {

struct GenerateFlags {
  engine::GenerateOptions options;
  std::string checkpoint;
  bool stream = false;
  std::vector<std::pair<std::int32_t, float>> biases;
  std::optional<std::uint64_t> seed;
  std::shared_ptr<SettingFlags> settings = std::make_shared<SettingFlags>();
};

std::uint64_t random_seed(crypto::Entropy& entropy) {
  std::array<std::uint8_t, 4> bytes{};  // short enough to type again
  entropy.fill(bytes);
  return load_le<std::uint32_t>(bytes.data());
}

void report(const engine::Generation& result, const engine::SessionInfo& info, const GenerateFlags& flags,
            CommandContext& context) {
  const double rate = result.seconds > 0 ? result.tokens / result.seconds : 0;
  context.output.json_line({{"prompt", flags.options.prompt},
                            {"text", result.text},
                            {"tokens", result.tokens},
                            {"prompt_tokens", result.prompt_tokens},
                            {"finish", result.ended     ? "end"
                                       : result.at_stop ? "stop sequence"
                                       : result.stopped ? "stopped"
                                                        : "length"},
                            {"seed", *flags.seed},
                            {"tokens_per_s", rate},
                            {"step", info.step},
                            {"checkpoint", info.restored_from}});
  context.output.note(fmt::format("[{} tokens, {:.1f} tokens/s, seed {}, after step {}]", result.tokens, rate,
                                  *flags.seed, info.step));
}

// Hands text from a thread of the node to the command's own thread.
struct Inbox {
  std::mutex mutex;
  std::string waiting, all;
};

// Generates with the model of the core that runs on the directory, beside its training.
Expected<void> generate_in_core(CoreClient& client, const GenerateFlags& flags, CommandContext& context) {
  if (!flags.settings->given.empty()) {
    return make_error(ErrorCode::InvalidArgument,
                      "a running node generates with its own settings: remove the flags of settings, or stop "
                      "the node first");
  }
  node::GenerateRequest request;
  request.prompt = flags.options.prompt;
  request.max_tokens = flags.options.max_tokens;
  request.temperature = static_cast<double>(flags.options.sampling.temperature);
  request.top_k = flags.options.sampling.top_k;
  request.top_p = static_cast<double>(flags.options.sampling.top_p);
  request.min_p = static_cast<double>(flags.options.sampling.min_p);
  request.repetition_penalty = static_cast<double>(flags.options.sampling.repetition_penalty);
  request.stop = flags.options.stop;
  request.checkpoint = flags.checkpoint;
  for (const compute::LogitBias& entry : flags.options.sampling.logit_bias)
    request.logit_bias.push_back({static_cast<std::uint32_t>(entry.token), static_cast<double>(entry.bias)});
  request.seed = node::fixed_seed(*flags.seed);
  Output& output = context.output;
  const bool stream = flags.stream || output.live();
  const auto inbox = std::make_shared<Inbox>();
  const auto show = [&output, &inbox, stream] {
    std::string piece;
    {
      const std::lock_guard lock(inbox->mutex);
      piece.swap(inbox->waiting);
    }
    if (piece.empty()) return;
    inbox->all += piece;
    if (stream && output.json()) output.json_line({{"piece", piece}});
    if (stream && !output.json()) output.raw(piece);
  };
  if (stream && !output.json()) output.raw(request.prompt);
  NS_ASSIGN_OR_RETURN(const node::CommandResult outcome,
                      client.run(
                          [&](node::Node& node) {
                            return node.generate(request, [inbox](const node::TextPiece& piece) {
                              const std::lock_guard lock(inbox->mutex);
                              inbox->waiting += piece.text;
                            });
                          },
                          "generate", show));
  const auto* written = std::get_if<node::GenerateResult>(&outcome);
  if (written == nullptr) return make_error(ErrorCode::Internal, "the core returned no result");
  if (!output.json()) output.raw(stream ? std::string("\n") : request.prompt + inbox->all + "\n");
  const double rate = written->seconds > 0 ? written->tokens / written->seconds : 0;
  output.json_line({{"prompt", request.prompt},
                    {"text", inbox->all},
                    {"tokens", written->tokens},
                    {"prompt_tokens", written->prompt_tokens},
                    {"finish", written->stopped_by == "end of text" ? "end" : written->stopped_by},
                    {"seed", *flags.seed},
                    {"tokens_per_s", rate},
                    {"step", written->step}});
  const bool parts = client.node().snapshot()->rounds.part.has_value();
  output.note(fmt::format("[{} tokens, {:.1f} tokens/s, seed {}, after step {}, by {}]", written->tokens,
                          rate, *flags.seed, written->step,
                          parts ? "the nodes that hold the parts of the model" : "the running node"));
  return {};
}

Expected<void> run_generate(GenerateFlags flags, CommandContext& context) {
  if (flags.options.prompt == "-") {
    NS_ASSIGN_OR_RETURN(flags.options.prompt,
                        platform::read_standard_input(engine::max_prompt_bytes, context.stop));
  }
  for (const auto& [token, bias] : flags.biases) flags.options.sampling.logit_bias.push_back({token, bias});
  NS_RETURN_IF_ERROR(engine::check(flags.options));
  if (!flags.seed) flags.seed = random_seed(context.entropy);
  NS_ASSIGN_OR_RETURN(const auto client, CoreClient::find(context));
  if (client) return generate_in_core(*client, flags, context);
  NS_ASSIGN_OR_RETURN(const TextSession model, open_text_session(context, *flags.settings, flags.checkpoint));
  flags.options.seed = node::fixed_seed(*flags.seed);  // as a running node does
  flags.options.cancel = context.stop;
  Output& output = context.output;
  const bool stream = flags.stream || output.live();
  if (stream && output.json()) {
    flags.options.on_piece = [&output](const engine::WrittenPiece& piece) {
      output.json_line({{"piece", std::string(piece.text)}});
    };
  } else if (stream) {
    output.raw(flags.options.prompt);
    flags.options.on_piece = [&output](const engine::WrittenPiece& piece) { output.raw(piece.text); };
  }
  NS_ASSIGN_OR_RETURN(const engine::Generation result,
                      engine::generate(*model.session, context.clock, flags.options));
  if (!output.json()) output.raw(stream ? std::string("\n") : flags.options.prompt + result.text + "\n");
  report(result, model.info, flags, context);
  if (result.stopped) context.exit_code = ExitCode::Interrupted;
  return {};
}

}  // namespace

void add_generate_command(CLI::App& root, CommandContext& context) {
  auto flags = std::make_shared<GenerateFlags>();
  CLI::App& command =
      add_command(root, "generate", "Continue a text with the trained model",
                  {"neuroshardd generate --prompt \"Once upon a time\"",
                   "neuroshardd generate --data-dir ./d --prompt \"The\" --max-tokens 200 --seed 7",
                   "neuroshardd generate --prompt - --temperature 0 --json < question.txt"});
  command.add_option("--prompt", flags->options.prompt, "text to continue; - reads it from standard input")
      ->type_name("TEXT");
  command
      .add_option("--max-tokens", flags->options.max_tokens,
                  "maximum number of tokens to generate (default 128)")
      ->type_name("N");
  command
      .add_option("--seed", flags->seed, "the same seed gives the same text (default: a new seed each time)")
      ->type_name("N");
  command
      .add_option("--temperature", flags->options.sampling.temperature,
                  "0 = always the most likely token; higher = more varied (default 0.8)")
      ->type_name("X");
  command
      .add_option("--top-k", flags->options.sampling.top_k,
                  "sample from the k most likely tokens; 0 = all (default 40)")
      ->type_name("N");
  command
      .add_option("--top-p", flags->options.sampling.top_p,
                  "sample from the most likely tokens with total probability p (default 1)")
      ->type_name("X");
  command
      .add_option("--min-p", flags->options.sampling.min_p,
                  "sample from tokens at least this fraction as likely as the likeliest; 0 = all (default 0)")
      ->type_name("X");
  command
      .add_option("--repetition-penalty", flags->options.sampling.repetition_penalty,
                  "make tokens less likely that the text already has; 1 = off (default 1)")
      ->type_name("X");
  command
      .add_option("--logit-bias", flags->biases,
                  "add this to the logit of a token, -100 to 100; may be repeated")
      ->type_name("ID BIAS");
  command.add_option("--stop", flags->options.stop, "end the text before this sequence; may be repeated")
      ->type_name("TEXT")
      ->allow_extra_args(false);
  command
      .add_option("--checkpoint", flags->checkpoint,
                  "checkpoint that answers: a name, its beginning, or a step (default: the newest)")
      ->type_name("NAME");
  command.add_flag("--stream", flags->stream, "print the text while it is generated (default on a terminal)");
  add_setting_flags(command, flags->settings,
                    {config::Setting::CpuThreads, config::Setting::MemoryLimit, config::Setting::Device,
                     config::Setting::Precision});
  set_body(
      command, context, [flags, &context] { return run_generate(*flags, context); }, WorksWith::AnyComputer);
}

}  // namespace neuroshard::app
