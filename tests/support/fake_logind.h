// The part of systemd-logind that programs see on the system bus: inhibitor locks, and the announcements of suspend
// and shutdown (org.freedesktop.login1(5)). Header only; needs libsystemd.
#pragma once

#include <fcntl.h>
#include <poll.h>
#include <systemd/sd-bus.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <string>
#include <vector>

namespace neuroshard::test {

// Threads: the test's. The object answers only within process().
class FakeLogind {
 public:
  struct Lock {
    std::string what, who, why, mode;
    int read_end = -1;
    // The program has closed its end.
    bool released() const {
      pollfd end{read_end, POLLIN, 0};
      return ::poll(&end, 1, 0) > 0 && (end.revents & POLLHUP) != 0;
    }
  };

  FakeLogind(const std::string& address, std::chrono::microseconds longest_delay)
      : longest_delay_(longest_delay) {
    ready_ = sd_bus_new(&bus_) >= 0 && sd_bus_set_address(bus_, address.c_str()) >= 0 &&
             sd_bus_set_bus_client(bus_, 1) >= 0 && sd_bus_negotiate_fds(bus_, 1) >= 0 &&
             sd_bus_start(bus_) >= 0 && sd_bus_add_object(bus_, nullptr, path, &on_call, this) >= 0 &&
             sd_bus_request_name(bus_, service, 0) >= 0;
  }
  // Ends as logind's process does: the locks' descriptors close, the name is free.
  ~FakeLogind() {
    for (const Lock& lock : locks_) close(lock.read_end);
    sd_bus_close_unref(bus_);
  }
  FakeLogind(const FakeLogind&) = delete;
  FakeLogind& operator=(const FakeLogind&) = delete;

  bool ready() const { return ready_; }
  void process() {
    while (sd_bus_process(bus_, nullptr) > 0) {
    }
  }
  // Those that were given since the start.
  const std::vector<Lock>& given() const { return locks_; }
  std::size_t held() const {
    return static_cast<std::size_t>(
        std::count_if(locks_.begin(), locks_.end(), [](const Lock& lock) { return !lock.released(); }));
  }

  void prepare_for_sleep(bool begins) { announce("PrepareForSleep", begins); }
  void prepare_for_shutdown(bool begins) { announce("PrepareForShutdown", begins); }

 private:
  static constexpr const char* service = "org.freedesktop.login1";
  static constexpr const char* path = "/org/freedesktop/login1";
  static constexpr const char* manager = "org.freedesktop.login1.Manager";

  void announce(const char* signal, bool begins) {
    is_preparing_ = begins;
    sd_bus_emit_signal(bus_, path, manager, signal, "b", begins ? 1 : 0);
    sd_bus_flush(bus_);
  }

  static int on_call(sd_bus_message* call, void* self, sd_bus_error* error) {
    auto& logind = *static_cast<FakeLogind*>(self);
    if (sd_bus_message_is_method_call(call, "org.freedesktop.DBus.Properties", "Get") > 0)
      return logind.give_property(call);
    if (sd_bus_message_is_method_call(call, manager, "Inhibit") > 0) return logind.give_lock(call, error);
    return 0;
  }

  int give_property(sd_bus_message* call) const {
    const char *interface = nullptr, *name = nullptr;
    if (sd_bus_message_read(call, "ss", &interface, &name) < 0) return -EINVAL;
    if (std::string(name) != "InhibitDelayMaxUSec") return -ENOENT;
    return sd_bus_reply_method_return(call, "v", "t", static_cast<std::uint64_t>(longest_delay_.count()));
  }

  int give_lock(sd_bus_message* call, sd_bus_error* error) {
    if (is_preparing_)
      return sd_bus_error_set(error, "org.freedesktop.login1.OperationInProgress", "it is under way already");
    const char *what = nullptr, *who = nullptr, *why = nullptr, *mode = nullptr;
    if (sd_bus_message_read(call, "ssss", &what, &who, &why, &mode) < 0) return -EINVAL;
    int ends[2];
    if (pipe2(ends, O_CLOEXEC) != 0) return -errno;
    locks_.push_back({what, who, why, mode, ends[0]});
    const int sent = sd_bus_reply_method_return(call, "h", ends[1]);  // a copy of the descriptor
    close(ends[1]);
    return sent;
  }

  const std::chrono::microseconds longest_delay_;
  sd_bus* bus_ = nullptr;
  bool ready_ = false, is_preparing_ = false;
  std::vector<Lock> locks_;
};

}  // namespace neuroshard::test
