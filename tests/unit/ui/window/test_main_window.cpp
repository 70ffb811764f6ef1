// The window over a fake core: pages, the state and its reasons, the controls that steer, alerts, and a core
// that goes away.
#include <QAbstractButton>
#include <QLabel>
#include <QLineEdit>
#include <QListWidget>
#include <QMenu>
#include <QPlainTextEdit>
#include <QPushButton>
#include <QSignalSpy>
#include <QStackedWidget>
#include <QTableView>
#include <QToolButton>
#include <QtTest>

#include "tests/support/test_main.h"
#include "tests/unit/ui/window/layout_checks.h"
#include "tests/unit/ui/window/window_fixture.h"
#include "ui/pages/setting_editor.h"
#include "ui/pages/setting_row.h"
#include "ui/pages/training_page.h"
#include "ui/text/snooze.h"
#include "ui/text/translation.h"
#include "ui/widgets/banner.h"
#include "ui/widgets/cell_grid.h"
#include "ui/widgets/plot_panel.h"

using namespace neuroshard;
using namespace neuroshard::ui;

class MainWindowTest : public QObject {
  Q_OBJECT

  std::unique_ptr<WindowFixture> fixture_;

  template <class W>
  W* find(const char* name) {
    W* found = fixture_->window->findChild<W*>(QString::fromLatin1(name));
    if (found == nullptr) qFatal("there is no %s", name);
    return found;
  }
  QToolButton* pill() { return find<QToolButton>("state_pill"); }
  // Of all pages: whether what changes the node can be used.
  bool training_can_start() {
    fixture_->window->open_page("training");
    return find<QPushButton>("training_start")->isEnabled() &&
           find<QLineEdit>("training_source")->isEnabled();
  }
  int checkpoint_actions() {
    fixture_->window->open_page("checkpoints");
    int enabled = 0;
    for (const char* name : {"save", "restore", "verify", "pin"})
      enabled += find<QPushButton>(name)->isEnabled() ? 1 : 0;
    for (const char* name : {"import", "prune", "delete", "export_weights", "export_history_csv"})
      enabled += find<QAction>(name)->isEnabled() ? 1 : 0;
    return enabled;
  }
  int editable_settings() {
    fixture_->window->open_page("settings");
    const auto rows = fixture_->window->findChildren<SettingRow*>();
    return static_cast<int>(std::count_if(rows.begin(), rows.end(),
                                          [](const SettingRow* row) { return row->editor()->isEnabled(); }));
  }
  bool text_can_be_sent() {
    fixture_->window->open_page("playground");
    find<QPlainTextEdit>("prompt")->setPlainText("Once");
    return find<QPushButton>("send")->isEnabled();
  }
  // The sentence below a grid, of its selected cell.
  bool says(const QString& words) {
    const auto labels = fixture_->window->findChildren<QLabel*>();
    return std::any_of(labels.begin(), labels.end(),
                       [&](const QLabel* label) { return label->isVisible() && label->text() == words; });
  }
  void the_sentence_follows(CellGrid* grid) {
    const QString nothing = "Select a cell with the mouse or the arrow keys to see its details.";
    QTest::keyClick(grid, Qt::Key_Down);
    QVERIFY(grid->current_row() >= 0);
    GridContent content = grid->content();
    GridCell& cell = content.cells[std::size_t(grid->current_row() * int(content.columns.size())) +
                                   std::size_t(grid->current_column())];
    QVERIFY(says(cell.description));
    cell.description = "another load";
    grid->set_content(content);
    QVERIFY(says("another load"));
    cell.description.clear();
    grid->set_content(content);
    QVERIFY(!says("another load") && says(nothing));
  }
  bool commanded(const std::string& text) {
    const auto all = fixture_->node->commands();
    return std::find(all.begin(), all.end(), text) != all.end();
  }

 private Q_SLOTS:
  void initTestCase() { install_translation(*qApp, QStringLiteral("en")); }
  void init() {
    fixture_ = std::make_unique<WindowFixture>();
    fixture_->window->show();
    QTRY_VERIFY(pill()->text().contains("Training"));
  }
  void cleanup() { fixture_.reset(); }

