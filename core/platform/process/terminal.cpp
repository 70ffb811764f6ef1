#include "core/platform/process/terminal.h"

#include <fcntl.h>
#include <poll.h>
#include <sys/ioctl.h>
#include <termios.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstring>

namespace neuroshard::platform {
namespace {

constexpr const char* controlling_terminal = "/dev/tty";

int descriptor_of(Stream stream) {
  switch (stream) {
    case Stream::In: return STDIN_FILENO;
    case Stream::Out: return STDOUT_FILENO;
    case Stream::Error: return STDERR_FILENO;
  }
  return STDIN_FILENO;
}

class Terminal {
 public:
  Terminal() : descriptor_(open(controlling_terminal, O_RDWR | O_CLOEXEC | O_NOCTTY)) {}
  Terminal(const Terminal&) = delete;
  Terminal& operator=(const Terminal&) = delete;
  ~Terminal() {
    if (descriptor_ >= 0) close(descriptor_);
  }
  bool ok() const { return descriptor_ >= 0; }
  int descriptor() const { return descriptor_; }
  void write_all(std::string_view text) const {
    while (!text.empty()) {
      const ssize_t written = write(descriptor_, text.data(), text.size());
      if (written < 0 && errno == EINTR) continue;
      if (written <= 0) return;
      text.remove_prefix(static_cast<std::size_t>(written));
    }
  }

 private:
  int descriptor_;
};

constexpr char interrupt_character = 3;  // Ctrl-C

// While it lives, Ctrl-C ends the line instead of raising a signal, and echo is off when hidden: no signal
// can leave the person at a terminal that stays silent.
class LineInput {
 public:
  LineInput(int descriptor, bool hidden) : descriptor_(descriptor) {
    if (tcgetattr(descriptor, &before_) != 0) return;
    termios settings = before_;
    settings.c_lflag &= ~static_cast<tcflag_t>(hidden ? ECHO | ISIG : ISIG);
    settings.c_cc[VEOL] = interrupt_character;
    active_ = tcsetattr(descriptor, TCSAFLUSH, &settings) == 0;
  }
  LineInput(const LineInput&) = delete;
  LineInput& operator=(const LineInput&) = delete;
  ~LineInput() {
    if (active_) tcsetattr(descriptor_, TCSAFLUSH, &before_);
  }

 private:
  int descriptor_;
  bool active_ = false;
  termios before_{};
};

Error no_terminal() {
  return make_error(ErrorCode::Unavailable, "there is no terminal to ask on");
}

// Waits for standard input. 0: its end.
Expected<std::size_t> read_some(char* to, std::size_t most, const CancelToken& stop) {
  constexpr int look_milliseconds = 100;
  while (true) {
    if (stop.cancelled()) return make_error(ErrorCode::Cancelled, "stopped while reading standard input");
    pollfd input{STDIN_FILENO, POLLIN, 0};
    const int ready = poll(&input, 1, look_milliseconds);
    if (ready == 0 || (ready < 0 && errno == EINTR)) continue;
    const ssize_t count = ready < 0 ? -1 : read(STDIN_FILENO, to, most);
    if (count < 0 && (errno == EINTR || errno == EAGAIN)) continue;
    if (count < 0) {
      return make_error(ErrorCode::Io, std::string("standard input can't be read: ") + std::strerror(errno));
    }
    return static_cast<std::size_t>(count);
  }
}

}  // namespace

bool is_terminal(Stream stream) {
  return isatty(descriptor_of(stream)) == 1;
}

int terminal_width(int fallback) {
  for (const int descriptor : {STDERR_FILENO, STDOUT_FILENO}) {
    winsize size{};
    if (ioctl(descriptor, TIOCGWINSZ, &size) == 0 && size.ws_col > 0) return size.ws_col;
  }
  return fallback;
}

Expected<std::string> read_standard_input(std::size_t max_bytes, const CancelToken& stop) {
  std::string text;
  std::array<char, 4096> buffer{};
  while (true) {
    NS_ASSIGN_OR_RETURN(const std::size_t count, read_some(buffer.data(), buffer.size(), stop));
    if (count == 0) return text;
    text.append(buffer.data(), count);
    if (text.size() > max_bytes) {
      return make_error(ErrorCode::InvalidArgument,
                        "standard input holds more than " + std::to_string(max_bytes) + " bytes");
    }
  }
}

Expected<std::string> read_input_line(std::size_t max_bytes, const CancelToken& stop) {
  std::string line;
  char c = 0;
  while (true) {
    NS_ASSIGN_OR_RETURN(const std::size_t count, read_some(&c, 1, stop));
    if (count == 0 || c == '\n') return line;
    if (line.size() == max_bytes) {
      return make_error(ErrorCode::InvalidArgument,
                        "a line of standard input is longer than " + std::to_string(max_bytes) + " bytes");
    }
    line.push_back(c);
  }
}

Expected<std::string> prompt(std::string_view question, bool hidden) {
  const Terminal terminal;
  if (!terminal.ok()) return no_terminal();
  const LineInput line(terminal.descriptor(), hidden);  // before the question: no key goes the old way
  terminal.write_all(question);
  std::string answer;
  answer.reserve(max_prompt_bytes);  // never moved: no stray copies of a secret
  for (;;) {
    char c = 0;
    const ssize_t got = read(terminal.descriptor(), &c, 1);
    if (got < 0 && errno == EINTR) continue;
    if (got <= 0 || c == interrupt_character) {
      terminal.write_all("\n");
      return make_error(ErrorCode::Cancelled, "no answer was given");
    }
    if (c == '\n') break;
    if (answer.size() == max_prompt_bytes)
      return make_error(ErrorCode::InvalidArgument, "the answer is too long");
    answer.push_back(c);
  }
  if (hidden) terminal.write_all("\n");
  return answer;
}

Expected<void> show_on_terminal(std::string_view text) {
  const Terminal terminal;
  if (!terminal.ok()) return no_terminal();
  terminal.write_all(text);
  return {};
}

}  // namespace neuroshard::platform
