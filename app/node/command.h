// The frame of neuroshardd's subcommands. Each is one file with one function
//
//   void add_<name>_command(CLI::App& root, CommandContext& context);
//
// that declares the command, its flags and its examples, and hands its body to set_body(). Flags' variables
// live in a struct that the body owns through a shared_ptr:
//
//   void add_hello_command(CLI::App& root, CommandContext& context) {
//     auto flags = std::make_shared<HelloFlags>();
//     CLI::App& hello = add_command(root, "hello", "Say hello", {"neuroshardd hello --name Ada"});
//     hello.add_option("--name", flags->name, "whom to greet")->required();
//     set_body(hello, context, [flags, &context] { return say_hello(*flags, context); });
//   }
//
// A body that does not say WorksWith::AnyComputer refuses --control-file: no flag is accepted and ignored.
//
// A body returns an Error to fail: main prints it once and maps its code to the exit code (exit_code.h). A
// body whose answer is "no" without an error (a verification) sets context.exit_code = ExitCode::Failure and
// returns success. The list of all commands is commands.cpp.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "app/node/exit_code.h"
#include "app/node/output/output.h"
#include "app/node/stop_signal.h"
#include "core/base/clock.h"
#include "core/base/executor.h"
#include "core/base/expected.h"
#include "core/base/log.h"
#include "core/crypto/entropy.h"
#include "core/runtime/interpositions.h"
#include "core/runtime/runtime_services.h"
#include "core/storage/file_env.h"

namespace CLI {
class App;
}

namespace neuroshard::app {

// The services of the program and its command line. main makes one; its references outlive every body.
struct CommandContext {
  const Clock& clock;
  crypto::Entropy& entropy;
  storage::FileEnv& files;
  Logger& logger;  // warnings and errors on standard error; owners of a data directory log into it as well
  Output& output;

  // Global options, accepted before and after the subcommand.
  std::string data_dir;  // --data-dir, NEUROSHARD_DATA_DIR, or the user's default directory
  std::string profile;   // --profile: a built-in name or a file; empty when not given
  bool json = false;     // --json; also known to `output`
  std::string
      control_file;  // --control-file: an invitation to the core of another machine; empty when not given

  // Ctrl-C, SIGTERM. Set while a body runs.
  StopSignal* stop_signal = nullptr;
  CancelToken stop;

  ExitCode exit_code = ExitCode::Ok;
  std::function<Expected<void>()> body;  // of the command on the command line

  // Empty in neuroshardd; test programs fill it.
  runtime::Interpositions interpositions;

  // The services above, as core/runtime takes them.
  runtime::RuntimeServices services() const;
};

// Declares a subcommand of `parent`. `examples` are whole command lines for --help. A command that only
// groups others (wallet) gets no body; its subcommands are declared on the returned one.
CLI::App& add_command(CLI::App& parent, const std::string& name, const std::string& description,
                      std::vector<std::string> examples = {});

// Which computer's node a command works with.
enum class WorksWith {
  ThisComputer,  // it reads or writes files of this computer, or needs no node: it refuses --control-file
  AnyComputer,   // it shows or controls a running node, with --control-file the one that the invitation names
};

// The body runs when the user has chosen this command.
void set_body(CLI::App& command, CommandContext& context, std::function<Expected<void>()> body,
              WorksWith works = WorksWith::ThisComputer);

// InvalidArgument if --control-file is given. `what` is the form of a command that does not work with it.
Expected<void> refuse_control_file(const CommandContext& context, std::string_view what = "this command");

// "0.1.0".
std::string program_version();

// The program behind main: parses, runs the body, prints an error, returns the exit code.
int run_command_line(int argc, char** argv, CommandContext& context);

}  // namespace neuroshard::app
