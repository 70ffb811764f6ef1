// Real processes of a network whose members hold parts of the model (sync "parts=2"): each trains its half through a
// pipeline with the others, and the rounds merge the halves of those that hold the same one.
#include <QTest>
#include <cmath>

#include "tests/support/rounds_run.h"
#include "tests/support/test_main.h"
#include "tests/support/until.h"

using namespace neuroshard::test;  // NOLINT

class TestRoundsParts : public QObject {
  Q_OBJECT
 private Q_SLOTS:
  void initTestCase() {
    run_.founder = "a";
    run_.model = RoundsRun::model_of_two_layers();
    run_.eval_interval = "50";
    const QByteArray trouble = run_.make("parts", "200", {"--sync", "parts=2"});
    QVERIFY2(trouble.isEmpty(), trouble.constData());
  }

  void a_part_that_the_model_lacks_is_refused() {
    run_.node_words = QStringList{"--part", "9"};
    QCOMPARE(run_.start("a"), QByteArray());
    QJsonObject seen;
    const auto failed = [&] {
      seen = run_.status("a");
      return seen["state"].toString() == "failed";
    };
    QVERIFY2(neuroshard::testing::seen_once(failed, RoundsRun::patience_ms), qPrintable(text_of(seen)));
    QVERIFY2(text_of(seen).contains("no part 9. Its parts are 1: embedding, layer 0; 2: layer 1, head."),
             qPrintable(text_of(seen)));
    run_.node("a").terminate();
    run_.node("a").finish();
    QCOMPARE(kept_part("a"), QByteArray("0"));  // a mistake is not kept
  }

  void two_halves_train_as_one_model() {
    start("a", 1);
    start("b", 2);
    QVERIFY(run_.together({"a", "b"}));
    QVERIFY(run_.together({"a", "b"}, run_.round("a") + 3));
    for (const char* name : {"a", "b"}) {
      const QJsonObject seen = run_.rounds(name);
      QVERIFY2(seen["contributed"].toInt() >= 3 && seen["corruptions"].toInt() == 0,
               qPrintable(text_of(seen)));
    }
    // Each knows how long the parts take for its text.
    for (const char* name : {"a", "b"}) {
      const auto timed = [&] {
        const QJsonArray path = part(name)["path"].toArray();
        return path.size() == 2 && path[0]["computing_ms"].toDouble() > 0 &&
               path[1]["computing_ms"].toDouble() > 0 && path[1]["between_ms"].toDouble() > 0;
      };
      QVERIFY2(neuroshard::testing::seen_once(timed, RoundsRun::patience_ms),
               qPrintable(text_of(part(name))));
    }
    QCOMPARE(kept_part("a"), QByteArray("1"));
    QCOMPARE(kept_part("b"), QByteArray("2"));
    // Each has the anchors of its half only.
    QVERIFY(QFile::exists(run_.path("a") + "/chain/row-0") &&
            !QFile::exists(run_.path("a") + "/chain/row-1"));
    QVERIFY(QFile::exists(run_.path("b") + "/chain/row-1") &&
            !QFile::exists(run_.path("b") + "/chain/row-0"));
    QVERIFY(run_.certified("a", 1).size() >= 3 && run_.certified("a", 2).isEmpty());
    QVERIFY(run_.certified("b", 2).size() >= 3 && run_.certified("b", 1).isEmpty());
  }

  // Both ends see the loss of the whole model.
  void the_loss_falls() {
    const double begun = std::log(300.0);  // of a model that knows nothing of its vocabulary
    for (const char* name : {"a", "b"}) {
      double loss = 0;
      const auto fallen = [&] {
        loss = run_.status(name)["training"].toObject()["last_step"].toObject()["loss"].toDouble();
        return loss > 0 && loss < 0.8 * begun;
      };
      QVERIFY2(neuroshard::testing::seen_once(fallen, RoundsRun::patience_ms),
               QByteArray::number(loss).constData());
    }
  }

  // Of text that nobody trains on, by the anchors of both halves.
  void the_held_out_loss_falls_too() {
    for (const char* name : {"a", "b"}) {
      double loss = 0;
      const auto fallen = [&] {
        loss = run_.status(name)["training"].toObject()["held_out_loss"].toDouble();
        return loss > 0 && loss < 0.9 * std::log(300.0);
      };
      QVERIFY2(neuroshard::testing::seen_once(fallen, RoundsRun::patience_ms),
               QByteArray::number(loss).constData());
    }
  }

  // Both ask the same anchors, while both train; only the holder of the last part has logits. A text that a new round
  // comes upon goes on with its weights, so both are written within one round.
  void both_write_the_same_text() {
    QByteArray texts[2];
    int rounds[2] = {-1, -2};
    const auto now = [&] { return std::pair(run_.round("a"), run_.round("b")); };
    for (int tries = 0; tries < 20; ++tries) {
      const auto begun = now();
      for (const int node : {0, 1}) {
        const ProcessResult written =
            run_node({"generate", "--data-dir", run_.path(node == 0 ? "a" : "b"), "--json", "--prompt", "the",
                      "--max-tokens", "12", "--seed", "5"});
        QVERIFY2(written.exit_code == 0, written.err.constData());
        const QJsonObject answer = json_lines(written.out).value(0);
        QCOMPARE(answer["tokens"].toInt(), 12);
        texts[node] = answer["text"].toString().toUtf8();
        rounds[node] = answer["step"].toInt();
      }
      if (begun.first == begun.second && begun == now()) break;
    }
    QCOMPARE(rounds[0], rounds[1]);
    QCOMPARE(rounds[0] % 200, 0);
    QCOMPARE(texts[0], texts[1]);
    const ProcessResult embedded = run_node({"embed", "--data-dir", run_.path("a"), "--input", "the"});
    QVERIFY(embedded.exit_code != 0);
    QVERIFY2(embedded.err.contains("no embeddings"), embedded.err.constData());
  }

