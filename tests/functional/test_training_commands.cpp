// Commands of neuroshardd that last: run, train, generate and simulate, the signals that end them, and a second
// process on the same data directory. Those that compute need the compute module.
#include <signal.h>

#include <QSet>
#include <QTest>

#include "tests/support/test_main.h"
#include "tests/support/training_run.h"

using namespace neuroshard::test;  // NOLINT

namespace {

// The process blocks the signal, so that it reads it as a request.
bool blocks_termination(const QProcess& process) {
  QFile status(QString("/proc/%1/status").arg(process.processId()));
  if (!status.open(QIODevice::ReadOnly)) return false;
  const QByteArray text = status.readAll();
  const qsizetype at = text.indexOf("SigBlk:");
  return at >= 0 && (text.mid(at + 7).trimmed().left(16).toULongLong(nullptr, 16) >> (SIGTERM - 1) & 1) != 0;
}

}  // namespace

class TestTrainingCommands : public QObject {
  Q_OBJECT
 private Q_SLOTS:
  void only_computing_loads_libtorch();
  void run_without_text_waits_and_a_crash_is_told_next_time();
  void train_prints_one_object_a_step();
  void train_again_goes_on();
  void generate_repeats_with_the_same_seed();
  void generate_reads_standard_input();
  void generate_stops_while_it_waits_for_standard_input();
  void simulate_stops_on_sigterm();
  void simulate_shows_plans();
  void held_directory_is_75();
  void run_says_ready_and_stops_on_sigterm();
  void run_that_failed_says_so_at_the_end();
  void json_of_train_holds_no_secret();

 private:
  bool computes() const {
    return QFileInfo::exists(qEnvironmentVariable("NS_BIN_DIR") + "/../lib/neuroshard/compute_cpu.so");
  }
  // The lab with one trained step, made when first needed.
  TrainingLab* lab() {
    if (!lab_) {
      lab_.emplace();
      const QByteArray problem = lab_->prepare();
      if (!problem.isEmpty()) qCritical("%s", problem.constData());
    }
    return &*lab_;
  }
  QString path(const QString& name) const { return folder_.filePath(name); }

  QTemporaryDir folder_;
  std::optional<TrainingLab> lab_;
};

#define NEEDS_COMPUTE() \
  if (!computes()) QSKIP("built without the compute module")

// The dynamic linker names every library that a process opens, also one opened later.
void TestTrainingCommands::only_computing_loads_libtorch() {
  const QStringList trace{"LD_DEBUG=files"};
  const QString directory = path("no-torch");
  for (const QStringList& arguments :
       {QStringList{"--help"}, QStringList{"wallet", "create", "--data-dir", directory},
        QStringList{"wallet", "show", "--data-dir", directory},
        QStringList{"checkpoint", "list", "--help"}}) {
    const ProcessResult result = NodeProcess(arguments, trace).finish();
    QVERIFY2(result.ok(), result.text().constData());
    QVERIFY(result.err.contains("libc.so"));  // the trace is there
    QVERIFY2(!result.err.contains("libtorch"), qPrintable(arguments.join(' ')));
  }
  NEEDS_COMPUTE();
  lab()->copy("torch");
  const ProcessResult train = NodeProcess(lab()->train("torch", 1), trace).finish();
  QVERIFY2(train.ok(), train.text().constData());
  QVERIFY(train.err.contains("libtorch_cpu"));
}

void TestTrainingCommands::run_without_text_waits_and_a_crash_is_told_next_time() {
  const QString directory = path("crash");
  {
    NodeProcess node({"run", "--data-dir", directory, "--json"});
    QVERIFY(json_lines(*node.next_line()).value(0)["ready"].toBool());
    QByteArray line;
    while (const auto next = node.next_line()) {
      line = *next;
      if (line.contains("failed")) break;
    }
    QVERIFY2(line.contains("--text"), line.constData());  // what to do about it
    QVERIFY(node.running());
    QCOMPARE(::kill(static_cast<pid_t>(node.pid()), SIGSEGV), 0);
    QVERIFY(node.finish().crashed);
  }
  const QStringList again{"settings", "set", "cpu_threads", "1", "--data-dir", directory};
  const ProcessResult told = run_node(again);
  QVERIFY2(told.ok() && told.err.contains("SIGSEGV"), told.text().constData());
  QVERIFY(!run_node(again).err.contains("SIGSEGV"));
}

