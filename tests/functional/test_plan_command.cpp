// neuroshardd plan as scripts and people meet it.
#include <QFile>
#include <QJsonArray>
#include <QJsonDocument>
#include <QJsonObject>
#include <QTemporaryDir>
#include <QTest>
#include <utility>

#include "tests/support/process.h"
#include "tests/support/test_main.h"

using namespace neuroshard::test;  // NOLINT

namespace {

QByteArray peer(const char* id, const char* memory, const char* more = "") {
  return QByteArray(R"({"id":")") + id + R"(","memory":")" + memory + R"(","speed":"1T","up":"10MB")" + more +
         "}";
}

}  // namespace

class TestPlanCommand : public QObject {
  Q_OBJECT
 private Q_SLOTS:
  void initTestCase() {
    QVERIFY(folder_.isValid());
    three_ =
        write("three.json", "[" + peer("a", "16GB") + "," + peer("b", "8GB") + "," + peer("c", "8GB") + "]");
  }

  void json_has_the_plan() {
    const ProcessResult result = plan({"--peers", three_, "--json"});
    QVERIFY2(result.ok(), result.text().constData());
    const QJsonObject object = QJsonDocument::fromJson(result.out).object();
    QCOMPARE(object["state"].toString(), QString("ready"));
    QCOMPARE(object["tier"].toString(), QString("Nano"));
    QCOMPARE(object["next_tier_bytes"].toDouble(), 40e9);
    QCOMPARE(object["contributed_bytes"].toDouble(), 32e9);
    QVERIFY(object["least_owners"].toInt() >= 2);
    QVERIFY(object["throughput"].toDouble() > 0);
    QVERIFY(object["throughput"].toDouble() <= object["bound"].toDouble());
    QCOMPARE(object["peers"].toArray().size(), 3);
    const QJsonObject first = object["peers"].toArray()[0].toObject();
    QCOMPARE(first["id"].toString(), QString("a"));
    QVERIFY(first["memory_bytes"].toDouble() > 0 && first["memory_bytes"].toDouble() <= 16e9);
    QVERIFY(object["next_shape"].toObject()["memory_bytes"].toDouble() > 32e9);
  }

  void people_get_a_table() {
    const ProcessResult result = plan({"--peers", three_});
    QVERIFY2(result.ok(), result.text().constData());
    for (const char* text : {"state       ready", "tier        Nano, the next one from 40 GB", "throughput  ",
                             "of the bound", "owners      at least 2", "layers of width 512"})
      QVERIFY2(result.out.contains(text), result.out.constData());
  }

  void what_if_shows_a_newcomer_and_a_leaver() {
    const ProcessResult joins = plan({"--peers", three_, "--what-if", "memory=16GiB,speed=2T", "--json"});
    QVERIFY2(joins.ok(), joins.text().constData());
    const QJsonObject object = QJsonDocument::fromJson(joins.out).object();
    const QJsonObject after = object["what_if"].toObject();
    QCOMPARE(after["tier"].toString(), QString("Micro"));
    QCOMPARE(after["peers"].toArray().size(), 4);
    const ProcessResult text = plan({"--peers", three_, "--what-if", "memory=16GiB,speed=2T"});
    QVERIFY2(text.out.contains("tier        Nano -> Micro"), text.out.constData());
    QVERIFY2(text.out.contains("(you)"), text.out.constData());
    // The shape is another one, so nobody has any of it.
    QVERIFY(object["shape"] != after["shape"]);
    QCOMPARE(after["moved_bytes"].toDouble(), 0.0);
    double fetched = 0;
    for (const QJsonValue& peer : after["peers"].toArray()) {
      QVERIFY(peer["fetch_bytes"].toDouble() > 0);
      fetched += peer["fetch_bytes"].toDouble();
    }
    QCOMPARE(after["joined_bytes"].toDouble(), fetched);
    QVERIFY2(text.out.contains("all ranges are of another shape"), text.out.constData());
    const ProcessResult leaves = plan({"--peers", three_, "--what-if", "leave=a"});
    QVERIFY2(leaves.ok(), leaves.text().constData());
    QVERIFY2(leaves.out.contains("With leave=a:"), leaves.out.constData());
  }

  void too_little_memory_says_how_much_is_missing() {
    const QString small = write("small.json", "[" + peer("a", "2GB") + "]");
    const ProcessResult result = plan({"--peers", small});
    QVERIFY(!result.ok());
    QVERIFY2(result.text().contains("the nodes contribute 2 GB") && result.text().contains("more"),
             result.text().constData());
  }

  void one_copy_is_forming() {
    const QString alone = write("alone.json", "[" + peer("a", "8GB") + "]");
    const ProcessResult result = plan({"--peers", alone});
    QVERIFY2(result.ok(), result.text().constData());
    QVERIFY2(result.out.contains("forming: one copy, unreplicated"), result.out.constData());
    QVERIFY2(result.out.contains("Fewer than 2: the whole model"), result.out.constData());
  }

