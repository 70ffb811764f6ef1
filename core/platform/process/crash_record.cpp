#include "core/platform/process/crash_record.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <link.h>
#include <signal.h>
#include <sys/stat.h>
#include <ucontext.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <ctime>
#include <filesystem>
#include <iterator>

#include "core/platform/sensor/detail/small_file.h"

namespace neuroshard::platform {
namespace {

struct FatalSignal {
  int number;
  const char* name;
};
constexpr std::array<FatalSignal, 5> fatal_signals = {
    {{SIGSEGV, "SIGSEGV"}, {SIGBUS, "SIGBUS"}, {SIGFPE, "SIGFPE"}, {SIGILL, "SIGILL"}, {SIGABRT, "SIGABRT"}}};
constexpr std::size_t alternate_stack_bytes = 64 << 10;
constexpr std::string_view first_line = "neuroshard crash 1\n";

// The handler's data, prepared in advance: it may not allocate. A signal handler has no argument to carry it,
// so this is the one process-wide variable; CrashRecorder owns it and allows one owner.
struct Prepared {
  char path[4096];
  char build[256];
  std::uint64_t load_address;
  std::array<struct sigaction, fatal_signals.size()> former;
  stack_t former_stack;
  alignas(16) char stack[alternate_stack_bytes];
};
std::atomic<Prepared*> prepared{nullptr};

// A line under construction in a fixed buffer, with what async-signal-safety allows.
class Line {
 public:
  Line& text(const char* s) {
    while (*s != '\0' && size_ < sizeof(buffer_)) buffer_[size_++] = *s++;
    return *this;
  }
  Line& number(std::uint64_t value) {
    char digits[20];
    std::size_t n = 0;
    do digits[n++] = static_cast<char>('0' + value % 10);
    while ((value /= 10) != 0);
    while (n > 0 && size_ < sizeof(buffer_)) buffer_[size_++] = digits[--n];
    return *this;
  }
  void write_to(int file) const {
    const ssize_t written = write(file, buffer_, size_);
    static_cast<void>(written);
  }

