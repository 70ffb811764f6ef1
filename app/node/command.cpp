#include "app/node/command.h"

#include <fmt/format.h>

#include <CLI/CLI.hpp>

#include "app/node/commands.h"

#ifndef NS_VERSION
#define NS_VERSION "unknown"
#endif

namespace neuroshard::app {
namespace {

constexpr std::size_t help_column = 30;
constexpr std::size_t help_width = 100;

// Breaks the words into lines. Every line, the first one included, begins at column `indent`.
std::string wrapped(const std::string& words, std::size_t indent) {
  std::string text;
  std::size_t column = indent;
  std::size_t at = 0;
  while (at < words.size()) {
    const std::size_t end = std::min(words.find(' ', at), words.size());
    if (column > indent && column + 1 + (end - at) > help_width) {
      text += '\n' + std::string(indent, ' ');
      column = indent;
    }
    if (column > indent) {
      text += ' ';
      ++column;
    }
    text += words.substr(at, end - at);
    column += end - at;
    at = end + 1;
  }
  return text + '\n';
}

// "  left            right, wrapped with a hanging indent".
std::string help_row(const std::string& left, const std::string& right) {
  std::string text = "  " + left;
  if (text.size() + 2 > help_column) {
    text += '\n' + std::string(help_column, ' ');
  } else {
    text.append(help_column - text.size(), ' ');
  }
  return text + wrapped(right, help_column);
}

// The first line of a description gives the purpose of a command. The rest appears in the command's own help.
std::string summary(const std::string& description) {
  return description.substr(0, description.find('\n'));
}

std::string paragraphs(const std::string& description) {
  std::string text;
  for (std::size_t at = 0; at <= description.size();) {
    const std::size_t end = std::min(description.find('\n', at), description.size());
    text += wrapped(description.substr(at, end - at), 0);
    at = end + 1;
  }
  return text;
}

// One layout for every --help: purpose, usage, commands, options, global options, examples; exit codes at the
// root.
class HelpFormatter final : public CLI::Formatter {
 public:
  std::string make_help(const CLI::App* app, std::string name, CLI::AppFormatMode) const override {
    const CLI::App* root = app;
    std::string path = app->get_name();
    while (root->get_parent() != nullptr) {
      root = root->get_parent();
      path = root->get_name() + (path.empty() ? "" : " " + path);
    }
    if (path.empty()) path = name;
    std::string text = paragraphs(app->get_description()) + "\nUsage: " + path;
    // A command without a group is for programs and not listed; one without a name is a group of options.
    const auto commands = app->get_subcommands(
        [](const CLI::App* c) { return !c->get_group().empty() && !c->get_name().empty(); });
    for (const CLI::Option* option : app->get_options()) {
      if (!option->get_positional()) continue;
      text += option->get_required() ? " " + option->get_name(true) : " [" + option->get_name(true) + "]";
    }
    text += commands.empty() ? " [options]\n" : " COMMAND [options]\n";
    if (!commands.empty()) {
      text += "\nCommands:\n";
      for (const CLI::App* command : commands)
        text += help_row(command->get_name(), summary(command->get_description()));
    }
    if (app != root) text += option_rows(*app, "Options");
    text += option_rows(*root, "Global options");
    const std::string footer = app->get_footer();
    if (!footer.empty()) text += "\nExamples:\n" + footer;
    if (app == root) text += "\n" + exit_code_table();
    return text;
  }

 private:
  static std::string option_rows(const CLI::App& app, const std::string& title) {
    std::string rows;
    std::vector<const CLI::Option*> options = app.get_options();
    for (const CLI::App* group :
         app.get_subcommands([](const CLI::App* c) { return c->get_name().empty(); })) {
      const std::vector<const CLI::Option*> more = group->get_options();
      options.insert(options.end(), more.begin(), more.end());
    }
    for (const CLI::Option* option : options) {
      if (option->get_group().empty()) continue;
      std::string left = option->get_positional() ? option->get_name(true) : option->get_name(false, true);
      if (left.find("--help") != std::string::npos) {
        if (app.get_parent() != nullptr) continue;  // once, under the global options
        left = "-h, --help";
      }
      if (!option->get_positional() && option->get_expected_max() != 0) left += " " + value_name(*option);
      std::string right = option->get_description();
      if (option->get_required()) right += " (required)";
      if (!option->get_default_str().empty())
        right += fmt::format(" (default {})", option->get_default_str());
      rows += help_row(left, right);
    }
    return rows.empty() ? rows : "\n" + title + ":\n" + rows;
  }

