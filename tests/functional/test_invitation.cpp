// Invitations, as people use them: made from a profile, read from a QR code by another program, looked at,
// refused without a yes, followed, and remembered at the next start.
#include <QFile>
#include <QStandardPaths>
#include <QTemporaryDir>
#include <QTest>

#include "tests/support/network_run.h"
#include "tests/support/test_main.h"

using namespace neuroshard::test;  // NOLINT

class TestInvitation : public QObject {
  Q_OBJECT
 private Q_SLOTS:
  void initTestCase();
  void it_is_printed_and_looked_at();
  void its_qr_code_is_read_by_another_program();
  void nobody_joins_unasked();
  void a_new_node_joins_by_it_and_remembers();
  void a_directory_that_was_only_set_up_joins_with_its_wallet();
  void a_link_that_is_typed_ends_with_its_line();
  void a_running_node_names_itself();
  void what_can_not_be_invited_to_is_said();

 private:
  QString invite(const QStringList& further) const {
    const ProcessResult made =
        run_node(QStringList{"network", "invite", "--json", "--profile", path("village.json")} + further);
    return made.ok() ? json_lines(made.out).value(0)["link"].toString() : QString();
  }
  QString path(const QString& name) const { return folder_.filePath(name); }
  QTemporaryDir folder_;
};

void TestInvitation::initTestCase() {
  QVERIFY(folder_.isValid());
  const ProcessResult made =
      run_node({"network", "create", "--from", "devnet", "--name", "village", "--out", path("village.json")});
  QVERIFY2(made.ok(), made.text().constData());
}

void TestInvitation::it_is_printed_and_looked_at() {
  const QString link = invite({"--peer", "host.example.org:29000"});
  QVERIFY2(link.startsWith("neuroshard:join?to="), qPrintable(link));
  const ProcessResult from_file = run_node({"network", "show", path("village.json"), "--json"});
  const ProcessResult from_link = run_node({"network", "show", link, "--json"});
  QVERIFY2(from_link.ok(), from_link.text().constData());
  QCOMPARE(from_link.out, from_file.out);
  const ProcessResult cut = run_node({"network", "show", link.left(link.size() - 1)});
  QVERIFY(!cut.ok());
  QVERIFY2(cut.text().contains("copy the whole link again"), cut.text().constData());
}

