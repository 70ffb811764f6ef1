// The page of checkpoints: what it shows, what it asks before, and which command reaches the core.
#include <QAction>
#include <QListWidget>
#include <QProgressBar>
#include <QSpinBox>
#include <QTableView>
#include <QToolButton>

#include "tests/support/test_main.h"
#include "tests/unit/ui/pages/checkpoints_fixture.h"
#include "ui/pages/alert_action.h"
#include "ui/pages/compare_dialog.h"
#include "ui/pages/evaluation_card.h"
#include "ui/pages/prune_dialog.h"
#include "ui/widgets/empty_state.h"
#include "ui/widgets/plot_panel.h"

using namespace neuroshard;      // NOLINT
using namespace neuroshard::ui;  // NOLINT

class TestCheckpointsPage : public QObject {
  Q_OBJECT
 private Q_SLOTS:
  void init() { fixture_ = std::make_unique<CheckpointsFixture>(); }
  void cleanup() { fixture_.reset(); }
  void without_checkpoints_it_says_what_will_come();
  void lists_all_with_the_newest_first();
  void restore_asks_and_says_what_happens();
  void a_restore_can_be_taken_back();
  void checks_several_one_after_the_other();
  void a_damaged_one_is_told_with_the_way_out();
  void a_damaged_one_stays_told_after_an_intact_one();
  void work_shows_progress_and_can_be_cancelled();
  void cancelling_a_check_keeps_other_work();
  void the_end_of_long_work_is_announced();
  void two_are_compared();
  void pins_and_unpins();
  void deleting_asks_and_spares_the_newest_and_the_pinned();
  void nothing_but_the_newest_is_refused_in_words();
  void a_rule_shows_what_it_removes_before();
  void a_full_disk_leads_to_the_rule();
  void evaluations_of_one_text_are_a_chart();
  void a_refusal_of_the_core_is_shown();
  void a_change_in_the_core_keeps_the_selection();
  void actions_follow_the_selection();

 private:
  std::unique_ptr<CheckpointsFixture> fixture_;
};

void TestCheckpointsPage::without_checkpoints_it_says_what_will_come() {
  fixture_->start({});
  auto* empty = fixture_->page->findChild<EmptyState*>();
  QVERIFY(empty->isVisible());
  QVERIFY(!fixture_->table()->isVisible());
  // Without a model there is nothing to save either.
  QTest::mouseClick(empty->findChild<QPushButton*>(), Qt::LeftButton);
  QCOMPARE(fixture_->went_to, QString("training"));
  QVERIFY(!fixture_->commanded("save"));
  fixture_->publish([](node::Snapshot& next) { next.model.parameters = 1000; });
  QTest::mouseClick(empty->findChild<QPushButton*>(), Qt::LeftButton);
  QTRY_VERIFY(fixture_->commanded("save"));
}

void TestCheckpointsPage::lists_all_with_the_newest_first() {
  fixture_->start_three();
  QVERIFY(fixture_->table()->isVisible());
  QCOMPARE(fixture_->cell(0, 0), QStringLiteral("300 (newest)"));
  QCOMPARE(fixture_->cell(2, 0), QStringLiteral("100"));
  // Sorted by a click on a heading: by value, not by text.
  fixture_->table()->sortByColumn(0, Qt::AscendingOrder);
  QCOMPARE(fixture_->cell(0, 0), QStringLiteral("100"));
}

void TestCheckpointsPage::restore_asks_and_says_what_happens() {
  fixture_->start_three();
  fixture_->publish([](node::Snapshot& s) { s.training.step = 345; });
  QTRY_COMPARE(fixture_->bridge.snapshot()->training.step, std::uint64_t{345});
  fixture_->select(1);
  fixture_->click("restore");
  QVERIFY(fixture_->question() != nullptr);
  QVERIFY(fixture_->question()->text().contains(QStringLiteral("200")));
  QVERIFY(fixture_->question()->informativeText().contains(QStringLiteral("345")));
  QVERIFY(fixture_->question()->informativeText().contains(QStringLiteral("undo")));
  QTRY_VERIFY(fixture_->question()->width() >
              fixture_->question()->height());  // sentences, no column of words
  QVERIFY(!fixture_->commanded("restore c2"));
  fixture_->agree();
  QTRY_VERIFY(fixture_->commanded("restore c2"));
  QTRY_VERIFY(fixture_->outcome().text.contains(QStringLiteral("200")));
  QCOMPARE(fixture_->ended_work.size(), 1);  // it may take minutes
}

