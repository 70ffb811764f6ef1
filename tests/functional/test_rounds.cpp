// Real processes on the loopback interface that train one model in outer rounds: one begins alone, others
// join, one is killed in the middle of a round and comes back, one has other text. What each of them
// certified is compared afterwards, round by round.
#include <QElapsedTimer>
#include <QMap>
#include <QSet>
#include <QTemporaryDir>
#include <QTest>
#include <memory>

#include "tests/support/network_run.h"
#include "tests/support/training_run.h"

using namespace neuroshard::test;  // NOLINT

namespace {

constexpr int patience_ms = 100'000;  // a busy machine; a quiet one needs seconds

// "round 7 is certified with anchor 0123…: 2 of 3 members contributed", of a node's log.
struct Certified {
  QString anchor;
  int contributors = 0, members = 0;
};

}  // namespace

class TestRounds : public QObject {
  Q_OBJECT
 private Q_SLOTS:
  void initTestCase();
  void one_begins_and_another_joins();
  void a_third_fetches_the_anchor_and_takes_part();
  void one_is_killed_in_the_middle_of_a_round_and_takes_part_again();
  void other_text_is_told_and_keeps_nobody_from_training();
  void the_waiting_is_counted();
  void all_certified_the_same();
  void who_stops_is_not_waited_for();
  void a_stopped_node_goes_on_where_it_was();

 private:
  QString path(const QString& name) const { return folder_.filePath(name); }
  void start(const QString& name, const QString& text = "text") {
    QStringList arguments{"run",        "--json",
                          "--data-dir", path(name),
                          "--profile",  path("together.json"),
                          "--text",     path(text),
                          "--lan",      "--p2p-port",
                          "0",          "--p2p-address",
                          "127.0.0.1",  "--cpu-threads",
                          "1",          "--eval-interval-steps",
                          "0"};
    arguments += {"--tracker", tracker_at_};
    nodes_[name] = std::make_shared<NodeProcess>(arguments);
    const QJsonObject joined = wait_for_object(*nodes_[name], "peers");
    QVERIFY2(!joined.isEmpty(), nodes_[name]->errors_so_far().constData());
  }
  QJsonObject rounds(const QString& name) const {
    const ProcessResult result = run_node({"status", "--json", "--data-dir", path(name)});
    return json_lines(result.out).value(0)["rounds"].toObject();
  }
  // Until these are the members, all of them contributed to a round after `after`, and hold its anchor.
  bool together(const QStringList& names, int after = 0) const {
    const QDeadlineTimer deadline(patience_ms);
    QSet<QString> there;
    while (!deadline.hasExpired()) {
      for (const QString& name : names) {
        const QJsonObject seen = rounds(name);
        if (seen["members"].toInt() == names.size() && seen["contributors"].toInt() == names.size() &&
            seen["round"].toInt() > after && seen["agrees"].toBool() && seen["member"].toBool())
          there.insert(name);
      }
      if (there.size() == names.size()) return true;
    }
    for (const QString& name : names)
      qWarning().noquote() << name << QJsonDocument(rounds(name)).toJson(QJsonDocument::Compact);
    return false;
  }
  int round(const QString& name) const { return rounds(name)["round"].toInt(); }
  QMap<int, Certified> certified(const QString& name) const {
    static const QRegularExpression line(
        "round (\\d+) is certified with anchor ([0-9a-f]+): (\\d+) of (\\d+) members");
    QMap<int, Certified> found;
    QFile log(path(name) + "/logs/neuroshardd.log");
    if (!log.open(QIODevice::ReadOnly)) return found;
    for (auto at = line.globalMatch(QString::fromUtf8(log.readAll())); at.hasNext();) {
      const QRegularExpressionMatch match = at.next();
      const int number = match.captured(1).toInt();
      // Whatever a node says of a round a second time, after a restart, has to be the same.
      const Certified said{match.captured(2), match.captured(3).toInt(), match.captured(4).toInt()};
      if (found.contains(number) && found[number].anchor != said.anchor)
        qFatal("%s has two anchors of round %d", qPrintable(name), number);
      found[number] = said;
    }
    return found;
  }

  QTemporaryDir folder_;
  QMap<QString, std::shared_ptr<NodeProcess>> nodes_;
  std::unique_ptr<NodeProcess> tracker_;
  QString tracker_at_;
};

