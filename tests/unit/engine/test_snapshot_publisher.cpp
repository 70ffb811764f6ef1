// Alerts, as the snapshot and the events give them to watchers.
#include <QtTest>

#include "core/engine/detail/snapshot_publisher.h"
#include "tests/support/test_main.h"

using namespace neuroshard;
using engine::detail::SnapshotPublisher;

class TestSnapshotPublisher : public QObject {
  Q_OBJECT
 private Q_SLOTS:
  // The path of a data directory may be no UTF-8, and a message names it every two seconds.
  void an_alert_with_foreign_bytes_is_raised_once() {
    const ManualClock clock;
    SnapshotPublisher publisher(clock, {});
    std::vector<node::Alert> raised;
    const auto watching = publisher.subscribe([&raised](const node::Event& event) {
      if (const auto* alert = std::get_if<node::AlertRaised>(&event)) raised.push_back(alert->alert);
    });
    for (int i = 0; i < 2; ++i)
      publisher.raise({"disk_low", node::Severity::Warning, "only little is left on B\xfc", {}});
    QCOMPARE(raised.size(), std::size_t{1});
    QCOMPARE(raised[0].message, std::string("only little is left on B\xEF\xBF\xBD"));
    QCOMPARE(publisher.snapshot()->alerts.size(), std::size_t{1});
    QCOMPARE(publisher.snapshot()->alerts[0].message, raised[0].message);
  }

  void a_long_alert_is_raised_once() {
    const ManualClock clock;
    SnapshotPublisher publisher(clock, {});
    int raised = 0;
    const auto watching = publisher.subscribe([&raised](const node::Event& event) {
      if (std::holds_alternative<node::AlertRaised>(event)) ++raised;
    });
    for (int i = 0; i < 2; ++i)
      publisher.raise({"long", node::Severity::Warning, std::string(10 * node::max_text, 'x'), {}});
    QCOMPARE(raised, 1);
    publisher.raise({"long", node::Severity::Warning, "another", {}});
    QCOMPARE(raised, 2);
  }
};

NS_TEST(TestSnapshotPublisher)
#include "test_snapshot_publisher.moc"