void TestCheckpointsPage::a_restore_can_be_taken_back() {
  fixture_->start_three();
  auto* banner = fixture_->find<Banner>("undo_banner");
  QVERIFY(!banner->isVisible());
  fixture_->publish([](node::Snapshot& s) { s.undo = {"c3", 345}; });
  QVERIFY(banner->isVisible());
  QVERIFY(banner->content().text.contains(QStringLiteral("345")));
  QTest::mouseClick(banner->findChild<QPushButton*>(), Qt::LeftButton);
  QTRY_VERIFY(fixture_->commanded("undo"));
  fixture_->publish([](node::Snapshot& s) { s.undo = {}; });
  QVERIFY(!banner->isVisible());
}

void TestCheckpointsPage::checks_several_one_after_the_other() {
  fixture_->start_three();
  fixture_->node->hold_commands();
  fixture_->select(0);
  fixture_->select(1, true);
  fixture_->click("verify");
  QTRY_VERIFY(fixture_->commanded("verify c3"));
  QVERIFY(!fixture_->commanded("verify c2"));  // the core does one at a time
  QVERIFY(fixture_->find<QLabel>("work_title")->text().contains(QStringLiteral("1 more")));
  fixture_->node->finish(fixture_->node->held("verify c3"),
                         node::CommandResult{node::VerifyResult{"c3", true, {}, 5}});
  QTRY_VERIFY(fixture_->commanded("verify c2"));
}

void TestCheckpointsPage::a_damaged_one_is_told_with_the_way_out() {
  fixture_->start_three();
  fixture_->node->verified = {{}, false, "weights-2: the hash differs", 0};
  fixture_->select(2);
  fixture_->click("verify");
  QTRY_VERIFY(fixture_->outcome().text.contains(QStringLiteral("weights-2")));
  QVERIFY(fixture_->outcome().text.contains(QStringLiteral("Restore another")));
  QCOMPARE(fixture_->outcome().tone, Tone::Danger);
  QTRY_COMPARE(fixture_->cell(2, 5), QStringLiteral("damaged"));
}

void TestCheckpointsPage::a_damaged_one_stays_told_after_an_intact_one() {
  fixture_->start_three();
  fixture_->node->hold_commands();
  fixture_->select(0);
  fixture_->select(1, true);
  fixture_->click("verify");
  const auto finish = [this](const char* name, bool intact, const char* problem) {
    QTRY_VERIFY(fixture_->node->held(std::string("verify ") + name) != 0);
    fixture_->node->finish(fixture_->node->held(std::string("verify ") + name),
                           node::CommandResult{node::VerifyResult{name, intact, problem, 5}});
  };
  finish("c3", false, "weights-2: the hash differs");
  finish("c2", true, "");
  QTRY_COMPARE(fixture_->ended_work.size(), 2);
  QVERIFY2(fixture_->ended_work[0].contains(QStringLiteral("damaged")), qPrintable(fixture_->ended_work[0]));
  QVERIFY2(fixture_->ended_work[1].contains(QStringLiteral("intact")), qPrintable(fixture_->ended_work[1]));
  QCOMPARE(fixture_->outcome().tone, Tone::Danger);
  QVERIFY(fixture_->outcome().text.contains(QStringLiteral("weights-2")));
  // With nothing left to do, the next task shows its result again.
  fixture_->select(1);
  fixture_->click("verify");
  finish("c2", true, "");
  QTRY_COMPARE(fixture_->outcome().tone, Tone::Working);
}

void TestCheckpointsPage::work_shows_progress_and_can_be_cancelled() {
  fixture_->start_three();
  fixture_->node->hold_commands();
  fixture_->select(0);
  fixture_->click("verify");
  QTRY_VERIFY(fixture_->node->held("verify") != 0);
  fixture_->node->progress(fixture_->node->held("verify"), "reading c3", 30, 100);
  auto* bar = fixture_->find<QProgressBar>("work_progress");
  QTRY_COMPARE(bar->value(), 300);
  QVERIFY(bar->isVisible());
  fixture_->click("work_cancel");
  QTRY_VERIFY(fixture_->outcome().title.contains(QStringLiteral("cancelled")));
  QVERIFY(!bar->isVisible());
}

void TestCheckpointsPage::cancelling_a_check_keeps_other_work() {
  fixture_->start_three();
  fixture_->node->hold_commands();
  fixture_->select(0);
  fixture_->select(1, true);
  fixture_->click("verify");
  QTRY_VERIFY(fixture_->node->held("verify c3") != 0);
  fixture_->select(2);
  fixture_->click("pin");
  fixture_->click("work_cancel");
  QTRY_VERIFY(fixture_->outcome().title.contains(QStringLiteral("cancelled")));
  QTRY_VERIFY(fixture_->commanded("pin c1"));
  QVERIFY(!fixture_->commanded("verify c2"));  // of the same action
}

