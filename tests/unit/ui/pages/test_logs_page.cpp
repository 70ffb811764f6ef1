// The log viewer, its filters and its following; and the dialogs of diagnostics and About.
#include <QAction>
#include <QClipboard>
#include <QComboBox>
#include <QFileDialog>
#include <QLineEdit>
#include <QPlainTextEdit>
#include <QScrollBar>

#include "tests/support/test_main.h"
#include "tests/unit/ui/pages/page_fixture.h"
#include "ui/models/log_model.h"
#include "ui/pages/about_dialog.h"
#include "ui/pages/diagnostics_dialog.h"
#include "ui/pages/earnings_page.h"
#include "ui/pages/log_view.h"
#include "ui/pages/logs_page.h"
#include "ui/text/translation.h"
#include "ui/widgets/empty_state.h"
#include "ui/widgets/row_text.h"
#include "ui/widgets/toggle_switch.h"

using namespace neuroshard;      // NOLINT
using namespace neuroshard::ui;  // NOLINT

class TestLogsPage : public QObject {
  Q_OBJECT
 private Q_SLOTS:
  void initTestCase() { install_translation(*qApp, QStringLiteral("en")); }
  void init();
  void cleanup() { fixture_.reset(); }
  void shows_lines_and_follows_them();
  void scrolling_up_stops_following();
  void filters_narrow_the_view();
  void a_bad_expression_is_explained();
  void lines_are_copied();
  void all_of_a_long_log_is_copied_in_pieces();
  void a_long_text_is_made_in_pieces();
  void a_full_log_is_exported_as_it_was();
  void what_the_core_did_not_keep_is_counted();
  void nothing_is_asked_while_hidden();
  void diagnostics_are_shown_before_they_are_saved();
  void diagnostics_without_a_program_say_what_to_do();
  void another_computers_diagnostics_are_not_collected_here();
  void a_failing_program_is_told();
  void about_names_the_licences();
  void earnings_are_honest();

 private:
  LogView* view() const { return fixture_->page->findChild<LogView*>(); }
  void add(int count, LogLevel level = LogLevel::Info, const std::string& category = "train") {
    auto& logs = fixture_->node->logs;
    for (int i = 0; i < count; ++i) {
      const std::uint64_t sequence = logs.empty() ? 1 : logs.back().sequence + 1;
      logs.push_back(
          {sequence, fixture_->clock.wall_now(), {level, category, "line " + std::to_string(sequence)}});
    }
  }
  void start() {
    fixture_->show<LogsPage>();
    QTRY_COMPARE(view()->model()->rowCount(), static_cast<int>(fixture_->node->logs.size()));
  }
  // A program that answers as the core's would.
  QString make_program(const QByteArray& script) const {
    const QString path = fixture_->folder.filePath(QStringLiteral("program"));
    QFile file(path);
    if (!file.open(QIODevice::WriteOnly)) return {};
    file.write("#!/bin/sh\n" + script);
    file.setPermissions(QFile::ReadOwner | QFile::WriteOwner | QFile::ExeOwner);
    return path;
  }

  std::unique_ptr<PageFixture> fixture_;
};

void TestLogsPage::init() {
  fixture_ = std::make_unique<PageFixture>();
}

void TestLogsPage::shows_lines_and_follows_them() {
  add(500);
  start();
  QScrollBar* bar = view()->verticalScrollBar();
  QTRY_VERIFY(bar->maximum() > 0);
  QCOMPARE(bar->value(), bar->maximum());
  add(100);
  QTRY_COMPARE(view()->model()->rowCount(), 600);
  QCOMPARE(bar->value(), bar->maximum());
  QVERIFY(fixture_->find<ToggleSwitch>("follow")->isChecked());
}

void TestLogsPage::scrolling_up_stops_following() {
  add(500);
  start();
  QScrollBar* bar = view()->verticalScrollBar();
  bar->setValue(10);
  QVERIFY(!fixture_->find<ToggleSwitch>("follow")->isChecked());
  add(100);
  QTRY_COMPARE(view()->model()->rowCount(), 600);
  QCOMPARE(bar->value(), 10);
  fixture_->click("follow");
  QCOMPARE(bar->value(), bar->maximum());
  // By hand to the end: it follows again.
  bar->setValue(5);
  bar->setValue(bar->maximum());
  QVERIFY(fixture_->find<ToggleSwitch>("follow")->isChecked());
}

