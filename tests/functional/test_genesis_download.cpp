// Datasets over the network with real processes: `genesis build`, killed and given again; `genesis serve`,
// killed in the middle of a download, with damaged files, behind a slow line; and what a node makes of it.
#include <QCoreApplication>
#include <QDir>
#include <QJsonArray>
#include <QTemporaryDir>
#include <QtTest>
#include <atomic>
#include <functional>

#include <httplib.h>

#include "core/base/rng.h"
#include "core/crypto/hash.h"
#include "core/data/remote_dataset.h"
#include "tests/support/process.h"
#include "tests/support/test_main.h"

using namespace neuroshard;
using namespace neuroshard::data;
using neuroshard::test::NodeProcess;
using neuroshard::test::ProcessResult;

namespace {

void write_prose(const QString& path, std::uint64_t seed, int bytes) {
  static constexpr const char* words[] = {"river",   "stone", "the", "a",    "light",
                                          "carries", "under", "old", "house"};
  Rng rng(seed);
  QByteArray text;
  while (text.size() < bytes) {
    text += words[rng.below(std::size(words))];
    text += QByteArray::number(static_cast<int>(rng.below(1000)));
    text += rng.below(9) == 0 ? ".\n" : " ";
  }
  QFile file(path);
  if (!file.open(QIODevice::WriteOnly) || file.write(text) != text.size())
    qFatal("can't write the test's text");
}

void flip_byte(const QString& path, qint64 at) {
  QFile file(path);
  if (!file.open(QIODevice::ReadWrite)) qFatal("can't open %s", qPrintable(path));
  file.seek(at);
  char byte = 0;
  file.getChar(&byte);
  file.seek(at);
  file.putChar(static_cast<char>(byte ^ 1));
}

// A line between node and server that lets a few bytes through at a time, or only so many in all.
class SlowLine {
 public:
  SlowLine(int server_port, std::function<void()> after_each_chunk, std::size_t chunk)
      : after_each_chunk_(std::move(after_each_chunk)), chunk_(chunk), client_("127.0.0.1", server_port) {
    server_.Get(".*", [this](const httplib::Request& request, httplib::Response& response) {
      pass(request, response);
    });
    port_ = server_.bind_to_any_port("127.0.0.1");
    thread_ = std::thread([this] { server_.listen_after_bind(); });
    while (!server_.is_running()) std::this_thread::yield();
  }
  ~SlowLine() {
    server_.stop();
    thread_.join();
  }
  std::string url() const { return "http://127.0.0.1:" + std::to_string(port_); }

 private:
  void pass(const httplib::Request& request, httplib::Response& response) {
    const auto answer = client_.Get(request.path.c_str());
    if (!answer || answer->status != 200) {
      response.status = 502;
      return;
    }
    auto body = std::make_shared<std::string>(answer->body);
    response.set_content_provider(
        body->size(), "application/octet-stream",
        [this, body](std::size_t offset, std::size_t length, httplib::DataSink& sink) {
          after_each_chunk_();
          return sink.write(body->data() + offset, std::min(length, chunk_));
        });
  }

  const std::function<void()> after_each_chunk_;
  const std::size_t chunk_;
  httplib::Client client_;
  httplib::Server server_;
  int port_ = 0;
  std::thread thread_;
};

// Moves only when told to, from any thread.
class SharedClock final : public Clock {
 public:
  MonotonicTime monotonic_now() const override { return MonotonicTime(std::chrono::milliseconds(ms_)); }
  WallTime wall_now() const override { return WallTime(std::chrono::milliseconds(1'700'000'000'000)); }
  void advance_ms(std::int64_t by) { ms_ += by; }

 private:
  std::atomic<std::int64_t> ms_{0};
};

}  // namespace

class TestGenesisDownload : public QObject {
  Q_OBJECT

  QTemporaryDir folder_;
  std::unique_ptr<storage::FileEnv> env_ = storage::make_posix_file_env();
  SystemClock clock_;
  NullLogger logger_;
  int caches_ = 0;

