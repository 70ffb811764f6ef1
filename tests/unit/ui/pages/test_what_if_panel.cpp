// The question in the card about the members' memory, asked of a fake core.
#include <QDoubleSpinBox>

#include "tests/support/test_main.h"
#include "tests/unit/ui/pages/page_fixture.h"
#include "ui/pages/network_page.h"

using namespace neuroshard;      // NOLINT
using namespace neuroshard::ui;  // NOLINT

class TestWhatIfPanel : public QObject {
  Q_OBJECT
 private Q_SLOTS:
  void init() {
    fixture_ = std::make_unique<PageFixture>();
    fixture_->show<NetworkPage>();
    publish(2'000'000'000, std::uint64_t{16} << 30);
    decided().what_if.counts = true;
    QTRY_VERIFY(memory()->isVisible());
  }
  void cleanup() { fixture_.reset(); }

  void it_begins_with_the_present_offer() {
    QCOMPARE(memory()->value(), 2.0);
    QCOMPARE(memory()->minimum(), 0.5);
    QCOMPARE(memory()->maximum(), 17.0);  // whole 500 MB of 16 GiB
    QVERIFY(!answer()->isVisible());
    QVERIFY(!memory()->accessibleName().isEmpty());
    publish(3'500'000'000, 0);
    QCOMPARE(memory()->value(), 3.5);
    QVERIFY(memory()->maximum() >= 100);
    QTest::qWait(500);
    QVERIFY2(decided().asked.empty(), "nobody has asked");
  }

  void another_amount_is_asked_about_once() {
    decided().what_if.then.memory.offered_bytes = 18'500'000'000;
    memory()->setFocus();
    for (int i = 0; i < 3; ++i) QTest::keyClick(memory(), Qt::Key_Up);
    QTRY_VERIFY(answer()->isVisible());
    QVERIFY2(answer()->text().startsWith(QString::fromUtf8("All members would offer 18.5\u00a0GB")),
             qPrintable(answer()->text()));
    QCOMPARE(decided().asked.size(), std::size_t{1});
    QCOMPARE(*decided().asked[0].memory_bytes, std::uint64_t{3'500'000'000});
    // Whole 500 MB count, also of what is typed.
    memory()->setValue(8.4);
    QTRY_COMPARE(decided().asked.size(), std::size_t{2});
    QCOMPARE(*decided().asked[1].memory_bytes, std::uint64_t{8'000'000'000});
    // A new offer of this computer does not replace the amount that is asked about.
    publish(2'500'000'000, std::uint64_t{16} << 30);
    QCOMPARE(memory()->value(), 8.4);
  }

  void leaving_is_asked_about() {
    decided().what_if.votes = node::VotesWithout{24, 12, false, 1, 1};
    fixture_->click("what_if_leave");
    QTRY_VERIFY(answer()->text().contains(QStringLiteral("would stand still")));
    QVERIFY(!decided().asked.at(0).memory_bytes);
    // The answer follows the members' offers, once for each change.
    decided().what_if.votes.reset();
    publish(2'500'000'000, std::uint64_t{16} << 30);
    QTRY_VERIFY(!answer()->text().contains(QStringLiteral("would stand still")));
    publish(2'500'000'000, std::uint64_t{16} << 30);
    QTest::qWait(500);
    QCOMPARE(decided().asked.size(), std::size_t{2});
  }

  void a_refusal_is_told() {
    decided().refusal = make_error(ErrorCode::Unavailable, "this node is no member of its network yet");
    fixture_->click("what_if_leave");
    QTRY_COMPARE(answer()->text(), QStringLiteral("this node is no member of its network yet"));
    fixture_->bridge.attach(nullptr);
    QTRY_VERIFY(!answer()->isVisible());
  }

 private:
  QDoubleSpinBox* memory() const { return fixture_->find<QDoubleSpinBox>("what_if_memory"); }
  QLabel* answer() const { return fixture_->find<QLabel>("what_if_answer"); }
  testing::FakeDecisions& decided() const { return fixture_->node->decided; }
  void publish(std::uint64_t own, std::uint64_t machine) {
    fixture_->publish([&](node::Snapshot& next) {
      next.rounds.taking_part = true;
      next.resources.memory_total_bytes = machine;
      node::NetworkMemoryView& memory = next.rounds.memory.emplace();
      memory.members = memory.known = 4;
      memory.offered_bytes = 10'000'000'000 + own;
      memory.own_bytes = own;
    });
  }
  std::unique_ptr<PageFixture> fixture_;
};

NS_UI_TEST(TestWhatIfPanel)
#include "test_what_if_panel.moc"
