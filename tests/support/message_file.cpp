#include "tests/support/message_file.h"

#include <fstream>
#include <iterator>

#include "core/base/check.h"

namespace neuroshard::test {
namespace {

constexpr std::size_t head_bytes = 4 + 2;

}  // namespace

MessageFileWriter::MessageFileWriter(std::string path) : path_(std::move(path)) {
  file_.reset(std::fopen(path_.c_str(), "wb"));
  NS_CHECK(file_ != nullptr);
}

void MessageFileWriter::write(net::Method method, ByteSpan request) {
  if (written_ > most_bytes) {
    file_.reset();
    static_cast<void>(std::rename(path_.c_str(), (path_ + ".before").c_str()));
    file_.reset(std::fopen(path_.c_str(), "wb"));
    NS_CHECK(file_ != nullptr);
    written_ = 0;
  }
  Bytes frame;
  append_le(frame, static_cast<std::uint32_t>(request.size()));
  append_le(frame, static_cast<std::uint16_t>(method));
  frame.insert(frame.end(), request.begin(), request.end());
  written_ += frame.size();
  static_cast<void>(std::fwrite(frame.data(), 1, frame.size(), file_.get()));
  static_cast<void>(std::fflush(file_.get()));
}

std::vector<Message> MessageFileReader::read() {
  std::vector<Message> messages;
  std::ifstream file(path_, std::ios::binary);
  if (!file) return messages;
  file.seekg(0, std::ios::end);
  if (static_cast<std::size_t>(file.tellg()) < place_) place_ = 0;  // it began again
  file.seekg(static_cast<std::streamoff>(place_));
  const std::string text{std::istreambuf_iterator<char>(file), {}};
  const ByteSpan bytes = as_bytes(text);
  std::size_t at = 0;
  while (bytes.size() - at >= head_bytes) {
    const std::size_t size = load_le<std::uint32_t>(bytes.data() + at);
    if (bytes.size() - at - head_bytes < size) break;
    const ByteSpan request = bytes.subspan(at + head_bytes, size);
    messages.push_back({static_cast<net::Method>(load_le<std::uint16_t>(bytes.data() + at + 4)),
                        Bytes(request.begin(), request.end())});
    at += head_bytes + size;
  }
  place_ += at;
  return messages;
}

}  // namespace neuroshard::test
