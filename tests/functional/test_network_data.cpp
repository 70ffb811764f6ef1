// Published data in a network of real processes: a node takes tokenizer, manifest and shard from the
// publisher's HTTP server and trains; the server dies; another node with nothing of its own gets all of it
// from the first one and trains on the same text.
#include <QTemporaryDir>
#include <QTest>

#include "tests/support/network_run.h"
#include "tests/support/test_main.h"
#include "tests/support/training_run.h"

using namespace neuroshard::test;  // NOLINT

class TestNetworkData : public QObject {
  Q_OBJECT

  QTemporaryDir folder_;
  QString tracker_at_;

  QString path(const QString& name) const { return folder_.filePath(name); }
  QByteArray content(const QString& name) const {
    QFile file(path(name));
    return file.open(QIODevice::ReadOnly) ? file.readAll() : QByteArray();
  }
  QByteArray log_of(const QString& node) const { return content(node + "/logs/neuroshardd.log"); }
  ProcessResult create(const QStringList& more) const {
    return run_node(QStringList{"network",
                                "create",
                                "--from",
                                "devnet",
                                "--name",
                                "readers",
                                "--out",
                                path("profile.json"),
                                "--layers",
                                "1",
                                "--hidden",
                                "32",
                                "--head-dim",
                                "16",
                                "--vocab",
                                "300",
                                "--experts",
                                "2",
                                "--sequence",
                                "32",
                                "--batch-tokens",
                                "512",
                                "--h",
                                "300",
                                "--grows",
                                "0",
                                "--publisher-key",
                                path("publisher.key"),
                                "--force",
                                "--json"} +
                    more);
  }
  QStringList run_arguments(const QString& node) const {
    return {"run",
            "--json",
            "--data-dir",
            path(node),
            "--profile",
            path("profile.json"),
            "--tracker",
            tracker_at_,
            "--p2p-address",
            "127.0.0.1",
            "--p2p-port",
            "0",
            "--lan",
            "--cpu-threads",
            "1",
            "--eval-interval-steps",
            "0",
            "--checkpoint-min-interval",
            "1d"};
  }
  int step(const QString& node) const {
    const ProcessResult result = run_node({"status", "--json", "--data-dir", path(node)});
    return json_lines(result.out).value(0)["training"].toObject()["step"].toInt();
  }

  bool is_announced(const QString& record) const {
    return run_node({"dht", "get", record, "--json", "--lan", "--profile", path("profile.json"), "--at",
                     tracker_at_})
        .ok();
  }

 private Q_SLOTS:
  void initTestCase() {
    for (const char* name : {"http_proxy", "HTTP_PROXY", "all_proxy", "ALL_PROXY"}) qunsetenv(name);
    QVERIFY(folder_.isValid());
    QFile text(path("text.txt"));
    QVERIFY(text.open(QIODevice::WriteOnly) && text.write(made_up_text(7, 900'000)) > 0);
  }

  void a_node_without_data_gets_it_from_one_that_cached_it() {
    const ProcessResult first = create({});
    QVERIFY2(first.ok(), first.text().constData());
    const QString network = json_lines(first.out).value(0)["network_id"].toString();
    const ProcessResult built =
        run_node({"genesis", "build", path("text.txt"), "--out", path("out"), "--key", path("publisher.key"),
                  "--network", network, "--vocabulary", "300", "--threads", "1", "--json"});
    QVERIFY2(built.ok(), built.text().constData());
    NodeProcess server({"genesis", "serve", path("out"), "--port", "0", "--json"});
    const int port = wait_for_object(server, "port")["port"].toInt();
    QVERIFY(port > 0);
    const ProcessResult made =
        create({"--manifest-url", QString("http://127.0.0.1:%1/manifest.json").arg(port)});
    QVERIFY2(made.ok(), made.text().constData());
    QCOMPARE(json_lines(made.out).value(0)["network_id"].toString(), network);

    NodeProcess tracker({"tracker", "--json", "--profile", path("profile.json"), "--address", "127.0.0.1",
                         "--port", "0", "--lan"});
    const QJsonObject ready = wait_for_object(tracker, "ready");
    QVERIFY2(!ready.isEmpty(), tracker.errors_so_far().constData());
    tracker_at_ = ready["id"].toString() + "@" + ready["address"].toString();
    NodeProcess a(run_arguments("a"));
    QVERIFY2(!wait_for_object(a, "peers").isEmpty(), a.errors_so_far().constData());
    QTRY_VERIFY2_WITH_TIMEOUT(step("a") > 0, log_of("a").constData(), 100'000);
    QVERIFY(!log_of("a").contains("other nodes"));
    server.kill_now();

    NodeProcess b(run_arguments("b"));
    QVERIFY2(!wait_for_object(b, "peers").isEmpty(), b.errors_so_far().constData());
    QTRY_VERIFY2_WITH_TIMEOUT(step("b") > 0, (log_of("b") + b.errors_so_far()).constData(), 100'000);
    const QByteArray log = log_of("b");
    for (const char* told : {"the publisher is not reachable; asking other nodes",
                             "received the publisher's signed manifest from other nodes",
                             "received the tokenizer from other nodes", "received shard 0 from other nodes"})
      QVERIFY2(log.contains(told), log.constData());
    for (const char* file : {"manifest.json", "manifest.json.sig", "tokenizer.json"}) {
      const QByteArray published = content(QString("out/") + file);
      QVERIFY(!published.isEmpty());
      QCOMPARE(content(QString("b/data/published/") + file), published);
    }
    QTRY_VERIFY2_WITH_TIMEOUT(is_announced("/shards/0"), log_of("a").constData(), 60'000);
    for (NodeProcess* node : {&a, &b}) {
      node->terminate();
      const ProcessResult stopped = node->finish();
      QVERIFY2(!stopped.crashed && !stopped.timed_out, stopped.text().constData());
    }
  }
};

NS_TEST(TestNetworkData)
#include "test_network_data.moc"
