// The local HTTP server of a node: its status, read-only, and text from its model as OpenAI's clients ask for it.
// docs/guide/local-http.md. It listens on 127.0.0.1 only, speaks to nothing but the seam, and has one thread of its
// own, so it never blocks a thread of the core.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>

#include "core/base/clock.h"
#include "core/base/expected.h"
#include "core/base/log.h"
#include "core/node/node.h"

namespace neuroshard::serve {

struct ApiLimits {
  // When all are taken, one that has sent no right key yet makes room: the oldest of the address that has most.
  std::size_t connections = 128;
  // Of one address; beyond them 429.
  std::size_t client_connections = 96;
  std::size_t texts_running = 12;              // at once; the node takes 16, and four are left to its person
  std::size_t client_texts = 32;               // requests for texts that wait or run
  std::uint64_t client_body_bytes = 4u << 20;  // of requests that are not answered yet
  std::uint64_t answer_bytes = 64u << 20;      // of one request, in memory
  std::uint32_t header_bytes = 16u << 10;
  Duration request = std::chrono::seconds(30);  // for a whole request, and between two of a connection
  Duration write = std::chrono::seconds(30);    // in which a client takes what was sent
  std::size_t unsent_bytes = 1u << 20;          // of one stream; then the client is cut off
};

struct ApiOptions {
  std::uint16_t port = 8000;  // 0: any free one
  std::string key;            // of "Authorization: Bearer"; not empty
  ApiLimits limits;
};

class ApiServer {
 public:
  // Listening when it returns, so that the address is known; answers after start(). Unavailable: the port is taken.
  static Expected<std::unique_ptr<ApiServer>> listen(const ApiOptions& options, const Clock& clock,
                                                     Logger& logger);
  // Cancels what it generates, closes all connections, joins.
  virtual ~ApiServer() = default;
  // To be called once. The node outlives the server.
  virtual void start(node::Node& node) = 0;
  // Requests that come from now on need this one; what is under way goes on.  Threads: any.
  virtual void set_key(std::string key) = 0;
  virtual std::uint16_t port() const = 0;
  virtual std::string url() const = 0;  // "http://127.0.0.1:8000"
};

}  // namespace neuroshard::serve