void TestInvitation::its_qr_code_is_read_by_another_program() {
  const QString reader = QStandardPaths::findExecutable("zbarimg");
  if (reader.isEmpty()) QSKIP("zbarimg is not installed (zbar-tools)");
  const QString link = invite({"--peer", "192.0.2.1:29000"});
  const ProcessResult drawn = run_node({"network", "invite", "--profile", path("village.json"), "--peer",
                                        "192.0.2.1:29000", "--qr", "--svg", path("village.svg")});
  QVERIFY2(drawn.ok(), drawn.text().constData());
  QVERIFY(drawn.out.contains(link.toUtf8()));
  // As a camera sees it: each module four dots.
  constexpr int dots = 4;
  QStringList rows;
  for (const QString& line : QString::fromUtf8(drawn.out).split('\n')) {
    if (line.isEmpty() || line.startsWith("neuroshard:")) continue;
    QString upper, lower;
    for (const QChar c : line) {
      upper += c == u'█' || c == u'▀' ? '0' : '1';
      lower += c == u'█' || c == u'▄' ? '0' : '1';
    }
    rows << upper << lower;
  }
  const auto width = rows.value(0).size();
  QVERIFY(width > 21 + 8 && rows.size() >= width);
  QByteArray picture = QString("P1\n%1 %2\n").arg(width * dots).arg(width * dots).toLatin1();
  for (int y = 0; y < width * dots; ++y) {
    for (int x = 0; x < width * dots; ++x) picture += rows[y / dots][x / dots] == '1' ? "1 " : "0 ";
    picture += '\n';
  }
  QFile file(path("village.pbm"));
  QVERIFY(file.open(QIODevice::WriteOnly) && file.write(picture) == picture.size());
  file.close();
  QProcess read;
  read.start(reader, {"--raw", "-q", path("village.pbm")});
  QVERIFY(read.waitForFinished(60'000));
  QCOMPARE(QString::fromUtf8(read.readAllStandardOutput()).trimmed(), link);
  QFile svg(path("village.svg"));
  QVERIFY(svg.open(QIODevice::ReadOnly) && svg.readAll().startsWith("<svg "));
}

void TestInvitation::nobody_joins_unasked() {
  const ProcessResult unasked = run_node({"run", "--join", invite({}), "--data-dir", path("unasked")});
  QVERIFY(!unasked.ok());
  QVERIFY2(unasked.text().contains("--yes"), unasked.text().constData());
  QVERIFY(!QFile::exists(path("unasked")));
  const ProcessResult doubled = run_node({"run", "--join", invite({}), "--yes", "--profile",
                                          path("village.json"), "--data-dir", path("unasked")});
  QVERIFY(!doubled.ok() && !QFile::exists(path("unasked")));
}

void TestInvitation::a_new_node_joins_by_it_and_remembers() {
  NodeProcess tracker({"tracker", "--json", "--profile", path("village.json"), "--address", "127.0.0.1",
                       "--port", "0", "--lan"});
  const QJsonObject ready = wait_for_object(tracker, "ready");
  QVERIFY2(!ready.isEmpty(), tracker.errors_so_far().constData());
  const QString tracker_at = ready["id"].toString() + "@" + ready["address"].toString();
  const QString link = invite({"--peer", tracker_at});
  const QStringList node{"run",       "--json",     "--data-dir", path("new"), "--p2p-address",
                         "127.0.0.1", "--p2p-port", "0",          "--lan"};
  QString id;
  for (const QStringList& further : {QStringList{"--join", link, "--yes"}, QStringList{}}) {
    NodeProcess invited(node + further);
    const QJsonObject joined = wait_for_object(invited, "peers");
    QVERIFY2(!joined.isEmpty(), invited.errors_so_far().constData());
    id = joined["id"].toString();
    const auto known = [&] {
      for (const QJsonObject& one : peers(path("village.json"), tracker_at))
        if (one["id"].toString() == id) return true;
      return false;
    };
    QTRY_VERIFY_WITH_TIMEOUT(known(), 60'000);
    invited.terminate();
    const ProcessResult stopped = invited.finish();
    QVERIFY2(!stopped.crashed && !stopped.timed_out, stopped.text().constData());
    // Its registration must not be mistaken for the next start.
    if (further.isEmpty()) break;
    QFile::remove(path("new/peers.cache"));
    QFile::remove(path("new/node.key"));
  }
  // The same directory takes no invitation to another network.
  const ProcessResult other =
      run_node({"run", "--join",
                "neuroshard:join?to="
                "AUObGOoAlGR9uZoWibmpX7_fWdR7hvzBdFYkRH50EvRIzq7wyzEBABAyMDMuMC4xMTMuOTo5MDAw",
                "--yes", "--data-dir", path("new")});
  QVERIFY(!other.ok());
  QVERIFY2(other.text().contains("belongs to the network 'village'"), other.text().constData());
}

// As the assistant leaves it: a wallet whose words were written down, and limits.
void TestInvitation::a_directory_that_was_only_set_up_joins_with_its_wallet() {
  const QString directory = path("set-up");
  const ProcessResult wallet = run_node({"wallet", "create", "--data-dir", directory, "--json"});
  QVERIFY2(wallet.ok(), wallet.text().constData());
  const ProcessResult limits = run_node({"settings", "set", "cpu_threads", "1", "--data-dir", directory});
  QVERIFY2(limits.ok(), limits.text().constData());
  // The link comes by standard input: others can read command lines.
  NodeProcess node({"run", "--json", "--existing-wallet", "--data-dir", directory, "--p2p-address",
                    "127.0.0.1", "--p2p-port", "0", "--lan", "--join", "-", "--yes"},
                   {}, {}, invite({}).toUtf8() + '\n');
  const QJsonObject ready = wait_for_object(node, "ready");
  QVERIFY2(!ready.isEmpty(), node.errors_so_far().constData());
  QCOMPARE(ready["network"].toString(), QString("village"));
  QCOMPARE(ready["wallet_id"].toString(), json_lines(wallet.out).value(0)["wallet_id"].toString());
  QVERIFY2(!node.errors_so_far().contains("new wallet"), node.errors_so_far().constData());
  node.terminate();
  const ProcessResult stopped = node.finish();
  QVERIFY2(!stopped.crashed && !stopped.timed_out, stopped.text().constData());
  const ProcessResult kept = run_node({"settings", "get", "cpu_threads", "--data-dir", directory});
  QCOMPARE(kept.out.trimmed(), QByteArray("1"));
}

// At a terminal the input stays open after the line.
void TestInvitation::a_link_that_is_typed_ends_with_its_line() {
  const QStringList run{"run",           "--json",    "--data-dir", path("typed"),
                        "--p2p-address", "127.0.0.1", "--p2p-port", "0",
                        "--lan",         "--join",    "-",          "--yes"};
  NodeProcess other(run, {}, {}, QByteArray(5000, 'x'), node_program(), /*input_ends=*/false);
  const ProcessResult refused = other.finish();
  QVERIFY2(!refused.timed_out && !refused.ok(), refused.text().constData());
  QVERIFY2(refused.text().contains("copy the link again"), refused.text().constData());
  QVERIFY(!QFile::exists(path("typed")));
  NodeProcess node(run, {}, {}, invite({}).toUtf8() + '\n', node_program(), /*input_ends=*/false);
  const QJsonObject ready = wait_for_object(node, "ready");
  QVERIFY2(!ready.isEmpty(), node.errors_so_far().constData());
  QCOMPARE(ready["network"].toString(), QString("village"));
  node.terminate();
  const ProcessResult stopped = node.finish();
  QVERIFY2(!stopped.crashed && !stopped.timed_out, stopped.text().constData());
}

// A node that was reached from outside stands in its own link: the tracker may stop.
void TestInvitation::a_running_node_names_itself() {
  QString link, id;
  const auto node = [&](const QString& name, const QStringList& further) {
    return QStringList{"run",       "--json",     "--data-dir", path(name), "--p2p-address",
                       "127.0.0.1", "--p2p-port", "0",          "--lan"} +
           further;
  };
  auto tracker =
      std::make_unique<NodeProcess>(QStringList{"tracker", "--json", "--profile", path("village.json"),
                                                "--address", "127.0.0.1", "--port", "0", "--lan"});
  const QJsonObject ready = wait_for_object(*tracker, "ready");
  QVERIFY2(!ready.isEmpty(), tracker->errors_so_far().constData());
  NodeProcess host(
      node("host", {"--profile", path("village.json"), "--tracker", ready["address"].toString()}));
  const QJsonObject joined = wait_for_object(host, "peers");
  QVERIFY2(!joined.isEmpty(), host.errors_so_far().constData());
  const QString own = joined["id"].toString() + "@" + joined["address"].toString();
  const auto named = [&] {
    const ProcessResult made = run_node({"network", "invite", "--json", "--data-dir", path("host")});
    const QJsonObject said = made.ok() ? json_lines(made.out).value(0) : QJsonObject();
    link = said["link"].toString();
    return said["peers"].toArray().contains(own);
  };
  QTRY_VERIFY_WITH_TIMEOUT(named(), 60'000);  // once somebody has dialled it
  tracker.reset();                            // killed
  NodeProcess guest(node("guest", {"--join", link, "--yes"}));
  const QJsonObject there = wait_for_object(guest, "peers");
  QVERIFY2(!there.isEmpty(), guest.errors_so_far().constData());
  const auto known = [&] {
    for (const QJsonObject& one : peers(path("village.json"), joined["address"].toString()))
      if (one["id"].toString() == there["id"].toString()) return true;
    return false;
  };
  QTRY_VERIFY_WITH_TIMEOUT(known(), 60'000);
  for (NodeProcess* one : {&host, &guest}) {
    one->terminate();
    const ProcessResult stopped = one->finish();
    QVERIFY2(!stopped.crashed && !stopped.timed_out, stopped.text().constData());
  }
}

void TestInvitation::what_can_not_be_invited_to_is_said() {
  const ProcessResult solo = run_node({"network", "invite", "--profile", "solo"});
  QVERIFY(!solo.ok() && solo.text().contains("no peers"));
  const ProcessResult nobody =
      run_node({"network", "invite", "--profile", "mainnet", "--data-dir", path("empty")});
  QVERIFY2(nobody.ok() && nobody.text().contains("names no bootstrap address"), nobody.text().constData());
  const ProcessResult wrong = run_node({"network", "invite", "--profile", "mainnet", "--peer", "nowhere"});
  QVERIFY(!wrong.ok() && wrong.text().contains("host.example.org:9000"));
  const ProcessResult nothing = run_node({"network", "invite", "--data-dir", path("empty")});
  QVERIFY(!nothing.ok() && nothing.text().contains("--profile"));
}

NS_TEST(TestInvitation)
#include "test_invitation.moc"
