// A real node and its contribute rules over a made-up machine; safe mode; the notice after a crash.
#include <QFile>
#include <QJsonArray>
#include <QTest>
#include <csignal>

#include "tests/support/test_main.h"
#include "tests/support/training_run.h"

using namespace neuroshard::test;  // NOLINT

class TestContribute : public QObject {
  Q_OBJECT

 private Q_SLOTS:
  void initTestCase() {
    qputenv("NEUROSHARD_INSPECTABLE", "1");  // a node's maps are looked at
    const QByteArray problem = lab_.prepare();
    QVERIFY2(problem.isEmpty(), problem.constData());
  }
  void battery_pauses_and_anyway_goes_on();
  void listed_program_pauses();
  void snooze_survives_a_restart();
  void safe_mode_trains_nothing_and_the_rest_works();
  void crash_is_told_once_data();
  void crash_is_told_once();
  void diagnostics_of_a_running_node_hold_no_cookie();

 private:
  QStringList environment(const QString& name) const {
    return {"XDG_RUNTIME_DIR=" + lab_.path("runtime-" + name)};
  }
  QStringList at(const QString& name) const { return {"--data-dir", lab_.path(name), "--json"}; }
  QString machine(const QString& name) const { return lab_.path("machine-" + name); }
  // A file of the made-up machine, replaced in one piece: the node may read it at any moment.
  void machine_file(const QString& name, const QString& path, const QByteArray& text) const {
    const QString full = machine(name) + "/" + path;
    QDir().mkpath(full.section('/', 0, -2));
    QFile file(full + ".new");
    QVERIFY(file.open(QIODevice::WriteOnly));
    file.write(text + "\n");
    file.close();
    std::filesystem::rename(file.fileName().toStdString(), full.toStdString());
  }
  void plug(const QString& name, bool mains) const {
    const QString folder = "sys/class/power_supply/";
    machine_file(name, folder + "BAT0/type", "Battery");
    machine_file(name, folder + "BAT0/status", mains ? "Charging" : "Discharging");
    machine_file(name, folder + "BAT0/capacity", "63");
    machine_file(name, folder + "AC/type", "Mains");
    machine_file(name, folder + "AC/online", mains ? "1" : "0");
  }
  std::unique_ptr<NodeProcess> run(const QString& name, bool fresh = true, const QStringList& more = {}) {
    if (fresh) {
      lab_.copy(name);
      plug(name, true);
    }
    auto node =
        std::make_unique<NodeProcess>(QStringList{"run", "--cpu-threads", "1", "--eval-interval-steps", "0",
                                                  "--sensor-root", machine(name)} +
                                          more + at(name),
                                      environment(name));
    const auto ready = node->next_line();
    if (!ready || !ready->contains("\"ready\":true")) qCritical("%s", node->finish(1000).text().constData());
    return node;
  }
  ProcessResult command(const QStringList& words, const QString& name) const {
    return NodeProcess(words + at(name), environment(name)).finish();
  }
  QJsonObject status(const QString& name) const { return json_lines(command({"status"}, name).out).value(0); }
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
  static QStringList reasons(const QJsonObject& status) {
    QStringList keys;
    for (const QJsonValue& reason : status["pause_reasons"].toArray()) keys += reason["key"].toString();
    return keys;
  }
  static QJsonObject sensor(const QJsonObject& status, const QString& key) {
    for (const QJsonValue& sensor : status["sensors"].toArray()) {
      if (sensor["key"].toString() == key) return sensor.toObject();
    }
    return {};
  }

  TrainingLab lab_;
};

