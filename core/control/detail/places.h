// How many calls of a kind may last at the same time. Invited programs have places of their own, so they take
// none of this user's programs.
#pragma once

#include <cstddef>
#include <map>
#include <mutex>
#include <string>

namespace neuroshard::control::detail {

// Threads: any. No call waits.
class Places {
 public:
  // own: of all programs of this user together. invited: of all invited programs together; one invitation has
  // half of them at most, rounded up.
  Places(std::size_t own, std::size_t invited) : own_(own), invited_(invited) {}

  // invitation: its id; empty: a program of this user. False: no place is free.
  [[nodiscard]] bool take(const std::string& invitation);
  // A place that take() gave to the same invitation.
  void give_back(const std::string& invitation);

 private:
  const std::size_t own_, invited_;
  std::mutex mutex_;
  std::map<std::string, std::size_t> taken_;  // by invitation
  std::size_t taken_by_invited_ = 0;
};

// One of these places, while it lives. `places` outlives it.
class Place {
 public:
  Place(Places& places, std::string invitation);
  ~Place();
  Place(const Place&) = delete;
  Place& operator=(const Place&) = delete;
  bool ok() const { return ok_; }

 private:
  Places& places_;
  const std::string invitation_;
  const bool ok_;
};

}  // namespace neuroshard::control::detail
