// neuroshardd as scripts and people meet it: help, exit codes, JSON, settings, profiles; with the compute
// module also train, resume, generate, and how a second process on the same data directory fails.
#include <signal.h>

#include <QSet>
#include <QTest>

#include "tests/support/test_main.h"
#include "tests/support/training_run.h"

using namespace neuroshard::test;  // NOLINT

namespace {

// From when on the signal is a request: it is among the blocked ones.
bool blocks_termination(const QProcess& process) {
  QFile status(QString("/proc/%1/status").arg(process.processId()));
  if (!status.open(QIODevice::ReadOnly)) return false;
  const QByteArray text = status.readAll();
  const qsizetype at = text.indexOf("SigBlk:");
  return at >= 0 && (text.mid(at + 7).trimmed().left(16).toULongLong(nullptr, 16) >> (SIGTERM - 1) & 1) != 0;
}

}  // namespace

class TestCommandLine : public QObject {
  Q_OBJECT
 private Q_SLOTS:
  void help_of_every_command_has_examples();
  void only_computing_loads_libtorch();
  void exit_codes_are_in_the_help();
  void version();
  void wrong_usage_is_64_data();
  void wrong_usage_is_64();
  void a_repeated_flag_takes_one_word_each_time();
  void errors_are_json_when_asked();
  void profiles_are_made_and_shown();
  void founders_and_voters_are_chosen_and_explained();
  void existing_files_are_not_replaced();
  void settings_of_a_fresh_directory();
  void environment_and_flags_are_locked();
  void other_network_is_refused();
  void generate_without_a_directory_is_66();
  void unwritable_directory_is_77();
  void no_text_is_66();

  void run_without_text_waits_and_a_crash_is_told_next_time();