void TestRounds::initTestCase() {
  QVERIFY(folder_.isValid());
  const QByteArray words = made_up_text(7, 60'000);
  for (const auto& [name, content] : {std::pair{"text", words}, std::pair{"other", words.toUpper()}}) {
    QFile text(path(name));
    QVERIFY(text.open(QIODevice::WriteOnly) && text.write(content) > 0);
  }
  const ProcessResult made = run_node({"network",        "create",   "--from",     "devnet",
                                       "--name",         "together", "--out",      path("together.json"),
                                       "--layers",       "1",        "--hidden",   "32",
                                       "--head-dim",     "16",       "--vocab",    "300",
                                       "--experts",      "2",        "--sequence", "32",
                                       "--batch-tokens", "512",      "--h",        "200",
                                       "--grows",        "0"});
  QVERIFY2(made.ok(), made.text().constData());
  tracker_ =
      std::make_unique<NodeProcess>(QStringList{"tracker", "--json", "--profile", path("together.json"),
                                                "--address", "127.0.0.1", "--port", "0", "--lan"});
  const QJsonObject ready = wait_for_object(*tracker_, "ready");
  QVERIFY2(!ready.isEmpty(), tracker_->errors_so_far().constData());
  tracker_at_ = ready["id"].toString() + "@" + ready["address"].toString();
}

void TestRounds::one_begins_and_another_joins() {
  start("a");
  QTRY_VERIFY_WITH_TIMEOUT(round("a") >= 2, patience_ms);
  QVERIFY(rounds("a")["agrees"].toBool());
  start("b");
  QVERIFY(together({"a", "b"}));
  QVERIFY(rounds("b")["fetched"].toInt() >= 1);  // a's work so far
}

void TestRounds::a_third_fetches_the_anchor_and_takes_part() {
  start("c");
  QVERIFY(together({"a", "b", "c"}, round("a")));
  QVERIFY(rounds("c")["fetched"].toInt() >= 1);
  QVERIFY(rounds("a")["bytes_sent"].toInt() > 0 && rounds("c")["bytes_received"].toInt() > 0);
}

void TestRounds::one_is_killed_in_the_middle_of_a_round_and_takes_part_again() {
  nodes_["c"]->kill_now();
  // The others can't certify without the third: more than two thirds of three are all.
  int before = round("a");
  start("c");
  QVERIFY(together({"a", "b", "c"}, before + 2));
  QVERIFY(rounds("c")["contributed"].toInt() >= 1);
  // Once more, at another moment.
  QTRY_VERIFY_WITH_TIMEOUT(rounds("b")["phase"].toString() == "training", patience_ms);
  nodes_["b"]->kill_now();
  before = round("a");
  start("b");
  QVERIFY(together({"a", "b", "c"}, before + 2));
}

void TestRounds::other_text_is_told_and_keeps_nobody_from_training() {
  start("stranger", "other");
  QTRY_VERIFY_WITH_TIMEOUT(rounds("stranger")["trouble"].toString().contains("another tokenizer"),
                           patience_ms);
  QVERIFY(!rounds("stranger")["member"].toBool());
  QVERIFY(together({"a", "b", "c"}, round("a") + 1));
  nodes_["stranger"]->kill_now();
}

void TestRounds::the_waiting_is_counted() {
  for (const char* name : {"a", "b", "c"}) {
    const QJsonObject seen = rounds(name);
    QVERIFY2(seen["waiting_share"].toDouble() > 0 && seen["waiting_share"].toDouble() < 1,
             QJsonDocument(seen).toJson().constData());
    QCOMPARE(seen["inner_steps"].toInt(), 200);
    QCOMPARE(seen["corruptions"].toInt(), 0);
  }
  const ProcessResult plain = run_node({"status", "--data-dir", path("a")});
  QVERIFY2(plain.out.contains("certified, 3 members"), plain.text().constData());
}

void TestRounds::all_certified_the_same() {
  const auto at_a = certified("a"), at_b = certified("b"), at_c = certified("c");
  int compared = 0, of_three = 0;
  for (auto it = at_a.begin(); it != at_a.end(); ++it) {
    for (const auto* other : {&at_b, &at_c}) {
      if (!other->contains(it.key())) continue;
      QCOMPARE(other->value(it.key()).anchor, it->anchor);
      QCOMPARE(other->value(it.key()).contributors, it->contributors);
      ++compared;
    }
    if (it->contributors == 3) ++of_three;
  }
  QVERIFY2(compared >= 8, QByteArray::number(compared).constData());
  QVERIFY2(of_three >= 3, QByteArray::number(of_three).constData());
  QSet<QString> anchors;
  for (const Certified& one : at_a) anchors.insert(one.anchor);
  QCOMPARE(anchors.size(), at_a.size());  // each round moved the model
}

// Of three all have to vote: without its farewell nothing could be certified any more.
void TestRounds::who_stops_is_not_waited_for() {
  nodes_["c"]->terminate();
  const ProcessResult by_signal = nodes_["c"]->finish();
  QVERIFY2(by_signal.ok(), by_signal.text().constData());
  QVERIFY(together({"a", "b"}, round("a") + 1));
  const ProcessResult asked = run_node({"stop", "--data-dir", path("b")});
  QVERIFY2(asked.ok(), asked.text().constData());
  QVERIFY(nodes_["b"]->finish().ok());
  QVERIFY(together({"a"}, round("a") + 1));
}

void TestRounds::a_stopped_node_goes_on_where_it_was() {
  nodes_["a"]->terminate();
  const ProcessResult stopped = nodes_["a"]->finish();
  QVERIFY2(stopped.ok(), stopped.text().constData());
  const int last = certified("a").lastKey();
  for (const char* name : {"a", "b", "c"}) start(name);
  QVERIFY(together({"a", "b", "c"}, last));
  all_certified_the_same();
}

QTEST_GUILESS_MAIN(TestRounds)
#include "test_rounds.moc"
