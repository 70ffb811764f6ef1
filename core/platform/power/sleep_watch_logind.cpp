// logind through sd-bus, which needs neither a thread nor a main loop of its own and is installed wherever
// logind is. Its headers give the types; libsystemd is opened on first use. All calls are asynchronous: their
// answers come from within sd_bus_process().
#include <dlfcn.h>
#include <fcntl.h>
#include <fmt/format.h>
#include <systemd/sd-bus.h>
#include <unistd.h>

#include <algorithm>
#include <cstring>
#include <deque>
#include <string_view>
#include <utility>

#include "core/platform/power/sleep_watch.h"

namespace neuroshard::platform {
namespace {

constexpr const char* library_name = "libsystemd.so.0";
constexpr const char* bus_service = "org.freedesktop.DBus";
constexpr const char* service = "org.freedesktop.login1";
constexpr const char* object = "/org/freedesktop/login1";
constexpr const char* manager = "org.freedesktop.login1.Manager";
// logind's default of InhibitDelayMaxSec, until it says its own.
constexpr Duration usual_delay = std::chrono::seconds(5);
constexpr Duration longest_delay = std::chrono::hours(1);
constexpr int messages_at_a_time = 64;

// The few functions that are used.
struct Functions {
  decltype(&sd_bus_new) make = nullptr;
  decltype(&sd_bus_set_address) set_address = nullptr;
  decltype(&sd_bus_set_bus_client) set_bus_client = nullptr;
  decltype(&sd_bus_negotiate_fds) negotiate_fds = nullptr;
  decltype(&sd_bus_start) start = nullptr;
  decltype(&sd_bus_close_unref) close = nullptr;
  decltype(&sd_bus_process) process = nullptr;
  decltype(&sd_bus_add_match_async) add_match = nullptr;
  decltype(&sd_bus_call_method_async) call = nullptr;
  decltype(&sd_bus_message_get_error) error_of = nullptr;
  decltype(&sd_bus_message_get_sender) sender_of = nullptr;
  decltype(&sd_bus_message_read) read = nullptr;

  // The library stays open: another part of the program may use it, too.
  bool load() {
    void* library = dlopen(library_name, RTLD_NOW | RTLD_LOCAL);
    if (library == nullptr) return false;
    return find(library, "sd_bus_new", make) && find(library, "sd_bus_set_address", set_address) &&
           find(library, "sd_bus_set_bus_client", set_bus_client) &&
           find(library, "sd_bus_negotiate_fds", negotiate_fds) && find(library, "sd_bus_start", start) &&
           find(library, "sd_bus_close_unref", close) && find(library, "sd_bus_process", process) &&
           find(library, "sd_bus_add_match_async", add_match) &&
           find(library, "sd_bus_call_method_async", call) &&
           find(library, "sd_bus_message_get_error", error_of) &&
           find(library, "sd_bus_message_get_sender", sender_of) &&
           find(library, "sd_bus_message_read", read);
  }

 private:
  template <class F>
  static bool find(void* library, const char* name, F& function) {
    function = reinterpret_cast<F>(dlsym(library, name));
    return function != nullptr;
  }
};

// The lock: a descriptor that is open as long as it is held.
class DelayLock {
 public:
  DelayLock() = default;
  ~DelayLock() { release(); }
  DelayLock(const DelayLock&) = delete;
  DelayLock& operator=(const DelayLock&) = delete;
  bool held() const { return descriptor_ >= 0; }
  // The message keeps the one that it brought.
  void take_copy(int descriptor) {
    const int copy = fcntl(descriptor, F_DUPFD_CLOEXEC, 3);
    release();
    descriptor_ = copy;
  }
  void release() {
    if (held()) close(std::exchange(descriptor_, -1));
  }

 private:
  int descriptor_ = -1;
};

class LogindWatch final : public SleepWatch {
 public:
  LogindWatch(SleepWatchOptions options, const Clock& clock, Logger& logger)
      : options_(std::move(options)), clock_(clock), logger_(logger), next_try_(clock.monotonic_now()) {}
  ~LogindWatch() override { disconnect(); }
  LogindWatch(const LogindWatch&) = delete;
  LogindWatch& operator=(const LogindWatch&) = delete;

