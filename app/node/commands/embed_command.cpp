// neuroshardd embed: the embeddings of texts, by the trained model.
#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <nlohmann/json.hpp>

#include "app/node/commands/core_client.h"
#include "app/node/commands/text_session.h"
#include "core/engine/generator.h"
#include "core/platform/process/terminal.h"

namespace neuroshard::app {
namespace {

struct EmbedFlags {
  std::vector<std::string> inputs;
  std::string checkpoint;
  std::shared_ptr<SettingFlags> settings = std::make_shared<SettingFlags>();
};

struct Embedding {
  std::vector<float> values;
  std::uint32_t tokens = 0;
  std::uint64_t step = 0;
};

void show(std::size_t index, const Embedding& one, Output& output) {
  output.json_line({{"index", index}, {"embedding", one.values}, {"tokens", one.tokens}, {"step", one.step}});
  if (!output.json()) output.raw(fmt::format("{}\n", fmt::join(one.values, " ")));
}

// With the model of the core that runs on the directory, beside its training.
Expected<void> embed_in_core(CoreClient& client, const EmbedFlags& flags, Output& output) {
  if (!flags.settings->given.empty()) {
    return make_error(
        ErrorCode::InvalidArgument,
        "a running node computes with its own settings: remove the flags of settings, or stop the "
        "node first");
  }
  for (std::size_t i = 0; i < flags.inputs.size(); ++i) {
    node::GenerateRequest request;
    request.prompt = flags.inputs[i];
    request.checkpoint = flags.checkpoint;
    request.embedding = true;
    request.max_tokens = 0;
    NS_ASSIGN_OR_RETURN(const node::CommandResult outcome,
                        client.run([&](node::Node& node) { return node.generate(request, {}); }, "embed"));
    const auto* result = std::get_if<node::GenerateResult>(&outcome);
    if (result == nullptr) return make_error(ErrorCode::Internal, "the core returned no result");
    show(i, {result->embedding, result->prompt_tokens, result->step}, output);
  }
  return {};
}

Expected<void> embed_here(const EmbedFlags& flags, CommandContext& context) {
  NS_ASSIGN_OR_RETURN(const TextSession model, open_text_session(context, *flags.settings, flags.checkpoint));
  for (std::size_t i = 0; i < flags.inputs.size(); ++i) {
    engine::GenerateOptions options;
    options.prompt = flags.inputs[i];
    options.embedding = true;
    options.max_tokens = 0;
    options.cancel = context.stop;
    NS_ASSIGN_OR_RETURN(const engine::Generation result,
                        engine::generate(*model.session, context.clock, options));
    show(i, {result.embedding, result.prompt_tokens, model.info.step}, context.output);
  }
  return {};
}

Expected<void> run_embed(EmbedFlags flags, CommandContext& context) {
  for (std::string& input : flags.inputs) {
    if (input == "-") {
      NS_ASSIGN_OR_RETURN(input, platform::read_standard_input(engine::max_prompt_bytes, context.stop));
    }
    if (input.empty())
      return make_error(ErrorCode::InvalidArgument, "an --input is empty; an empty text has no embedding");
  }
  NS_ASSIGN_OR_RETURN(const auto client, CoreClient::find(context));
  return client ? embed_in_core(*client, flags, context.output) : embed_here(flags, context);
}

}  // namespace

void add_embed_command(CLI::App& root, CommandContext& context) {
  auto flags = std::make_shared<EmbedFlags>();
  CLI::App& command = add_command(root, "embed", "Print the embeddings of texts by the trained model",
                                  {"neuroshardd embed --input \"A cat sleeps\"",
                                   "neuroshardd embed --input \"A cat\" --input \"A dog\" --json",
                                   "neuroshardd embed --input - < page.txt"});
  command
      .add_option("--input", flags->inputs,
                  "text; - reads it from standard input; may be repeated: one line for each")
      ->type_name("TEXT")
      ->required()
      ->allow_extra_args(false);
  command
      .add_option("--checkpoint", flags->checkpoint,
                  "checkpoint that answers: a name, its beginning, or a step (default: the newest)")
      ->type_name("NAME");
  add_setting_flags(command, flags->settings,
                    {config::Setting::CpuThreads, config::Setting::MemoryLimit, config::Setting::Device,
                     config::Setting::Precision});
  set_body(
      command, context, [flags, &context] { return run_embed(*flags, context); }, WorksWith::AnyComputer);
}

}  // namespace neuroshard::app
