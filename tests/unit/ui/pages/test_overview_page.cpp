// The overview: what the node does and on what, how old its alerts are, and what it offers.
#include <QLabel>
#include <QPushButton>

#include "tests/support/test_main.h"
#include "tests/unit/ui/pages/page_fixture.h"
#include "ui/pages/overview_page.h"
#include "ui/text/format.h"

using namespace neuroshard;      // NOLINT
using namespace neuroshard::ui;  // NOLINT

class TestOverviewPage : public QObject {
  Q_OBJECT
 private Q_SLOTS:
  void init() { fixture_ = std::make_unique<PageFixture>(); }
  void cleanup() { fixture_.reset(); }
  void the_text_is_named_where_it_is_known();
  void an_alert_that_stays_becomes_older();
  void in_safe_mode_a_node_is_not_alone();

 private:
  std::unique_ptr<PageFixture> fixture_;
};

void TestOverviewPage::the_text_is_named_where_it_is_known() {
  fixture_->show<OverviewPage>();
  fixture_->publish([](node::Snapshot& next) {
    next.state = node::RunState::Training;
    next.training.data_source = "/srv/books";
  });
  const auto* reason = fixture_->find<QLabel>("overview_reason");
  QVERIFY(reason->isVisible());
  QCOMPARE(reason->text(), QStringLiteral("on /srv/books"));
  // A later start names none: the core has the text already.
  fixture_->publish([](node::Snapshot& next) { next.training.data_source.clear(); });
  QVERIFY2(!reason->isVisible(), qPrintable(reason->text()));
}

void TestOverviewPage::an_alert_that_stays_becomes_older() {
  fixture_->show<OverviewPage>();
  const WallTime since = fixture_->clock.wall_now();
  fixture_->publish([since](node::Snapshot& next) {
    next.alerts.push_back({"disk_low", node::Severity::Warning, "Less than 1 GB is free.", since});
  });
  const auto* age = fixture_->find<QLabel>("alert_age");
  QTRY_VERIFY(age->isVisible());
  const QString at_first = age->text();
  QVERIFY(!at_first.isEmpty());
  fixture_->clock.advance(std::chrono::minutes(3));
  fixture_->publish([](node::Snapshot&) {});
  QVERIFY(age->text() != at_first);
  QCOMPARE(age->text(), Format::ago(since, fixture_->clock.wall_now()));
}

void TestOverviewPage::in_safe_mode_a_node_is_not_alone() {
  fixture_->show<OverviewPage>();
  fixture_->publish([](node::Snapshot& next) {
    next.safe_mode = true;
    next.program.network = "village";
  });
  const auto* note = fixture_->find<QLabel>("overview_network_note");
  QVERIFY(note->isVisible());
  QVERIFY2(note->text().startsWith(
               QStringLiteral("Safe mode: this node is not connected to its network village.")),
           qPrintable(note->text()));
}

NS_UI_TEST(TestOverviewPage)
#include "test_overview_page.moc"