  QString path(const QString& name) const { return folder_.filePath(name); }
  QStringList build_arguments(const QString& out) const {
    return {"genesis",      "build", path("text"),     "--out",  path(out),   "--key", path("publisher.key"),
            "--vocabulary", "600",   "--shard-tokens", "200000", "--threads", "2",     "--json"};
  }
  std::unique_ptr<NodeProcess> serve(const QString& directory, int* port, int wanted_port = 0) {
    auto server = std::make_unique<NodeProcess>(
        QStringList{"genesis", "serve", directory, "--port", QString::number(wanted_port), "--json"});
    const auto line = server->next_line(20'000);
    const QJsonObject ready = QJsonDocument::fromJson(line.value_or(QByteArray())).object();
    *port = ready["port"].toInt();
    return server;
  }
  RemoteDatasetOptions remote(int port) {
    RemoteDatasetOptions options;
    options.manifest_url = "http://127.0.0.1:" + std::to_string(port) + "/manifest.json";
    options.cache_directory = path(QString("cache%1").arg(caches_++)).toStdString();
    options.download.max_attempts = 2;
    options.download.first_pause = std::chrono::milliseconds(20);
    return options;
  }
  // A copy of the dataset that a test may damage.
  QString copy_of_dataset(const QString& name) {
    QDir().mkpath(path(name));
    for (const QString& file : QDir(path("out")).entryList(QDir::Files)) {
      QFile::copy(path("out/" + file), path(name + "/" + file));
    }
    return path(name);
  }

 private Q_SLOTS:
  void initTestCase() {
    for (const char* name : {"http_proxy", "HTTP_PROXY", "all_proxy", "ALL_PROXY"}) qunsetenv(name);
    QVERIFY2(QFile::exists(test::node_program()), "neuroshardd is not built");
    QVERIFY(QDir().mkpath(path("text")));
    for (int i = 0; i < 4; ++i)
      write_prose(path(QString("text/%1.txt").arg(i)), static_cast<std::uint64_t>(i), 600'000);
  }

  // Everything in the dataset's folder is served: the signing key must not get there.
  void the_key_is_kept_out_of_the_dataset() {
    const ProcessResult refused = test::run_node({"genesis", "build", path("text"), "--out", path("leak"),
                                                  "--key", path("leak/../leak/publisher.key")});
    QCOMPARE(refused.exit_code, 64);
    QVERIFY2(refused.err.contains("keep the key elsewhere"), refused.text());
    QVERIFY(!QFile::exists(path("leak/publisher.key")));
  }

  // Such a link names a volume that is not mounted now: a new key would take its place.
  void a_key_behind_a_broken_link_is_not_replaced() {
    const QString link = path("unmounted.key");
    QVERIFY(QFile::link(path("volume/secret.key"), link));
    const QList<QStringList> commands{
        {"genesis", "build", path("text"), "--out", path("unmade"), "--key", link},
        {"tracker", "--profile", "devnet", "--address", "127.0.0.1", "--port", "0", "--lan", "--key", link}};
    for (const QStringList& words : commands) {
      const ProcessResult refused = test::run_node(words, 10'000);
      QVERIFY2(!refused.timed_out && refused.exit_code > 0, refused.text());
      QVERIFY2(refused.err.contains("unmounted.key"), refused.text());
      QVERIFY(QFileInfo(link).isSymLink());
    }
  }

  // kill -9 after the first shards; the same command keeps them and ends with a good dataset.
  void build_killed_and_given_again() {
    {
      NodeProcess build(build_arguments("out"));
      QVERIFY(build.started());
      while (const auto line = build.next_line(30'000)) {
        if (QJsonDocument::fromJson(*line).object()["shards"].toInt() >= 1) break;
      }
      build.kill_now();
    }
    const QFileInfo kept(path("out/shard_0.pt"));
    QVERIFY(kept.exists());
    const QDateTime written = kept.lastModified();
    const ProcessResult again = test::run_node(build_arguments("out"));
    QVERIFY2(again.ok(), again.text());
    const QJsonObject built = test::json_lines(again.out).last();
    QCOMPARE(built["event"].toString(), QString("built"));
    QVERIFY(built["shards"].toInt() >= 4);
    if (!built["already_complete"].toBool()) QVERIFY(built["shards_kept"].toInt() >= 1);
    QCOMPARE(QFileInfo(path("out/shard_0.pt")).lastModified(), written);
    QCOMPARE(QFile::permissions(path("publisher.key")) & (QFile::ReadGroup | QFile::ReadOther),
             QFile::Permissions());

    const ProcessResult verified = test::run_node(
        {"genesis", "verify", path("out"), "--publisher", built["publisher"].toString(), "--json"});
    QVERIFY2(verified.ok(), verified.text());
    QCOMPARE(test::json_lines(verified.out).last()["good"].toBool(), true);
    const ProcessResult stranger =
        test::run_node({"genesis", "verify", path("out"), "--publisher", QString(64, 'a'), "--json"});
    QVERIFY(!stranger.ok());
  }

  void served_datasets_verify() {
    int port = 0;
    const auto server = serve(path("out"), &port);
    QVERIFY(port > 0);
    const ProcessResult result = test::run_node(
        {"genesis", "verify", QString("http://127.0.0.1:%1").arg(port), "--cache", path("verify"), "--json"});
    QVERIFY2(result.ok(), result.text());
    QCOMPARE(test::json_lines(result.out).last()["good"].toBool(), true);
    server->terminate();
    QVERIFY(server->finish(20'000).ok());
  }

  // The server dies in the middle of a file and comes back: the rest is fetched, no byte twice. The file is
  // larger than what the kernel's buffers could still deliver after the server's death.
  void server_killed_in_the_middle() {
    Bytes content(40'000'000);
    Rng rng(3);
    for (std::size_t i = 0; i + 8 <= content.size(); i += 8) store_le(content.data() + i, rng.next());
    QVERIFY(QDir().mkpath(path("large")));
    QVERIFY(storage::write_file_atomic(*env_, path("large/shard_0.pt").toStdString(), content).ok());
    int port = 0;
    auto server = serve(path("large"), &port);
    DownloadRequest request;
    request.url = "http://127.0.0.1:" + std::to_string(port) + "/shard_0.pt";
    request.path = path("shard").toStdString();
    request.max_bytes = content.size();
    request.size = content.size();
    request.sha256 = crypto::sha256(content);
    int pauses = 0;
    Downloader downloader(*env_, clock_, 1, [&](Duration, const CancelToken&) {
      ++pauses;
      if (!server) server = serve(path("large"), &port, port);
      return true;
    });
    bool killed = false;
    const auto result = downloader.fetch(request, {}, {}, [&](std::uint64_t received, std::uint64_t) {
      if (killed || received < 1'000'000) return;
      killed = true;
      server->kill_now();
      server.reset();
    });
    QVERIFY2(result.ok(), result.ok() ? "" : result.error().describe().c_str());
    QVERIFY(killed && pauses >= 1 && result->attempts >= 2);
    QCOMPARE(result->received_bytes, static_cast<std::uint64_t>(content.size()));
    QVERIFY(storage::read_file(*env_, request.path, content.size()).value() == content);
  }

  void damaged_shards_are_refused_and_not_used() {
    const QString copy = copy_of_dataset("damaged");
    flip_byte(copy + "/shard_0.pt", 5000);
    int port = 0;
    const auto server = serve(copy, &port);
    const RemoteDatasetOptions options = remote(port);
    const auto dataset = open_remote_dataset(*env_, clock_, logger_, options, {}).value();
    const auto shard = dataset->load(0, {});
    QVERIFY(shard.error().code == ErrorCode::Unavailable);  // the server may give the right one later
    QVERIFY2(shard.error().describe().find("shard 0") != std::string::npos, shard.error().describe().c_str());
    QVERIFY(dataset->load(1, {}).ok());
    const auto files = env_->list(options.cache_directory + "/shards").value();
    QCOMPARE(std::count_if(files.begin(), files.end(), [](const auto& f) { return f.name.ends_with(".pt"); }),
             1);
    const ProcessResult verified = test::run_node({"genesis", "verify", copy, "--json"});
    QCOMPARE(verified.exit_code, 1);
    QCOMPARE(test::json_lines(verified.out).last()["bad_shards"].toInt(), 1);
  }

  void changed_manifests_are_refused() {
    const QString copy = copy_of_dataset("changed");
    QFile file(copy + "/manifest.json");
    QVERIFY(file.open(QIODevice::ReadWrite));
    QByteArray text = file.readAll();
    text.replace("\"source\": \"text\"", "\"source\": \"test\"");
    file.resize(0);
    file.seek(0);
    file.write(text);
    file.close();
    int port = 0;
    const auto server = serve(copy, &port);
    const auto dataset = open_remote_dataset(*env_, clock_, logger_, remote(port), {});
    QVERIFY(dataset.error().code == ErrorCode::Denied);
    QVERIFY(dataset.error().message.find("signature") != std::string::npos);
  }

  // The publisher signs a size that the file does not have.
  void manifests_that_lie_about_sizes_are_refused() {
    const QString copy = copy_of_dataset("longer");
    QFile file(copy + "/shard_0.pt");
    QVERIFY(file.open(QIODevice::Append));
    file.write("more");
    file.close();
    int port = 0;
    const auto server = serve(copy, &port);
    const auto dataset = open_remote_dataset(*env_, clock_, logger_, remote(port), {}).value();
    const auto shard = dataset->load(0, {});
    QVERIFY(shard.error().code == ErrorCode::Unavailable);
    QVERIFY2(shard.error().message.find("were expected") != std::string::npos, shard.error().message.c_str());
  }

  // Hours for one shard are fine while bytes come: the time-out is about progress, not about speed.
  void slow_lines_are_waited_for() {
    int port = 0;
    const auto server = serve(path("out"), &port);
    SharedClock clock;
    const SlowLine line(
        port, [&clock] { clock.advance_ms(5'000); }, 4'000);
    RemoteDatasetOptions options = remote(port);
    options.manifest_url = line.url() + "/manifest.json";
    options.download.no_progress_timeout = std::chrono::seconds(90);
    options.download.max_attempts = 1;
    const auto dataset = open_remote_dataset(*env_, clock, logger_, options, {});
    QVERIFY2(dataset.ok(), dataset.ok() ? "" : dataset.error().describe().c_str());
    QVERIFY((*dataset)->load(0, {}).ok());
    QVERIFY(clock.monotonic_now() > MonotonicTime(std::chrono::minutes(15)));
  }
};

NS_TEST(TestGenesisDownload)
#include "test_genesis_download.moc"
