// A web server on this computer with a place of releases, or something that only pretends to be one.
#pragma once

#include <httplib.h>

#include <map>
#include <mutex>
#include <set>
#include <string>
#include <thread>
#include <vector>

namespace neuroshard::test {

class ReleaseServer {
 public:
  ReleaseServer() {
    server_.set_keep_alive_max_count(1);
    server_.Get("/.*", [this](const httplib::Request& request, httplib::Response& response) {
      answer(request, response);
    });
    port_ = server_.bind_to_any_port("127.0.0.1");
    thread_ = std::thread([this] { server_.listen_after_bind(); });
    while (!server_.is_running()) std::this_thread::yield();
  }
  ~ReleaseServer() {
    {
      const std::lock_guard lock(mutex_);
      done_ = true;
    }
    server_.stop();
    thread_.join();
  }

  std::string url() const { return "http://127.0.0.1:" + std::to_string(port_) + "/releases"; }
  // Served from now on; "hang" answers nothing until the test ends, "endless" sends
  // bytes for ever, "to:URL" redirects.
  void put(const std::string& name, const std::string& content) {
    const std::lock_guard lock(mutex_);
    files_["/releases/" + name] = content;
  }
  void put_release(const std::string& list, const std::string& signature) {
    put("SHA256SUMS", list);
    put("SHA256SUMS.minisig", signature);
  }
  // Paths in the order of the requests.
  std::vector<std::string> requests() const {
    const std::lock_guard lock(mutex_);
    return requests_;
  }
  // The names of the headers that any request had.
  std::set<std::string> headers() const {
    const std::lock_guard lock(mutex_);
    return headers_;
  }

 private:
  void answer(const httplib::Request& request, httplib::Response& response) {
    std::string content;
    {
      const std::lock_guard lock(mutex_);
      requests_.push_back(request.path);
      for (const auto& [name, value] : request.headers)
        if (name != "REMOTE_ADDR" && name != "REMOTE_PORT" && name != "LOCAL_ADDR" && name != "LOCAL_PORT")
          headers_.insert(name);  // those are the library's own
      const auto file = files_.find(request.path);
      if (file == files_.end()) {
        response.status = 404;
        return;
      }
      content = file->second;
    }
    while (content == "hang" && !is_done()) std::this_thread::yield();
    if (content == "endless") {
      response.set_content_provider("text/plain", [](std::size_t, httplib::DataSink& sink) {
        return sink.write("xxxxxxxxxxxxxxxx", 16);
      });
    } else if (content.rfind("to:", 0) == 0) {
      response.set_redirect(content.substr(3));
    } else {
      response.set_content(content, "text/plain");
    }
  }
  bool is_done() const {
    const std::lock_guard lock(mutex_);
    return done_;
  }

  mutable std::mutex mutex_;
  httplib::Server server_;
  int port_ = 0;
  bool done_ = false;
  std::map<std::string, std::string> files_;
  std::vector<std::string> requests_;
  std::set<std::string> headers_;
  std::thread thread_;
};

}  // namespace neuroshard::test
