#include "app/node/program.h"

#include "core/platform/file/paths.h"
#include "core/platform/process/heap.h"
#include "core/platform/process/memory_privacy.h"
#include "core/platform/process/open_files.h"

namespace neuroshard::app {
namespace {

// For people who debug the program, and for tests that look into it without being root.
constexpr const char* inspectable_variable = "NEUROSHARD_INSPECTABLE";

// Before the log file of a data directory is open, warnings must still reach the user.
class TerminalLogger final : public Logger {
 public:
  explicit TerminalLogger(Output& output) : output_(output) {}
  void write(const LogRecord& record) override {
    if (record.level >= LogLevel::Warning) output_.note(record.category + ": " + record.message);
  }

 private:
  Output& output_;
};

}  // namespace

int run_program(int argc, char** argv, const std::function<void(CommandContext&)>& prepare) {
  platform::keep_heap_small();
  platform::raise_open_file_limit();
  if (platform::process_environment()(inspectable_variable) != "1") {
    platform::forbid_core_dumps();
    platform::forbid_inspection();
  }
  SystemClock clock;
  crypto::SystemEntropy entropy;
  const auto files = storage::make_posix_file_env();
  Output output;
  TerminalLogger logger(output);
  CommandContext context{.clock = clock,
                         .entropy = entropy,
                         .files = *files,
                         .logger = logger,
                         .output = output,
                         .data_dir = {},
                         .profile = {},
                         .control_file = {},
                         .stop = {},
                         .body = {},
                         .interpositions = {}};
  if (prepare) prepare(context);
  return run_command_line(argc, argv, context);
}

}  // namespace neuroshard::app
