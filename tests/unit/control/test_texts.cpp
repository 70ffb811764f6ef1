// Texts that are no UTF-8, or that a limit cuts within a character, over real loopback gRPC: what a peer said, and names of
// files. A message with one of them arrives like any other.
#include <QtTest>

#include "tests/support/test_main.h"
#include "tests/unit/control/control_fixture.h"

using namespace neuroshard;        // NOLINT
using namespace neuroshard::test;  // NOLINT

namespace {

// The limit of an error's text is even: it is within a character.
std::string long_text() {
  std::string text = "x";
  for (int i = 0; i < 1000; ++i) text += "\xC3\xA9";
  return text;
}

}  // namespace

class TestControlTexts : public QObject {
  Q_OBJECT
 private Q_SLOTS:
  void init() {
    fixture_ = std::make_unique<ControlFixture>();
    QVERIFY(fixture_->start().ok());
    remote_ = fixture_->connect();
    QVERIFY(remote_ != nullptr);
  }
  void cleanup() {
    remote_.reset();
    fixture_.reset();
  }

  void an_error_keeps_its_code_data() {
    QTest::addColumn<QByteArray>("text");
    QTest::newRow("long") << QByteArray::fromStdString(long_text());
    QTest::newRow("no UTF-8") << QByteArray("/srv/caf\xE9/model");
  }
  void an_error_keeps_its_code() {
    QFETCH(QByteArray, text);
    fixture_->node.refuse(Error{ErrorCode::Corrupt, text.toStdString(), text.toStdString()});
    const Events events(*remote_);
    const auto done = events.done(*remote_->save_checkpoint());
    QVERIFY(done && done->error);
    QCOMPARE(done->error->code, ErrorCode::Corrupt);
    QCOMPARE(done->error->context.substr(0, 1), text.toStdString().substr(0, 1));
  }

  void an_event_does_not_end_the_connection() {
    std::atomic<int> changes = 0;
    const auto watch = remote_->watch_link([&] { ++changes; });
    const Events events(*remote_);
    fixture_->node.emit(node::Ended{Error{ErrorCode::Io, long_text(), "/srv/caf\xE9"}});
    QVERIFY(until([&] { return !events.all<node::Ended>().empty() || changes > 0; }));
    QCOMPARE(changes.load(), 0);
    QCOMPARE(events.all<node::Ended>()[0].error->context, std::string("/srv/caf\xEF\xBF\xBD"));
  }

  void an_alert_does_not_end_the_connection() {
    std::atomic<int> changes = 0;
    const auto watch = remote_->watch_link([&] { ++changes; });
    const Events events(*remote_);
    fixture_->node.emit(node::AlertRaised{{"disk_low", node::Severity::Warning, "no space on B\xFC", {}}});
    QVERIFY(until([&] { return !events.all<node::AlertRaised>().empty() || changes > 0; }));
    QCOMPARE(changes.load(), 0);
    QCOMPARE(events.all<node::AlertRaised>()[0].alert.message, std::string("no space on B\xEF\xBF\xBD"));
  }

  void a_snapshot_does_not_end_the_connection() {
    std::atomic<int> changes = 0;
    const auto watch = remote_->watch_link([&] { ++changes; });
    fixture_->node.publish([](node::Snapshot& next) { next.rounds.trouble = "\xFF says the peer"; });
    QVERIFY(until([&] { return !remote_->snapshot()->rounds.trouble.empty() || changes > 0; }));
    QCOMPARE(changes.load(), 0);
    QCOMPARE(remote_->snapshot()->rounds.trouble, std::string("\xEF\xBF\xBD says the peer"));
  }

  void a_page_of_the_log_is_read_whatever_a_record_says() {
    fixture_->node.logs = {{1, {}, {LogLevel::Info, "swarm", "before"}},
                           {2, {}, {LogLevel::Warning, "swarm", "a peer says \xFF\xC3"}}};
    std::promise<Expected<node::LogPage>> answer;
    QVERIFY(remote_->query_logs({0, 10, LogLevel::Info}, [&](auto page) { answer.set_value(page); }).ok());
    const auto page = answer.get_future().get();
    QVERIFY2(page.ok(), page.ok() ? "" : page.error().describe().c_str());
    QCOMPARE(page->entries.size(), std::size_t{2});
    QCOMPARE(page->entries[1].record.message, std::string("a peer says \xEF\xBF\xBD\xEF\xBF\xBD"));
  }

  void a_name_of_a_file_is_answered_whatever_its_bytes() {
    testing::FakeNode& node = fixture_->node;
    const std::string bytes = "/srv/B\xFC", shown = "/srv/B\xEF\xBF\xBD";
    node.data.source = bytes;
    const auto data = answer<node::DataView>([&](auto reply) { return remote_->query_data(reply); });
    QVERIFY(data.ok());
    QCOMPARE(data->source, shown);
    node.http_key_now.file = bytes;
    const auto key = answer<node::HttpKey>(
        [&](auto reply) { return remote_->http_key(node::HttpKeyAction::Show, reply); });
    QVERIFY(key.ok());
    QCOMPARE(key->file, shown);
    node::EvaluationEntry evaluation;
    evaluation.text = evaluation.baseline_text = bytes;
    node.recorded.evaluations = {evaluation};
    const auto page = answer<node::EvaluationPage>(
        [&](auto reply) { return remote_->records().query_evaluations({10}, reply); });
    QVERIFY(page.ok());
    QCOMPARE(page->entries.at(0).text, shown);
    QCOMPARE(page->entries.at(0).baseline_text, shown);
    node::SettingEntry setting;
    setting.name = "text";
    setting.value = bytes;
    node.settings = {setting};
    const auto settings =
        answer<std::vector<node::SettingEntry>>([&](auto reply) { return remote_->query_settings(reply); });
    QVERIFY(settings.ok());
    QCOMPARE(settings->at(0).value, shown);
    node::CheckpointEntry entry;
    entry.name = "c1";
    node.checkpoints = {entry};
    node.verified.problem = bytes;
    const Events events(*remote_);
    const auto done = events.done(*remote_->verify_checkpoint("c1"));
    QVERIFY(done && !done->error);
    const auto* verified = std::get_if<node::VerifyResult>(&done->result);
    QVERIFY(verified != nullptr);
    QCOMPARE(verified->problem, shown);
  }

  void the_name_of_a_program_is_cut_between_characters() {
    node::SessionSensors sensors;
    sensors.full_screen_program = long_text();
    QVERIFY(remote_->report_session(sensors).ok());
    QVERIFY(until([&] { return !fixture_->node.reports().empty(); }));
    QCOMPARE(fixture_->node.reports()[0].full_screen_program, long_text().substr(0, node::max_text - 1));
  }

 private:
  std::unique_ptr<ControlFixture> fixture_;
  std::unique_ptr<control::RemoteNode> remote_;
};

NS_TEST(TestControlTexts)
#include "test_texts.moc"
