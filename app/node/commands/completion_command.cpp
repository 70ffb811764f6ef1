// neuroshardd completion: the script with which a shell completes the command line. Made from the commands that this
// program declares, so it never differs from them.
#include <CLI/CLI.hpp>
#include <sstream>

#include "app/node/command.h"
#include "app/node/commands.h"
#include "app/node/output/completion_text.h"

namespace neuroshard::app {
namespace {

// The kind of a value, from its name in --help: PATH, DIR, NAME|FILE, on|off, TEXT:{layer,slot}.
void describe_value(const std::string& type, CompletedOption* completed) {
  using Value = CompletedOption::Value;
  const auto contains = [&](const char* word) { return type.find(word) != std::string::npos; };
  completed->value = Value::Any;
  const std::size_t list = type.find('{');
  if (list != std::string::npos || (contains("|") && !contains("FILE"))) {
    const char separator = list != std::string::npos ? ',' : '|';
    std::istringstream words(list == std::string::npos ? type
                                                       : type.substr(list + 1, type.find('}') - list - 1));
    completed->value = Value::Word;
    for (std::string word; std::getline(words, word, separator);) completed->words.push_back(word);
  } else if (contains("FILE") || contains("PATH")) {
    completed->value = Value::File;
  } else if (contains("DIR") || contains("FOLDER")) {
    completed->value = Value::Folder;
  }
}

void add_options(const CLI::App& app, CompletedCommand* command) {
  for (const CLI::Option* option : app.get_options()) {
    if (option->get_group().empty()) continue;  // for programs
    // --help belongs to every command, so to the program.
    if (app.get_parent() != nullptr && option->check_lname("help")) continue;
    CompletedOption completed;
    for (const std::string& name : option->get_snames()) completed.names.push_back('-' + name);
    for (const std::string& name : option->get_lnames()) completed.names.push_back("--" + name);
    completed.description = option->get_description();
    if (option->get_expected_max() != 0) describe_value(option->get_type_name(), &completed);
    if (option->get_positional()) completed.names.clear();
    command->options.push_back(std::move(completed));
  }
}

void add_commands(const CLI::App& app, const std::string& path, CompletionTable* table) {
  CompletedCommand command{path, app.get_description(), {}, {}};
  add_options(app, &command);
  const auto all = app.get_subcommands([](const CLI::App* one) { return !one->get_group().empty(); });
  for (const CLI::App* one : all) {
    if (one->get_name().empty()) {  // a group of options, of which one is given
      add_options(*one, &command);
    } else {
      command.commands.push_back(one->get_name());
    }
  }
  table->push_back(std::move(command));
  for (const CLI::App* one : all) {
    if (!one->get_name().empty())
      add_commands(*one, (path.empty() ? "" : path + ' ') + one->get_name(), table);
  }
}

}  // namespace

void add_completion_command(CLI::App& root, CommandContext& context) {
  auto shell = std::make_shared<std::string>();
  CLI::App& command =
      add_command(root, "completion", "Print the script with which a shell completes commands",
                  {"neuroshardd completion bash > ~/.local/share/bash-completion/completions/neuroshardd",
                   "neuroshardd completion fish > ~/.config/fish/completions/neuroshardd.fish"});
  command.add_option("shell", *shell, "bash, zsh or fish")->required()->type_name("bash|zsh|fish");
  set_body(command, context, [shell, &root, &context]() -> Expected<void> {
    CompletionTable table;
    add_commands(root, "", &table);
    NS_ASSIGN_OR_RETURN(const std::string script, completion_script(*shell, table));
    context.output.raw(script);
    return {};
  });
}

}  // namespace neuroshard::app