void TestContribute::battery_pauses_and_anyway_goes_on() {
  const auto node = run("battery");
  QVERIFY(!until_state("battery", "training").isEmpty());
  plug("battery", false);
  const QJsonObject paused = until_state("battery", "paused");
  QCOMPARE(reasons(paused), QStringList{"battery"});
  QCOMPARE(sensor(paused, "battery")["value"].toString(), QString("on battery, 63 %"));
  QVERIFY(sensor(paused, "metered")["value"].isNull());  // unknown is null
  QVERIFY(sensor(paused, "metered")["note"].toString().contains("unknown"));
  const ProcessResult shown =
      NodeProcess({"contribute", "--data-dir", lab_.path("battery")}, environment("battery")).finish();
  QVERIFY2(shown.ok(), shown.text().constData());
  QVERIFY(shown.out.contains("on battery, 63 %; resumes on mains power"));
  QVERIFY(shown.out.contains("metered: —"));

  const ProcessResult anyway = command({"contribute", "anyway", "1h"}, "battery");
  QVERIFY2(anyway.ok(), anyway.text().constData());
  QVERIFY(json_lines(anyway.out).value(0)["overridden_until_ms"].isDouble());
  QVERIFY(!until_state("battery", "training").isEmpty());
  QVERIFY(command({"contribute", "anyway", "end"}, "battery").ok());
  const QJsonObject obeying = until_state("battery", "paused");
  QVERIFY(obeying["contributing"].toBool());
  QVERIFY(obeying["overridden_until_ms"].isNull());
  QCOMPARE(command({"contribute", "anyway", "soon"}, "battery").exit_code, 64);
  QVERIFY(command({"set", "pause_on_battery", "never"}, "battery").ok());
  QVERIFY(!until_state("battery", "training").isEmpty());
  const ProcessResult stop = command({"stop"}, "battery");
  QVERIFY2(stop.ok(), stop.text().constData());
}

void TestContribute::listed_program_pauses() {
  const auto node = run("program");
  QVERIFY(!until_state("program", "training").isEmpty());
  QVERIFY(command({"set", "pause_for_programs", "Doom, vlc"}, "program").ok());
  machine_file("program", "proc/77/comm", "doom");
  const QJsonObject paused = until_state("program", "paused");
  QCOMPARE(reasons(paused), QStringList{"program"});
  QVERIFY(paused["pause_reasons"].toArray()[0].toObject()["text"].toString().contains("Doom runs"));
  const ProcessResult wrong = command({"set", "pause_for_programs", "/usr/bin/vlc"}, "program");
  QCOMPARE(wrong.exit_code, 64);
  const ProcessResult hours = command({"set", "schedule", "mon 8-25"}, "program");
  QCOMPARE(hours.exit_code, 64);
  QVERIFY(hours.err.contains("8-25"));
}

void TestContribute::snooze_survives_a_restart() {
  auto node = run("snooze");
  QVERIFY(command({"snooze", "2h"}, "snooze").ok());
  QVERIFY(command({"stop"}, "snooze").ok());
  QVERIFY(node->finish().ok());
  node = run("snooze", /*fresh=*/false);
  const QJsonObject paused = until_state("snooze", "paused");
  QCOMPARE(reasons(paused), QStringList{"snooze"});
  QVERIFY(paused["snoozed_until_ms"].isDouble());
  QVERIFY(command({"contribute", "on"}, "snooze").ok());
  QVERIFY(!until_state("snooze", "training").isEmpty());
}

void TestContribute::safe_mode_trains_nothing_and_the_rest_works() {
  const auto node = run("safe", true, {"--safe"});
  const QJsonObject view = until_state("safe", "paused");
  QVERIFY(view["safe_mode"].toBool());
  QCOMPARE(reasons(view), QStringList{"safe_mode"});
  QVERIFY(command({"contribute", "on"}, "safe").ok());
  QVERIFY(command({"set", "checkpoint_keep_last", "5"}, "safe").ok());
  QVERIFY(command({"settings", "get", "checkpoint_keep_last"}, "safe").ok());
  QVERIFY(command({"logs"}, "safe").ok());
  QVERIFY(command({"wallet", "show"}, "safe").ok());
  QCOMPARE(reasons(status("safe")), QStringList{"safe_mode"});
  QFile maps(QString("/proc/%1/maps").arg(node->pid()));
  QVERIFY(maps.open(QIODevice::ReadOnly));
  const QByteArray loaded = maps.readAll();
  QVERIFY(loaded.contains("neuroshardd"));
  QVERIFY(!loaded.contains("compute_cpu"));
  QVERIFY(command({"stop"}, "safe").ok());
  const ProcessResult ended = node->finish();
  QVERIFY2(ended.ok(), ended.text().constData());
}