void TestLogsPage::filters_narrow_the_view() {
  add(10);
  add(2, LogLevel::Error, "storage");
  start();
  auto* category = fixture_->find<QComboBox>("category");
  QCOMPARE(category->count(), 3);
  category->setCurrentText(QStringLiteral("storage"));
  QTRY_COMPARE(view()->model()->rowCount(), 2);
  category->setCurrentIndex(0);
  fixture_->find<QComboBox>("level")->setCurrentIndex(3);
  QTRY_COMPARE(view()->model()->rowCount(), 2);
  fixture_->find<QComboBox>("level")->setCurrentIndex(1);
  QTest::keyClicks(fixture_->find<QLineEdit>("words"), QStringLiteral("line 1\\d"));
  QTRY_COMPARE(view()->model()->rowCount(), 3);
}

void TestLogsPage::a_bad_expression_is_explained() {
  add(10);
  start();
  QTest::keyClicks(fixture_->find<QLineEdit>("words"), QStringLiteral("line ("));
  auto* error = fixture_->find<QLabel>("words_error");
  QTRY_VERIFY(error->isVisible());
  QVERIFY(error->text().contains(QStringLiteral("character")));
  QCOMPARE(view()->model()->rowCount(), 10);
  QTest::keyClick(fixture_->find<QLineEdit>("words"), Qt::Key_Backspace);
  QTRY_VERIFY(!error->isVisible());
}

void TestLogsPage::lines_are_copied() {
  add(3);
  start();
  fixture_->click("copy_log");
  QCOMPARE(QGuiApplication::clipboard()->text().count(u'\n'), 2);
  view()->selectRow(1);
  fixture_->click("copy_log");
  QVERIFY(QGuiApplication::clipboard()->text().endsWith(QStringLiteral("train  line 2")));
  QGuiApplication::clipboard()->clear();
  QTest::keyClick(view(), Qt::Key_C, Qt::ControlModifier);
  QVERIFY(QGuiApplication::clipboard()->text().endsWith(QStringLiteral("line 2")));
}

void TestLogsPage::all_of_a_long_log_is_copied_in_pieces() {
  constexpr int lines = 10 * RowText::rows_per_turn;
  add(lines);
  start();
  view()->selectAll();
  QGuiApplication::clipboard()->clear();
  QTest::keyClick(view(), Qt::Key_C, Qt::ControlModifier);
  // The key's event made a first piece; meanwhile the page says what goes on, and the log may go on too.
  QVERIFY(QGuiApplication::clipboard()->text().isEmpty());
  const auto* counts = fixture_->find<QLabel>("log_counts");
  QVERIFY2(counts->text().contains("copying 5,000 lines"), qPrintable(counts->text()));
  QTRY_VERIFY(!QGuiApplication::clipboard()->text().isEmpty());
  const QStringList copied = QGuiApplication::clipboard()->text().split(u'\n');
  QCOMPARE(copied.size(), qsizetype{lines});
  QVERIFY(copied.front().endsWith(QStringLiteral("  line 1")));
  QVERIFY(copied.back().endsWith(QStringLiteral("  line 5000")));
  QVERIFY2(counts->text().contains("5,000 lines copied"), qPrintable(counts->text()));
  // Parts that are chosen apart from each other come in the order of the log.
  view()->selectionModel()->clearSelection();
  for (const int row : {7, 2, 8})
    view()->selectionModel()->select(view()->model()->index(row, 0),
                                     QItemSelectionModel::Select | QItemSelectionModel::Rows);
  QTest::keyClick(view(), Qt::Key_C, Qt::ControlModifier);
  QTRY_VERIFY2(counts->text().contains("3 lines copied"), qPrintable(counts->text()));
  const QStringList parts = QGuiApplication::clipboard()->text().split(u'\n');
  QCOMPARE(parts.size(), qsizetype{3});
  QVERIFY(parts[0].endsWith(QStringLiteral("line 3")) && parts[1].endsWith(QStringLiteral("line 8")) &&
          parts[2].endsWith(QStringLiteral("line 9")));
  view()->selectionModel()->select(view()->model()->index(4, 0),
                                   QItemSelectionModel::ClearAndSelect | QItemSelectionModel::Rows);
  QTest::keyClick(view(), Qt::Key_C, Qt::ControlModifier);
  QTRY_VERIFY2(counts->text().contains("1 line copied"), qPrintable(counts->text()));
}

