#include "app/node/output/completion_text.h"

#include <fmt/format.h>

#include <algorithm>

namespace neuroshard::app {
namespace {

using Value = CompletedOption::Value;

std::string replaced(std::string text, const std::string& what, const std::string& with) {
  for (std::size_t at = 0; (at = text.find(what, at)) != std::string::npos; at += with.size())
    text.replace(at, what.size(), with);
  return text;
}

// Within single quotes of a POSIX shell.
std::string quoted(const std::string& text) {
  return "'" + replaced(text, "'", "'\\''") + "'";
}

std::string fish_quoted(const std::string& text) {
  return "'" + replaced(replaced(text, "\\", "\\\\"), "'", "\\'") + "'";
}

std::string joined(const std::vector<std::string>& words, const std::string& between) {
  return fmt::format("{}", fmt::join(words, between));
}

std::string first_line(const std::string& text) {
  return text.substr(0, text.find('\n'));
}

const CompletedCommand* find(const CompletionTable& table, const std::string& path) {
  const auto found = std::find_if(table.begin(), table.end(), [&](const auto& c) { return c.path == path; });
  return found == table.end() ? nullptr : &*found;
}

std::string below(const std::string& path, const std::string& name) {
  return path.empty() ? name : path + ' ' + name;
}

// The paths of the commands, as patterns of `case`: each word of the line that continues a path is part of it.
std::string path_patterns(const CompletionTable& table) {
  std::vector<std::string> patterns;
  for (std::size_t i = 1; i < table.size(); ++i) patterns.push_back(quoted(table[i].path));
  return joined(patterns, "|");
}

// One branch of `case $path:$previous` for each option with a value.
template <class Action>
std::string value_branches(const CompletionTable& table, Action action) {
  std::string text;
  for (const CompletedCommand& command : table) {
    for (const CompletedOption& option : command.options) {
      if (option.names.empty() || option.value == Value::None) continue;
      std::vector<std::string> patterns;
      for (const std::string& name : option.names)
        patterns.push_back(command.path.empty() ? "*:" + name : quoted(command.path + ':' + name));
      text += fmt::format("    {}) {}; return ;;\n", joined(patterns, "|"), action(option));
    }
  }
  return text;
}

bool takes_files(const CompletedCommand& command) {
  return std::any_of(command.options.begin(), command.options.end(),
                     [](const auto& o) { return o.names.empty() && o.value == Value::File; });
}

// The words that need no option before them.
std::vector<std::string> positional_words(const CompletedCommand& command) {
  std::vector<std::string> words;
  for (const CompletedOption& option : command.options) {
    if (option.names.empty()) words.insert(words.end(), option.words.begin(), option.words.end());
  }
  return words;
}

std::vector<std::string> option_names(const CompletedCommand& command) {
  std::vector<std::string> names;
  for (const CompletedOption& option : command.options)
    names.insert(names.end(), option.names.begin(), option.names.end());
  return names;
}

std::string bash_value(const CompletedOption& option) {
  switch (option.value) {
    case Value::File: return R"(COMPREPLY=($(compgen -f -- "$current")))";
    case Value::Folder: return R"(COMPREPLY=($(compgen -d -- "$current")))";
    case Value::Word:
      return fmt::format(R"(COMPREPLY=($(compgen -W {} -- "$current")))", quoted(joined(option.words, " ")));
    case Value::None:
    case Value::Any: break;
  }
  return "COMPREPLY=()";
}

std::string bash_script(const CompletionTable& table) {
  std::string text =
      "# bash completion of neuroshardd, printed by `neuroshardd completion bash`\n"
      "_neuroshardd() {\n"
      "  local current=${COMP_WORDS[COMP_CWORD]} previous=${COMP_WORDS[COMP_CWORD-1]} path= word words "
      "files= i\n"
      "  for ((i = 1; i < COMP_CWORD; i++)); do\n"
      "    word=${path:+$path }${COMP_WORDS[i]}\n"
      "    case $word in\n      " +
      path_patterns(table) +
      ") path=$word ;;\n"
      "    esac\n"
      "  done\n"
      "  case $path:$previous in\n" +
      value_branches(table, bash_value) +
      "  esac\n"
      "  case $path in\n";
  for (const CompletedCommand& command : table) {
    std::vector<std::string> words = command.commands;
    for (std::string& word : positional_words(command)) words.push_back(std::move(word));
    for (std::string& name : option_names(command)) words.push_back(std::move(name));
    text += fmt::format("    {}) words={}{} ;;\n", quoted(command.path), quoted(joined(words, " ")),
                        takes_files(command) ? " files=1" : "");
  }
  text += fmt::format(
      "  esac\n"
      "  COMPREPLY=($(compgen -W \"$words {}\" -- \"$current\"))\n"
      "  [ -z \"$files\" ] || COMPREPLY+=($(compgen -f -- \"$current\"))\n"
      "}}\n"
      "complete -o filenames -F _neuroshardd neuroshardd\n",
      joined(option_names(table.front()), " "));
  return text;
}

std::string zsh_value(const CompletedOption& option) {
  switch (option.value) {
    case Value::File: return "_files";
    case Value::Folder: return "_files -/";
    case Value::Word: return "compadd -- " + joined(option.words, " ");
    case Value::None:
    case Value::Any: break;
  }
  return "_message value";
}

// 'name:what it is', one a line.
std::string zsh_entry(const std::string& name, const std::string& description) {
  return "      " + quoted(replaced(name, ":", "\\:") + ':' + first_line(description)) + '\n';
}

std::string zsh_entries(const CompletionTable& table, const CompletedCommand& command) {
  std::string text;
  for (const std::string& name : command.commands) {
    const CompletedCommand* one = find(table, below(command.path, name));
    text += zsh_entry(name, one == nullptr ? "" : one->description);
  }
  for (const std::string& word : positional_words(command)) text += zsh_entry(word, {});
  for (const CompletedOption& option : command.options) {
    for (const std::string& name : option.names) text += zsh_entry(name, option.description);
  }
  return text;
}

std::string zsh_script(const CompletionTable& table) {
  std::string text =
      "#compdef neuroshardd\n"
      "# zsh completion of neuroshardd, printed by `neuroshardd completion zsh`\n"
      "_neuroshardd() {\n"
      "  local path= word i\n"
      "  local -a entries everywhere\n"
      "  for ((i = 2; i < CURRENT; i++)); do\n"
      "    word=${path:+$path }${words[i]}\n"
      "    case $word in\n      " +
      path_patterns(table) +
      ") path=$word ;;\n"
      "    esac\n"
      "  done\n"
      "  case $path:${words[CURRENT-1]} in\n" +
      value_branches(table, zsh_value) +
      "  esac\n"
      "  case $path in\n";
  for (const CompletedCommand& command : table) {
    if (command.path.empty()) {
      // Its options follow below; here are the commands.
      CompletedCommand commands = command;
      commands.options.clear();
      text += "    '') entries=(\n" + zsh_entries(table, commands) + "    ) ;;\n";
      continue;
    }
    text += fmt::format("    {}) entries=(\n{}    ){} ;;\n", quoted(command.path),
                        zsh_entries(table, command), takes_files(command) ? "; _files" : "");
  }
  CompletedCommand options = table.front();
  options.commands.clear();
  text += "  esac\n  everywhere=(\n" + zsh_entries(table, options) +
          "  )\n"
          "  _describe neuroshardd entries -- everywhere\n"
          "}\n"
          "_neuroshardd \"$@\"\n";
  return text;
}

std::string fish_option(const CompletedOption& option) {
  std::string text;
  for (const std::string& name : option.names) {
    const bool is_long = name.rfind("--", 0) == 0;
    text += (is_long ? " -l " : " -s ") + name.substr(is_long ? 2 : 1);
  }
  switch (option.value) {
    case Value::None: break;
    case Value::Any: text += " -x"; break;
    case Value::Word: text += " -x -a " + fish_quoted(joined(option.words, " ")); break;
    case Value::File: text += " -r -F"; break;
    case Value::Folder: text += " -x -a '(__fish_complete_directories)'"; break;
  }
  return text + " -d " + fish_quoted(first_line(option.description));
}

std::string fish_script(const CompletionTable& table) {
  std::string text =
      "# fish completion of neuroshardd, printed by `neuroshardd completion fish`\n"
      "function __neuroshardd_path\n"
      "  set -l path\n"
      "  for word in (commandline -opc)[2..-1]\n"
      "    switch \"$path $word\"\n      case";
  for (std::size_t i = 1; i < table.size(); ++i) text += ' ' + fish_quoted(' ' + table[i].path);
  text +=
      "\n"
      "        set path \"$path $word\"\n"
      "    end\n"
      "  end\n"
      "  string trim -- \"$path\"\n"
      "end\n"
      "complete -c neuroshardd -f\n";
  for (const CompletedCommand& command : table) {
    const std::string here =
        fmt::format(" -n {}", fish_quoted("test (__neuroshardd_path) = " + fish_quoted(command.path)));
    for (const std::string& name : command.commands) {
      const CompletedCommand* one = find(table, below(command.path, name));
      text += fmt::format("complete -c neuroshardd{} -a {} -d {}\n", here, name,
                          fish_quoted(one == nullptr ? "" : first_line(one->description)));
    }
    for (const std::string& word : positional_words(command))
      text += fmt::format("complete -c neuroshardd{} -a {}\n", here, word);
    if (takes_files(command)) text += fmt::format("complete -c neuroshardd{} -F\n", here);
    for (const CompletedOption& option : command.options) {
      if (option.names.empty()) continue;
      text +=
          fmt::format("complete -c neuroshardd{}{}\n", command.path.empty() ? "" : here, fish_option(option));
    }
  }
  return text;
}

}  // namespace

Expected<std::string> completion_script(const std::string& shell, const CompletionTable& table) {
  if (shell == "bash") return bash_script(table);
  if (shell == "zsh") return zsh_script(table);
  if (shell == "fish") return fish_script(table);
  return make_error(ErrorCode::InvalidArgument,
                    "there is no completion for " + shell + "; choose bash, zsh or fish");
}

}  // namespace neuroshard::app
