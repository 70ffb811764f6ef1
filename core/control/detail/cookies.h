// The cookies that a call may carry: that of control.json, for the programs of this user, and those of
// invitations.
#pragma once

#include <grpcpp/grpcpp.h>

#include <memory>
#include <mutex>
#include <string>

#include "core/base/clock.h"
#include "core/base/expected.h"
#include "core/control/remote_access.h"

namespace neuroshard::control::detail {

// Threads: any.
class Cookies {
 public:
  // local: control.json's. Invitations are those of the directory, read again at most once a second.
  Cookies(std::string local, std::string data_directory, const Clock& clock);

  const std::string& local() const { return local_; }
  // The id of the caller's invitation; empty: the cookie is control.json's. Denied without a cookie, with a
  // wrong or expired one, and with one whose scope is too small. Cookies are compared in constant time.
  Expected<std::string> check(const grpc::ServerContextBase& context, Scope needed) const;

 private:
  Expected<std::string> check_invited(const std::string& cookie, Scope needed) const;

  const std::string local_, data_directory_;
  const Clock& clock_;
  mutable std::mutex mutex_;
  mutable std::optional<RemoteAccess> access_;
  mutable std::optional<MonotonicTime> looked_;
};

}  // namespace neuroshard::control::detail