void TestContribute::crash_is_told_once_data() {
  QTest::addColumn<int>("number");
  QTest::addColumn<QString>("name");
  QTest::newRow("segv") << SIGSEGV << "SIGSEGV";
  QTest::newRow("abrt") << SIGABRT << "SIGABRT";
}

void TestContribute::crash_is_told_once() {
  QFETCH(int, number);
  QFETCH(QString, name);
  auto node = run(name);
  QVERIFY(!until_state(name, "training").isEmpty());
  QCOMPARE(::kill(static_cast<pid_t>(node->pid()), number), 0);
  QVERIFY(node->finish().crashed);
  QCOMPARE(QDir(lab_.path(name + "/crash")).entryList({"crash-*.txt"}).size(), 1);

  node = run(name, /*fresh=*/false, {"--safe"});
  const QJsonArray alerts = status(name)["alerts"].toArray();
  QCOMPARE(alerts.size(), 1);
  QCOMPARE(alerts[0].toObject()["key"].toString(), QString("crashed"));
  QVERIFY(alerts[0].toObject()["message"].toString().contains(name));
  QFile log(lab_.path(name + "/logs/neuroshardd.log"));
  QVERIFY(log.open(QIODevice::ReadOnly));
  QVERIFY(log.readAll().contains(("crashed with " + name).toUtf8()));
  QVERIFY(command({"stop"}, name).ok());
  QVERIFY(node->finish().ok());

  node = run(name, /*fresh=*/false);
  QVERIFY(status(name)["alerts"].toArray().isEmpty());
  QVERIFY(!until_state(name, "training").isEmpty());
}

void TestContribute::diagnostics_of_a_running_node_hold_no_cookie() {
  const auto node = run("diagnostics", true, {"--safe"});
  const QDir runtime(lab_.path("runtime-diagnostics/neuroshard"));
  const QStringList files = runtime.entryList({"control-*.json"});
  QCOMPARE(files.size(), 1);
  QFile control(runtime.filePath(files[0]));
  QVERIFY(control.open(QIODevice::ReadOnly));
  const QByteArray cookie = QJsonDocument::fromJson(control.readAll()).object()["cookie"].toString().toUtf8();
  QVERIFY(cookie.size() >= 32);
  // As if it had got into the log.
  QFile log(lab_.path("diagnostics/logs/neuroshardd.log"));
  QVERIFY(log.open(QIODevice::Append));
  log.write("attached with " + cookie + "\n");
  log.close();
  const ProcessResult preview = command({"diagnostics", "--preview"}, "diagnostics");
  QVERIFY2(preview.ok(), preview.text().constData());
  QVERIFY(!preview.out.contains(cookie));
  const QJsonObject bundle = json_lines(preview.out).value(0);
  QJsonObject status, settings;
  for (const QJsonValue& file : bundle["files"].toArray()) {
    const QByteArray text = file["text"].toString().toUtf8();
    if (file["name"].toString() == "status.json") status = QJsonDocument::fromJson(text).object();
    if (file["name"].toString() == "settings.json") settings = QJsonDocument::fromJson(text).object();
  }
  QVERIFY(status["running"].toBool());
  QCOMPARE(reasons(status), QStringList{"safe_mode"});
  QCOMPARE(settings["cpu_threads"].toObject()["origin"].toString(), QString("flag"));
}

NS_TEST(TestContribute)
#include "test_contribute.moc"
