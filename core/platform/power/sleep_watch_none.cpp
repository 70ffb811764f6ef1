// Built where libsystemd is missing.
#include "core/platform/power/sleep_watch.h"

namespace neuroshard::platform {
namespace {

class NoSleepWatch final : public SleepWatch {
 public:
  std::optional<SleepEvent> poll() override { return std::nullopt; }
  void release() override {}
};

}  // namespace

std::unique_ptr<SleepWatch> make_sleep_watch(SleepWatchOptions, const Clock&, Logger& logger) {
  logger.info("power",
              "this build gets no notice before a suspend or shutdown: the node works on without it");
  return std::make_unique<NoSleepWatch>();
}

}  // namespace neuroshard::platform
