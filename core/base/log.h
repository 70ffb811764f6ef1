// Logging, injected: code that logs receives a Logger. Secrets never reach it.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>

#include "core/base/clock.h"

namespace neuroshard {

enum class LogLevel : std::uint8_t { Debug, Info, Warning, Error };
std::string_view to_string(LogLevel level);

struct LogRecord {
  LogLevel level = LogLevel::Info;
  std::string category;  // a folder's name: "data", "train", …
  std::string message;
};

// Threads: any. write() does not block on the disk for longer than a buffered write.
class Logger {
 public:
  virtual ~Logger() = default;
  virtual void write(const LogRecord& record) = 0;

  void debug(std::string_view category, std::string_view message) {
    emit(LogLevel::Debug, category, message);
  }
  void info(std::string_view category, std::string_view message) { emit(LogLevel::Info, category, message); }
  void warning(std::string_view category, std::string_view message) {
    emit(LogLevel::Warning, category, message);
  }
  void error(std::string_view category, std::string_view message) {
    emit(LogLevel::Error, category, message);
  }

 private:
  void emit(LogLevel level, std::string_view category, std::string_view message) {
    write({level, std::string(category), std::string(message)});
  }
};

// Drops everything; for tests and tools.
class NullLogger final : public Logger {
 public:
  void write(const LogRecord&) override {}
};

// Rotating files "<path>", "<path>.1" … of at most max_bytes each, keeping `files` of them, and optionally
// standard error for records of at least stderr_level. Null if the file can't be opened: the caller decides
// whether that matters.
struct FileLogOptions {
  std::string path;
  std::uint64_t max_bytes = 10u << 20;
  std::uint32_t files = 5;
  LogLevel file_level = LogLevel::Debug;
  bool to_stderr = false;
  LogLevel stderr_level = LogLevel::Warning;
};
std::unique_ptr<Logger> make_file_logger(const FileLogOptions& options);

}  // namespace neuroshard
