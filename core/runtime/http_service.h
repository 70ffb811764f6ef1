// The local HTTP server of a running node: follows the settings http, http_port and http_key_file while the node
// runs, and keeps the key's file. A port that is taken is a trouble that view() names; the server tries it again
// every three seconds.
//
// Threads: any. It ends before the node.
#pragma once

#include <memory>
#include <mutex>
#include <string>

#include "core/base/executor.h"
#include "core/config/settings.h"
#include "core/node/node.h"
#include "core/runtime/runtime_services.h"
#include "core/serve/api_server.h"

namespace neuroshard::runtime {

class HttpService {
 public:
  static constexpr Duration retry_period = std::chrono::seconds(3);

  // Listens when the settings say so, and answers after start(). directory: the data directory's path.
  HttpService(std::string directory, const config::Settings& settings, const RuntimeServices& services);
  ~HttpService();
  HttpService(const HttpService&) = delete;
  HttpService& operator=(const HttpService&) = delete;

  // Once. The node outlives stop().
  void start(node::Node& node);
  // Opens, moves or closes the server; done when it returns. Closing ends all of its connections.
  void apply(const config::Settings& settings);
  // Tries again when that is due. To be called often.
  void poll();
  // For good; before the node ends.
  void stop();

  node::HttpView view() const;
  // Node::http_key().
  void key(node::HttpKeyAction action, node::Reply<node::HttpKey> reply);

 private:
  struct Wanted {
    bool on = false;
    std::uint16_t port = 0;
    std::string key_file;  // absolute; empty: the setting is empty
    bool operator==(const Wanted&) const = default;
  };
  Wanted wanted_by(const config::Settings& settings) const;
  void open();  // under the lock, as all below
  void show();
  Expected<std::unique_ptr<serve::ApiServer>> listen() const;
  Expected<node::HttpKey> change_key(node::HttpKeyAction action);

  const std::string directory_;
  const RuntimeServices services_;
  mutable std::mutex mutex_;
  Wanted wanted_;
  node::Node* node_ = nullptr;
  std::unique_ptr<serve::ApiServer> server_;  // null: off, or in trouble
  std::string trouble_;
  bool stopped_ = false;
  MonotonicTime next_try_{};       // while there is trouble
  mutable std::mutex view_mutex_;  // never held for long
  node::HttpView view_;
  std::unique_ptr<Executor> thread_;  // files of keys; last: ends first
};

}  // namespace neuroshard::runtime