void TestTrainingCommands::train_prints_one_object_a_step() {
  NEEDS_COMPUTE();
  lab()->copy("json");
  const ProcessResult result = run_node(lab()->train("json", 4));
  QVERIFY2(result.ok(), result.text().constData());
  const QList<QByteArray> lines = result.out.trimmed().split('\n');
  const QList<QJsonObject> objects = json_lines(result.out);
  QCOMPARE(lines.size(), 4);  // nothing but steps on standard output
  QCOMPARE(objects.size(), 4);
  for (int i = 0; i < 4; ++i) {
    QCOMPARE(objects[i]["step"].toInt(), i + 2);  // the lab made the first
    for (const char* key : {"loss", "tokens", "tokens_per_s", "lr", "grad_norm"}) {
      QVERIFY2(objects[i][key].isDouble(), key);
    }
    QVERIFY(objects[i]["loss"].toDouble() > 0 && objects[i]["loss"].toDouble() < 8);
    QCOMPARE(objects[i]["tokens"].toInt(), 256 * (i + 2));
  }
  QVERIFY2(objects[3]["val_loss"].isDouble(), "the last step is evaluated");
  QVERIFY(objects[3]["bits_per_byte"].toDouble() > 0);
  const QJsonObject start = json_lines(result.err).value(0)["start"].toObject();
  const QString precision = start["precision"].toString();
  QVERIFY2(precision == "fp32" || precision == "bf16", qPrintable(precision));  // what the processor has
  QCOMPARE(start["threads"].toInt(), 1);
  QVERIFY(!start["kernels"].toString().isEmpty() && !start["isa"].toString().isEmpty());
}

void TestTrainingCommands::train_again_goes_on() {
  NEEDS_COMPUTE();
  const QString directory = lab()->copy("again");
  QVERIFY(run_node(lab()->train("again", 2)).ok());
  // Neither text nor profile are needed again.
  const ProcessResult more =
      run_node({"train", "--data-dir", directory, "--until-step", "5", "--json", "--cpu-threads", "1"});
  QVERIFY2(more.ok(), more.text().constData());
  const QList<QJsonObject> objects = json_lines(more.out);
  QCOMPARE(objects.size(), 2);
  QCOMPARE(objects[0]["step"].toInt(), 4);
  QCOMPARE(objects[1]["step"].toInt(), 5);
  // Without steps left the model is measured as it is, and nothing is trained.
  const ProcessResult measured =
      run_node({"train", "--data-dir", directory, "--until-step", "5", "--json", "--cpu-threads", "1"});
  QVERIFY2(measured.ok(), measured.text().constData());
  const QList<QJsonObject> rows = json_lines(measured.out);
  QCOMPARE(rows.size(), 1);
  QCOMPARE(rows[0]["step"].toInt(), 5);
  QVERIFY(std::abs(rows[0]["val_loss"].toDouble() - objects[1]["val_loss"].toDouble()) < 1e-4);
}