  std::optional<SleepEvent> poll() override {
    if (bus_ == nullptr && clock_.monotonic_now() >= next_try_) connect();
    if (bus_ != nullptr) process();
    if (deadline_ && clock_.monotonic_now() >= *deadline_) {
      if (lock_.held())
        logger_.info("power", "the time that this computer waits before a suspend or shutdown is over");
      release();
    }
    if (events_.empty()) return std::nullopt;
    const SleepEvent event = events_.front();
    events_.pop_front();
    return event;
  }

  void release() override {
    if (!deadline_) return;
    deadline_.reset();
    lock_.release();
  }

 private:
  enum class Phase : std::uint8_t { Awake, Suspending, ShuttingDown };
  enum class Known : std::uint8_t { Nothing, Available, Unavailable };

  // ---- The connection.
  void connect() {
    next_try_ = clock_.monotonic_now() + options_.retry;
    if (lib_.read == nullptr && !lib_.load())
      return note_unavailable(fmt::format("{} is not installed", library_name));
    int result = lib_.make(&bus_);
    if (result >= 0) result = lib_.set_address(bus_, options_.bus_address.c_str());
    if (result >= 0) result = lib_.set_bus_client(bus_, 1);
    if (result >= 0) result = lib_.negotiate_fds(bus_, 1);
    if (result >= 0) result = lib_.start(bus_);
    if (result >= 0) result = subscribe();
    if (result < 0) lose_bus(result);
  }

  // The rules come before the lock, so no announcement is missed.
  int subscribe() {
    const std::string signal =
        fmt::format("type='signal',sender='{}',path='{}',interface='{}',member=", service, object, manager);
    const std::string owner_change = fmt::format(
        "type='signal',sender='{0}',path='/org/freedesktop/DBus',interface='{0}',member='NameOwnerChanged',"
        "arg0='{1}'",
        bus_service, service);
    int result =
        lib_.add_match(bus_, nullptr, (signal + "'PrepareForSleep'").c_str(), &on_sleep, nullptr, this);
    if (result >= 0)
      result = lib_.add_match(bus_, nullptr, (signal + "'PrepareForShutdown'").c_str(), &on_shutdown, nullptr,
                              this);
    if (result >= 0)
      result = lib_.add_match(bus_, nullptr, owner_change.c_str(), &on_owner_change, nullptr, this);
    return result >= 0 ? ask_logind() : result;
  }

  void process() {
    int result = 1;
    for (int i = 0; i < messages_at_a_time && result > 0; ++i) result = lib_.process(bus_, nullptr);
    if (result < 0) lose_bus(result);
  }

  void lose_bus(int error) {
    disconnect();
    next_try_ = clock_.monotonic_now() + options_.retry;
    note_unavailable(fmt::format("no system bus at {}: {}", options_.bus_address, std::strerror(-error)));
  }

  void disconnect() {
    lock_.release();
    owner_.clear();
    if (bus_ != nullptr) lib_.close(std::exchange(bus_, nullptr));
  }

  // ---- Calls.
  int ask_logind() {
    const int asked = lib_.call(bus_, nullptr, service, object, "org.freedesktop.DBus.Properties", "Get",
                                &on_limit, this, "ss", manager, "InhibitDelayMaxUSec");
    return asked >= 0 ? ask_for_lock() : asked;
  }

  int ask_for_lock() {
    return lib_.call(bus_, nullptr, service, object, manager, "Inhibit", &on_lock, this, "ssss",
                     "sleep:shutdown", options_.program.c_str(), options_.reason.c_str(), "delay");
  }

  static int on_limit(sd_bus_message* message, void* self, sd_bus_error*) {
    auto& watch = *static_cast<LogindWatch*>(self);
    std::uint64_t microseconds = 0;
    if (watch.lib_.error_of(message) == nullptr && watch.lib_.read(message, "v", "t", &microseconds) > 0) {
      constexpr auto most = std::chrono::duration_cast<std::chrono::microseconds>(longest_delay).count();
      watch.delay_ = std::chrono::microseconds(std::min<std::uint64_t>(microseconds, most));
    }
    return 0;
  }

