// Serves the files of one directory over HTTP, read-only: what `genesis serve` does for nodes that download a
// dataset. GET and HEAD, byte ranges (RFC 9110 §14), strong ETags with If-Range and If-None-Match. No
// listings, no way out of the directory, hidden files are not there.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>

#include "core/base/expected.h"
#include "core/storage/file_env.h"

namespace neuroshard::serve {

struct HttpFileServerOptions {
  std::string directory;
  std::string bind = "127.0.0.1";
  std::uint16_t port = 8000;          // 0: any free one
  std::uint32_t threads = 8;          // connections served at once
  std::uint32_t max_waiting = 64;     // accepted connections; beyond them new ones are not accepted
  std::uint32_t idle_timeout_s = 10;  // of a connection that sends nothing, or takes nothing
};

struct ServedRequest {
  std::string method;
  std::string path;  // as it was asked for
  int status = 0;
  std::uint64_t bytes = 0;  // of the body; of a broken connection, what was meant to be sent
};

// Threads: the server's own; on_request is called from them.
class HttpFileServer {
 public:
  // Listening when it returns. NotFound: no such directory. Unavailable: the port is taken or not ours, with
  // the remedy. `env` outlives the server.
  static Expected<std::unique_ptr<HttpFileServer>> start(
      storage::FileEnv& env, const HttpFileServerOptions& options,
      std::function<void(const ServedRequest&)> on_request = {});
  // Stops accepting, ends open connections, joins.
  virtual ~HttpFileServer() = default;

  virtual std::uint16_t port() const = 0;
  virtual std::string url() const = 0;  // "http://127.0.0.1:8000"
};

// The file that a request's path means, below the directory; empty when it means none: "..", empty or hidden
// parts, backslashes, control characters. `path` is already percent-decoded.
std::string file_of_request(const std::string& path);

}  // namespace neuroshard::serve