void TestCheckpointsPage::the_end_of_long_work_is_announced() {
  fixture_->start_three();
  fixture_->select(2);
  fixture_->click("pin");  // done in a moment
  QTRY_VERIFY(fixture_->commanded("pin c1"));
  QTRY_COMPARE(fixture_->find<QPushButton>("pin")->text(), QStringLiteral("Unpin"));
  QVERIFY(fixture_->ended_work.isEmpty());
  fixture_->select(2);
  fixture_->click("verify");
  QTRY_COMPARE(fixture_->ended_work.size(), 1);
  QVERIFY2(fixture_->ended_work[0].startsWith(QStringLiteral("Checking step 100: ")),
           qPrintable(fixture_->ended_work[0]));
  // The person who cancels knows of the end; one who waits learns of a failure too.
  fixture_->node->hold_commands();
  fixture_->click("verify");
  QTRY_VERIFY(fixture_->node->held("verify") != 0);
  fixture_->click("work_cancel");
  QTRY_VERIFY(fixture_->outcome().title.contains(QStringLiteral("cancelled")));
  QCOMPARE(fixture_->ended_work.size(), 1);
  fixture_->node->refuse(make_error(ErrorCode::Busy, "a restore is under way"));
  fixture_->click("verify");
  QTRY_COMPARE(fixture_->ended_work.size(), 2);
  QVERIFY2(fixture_->ended_work[1].contains(QStringLiteral("failed: a restore is under way")),
           qPrintable(fixture_->ended_work[1]));
}

void TestCheckpointsPage::two_are_compared() {
  fixture_->start_three();
  node::CheckpointComparison& comparison = fixture_->node->comparison;
  comparison.first = checkpoint("c1", 100);
  comparison.second = checkpoint("c3", 300);
  comparison.slots = {{"embed", 1, 0.1, 0.99}, {"layer 0", 2, 0.25, 0.9}};
  comparison.distance = 2.5;
  comparison.relative = 0.2;
  fixture_->select(0);
  fixture_->select(2, true);
  fixture_->click("compare");
  QTRY_VERIFY(fixture_->commanded("compare c1 c3"));  // the earlier one first
  QTRY_VERIFY(fixture_->page->findChild<CompareDialog*>() != nullptr);
  auto* dialog = fixture_->page->findChild<CompareDialog*>();
  auto* distances = dialog->findChild<QTableView*>(QStringLiteral("compare_table"));
  QCOMPARE(distances->model()->rowCount(), 2);
  QCOMPARE(distances->model()->index(1, 1).data().toString(), QStringLiteral("25\u00a0%"));
  QVERIFY(dialog->findChild<QLabel*>(QStringLiteral("compare_total"))->text().contains(QStringLiteral("20")));
}

void TestCheckpointsPage::pins_and_unpins() {
  fixture_->start_three();
  fixture_->select(2);
  fixture_->click("pin");
  QTRY_VERIFY(fixture_->commanded("pin c1"));
  QTRY_COMPARE(fixture_->find<QPushButton>("pin")->text(), QStringLiteral("Unpin"));
  fixture_->click("pin");
  QTRY_VERIFY(fixture_->commanded("unpin c1"));
}

void TestCheckpointsPage::deleting_asks_and_spares_the_newest_and_the_pinned() {
  auto pinned = checkpoint("c1", 100);
  pinned.pinned = true;
  fixture_->start({checkpoint("c3", 300), checkpoint("c2", 200), pinned});
  fixture_->table()->selectAll();
  fixture_->page->findChild<QAction*>(QStringLiteral("delete"))->trigger();
  QVERIFY(fixture_->question() != nullptr);
  const QString text = fixture_->question()->informativeText();
  QVERIFY(text.contains(QStringLiteral("step 300 stays: it is the newest")));
  QVERIFY(text.contains(QStringLiteral("step 100 stays: it is pinned")));
  QVERIFY(text.contains(QStringLiteral("10.0\u00a0MiB")));
  fixture_->agree();
  QTRY_COMPARE(fixture_->table()->model()->rowCount(), 2);
  QVERIFY(fixture_->commanded("delete c2"));
  QVERIFY(!fixture_->commanded("delete c3"));
  QVERIFY(!fixture_->commanded("delete c1"));
}

void TestCheckpointsPage::nothing_but_the_newest_is_refused_in_words() {
  fixture_->start_three();
  fixture_->select(0);
  fixture_->table()->setFocus();
  QTest::keyClick(fixture_->table(), Qt::Key_Delete);
  QTRY_VERIFY(fixture_->outcome().text.contains(QStringLiteral("newest")));
  QVERIFY(fixture_->question() == nullptr);
}

