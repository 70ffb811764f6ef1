// Files over HTTP: ranges, ETags, no way out of the directory; and a dataset trained on over the network.
#include <httplib.h>

#include <QTemporaryDir>
#include <QtTest>
#include <mutex>

#include "core/data/loader.h"
#include "core/data/publisher.h"
#include "core/data/remote_dataset.h"
#include "core/serve/http_file_server.h"
#include "tests/support/test_main.h"

using namespace neuroshard;
using namespace neuroshard::serve;

namespace {

void put_file(storage::FileEnv& env, const std::string& path, const std::string& text) {
  NS_CHECK(storage::write_file_atomic(env, path, as_bytes(std::string_view(text)), true).ok());
}

struct Bench {
  QTemporaryDir folder;
  std::unique_ptr<storage::FileEnv> env = storage::make_posix_file_env();
  std::unique_ptr<HttpFileServer> server;

  std::string path(const char* name) const { return folder.filePath(name).toStdString(); }
  void serve(const std::string& directory) {
    HttpFileServerOptions options;
    options.directory = directory;
    options.port = 0;
    options.threads = 4;
    auto started = HttpFileServer::start(*env, options);
    if (!started.ok()) qFatal("%s", started.error().describe().c_str());
    server = std::move(started).value();
  }
  httplib::Result get(const std::string& target, const httplib::Headers& headers = {}) const {
    httplib::Client client("127.0.0.1", server->port());
    return client.Get(target.c_str(), headers);
  }
};

std::string letters(std::size_t count) {
  std::string text(count, ' ');
  for (std::size_t i = 0; i < count; ++i) text[i] = static_cast<char>('a' + i % 26);
  return text;
}

}  // namespace

class TestHttpFileServer : public QObject {
  Q_OBJECT

 private Q_SLOTS:
  void initTestCase() {
    for (const char* name : {"http_proxy", "HTTP_PROXY", "all_proxy", "ALL_PROXY"}) qunsetenv(name);
  }

  void paths() {
    QCOMPARE(file_of_request("/manifest.json"), std::string("manifest.json"));
    QCOMPARE(file_of_request("/a/b.pt"), std::string("a/b.pt"));
    for (const char* bad : {"", "/", "//etc/passwd", "/../x", "/a/../../x", "/a/./b", "/.work/plan.json",
                            "/a//b", "/a/", "manifest.json", "/..\\x", "/a\nb"}) {
      QCOMPARE(file_of_request(bad), std::string());
    }
    QCOMPARE(file_of_request("/" + std::string(5000, 'a')), std::string());
  }