  static std::string value_name(const CLI::Option& option) {
    const std::string type = option.get_type_name();
    if (type == "UINT" || type == "INT") return "N";
    if (type == "FLOAT") return "X";
    return type.empty() || type == "TEXT" ? "VALUE" : type;
  }
};

// CLI11 2.1 reads "-3" into an unsigned number as 2^64 − 3.
void refuse_negative_counts(CLI::App& app) {
  for (CLI::Option* option : app.get_options()) {
    const std::string type = option->get_type_name();
    if (type != "UINT" && type != "N") continue;
    option->check([](const std::string& text) {
      return text.rfind('-', 0) == 0 ? "must be 0 or more, not " + text : std::string();
    });
  }
  for (CLI::App* command : app.get_subcommands([](CLI::App*) { return true; }))
    refuse_negative_counts(*command);
}

int fail(CommandContext& context, const Error& error) {
  context.output.error(error);
  return static_cast<int>(exit_code_of(error.code));
}

// --json may stand anywhere, and the error of a wrong command line should have the requested form.
bool wants_json(int argc, char** argv) {
  for (int i = 1; i < argc; ++i) {
    if (std::string_view(argv[i]) == "--json") return true;
  }
  return false;
}

int run_body(CommandContext& context) {
  StopSignal stop_signal;
  context.stop_signal = &stop_signal;
  context.stop = stop_signal.token();
  Expected<void> result;
  // Third-party code may throw where ours does not. The user still gets a message and an exit code.
  try {
    result = context.body();
  } catch (const std::bad_alloc&) {
    result = make_error(ErrorCode::Exhausted, "not enough memory; close other programs or lower the limits");
  } catch (const std::exception& e) {
    result =
        make_error(ErrorCode::Internal, fmt::format("unexpected failure: {}; please report it", e.what()));
  }
  context.stop_signal = nullptr;
  if (!result.ok()) return fail(context, result.error());
  return static_cast<int>(context.exit_code);
}

}  // namespace

runtime::RuntimeServices CommandContext::services() const {
  return {files, entropy, clock, logger, program_version()};
}

CLI::App& add_command(CLI::App& parent, const std::string& name, const std::string& description,
                      std::vector<std::string> examples) {
  CLI::App& command = *parent.add_subcommand(name, description);
  std::string footer;
  for (const std::string& example : examples) footer += "  " + example + "\n";
  command.footer(footer);
  command.fallthrough();  // global options may follow the subcommand
  return command;
}

void set_body(CLI::App& command, CommandContext& context, std::function<Expected<void>()> body,
              WorksWith works) {
  if (works == WorksWith::ThisComputer) {
    body = [&context, wanted = std::move(body)]() -> Expected<void> {
      NS_RETURN_IF_ERROR(refuse_control_file(context));
      return wanted();
    };
  }
  command.callback([&context, body = std::move(body)] { context.body = body; });
}

Expected<void> refuse_control_file(const CommandContext& context, std::string_view what) {
  if (context.control_file.empty()) return {};
  return make_error(
      ErrorCode::InvalidArgument,
      fmt::format("{} works on this computer only; --control-file works with status, contribute, snooze, "
                  "finish, stop, set, settings, logs, generate, embed, peers, reachability, http, network "
                  "continue, plan --what-if, checkpoint save and checkpoint undo",
                  what));
}

std::string program_version() {
  return NS_VERSION;
}

int run_command_line(int argc, char** argv, CommandContext& context) {
  CLI::App root("The NeuroShard node: trains an open language model on this computer.", "neuroshardd");
  root.formatter(std::make_shared<HelpFormatter>());
  root.set_version_flag("--version", std::string("neuroshardd ") + NS_VERSION, "show the version");
  root.set_help_flag("-h,--help", "show this help");
  bool quiet = false;
  root.add_option("--data-dir", context.data_dir, "directory with all data of this node")->type_name("DIR");
  root.add_option("--control-file", context.control_file,
                  "invitation file (neuroshardd control invite) of a node on another machine, to show and "
                  "control that node")
      ->type_name("FILE");
  root.add_option("--profile", context.profile, "network profile: solo, devnet, testnet, mainnet, or a file")
      ->type_name("NAME|FILE");
  root.add_flag("--json", context.json,
                "print results as JSON, one object per line; errors as JSON on standard error");
  root.add_flag("--quiet", quiet, "print no progress and no notes");
  root.footer(
      "  neuroshardd train --text ~/books --steps 1000     train on a folder of text\n"
      "  neuroshardd generate --prompt \"Once upon\"         let the model write text\n"
      "  neuroshardd COMMAND --help                        options and examples of a command\n");
  add_all_commands(root, context);
  refuse_negative_counts(root);

  context.output.set_json(wants_json(argc, argv));
  try {
    root.parse(argc, argv);
  } catch (const CLI::Success& e) {  // --help, --version
    return root.exit(e);
  } catch (const CLI::ParseError& e) {
    return fail(context, make_error(ErrorCode::InvalidArgument,
                                    fmt::format("{}; see --help", std::string_view(e.what()))));
  }
  context.output.set_json(context.json);
  context.output.set_quiet(quiet);
  if (!context.body) {
    const auto chosen = root.get_subcommands();
    context.output.raw(chosen.empty() ? root.help() : chosen.front()->help());
    return fail(context,
                make_error(ErrorCode::InvalidArgument, "no command given; choose one from the list"));
  }
  return run_body(context);
}

}  // namespace neuroshard::app
