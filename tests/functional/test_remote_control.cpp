// A running node and those who did not start it: an invited program elsewhere, and other users of this
// computer.
#include <unistd.h>

#include <QFile>
#include <QTcpSocket>
#include <QTest>

#include "tests/support/test_main.h"
#include "tests/support/training_run.h"

using namespace neuroshard::test;  // NOLINT

class TestRemoteControl : public QObject {
  Q_OBJECT

 private Q_SLOTS:
  void initTestCase() {
    const QByteArray problem = lab_.prepare();
    QVERIFY2(problem.isEmpty(), problem.constData());
    lab_.copy("d");
  }
  void invited_program_steers_until_it_is_taken_back();
  void invited_program_looks_only();
  void other_users_are_refused();

 private:
  QStringList here() const { return {"XDG_RUNTIME_DIR=" + lab_.path("runtime")}; }
  ProcessResult command(const QStringList& words) const {
    return NodeProcess(words + QStringList{"--data-dir", lab_.path("d"), "--json"}, here()).finish();
  }
  // As on another machine: nothing of this one is known but the file.
  ProcessResult elsewhere(const QStringList& words) const {
    return NodeProcess(words + QStringList{"--control-file", lab_.path("invitation.json"), "--data-dir",
                                           lab_.path("elsewhere"), "--json"},
                       {"XDG_RUNTIME_DIR=" + lab_.path("runtime-elsewhere")})
        .finish();
  }
  std::unique_ptr<NodeProcess> run() const {
    auto node =
        std::make_unique<NodeProcess>(QStringList{"run", "--cpu-threads", "1", "--eval-interval-steps", "0",
                                                  "--data-dir", lab_.path("d"), "--json"},
                                      here());
    const auto ready = node->next_line();
    if (!ready || !ready->contains("\"ready\":true")) qCritical("%s", node->finish(1000).text().constData());
    return node;
  }

  TrainingLab lab_;
};

