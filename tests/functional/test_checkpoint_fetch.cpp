// A checkpoint of a network that trains on, with a round a second and one checkpoint kept: fetched
// from the node that made it, from one that imported it, and from one that lies, of which the second is
// killed in the middle. Then some of its slots alone. The result opens.
#include <sys/file.h>

#include <QFile>
#include <QTest>

#include "tests/support/rounds_run.h"
#include "tests/support/test_main.h"

using namespace neuroshard::test;  // NOLINT

class TestCheckpointFetch : public QObject {
  Q_OBJECT

  RoundsRun net_;
  QString id_, name_;  // of the checkpoint

  QStringList fetching(const QString& into, const QStringList& words) const {
    return QStringList{"checkpoint", "fetch"} + words +
           QStringList{"--json",       "--data-dir", net_.path(into), "--profile",
                       net_.profile(), "--lan",      "--at",          net_.tracker_at()};
  }
  QList<QJsonObject> listed(const QString& node) const {
    return json_lines(run_node({"checkpoint", "list", "--json", "--data-dir", net_.path(node)}).out);
  }
  qint64 size_of(const QString& file) const {
    return QFileInfo(net_.path("c/fetched/" + id_.left(16) + "/" + file)).size();
  }
  // In the data directory that it was imported into.
  void verify_imported(const ProcessResult& fetched) {
    QVERIFY2(fetched.ok(), fetched.text().constData());
    for (const QJsonObject& line : json_lines(fetched.out))
      if (line.contains("imported")) imported_ = line["imported"].toString();
    QVERIFY2(!imported_.isEmpty(), fetched.text().constData());
    const ProcessResult good = run_node({"checkpoint", "verify", imported_, "--data-dir", net_.path("c")});
    QVERIFY2(good.ok(), good.text().constData());
  }
  QString imported_;

 private Q_SLOTS:
  void initTestCase() {
    net_.hidden = "64";
    net_.node_words = QStringList{"--checkpoint-keep-last", "1", "--upload-limit", "2MiB"};
    // 5 MB with the moments: 20 pieces.
    const QByteArray trouble = net_.make("givers", "20", {"--ffn-percent", "1600"});
    QVERIFY2(trouble.isEmpty(), trouble.constData());
    const QByteArray begun = net_.start("a");
    QVERIFY2(begun.isEmpty(), begun.constData());
    net_.launch("b");
    net_.launch("l", "text", {"pieces"});
    for (const QString node : {"b", "l"}) {
      const QByteArray joined = net_.joined(node);
      QVERIFY2(joined.isEmpty(), joined.constData());
    }
  }

  void several_nodes_have_it() {
    QList<QJsonObject> offers;
    QTRY_VERIFY2_WITH_TIMEOUT((offers = json_lines(run_node(fetching("c", {})).out), !offers.isEmpty()),
                              "nothing is offered", RoundsRun::patience_ms);
    id_ = offers.first()["id"].toString();
    name_ = offers.first()["name"].toString();
    QString maker;
    for (const QString node : {"a", "b", "l"})
      for (const QJsonObject& entry : listed(node))
        if (entry["name"].toString() == name_) maker = node;
    QVERIFY(!maker.isEmpty());
    // By hand, byte for byte, to the others: it is theirs to give under the same id.
    const ProcessResult out = run_node({"checkpoint", "export", name_, "--format", "checkpoint", "--out",
                                        net_.path("copy"), "--data-dir", net_.path(maker)});
    QVERIFY2(out.ok(), out.text().constData());
    for (const QString node : {"a", "b", "l"}) {
      if (node == maker) continue;
      const ProcessResult in =
          run_node({"checkpoint", "import", net_.path("copy"), "--data-dir", net_.path(node)});
      QVERIFY2(in.ok(), in.text().constData());
    }
    QTRY_VERIFY_WITH_TIMEOUT(json_lines(run_node({"dht", "get", "/checkpoints/" + id_, "--json", "--lan",
                                                  "--profile", net_.profile(), "--at", net_.tracker_at()})
                                            .out)
                                     .size() >= 3,
                             RoundsRun::patience_ms);
    // The network has gone on, and the node that made it keeps one checkpoint beside it.
    QTRY_VERIFY_WITH_TIMEOUT(listed(maker).value(0)["name"].toString() != name_, RoundsRun::patience_ms);
    const QList<QJsonObject> kept = listed(maker);
    QVERIFY(std::any_of(kept.begin(), kept.end(),
                        [this](const QJsonObject& e) { return e["name"].toString() == name_; }));
  }