  void train_prints_one_object_a_step();
  void train_again_goes_on();
  void generate_repeats_with_the_same_seed();
  void generate_reads_standard_input();
  void generate_stops_while_it_waits_for_standard_input();
  void simulate_stops_on_sigterm();
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

namespace {

QStringList command_names(const QByteArray& help) {
  QStringList names;
  bool inside = false;
  for (const QByteArray& line : help.split('\n')) {
    if (line.startsWith("Commands:")) {
      inside = true;
    } else if (inside && line.startsWith("  ") && line.size() > 2 && line[2] != ' ') {
      names << QString::fromUtf8(line.trimmed().split(' ').first());
    } else if (inside && line.trimmed().isEmpty()) {
      break;
    } else if (inside && !line.startsWith(QByteArray(30, ' '))) {
      names << "not in the column of its description: " + QString::fromUtf8(line);
    }
  }
  return names;
}

}  // namespace

void TestCommandLine::help_of_every_command_has_examples() {
  const ProcessResult root = run_node({"--help"});
  QVERIFY2(root.ok(), root.text().constData());
  const QStringList commands = command_names(root.out);
  for (const char* name :
       {"run", "train", "wallet", "genesis", "generate", "checkpoint", "network", "settings", "bench"}) {
    QVERIFY2(commands.contains(name), name);
  }
  for (const QString& command : commands) {
    const ProcessResult help = run_node({command, "--help"});
    QVERIFY2(help.ok(), help.text().constData());
    QVERIFY2(help.out.contains("Usage: neuroshardd " + command.toUtf8()), help.text().constData());
    bool examples = help.out.contains("Examples:");
    for (const QString& sub : command_names(help.out)) {
      const ProcessResult sub_help = run_node({command, sub, "--help"});
      QVERIFY2(sub_help.ok(), sub_help.text().constData());
      examples = examples || sub_help.out.contains("Examples:");
    }
    QVERIFY2(examples, qPrintable(command));
  }
}

// The dynamic linker names every library that a process opens, also one opened later.
void TestCommandLine::only_computing_loads_libtorch() {
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

void TestCommandLine::exit_codes_are_in_the_help() {
  const QByteArray help = run_node({"--help"}).out;
  for (const char* code : {"\n    0 ", "\n    1 ", "\n   64 ", "\n   65 ", "\n   66 ", "\n   69 ", "\n   70 ",
                           "\n   73 ", "\n   74 ", "\n   75 ", "\n   77 ", "\n  130 "}) {
    QVERIFY2(help.contains(code), code);
  }
}

void TestCommandLine::version() {
  const ProcessResult result = run_node({"--version"});
  QVERIFY(result.ok());
  QVERIFY(result.out.startsWith("neuroshardd 0."));
}

void TestCommandLine::wrong_usage_is_64_data() {
  QTest::addColumn<QStringList>("arguments");
  QTest::newRow("nothing") << QStringList{};
  QTest::newRow("unknown command") << QStringList{"fly"};
  QTest::newRow("unknown flag") << QStringList{"train", "--fast"};
  QTest::newRow("no number") << QStringList{"train", "--steps", "many"};
  QTest::newRow("no steps") << QStringList{"train", "--steps", "0"};
  QTest::newRow("negative") << QStringList{"train", "--steps", "-3"};
  QTest::newRow("both ends") << QStringList{"train", "--steps", "3", "--until-step", "5"};
  QTest::newRow("group without command") << QStringList{"network"};
  QTest::newRow("missing required") << QStringList{"network", "create"};
  QTest::newRow("bad name") << QStringList{"network", "create", "--name", "My Net"};
  QTest::newRow("bad shape") << QStringList{"network", "create", "--name", "x", "--hidden", "100"};
  QTest::newRow("bad rate") << QStringList{"network", "create", "--name", "x", "--peak-lr", "fast"};
  QTest::newRow("bad founder") << QStringList{"network", "create", "--name",    "x",
                                              "--from",  "devnet", "--founder", "me"};
  QTest::newRow("founders alone, and none")
      << QStringList{"network", "create", "--name", "x", "--from", "devnet", "--voters", "founders"};
  QTest::newRow("temperature") << QStringList{"generate", "--temperature", "-1"};
}

void TestCommandLine::wrong_usage_is_64() {
  QFETCH(QStringList, arguments);
  const ProcessResult result = run_node(arguments + QStringList{"--data-dir", path("never")});
  QCOMPARE(result.exit_code, 64);
  QVERIFY(result.err.contains("neuroshardd: "));
  QVERIFY(!QFileInfo::exists(path("never")));
}

// The rest is the command's own: which checkpoint, and no second node to ask.
void TestCommandLine::a_repeated_flag_takes_one_word_each_time() {
  const ProcessResult result = run_node({"checkpoint", "fetch", "--profile", "devnet", "--at", "127.0.0.1:9",
                                         "newest", "--at", "here", "--data-dir", path("fetching")});
  QCOMPARE(result.exit_code, 64);
  QVERIFY2(result.err.contains("\"here\" is not an address"), result.text().constData());
}

void TestCommandLine::errors_are_json_when_asked() {
  const ProcessResult result = run_node({"network", "show", "nowhere", "--json"});
  QCOMPARE(result.exit_code, 66);
  QVERIFY(result.out.isEmpty());
  const QList<QJsonObject> lines = json_lines(result.err);
  QCOMPARE(lines.size(), 1);
  const QJsonObject error = lines[0]["error"].toObject();
  QCOMPARE(error["code"].toString(), QString("not found"));
  QVERIFY(error["message"].toString().contains("mainnet"));
  QVERIFY(error.contains("context"));
}

void TestCommandLine::profiles_are_made_and_shown() {
  const QString file = path("village.json");
  const ProcessResult made = run_node({"network", "create", "--name", "village", "--layers", "2", "--hidden",
                                       "64", "--head-dim", "32", "--experts", "1", "--experts-per-token", "1",
                                       "--peak-lr", "2.5e-4", "--out", file, "--json"});
  QVERIFY2(made.ok(), made.text().constData());
  const ProcessResult shown = run_node({"network", "show", file, "--json"});
  QVERIFY2(shown.ok(), shown.text().constData());
  const QJsonObject profile = json_lines(shown.out).value(0);
  QCOMPARE(profile["network_id"].toString(), json_lines(made.out).value(0)["network_id"].toString());
  const QJsonObject consensus = profile["consensus"].toObject();
  QCOMPARE(consensus["peak_learning_rate_nano"].toInt(), 250'000);
  QCOMPARE(consensus["experts"].toInt(), 1);
  QCOMPARE(consensus["sequence"].toInt(), 256);
  const ProcessResult people = run_node({"network", "show", "mainnet"});
  QVERIFY(people.out.contains("there is no bootstrap"));
  QCOMPARE(json_lines(run_node({"network", "show", "--json"}).out).size(), 4);

  const ProcessResult signed_one =
      run_node({"network", "create", "--name", "club", "--from", "devnet", "--publisher-key",
                path("club.key"), "--out", path("club.json")});
  QVERIFY2(signed_one.ok(), signed_one.text().constData());
  QVERIFY(run_node({"network", "show", path("club.json")}).ok());
  QVERIFY(!(QFileInfo(path("club.key")).permissions() & (QFile::ReadGroup | QFile::ReadOther)));
}

void TestCommandLine::founders_and_voters_are_chosen_and_explained() {
  const auto create = [this](const QStringList& more) {
    return run_node(QStringList{"network", "create", "--from", "devnet", "--name", "family", "--force",
                                "--out", path("family.json")} +
                    more);
  };
  const ProcessResult nobody = create({"--founder", "mine", "--data-dir", path("founder")});
  QCOMPARE(nobody.exit_code, 66);
  QVERIFY2(nobody.err.contains("neuroshardd wallet create"), nobody.err.constData());
  const ProcessResult wallet = run_node({"wallet", "create", "--json", "--data-dir", path("founder")});
  QVERIFY2(wallet.ok(), wallet.text().constData());
  const QString own = json_lines(wallet.out).value(0)["public_key"].toString();
  const QString other(64, 'a');
  const ProcessResult made =
      create({"--voters", "invited", "--founder", other, "--founder", "mine", "--data-dir", path("founder")});
  QVERIFY2(made.ok(), made.text().constData());
  QVERIFY2(made.err.contains("becomes a voter by an invitation"), made.err.constData());
  QVERIFY(!made.err.contains("names no founder"));
  const auto shown = [this] {
    return json_lines(run_node({"network", "show", path("family.json"), "--json"}).out).value(0);
  };
  QStringList founders{own, other};
  founders.sort();
  QCOMPARE(shown()["consensus"].toObject()["founders"].toVariant().toStringList(), founders);
  QVERIFY(run_node({"network", "show", path("family.json")}).out.contains(own.toLatin1()));

  const ProcessResult open =
      create({"--voters", "open", "--admission-contributions", "8", "--genesis", other});
  QVERIFY2(open.ok(), open.text().constData());
  // 8 contributions for the first wallet, then one a round.
  QVERIFY2(open.err.contains("2 wallets, 9 rounds") && open.err.contains("9 wallets, 16 rounds"),
           open.err.constData());
  QVERIFY(open.err.contains("names no founder"));
  QCOMPARE(shown()["directory"].toObject()["genesis"].toString(), other);
}

void TestCommandLine::existing_files_are_not_replaced() {
  const QStringList create{"network", "create", "--name", "once", "--out", path("once.json")};
  QVERIFY(run_node(create).ok());
  QCOMPARE(run_node(create).exit_code, 73);
  QVERIFY(run_node(create + QStringList{"--force"}).ok());
}

void TestCommandLine::settings_of_a_fresh_directory() {
  const QString directory = path("settings");
  // Reading makes nothing.
  const ProcessResult list = run_node({"settings", "list", "--json", "--data-dir", directory});
  QVERIFY2(list.ok(), list.text().constData());
  QVERIFY(json_lines(list.out).size() > 10);
  QVERIFY(!QFileInfo::exists(directory));
  QVERIFY(run_node({"settings", "set", "memory_limit", "2GiB", "--data-dir", directory}).ok());
  QCOMPARE(run_node({"settings", "get", "memory_limit", "--data-dir", directory}).out, QByteArray("2GiB\n"));
  QCOMPARE(run_node({"settings", "set", "memory_limit", "much", "--data-dir", directory}).exit_code, 64);
  QCOMPARE(run_node({"settings", "get", "memory", "--data-dir", directory}).exit_code, 64);
  QVERIFY(run_node({"settings", "reset", "memory_limit", "--data-dir", directory}).ok());
  QCOMPARE(run_node({"settings", "get", "memory_limit", "--data-dir", directory}).out, QByteArray("0\n"));
}

void TestCommandLine::environment_and_flags_are_locked() {
  NodeProcess process({"settings", "get", "cpu_threads", "--json", "--data-dir", path("locked")},
                      {"NEUROSHARD_CPU_THREADS=3"});
  const QJsonObject setting = json_lines(process.finish().out).value(0);
  QCOMPARE(setting["value"].toString(), QString("3"));
  QCOMPARE(setting["origin"].toString(), QString("environment"));
  QVERIFY(setting["locked"].toBool());
  NodeProcess change({"settings", "set", "cpu_threads", "2", "--data-dir", path("locked")},
                     {"NEUROSHARD_CPU_THREADS=3"});
  QCOMPARE(change.finish().exit_code, 77);
}

void TestCommandLine::other_network_is_refused() {
  const QString directory = path("network");
  QVERIFY(
      run_node({"settings", "set", "cpu_threads", "1", "--data-dir", directory, "--profile", "solo"}).ok());
  const ProcessResult other =
      run_node({"train", "--steps", "1", "--data-dir", directory, "--profile", "devnet"});
  QCOMPARE(other.exit_code, 64);
  QVERIFY(other.err.contains("'solo'") && other.err.contains("'devnet'"));
}

void TestCommandLine::generate_without_a_directory_is_66() {
  const ProcessResult result = run_node({"generate", "--prompt", "x", "--data-dir", path("nothing")});
  QCOMPARE(result.exit_code, 66);
  QVERIFY(result.err.contains("neuroshardd train"));
}

void TestCommandLine::unwritable_directory_is_77() {
  // Not even root can write here.
  const ProcessResult result = run_node({"train", "--steps", "1", "--data-dir", "/proc/self/neuroshard"});
  QVERIFY2(result.exit_code == 77 || result.exit_code == 66, result.text().constData());
  QVERIFY(result.err.contains("/proc"));
}

void TestCommandLine::no_text_is_66() {
  const ProcessResult missing =
      run_node({"train", "--steps", "1", "--text", path("no-such-text"), "--data-dir", path("no-text")});
  QCOMPARE(missing.exit_code, 66);
  QVERIFY2(missing.err.contains("no-such-text"), missing.text().constData());
}

void TestCommandLine::run_without_text_waits_and_a_crash_is_told_next_time() {
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

void TestCommandLine::train_prints_one_object_a_step() {
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

void TestCommandLine::train_again_goes_on() {
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
  // Where the steps are done the model is measured as it is, and nothing is trained.
  const ProcessResult measured =
      run_node({"train", "--data-dir", directory, "--until-step", "5", "--json", "--cpu-threads", "1"});
  QVERIFY2(measured.ok(), measured.text().constData());
  const QList<QJsonObject> rows = json_lines(measured.out);
  QCOMPARE(rows.size(), 1);
  QCOMPARE(rows[0]["step"].toInt(), 5);
  QVERIFY(std::abs(rows[0]["val_loss"].toDouble() - objects[1]["val_loss"].toDouble()) < 1e-4);
}

void TestCommandLine::generate_repeats_with_the_same_seed() {
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

void TestCommandLine::generate_reads_standard_input() {
  NEEDS_COMPUTE();
  const QString directory = lab()->copy("stdin");
  // NodeProcess gives an empty standard input: the beginning of a new text.
  const ProcessResult result = run_node(
      {"generate", "--data-dir", directory, "--prompt", "-", "--max-tokens", "5", "--seed", "1", "--json"});
  QVERIFY2(result.ok(), result.text().constData());
  QCOMPARE(json_lines(result.out).value(0)["prompt"].toString(), QString());
}

void TestCommandLine::generate_stops_while_it_waits_for_standard_input() {
  QProcess process;
  process.start(node_program(), {"generate", "--data-dir", path("nothing"), "--prompt", "-"});
  QVERIFY(process.waitForStarted());
  QTRY_VERIFY_WITH_TIMEOUT(blocks_termination(process), 10'000);
  QCOMPARE(::kill(static_cast<pid_t>(process.processId()), SIGTERM), 0);
  QVERIFY2(process.waitForFinished(10'000), "still waiting for its input");
  QCOMPARE(process.exitStatus(), QProcess::NormalExit);
  QCOMPARE(process.exitCode(), 130);
}

void TestCommandLine::simulate_stops_on_sigterm() {
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

void TestCommandLine::held_directory_is_75() {
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

void TestCommandLine::run_says_ready_and_stops_on_sigterm() {
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

void TestCommandLine::run_that_failed_says_so_at_the_end() {
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

void TestCommandLine::json_of_train_holds_no_secret() {
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

NS_TEST(TestCommandLine)
#include "test_command_line.moc"
