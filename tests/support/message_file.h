// A file of messages, one after the other: length u32 · method u16 · request. A node that records what it says
// writes one, and a fuzzer reads it meanwhile; what a fuzzer sends is kept the same way, to be sent again.
#pragma once

#include <cstdio>
#include <memory>
#include <string>
#include <vector>

#include "tests/support/message_pool.h"

namespace neuroshard::test {

// Threads: one. Begins again when the file is full; what it had is FILE.before then.
class MessageFileWriter {
 public:
  static constexpr std::size_t most_bytes = 16u << 20;
  explicit MessageFileWriter(std::string path);
  // On the disk of this machine when it returns, whatever becomes of the process.
  void write(net::Method method, ByteSpan request);

 private:
  struct Close {
    void operator()(std::FILE* file) const { std::fclose(file); }
  };
  const std::string path_;
  std::unique_ptr<std::FILE, Close> file_;
  std::size_t written_ = 0;
};

// Threads: one.
class MessageFileReader {
 public:
  explicit MessageFileReader(std::string path) : path_(std::move(path)) {}
  // The messages that are there in full since the last call.
  std::vector<Message> read();

 private:
  const std::string path_;
  std::size_t place_ = 0;
};

}  // namespace neuroshard::test
