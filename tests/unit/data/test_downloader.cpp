// Downloads against a server that breaks off, lies, stalls or changes its mind; and the cache that they fill.
#include <httplib.h>

#include <QTemporaryDir>
#include <QtTest>
#include <atomic>
#include <thread>

#include "core/crypto/hash.h"
#include "core/data/downloader.h"
#include "core/data/shard_cache.h"
#include "tests/support/test_main.h"
#include "tests/unit/data/dataset_support.h"

using namespace neuroshard;
using namespace neuroshard::data;
using namespace neuroshard::data::testing;

namespace {

std::string content_of(std::size_t bytes) {
  Rng rng(9);
  std::string text(bytes, '\0');
  for (char& c : text) c = static_cast<char>(rng.next());
  return text;
}

// The behaviour of one answer: the first request gets the first, the last stays.
struct Answer {
  std::string content;
  std::string etag;
  std::size_t break_after = ~std::size_t{0};  // bytes of the body, then the connection ends
  int status = 200;
  bool hang = false;       // send half, then nothing until the test ends
  bool no_length = false;  // the end of the connection is the end of the body
};

class TestServer {
 public:
  explicit TestServer(std::vector<Answer> answers) : answers_(std::move(answers)) {
    server_.set_keep_alive_max_count(1);
    server_.Get("/file", [this](const httplib::Request& request, httplib::Response& response) {
      answer(request, response);
    });
    port_ = server_.bind_to_any_port("127.0.0.1");
    thread_ = std::thread([this] { server_.listen_after_bind(); });
    while (!server_.is_running()) std::this_thread::yield();
  }
  ~TestServer() {
    done_ = true;
    server_.stop();
    thread_.join();
  }
  std::string url() const { return "http://127.0.0.1:" + std::to_string(port_) + "/file"; }
  int requests() const { return requests_; }
  std::vector<std::string> ranges;  // of the requests, "" for none

