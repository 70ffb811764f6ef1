#include "core/serve/http_file_server.h"

#include <fmt/format.h>
#include <httplib.h>

#include <algorithm>
#include <atomic>
#include <condition_variable>
#include <deque>
#include <filesystem>
#include <mutex>
#include <string_view>
#include <vector>

#include "core/base/executor.h"

namespace neuroshard::serve {
namespace {

constexpr std::size_t send_chunk = 256u << 10;
constexpr auto start_check = std::chrono::milliseconds(1);
constexpr auto stop_check = std::chrono::milliseconds(50);
// Short, because stopping waits for it.
constexpr time_t keep_alive_s = 2;
constexpr std::size_t max_path = 1024;
constexpr std::size_t max_ranges = 1;  // more in one request are answered with the whole file
constexpr std::size_t max_requests_per_connection = 1000;

// httplib's tasks on executors of ours: bounded, where its own pool queues without end.
class BoundedTasks final : public httplib::TaskQueue {
 public:
  BoundedTasks(std::uint32_t threads, std::uint32_t max_waiting, const std::atomic<bool>& stopping_server)
      : max_waiting_(max_waiting), stopping_server_(stopping_server) {
    for (std::uint32_t i = 0; i < threads; ++i) workers_.push_back(make_thread_executor("ns-serve", 2));
    for (auto& worker : workers_) {
      if (!worker->post([this] { run(); })) break;
    }
  }

  // While the queue is full nothing more is accepted, and the kernel's own bounded backlog refuses the rest.
  void enqueue(std::function<void()> task) override {
    std::unique_lock<std::mutex> lock(mutex_);
    while (tasks_.size() >= max_waiting_ && !stopping_server_) room_.wait_for(lock, stop_check);
    tasks_.push_back(std::move(task));
    work_.notify_one();
  }

  void shutdown() override {
    {
      const std::lock_guard<std::mutex> lock(mutex_);
      stopping_ = true;
    }
    work_.notify_all();
    workers_.clear();  // joins
  }

 private:
  void run() {
    while (true) {
      std::function<void()> task;
      {
        std::unique_lock<std::mutex> lock(mutex_);
        work_.wait(lock, [this] { return stopping_ || !tasks_.empty(); });
        if (tasks_.empty()) return;
        task = std::move(tasks_.front());
        tasks_.pop_front();
        room_.notify_one();
      }
      task();
    }
  }

  const std::size_t max_waiting_;
  const std::atomic<bool>& stopping_server_;
  std::mutex mutex_;
  std::condition_variable work_;
  std::condition_variable room_;
  std::deque<std::function<void()>> tasks_;
  bool stopping_ = false;
  std::vector<std::unique_ptr<Executor>> workers_;
};

const char* type_of(std::string_view name) {
  if (name.ends_with(".json") || name.ends_with(".sig")) return "application/json";
  if (name.ends_with(".txt")) return "text/plain; charset=utf-8";
  return "application/octet-stream";
}

// The path is decoded and anybody's: it must not move the operator's cursor or forge a line of the log.
std::string printable(std::string path) {
  path.resize(std::min(path.size(), max_path));
  for (char& c : path) {
    if (static_cast<unsigned char>(c) < 0x20 || static_cast<unsigned char>(c) >= 0x7f) c = '?';
  }
  return path;
}

// Changes whenever the file was written again.
std::string etag_of(const std::string& path, std::uint64_t size) {
  std::error_code error;
  const auto written = std::filesystem::last_write_time(path, error);
  return fmt::format("\"{:x}-{:x}\"", size, error ? 0 : written.time_since_epoch().count());
}

class Server final : public HttpFileServer {
 public:
  Server(storage::FileEnv& env, const HttpFileServerOptions& options,
         std::function<void(const ServedRequest&)> on_request)
      : env_(env), options_(options), on_request_(std::move(on_request)) {}

  ~Server() override {
    stopping_ = true;
    server_.stop();
    listener_.reset();  // joins
  }

  Expected<void> begin() {
    set_up();
    const int bound = options_.port == 0 ? server_.bind_to_any_port(options_.bind)
                      : server_.bind_to_port(options_.bind, options_.port) ? options_.port
                                                                           : -1;
    if (bound <= 0) {
      return make_error(
          ErrorCode::Unavailable,
          fmt::format(
              "can't listen on {}:{}: another program uses it, or it is not permitted; choose another "
              "with --port or --bind",
              options_.bind, options_.port));
    }
    port_ = static_cast<std::uint16_t>(bound);
    listener_ = make_thread_executor("ns-http", 2);
    if (!listener_->post([this] { server_.listen_after_bind(); })) {
      return make_error(ErrorCode::Internal, "the server's thread did not start");
    }
    // httplib ignores a stop that comes before its loop runs.
    std::mutex mutex;
    std::condition_variable never;
    std::unique_lock<std::mutex> lock(mutex);
    while (!server_.is_running()) never.wait_for(lock, start_check);
    return {};
  }

  std::uint16_t port() const override { return port_; }
  std::string url() const override {
    const bool is_v6 = options_.bind.find(':') != std::string::npos;
    return fmt::format("http://{}:{}", is_v6 ? "[" + options_.bind + "]" : options_.bind, port_);
  }