void TestTrainingCommands::generate_repeats_with_the_same_seed() {
  NEEDS_COMPUTE();
  const QString directory = lab()->copy("speak");
  const auto speak = [&](const char* seed) {
    return run_node({"generate", "--data-dir", directory, "--prompt", "ka", "--max-tokens", "30", "--seed",
                     seed, "--temperature", "1"});
  };
  // The model is one step old: any single answer may be empty, because the end of a text is a word like
  // others.
  QSet<QByteArray> answers;
  for (const char* seed : {"1", "2", "3", "4"}) {
    const ProcessResult first = speak(seed);
    QVERIFY2(first.ok(), first.text().constData());
    QVERIFY(first.out.startsWith("ka"));
    QCOMPARE(speak(seed).out, first.out);
    answers << first.out;
  }
  QVERIFY2(answers.size() >= 3, "other seeds give other text");
  const ProcessResult json = run_node({"generate", "--data-dir", directory, "--prompt", "ka", "--max-tokens",
                                       "30", "--seed", "1", "--temperature", "1", "--json"});
  const QJsonObject object = json_lines(json.out).value(0);
  QCOMPARE(object["seed"].toInt(), 1);
  QCOMPARE(object["step"].toInt(), 1);
  QVERIFY(object["tokens"].toInt() <= 30);
}

void TestTrainingCommands::generate_reads_standard_input() {
  NEEDS_COMPUTE();
  const QString directory = lab()->copy("stdin");
  // NodeProcess gives an empty standard input: the beginning of a new text.
  const ProcessResult result = run_node(
      {"generate", "--data-dir", directory, "--prompt", "-", "--max-tokens", "5", "--seed", "1", "--json"});
  QVERIFY2(result.ok(), result.text().constData());
  QCOMPARE(json_lines(result.out).value(0)["prompt"].toString(), QString());
}