  static int on_lock(sd_bus_message* message, void* self, sd_bus_error*) {
    auto& watch = *static_cast<LogindWatch*>(self);
    // Only logind's own announcements count. The bus itself answers where nobody has logind's name.
    const char* sender = watch.lib_.sender_of(message);
    if (sender != nullptr && std::string_view(sender) != bus_service) watch.owner_ = sender;
    int descriptor = -1;
    if (const sd_bus_error* error = watch.lib_.error_of(message); error != nullptr)
      watch.note_unavailable(error->message != nullptr ? error->message : "logind gives no lock");
    else if (watch.lib_.read(message, "h", &descriptor) > 0)
      watch.take_lock(descriptor);
    return 0;
  }

  // logind gives no lock while it suspends or shuts down. So when it gives one, that is over.
  void take_lock(int descriptor) {
    lock_.take_copy(descriptor);
    note_available();
    end_phase();
  }

  // ---- Signals.
  static int on_sleep(sd_bus_message* message, void* self, sd_bus_error*) {
    static_cast<LogindWatch*>(self)->handle(message, Phase::Suspending);
    return 0;
  }

  static int on_shutdown(sd_bus_message* message, void* self, sd_bus_error*) {
    static_cast<LogindWatch*>(self)->handle(message, Phase::ShuttingDown);
    return 0;
  }

  // logind started, again or for the first time. The former one's lock is held until there is a new one.
  static int on_owner_change(sd_bus_message* message, void* self, sd_bus_error*) {
    auto& watch = *static_cast<LogindWatch*>(self);
    const char *name = nullptr, *before = nullptr, *after = nullptr;
    if (watch.lib_.read(message, "sss", &name, &before, &after) <= 0) return 0;
    watch.owner_ = after;
    return watch.owner_.empty() ? 0 : watch.ask_logind();
  }

  void handle(sd_bus_message* message, Phase phase) {
    const char* sender = lib_.sender_of(message);
    int begins = 0;
    if (sender == nullptr || sender != owner_ || lib_.read(message, "b", &begins) <= 0) return;
    if (begins != 0) return begin_phase(phase);
    if (phase_ == phase) end_phase();
    if (!lock_.held()) static_cast<void>(ask_for_lock());
  }

  void begin_phase(Phase phase) {
    if (phase_ != Phase::Awake) return;
    phase_ = phase;
    // The rest is for this program and for the way of its answer.
    deadline_ = clock_.monotonic_now() + (lock_.held() ? delay_ / 5 * 4 : Duration(0));
    events_.push_back(
        {phase == Phase::Suspending ? SleepEventKind::Suspending : SleepEventKind::ShuttingDown, *deadline_});
  }

  void end_phase() {
    const Phase ended = std::exchange(phase_, Phase::Awake);
    if (ended == Phase::Awake) return;
    deadline_.reset();
    events_.push_back(
        {ended == Phase::Suspending ? SleepEventKind::Resumed : SleepEventKind::ShutdownCancelled, {}});
  }

  // ---- The log: once for each change.
  void note_available() {
    if (std::exchange(known_, Known::Available) == Known::Available) return;
    logger_.info("power",
                 fmt::format("a suspend or shutdown of this computer waits for this program, at most "
                             "{:.1f} s",
                             to_seconds(delay_ / 5 * 4)));
  }

  void note_unavailable(const std::string& reason) {
    if (std::exchange(known_, Known::Unavailable) == Known::Unavailable) return;
    logger_.info("power", fmt::format("this computer gives no notice before a suspend or shutdown ({}): the "
                                      "node works on without it",
                                      reason));
  }

  const SleepWatchOptions options_;
  const Clock& clock_;
  Logger& logger_;
  Functions lib_;
  sd_bus* bus_ = nullptr;
  DelayLock lock_;
  std::string owner_;  // logind's unique name
  Duration delay_ = usual_delay;
  MonotonicTime next_try_;
  Phase phase_ = Phase::Awake;
  std::optional<MonotonicTime> deadline_;  // of a lock that is held for the present phase
  std::deque<SleepEvent> events_;
  Known known_ = Known::Nothing;
};

}  // namespace

std::unique_ptr<SleepWatch> make_sleep_watch(SleepWatchOptions options, const Clock& clock, Logger& logger) {
  return std::make_unique<LogindWatch>(std::move(options), clock, logger);
}

}  // namespace neuroshard::platform