  // Its text would train everybody's weights, and rounds bound what it can do only where it contributes.
  void nobody_trains_on_the_text_of_a_stranger() {
    const ProcessResult made =
        run_node({"network", "invite", "--without-vote", "--json", "--data-dir", run_.path("a")});
    run_.node_words = QStringList{"--part", "1"};
    run_.launch_invited("stranger", json_lines(made.out).value(0)["link"].toString());
    QCOMPARE(run_.joined("stranger"), QByteArray());
    QJsonObject seen;
    const auto told = [&] {
      seen = run_.rounds("stranger");
      return seen["trouble"].toString().contains("no voter has vouched");
    };
    QVERIFY2(neuroshard::testing::seen_once(told, RoundsRun::patience_ms), qPrintable(text_of(seen)));
    QCOMPARE(seen["part"].toObject()["finished"].toInt(), 0);
    QCOMPARE(part("b")["sessions"].toInt(), 2);
    run_.node("stranger").terminate();
    run_.node("stranger").finish();
  }

  void of_two_holders_one_may_die() {
    start("c", 2);
    const auto shared = [&] { return same_anchors("b", "c", 2) != 0 && part("c")["finished"].toInt() > 0; };
    QVERIFY2(neuroshard::testing::seen_once(shared, RoundsRun::patience_ms), qPrintable(text_of(part("c"))));
    QVERIFY(same_anchors("b", "c", 2) > 0);
    // Weights that "b" alone has would go with it.
    const auto newest = [&](const char* name) { return run_.certified(name, 2).lastKey(); };
    QVERIFY(
        neuroshard::testing::seen_once([&] { return newest("b") == newest("c"); }, RoundsRun::patience_ms));
    run_.node("b").kill_now();
    const auto finished = [&] { return part("a")["finished"].toInt(); };
    const int before = finished();
    const auto goes_on = [&] { return finished() > before + 10; };
    QVERIFY2(neuroshard::testing::seen_once(goes_on, RoundsRun::patience_ms), qPrintable(text_of(part("a"))));
    const ProcessResult written = run_node({"generate", "--data-dir", run_.path("a"), "--prompt", "the"});
    QVERIFY2(written.exit_code == 0 && !written.out.trimmed().isEmpty(), written.err.constData());
  }

  // It comes back with its disk, but for another part: it gives up the one, fetches the other and makes the same anchors of it.
  void a_node_moves_to_the_part_that_its_owner_chooses() {
    run_.node_words = QStringList{"--part", "1"};
    run_.launch("b");
    QCOMPARE(run_.joined("b"), QByteArray());
    const auto holds = [&] {
      const QJsonArray holders = part("a")["holders"].toArray();
      return holders.size() == 2 && holders[0].toInt() == 2 && holders[1].toInt() == 1 &&
             same_anchors("a", "b", 1) != 0;
    };
    QVERIFY2(neuroshard::testing::seen_once(holds, RoundsRun::patience_ms), qPrintable(text_of(part("a"))));
    QVERIFY(same_anchors("a", "b", 1) > 0);
    QCOMPARE(part("b")["number"].toInt(), 1);
    QCOMPARE(part("b")["follows_plan"].toBool(true), false);
    QCOMPARE(kept_part("b"), QByteArray("1"));
  }

 private:
  void start(const QString& name, int part) {
    run_.node_words = QStringList{"--part", QString::number(part)};
    QCOMPARE(run_.start(name), QByteArray());
    if (name == "a")
      QTRY_VERIFY_WITH_TIMEOUT(!run_.rounds("a")["chain"].toObject()["genesis"].toString().isEmpty(),
                               RoundsRun::patience_ms);
  }

  // In the settings of the directory, for later starts.
  QByteArray kept_part(const QString& name) const {
    QFile settings(run_.path(name) + "/settings.toml");
    if (!settings.open(QIODevice::ReadOnly)) return "0";
    for (const QByteArray& line : settings.readAll().split('\n'))
      if (line.startsWith("part = ")) return line.mid(7);
    return "0";
  }
  // Rounds that both certified with one anchor of a part; -1: with two.
  int same_anchors(const QString& one, const QString& other, int part) const {
    const auto of_one = run_.certified(one, part), of_other = run_.certified(other, part);
    int same = 0;
    for (auto at = of_one.begin(); at != of_one.end(); ++at) {
      if (!of_other.contains(at.key())) continue;
      if (of_other.value(at.key()).anchor != at->anchor) return -1;
      ++same;
    }
    return same;
  }
  QJsonObject part(const QString& name) const { return run_.rounds(name)["part"].toObject(); }

  RoundsRun run_;
};

NS_TEST(TestRoundsParts)
#include "test_rounds_parts.moc"