void TestCheckpointsPage::a_rule_shows_what_it_removes_before() {
  fixture_->start_three();
  fixture_->node->prune = {{"c1", "c2"}, 20u << 20, 1};
  fixture_->page->findChild<QAction*>(QStringLiteral("prune"))->trigger();
  auto* dialog = fixture_->page->findChild<PruneDialog*>();
  QVERIFY(dialog != nullptr);
  auto* summary = dialog->findChild<QLabel*>(QStringLiteral("prune_summary"));
  auto* action = dialog->findChild<QPushButton*>(QStringLiteral("prune_action"));
  QTRY_VERIFY(summary->text().contains(QStringLiteral("20.0\u00a0MiB")));
  QCOMPARE(dialog->findChild<QListWidget*>(QStringLiteral("prune_list"))->count(), 2);
  QVERIFY(action->isEnabled());
  // Another rule: no button until its preview is there.
  dialog->findChild<QSpinBox*>(QStringLiteral("prune_newest"))->setValue(7);
  QVERIFY(!action->isEnabled());
  QTRY_VERIFY(action->isEnabled());
  QTest::mouseClick(action, Qt::LeftButton);
  QTRY_VERIFY(fixture_->commanded("prune 7"));
}

// The alert of a full disk offers one click, not a page to search.
void TestCheckpointsPage::a_full_disk_leads_to_the_rule() {
  fixture_->start_three();
  const AlertAction action = alert_action(QStringLiteral("disk_low"));
  QCOMPARE(action.page, QStringLiteral("checkpoints"));
  fixture_->page->open_detail(action.detail);
  const auto* dialog = fixture_->page->findChild<PruneDialog*>();
  QVERIFY(dialog != nullptr && dialog->isVisible());
}

void TestCheckpointsPage::evaluations_of_one_text_are_a_chart() {
  const auto evaluation = [](std::uint64_t step, const char* text, double model) {
    node::EvaluationEntry entry;
    entry.step = step;
    entry.text = entry.text_hash = text;
    entry.model.bits_per_byte = model;
    entry.model.cloze_right = 50;
    entry.baseline = {5, 2.5, 40};
    entry.cloze_questions = 100;
    entry.cloze_choices = 4;
    return entry;
  };
  fixture_->start_three();
  auto* card = fixture_->page->findChild<EvaluationCard*>();
  QVERIFY(card->isHidden());
  // Newest first: another text, and an earlier result of the same step, are left out.
  fixture_->node->recorded.evaluations = {evaluation(300, "a", 2.0), evaluation(200, "b", 9.0),
                                          evaluation(100, "a", 3.0), evaluation(300, "a", 8.0)};
  fixture_->page->shown();
  QTRY_VERIFY(card->isVisible());
  const auto& series = card->panel()->plot()->series();
  QCOMPARE(series.size(), std::size_t{2});
  QCOMPARE(series[0].points.size(), std::size_t{2});
  QCOMPARE(series[0].points[0].mean, 3.0);
  QCOMPARE(series[0].points[1].x, 300.0);
  QCOMPARE(series[0].points[1].mean, 2.0);
  QCOMPARE(series[1].points[1].mean, 2.5);
}

void TestCheckpointsPage::a_refusal_of_the_core_is_shown() {
  fixture_->start_three();
  fixture_->node->refuse(make_error(ErrorCode::Busy, "a restore is under way; wait for it"));
  fixture_->click("save");
  QTRY_VERIFY(fixture_->outcome().text.contains(QStringLiteral("wait for it")));
  QCOMPARE(fixture_->outcome().tone, Tone::Danger);
}

void TestCheckpointsPage::a_change_in_the_core_keeps_the_selection() {
  fixture_->start_three();
  fixture_->select(1);
  auto& entries = fixture_->node->checkpoints;
  entries.insert(entries.begin(), checkpoint("c4", 400, "c3"));
  fixture_->node->emit(node::CheckpointWritten{"c4"});
  QTRY_COMPARE(fixture_->table()->model()->rowCount(), 4);
  QCOMPARE(fixture_->table()->selectionModel()->selectedRows().front().row(), 2);
  QCOMPARE(fixture_->cell(2, 0), QStringLiteral("200"));
}

void TestCheckpointsPage::actions_follow_the_selection() {
  fixture_->start_three();
  const auto enabled = [this](const char* name) { return fixture_->find<QPushButton>(name)->isEnabled(); };
  fixture_->table()->clearSelection();
  QVERIFY(!enabled("restore") && !enabled("verify") && !enabled("compare") && !enabled("pin"));
  fixture_->select(0);
  QVERIFY(enabled("restore") && enabled("verify") && !enabled("compare"));
  fixture_->select(1, true);
  QVERIFY(!enabled("restore") && enabled("compare"));
  fixture_->select(2, true);
  QVERIFY(!enabled("compare") && enabled("verify"));
}

NS_UI_TEST(TestCheckpointsPage)
#include "test_checkpoints_page.moc"