// However many rows there are, the event loop comes to its other work after each few hundred.
void TestLogsPage::a_long_text_is_made_in_pieces() {
  constexpr qsizetype rows = 20 * RowText::rows_per_turn + 7;
  qsizetype asked = 0, before = 0, most = 0, turns = 0;
  QTimer other;  // what else the window has to do
  connect(&other, &QTimer::timeout, this, [&] {
    most = std::max(most, asked - before);
    before = asked;
    ++turns;
  });
  other.start(0);
  auto* text = new RowText(
      QStringLiteral("head\n"), rows,
      [&](qsizetype row) {
        ++asked;
        return QString::number(row) + u'\n';
      },
      this);
  QSignalSpy done(text, &RowText::done);
  text->start();
  QCOMPARE(asked, RowText::rows_per_turn);
  QTRY_COMPARE(done.size(), 1);
  QCOMPARE(asked, rows);
  QVERIFY2(turns >= 10, qPrintable(QString::number(turns)));
  // Two pieces at most between two looks at the rest: timers take turns.
  QVERIFY2(most <= 2 * RowText::rows_per_turn, qPrintable(QString::number(most)));
  const QByteArray bytes = done[0][0].toByteArray();
  QVERIFY(bytes.startsWith("head\n0\n1\n"));
  QVERIFY(bytes.endsWith('\n' + QByteArray::number(rows - 1) + '\n'));
  QCOMPARE(bytes.count('\n'), rows + 1);
}

void TestLogsPage::a_full_log_is_exported_as_it_was() {
  constexpr int lines = 3'000;
  add(lines);
  start();
  const QString path = fixture_->folder.filePath(QStringLiteral("log.csv"));
  QTimer::singleShot(0, this, [path] {
    for (QWidget* widget : QApplication::topLevelWidgets())
      if (auto* dialog = qobject_cast<QFileDialog*>(widget); dialog != nullptr && dialog->isVisible()) {
        dialog->findChild<QLineEdit*>("fileNameEdit")->setText(path);
        QMetaObject::invokeMethod(dialog, "accept");
      }
  });
  view()->export_action()->trigger();
  QVERIFY(!QFile::exists(path));  // the window goes on first
  fixture_->click("clear_log");   // and the log changes
  QTRY_VERIFY(QFile::exists(path));
  QFile file(path);
  QVERIFY(file.open(QIODevice::ReadOnly));
  const QList<QByteArray> rows = file.readAll().split('\n');
  QCOMPARE(rows.size(), lines + 2);  // headings, and nothing after the last end of line
  QCOMPARE(rows.front(), QByteArray("Time,Level,Category,Message\r"));
  QVERIFY(rows[1].endsWith(",info,train,line 1\r"));
  QVERIFY(rows[lines].endsWith(",line 3000\r"));
}

void TestLogsPage::what_the_core_did_not_keep_is_counted() {
  add(10);
  start();
  // The core's own store went on and dropped 40 that nobody read.
  fixture_->node->logs = {{51, fixture_->clock.wall_now(), {LogLevel::Info, "train", "line 51"}}};
  QTRY_COMPARE(view()->model()->rowCount(), 12);
  QTRY_VERIFY(fixture_->find<QLabel>("log_counts")->text().contains(QStringLiteral("40 not kept")));
}

void TestLogsPage::nothing_is_asked_while_hidden() {
  add(10);
  start();
  fixture_->page->hidden();
  add(10);
  fixture_->node->emit(node::StateChanged{});
  QSignalSpy received(&fixture_->bridge, &Bridge::event_received);
  QTRY_VERIFY(!received.isEmpty());  // at least one tick of the bridge later
  QCOMPARE(view()->model()->rowCount(), 10);
  fixture_->page->shown();
  QTRY_COMPARE(view()->model()->rowCount(), 20);
}

