// A publisher's server on this computer: files from memory, with any status; one of them may stall.
#pragma once

#include <httplib.h>

#include <atomic>
#include <map>
#include <string>
#include <thread>
#include <utility>

namespace neuroshard::data::testing {

class StaticServer {
 public:
  struct File {
    std::string content;
    int status = 200;
    bool stalls = false;  // half of it, then nothing until the test ends
  };
  // By path, such as "/manifest.json"; 404 for all others.
  explicit StaticServer(std::map<std::string, File> files) : files_(std::move(files)) {
    server_.set_keep_alive_max_count(1);
    server_.Get("/.*", [this](const httplib::Request& request, httplib::Response& response) {
      answer(request.path, response);
    });
    port_ = server_.bind_to_any_port("127.0.0.1");
    thread_ = std::thread([this] { server_.listen_after_bind(); });
    while (!server_.is_running()) std::this_thread::yield();
  }
  ~StaticServer() {
    done_ = true;
    server_.stop();
    thread_.join();
  }
  std::string url(const std::string& path) const {
    return "http://127.0.0.1:" + std::to_string(port_) + path;
  }
  bool stalled() const { return stalled_; }

 private:
  void answer(const std::string& path, httplib::Response& response) {
    const auto found = files_.find(path);
    if (found == files_.end()) {
      response.status = 404;
      response.set_content("no such file", "text/plain");
      return;
    }
    const File& file = found->second;
    response.status = file.status;
    if (!file.stalls) return response.set_content(file.content, "application/octet-stream");
    response.set_content_provider(file.content.size(), "application/octet-stream",
                                  [this, &file](std::size_t offset, std::size_t, httplib::DataSink& sink) {
                                    const std::size_t half = file.content.size() / 2;
                                    if (offset < half)
                                      return sink.write(file.content.data() + offset, half - offset);
                                    stalled_ = true;
                                    while (!done_) std::this_thread::yield();
                                    return false;
                                  });
  }

  const std::map<std::string, File> files_;
  httplib::Server server_;
  int port_ = 0;
  std::atomic<bool> stalled_{false}, done_{false};
  std::thread thread_;
};

}  // namespace neuroshard::data::testing
