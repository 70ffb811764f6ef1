#include "core/base/log.h"

#include <spdlog/logger.h>
#include <spdlog/sinks/rotating_file_sink.h>
#include <spdlog/sinks/stdout_sinks.h>

namespace neuroshard {
namespace {

spdlog::level::level_enum to_spdlog(LogLevel level) {
  switch (level) {
    case LogLevel::Debug: return spdlog::level::debug;
    case LogLevel::Info: return spdlog::level::info;
    case LogLevel::Warning: return spdlog::level::warn;
    case LogLevel::Error: return spdlog::level::err;
  }
  return spdlog::level::info;
}

class FileLogger final : public Logger {
 public:
  explicit FileLogger(std::shared_ptr<spdlog::logger> sink) : sink_(std::move(sink)) {}
  void write(const LogRecord& record) override {
    sink_->log(to_spdlog(record.level), "[{}] {}", record.category, record.message);
  }

 private:
  std::shared_ptr<spdlog::logger> sink_;
};

}  // namespace

std::string_view to_string(LogLevel level) {
  switch (level) {
    case LogLevel::Debug: return "debug";
    case LogLevel::Info: return "info";
    case LogLevel::Warning: return "warning";
    case LogLevel::Error: return "error";
  }
  return "unknown";
}

std::unique_ptr<Logger> make_file_logger(const FileLogOptions& options) {
  try {
    std::vector<spdlog::sink_ptr> sinks;
    auto file = std::make_shared<spdlog::sinks::rotating_file_sink_mt>(options.path, options.max_bytes,
                                                                       options.files - 1);
    file->set_level(to_spdlog(options.file_level));
    sinks.push_back(std::move(file));
    if (options.to_stderr) {
      auto terminal = std::make_shared<spdlog::sinks::stderr_sink_mt>();
      terminal->set_level(to_spdlog(options.stderr_level));
      sinks.push_back(std::move(terminal));
    }
    auto logger = std::make_shared<spdlog::logger>("neuroshard", sinks.begin(), sinks.end());
    logger->set_level(spdlog::level::debug);
    logger->set_pattern("%Y-%m-%dT%H:%M:%S.%e %^%l%$ %v");
    logger->flush_on(spdlog::level::info);
    return std::make_unique<FileLogger>(std::move(logger));
  } catch (const spdlog::spdlog_ex&) {
    return nullptr;
  }
}

}  // namespace neuroshard