void TestLogsPage::diagnostics_are_shown_before_they_are_saved() {
  fixture_->core_program = make_program(
      "[ \"$1\" = diagnostics ] || exit 64\n"
      "if [ \"$2\" = --preview ]; then echo \"version: 1; in $4\"; else echo zip >\"$3\"; fi\n");
  fixture_->show<LogsPage>();
  fixture_->publish([](node::Snapshot& s) { s.program.data_directory = "/data"; });
  QTRY_COMPARE(fixture_->bridge.snapshot()->program.data_directory, std::string("/data"));
  fixture_->click("diagnostics");
  auto* dialog = fixture_->page->findChild<DiagnosticsDialog*>();
  auto* save = dialog->findChild<QPushButton*>(QStringLiteral("diagnostics_save"));
  QVERIFY(!save->isEnabled());
  auto* preview = dialog->findChild<QPlainTextEdit*>(QStringLiteral("diagnostics_preview"));
  QTRY_COMPARE(preview->toPlainText(), QStringLiteral("version: 1; in /data\n"));
  QTest::mouseClick(save, Qt::LeftButton);
  auto* files = dialog->findChild<QFileDialog*>();
  QVERIFY(files != nullptr);
  const QString path = fixture_->folder.filePath(QStringLiteral("d.zip"));
  files->selectFile(path);
  QMetaObject::invokeMethod(files, "accept");
  auto* state = dialog->findChild<QLabel*>(QStringLiteral("diagnostics_state"));
  QTRY_VERIFY(state->text().contains(QStringLiteral("Saved as")));
  QVERIFY(QFile::exists(path));
}

void TestLogsPage::diagnostics_without_a_program_say_what_to_do() {
  fixture_->show<LogsPage>();
  fixture_->click("diagnostics");
  auto* dialog = fixture_->page->findChild<DiagnosticsDialog*>();
  const auto text = dialog->findChild<QLabel*>(QStringLiteral("diagnostics_state"))->text();
  QVERIFY(text.contains(QStringLiteral("neuroshardd diagnostics --preview")));
  QVERIFY(!dialog->findChild<QPushButton*>(QStringLiteral("diagnostics_save"))->isEnabled());
}

// This computer's folder of that name is not what is looked at.
void TestLogsPage::another_computers_diagnostics_are_not_collected_here() {
  fixture_->core_program = make_program("echo 'of this computer'\n");
  fixture_->elsewhere = true;
  fixture_->show<LogsPage>();
  fixture_->click("diagnostics");
  auto* dialog = fixture_->page->findChild<DiagnosticsDialog*>();
  const auto text = dialog->findChild<QLabel*>(QStringLiteral("diagnostics_state"))->text();
  QVERIFY(text.contains(QStringLiteral("on the computer of the core")));
}

void TestLogsPage::a_failing_program_is_told() {
  fixture_->core_program = make_program("echo 'no such directory' >&2; exit 1\n");
  fixture_->show<LogsPage>();
  fixture_->click("diagnostics");
  auto* dialog = fixture_->page->findChild<DiagnosticsDialog*>();
  auto* state = dialog->findChild<QLabel*>(QStringLiteral("diagnostics_state"));
  QTRY_VERIFY(state->text().contains(QStringLiteral("no such directory")));
  QVERIFY(!dialog->findChild<QPushButton*>(QStringLiteral("diagnostics_save"))->isEnabled());
}

void TestLogsPage::about_names_the_licences() {
  auto* dialog = new AboutDialog(fixture_->theme, QStringLiteral("0.1.0"), QString());
  QString all;
  for (QLabel* label : dialog->findChildren<QLabel*>()) all += label->text() + u'\n';
  QVERIFY(all.contains(QStringLiteral("App 0.1.0, core —")));
  QVERIFY(all.contains(QStringLiteral("Apache-2.0")));
  QVERIFY(all.contains(QStringLiteral("GPL-3")));
  // As high as its text, and no gap below.
  fixture_->theme.apply(*qApp);
  dialog->show();
  int text = 0;
  for (QLabel* label : dialog->findChildren<QLabel*>())
    text = std::max(text, label->mapTo(dialog, QPoint(0, label->height())).y());
  const int button = dialog->findChild<QPushButton*>()->mapTo(dialog, QPoint()).y();
  QVERIFY2(button - text < 40, qPrintable(QStringLiteral("%1 between text and button").arg(button - text)));
  delete dialog;
}

void TestLogsPage::earnings_are_honest() {
  fixture_->show<EarningsPage>();
  auto* empty = fixture_->page->findChild<EmptyState*>();
  QVERIFY(empty->isVisible());
  QTest::mouseClick(empty->findChild<QPushButton*>(), Qt::LeftButton);
  QCOMPARE(fixture_->went_to, QStringLiteral("network"));
  QVERIFY(fixture_->find<QLabel>("earnings_wallet")->text().contains(QStringLiteral("wallet create")));
  fixture_->publish([](node::Snapshot& s) { s.identity.wallet_id = "26870dc7aa0062c5"; });
  QCOMPARE(fixture_->find<QLabel>("earnings_wallet")->text(), QStringLiteral("26870dc7aa0062c5"));
}

NS_UI_TEST(TestLogsPage)
#include "test_logs_page.moc"