 private:
  void answer(const httplib::Request& request, httplib::Response& response) {
    const auto number = static_cast<std::size_t>(requests_++);
    const Answer& a = answers_[std::min(number, answers_.size() - 1)];
    ranges.push_back(request.get_header_value("Range"));
    if (a.no_length) {
      const_cast<httplib::Request&>(request).ranges.clear();
      response.status = a.status;
      if (!a.etag.empty()) response.set_header("ETag", a.etag);
      response.set_content_provider("text/plain", [&a](std::size_t offset, httplib::DataSink& sink) {
        const std::size_t end = std::min(a.break_after, a.content.size());
        if (offset >= end) {
          sink.done();
          return true;
        }
        return sink.write(a.content.data() + offset, std::min<std::size_t>(end - offset, 10'000));
      });
      return;
    }
    if (a.status != 200) {
      const_cast<httplib::Request&>(request).ranges.clear();
      response.status = a.status;
      response.set_content("no", "text/plain");
      return;
    }
    if (!a.etag.empty()) response.set_header("ETag", a.etag);
    if (request.has_header("If-Range") && request.get_header_value("If-Range") != a.etag) {
      const_cast<httplib::Request&>(request).ranges.clear();
    }
    auto sent = std::make_shared<std::size_t>(0);
    response.set_content_provider(
        a.content.size(), "application/octet-stream",
        [this, &a, sent](std::size_t offset, std::size_t length, httplib::DataSink& sink) {
          const std::size_t limit = a.hang ? a.content.size() / 2 : a.break_after;
          if (*sent >= limit) {
            while (a.hang && !done_) std::this_thread::yield();
            return false;
          }
          const std::size_t count = std::min({length, std::size_t{10'000}, limit - *sent});
          *sent += count;
          return sink.write(a.content.data() + offset, count);
        });
  }

  const std::vector<Answer> answers_;
  httplib::Server server_;
  int port_ = 0;
  std::atomic<int> requests_{0};
  std::atomic<bool> done_{false};
  std::thread thread_;
};

// Stands still until the transfer hangs; then a minute passes at every look.
class StallClock final : public Clock {
 public:
  explicit StallClock(const std::atomic<bool>& hanging) : hanging_(hanging) {}
  MonotonicTime monotonic_now() const override {
    if (hanging_) ++minutes_;
    return MonotonicTime(std::chrono::minutes(minutes_));
  }
  WallTime wall_now() const override { return WallTime(); }

 private:
  const std::atomic<bool>& hanging_;
  mutable std::atomic<int> minutes_{0};
};

struct Bench {
  QTemporaryDir folder;
  std::unique_ptr<storage::FileEnv> env = storage::make_posix_file_env();
  ManualClock clock;
  std::vector<Duration> pauses;
  Downloader downloader{*env, clock, 1, [this](Duration length, const CancelToken& cancel) {
                          pauses.push_back(length);
                          return !cancel.cancelled();
                        }};
  DownloadOptions options;

  std::string path() const { return folder.filePath("got").toStdString(); }
  DownloadRequest request(const std::string& url, const std::string& content) const {
    DownloadRequest request;
    request.url = url;
    request.path = path();
    request.max_bytes = content.size();
    request.size = content.size();
    request.sha256 = crypto::sha256(as_bytes(std::string_view(content)));
    return request;
  }
  bool got(const std::string& content) const {
    const auto bytes = storage::read_file(*env, path(), 1 << 24);
    return bytes.ok() && as_text(*bytes) == content && !env->exists(path() + ".part") &&
           !env->exists(path() + ".part.etag");
  }
};

}  // namespace

class TestDownloader : public QObject {
  Q_OBJECT

 private Q_SLOTS:
  void initTestCase() {
    for (const char* name : {"http_proxy", "HTTP_PROXY", "all_proxy", "ALL_PROXY"}) qunsetenv(name);
  }

  void whole_file() {
    Bench bench;
    const std::string content = content_of(200'000);
    TestServer server({{content, "\"v1\""}});
    std::uint64_t last = 0;
    const auto result = bench.downloader.fetch(bench.request(server.url(), content), bench.options, {},
                                               [&](std::uint64_t done, std::uint64_t total) {
                                                 QVERIFY(done >= last && total == content.size());
                                                 last = done;
                                               });
    QVERIFY2(result.ok(), result.ok() ? "" : result.error().describe().c_str());
    QVERIFY(bench.got(content));
    QCOMPARE(last, std::uint64_t{200'000});
    QCOMPARE(result->attempts, 1u);
  }

  void cut_off_downloads_go_on_where_they_stopped() {
    Bench bench;
    const std::string content = content_of(200'000);
    TestServer server({{content, "\"v1\"", 50'000}, {content, "\"v1\"", 60'000}, {content, "\"v1\""}});
    const auto result = bench.downloader.fetch(bench.request(server.url(), content), bench.options);
    QVERIFY2(result.ok(), result.ok() ? "" : result.error().describe().c_str());
    QVERIFY(bench.got(content));
    QCOMPARE(result->received_bytes, std::uint64_t{200'000});  // no byte twice
    QCOMPARE(server.ranges.size(), std::size_t{3});
    QCOMPARE(server.ranges[1], std::string("bytes=50000-"));
    QCOMPARE(server.ranges[2], std::string("bytes=110000-"));
  }

  void a_later_call_goes_on_too() {
    Bench bench;
    const std::string content = content_of(100'000);
    bench.options.max_attempts = 1;
    {
      TestServer server({{content, "\"v1\"", 30'000}, {content, "", 0, 503}});
      const auto result = bench.downloader.fetch(bench.request(server.url(), content), bench.options);
      QVERIFY(result.error().code == ErrorCode::Unavailable);
      QVERIFY2(result.error().message.find("30000 bytes are kept") != std::string::npos,
               result.error().message.c_str());
    }
    TestServer server({{content, "\"v1\""}});
    const auto result = bench.downloader.fetch(bench.request(server.url(), content), bench.options);
    QVERIFY(result.ok() && bench.got(content));
    QCOMPARE(result->resumed_from, std::uint64_t{30'000});
    QCOMPARE(result->received_bytes, std::uint64_t{70'000});
  }

  void a_file_that_changed_starts_anew() {
    Bench bench;
    const std::string before = content_of(100'000);
    std::string after = before;
    after[5] = static_cast<char>(after[5] + 1);
    TestServer server({{before, "\"v1\"", 30'000}, {after, "\"v2\""}});
    const auto result = bench.downloader.fetch(bench.request(server.url(), after), bench.options);
    QVERIFY2(result.ok(), result.ok() ? "" : result.error().describe().c_str());
    QVERIFY(bench.got(after));
    QCOMPARE(result->received_bytes, std::uint64_t{130'000});
  }

  void corrupted_files_are_discarded() {
    Bench bench;
    const std::string content = content_of(50'000);
    std::string damaged = content;
    damaged[777] = static_cast<char>(damaged[777] ^ 1);
    {
      TestServer server({{damaged, "\"v1\""}});
      const auto result = bench.downloader.fetch(bench.request(server.url(), content), bench.options);
      QVERIFY(result.error().code == ErrorCode::Corrupt);
      QVERIFY(result.error().message.find("SHA-256") != std::string::npos);
      QCOMPARE(server.requests(), 2);  // bounded
    }
    QVERIFY(!bench.env->exists(bench.path()));
    QVERIFY(!bench.env->exists(bench.path() + ".part"));
    TestServer server({{damaged, "\"v1\""}, {content, "\"v2\""}});
    QVERIFY(bench.downloader.fetch(bench.request(server.url(), content), bench.options).ok());
    QVERIFY(bench.got(content));
  }

  void lies_about_the_size_are_refused() {
    Bench bench;
    const std::string content = content_of(50'000);
    TestServer longer({{content + "x", "\"v1\""}});
    const auto more = bench.downloader.fetch(bench.request(longer.url(), content), bench.options);
    QVERIFY(more.error().code == ErrorCode::Corrupt);
    QVERIFY(more.error().message.find("50001 bytes; 50000 were expected") != std::string::npos);
    TestServer shorter({{content.substr(1), "\"v1\""}});
    const auto less = bench.downloader.fetch(bench.request(shorter.url(), content), bench.options);
    QVERIFY(less.error().code == ErrorCode::Corrupt);
    DownloadRequest capped = bench.request(longer.url(), content);
    capped.size.reset();
    capped.max_bytes = 1000;
    QVERIFY(bench.downloader.fetch(capped, bench.options).error().code == ErrorCode::Corrupt);
    QVERIFY(!bench.env->exists(bench.path() + ".part"));
  }

  void missing_files_are_not_asked_for_again() {
    Bench bench;
    TestServer server({{"", "", 0, 404}});
    const auto result = bench.downloader.fetch(bench.request(server.url(), "x"), bench.options);
    QVERIFY(result.error().code == ErrorCode::NotFound);
    QCOMPARE(server.requests(), 1);
    DownloadRequest file = bench.request("file:///etc/passwd", "x");
    QVERIFY(bench.downloader.fetch(file, bench.options).error().code == ErrorCode::InvalidArgument);
  }

  void busy_servers_are_asked_again_with_growing_pauses() {
    Bench bench;
    TestServer server({{"", "", 0, 503}});
    const auto result = bench.downloader.fetch(bench.request(server.url(), "x"), bench.options);
    QVERIFY(result.error().code == ErrorCode::Unavailable);
    QCOMPARE(server.requests(), static_cast<int>(bench.options.max_attempts));
    QCOMPARE(bench.pauses.size(), static_cast<std::size_t>(bench.options.max_attempts - 1));
    Duration longest = bench.options.first_pause;
    for (const Duration pause : bench.pauses) {
      longest = std::min(longest * 2, bench.options.longest_pause);
      QVERIFY(pause >= longest / 2 && pause <= longest);
    }
  }

  // HTTP/1.0 and some proxies: no length, so that a cut looks like the end.
  void an_early_end_without_a_length_keeps_what_came() {
    Bench bench;
    const std::string content = content_of(90'000);
    TestServer server({{content, "\"v1\"", 40'000, 200, false, true}, {content, "\"v1\""}});
    const auto result = bench.downloader.fetch(bench.request(server.url(), content), bench.options);
    QVERIFY2(result.ok(), result.ok() ? "" : result.error().describe().c_str());
    QVERIFY(bench.got(content));
    QCOMPARE(server.ranges.back(), std::string("bytes=40000-"));
    QCOMPARE(result->received_bytes, static_cast<std::uint64_t>(content.size()));
  }

  void the_page_of_an_error_is_not_read_for_ever() {
    Bench bench;
    bench.options.max_attempts = 1;
    TestServer server({{std::string(40u << 20, 'x'), "", ~std::size_t{0}, 404, false, true}});
    const auto result = bench.downloader.fetch(bench.request(server.url(), "x"), bench.options);
    QVERIFY(!result.ok());
    QVERIFY2(result.error().message.find("endless") != std::string::npos, result.error().message.c_str());
  }

  void nobody_there() {
    Bench bench;
    bench.options.max_attempts = 2;
    const auto result = bench.downloader.fetch(bench.request("http://127.0.0.1:1/file", "x"), bench.options);
    QVERIFY(result.error().code == ErrorCode::Unavailable);
  }

  void a_stalled_server_is_given_up() {
    Bench bench;
    const std::string content = content_of(100'000);
    TestServer server({{content, "\"v1\"", ~std::size_t{0}, 200, true}});
    std::atomic<bool> hanging{false};
    const StallClock clock(hanging);
    Downloader downloader(*bench.env, clock, 1, [](Duration, const CancelToken&) { return false; });
    bench.options.max_attempts = 1;
    std::uint64_t received = 0;
    const auto result = downloader.fetch(bench.request(server.url(), content), bench.options, {},
                                         [&](std::uint64_t done, std::uint64_t) {
                                           received = done;
                                           hanging = done == content.size() / 2;
                                         });
    QVERIFY(result.error().code == ErrorCode::Timeout || result.error().code == ErrorCode::Cancelled);
    QCOMPARE(received, std::uint64_t{50'000});
    QVERIFY(bench.env->exists(bench.path() + ".part"));
  }

  void stops_when_told() {
    Bench bench;
    CancelSource source;
    source.cancel();
    TestServer server({Answer{"x", ""}});
    QVERIFY(bench.downloader.fetch(bench.request(server.url(), "x"), bench.options, source.token())
                .error()
                .code == ErrorCode::Cancelled);
    QCOMPARE(server.requests(), 0);
  }

  void urls() {
    QCOMPARE(resolve_url("http://h/a/manifest.json", "shard_0.pt"), std::string("http://h/a/shard_0.pt"));
    QCOMPARE(resolve_url("http://h/a/manifest.json?v=1/2", "b/c.pt"), std::string("http://h/a/b/c.pt"));
    QCOMPARE(resolve_url("http://h", "shard_0.pt"), std::string("http://h/shard_0.pt"));
    QCOMPARE(resolve_url("http://h/m", "https://other/x"), std::string("https://other/x"));
  }

  void cache_evicts_what_was_used_least_recently() {
    neuroshard::testing::MemoryFileEnv env;
    const auto hash = [](int number) {
      return crypto::sha256(as_bytes(std::string_view(std::to_string(number))));
    };
    {
      const auto cache = ShardCache::open(env, "/cache", 300).value();
      for (int i = 0; i < 3; ++i) {
        QVERIFY(cache->make_room(100).ok());
        put_file(env, cache->path_of(hash(i)), std::string(100, 'x'));
        cache->added(hash(i), 100);
      }
      QVERIFY(cache->touch(hash(0)));
    }
    const auto cache = ShardCache::open(env, "/cache", 300).value();  // the order survives
    QCOMPARE(cache->used_bytes(), std::uint64_t{300});
    QVERIFY(cache->make_room(100).ok());
    QVERIFY(!env.exists(cache->path_of(hash(1))));
    QVERIFY(cache->touch(hash(0)) && cache->touch(hash(2)) && !cache->touch(hash(1)));
    QVERIFY(cache->make_room(301).error().code == ErrorCode::Exhausted);
    QCOMPARE(cache->used_bytes(), std::uint64_t{200});
    QVERIFY(env.remove_file("/cache/cache.json").ok());
    QCOMPARE(ShardCache::open(env, "/cache", 150).value()->used_bytes(), std::uint64_t{100});
  }
};

NS_TEST(TestDownloader)
#include "test_downloader.moc"