 private:
  void set_up() {
    server_.new_task_queue = [this] {
      return new BoundedTasks(std::max(1u, options_.threads), std::max(1u, options_.max_waiting), stopping_);
    };
    server_.set_keep_alive_max_count(max_requests_per_connection);
    server_.set_keep_alive_timeout(keep_alive_s);
    server_.set_read_timeout(static_cast<time_t>(options_.idle_timeout_s));
    server_.set_write_timeout(static_cast<time_t>(options_.idle_timeout_s));
    server_.set_payload_max_length(0);
    // Two servers must not share a port silently: only an address in TIME_WAIT may be taken again.
    server_.set_socket_options([](socket_t socket) {
      int yes = 1;
      (void)::setsockopt(socket, SOL_SOCKET, SO_REUSEADDR, reinterpret_cast<const char*>(&yes), sizeof yes);
    });
    server_.Get(".*", [this](const httplib::Request& request, httplib::Response& response) {
      answer(request, response);
    });
    server_.set_logger([this](const httplib::Request& request, const httplib::Response& response) {
      if (!on_request_) return;
      std::uint64_t bytes = response.body.size();
      if (response.has_header("Content-Length"))
        bytes = response.get_header_value<std::uint64_t>("Content-Length");
      on_request_(
          {request.method, printable(request.path), response.status, request.method == "HEAD" ? 0 : bytes});
    });
  }

  void refuse(httplib::Response& response, int status, const char* text) {
    response.status = status;
    response.set_content(text, "text/plain; charset=utf-8");
  }

  void answer(const httplib::Request& request, httplib::Response& response) {
    const std::string name = file_of_request(request.path);
    if (name.empty()) return refuse(response, 404, "no such file\n");
    const std::string path = options_.directory + "/" + name;
    auto opened = env_.open_read(path);
    if (!opened.ok()) return refuse(response, 404, "no such file\n");
    const std::shared_ptr<storage::ReadableFile> file = std::move(opened).value();
    const std::uint64_t size = file->size();
    const std::string etag = etag_of(path, size);
    response.set_header("ETag", etag);
    response.set_header("Accept-Ranges", "bytes");
    response.set_header("Cache-Control", "no-cache");
    response.set_header("X-Content-Type-Options", "nosniff");
    if (request.get_header_value("If-None-Match") == etag) {
      response.status = 304;
      return;
    }
    // httplib hands the request on as const although it owns a mutable one; this is the only place to say
    // that the ranges do not apply.
    auto& ranges = const_cast<httplib::Request&>(request).ranges;
    const bool changed = request.has_header("If-Range") && request.get_header_value("If-Range") != etag;
    if (changed || ranges.size() > max_ranges) ranges.clear();
    if (!ranges.empty()) fit(&ranges.front(), size);
    if (!ranges.empty() && !satisfiable(ranges.front(), size)) {
      ranges.clear();
      response.set_header("Content-Range", fmt::format("bytes */{}", size));
      return refuse(response, 416, "the file has no such range\n");
    }
    if (size == 0) {
      response.set_content("", type_of(name));
      return;
    }
    send(file, size, type_of(name), response);
  }

  // A range that reaches beyond the end means up to the end (RFC 9110, 14.1.2).
  static void fit(httplib::Range* range, std::uint64_t size) {
    auto& [first, last] = *range;  // -1: left out
    if (last >= 0 && static_cast<std::uint64_t>(last) >= size) {
      last = static_cast<ssize_t>(size) - (first < 0 ? 0 : 1);
    }
  }

  static bool satisfiable(const httplib::Range& range, std::uint64_t size) {
    const auto [first, last] = range;  // -1: left out
    if (first < 0) return last > 0 && static_cast<std::uint64_t>(last) <= size;
    return static_cast<std::uint64_t>(first) < size &&
           (last < 0 || (last >= first && static_cast<std::uint64_t>(last) < size));
  }

  void send(const std::shared_ptr<storage::ReadableFile>& file, std::uint64_t size, const char* type,
            httplib::Response& response) {
    response.set_content_provider(
        static_cast<std::size_t>(size), type,
        [this, file](std::size_t offset, std::size_t length, httplib::DataSink& sink) {
          if (stopping_) return false;
          Bytes chunk(std::min(length, send_chunk));
          if (!file->read_at(offset, chunk).ok()) return false;
          return sink.write(reinterpret_cast<const char*>(chunk.data()), chunk.size());
        });
  }

  storage::FileEnv& env_;
  const HttpFileServerOptions options_;
  const std::function<void(const ServedRequest&)> on_request_;
  std::atomic<bool> stopping_{false};
  httplib::Server server_;
  std::uint16_t port_ = 0;
  std::unique_ptr<Executor> listener_;  // last: its thread ends before the server goes
};

}  // namespace

std::string file_of_request(const std::string& path) {
  if (path.size() < 2 || path.size() > max_path || path.front() != '/') return {};
  for (const char c : path) {
    if (static_cast<unsigned char>(c) < 0x20 || c == '\\' || c == 0x7f) return {};
  }
  for (std::size_t at = 1; at <= path.size();) {
    const std::size_t slash = std::min(path.find('/', at), path.size());
    if (slash == at || path[at] == '.') return {};
    at = slash + 1;
  }
  return path.substr(1);
}

Expected<std::unique_ptr<HttpFileServer>> HttpFileServer::start(
    storage::FileEnv& env, const HttpFileServerOptions& options,
    std::function<void(const ServedRequest&)> on_request) {
  if (!env.list(options.directory).ok()) {
    return make_error(ErrorCode::NotFound, fmt::format("folder {} not found", options.directory));
  }
  auto server = std::make_unique<Server>(env, options, std::move(on_request));
  NS_RETURN_IF_ERROR(server->begin());
  return std::unique_ptr<HttpFileServer>(std::move(server));
}

}  // namespace neuroshard::serve