void TestRemoteControl::invited_program_steers_until_it_is_taken_back() {
  QVERIFY(command({"control", "list"}).out.contains("\"invitations\":[]"));
  const ProcessResult no_port = command({"control", "invite"});
  QVERIFY(!no_port.ok() && no_port.err.contains("--listen"));
  QTcpSocket probe;
  QVERIFY(probe.bind(QHostAddress::LocalHost));
  const QString address = QString("127.0.0.1:%1").arg(probe.localPort());
  probe.close();
  const ProcessResult invited = command({"control", "invite", "--listen", address, "--name", "laptop",
                                         "--scope", "steer", "--out", lab_.path("invitation.json")});
  QVERIFY2(invited.ok(), invited.text().constData());
  const QString id = json_lines(invited.out).value(0)["id"].toString();
  QVERIFY(invited.out.contains("\"restart\":true"));
  QVERIFY(command({"control", "list"}).out.contains("laptop"));

  const auto node = run();
  const ProcessResult seen = elsewhere({"status"});
  QVERIFY2(seen.ok(), seen.text().constData());
  QCOMPARE(json_lines(seen.out).value(0)["pid"].toInteger(), node->pid());
  // The node listens, so it takes further invitations as it runs.
  const ProcessResult another = command({"control", "invite", "--out", lab_.path("another.json")});
  QVERIFY2(another.out.contains("\"restart\":false"), another.text().constData());
  QVERIFY(elsewhere({"contribute", "off"}).ok());
  const ProcessResult set = elsewhere({"set", "eval_tokens", "8192"});
  QVERIFY2(set.ok(), set.text().constData());
  const ProcessResult got = elsewhere({"settings", "get", "eval_tokens"});
  QVERIFY2(got.ok(), got.text().constData());
  QCOMPARE(json_lines(got.out).value(0)["value"].toString(), QString("8192"));
  QCOMPARE(json_lines(command({"status"}).out).value(0)["contributing"].toBool(true), false);
  // Commands that work on a directory of this machine say so instead of taking this machine's.
  const ProcessResult train = elsewhere({"train", "--steps", "1"});
  QVERIFY(!train.ok() && train.err.contains("--control-file"));
  for (const QStringList& words :
       {QStringList{"checkpoint", "list"}, QStringList{"checkpoint", "prune", "--preview"},
        QStringList{"checkpoint", "delete", "latest"}, QStringList{"history", "export"},
        QStringList{"control", "list"}, QStringList{"reachability", "--port", "9000"},
        QStringList{"peers", "--at", "127.0.0.1:9"}}) {
    const ProcessResult refused = elsewhere(words);
    QVERIFY2(refused.exit_code == 64, refused.text().constData());
    QVERIFY2(refused.err.contains("--control-file works with status"), refused.text().constData());
  }
  // The other computer's node saves, once its training is prepared.
  QVERIFY(elsewhere({"contribute", "on"}).ok());
  ProcessResult saved;
  QTRY_VERIFY_WITH_TIMEOUT((saved = elsewhere({"checkpoint", "save"})).ok(), 60'000);
  const QByteArray name = json_lines(saved.out).value(0)["saved"].toString().toUtf8();
  QVERIFY(!name.isEmpty());
  QVERIFY(command({"checkpoint", "list"}).out.contains(name));

  QVERIFY(command({"control", "revoke", id}).ok());
  // Looked at anew once a second.
  QTRY_VERIFY_WITH_TIMEOUT(!elsewhere({"status"}).ok(), 20'000);
  QVERIFY2(elsewhere({"status"}).err.contains("cookie"), elsewhere({"status"}).err.constData());
  QVERIFY(!command({"control", "revoke", id}).ok());
  QVERIFY(command({"stop"}).ok());
}

void TestRemoteControl::invited_program_looks_only() {
  QTcpSocket probe;
  QVERIFY(probe.bind(QHostAddress::LocalHost));
  const QString address = QString("127.0.0.1:%1").arg(probe.localPort());
  probe.close();
  const QStringList invite{"control", "invite", "--listen", address, "--out", lab_.path("invitation.json")};
  QFile::remove(lab_.path("invitation.json"));
  const ProcessResult wrong_scope = command(invite + QStringList{"--scope", "all"});
  QVERIFY2(!wrong_scope.ok() && wrong_scope.err.contains("steer"), wrong_scope.text().constData());
  const ProcessResult too_long = command(invite + QStringList{"--days", "1000"});
  QVERIFY2(!too_long.ok() && too_long.err.contains("365"), too_long.text().constData());
  const ProcessResult invited = command(invite + QStringList{"--days", "2"});
  QVERIFY2(invited.ok(), invited.text().constData());
  QCOMPARE(json_lines(invited.out).value(0)["scope"].toString(), QString("look"));
  QVERIFY(command({"control", "list"}).out.contains("\"scope\":\"look\""));

  const auto node = run();
  const ProcessResult seen = elsewhere({"status"});
  QVERIFY2(seen.ok(), seen.text().constData());
  for (const QStringList& words :
       {QStringList{"contribute", "off"}, QStringList{"stop"}, QStringList{"set", "cpu_threads", "1"}}) {
    const ProcessResult denied = elsewhere(words);
    QVERIFY2(denied.exit_code == 77, denied.text().constData());
    QVERIFY2(denied.err.contains("--scope steer"), denied.text().constData());
  }
  QVERIFY(command({"control", "revoke", "all"}).ok());
  QVERIFY(command({"stop"}).ok());
}

void TestRemoteControl::other_users_are_refused() {
  if (geteuid() != 0) QSKIP("another user can be tried by root only");
  const auto node = run();
  // Even one who found the way to the folder of control.json.
  const QString folder = lab_.path("runtime/neuroshard");
  const QString file = QDir(folder).entryList({"control-*.json"}).value(0);
  QVERIFY(!file.isEmpty());
  const QString path = folder + "/" + file;
  const auto as_nobody = [](const QStringList& words) {
    QProcess process;
    process.start("setpriv", QStringList{"--reuid=65534", "--regid=65534", "--clear-groups"} + words);
    process.waitForFinished();
    return process.exitCode();
  };
  QVERIFY(as_nobody({"cat", path}) != 0);
  // And a control.json that another user laid there is not believed.
  QVERIFY(chown(path.toLocal8Bit().constData(), 65534, 65534) == 0);
  const ProcessResult status = command({"status"});
  QVERIFY(!status.ok());
  QVERIFY2(status.err.contains("is not trusted"), status.err.constData());
  QVERIFY(chown(path.toLocal8Bit().constData(), 0, 0) == 0);
  QVERIFY(command({"stop"}).ok());
}

NS_TEST(TestRemoteControl)
#include "test_remote_control.moc"