  void files_ranges_and_heads() {
    Bench bench;
    const std::string text = letters(300'000);
    put_file(*bench.env, bench.path("file.json"), text);
    put_file(*bench.env, bench.path("empty.pt"), "");
    bench.serve(bench.folder.path().toStdString());
    const auto whole = bench.get("/file.json");
    QVERIFY(whole);
    QCOMPARE(whole->status, 200);
    QVERIFY(whole->body == text);
    QCOMPARE(whole->get_header_value("Content-Type"), std::string("application/json"));
    const std::string etag = whole->get_header_value("ETag");
    QVERIFY(etag.size() > 2 && etag.front() == '"');

    const auto part = bench.get("/file.json", {{"Range", "bytes=100-199"}});
    QCOMPARE(part->status, 206);
    QVERIFY(part->body == text.substr(100, 100));
    QCOMPARE(part->get_header_value("Content-Range"), std::string("bytes 100-199/300000"));
    const auto rest = bench.get("/file.json", {{"Range", "bytes=299990-"}, {"If-Range", etag}});
    QCOMPARE(rest->status, 206);
    QVERIFY(rest->body == text.substr(299'990));
    const auto changed = bench.get("/file.json", {{"Range", "bytes=299990-"}, {"If-Range", "\"other\""}});
    QCOMPARE(changed->status, 200);
    QVERIFY(changed->body == text);
    QCOMPARE(bench.get("/file.json", {{"Range", "bytes=300000-"}})->status, 416);
    // Ranges that reach beyond the end are cut to it.
    const auto beyond = bench.get("/file.json", {{"Range", "bytes=299990-999999"}});
    QCOMPARE(beyond->status, 206);
    QVERIFY(beyond->body == text.substr(299'990));
    QCOMPARE(beyond->get_header_value("Content-Range"), std::string("bytes 299990-299999/300000"));
    const auto suffix = bench.get("/file.json", {{"Range", "bytes=-999999"}});
    QCOMPARE(suffix->status, 206);
    QVERIFY(suffix->body == text);
    QCOMPARE(bench.get("/file.json", {{"If-None-Match", etag}})->status, 304);

    httplib::Client client("127.0.0.1", bench.server->port());
    const auto head = client.Head("/file.json");
    QCOMPARE(head->status, 200);
    QCOMPARE(head->get_header_value("Content-Length"), std::string("300000"));
    QVERIFY(head->body.empty());
    QCOMPARE(bench.get("/empty.pt")->status, 200);
    QCOMPARE(client.Post("/file.json", "x", "text/plain")->status == 200, false);
  }

  void nothing_outside_the_directory() {
    Bench bench;
    QVERIFY(QDir(bench.folder.path()).mkpath("public/.work"));
    put_file(*bench.env, bench.path("secret"), "secret");
    put_file(*bench.env, bench.path("public/.work/plan.json"), "secret");
    put_file(*bench.env, bench.path("public/file"), "public");
    bench.serve(bench.path("public"));
    QCOMPARE(bench.get("/file")->status, 200);
    for (const char* target : {"/../secret", "/%2e%2e/secret", "/..%2fsecret", "/.work/plan.json", "/",
                               "/nothing", "/file/../../secret", "/%2e%2e%5csecret", "/file%00"}) {
      const auto answer = bench.get(target);
      QVERIFY2(!answer || (answer->status >= 400 && answer->body.find("secret") == std::string::npos),
               target);
    }
  }

  void what_strangers_ask_for_is_logged_as_plain_text() {
    Bench bench;
    HttpFileServerOptions options;
    options.directory = bench.folder.path().toStdString();
    options.port = 0;
    std::mutex mutex;
    std::vector<std::string> logged;
    bench.server = HttpFileServer::start(*bench.env, options, [&](const ServedRequest& request) {
                     const std::lock_guard<std::mutex> lock(mutex);
                     logged.push_back(request.path);
                   }).value();
    QVERIFY(bench.get("/a%1b%5b2J%0a200%20GET%20/forged%ff"));
    bench.server.reset();
    QCOMPARE(logged.size(), std::size_t{1});
    QCOMPARE(logged[0], std::string("/a?[2J?200 GET /forged?"));
  }

  void taken_ports_and_missing_folders_are_said_so() {
    Bench bench;
    bench.serve(bench.folder.path().toStdString());
    HttpFileServerOptions options;
    options.directory = bench.folder.path().toStdString();
    options.port = bench.server->port();
    const auto second = HttpFileServer::start(*bench.env, options);
    QVERIFY(second.error().code == ErrorCode::Unavailable);
    QVERIFY(second.error().message.find("--port") != std::string::npos);
    options.directory += "/nowhere";
    QVERIFY(HttpFileServer::start(*bench.env, options).error().code == ErrorCode::NotFound);
  }

  // Publisher to trainer: built, served, opened, trained on, and still there when the publisher is gone.
  void a_dataset_over_the_network() {
    Bench bench;
    QVERIFY(QDir(bench.folder.path()).mkpath("text"));
    std::string prose;
    for (int i = 0; i < 3000; ++i) prose += "line " + std::to_string(i * i) + " of a long text\n";
    put_file(*bench.env, bench.path("text/a.txt"), prose);
    const SystemClock clock;
    Hash256 seed{};
    const auto key = crypto::KeyPair::from_seed(seed);
    data::PublishOptions publish;
    publish.inputs = {{"lines", bench.path("text")}};
    publish.output_directory = bench.path("out");
    publish.vocabulary = 400;
    publish.shard_tokens = 4000;
    QVERIFY(data::build_dataset(*bench.env, clock, key, publish).ok());
    bench.serve(bench.path("out"));

    data::RemoteDatasetOptions remote;
    remote.manifest_url = bench.server->url() + "/manifest.json";
    remote.cache_directory = bench.path("cache");
    remote.cache_bytes = 100'000;  // three shards
    remote.trust.publisher = key.public_key();
    remote.download.max_attempts = 1;
    NullLogger logger;
    data::LoaderOptions options;
    options.sequence = 32;
    options.batch_tokens = 512;
    std::vector<std::int32_t> tokens;
    {
      auto dataset = data::open_remote_dataset(*bench.env, clock, logger, remote, {});
      QVERIFY2(dataset.ok(), dataset.ok() ? "" : dataset.error().describe().c_str());
      const auto io = make_thread_executor("io", 16);
      const auto loader = data::Loader::create(**dataset, options, io.get()).value();
      for (std::uint64_t step = 0; step < 60; ++step) tokens = loader->next(step).value().tokens;
      QVERIFY(loader->position().shard_index > 3);
      const auto report = data::verify_shards(**dataset, {}, {}).value();
      QCOMPARE(report.bad_shards, std::uint64_t{0});
    }
    std::uint64_t cached = 0;
    const auto files = bench.env->list(bench.path("cache/shards")).value();
    for (const auto& file : files) {
      if (file.name.ends_with(".pt")) cached += file.size;
    }
    QVERIFY(cached > 0 && cached <= remote.cache_bytes);

    data::RemoteDatasetOptions stranger = remote;
    seed[0] = 1;
    stranger.trust.publisher = crypto::KeyPair::from_seed(seed).public_key();
    QVERIFY(data::open_remote_dataset(*bench.env, clock, logger, stranger, {}).error().code ==
            ErrorCode::Denied);

    bench.server.reset();
    const auto offline = data::open_remote_dataset(*bench.env, clock, logger, remote, {});
    QVERIFY2(offline.ok(), "the cached manifest still opens");
    remote.cache_directory = bench.path("other");
    QVERIFY(data::open_remote_dataset(*bench.env, clock, logger, remote, {}).error().code ==
            ErrorCode::Unavailable);
  }
};

NS_TEST(TestHttpFileServer)
#include "test_http_file_server.moc"