  // Their records, which the tracker gives to others, say what they hold.
  void who_trains_says_so() {
    QTRY_VERIFY_WITH_TIMEOUT(([this] {
                               const QList<QJsonObject> known = peers(net_.profile(), net_.tracker_at());
                               return std::any_of(known.begin(), known.end(), [](const QJsonObject& node) {
                                 return node["slots"].toInt() == 5 && node["memory_bytes"].toDouble() > 0;
                               });
                             }()),
                             RoundsRun::patience_ms);
    // So does the hash table, layer by layer and expert by expert.
    const auto holders = [this](const QString& of) {
      const QStringList words{"dht",          "get",   of,     "--json",         "--profile",
                              net_.profile(), "--lan", "--at", net_.tracker_at()};
      return json_lines(run_node(words).out).size();
    };
    QTRY_COMPARE_WITH_TIMEOUT(holders("/layers/0"), 3, RoundsRun::patience_ms);
    QTRY_COMPARE_WITH_TIMEOUT(holders("/experts/0/1"), 3, RoundsRun::patience_ms);
    QCOMPARE(holders("/layers/1"), 0);
  }

  void all_of_it_although_one_is_killed_and_one_lies() {
    QVERIFY(!id_.isEmpty());
    NodeProcess fetch(fetching("c", {id_}));
    QTRY_VERIFY_WITH_TIMEOUT(size_of("optimizer.safetensors.part") > 0 || !fetch.running(),
                             RoundsRun::patience_ms);
    net_.node("b").kill_now();
    const ProcessResult done = fetch.finish(RoundsRun::patience_ms);
    verify_imported(done);
    int nodes = 0, liars = 0;
    for (const QJsonObject& line : json_lines(done.out)) {
      nodes = std::max(nodes, line["nodes"].toInt());
      liars = std::max(liars, line["liars"].toInt());
    }
    QVERIFY2(nodes >= 2 && liars == 1, done.text().constData());
    QVERIFY(imported_.startsWith(name_.left(10)));
    QVERIFY(!QFile::exists(net_.path("c/fetched/" + id_.left(16))));
  }

  void some_slots_of_it() {
    QVERIFY(!id_.isEmpty());
    verify_imported(run_node(fetching("c", {id_, "--slot", "layer 0", "--slot", "expert 0.1"})));
    // Nothing that training could continue from.
    const ProcessResult refused =
        run_node({"checkpoint", "restore", imported_, "--data-dir", net_.path("c")});
    QVERIFY(!refused.ok());
    QVERIFY2(refused.err.contains("holds 2 of the model's 5 slots"), refused.text().constData());
  }

  // Each would remove the files of the other.
  void a_second_fetch_at_the_same_time_is_refused() {
    QVERIFY(!id_.isEmpty());
    QFile lock(net_.path("c/fetched/lock"));
    QVERIFY(lock.open(QIODevice::ReadWrite | QIODevice::ExistingOnly));
    QCOMPARE(flock(lock.handle(), LOCK_EX | LOCK_NB), 0);
    const ProcessResult refused = run_node(fetching("c", {id_}));
    QVERIFY(!refused.ok());
    QVERIFY2(refused.err.contains("another fetch may be under way"), refused.text().constData());
  }

  void who_gives_no_files_offers_none() {
    net_.kill_all();
    net_.node_words << "--serve-files"
                    << "off";
    const QByteArray begun = net_.start("a");
    QVERIFY2(begun.isEmpty(), begun.constData());
    const ProcessResult nothing = run_node(fetching("c", {}));
    QVERIFY(!nothing.ok());
    QVERIFY2(nothing.err.contains("no reachable node offers a checkpoint"), nothing.text().constData());
  }
};

NS_TEST(TestCheckpointFetch)
#include "test_checkpoint_fetch.moc"
