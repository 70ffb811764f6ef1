// Small files from a web server. Behind an interface, so that tests need no server.
#pragma once

#include <memory>
#include <string>

#include "core/base/bytes.h"
#include "core/base/cancel.h"
#include "core/base/clock.h"
#include "core/base/expected.h"

namespace neuroshard::release {

// Of one file. A list of sums has some hundred bytes, its signature a few hundred.
inline constexpr std::size_t max_file_bytes = 64 << 10;

class Source {
 public:
  virtual ~Source() = default;
  // Waits for the whole file. Unavailable: the server cannot be reached, or it answers with an error. Timeout.
  // Corrupt: more than max_file_bytes. Cancelled: within a second of the token.  Threads: one at a time.
  virtual Expected<Bytes> fetch(const std::string& url, const CancelToken& cancel) = 0;
};

struct WebLimits {
  Duration connect = std::chrono::seconds(15);
  Duration whole = std::chrono::seconds(40);  // of one file, redirects included
};

// HTTP with libcurl. The request has a Host and an "Accept: */*", nothing else: no name of the program, no
// cookie. Redirects lead to https only.
std::unique_ptr<Source> make_web_source(const WebLimits& limits = {});

}  // namespace neuroshard::release