  // Ids of a file can't move the cursor or add lines, in tables or in errors.
  void foreign_text_does_not_reach_the_terminal() {
    const QByteArray odd = peer("o\\u001b[2J\\nd", "16GB");
    const QString file =
        write("escapes.json", "[" + odd + "," + peer("b", "8GB") + "," + peer("c", "8GB") + "]");
    const ProcessResult table = plan({"--peers", file, "--what-if", "memory=16GiB,speed=2T"});
    QVERIFY2(table.ok(), table.text().constData());
    QVERIFY2(table.out.contains("o [2J d"), table.out.constData());
    QVERIFY2(!table.out.contains('\x1b'), table.out.constData());
    const std::pair<QByteArray, QByteArray> wrong[] = {
        {odd + "," + odd, "two peers have the id 'o [2J d'"},
        {peer("a", "8GB", ",\"m\\u001b[2J\":1"), "unknown field \"m [2J\""},
        {peer("a", "8\\u001b[2JGB"), "\"memory\" is \"8 [2JGB\""}};
    for (const auto& [peers, message] : wrong) {
      const ProcessResult refused = plan({"--peers", write("wrong.json", "[" + peers + "]")});
      QVERIFY(!refused.ok());
      QVERIFY2(refused.err.contains(message), refused.err.constData());
      QVERIFY2(!refused.err.contains('\x1b'), refused.err.constData());
    }
  }

  void bad_files_are_named_with_the_place_data() {
    QTest::addColumn<QByteArray>("content");
    QTest::addColumn<QByteArray>("message");
    QTest::newRow("not JSON") << QByteArray("[\n{\"id\" 3}]")
                              << QByteArray("not valid JSON at line 2, column 7");
    QTest::newRow("empty") << QByteArray("[]") << QByteArray("lists no peers");
    QTest::newRow("no list") << QByteArray("3") << QByteArray("neither a list nor an object");
    QTest::newRow("unknown") << "[" + peer("a", "8GB", ",\"mem\":1") + "]"
                             << QByteArray("the peer at position 1: unknown field \"mem\"");
    QTest::newRow("no memory") << QByteArray(R"([{"id":"a","speed":1,"up":1}])")
                               << QByteArray("the peer at position 1 has no \"memory\"");
    QTest::newRow("unit") << "[" + peer("a", "8GB") + "," + peer("b", "8 bananas") + "]"
                          << QByteArray("the peer at position 2: \"memory\"");
    QTest::newRow("negative") << QByteArray(R"([{"id":"a","memory":8e9,"speed":-1,"up":1}])")
                              << QByteArray("\"speed\" is -1; it must be above 0");
    QTest::newRow("twice") << "[" + peer("a", "8GB") + "," + peer("a", "8GB") + "]"
                           << QByteArray("two peers have the id 'a'");
    QTest::newRow("range") << "[" + peer("a", "8GB", ",\"range\":[3,2]") + "]"
                           << QByteArray("\"range\" must be [first, end]");
    QTest::newRow("deep") << QByteArray(100, '[') + QByteArray(100, ']') << QByteArray("nests deeper");
  }
  void bad_files_are_named_with_the_place() {
    QFETCH(QByteArray, content);
    QFETCH(QByteArray, message);
    const ProcessResult result = plan({"--peers", write("bad.json", content)});
    QVERIFY(!result.ok());
    QVERIFY2(result.text().contains(message), result.text().constData());
    QVERIFY2(result.text().contains("bad.json") || message.startsWith("two peers"),
             result.text().constData());
  }

  void bad_flags_are_named() {
    const ProcessResult nothing = plan({});
    QVERIFY(!nothing.ok() && nothing.text().contains("--peers FILE") &&
            nothing.text().contains("--what-if leave"));
    const ProcessResult needless = plan({"--what-if", "leave", "--replicas", "3"});
    QVERIFY2(!needless.ok() && needless.text().contains("--peers"), needless.text().constData());
    const ProcessResult gone = plan({"--peers", folder_.filePath("none.json")});
    QVERIFY(!gone.ok() && gone.text().contains("none.json"));
    const ProcessResult change = plan({"--peers", three_, "--what-if", "speed=1T"});
    QVERIFY(!change.ok() && change.text().contains("--what-if needs memory=BYTES"));
    const ProcessResult leaver = plan({"--peers", three_, "--what-if", "leave=z"});
    QVERIFY(!leaver.ok() && leaver.text().contains("no peer 'z'"));
    const ProcessResult beacon = plan({"--peers", three_, "--beacon", "12"});
    QVERIFY(!beacon.ok() && beacon.text().contains("--beacon"));
  }

  // The answer of a running node: test_rounds_what_if.
  void without_a_file_a_node_has_to_run() {
    const ProcessResult result = plan({"--what-if", "memory=8GiB", "--data-dir", folder_.filePath("none")});
    QVERIFY(!result.ok() && result.out.isEmpty());
    QVERIFY2(result.err.contains("neuroshardd run"), result.text().constData());
  }

 private:
  QString write(const QString& name, const QByteArray& content) const {
    QFile file(folder_.filePath(name));
    if (!file.open(QIODevice::WriteOnly) || file.write(content) != content.size()) return {};
    return file.fileName();
  }
  static ProcessResult plan(const QStringList& arguments) {
    return NodeProcess(QStringList{"plan"} + arguments).finish();
  }

  QTemporaryDir folder_;
  QString three_;
};

NS_TEST(TestPlanCommand)
#include "test_plan_command.moc"
