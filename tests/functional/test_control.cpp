// A running node, steered from other processes as people do: status, contribute, snooze, finish, set, logs,
// stop; and what is left behind, and told, when it is killed.
#include <QFile>
#include <QJsonArray>
#include <QTest>

#include "tests/support/test_main.h"
#include "tests/support/training_run.h"

using namespace neuroshard::test;  // NOLINT

class TestControl : public QObject {
  Q_OBJECT

 private Q_SLOTS:
  void initTestCase() {
    const QByteArray problem = lab_.prepare();
    QVERIFY2(problem.isEmpty(), problem.constData());
  }
  void status_shows_steps_going_on();
  void contribute_off_pauses_and_on_goes_on();
  void contribute_off_survives_a_restart();
  void snooze_ends_by_itself();
  void finish_frees_and_contribute_takes_up();
  void settings_of_a_running_node_change_at_once();
  void checkpoints_are_handled_beside_the_training();
  void text_is_written_beside_the_training();
  void logs_are_shown_and_followed();
  void stop_leaves_a_checkpoint_and_a_free_directory();
  void node_in_a_folder_with_a_long_name_is_found();
  void a_closed_terminal_leaves_a_node_of_nohup();
  void killed_node_is_recognised();
  void second_run_is_75();
  void commands_without_a_node_say_so();
  void questions_leave_a_free_lock_alone();
  void another_user_is_refused();

 private:
  QStringList environment(const QString& name) const {
    return {"XDG_RUNTIME_DIR=" + lab_.path("runtime-" + name)};
  }
  QStringList at(const QString& name) const { return {"--data-dir", lab_.path(name), "--json"}; }

