// `neuroshardd bench` as scripts use it: one JSON object a row, figures that fit together, clear errors.
#include <QJsonArray>
#include <QJsonDocument>
#include <QJsonObject>
#include <QProcess>
#include <QTemporaryDir>
#include <QtTest>

#include "tests/support/test_main.h"

class TestBenchCommand : public QObject {
  Q_OBJECT

  struct Result {
    int exit_code = -1;
    QList<QJsonObject> lines;
    QString errors;
  };
  static Result bench(const QStringList& arguments) {
    QProcess process;
    process.start(qEnvironmentVariable("NS_BIN_DIR") + "/neuroshardd",
                  QStringList{"bench", "--json"} + arguments);
    Result result;
    if (!process.waitForFinished(50'000)) return result;
    result.exit_code = process.exitCode();
    const auto lines = process.readAllStandardOutput().split('\n');
    for (const QByteArray& line : lines) {
      if (!line.isEmpty()) result.lines.append(QJsonDocument::fromJson(line).object());
    }
    result.errors = process.readAllStandardError();
    return result;
  }

 private Q_SLOTS:

  void measures_rows() {
    QTemporaryDir scratch;
    const Result result = bench({"--rows", "memory", "tokenizer", "safetensors", "--seconds", "0", "--rounds",
                                 "1", "--scratch", scratch.path()});
    QVERIFY2(result.exit_code == 0, qPrintable(result.errors));
    QCOMPARE(result.lines.size(), 4);
    QVERIFY(result.lines[0]["machine"].toObject()["usable_cpus"].toInt() >= 1);
    const QStringList names = {"memory", "tokenizer", "safetensors"};
    for (int i = 0; i < 3; ++i) {
      const QJsonObject& row = result.lines[i + 1];
      QCOMPARE(row["row"].toString(), names[i]);
      QVERIFY(row["yardstick"].toObject()["median"].toDouble() > 0);
      QVERIFY(row["rounds_kept"].toInt() + row["rounds_dropped"].toInt() >= 1);
      for (const QJsonValue& value : row["contenders"].toArray()) {
        const QJsonObject contender = value.toObject();
        QVERIFY(contender["median"].toDouble() > 0);
        QVERIFY(contender["best"].toDouble() >= contender["median"].toDouble());
      }
    }
    const QJsonArray tokenizer = result.lines[2]["contenders"].toArray();
    QVERIFY(tokenizer[0].toObject()["median"].toDouble() > tokenizer[1].toObject()["median"].toDouble());
    QVERIFY2(QDir(scratch.path()).isEmpty(), "the temporary files were left behind");
  }

  void measures_computing() {
    if (!QFile::exists(qEnvironmentVariable("NS_BIN_DIR") + "/../lib/neuroshard/compute_cpu.so"))
      QSKIP("built without the compute module");
    const Result result = bench(
        {"--rows", "nanogpt", "halves", "startup", "--precision", "fp32", "--seconds", "0", "--rounds", "1"});
    QVERIFY2(result.exit_code == 0, qPrintable(result.errors));
    QCOMPARE(result.lines.size(), 4);
    for (int i = 1; i <= 3; ++i) {
      QCOMPARE(result.lines[i]["contenders"].toArray().size(), 2);
      for (const QJsonValue& value : result.lines[i]["contenders"].toArray())
        QVERIFY(value.toObject()["ratio_median"].toDouble() > 0);
    }
    const QJsonObject notes = result.lines[1]["notes"].toObject();
    QCOMPARE(notes["precision"].toString(), QString("fp32"));
    QVERIFY(notes["tokens_per_s"].toString().toDouble() > 0);
    const QJsonObject halves = result.lines[2]["notes"].toObject();
    QVERIFY(halves["time_of_first_half"].toString().toDouble() > 0);
    QVERIFY(halves["time_of_both_halves"].toString().toDouble() > 0);
  }

  void lists_rows() {
    const Result result = bench({"--list"});
    QCOMPARE(result.exit_code, 0);
    QVERIFY(result.lines.size() >= 12);
  }

  void refuses_nonsense() {
    const Result unknown = bench({"--rows", "speed"});
    QCOMPARE(unknown.exit_code, 64);
    QVERIFY(unknown.errors.contains("speed"));
    QVERIFY(unknown.errors.contains("--list"));
    const Result missing = bench({"--rows", "tokenizer", "--text", "/does/not/exist"});
    QCOMPARE(missing.exit_code, 66);
    QCOMPARE(bench({"--rounds", "0"}).exit_code, 64);
  }
};

NS_TEST(TestBenchCommand)
#include "test_bench_command.moc"
