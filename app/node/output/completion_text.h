// Completion of neuroshardd's command line in a shell, as the script that the shell loads.
#pragma once

#include <string>
#include <vector>

#include "core/base/expected.h"

namespace neuroshard::app {

struct CompletedOption {
  enum class Value { None, Any, Word, File, Folder };  // None: a flag; Word: one of `words`
  std::vector<std::string> names;                      // "--data-dir", "-h"; empty: a positional argument
  std::string description;
  Value value = Value::None;
  std::vector<std::string> words;
};

struct CompletedCommand {
  std::string path;  // "checkpoint export"; empty = the program itself
  std::string description;
  std::vector<CompletedOption> options;  // its own
  std::vector<std::string> commands;     // names of those below
};

// Every command, each after the one that it belongs to. The first is the program; its options are valid everywhere.
using CompletionTable = std::vector<CompletedCommand>;

// shell: bash, zsh or fish.  Errors: InvalidArgument.
Expected<std::string> completion_script(const std::string& shell, const CompletionTable& table);

}  // namespace neuroshard::app
