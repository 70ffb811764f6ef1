// State that the connections of one ApiServer share. Threads: the server's, apart from Gate.
#pragma once

#include <boost/asio/io_context.hpp>
#include <boost/asio/post.hpp>
#include <functional>
#include <list>
#include <memory>
#include <mutex>
#include <string>

#include "core/serve/api_server.h"
#include "core/serve/client_table.h"
#include "core/serve/openai_request.h"
#include "core/serve/status_pages.h"
#include "core/serve/text_queue.h"

namespace neuroshard::serve::detail {

// The way from the node's threads to the server's; closed before the server ends.  Threads: any.
class Gate {
 public:
  explicit Gate(boost::asio::io_context& io) : io_(&io) {}
  void post(std::function<void()> task) {
    const std::lock_guard lock(mutex_);
    if (io_ != nullptr) boost::asio::post(*io_, std::move(task));
  }
  void close() {
    const std::lock_guard lock(mutex_);
    io_ = nullptr;
  }

 private:
  std::mutex mutex_;
  boost::asio::io_context* io_;
};

class Connection;

struct ApiState {
  ApiState(const ApiOptions& given, const Clock& its_clock, Logger& its_logger, boost::asio::io_context& io)
      : options(given),
        key(given.key),
        clock(its_clock),
        logger(its_logger),
        gate(std::make_shared<Gate>(io)) {}

  const ApiOptions options;
  std::string key;  // the one that holds now
  const Clock& clock;
  Logger& logger;
  const std::shared_ptr<Gate> gate;
  std::uint16_t port = 0;
  node::Node* node = nullptr;  // null before start()
  std::unique_ptr<TextQueue> texts;
  ClientTable clients;
  std::list<std::shared_ptr<Connection>> connections;  // the oldest first
  ServerFigures figures;
  std::uint64_t next_id = 1;
};

struct Route {
  const char* method;
  const char* path;
  const char* summary;
  bool needs_key;
  TextKind kind = TextKind::Completion;  // of a POST
};
// All that the server answers, in the order of its description.
const std::vector<Route>& routes();

}  // namespace neuroshard::serve::detail