  // A node that trains on a copy of the lab's directory and said that it is ready.
  std::unique_ptr<NodeProcess> run(const QString& name, bool fresh = true) {
    if (fresh) lab_.copy(name);
    auto node = std::make_unique<NodeProcess>(
        QStringList{"run", "--cpu-threads", "1", "--eval-interval-steps", "0"} + at(name), environment(name));
    const auto ready = node->next_line();
    if (!ready || !ready->contains("\"ready\":true")) qCritical("%s", node->finish(1000).text().constData());
    return node;
  }
  ProcessResult command(const QStringList& words, const QString& name) const {
    return NodeProcess(words + at(name), environment(name)).finish();
  }
  QJsonObject status(const QString& name) const {
    const ProcessResult result = command({"status"}, name);
    if (!result.ok()) qCritical("%s", result.text().constData());
    return json_lines(result.out).value(0);
  }
  static qint64 step_of(const QJsonObject& status) {
    return status["training"].toObject()["step"].toInteger();
  }
  // Asks until the condition holds; an empty object after a long time.
  QJsonObject until(const QString& name, const std::function<bool(const QJsonObject&)>& holds) const {
    const QDeadlineTimer deadline(60'000);
    while (!deadline.hasExpired()) {
      const QJsonObject now = status(name);
      if (holds(now)) return now;
    }
    return {};
  }
  QJsonObject until_state(const QString& name, const QString& state) const {
    return until(name, [&state](const QJsonObject& now) { return now["state"].toString() == state; });
  }
  QStringList control_files(const QString& name) const {
    return QDir(lab_.path("runtime-" + name + "/neuroshard")).entryList({"control-*.json"});
  }

  TrainingLab lab_;
};

void TestControl::status_shows_steps_going_on() {
  const auto node = run("status");
  const QJsonObject first = until("status", [](const QJsonObject& now) { return step_of(now) > 1; });
  QCOMPARE(first["state"].toString(), QString("training"));
  QCOMPARE(first["pid"].toInteger(), node->pid());
  QVERIFY(first["training"].toObject()["loss"].isDouble());
  QVERIFY(first["training"].toObject()["held_out_loss"].isNull());  // unknown is null, never 0
  const qint64 step = step_of(first);
  const QJsonObject later = until("status", [step](const QJsonObject& now) { return step_of(now) > step; });
  QVERIFY(!later.isEmpty());

  // --watch: a line for each change, in order, and a clean end with the node's.
  NodeProcess watch(QStringList{"status", "--watch"} + at("status"), environment("status"));
  qint64 seen = 0;
  for (int i = 0; i < 3; ++i) {
    const auto line = watch.next_line();
    QVERIFY(line.has_value());
    const qint64 now = step_of(json_lines(*line).value(0));
    QVERIFY(now >= seen);
    seen = now;
  }
  node->terminate();
  const ProcessResult ended = node->finish();
  QVERIFY2(ended.ok(), ended.text().constData());
  const ProcessResult watched = watch.finish();
  QVERIFY2(watched.ok(), watched.text().constData());
  QVERIFY(watched.out.contains("\"running\":false"));
  QVERIFY(control_files("status").isEmpty());
}

void TestControl::contribute_off_pauses_and_on_goes_on() {
  const auto node = run("contribute");
  QVERIFY(!until("contribute", [](const QJsonObject& now) { return step_of(now) > 1; }).isEmpty());
  const ProcessResult off = command({"contribute", "off"}, "contribute");
  QVERIFY2(off.ok(), off.text().constData());
  const QJsonObject paused = until_state("contribute", "paused");
  QCOMPARE(paused["contributing"].toBool(), false);
  QCOMPARE(paused["pause_reasons"].toArray().size(), 1);
  QVERIFY(paused["pause_reasons"].toArray()[0].toObject()["text"].toString().contains(
      "switched contributing off"));
  const qint64 step = step_of(paused);
  for (int i = 0; i < 3; ++i) QCOMPARE(step_of(status("contribute")), step);
  // The trained state is on the disk.
  QCOMPARE(paused["checkpoint"].toString().section('-', 0, 0).toLongLong(), step);

  const ProcessResult on = command({"contribute", "on"}, "contribute");
  QVERIFY2(on.ok(), on.text().constData());
  const QJsonObject again =
      until("contribute", [step](const QJsonObject& now) { return step_of(now) > step; });
  QVERIFY(again["pause_reasons"].toArray().isEmpty());
}

void TestControl::contribute_off_survives_a_restart() {
  auto node = run("restart");
  QVERIFY(command({"contribute", "off"}, "restart").ok());
  QVERIFY(command({"stop"}, "restart").ok());
  QVERIFY(node->finish().ok());
  node = run("restart", /*fresh=*/false);
  QVERIFY(!until_state("restart", "paused").isEmpty());
  QVERIFY(command({"set", "contribute", "on"}, "restart").ok());
  QVERIFY(!until_state("restart", "training").isEmpty());
}

void TestControl::snooze_ends_by_itself() {
  const auto node = run("snooze");
  QVERIFY(!until_state("snooze", "training").isEmpty());
  QCOMPARE(command({"snooze", "soon"}, "snooze").exit_code, 64);
  const ProcessResult snoozed = command({"snooze", "2s"}, "snooze");
  QVERIFY2(snoozed.ok(), snoozed.text().constData());
  const QJsonObject view = json_lines(snoozed.out).value(0);
  const QJsonObject reason = view["pause_reasons"].toArray()[0].toObject();
  QCOMPARE(reason["key"].toString(), QString("snooze"));
  QVERIFY(reason["text"].toString().contains("snoozed until"));
  QCOMPARE(reason["until_ms"], view["snoozed_until_ms"]);
  QVERIFY(view["snoozed_until_ms"].isDouble());
  QVERIFY(view["contributing"].toBool());
  QVERIFY(!until_state("snooze", "paused").isEmpty());
  const QJsonObject awake = until_state("snooze", "training");
  QVERIFY(awake["snoozed_until_ms"].isNull());
  // Contributing switched on ends a snooze.
  QVERIFY(command({"snooze", "tomorrow"}, "snooze").ok());
  QVERIFY(!until_state("snooze", "paused").isEmpty());
  QVERIFY(command({"contribute", "on"}, "snooze").ok());
  QVERIFY(!until_state("snooze", "training").isEmpty());
}

void TestControl::finish_frees_and_contribute_takes_up() {
  const auto node = run("finish");
  QVERIFY(!until("finish", [](const QJsonObject& now) { return step_of(now) > 1; }).isEmpty());
  const ProcessResult finished = command({"finish"}, "finish");
  QVERIFY2(finished.ok(), finished.text().constData());
  const QJsonObject idle = status("finish");
  QCOMPARE(idle["state"].toString(), QString("idle"));
  QCOMPARE(idle["contributing"].toBool(), false);
  const qint64 step = step_of(idle);
  const ProcessResult on = command({"contribute", "on"}, "finish");
  QVERIFY2(on.ok(), on.text().constData());
  QVERIFY(!until("finish", [step](const QJsonObject& now) {
             return now["state"].toString() == "training" && step_of(now) > step;
           }).isEmpty());
}

void TestControl::settings_of_a_running_node_change_at_once() {
  const auto node = run("settings");
  const ProcessResult set = command({"set", "checkpoint_keep_last", "5"}, "settings");
  QVERIFY2(set.ok(), set.text().constData());
  QCOMPARE(json_lines(set.out).value(0)["value"].toString(), QString("5"));
  const ProcessResult get = command({"settings", "get", "checkpoint_keep_last"}, "settings");
  QCOMPARE(json_lines(get.out).value(0)["number"].toInteger(), 5);
  QCOMPARE(json_lines(get.out).value(0)["origin"].toString(), QString("settings.toml"));
  const auto said = [this](const char* name, const char* value) {
    return NodeProcess({"set", name, value, "--data-dir", lab_.path("settings")}, environment("settings"))
        .finish();
  };
  QVERIFY(said("serve_files", "off").err.contains("at the next start"));
  QVERIFY(!said("checkpoint_keep_last", "5").err.contains("at the next start"));
  // Forced by a flag of the running node; out of bounds; unknown.
  QCOMPARE(command({"set", "cpu_threads", "2"}, "settings").exit_code, 77);
  QCOMPARE(command({"set", "checkpoint_keep_last", "0"}, "settings").exit_code, 64);
  QCOMPARE(command({"set", "colour", "red"}, "settings").exit_code, 64);
  QVERIFY(command({"stop"}, "settings").ok());
  const ProcessResult stopped = command({"settings", "get", "checkpoint_keep_last"}, "settings");
  QCOMPARE(json_lines(stopped.out).value(0)["number"].toInteger(), 5);  // it was kept
}

void TestControl::checkpoints_are_handled_beside_the_training() {
  const auto node = run("keep");
  QVERIFY(!until("keep", [](const QJsonObject& now) { return step_of(now) > 1; }).isEmpty());
  const ProcessResult saved = command({"checkpoint", "save"}, "keep");
  QVERIFY2(saved.ok(), saved.text().constData());
  const QString name = json_lines(saved.out).value(0)["saved"].toString();
  const ProcessResult pinned = command({"checkpoint", "pin", name}, "keep");
  QVERIFY2(pinned.ok(), pinned.text().constData());
  const ProcessResult verified = command({"checkpoint", "verify", name}, "keep");
  QVERIFY2(verified.ok() && json_lines(verified.out).value(0)["good"].toBool(), verified.text().constData());
  QCOMPARE(command({"checkpoint", "delete", name}, "keep").exit_code, 77);  // pinned

  const QString folder = lab_.path("keep-export");
  const ProcessResult exported =
      command({"checkpoint", "export", name, "--format", "checkpoint", "--out", folder}, "keep");
  QVERIFY2(exported.ok(), exported.text().constData());
  const ProcessResult imported = command({"checkpoint", "import", folder}, "keep");
  QVERIFY2(imported.ok(), imported.text().constData());
  QVERIFY(!json_lines(imported.out).value(0)["imported"].toString().isEmpty());

  const qint64 saved_at = name.section('-', 0, 0).toLongLong();
  QVERIFY(!until("keep", [&](const QJsonObject& now) { return step_of(now) > saved_at + 2; }).isEmpty());
  // A restore can be undone for 50 steps, which a fast machine makes between two commands.
  QVERIFY(command({"contribute", "off"}, "keep").ok());
  const ProcessResult restored = command({"checkpoint", "restore", name}, "keep");
  QVERIFY2(restored.ok(), restored.text().constData());
  const QJsonObject back = json_lines(restored.out).value(0);
  QCOMPARE(back["step"].toInteger(), saved_at);
  QVERIFY(!back["before"].toString().isEmpty());
  const ProcessResult undone = command({"checkpoint", "undo"}, "keep");
  QVERIFY2(undone.ok(), undone.text().constData());
  const qint64 taken_back = json_lines(undone.out).value(0)["step"].toInteger();
  QVERIFY(taken_back > saved_at);
  QCOMPARE(command({"checkpoint", "undo"}, "keep").exit_code, 66);
  QVERIFY(command({"checkpoint", "restore", name}, "keep").ok());
  QVERIFY(command({"contribute", "on"}, "keep").ok());
  QVERIFY(!until("keep", [&](const QJsonObject& now) { return step_of(now) > saved_at; }).isEmpty());

  const ProcessResult preview =
      command({"checkpoint", "prune", "--preview", "--keep-newest", "1", "--keep-best", "0"}, "keep");
  QVERIFY2(preview.ok(), preview.text().constData());
  const ProcessResult compared = command({"checkpoint", "compare", name, "latest"}, "keep");
  QVERIFY2(compared.ok(), compared.text().constData());
  QVERIFY(json_lines(compared.out).value(0)["slots"].toArray().size() > 2);
  const ProcessResult reset = command({"settings", "reset", "checkpoint_keep_last"}, "keep");
  QVERIFY2(reset.ok(), reset.text().constData());
}

void TestControl::text_is_written_beside_the_training() {
  const auto node = run("writer");
  QVERIFY(!until("writer", [](const QJsonObject& now) { return step_of(now) > 1; }).isEmpty());
  const ProcessResult written =
      command({"generate", "--prompt", "kalo", "--max-tokens", "20", "--seed", "7"}, "writer");
  QVERIFY2(written.ok(), written.text().constData());
  const QJsonObject text = json_lines(written.out).value(0);
  QVERIFY(text["tokens"].toInteger() >= 1);
  QVERIFY(text["step"].toInteger() >= 1);
  const qint64 step = step_of(status("writer"));
  QVERIFY(!until("writer", [step](const QJsonObject& now) { return step_of(now) > step; }).isEmpty());
  // While nothing trains, 0 repeats its text as any other seed does.
  QVERIFY(command({"contribute", "off"}, "writer").ok());
  QVERIFY(!until_state("writer", "paused").isEmpty());
  const QStringList of_zero{"generate", "--prompt", "kalo", "--max-tokens", "20", "--seed", "0"};
  const QJsonObject first = json_lines(command(of_zero, "writer").out).value(0);
  const QJsonObject again = json_lines(command(of_zero, "writer").out).value(0);
  QVERIFY(first["seed"].isDouble());
  QCOMPARE(first["seed"].toInteger(), 0);
  QCOMPARE(again["text"].toString(), first["text"].toString());
  // The model of a running node computes with the node's settings.
  QCOMPARE(command({"generate", "--prompt", "kalo", "--cpu-threads", "1"}, "writer").exit_code, 64);
}

void TestControl::logs_are_shown_and_followed() {
  const auto node = run("logs");
  QVERIFY(!until_state("logs", "training").isEmpty());
  NodeProcess follow(QStringList{"logs", "--follow"} + at("logs"), environment("logs"));
  const auto first = follow.next_line();
  QVERIFY(first.has_value());
  QVERIFY(json_lines(*first).value(0)["sequence"].toInteger() > 0);
  QVERIFY(command({"stop"}, "logs").ok());
  const ProcessResult followed = follow.finish();
  QVERIFY2(followed.ok(), followed.text().constData());
  const ProcessResult afterwards = command({"logs", "--lines", "1"}, "logs");
  QVERIFY2(afterwards.ok(), afterwards.text().constData());
  QCOMPARE(json_lines(afterwards.out).size(), 1);
  QVERIFY(afterwards.out.contains("at the end of the run"));
}

void TestControl::stop_leaves_a_checkpoint_and_a_free_directory() {
  const auto node = run("stop");
  QVERIFY(!until("stop", [](const QJsonObject& now) { return step_of(now) > 1; }).isEmpty());
  const ProcessResult stop = command({"stop"}, "stop");
  QVERIFY2(stop.ok(), stop.text().constData());
  QVERIFY(!node->running() || node->finish(5'000).ok());
  QVERIFY2(node->finish().ok(), node->finish().text().constData());
  const QJsonObject said = json_lines(stop.out).value(0);
  QCOMPARE(said["checkpoint"].toString().section('-', 0, 0).toLongLong(), said["step"].toInteger());
  QVERIFY(control_files("stop").isEmpty());
  const ProcessResult verify = command({"checkpoint", "verify"}, "stop");
  QVERIFY2(verify.ok(), verify.text().constData());
}

// Longer than any text of the snapshot.
void TestControl::node_in_a_folder_with_a_long_name_is_found() {
  const QString folder(200, 'n');
  const QString directory = lab_.path(folder + "/" + folder + "/" + folder);
  NodeProcess node({"run", "--data-dir", directory, "--json"}, environment("long"));
  QVERIFY(node.next_line().has_value());
  const ProcessResult found =
      NodeProcess({"status", "--data-dir", directory, "--json"}, environment("long")).finish();
  QVERIFY2(found.ok(), found.text().constData());
  QCOMPARE(json_lines(found.out).value(0)["pid"].toInteger(), node.pid());
  node.terminate();
  const ProcessResult ended = node.finish();
  QVERIFY2(!ended.crashed && !ended.timed_out, ended.text().constData());
}

// A node that waits for the signal has it blocked, and gets it although nohup has it ignored.
void TestControl::a_closed_terminal_leaves_a_node_of_nohup() {
  NodeProcess node({node_program(), "run", "--data-dir", lab_.path("nohup"), "--json"}, environment("nohup"),
                   {}, {}, "nohup");
  QVERIFY(node.next_line().has_value());
  QFile file("/proc/" + QString::number(node.pid()) + "/status");
  QVERIFY(file.open(QIODevice::ReadOnly));
  quint64 blocked = 0;
  for (const QByteArray& line : file.readAll().split('\n'))
    if (line.startsWith("SigBlk:")) blocked = line.mid(7).trimmed().toULongLong(nullptr, 16);
  QCOMPARE((blocked >> (SIGHUP - 1)) & 1, quint64{0});
  QCOMPARE((blocked >> (SIGTERM - 1)) & 1, quint64{1});
  QCOMPARE(::kill(static_cast<pid_t>(node.pid()), SIGHUP), 0);
  QVERIFY(command({"status"}, "nohup").ok());
  node.terminate();
  QVERIFY2(!node.finish().timed_out, "it does not end");
}

void TestControl::killed_node_is_recognised() {
  auto node = run("killed");
  QVERIFY(!until_state("killed", "training").isEmpty());
  const qint64 pid = node->pid();
  node->kill_now();
  QCOMPARE(control_files("killed").size(), 1);
  const ProcessResult status = command({"status"}, "killed");
  QCOMPARE(status.exit_code, 69);
  QVERIFY2(status.err.contains("without a clean stop") && status.err.contains(QByteArray::number(pid)),
           status.err.constData());
  QVERIFY(status.err.contains("neuroshardd run"));
  QCOMPARE(command({"stop"}, "killed").exit_code, 69);
  // The next one takes its place.
  node = run("killed", /*fresh=*/false);
  QVERIFY(!until_state("killed", "training").isEmpty());
  QCOMPARE(control_files("killed").size(), 1);
  QVERIFY(command({"stop"}, "killed").ok());
  QVERIFY(control_files("killed").isEmpty());
}

void TestControl::second_run_is_75() {
  const auto node = run("second");
  const ProcessResult second = command({"run"}, "second");
  QCOMPARE(second.exit_code, 75);
  QVERIFY2(second.err.contains(QByteArray::number(node->pid())), second.err.constData());
  QVERIFY2(!second.err.contains("XDG_RUNTIME_DIR"), second.err.constData());
  // Its failure did not take the first one's control.json away.
  QCOMPARE(status("second")["pid"].toInteger(), node->pid());
  // A command that looks for the control file in another place names that place.
  for (const char* word : {"status", "run"}) {
    const ProcessResult lost = NodeProcess(QStringList{word} + at("second"), environment("lost")).finish();
    QCOMPARE(lost.exit_code, 75);
    QVERIFY2(lost.err.contains(lab_.path("runtime-lost").toUtf8()) && lost.err.contains("XDG_RUNTIME_DIR"),
             lost.err.constData());
  }
}

void TestControl::commands_without_a_node_say_so() {
  lab_.copy("alone");
  for (const QStringList& words :
       {QStringList{"status"}, {"contribute", "off"}, {"snooze", "1h"}, {"finish"}, {"stop"}}) {
    const ProcessResult result = command(words, "alone");
    QCOMPARE(result.exit_code, 69);
    QVERIFY2(result.err.contains("no neuroshardd runs"), result.err.constData());
  }
  // Another process than `run` has the directory: its number is named.
  NodeProcess train(lab_.train("alone", 1'000'000));
  if (!train.next_line()) QFAIL(train.finish().text().constData());
  const ProcessResult busy = command({"status"}, "alone");
  QCOMPARE(busy.exit_code, 75);
  QVERIFY2(busy.err.contains(QByteArray::number(train.pid())), busy.err.constData());
  // Its files can still be read.
  const ProcessResult logs = command({"logs"}, "alone");
  QVERIFY2(logs.ok() && !json_lines(logs.out).isEmpty(), logs.text().constData());
  QVERIFY(train.running());
}

// The holder of the lock writes its process id into it. A question that took it, for however short, would
// turn away a core that starts in that moment.
void TestControl::questions_leave_a_free_lock_alone() {
  const QString directory = lab_.copy("free");
  const QString path = directory + "/lock";
  const QByteArray left = "pid 999999999\nstarted 1\n";  // of a process that is no more
  const auto put = [&] {
    QFile file(path);
    return file.open(QIODevice::WriteOnly) && file.write(left) == left.size();
  };
  QVERIFY(put());
  const QList<QStringList> questions{{"status"}, {"contribute", "off"}, {"snooze", "1h"}, {"stop"}, {"logs"}};
  for (const QStringList& words : questions) {
    const ProcessResult result = command(words, "free");
    QVERIFY2(!result.crashed && !result.timed_out, result.text().constData());
    QFile file(path);
    QVERIFY(file.open(QIODevice::ReadOnly));
    QVERIFY2(file.readAll() == left, qPrintable(words.join(' ')));
  }
  // One that nobody ever had is not even made.
  QVERIFY(QFile::remove(path));
  QCOMPARE(command({"status"}, "free").exit_code, 69);
  QVERIFY(!QFile::exists(path));
}

// Somebody with another account on this computer who knows where everything lies.
void TestControl::another_user_is_refused() {
  constexpr unsigned somebody_else = 65534;
  QProcess may;
  may.start("setpriv", {"--reuid", QString::number(somebody_else), "--clear-groups", "true"});
  QVERIFY(may.waitForFinished());
  if (may.exitCode() != 0) QSKIP("only root can be somebody else");
  const auto node = run("mine");
  // Nothing but what the node itself closes is in the way.
  const auto open =
      QFile::ReadOwner | QFile::WriteOwner | QFile::ExeOwner | QFile::ReadOther | QFile::ExeOther;
  QVERIFY(QFile::setPermissions(lab_.path(""), open));
  const QString program = lab_.path("neuroshardd");
  QVERIFY(QFile::copy(qEnvironmentVariable("NS_BIN_DIR") + "/neuroshardd", program));
  QVERIFY(QFile::setPermissions(program, open));
  for (const QStringList& words :
       {QStringList{"status"}, QStringList{"stop"}, QStringList{"contribute", "off"}}) {
    QProcess other;
    QProcessEnvironment with = QProcessEnvironment::systemEnvironment();
    with.insert("XDG_RUNTIME_DIR", lab_.path("runtime-mine"));
    other.setProcessEnvironment(with);
    other.start("setpriv", QStringList{"--reuid", QString::number(somebody_else), "--clear-groups", program} +
                               words + at("mine"));
    QVERIFY(other.waitForFinished());
    const QByteArray said = other.readAllStandardError();
    QCOMPARE(other.exitCode(), 77);
    QVERIFY2(said.contains("ermission denied"), said.constData());
  }
  const QJsonObject now = status("mine");
  QCOMPARE(now["contributing"].toBool(), true);
  QVERIFY(node->running());
}

NS_TEST(TestControl)
#include "test_control.moc"