 private:
  char buffer_[1024];
  std::size_t size_ = 0;
};

std::uint64_t program_counter(const void* context) {
#if defined(__linux__) && defined(__x86_64__)
  return static_cast<std::uint64_t>(static_cast<const ucontext_t*>(context)->uc_mcontext.gregs[REG_RIP]);
#elif defined(__linux__) && defined(__aarch64__)
  return static_cast<const ucontext_t*>(context)->uc_mcontext.pc;
#else
  static_cast<void>(context);
  return 0;
#endif
}

// POSIX lists open, write, fsync, close, clock_gettime, getpid and raise as async-signal-safe; nothing else
// is called.
void on_fatal_signal(int number, siginfo_t* info, void* context) {
  const Prepared* state = prepared.load(std::memory_order_relaxed);
  if (state != nullptr) {
    const int file = open(state->path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
    if (file >= 0) {
      timespec now{};
      clock_gettime(CLOCK_REALTIME, &now);
      const bool has_address = number == SIGSEGV || number == SIGBUS;
      Line line;
      line.text(first_line.data()).text("signal ").number(static_cast<std::uint64_t>(number));
      line.text("\ntime ").number(static_cast<std::uint64_t>(now.tv_sec) * 1000 +
                                  static_cast<std::uint64_t>(now.tv_nsec) / 1000000);
      line.text("\npid ").number(static_cast<std::uint64_t>(getpid()));
      line.text("\naddress ").number(has_address ? reinterpret_cast<std::uintptr_t>(info->si_addr) : 0);
      const std::uint64_t counter = program_counter(context);
      line.text("\ncounter ")
          .number(counter >= state->load_address ? counter - state->load_address : counter);
      line.text("\nbuild ").text(state->build).text("\n");
      line.write_to(file);
      fsync(file);
      close(file);
    }
  }
  // SA_RESETHAND has put the default action back: the process dies of the same signal.
  raise(number);
}

int first_object(dl_phdr_info* info, std::size_t, void* result) {
  *static_cast<std::uint64_t*>(result) = info->dlpi_addr;
  return 1;  // the first object is the program
}

void copy_text(char* target, std::size_t capacity, std::string_view text) {
  const std::size_t n = std::min(capacity - 1, text.size());
  std::copy_n(text.data(), n, target);
  target[n] = '\0';
}

std::string field(std::string_view text, std::string_view key) {
  const std::size_t at = text.find("\n" + std::string(key) + " ");
  if (at == std::string_view::npos) return {};
  const std::size_t start = at + key.size() + 2;
  return std::string(text.substr(start, text.find('\n', start) - start));
}

std::uint64_t number_field(std::string_view text, std::string_view key) {
  return detail::parse_number(field(text, key)).value_or(0);
}

CrashRecord parse_record(const std::string& file, const std::string& text) {
  CrashRecord record;
  record.file = file;
  const std::uint64_t number = number_field(text, "signal");
  record.signal = "signal " + std::to_string(number);
  for (const FatalSignal& signal : fatal_signals) {
    if (static_cast<std::uint64_t>(signal.number) == number) record.signal = signal.name;
  }
  record.build = field(text, "build");
  record.time = WallTime(std::chrono::milliseconds(number_field(text, "time")));
  record.pid = static_cast<std::int64_t>(number_field(text, "pid"));
  record.address = number_field(text, "address");
  record.program_counter = number_field(text, "counter");
  return record;
}

bool is_told(std::string_view file, std::string_view told) {
  if (told.find('\n') == std::string_view::npos) return file <= told;
  return fmt::format("\n{}", told).find(fmt::format("\n{}\n", file)) != std::string::npos;
}

}  // namespace

Expected<CrashRecorder> CrashRecorder::install(const std::string& directory, const std::string& build) {
  if (mkdir(directory.c_str(), 0700) != 0 && errno != EEXIST) {
    return make_error(ErrorCode::Io, fmt::format("can't create {}: {}", directory, std::strerror(errno)));
  }
  auto state = std::make_unique<Prepared>();
  timespec now{};
  clock_gettime(CLOCK_REALTIME, &now);
  // Fixed width, so that names sort by time; the process id keeps two starts in one second apart.
  const std::string path =
      fmt::format("{}/crash-{:012}-{}.txt", directory, static_cast<long long>(now.tv_sec), getpid());
  if (path.size() >= sizeof(state->path))
    return make_error(ErrorCode::InvalidArgument, "the path is too long: " + path);
  copy_text(state->path, sizeof(state->path), path);
  copy_text(state->build, sizeof(state->build), std::string_view(build).substr(0, build.find('\n')));
  dl_iterate_phdr(first_object, &state->load_address);
  Prepared* none = nullptr;
  if (!prepared.compare_exchange_strong(none, state.get())) {
    return make_error(ErrorCode::Busy, "this process already records its crashes");
  }
  Prepared* active = state.release();
  stack_t stack{};
  stack.ss_sp = active->stack;
  stack.ss_size = sizeof(active->stack);
  sigaltstack(&stack, &active->former_stack);
  struct sigaction action {};
  action.sa_sigaction = on_fatal_signal;
  action.sa_flags = SA_SIGINFO | SA_ONSTACK | static_cast<int>(SA_RESETHAND);
  for (std::size_t i = 0; i < fatal_signals.size(); ++i) {
    sigaction(fatal_signals[i].number, &action, &active->former[i]);
  }
  CrashRecorder recorder;
  recorder.installed_ = true;
  return recorder;
}

CrashRecorder::CrashRecorder(CrashRecorder&& other) noexcept
    : installed_(std::exchange(other.installed_, false)) {}

CrashRecorder::~CrashRecorder() {
  if (!installed_) return;
  const std::unique_ptr<Prepared> state(prepared.load());
  for (std::size_t i = 0; i < fatal_signals.size(); ++i)
    sigaction(fatal_signals[i].number, &state->former[i], nullptr);
  sigaltstack(&state->former_stack, nullptr);
  prepared.store(nullptr);
}

std::vector<CrashRecord> read_crash_records(const std::string& directory, std::string_view told) {
  std::error_code failed;
  std::vector<std::string> names;
  for (const auto& entry : std::filesystem::directory_iterator(directory, failed)) {
    const std::string name = entry.path().filename().string();
    if (name.rfind("crash-", 0) == 0) names.push_back(name);
  }
  std::sort(names.rbegin(), names.rend());
  // Where the clock was set back, the name of a new record sorts behind those of older ones.
  std::stable_partition(names.begin(), names.end(),
                        [told](const std::string& name) { return !is_told(name, told); });
  std::vector<CrashRecord> records;
  for (const std::string& name : names) {
    const std::string path = directory + "/" + name;
    const std::string text = detail::read_small_file(path);
    if (text.rfind(first_line, 0) != 0) continue;
    if (records.size() < kept_crash_records) {
      records.push_back(parse_record(name, text));
    } else {
      std::filesystem::remove(path, failed);
    }
  }
  std::sort(records.begin(), records.end(),
            [](const CrashRecord& a, const CrashRecord& b) { return a.file > b.file; });
  return records;
}

std::string told_crashes(const std::vector<CrashRecord>& records) {
  std::string told;
  for (const CrashRecord& record : records) told += record.file + '\n';
  return told;
}

std::vector<CrashRecord> untold_crashes(const std::vector<CrashRecord>& records, std::string_view told) {
  std::vector<CrashRecord> untold;
  std::copy_if(records.begin(), records.end(), std::back_inserter(untold),
               [told](const CrashRecord& record) { return !is_told(record.file, told); });
  return untold;
}

}  // namespace neuroshard::platform
