// `neuroshardd stop` at a node that ends already, to start anew or for somebody else. The control service is
// real, and another process stands for that of the node.
#include <QtTest>

#include "core/control/remote_access.h"
#include "tests/support/process.h"
#include "tests/support/test_main.h"
#include "tests/unit/control/control_fixture.h"

using namespace neuroshard;        // NOLINT
using namespace neuroshard::test;  // NOLINT

class TestStopCommand : public QObject {
  Q_OBJECT
 private Q_SLOTS:
  void init();
  void cleanup();
  void it_waits_until_the_process_has_ended();
  void a_failed_final_checkpoint_is_told();
  void a_signal_ends_the_waiting();
  void a_node_on_another_computer_is_not_waited_for();

 private:
  static constexpr int some_looks_ms = 300;  // the command looks every 50 ms

  control::ControlFile control_file() const {
    control::ControlFile file = fixture_->file();
    const auto process = platform::find_process(process_->pid());
    if (!process) qFatal("the process of the node does not run");
    file.process = *process;
    return file;
  }
  // The command has asked, and the node has refused.
  std::unique_ptr<NodeProcess> stop(const control::ControlFile& file) const {
    const QString path = fixture_->folder.filePath("control.json");
    const std::string text = control::format_control_file(file);
    if (!storage::write_file_atomic(*fixture_->files, path.toStdString(), as_bytes(text)).ok())
      qFatal("no control file");
    auto command = std::make_unique<NodeProcess>(QStringList{
        "stop", "--control-file", path, "--data-dir", fixture_->folder.filePath("elsewhere"), "--json"});
    if (!until([this] { return fixture_->asked_to_end == 1; }))
      qFatal("%s", command->finish(1000).text().constData());
    return command;
  }
  bool waits(NodeProcess& command) const {
    return !command.next_line(some_looks_ms).has_value() && command.running();
  }

  std::unique_ptr<ControlFixture> fixture_;
  std::unique_ptr<NodeProcess> process_;  // as if of the node
};

void TestStopCommand::init() {
  fixture_ = std::make_unique<ControlFixture>();
  QVERIFY(QDir().mkpath(QString::fromStdString(fixture_->data())));
  QVERIFY(fixture_->start().ok());
  fixture_->node.refuse(Error{ErrorCode::Cancelled, "the node is shutting down already", ""});
  process_ =
      std::make_unique<NodeProcess>(QStringList{"600"}, QStringList(), QString(), QByteArray(), "sleep");
  QVERIFY(process_->started());
}

void TestStopCommand::cleanup() {
  process_.reset();
  fixture_.reset();
}

void TestStopCommand::it_waits_until_the_process_has_ended() {
  fixture_->node.publish([](node::Snapshot& now) {
    now.training.step = 7;
    now.checkpoint.newest = "0000000007-0123abcd";
  });
  const auto command = stop(control_file());
  QVERIFY(waits(*command));
  process_->kill_now();
  const ProcessResult said = command->finish();
  QVERIFY2(said.ok(), said.text().constData());
  const QJsonObject line = json_lines(said.out).value(0);
  QVERIFY2(line["stopped"].toBool(), said.text().constData());
  QCOMPARE(line["step"].toInteger(), 7);
  QCOMPARE(line["checkpoint"].toString(), QString("0000000007-0123abcd"));
}

// Its error went to the program that had asked for the end.
void TestStopCommand::a_failed_final_checkpoint_is_told() {
  fixture_->node.publish([](node::Snapshot& now) {
    now.alerts.push_back({"checkpoint", node::Severity::Critical, "the disk is full", {}});
  });
  const auto command = stop(control_file());
  process_->kill_now();
  const ProcessResult said = command->finish();
  QVERIFY2(said.exit_code == 74, said.text().constData());
  QVERIFY2(said.err.contains("without its final checkpoint: the disk is full"), said.text().constData());
  QVERIFY2(!said.out.contains("stopped"), said.text().constData());
}

void TestStopCommand::a_signal_ends_the_waiting() {
  const auto command = stop(control_file());
  QVERIFY(waits(*command));
  command->terminate();
  const ProcessResult said = command->finish();
  QVERIFY2(said.exit_code == 130, said.text().constData());
  QVERIFY2(said.err.contains("stopped waiting"), said.text().constData());
  QVERIFY2(!said.out.contains("stopped"), said.text().constData());
}

void TestStopCommand::a_node_on_another_computer_is_not_waited_for() {
  const auto access = control::make_remote_access({platform::IpAddress::v4(127, 0, 0, 1), 1});
  QVERIFY(access.ok());
  control::ControlFile invitation = control_file();
  invitation.process = {};
  invitation.client_certificate = access->client_certificate;
  invitation.client_key = access->client_key;
  const ProcessResult said = stop(invitation)->finish();
  QVERIFY2(said.exit_code == 75, said.text().constData());
  QVERIFY2(said.err.contains("does not start again"), said.text().constData());
}

NS_TEST(TestStopCommand)
#include "test_stop_command.moc"
