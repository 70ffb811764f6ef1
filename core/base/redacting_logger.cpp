#include "core/base/redacting_logger.h"

#include <mutex>
#include <utility>

namespace neuroshard {
namespace {

class RedactingLogger final : public Logger {
 public:
  RedactingLogger(Logger& target, Redactor redactor) : target_(target), redactor_(std::move(redactor)) {}
  void write(const LogRecord& record) override {
    LogRecord clean = record;
    {
      std::lock_guard lock(mutex_);
      clean.message = redactor_.apply(record.message);
    }
    target_.write(clean);
  }

 private:
  Logger& target_;
  std::mutex mutex_;
  Redactor redactor_;
};

}  // namespace

std::unique_ptr<Logger> make_redacting_logger(Logger& target, Redactor redactor) {
  return std::make_unique<RedactingLogger>(target, std::move(redactor));
}

}  // namespace neuroshard