void TestTrainingCommands::generate_stops_while_it_waits_for_standard_input() {
  QProcess process;
  process.start(node_program(), {"generate", "--data-dir", path("nothing"), "--prompt", "-"});
  QVERIFY(process.waitForStarted());
  QTRY_VERIFY_WITH_TIMEOUT(blocks_termination(process), 10'000);
  QCOMPARE(::kill(static_cast<pid_t>(process.processId()), SIGTERM), 0);
  QVERIFY2(process.waitForFinished(10'000), "still waiting for its input");
  QCOMPARE(process.exitStatus(), QProcess::NormalExit);
  QCOMPARE(process.exitCode(), 130);
}

void TestTrainingCommands::simulate_stops_on_sigterm() {
  for (const QStringList& sizes : {QStringList{"--nodes", "48"}, QStringList{"--nodes", "16"}}) {
    QProcess process;
    process.start(node_program(), QStringList{"simulate", "--rounds", "10000"} + sizes);
    QVERIFY(process.waitForStarted());
    QTRY_VERIFY_WITH_TIMEOUT(blocks_termination(process), 10'000);
    QCOMPARE(::kill(static_cast<pid_t>(process.processId()), SIGTERM), 0);
    QVERIFY2(process.waitForFinished(20'000), "still simulating");
    QCOMPARE(process.exitStatus(), QProcess::NormalExit);
    QCOMPARE(process.exitCode(), 130);
  }
}

void TestTrainingCommands::simulate_shows_plans() {
  const QStringList words = {"simulate", "--scenario", "plan-churn", "--nodes", "12", "--hours", "1"};
  const ProcessResult text = run_node(words);
  QVERIFY2(text.ok(), text.text().constData());
  QVERIFY2(text.out.contains("lost slots                 0"), text.out.constData());
  const QJsonObject object = json_lines(run_node(words + QStringList{"--json"}).out).value(0);
  QCOMPARE(object["rounds"].toInt(), 6);
  QVERIFY(object["tokens"].toDouble() > 0 && object["shape"].toObject()["layers"].toInt() > 0);
  const ProcessResult list = run_node({"simulate", "--list"});
  QVERIFY(list.out.contains("plan-false") && list.out.contains("partition"));
  // Flags of the other kind of scenario, and a scenario that does not exist.
  for (const QStringList& wrong : {QStringList{"--scenario", "plan-churn", "--codec", "int4"},
                                   QStringList{"--hours", "3"}, QStringList{"--scenario", "plan-moon"}}) {
    const ProcessResult refused = run_node(QStringList{"simulate"} + wrong);
    QCOMPARE(refused.exit_code, 64);
    QVERIFY2(refused.err.contains("scenario"), refused.text().constData());
  }
  // A network that loses slots is a failure.
  const ProcessResult two = run_node({"simulate", "--scenario", "plan-churn", "--nodes", "24", "--hours", "4",
                                      "--seed", "3", "--replicas", "2", "--churn", "1"});
  QCOMPARE(two.exit_code, 1);
  QVERIFY2(two.out.contains("BROKEN: slots were lost"), two.text().constData());
}

void TestTrainingCommands::held_directory_is_75() {
  NEEDS_COMPUTE();
  const QString directory = lab()->copy("held");
  NodeProcess owner({"run", "--data-dir", directory, "--json", "--cpu-threads", "1"});
  QVERIFY(owner.next_line().has_value());  // ready
  // Commands that the core can serve go through it; commands that need the directory name its holder.
  const ProcessResult text =
      run_node({"generate", "--data-dir", directory, "--prompt", "x", "--max-tokens", "5"});
  QVERIFY2(text.exit_code == 0 && !text.out.isEmpty(), text.text().constData());
  const ProcessResult second = run_node({"train", "--data-dir", directory, "--steps", "1"});
  QCOMPARE(second.exit_code, 75);
  QVERIFY2(second.err.contains(QByteArray::number(owner.pid())), second.text().constData());
  QVERIFY(second.err.contains("stop it"));
}

void TestTrainingCommands::run_says_ready_and_stops_on_sigterm() {
  NEEDS_COMPUTE();
  const QString directory = lab()->copy("daemon");
  NodeProcess node({"run", "--data-dir", directory, "--json", "--cpu-threads", "1"});
  const auto line = node.next_line();
  QVERIFY(line.has_value());
  const QJsonObject ready = json_lines(*line).value(0);
  QVERIFY(ready["ready"].toBool());
  QCOMPARE(ready["pid"].toInteger(), node.pid());
  QCOMPARE(ready["data_dir"].toString(), directory);
  while (const auto state = node.next_line()) {
    if (state->contains("training")) break;
  }
  node.terminate();
  const ProcessResult result = node.finish();
  QCOMPARE(result.exit_code, 0);
  QVERIFY(!result.crashed);
}

void TestTrainingCommands::run_that_failed_says_so_at_the_end() {
  NodeProcess process({"run", "--data-dir", path("failing"), "--text", path("absent"), "--json"});
  QVERIFY(process.started());
  bool failed = false;
  while (!failed) {
    const auto line = process.next_line();
    QVERIFY2(line.has_value(), "the failure was never told");
    failed = line->contains("\"state\":\"failed\"");
  }
  process.terminate();
  const ProcessResult result = process.finish();
  QCOMPARE(result.exit_code, 66);
  QVERIFY2(result.err.contains("absent"), result.text().constData());
}

void TestTrainingCommands::json_of_train_holds_no_secret() {
  NEEDS_COMPUTE();
  const QString directory = path("secret");
  const ProcessResult result =
      run_node({"train", "--text", lab()->path("text"), "--data-dir", directory, "--profile",
                lab()->path("tiny.json"), "--steps", "1", "--json", "--cpu-threads", "1"});
  QVERIFY2(result.ok(), result.text().constData());
  // The words of the new wallet stand on standard error once, between two empty lines, and nowhere else.
  const qsizetype begin = result.err.indexOf("    ");
  const QByteArray words = result.err.mid(begin, result.err.indexOf('\n', begin) - begin).trimmed();
  QCOMPARE(words.split(' ').size(), 12);
  QVERIFY(!result.out.contains(words));
  QCOMPARE(result.err.count(words), 1);
  QFile log(directory + "/logs/neuroshardd.log");
  if (log.open(QIODevice::ReadOnly)) QVERIFY(!log.readAll().contains(words));
}

NS_TEST(TestTrainingCommands)
#include "test_training_commands.moc"
