// neuroshardd eval, history export and checkpoint import on a real directory, without and beside a running core.
#include <QJsonArray>
#include <QJsonDocument>
#include <QJsonObject>
#include <QTest>

#include "tests/support/test_main.h"
#include "tests/support/training_run.h"

using namespace neuroshard::test;  // NOLINT

class TestEvalCommand : public QObject {
  Q_OBJECT
 private Q_SLOTS:
  void initTestCase() {
    if (!QFileInfo::exists(qEnvironmentVariable("NS_BIN_DIR") + "/../lib/neuroshard/compute_cpu.so"))
      QSKIP("built without the compute module");
    const QByteArray problem = lab_.prepare();
    QVERIFY2(problem.isEmpty(), problem.constData());
    lab_.copy("d");
    QFile text(lab_.path("held-out.txt"));
    QVERIFY(text.open(QIODevice::WriteOnly));
    text.write(made_up_text(8, 4'000));
  }
  void the_model_stands_beside_the_ngrams();
  void results_are_repeated_and_listed();
  void without_a_cloze_task_nothing_is_said_of_it();
  void the_history_is_exported();
  void beside_a_running_core();
  void a_hugging_face_folder_comes_back();

 private:
  QStringList in_d(QStringList arguments) const {
    return arguments << QStringLiteral("--data-dir") << lab_.path("d");
  }
  static QJsonObject json_of(const ProcessResult& result) {
    return QJsonDocument::fromJson(result.out.split('\n').value(0)).object();
  }
  ProcessResult evaluate(const QStringList& more = {}) const {
    return run_node(in_d(QStringList{"eval", lab_.path("held-out.txt"), "--cloze", "20", "--json"} + more));
  }

  TrainingLab lab_;
};

void TestEvalCommand::the_model_stands_beside_the_ngrams() {
  const ProcessResult result = evaluate({"--baseline", lab_.path("text/tale.txt")});
  QVERIFY2(result.ok(), result.text().constData());
  const QJsonObject json = json_of(result);
  QVERIFY(json["bytes"].toInt() >= 4'000 && json["tokens"].toInt() > 100);
  QCOMPARE(json["cloze_questions"].toInt(), 20);
  for (const char* side : {"model", "ngram"}) {
    const QJsonObject figures = json[side].toObject();
    QVERIFY2(figures["perplexity"].toDouble() > 1, side);
    const double bits =
        figures["loss"].toDouble() * json["tokens"].toInt() / std::log(2.0) / json["bytes"].toInt();
    QVERIFY2(std::abs(bits - figures["bits_per_byte"].toDouble()) < 1e-9, side);
  }
  // One step of training knows less than counts over the text of the same made-up language.
  QVERIFY(json["ngram"].toObject()["loss"].toDouble() < json["model"].toObject()["loss"].toDouble());
}

void TestEvalCommand::results_are_repeated_and_listed() {
  const QJsonObject first = json_of(evaluate()), second = json_of(evaluate());
  QCOMPARE(first["ngram_text"].toString(), QStringLiteral("richard-iii.txt"));
  QCOMPARE(first["model"].toObject(), second["model"].toObject());
  QCOMPARE(first["ngram"].toObject(), second["ngram"].toObject());
  const QJsonObject fine = json_of(evaluate({"--stride", "1"}));
  QVERIFY(fine["model"].toObject()["loss"].toDouble() > 0);
  QVERIFY(fine["model"].toObject()["loss"] != first["model"].toObject()["loss"]);
  const ProcessResult listed = run_node(in_d({"eval", "--list", "--json"}));
  QVERIFY2(listed.ok(), listed.text().constData());
  QCOMPARE(listed.out.trimmed().split('\n').size(), 4);
  QCOMPARE(json_of(listed)["stride"].toInt(), 1);  // the newest first
  for (const QStringList& wrong : {QStringList{"--stride", "100000"}, QStringList{"--checkpoint", "77"},
                                   QStringList{"--baseline", lab_.path("nothing")}})
    QVERIFY2(!evaluate(wrong).ok(), qPrintable(wrong.join(' ')));
}

void TestEvalCommand::without_a_cloze_task_nothing_is_said_of_it() {
  const ProcessResult without = run_node(in_d({"eval", lab_.path("held-out.txt"), "--cloze", "0"}));
  QVERIFY2(without.ok() && without.out.contains("n-gram"), without.text().constData());
  QVERIFY2(!without.err.contains("cloze task"), without.text().constData());
  QFile figures(lab_.path("figures.txt"));
  QVERIFY(figures.open(QIODevice::WriteOnly));
  figures.write("1 2 3 4 5 6 7 8 9");
  figures.close();
  const ProcessResult wordless = run_node(in_d({"eval", lab_.path("figures.txt")}));
  QVERIFY2(wordless.ok() && wordless.err.contains("no words for the cloze task"),
           wordless.text().constData());
}

void TestEvalCommand::the_history_is_exported() {
  for (const char* format : {"csv", "jsonl", "tensorboard"}) {
    const QString out = lab_.path(QStringLiteral("history-%1").arg(QLatin1String(format)));
    const ProcessResult result =
        run_node(in_d({"history", "export", "--format", QLatin1String(format), "--out", out}));
    QVERIFY2(result.ok(), result.text().constData());
    QVERIFY(!run_node(in_d({"history", "export", "--format", QLatin1String(format), "--out", out})).ok());
  }
  QFile csv(lab_.path("history-csv"));
  QVERIFY(csv.open(QIODevice::ReadOnly));
  QVERIFY(csv.readAll().contains("\nloss,1,1,1,"));
  QFile lines(lab_.path("history-jsonl"));
  QVERIFY(lines.open(QIODevice::ReadOnly));
  for (const QByteArray& line : lines.readAll().trimmed().split('\n'))
    QVERIFY(QJsonDocument::fromJson(line).object().contains(QStringLiteral("mean")));
  QCOMPARE(QDir(lab_.path("history-tensorboard")).entryList({"events.out.tfevents.*"}).size(), 1);
}

// A core owns the directory: eval reads beside it, and the core itself exports.
void TestEvalCommand::beside_a_running_core() {
  NodeProcess core({"run", "--data-dir", lab_.path("d"), "--json", "--cpu-threads", "1"});
  while (true) {
    const auto line = core.next_line();
    QVERIFY(line.has_value());
    if (line->contains("\"ready\"")) break;
  }
  const ProcessResult measured = evaluate();
  QVERIFY2(measured.ok(), measured.text().constData());
  const QString out = lab_.path("running.csv");
  const ProcessResult exported = run_node(in_d({"history", "export", "--out", out}));
  QVERIFY2(exported.ok(), exported.text().constData());
  QVERIFY(QFileInfo::exists(out));
  QVERIFY(!run_node(in_d({"history", "export", "--out", out})).ok());
  core.terminate();
  QCOMPARE(core.finish().exit_code, 0);
}

void TestEvalCommand::a_hugging_face_folder_comes_back() {
  const QString folder = lab_.path("hf"), again = lab_.path("hf-again");
  QVERIFY(run_node(in_d({"checkpoint", "export", "--format", "huggingface", "--out", folder})).ok());
  const ProcessResult imported = run_node(in_d({"checkpoint", "import", folder, "--json"}));
  QVERIFY2(imported.ok(), imported.text().constData());
  const QString name = json_of(imported)["imported"].toString();
  QVERIFY(name.startsWith(QLatin1String("0000000000-")));
  QVERIFY(run_node(in_d({"checkpoint", "export", name, "--format", "huggingface", "--out", again})).ok());
  for (const char* file : {"model.safetensors", "config.json", "tokenizer.json"}) {
    QFile a(folder + '/' + QLatin1String(file)), b(again + '/' + QLatin1String(file));
    QVERIFY(a.open(QIODevice::ReadOnly) && b.open(QIODevice::ReadOnly));
    QVERIFY2(a.readAll() == b.readAll(), file);
  }
  // Training goes on from it.
  QVERIFY(run_node(in_d({"checkpoint", "restore", name})).ok());
  const ProcessResult trained = run_node(in_d({"train", "--steps", "1", "--json"}));
  QVERIFY2(trained.ok(), trained.text().constData());
  QVERIFY(losses_of(trained.out).contains(1));
  // Into a new directory of the same shape: it takes over the tokenizer.
  const QStringList elsewhere{"--data-dir", lab_.path("new"), "--profile", lab_.path("tiny.json")};
  const QString odd = lab_.path("hf\x1b[2J");  // a name with a control sequence of terminals
  QVERIFY(QDir().rename(again, odd));
  const ProcessResult fresh = run_node(QStringList{"checkpoint", "import", odd} + elsewhere);
  QVERIFY2(fresh.ok(), fresh.text().constData());
  QVERIFY2(fresh.out.contains("From: Hugging Face folder hf [2J."), fresh.text().constData());
  // Into a larger model: it grows, and measures the same.
  const QString larger = lab_.path("larger.json"), grown = lab_.path("grown");
  QVERIFY(run_node({"network", "create", "--from", lab_.path("tiny.json"), "--name", "larger", "--layers",
                    "4", "--out", larger})
              .ok());
  const ProcessResult growth =
      run_node({"checkpoint", "import", folder, "--data-dir", grown, "--profile", larger});
  QVERIFY2(growth.ok() && growth.out.contains("grown from"), growth.text().constData());
  QVERIFY(run_node({"checkpoint", "restore", "0", "--data-dir", grown}).ok());
  const ProcessResult measured =
      run_node({"eval", lab_.path("held-out.txt"), "--cloze", "0", "--json", "--data-dir", grown});
  const double loss = json_of(evaluate({"--checkpoint", name}))["model"].toObject()["loss"].toDouble();
  const double of_grown = json_of(measured)["model"].toObject()["loss"].toDouble();
  QVERIFY2(loss > 0 && std::abs(loss - of_grown) < 1e-3, measured.text().constData());
  const ProcessResult other =
      run_node(QStringList{"checkpoint", "import", folder, "--data-dir", lab_.path("solo")});
  QVERIFY(!other.ok());
  QVERIFY2(other.err.contains("network create"), other.text().constData());
}

NS_TEST(TestEvalCommand)
#include "test_eval_command.moc"
