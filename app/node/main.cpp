// neuroshardd: makes the machine's clock, randomness, disk and terminal once and hands them to the command.
#include "app/node/command.h"
#include "core/platform/heap.h"

namespace {

// Before a data directory with its log file is open, people should still see what is wrong.
class TerminalLogger final : public neuroshard::Logger {
 public:
  explicit TerminalLogger(neuroshard::app::Output& output) : output_(output) {}
  void write(const neuroshard::LogRecord& record) override {
    if (record.level >= neuroshard::LogLevel::Warning) output_.note(record.category + ": " + record.message);
  }

 private:
  neuroshard::app::Output& output_;
};

}  // namespace

int main(int argc, char** argv) {
  neuroshard::platform::keep_heap_small();
  neuroshard::SystemClock clock;
  neuroshard::crypto::SystemEntropy entropy;
  const auto files = neuroshard::storage::make_posix_file_env();
  neuroshard::app::Output output;
  TerminalLogger logger(output);
  neuroshard::app::CommandContext context{.clock = clock,
                                          .entropy = entropy,
                                          .files = *files,
                                          .logger = logger,
                                          .output = output,
                                          .data_dir = {},
                                          .profile = {},
                                          .control_file = {},
                                          .stop = {},
                                          .body = {}};
  return neuroshard::app::run_command_line(argc, argv, context);
}