  void pages_are_made_when_first_opened() {
    MainWindow& window = *fixture_->window;
    QCOMPARE(window.current_page(), QString("overview"));
    QCOMPARE(window.findChildren<Page*>().size(), 1);
    QSignalSpy opened(&window, &MainWindow::page_opened);
    window.open_page("training");
    QCOMPARE(opened.takeFirst().at(0).toString(), QString("training"));
    QCOMPARE(window.findChildren<Page*>().size(), 2);
    window.open_page("no such page");
    QCOMPARE(window.current_page(), QString("training"));
    window.activateWindow();
    QVERIFY(QTest::qWaitForWindowActive(&window));
    QTest::keyClick(&window, Qt::Key_1, Qt::ControlModifier);
    QCOMPARE(window.current_page(), QString("overview"));
  }
  void the_rail_shows_icons_only_where_it_is_narrow() {
    auto* rail = find<QListWidget>("rail");
    QCOMPARE(rail->item(0)->text(), QString("Overview"));
    fixture_->window->resize(800, 600);
    QTRY_COMPARE(rail->item(0)->text(), QString());
    QCOMPARE(rail->item(0)->data(Qt::AccessibleTextRole).toString(), QString("Overview"));
    QVERIFY(rail->item(0)->toolTip().contains("Overview"));
  }
  void the_status_line_knows_peers_and_traffic() {
    QCOMPARE(find<QLabel>("status_peers")->text(), QString("Peers —"));
    QVERIFY(!find<QLabel>("status_traffic")->text().contains('0'));
    fixture_->node->publish([](node::Snapshot& next) { next.peers = {true, 12, 2048.0, std::nullopt}; });
    QTRY_COMPARE(find<QLabel>("status_peers")->text(), QString("Peers 12"));
    QVERIFY(find<QLabel>("status_traffic")->text().contains(QString::fromUtf8("2.00\u00a0KiB/s")));
    QVERIFY(find<QLabel>("status_traffic")->text().endsWith("—"));
    // The window forgets the state of a core that ended.
    fixture_->bridge.attach(nullptr);
    QTRY_COMPARE(find<QLabel>("status_peers")->text(), QString("Peers —"));
  }
  void the_switch_pauses_and_the_reason_is_shown() {
    QTest::mouseClick(find<QAbstractButton>("contribute"), Qt::LeftButton);
    QTRY_VERIFY(commanded("contribute off"));
    QTRY_VERIFY(pill()->text().contains("Paused"));
    QVERIFY(!pill()->toolTip().isEmpty());
    QTRY_VERIFY(!find<QAbstractButton>("contribute")->isChecked());
    // A snooze would end without effect.
    QTRY_VERIFY(!find<QToolButton>("snooze")->isEnabled());
    QTest::keyClick(find<QAbstractButton>("contribute"), Qt::Key_Space);
    QTRY_VERIFY(commanded("contribute on"));
    QTRY_VERIFY(pill()->text().contains("Training"));
    QTRY_VERIFY(find<QToolButton>("snooze")->isEnabled());
  }
  void a_refused_command_is_told_and_the_switch_goes_back() {
    fixture_->node->refuse(make_error(ErrorCode::Busy, "another change is under way"));
    QTest::mouseClick(find<QAbstractButton>("contribute"), Qt::LeftButton);
    QTRY_VERIFY(fixture_->window->findChild<Banner*>("banner_command") != nullptr);
    QVERIFY(find<Banner>("banner_command")->content().text.contains("another change is under way"));
    QTRY_VERIFY(find<QAbstractButton>("contribute")->isChecked());
  }
  void rules_that_pause_are_all_listed_and_can_be_ignored() {
    QVERIFY(!find<QPushButton>("run_anyway")->isVisible());
    fixture_->node->publish([](node::Snapshot& next) {
      next.state = node::RunState::Paused;
      next.pause_reasons = {{"battery", "on battery, 63 %: resumes on mains power", {}, true},
                            {"metered", "the connection is paid by volume", {}, true}};
    });
    QTRY_VERIFY(find<QPushButton>("run_anyway")->isVisible());
    QVERIFY(pill()->toolTip().contains("on battery, 63 %"));
    QVERIFY(pill()->toolTip().contains("paid by volume"));
    QVERIFY(pill()->accessibleName().contains("on battery"));
    QTest::mouseClick(find<QPushButton>("run_anyway"), Qt::LeftButton);
    QTRY_VERIFY(!fixture_->node->commands().empty());
    QVERIFY(fixture_->node->commands().back().find("3600") != std::string::npos);
    // The user's own pause is not a rule.
    fixture_->node->publish([](node::Snapshot& next) {
      next.pause_reasons = {{"user", "you switched contributing off", {}, false}};
    });
    QTRY_VERIFY(!find<QPushButton>("run_anyway")->isVisible());
  }
  void snooze_has_an_end_and_says_it() {
    QMenu* menu = find<QToolButton>("snooze")->menu();
    menu->actions().at(1)->trigger();
    QTRY_VERIFY(commanded("snooze 3600"));
    // The same morning as in the tray and on the command line.
    const auto until_six = Snooze::until_tomorrow(fixture_->clock.wall_now());
    menu->actions().at(3)->trigger();
    QTRY_VERIFY(commanded("snooze " + std::to_string(until_six.count())));
    const WallTime end = fixture_->clock.wall_now() + std::chrono::minutes(30);
    fixture_->node->publish([end](node::Snapshot& next) {
      next.state = node::RunState::Paused;
      next.snoozed_until = end;
      next.pause_reasons = {{"snooze", "snoozed", end, false}};
    });
    QTRY_VERIFY2(pill()->text().contains("22:43"), qPrintable(pill()->text()));
  }
  void urgent_alerts_stand_over_every_page_until_over() {
    fixture_->node->publish([](node::Snapshot& next) {
      next.alerts = {
          {"training_failed", node::Severity::Critical, "The disk refused a write. Free some space.", {}}};
    });
    QTRY_VERIFY(fixture_->window->findChild<Banner*>("banner_alert_training_failed") != nullptr);
    fixture_->node->publish([](node::Snapshot& next) { next.alerts.clear(); });
    QTRY_VERIFY(fixture_->window->findChild<Banner*>("banner_alert_training_failed") == nullptr);
  }
  void a_window_that_may_look_only_changes_nothing() {
    fixture_->node->publish([](node::Snapshot& next) { next.state = node::RunState::Idle; });
    fixture_->window->open_page("settings");
    QTRY_COMPARE(fixture_->window->findChildren<SettingRow*>().size(),
                 static_cast<qsizetype>(fixture_->node->settings.size()));
    fixture_->window->open_page("checkpoints");
    auto* const table = find<QTableView>("checkpoint_table");
    QTRY_VERIFY(table->model()->rowCount() > 0);
    table->selectRow(0);
    const auto attach = [this](bool may_steer) {
      fixture_->bridge.attach(nullptr);
      fixture_->bridge.attach(fixture_->node, may_steer);
    };
    attach(false);
    QVERIFY(!find<QAbstractButton>("contribute")->isEnabled());
    QVERIFY(!find<QAction>("finish")->isEnabled());
    QVERIFY(!training_can_start());
    QCOMPARE(checkpoint_actions(), 0);
    QCOMPARE(editable_settings(), 0);
    QVERIFY(!text_can_be_sent());
    fixture_->window->open_page("overview");
    QVERIFY(!find<QPushButton>("overview_start")->isVisible());
    // With an invitation that permits it, all of that can be used.
    attach(true);
    QVERIFY(find<QPushButton>("overview_start")->isVisible());
    QVERIFY(find<QAction>("finish")->isEnabled());
    QVERIFY(training_can_start());
    QCOMPARE(checkpoint_actions(), 9);
    QVERIFY(editable_settings() > 0);
    QVERIFY(text_can_be_sent());
    QVERIFY(fixture_->node->commands().empty());
    // Without a core there is nothing to finish.
    fixture_->bridge.attach(nullptr);
    QVERIFY(!find<QAction>("finish")->isEnabled());
  }
  void a_core_that_went_leaves_dimmed_values_and_a_banner() {
    fixture_->bridge.attach(nullptr);
    QTRY_VERIFY(fixture_->window->findChild<Banner*>("banner_core") != nullptr);
    QVERIFY(pill()->text().contains("not running"));
    QVERIFY(!find<QAbstractButton>("contribute")->isEnabled());
    auto* const pages = fixture_->window->findChild<QStackedWidget*>();
    auto* const veil = fixture_->window->findChild<QWidget*>("stale_veil");
    QVERIFY(veil->isVisible());
    QTRY_COMPARE(veil->geometry(), pages->rect());
    QVERIFY(veil->testAttribute(Qt::WA_TransparentForMouseEvents));
    fixture_->bridge.attach(fixture_->node);
    QTRY_VERIFY(fixture_->window->findChild<Banner*>("banner_core") == nullptr);
    QVERIFY(!veil->isVisible());
  }
  void banners_stand_in_the_order_of_urgency() {
    BannerContent content;
    content.title = "note";
    fixture_->window->show_banner("a", content);
    content.tone = Tone::Danger;
    fixture_->window->show_banner("b", content);
    content.tone = Tone::Warning;
    fixture_->window->show_banner("c", content);
    QTRY_VERIFY(find<Banner>("banner_b")->y() < find<Banner>("banner_c")->y());
    QVERIFY(find<Banner>("banner_c")->y() < find<Banner>("banner_a")->y());
    fixture_->window->clear_banner("b");
    fixture_->window->clear_banner("never shown");
  }
  // The rule: what is drawn equals the core's own data.
  void the_training_page_draws_the_cores_series() {
    fixture_->window->open_page("training");
    auto* page = qobject_cast<TrainingPage*>(fixture_->window->page("training"));
    const PlotWidget* plot = page->loss_panel()->plot();
    QTRY_VERIFY(!plot->empty());
    const auto& core = fixture_->node->series["loss"];
    const auto& drawn = plot->series().at(0).points;
    QCOMPARE(drawn.size(), core.size());
    for (std::size_t i = 0; i < core.size(); i += 25) QCOMPARE(drawn[i].mean, core[i].mean);
    QCOMPARE(plot->series().at(1).points.size(), fixture_->node->series["val_loss"].size());
    QCOMPARE(plot->view()->range(), (PlotRange{0, 1204}));
    // Six checkpoints, and one way back: 1000 went on from 600 although 800 had been written.
    QTRY_COMPARE(plot->marks().size(), 7u);
    QCOMPARE(std::count_if(
                 plot->marks().begin(), plot->marks().end(),
                 [](const PlotMark& mark) { return mark.kind == PlotMarkKind::Restore && mark.x == 600; }),
             1);
  }
  void zooming_asks_for_that_range_only() {
    fixture_->window->open_page("training");
    auto* page = qobject_cast<TrainingPage*>(fixture_->window->page("training"));
    PlotWidget* plot = page->loss_panel()->plot();
    QTRY_VERIFY(!plot->empty());
    plot->view()->zoom_to({500, 600});
    QTRY_COMPARE(plot->series().at(0).points.size(), 101u);
    QCOMPARE(plot->series().at(0).points.front().x, 500.0);
    QCOMPARE(plot->series().at(0).points.back().x, 600.0);
  }
  void the_layer_map_and_the_loads_are_the_cores() {
    fixture_->window->open_page("network");
    auto* map = find<CellGrid>("layer_map");
    QTRY_COMPARE(map->content().columns.size(), 8);  // embedding, six layers, head
    QCOMPARE(map->content().rows.size(), 9);         // shared, eight experts
    int cells = 0;
    for (const GridCell& cell : map->content().cells) cells += cell.description.isEmpty() ? 0 : 1;
    QCOMPARE(cells, int(fixture_->node->slots.size()));
    the_sentence_follows(map);
    fixture_->window->open_page("experts");
    auto* matrix = find<CellGrid>("expert_matrix");
    QTRY_COMPARE(matrix->content().cells.size(), 48u);
    QCOMPARE(matrix->content().cells[11].text,
             QLocale().toString(fixture_->node->experts[11].share * 8, 'f', 2));
    // The bars of the histogram as a table: every expert is in one class.
    QTest::mouseClick(find<QAbstractButton>("spread_twin"), Qt::LeftButton);
    const auto* classes = find<QTableView>("spread_table");
    QVERIFY(classes->isVisible());
    int experts = 0;
    for (int row = 0; row < classes->model()->rowCount(); ++row)
      experts += classes->model()->index(row, 1).data().toInt();
    QCOMPARE(experts, 48);
    the_sentence_follows(matrix);
  }
  void starting_and_stopping_go_to_the_core() {
    fixture_->window->open_page("training");
    QTRY_VERIFY(find<QPushButton>("training_stop")->isEnabled());
    QVERIFY(!find<QPushButton>("training_start")->isEnabled());
    QTest::mouseClick(find<QPushButton>("training_stop"), Qt::LeftButton);
    QTRY_VERIFY(commanded("stop training"));
    fixture_->node->publish([](node::Snapshot& next) { next.state = node::RunState::Idle; });
    QTRY_VERIFY(find<QPushButton>("training_start")->isEnabled());
    find<QLineEdit>("training_source")->setText("/srv/books");
    QTest::mouseClick(find<QPushButton>("training_start"), Qt::LeftButton);
    QTRY_VERIFY(commanded("train /srv/books 0 0"));
    // A start that takes long can be stopped, too.
    QVERIFY(!find<QPushButton>("training_stop")->isEnabled());
    fixture_->node->publish([](node::Snapshot& next) { next.state = node::RunState::Starting; });
    QTRY_VERIFY(find<QPushButton>("training_stop")->isEnabled());
  }
  void a_start_that_failed_can_be_tried_again() {
    QVERIFY(!find<QPushButton>("overview_start")->isVisible());
    fixture_->node->publish([](node::Snapshot& next) {
      next.state = node::RunState::Failed;
      next.alerts = {{"training_failed", node::Severity::Critical, "There is no text to train on yet.", {}}};
    });
    QTRY_VERIFY(fixture_->window->findChild<Banner*>("banner_alert_training_failed") != nullptr);
    QVERIFY(find<QPushButton>("overview_start")->isVisible());
    // The message leads to the place where a text is chosen.
    find<Banner>("banner_alert_training_failed")->findChild<QPushButton*>()->click();
    QCOMPARE(fixture_->window->current_page(), QString("training"));
    QVERIFY(find<QLineEdit>("training_source")->isEnabled());
    QVERIFY(find<QPushButton>("training_start")->isEnabled());
    QVERIFY(!find<QPushButton>("training_stop")->isEnabled());
    find<QLineEdit>("training_source")->setText("/srv/books");
    QTest::mouseClick(find<QPushButton>("training_start"), Qt::LeftButton);
    QTRY_VERIFY(commanded("train /srv/books 0 0"));
  }
  // Repaints are bounded by the bridge's ticks, whatever the core does.
  void a_flood_of_snapshots_is_few_frames() {
    fixture_->window->open_page("training");
    auto* page = qobject_cast<TrainingPage*>(fixture_->window->page("training"));
    PlotWidget* plot = page->loss_panel()->plot();
    QTRY_VERIFY(!plot->empty());
    QSignalSpy ticks(&fixture_->bridge, &Bridge::snapshot_changed);
    const int before = plot->frames();
    for (int i = 0; i < 2000; ++i)
      fixture_->node->publish([i](node::Snapshot& next) { next.training.step = 1204 + std::uint64_t(i); });
    QTRY_VERIFY(fixture_->bridge.snapshot()->training.step == 3203);
    QTRY_VERIFY(plot->frames() > before);
    // A frame for a tick's range, and one for the answer of each round of questions.
    QVERIFY2(plot->frames() - before <= 2 * ticks.count() + 2,
             qPrintable(QString("%1 frames, %2 ticks").arg(plot->frames() - before).arg(ticks.count())));
  }
  void hidden_windows_draw_nothing() {
    fixture_->window->hide();
    QSignalSpy ticks(&fixture_->bridge, &Bridge::snapshot_changed);
    fixture_->node->publish([](node::Snapshot& next) { next.state = node::RunState::Idle; });
    QTRY_VERIFY(ticks.count() > 0);
    QVERIFY(pill()->text().contains("Training"));
    fixture_->window->show();
    QVERIFY(pill()->text().contains("Idle"));
  }
  void closing_is_the_applications_decision() {
    bool may = false;
    fixture_->window->may_close = [&may] { return may; };
    QVERIFY(!fixture_->window->close());
    QVERIFY(fixture_->window->isVisible());
    may = true;
    QVERIFY(fixture_->window->close());
  }
  // Tab goes from the rail through the header and then into the page, and comes round.
  void tab_reaches_everything_in_reading_order_data() {
    QTest::addColumn<QString>("key");
    for (const QString& key : WindowFixture().window->page_keys()) QTest::newRow(qPrintable(key)) << key;
  }
  void tab_reaches_everything_in_reading_order() {
    QFETCH(QString, key);
    MainWindow& window = *fixture_->window;
    window.open_page(key);
    if (key == "settings")
      QTRY_COMPARE(window.findChildren<SettingRow*>().size(),
                   static_cast<qsizetype>(fixture_->node->settings.size()));
    QTest::qWait(0);
    window.activateWindow();
    auto* rail = find<QListWidget>("rail");
    rail->setFocus();
    QTRY_VERIFY(rail->hasFocus());
    QList<QWidget*> visited;
    for (int i = 0; i < 400; ++i) {
      QTest::keyClick(window.focusWidget(), Qt::Key_Tab);
      QWidget* at = window.focusWidget();
      if (at == rail) break;
      QVERIFY2(!visited.contains(at), qPrintable("a ring without the rail at " + describe(at)));
      visited << at;
    }
    QCOMPARE(window.focusWidget(), rail);
    for (QWidget* widget : window.findChildren<QWidget*>())
      if (focusable(widget) && widget != rail &&
          qobject_cast<QAbstractScrollArea*>(widget->parentWidget()) == nullptr)
        QVERIFY2(visited.contains(widget), qPrintable("not reached: " + describe(widget)));
    const auto page_at = std::find_if(visited.begin(), visited.end(), [&window, &key](QWidget* w) {
      return window.page(key)->isAncestorOf(w);
    });
    const auto header_at = visited.indexOf(find<QWidget>("contribute"));
    QVERIFY(header_at >= 0);
    QVERIFY(page_at == visited.end() || page_at - visited.begin() > header_at);
  }
};

NS_UI_TEST(MainWindowTest)
#include "test_main_window.moc"
