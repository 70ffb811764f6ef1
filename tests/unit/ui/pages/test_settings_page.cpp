// The page of settings: drawn from the core's table; a change applies at once and the core has the last word.
#include <QAccessible>
#include <QComboBox>
#include <QDoubleSpinBox>
#include <QLineEdit>
#include <QListWidget>
#include <QWheelEvent>

#include "tests/support/test_main.h"
#include "tests/unit/ui/pages/page_fixture.h"
#include "ui/models/release_view.h"
#include "ui/pages/setting_editor.h"
#include "ui/pages/setting_row.h"
#include "ui/pages/settings_page.h"
#include "ui/pages/week_grid.h"
#include "ui/widgets/card.h"
#include "ui/widgets/empty_state.h"
#include "ui/widgets/toggle_switch.h"

using namespace neuroshard;      // NOLINT
using namespace neuroshard::ui;  // NOLINT

namespace {

node::SettingEntry setting(const std::string& name, const std::string& type, const std::string& value,
                           const std::string& standard, const std::string& group) {
  node::SettingEntry entry;
  entry.name = name;
  entry.title = "Title of " + name;
  entry.type = type;
  entry.value = value;
  entry.default_value = standard;
  entry.group = group;
  entry.help = "what " + name + " does";
  entry.origin = value == standard ? "built-in" : "file";
  return entry;
}

}  // namespace

class TestSettingsPage : public QObject {
  Q_OBJECT
 private Q_SLOTS:
  void init();
  void cleanup() { fixture_.reset(); }
  void every_setting_has_a_field_of_its_type();
  void a_switch_applies_at_once();
  void a_number_keeps_its_unit();
  void half_a_number_is_not_applied();
  void another_unit_keeps_the_amount();
  void a_unit_that_the_amount_does_not_fit_waits_for_a_number();
  void a_size_beyond_an_int_is_shown_whole();
  void enter_tries_a_refused_value_again();
  void a_new_connection_takes_errors_away();
  void a_choice_applies_at_once();
  void the_cores_refusal_stands_beside_the_field();
  void a_changed_setting_is_marked_and_reset();
  void a_group_is_reset_after_a_question();
  void a_question_goes_with_its_core();
  void a_locked_setting_says_why();
  void what_needs_a_restart_says_so();
  void search_narrows_the_page();
  void the_gpu_is_left_out_only_where_it_is();
  void the_week_is_painted_with_the_mouse();
  void the_week_is_painted_with_keys();
  void the_day_begins_where_the_language_does();
  void programs_are_added_and_removed();
  void a_change_from_elsewhere_is_shown();
  void the_wheel_does_not_change_a_field_in_passing();
  void the_apps_own_settings_are_kept();
  void looking_for_releases_is_off_until_it_is_switched_on();
  void without_a_place_nothing_can_be_looked_for();
  void what_was_found_stands_under_the_switch();
  void every_field_has_a_name();
  void a_link_leads_to_the_field();

 private:
  SettingRow* row(const char* name) const {
    return fixture_->find<SettingRow>((std::string("setting_") + name).c_str());
  }
  template <class W>
  W* field(const char* name) const {
    return row(name)->editor()->findChild<W*>();
  }
  void start() {
    fixture_->show<SettingsPage>();
    QTRY_COMPARE(fixture_->page->findChildren<SettingRow*>().size(),
                 static_cast<qsizetype>(fixture_->node->settings.size()));
    QTRY_VERIFY(row("device")->isVisible());  // of the last group
  }
  void change(const std::string& name, const std::string& value) {
    for (auto& entry : fixture_->node->settings)
      if (entry.name == name) entry.value = value;
    fixture_->node->emit(node::SettingChanged{name, value});
  }

  std::unique_ptr<PageFixture> fixture_;
};

void TestSettingsPage::init() {
  fixture_ = std::make_unique<PageFixture>();
  auto& all = fixture_->node->settings;
  all.push_back(setting("cpu_threads", "integer", "0", "0", "Limits"));
  all.back().most = 1024;
  all.back().help = "CPU threads to compute with; 0 = all usable";
  all.push_back(setting("memory_limit", "bytes", "2GiB", "0", "Limits"));
  all.back().most = std::uint64_t{1} << 60;
  all.push_back(setting("min_interval", "seconds", "10min", "10min", "Storage"));
  all.back().most = 86'400;
  all.push_back(setting("precision", "choice", "auto", "auto", "Training"));
  all.back().choices = "auto|fp32|bf16";
  all.back().at_restart = true;
  all.push_back(setting("on_battery", "choice", "off", "off", "Power"));
  all.back().choices = "on|off";
  all.push_back(setting("schedule", "hours", "always", "always", "Schedule"));
  all.push_back(setting("programs", "programs", "vlc", "", "Power"));
  all.push_back(setting("device", "choice", "cpu", "auto", "Advanced"));
  all.back().choices = "auto|cpu";
  all.back().locked = true;
  all.back().origin = "flag";
}

void TestSettingsPage::every_setting_has_a_field_of_its_type() {
  start();
  QVERIFY(field<QDoubleSpinBox>("cpu_threads") != nullptr);
  QCOMPARE(field<QDoubleSpinBox>("cpu_threads")->text(), QStringLiteral("all usable"));
  QCOMPARE(field<QDoubleSpinBox>("memory_limit")->value(), 2.0);
  QCOMPARE(field<QComboBox>("memory_limit")->currentText(), QStringLiteral("GiB"));
  QCOMPARE(field<QComboBox>("min_interval")->currentText(), QStringLiteral("min"));
  QCOMPARE(field<QComboBox>("precision")->count(), 3);
  QVERIFY(field<ToggleSwitch>("on_battery") != nullptr);
  QVERIFY(field<WeekGrid>("schedule")->hours().is_always());
  QCOMPARE(field<QListWidget>("programs")->count(), 1);
}

void TestSettingsPage::a_switch_applies_at_once() {
  start();
  QTest::mouseClick(field<ToggleSwitch>("on_battery"), Qt::LeftButton);
  QTRY_VERIFY(fixture_->commanded("set on_battery on"));
}

void TestSettingsPage::a_number_keeps_its_unit() {
  start();
  auto* number = field<QDoubleSpinBox>("memory_limit");
  number->setFocus();
  number->selectAll();
  QTest::keyClicks(number, QStringLiteral("6"));
  QTest::keyClick(number, Qt::Key_Return);
  QTRY_VERIFY(fixture_->commanded("set memory_limit 6GiB"));
}

// 1 GiB of memory on the way to 16 GiB would stop the training.
void TestSettingsPage::half_a_number_is_not_applied() {
  start();
  auto* number = field<QDoubleSpinBox>("memory_limit");
  number->setFocus();
  number->selectAll();
  QTest::keyClicks(number, QStringLiteral("1"));
  QTest::qWait(1000);  // longer than the field waits for the arrows
  QVERIFY(fixture_->node->commands().empty());
  QTest::keyClicks(number, QStringLiteral("6"));
  field<QDoubleSpinBox>("cpu_threads")->setFocus();  // leaving the field applies, as Enter does
  QTRY_VERIFY(fixture_->commanded("set memory_limit 16GiB"));
  QCOMPARE(fixture_->node->commands().size(), std::size_t{1});
}

// A limit that is less for a moment deletes checkpoints.
void TestSettingsPage::another_unit_keeps_the_amount() {
  fixture_->node->settings.push_back(setting("disk_limit", "bytes", "1TiB", "0", "Storage"));
  fixture_->node->settings.back().most = std::uint64_t{1} << 60;
  start();
  auto* number = field<QDoubleSpinBox>("disk_limit");
  auto* unit = field<QComboBox>("disk_limit");
  QCOMPARE(number->value(), 1.0);
  unit->setFocus();
  QTest::keyClick(unit, Qt::Key_Up);
  QCOMPARE(unit->currentText(), QStringLiteral("GiB"));
  QCOMPARE(number->value(), 1024.0);
  QTest::qWait(1000);  // longer than the field waits before it applies
  QVERIFY(fixture_->node->commands().empty());
  number->setFocus();
  number->selectAll();
  QTest::keyClicks(number, QStringLiteral("500"));
  QTest::keyClick(number, Qt::Key_Return);
  QTRY_VERIFY(fixture_->commanded("set disk_limit 500GiB"));
  QCOMPARE(fixture_->node->commands().size(), std::size_t{1});
}

void TestSettingsPage::a_unit_that_the_amount_does_not_fit_waits_for_a_number() {
  start();
  auto* number = field<QDoubleSpinBox>("memory_limit");
  auto* unit = field<QComboBox>("memory_limit");
  unit->setFocus();
  QTest::keyClick(unit, Qt::Key_Down);
  QCOMPARE(unit->currentText(), QStringLiteral("TiB"));
  QVERIFY(number->text().trimmed().isEmpty());
  // Without a number nothing is changed.
  number->setFocus();
  QTest::keyClick(number, Qt::Key_Return);
  QCOMPARE(number->value(), 2.0);
  QCOMPARE(unit->currentText(), QStringLiteral("GiB"));
  QTest::qWait(1000);
  QVERIFY(fixture_->node->commands().empty());
  unit->setFocus();
  QTest::keyClick(unit, Qt::Key_Down);
  number->setFocus();
  QTest::keyClicks(number, QStringLiteral("1"));
  QTest::keyClick(number, Qt::Key_Return);
  QTRY_VERIFY(fixture_->commanded("set memory_limit 1TiB"));
  QCOMPARE(fixture_->node->commands().size(), std::size_t{1});
}

void TestSettingsPage::a_size_beyond_an_int_is_shown_whole() {
  fixture_->node->settings.push_back(setting("disk_limit", "bytes", "100000000000", "0", "Storage"));
  fixture_->node->settings.back().most = std::uint64_t{1} << 60;
  start();
  auto* number = field<QDoubleSpinBox>("disk_limit");
  QCOMPARE(number->value(), 1e11);
  QCOMPARE(field<QComboBox>("disk_limit")->currentText(), QStringLiteral("B"));
  QTest::keyClick(number, Qt::Key_Up);
  const auto more = static_cast<std::uint64_t>(number->value());
  QVERIFY(more > 100'000'000'000);
  QTRY_VERIFY(fixture_->commanded("set disk_limit " + std::to_string(more) + "B"));
}

void TestSettingsPage::enter_tries_a_refused_value_again() {
  fixture_->node->settings.push_back(setting("nickname", "text", "", "", "Network"));
  start();
  fixture_->page->activateWindow();
  const auto retry = [this](const char* name, QWidget* edit, const QString& typed) {
    fixture_->node->refuse(make_error(ErrorCode::Busy, "try again"));
    edit->setFocus();
    QTRY_VERIFY(edit->hasFocus());
    QTest::keyClick(edit, Qt::Key_A, Qt::ControlModifier);
    QTest::keyClicks(edit, typed);
    QTest::keyClick(edit, Qt::Key_Return);
    QTRY_COMPARE(row(name)->error(), QStringLiteral("try again"));
    fixture_->node->refuse({});
    QTest::keyClick(edit, Qt::Key_Return);
    QTRY_VERIFY(row(name)->error().isEmpty());
  };
  retry("nickname", field<QLineEdit>("nickname"), QStringLiteral("anna"));
  QCOMPARE(fixture_->node->commands().back(), std::string("set nickname anna"));
  retry("memory_limit", field<QDoubleSpinBox>("memory_limit"), QStringLiteral("6"));
  QCOMPARE(fixture_->node->commands().back(), std::string("set memory_limit 6GiB"));
  retry("schedule", field<QLineEdit>("schedule"), QStringLiteral("sat-sun"));
  QCOMPARE(fixture_->node->commands().back(), std::string("set schedule sat-sun"));
}

void TestSettingsPage::a_new_connection_takes_errors_away() {
  start();
  fixture_->node->refuse(make_error(ErrorCode::Busy, "try again"));
  field<QDoubleSpinBox>("memory_limit")->setValue(1);
  QTRY_VERIFY(!row("memory_limit")->error().isEmpty());
  fixture_->bridge.attach(nullptr);
  QVERIFY(!row("memory_limit")->error().isEmpty());
  fixture_->bridge.attach(fixture_->node);
  QVERIFY(row("memory_limit")->error().isEmpty());
  QTRY_COMPARE(field<QDoubleSpinBox>("memory_limit")->value(), 2.0);  // the core's own
}

void TestSettingsPage::a_choice_applies_at_once() {
  start();
  auto* box = field<QComboBox>("precision");
  box->setFocus();
  QTest::keyClick(box, Qt::Key_Down);
  QTRY_VERIFY(fixture_->commanded("set precision fp32"));
}

void TestSettingsPage::the_cores_refusal_stands_beside_the_field() {
  start();
  fixture_->node->refuse(make_error(ErrorCode::InvalidArgument, "memory_limit must be at least 512MiB"));
  field<QDoubleSpinBox>("memory_limit")->setValue(1);
  QTRY_VERIFY(row("memory_limit")->error().contains(QStringLiteral("at least 512MiB")));
  QVERIFY(row("memory_limit")->findChild<QLabel*>(QStringLiteral("error"))->isVisible());
  QVERIFY(row("cpu_threads")->error().isEmpty());
  QCOMPARE(field<QDoubleSpinBox>("memory_limit")->value(), 1.0);  // what the person typed stays, to be mended
  fixture_->node->refuse({});
  field<QDoubleSpinBox>("memory_limit")->setValue(3);
  QTRY_VERIFY(fixture_->commanded("set memory_limit 3GiB"));
  QTRY_VERIFY(row("memory_limit")->error().isEmpty());
}

void TestSettingsPage::a_changed_setting_is_marked_and_reset() {
  start();
  auto* mark = row("memory_limit")->findChild<QLabel*>(QStringLiteral("changed"));
  QVERIFY(mark->isVisible());
  QVERIFY(!row("cpu_threads")->findChild<QLabel*>(QStringLiteral("changed"))->isVisible());
  QTest::mouseClick(row("memory_limit")->findChild<QPushButton*>(QStringLiteral("reset")), Qt::LeftButton);
  QTRY_VERIFY(fixture_->commanded("set memory_limit 0"));
  change("memory_limit", "0");
  QTRY_VERIFY(!mark->isVisible());
}

void TestSettingsPage::a_group_is_reset_after_a_question() {
  start();
  auto* group = fixture_->find<Card>("group_Power");
  QTest::mouseClick(group->findChild<QPushButton*>(QStringLiteral("reset_group")), Qt::LeftButton);
  QVERIFY(fixture_->question()->informativeText().contains(QStringLiteral("Title of programs")));
  QVERIFY(!fixture_->question()->informativeText().contains(QStringLiteral("on_battery")));
  fixture_->agree();
  QTRY_VERIFY(fixture_->commanded("set programs "));
  // Nothing changed there: nothing to reset.
  QVERIFY(!fixture_->find<Card>("group_Storage")
               ->findChild<QPushButton*>(QStringLiteral("reset_group"))
               ->isVisible());
}

void TestSettingsPage::a_question_goes_with_its_core() {
  start();
  auto* group = fixture_->find<Card>("group_Power");
  QTest::mouseClick(group->findChild<QPushButton*>(QStringLiteral("reset_group")), Qt::LeftButton);
  QVERIFY(fixture_->question() != nullptr);
  auto other = std::make_shared<testing::FakeNode>();
  other->settings = {setting("cpu_threads", "integer", "4", "0", "Limits")};
  fixture_->replace_core(other, [](node::Snapshot& view) { view.identity.instance_id = "two"; });
  QTRY_VERIFY(fixture_->question() == nullptr);
  QTRY_COMPARE(fixture_->page->findChildren<SettingRow*>().size(), qsizetype{1});
  QVERIFY(other->commands().empty());
}

void TestSettingsPage::a_locked_setting_says_why() {
  start();
  QVERIFY(!field<QComboBox>("device")->isEnabled());
  QVERIFY(row("device")
              ->findChild<QLabel*>(QStringLiteral("note"))
              ->text()
              .contains(QStringLiteral("command line")));
  QVERIFY(!row("device")->findChild<QPushButton*>(QStringLiteral("reset"))->isVisible());
}

void TestSettingsPage::what_needs_a_restart_says_so() {
  start();
  auto* note = row("precision")->findChild<QLabel*>(QStringLiteral("note"));
  QVERIFY(note->isVisible());
  QVERIFY(note->text().contains(QStringLiteral("next start")));
  QVERIFY(!row("cpu_threads")->findChild<QLabel*>(QStringLiteral("note"))->isVisible());
}

void TestSettingsPage::search_narrows_the_page() {
  start();
  auto* search = fixture_->find<QLineEdit>("search");
  QTest::keyClicks(search, QStringLiteral("memory"));
  QVERIFY(row("memory_limit")->isVisible());
  QVERIFY(!row("cpu_threads")->isVisible());
  QVERIFY(!fixture_->find<Card>("group_Power")->isVisible());
  QCOMPARE(fixture_->find<QLabel>("search_count")->text(), QStringLiteral("1 of 8"));
  // The page names settings that people look for and this version lacks.
  search->setText(QStringLiteral("gpu share"));
  auto* gpu = fixture_->find<QWidget>("gpu_note");
  QVERIFY(gpu->isVisible() && !row("memory_limit")->isVisible());
  QVERIFY(gpu->findChildren<QLabel*>().back()->text().contains(QStringLiteral("uses only the processor")));
  QVERIFY(!fixture_->page->findChild<EmptyState*>()->isVisible());
  search->setText(QStringLiteral("no such zebra"));
  QVERIFY(!row("memory_limit")->isVisible() && !gpu->isVisible());
  QVERIFY(fixture_->page->findChild<EmptyState*>()->isVisible());
  search->setText(QStringLiteral("tray"));
  QVERIFY(fixture_->find<Card>("app_settings")->isVisible());
  search->clear();
  QVERIFY(row("cpu_threads")->isVisible());
}

// A core that says that it may compute on another device is not contradicted.
void TestSettingsPage::the_gpu_is_left_out_only_where_it_is() {
  for (node::SettingEntry& entry : fixture_->node->settings)
    if (entry.name == "device") entry.choices = "auto|cpu|cuda";
  start();
  QVERIFY(fixture_->page->findChild<QWidget*>("gpu_note") == nullptr);
}

void TestSettingsPage::the_week_is_painted_with_the_mouse() {
  start();
  auto* grid = field<WeekGrid>("schedule");
  // Monday 8 to 17 off, with one stroke.
  QTest::mousePress(grid, Qt::LeftButton, {}, grid->cell(0, 8).center());
  QTest::mouseMove(grid, grid->cell(0, 12).center());
  QTest::mouseMove(grid, grid->cell(0, 17).center());
  QVERIFY(fixture_->node->commands().empty());  // not before the stroke ends
  QTest::mouseRelease(grid, Qt::LeftButton, {}, grid->cell(0, 17).center());
  QTRY_COMPARE(fixture_->node->commands().size(), std::size_t{1});
  const std::string command = fixture_->node->commands().front();
  const auto sent = WeekHours::parse(command.substr(std::string("set schedule ").size()));
  QVERIFY(sent.ok());
  QVERIFY(!sent->at(0, 8) && !sent->at(0, 17));
  QVERIFY(sent->at(0, 7) && sent->at(0, 18) && sent->at(1, 12));
}

void TestSettingsPage::the_week_is_painted_with_keys() {
  start();
  auto* grid = field<WeekGrid>("schedule");
  grid->setFocus();
  QTest::keyClick(grid, Qt::Key_Down);
  QTest::keyClick(grid, Qt::Key_Right);
  QTest::keyClick(grid, Qt::Key_Space);
  QTRY_COMPARE(fixture_->node->commands().size(), std::size_t{1});
  QVERIFY(!grid->hours().at(1, 1));
  QTest::keyClick(grid, Qt::Key_Right, Qt::ShiftModifier);
  QVERIFY(!grid->hours().at(1, 2));
  QVERIFY(grid->accessibleDescription().contains(QStringLiteral("Tuesday")));
  // The same as text, for whoever prefers it.
  auto* text = row("schedule")->findChild<QLineEdit*>(QStringLiteral("schedule_text"));
  text->setFocus();
  text->selectAll();
  QTest::keyClicks(text, QStringLiteral("sat-sun"));
  QTest::keyClick(text, Qt::Key_Return);
  QTRY_VERIFY(fixture_->commanded("set schedule sat-sun"));
  QVERIFY(grid->hours().at(5, 0) && !grid->hours().at(0, 0));
}

// From right to left midnight stands at the right, beside the day's name; mouse and keys follow.
void TestSettingsPage::the_day_begins_where_the_language_does() {
  start();
  auto* grid = field<WeekGrid>("schedule");
  const QRect first = grid->cell(0, 0), late = grid->cell(2, 20);
  grid->setLayoutDirection(Qt::RightToLeft);
  QCOMPARE(grid->cell(0, 0).right(), grid->width() - 1 - first.left());
  QCOMPARE(grid->cell(2, 20).left(), grid->width() - 1 - late.right());
  QVERIFY(grid->cell(2, 20).right() < grid->cell(2, 19).center().x());
  const QImage image = grid->grab().toImage();
  const QRect names(grid->cell(0, 0).right() + 1, first.top(), first.left(), first.height());
  bool drawn = false;
  for (int y = names.top(); y <= names.bottom(); ++y)
    for (int x = names.left(); x < grid->width(); ++x)
      drawn = drawn || image.pixelColor(x, y) != image.pixelColor(grid->width() - 1, y);
  QVERIFY(drawn);  // the day's name
  QTest::mouseClick(grid, Qt::LeftButton, {}, grid->cell(0, 5).center());
  QTRY_COMPARE(fixture_->node->commands().size(), std::size_t{1});
  QVERIFY(!grid->hours().at(0, 5) && grid->hours().at(0, 18));
  grid->setFocus();
  QTest::keyClick(grid, Qt::Key_Left);
  QTest::keyClick(grid, Qt::Key_Space);
  QVERIFY(!grid->hours().at(0, 6));
  // The name of a day stands for all of it.
  QTest::mouseClick(grid, Qt::LeftButton, {}, QPoint(grid->width() - 4, grid->cell(3, 0).center().y()));
  for (int hour = 0; hour < WeekHours::hours; ++hour) QVERIFY(!grid->hours().at(3, hour));
  QVERIFY(grid->hours().at(2, 0));
}

void TestSettingsPage::programs_are_added_and_removed() {
  start();
  auto* name = row("programs")->findChild<QLineEdit*>(QStringLiteral("program_name"));
  QTest::keyClicks(name, QStringLiteral("steam"));
  QTest::keyClick(name, Qt::Key_Return);
  QTRY_VERIFY(fixture_->commanded("set programs vlc, steam"));
  change("programs", "vlc, steam");
  auto* list = field<QListWidget>("programs");
  list->setCurrentRow(0);
  QTest::mouseClick(row("programs")->findChild<QPushButton*>(QStringLiteral("program_remove")),
                    Qt::LeftButton);
  QTRY_VERIFY(fixture_->commanded("set programs steam"));
}

void TestSettingsPage::a_change_from_elsewhere_is_shown() {
  start();
  change("on_battery", "on");
  QTRY_VERIFY(field<ToggleSwitch>("on_battery")->isChecked());
  QVERIFY(fixture_->node->commands().empty());  // showing is not setting
}

void TestSettingsPage::the_wheel_does_not_change_a_field_in_passing() {
  start();
  auto* number = field<QDoubleSpinBox>("memory_limit");
  fixture_->find<QLineEdit>("search")->setFocus();
  QWheelEvent turn(number->rect().center(), number->mapToGlobal(number->rect().center()), {}, {0, 120},
                   Qt::NoButton, Qt::NoModifier, Qt::NoScrollPhase, false);
  QApplication::sendEvent(number, &turn);
  QCOMPARE(number->value(), 2.0);
}

void TestSettingsPage::the_apps_own_settings_are_kept() {
  start();
  auto* look = fixture_->find<QComboBox>("app_theme");
  look->setFocus();
  QTest::keyClick(look, Qt::Key_End);
  QCOMPARE(fixture_->preferences.theme(), ThemeChoice::Dark);
  QTest::mouseClick(fixture_->find<ToggleSwitch>("app_close_to_tray"), Qt::LeftButton);
  QVERIFY(!fixture_->preferences.close_to_tray());
  QTest::mouseClick(fixture_->find<ToggleSwitch>("app_notify_pause"), Qt::LeftButton);
  QVERIFY(fixture_->preferences.notify(NotificationClass::Pause));
  QVERIFY(fixture_->node->commands().empty());  // the core knows nothing of it
}

void TestSettingsPage::looking_for_releases_is_off_until_it_is_switched_on() {
  fixture_->releases.set_place(QStringLiteral("https://releases.example/neuroshard"));
  start();
  auto* look = fixture_->find<ToggleSwitch>("app_look_for_releases");
  QVERIFY(look->isEnabled() && !look->isChecked() && !fixture_->preferences.look_for_releases());
  QTest::mouseClick(look, Qt::LeftButton);
  QVERIFY(look->isChecked() && fixture_->preferences.look_for_releases());
  QTest::keyClick(look, Qt::Key_Space);
  QVERIFY(!fixture_->preferences.look_for_releases());
}

void TestSettingsPage::without_a_place_nothing_can_be_looked_for() {
  fixture_->preferences.set_look_for_releases(true);  // of another build
  start();
  auto* look = fixture_->find<ToggleSwitch>("app_look_for_releases");
  QVERIFY(!look->isEnabled() && !look->isChecked());
  fixture_->find<QLineEdit>("search")->setText(QStringLiteral("names no place to look for releases"));
  QVERIFY(look->isVisible());
}

void TestSettingsPage::what_was_found_stands_under_the_switch() {
  fixture_->releases.set_place(QStringLiteral("https://releases.example/neuroshard"));
  start();
  auto* note = fixture_->find<QLabel>("release_note");
  QVERIFY(!note->isVisible());
  ReleaseState state;
  state.place = fixture_->releases.place();
  state.on = true;
  state.found = ReleaseFound::Refused;
  state.why = QStringLiteral("the signature was made with another key");
  state.looked = fixture_->clock.wall_now();
  fixture_->releases.set_note(ReleaseWords::note(state, fixture_->clock.wall_now()));
  QVERIFY(note->isVisible() && note->text().contains(QStringLiteral("Refused")) &&
          note->text().contains(state.why));
  QCOMPARE(note->property("role").toString(), QStringLiteral("danger"));
  state.found = ReleaseFound::Newer;
  state.version = QStringLiteral("0.3.0");
  fixture_->releases.set_note(ReleaseWords::note(state, fixture_->clock.wall_now()));
  QVERIFY(note->text().contains(QStringLiteral("0.3.0")));
  QCOMPARE(note->property("role").toString(), QStringLiteral("caption"));
  fixture_->releases.set_note({});
  QVERIFY(!note->isVisible());
}

void TestSettingsPage::every_field_has_a_name() {
  start();
  for (QWidget* widget : fixture_->page->findChildren<QWidget*>()) {
    if (widget->focusPolicy() == Qt::NoFocus || !widget->isVisible() || widget->focusProxy() != nullptr)
      continue;
    auto* interface = QAccessible::queryAccessibleInterface(widget);
    QVERIFY2(
        interface != nullptr && !interface->text(QAccessible::Name).isEmpty(),
        qPrintable(QString::fromLatin1(widget->metaObject()->className()) + u' ' + widget->objectName()));
  }
}

void TestSettingsPage::a_link_leads_to_the_field() {
  auto& page = fixture_->show<SettingsPage>();
  page.open_detail(QStringLiteral("precision"));  // before the settings are there
  QTRY_VERIFY(page.findChild<SettingRow*>(QStringLiteral("setting_precision")) != nullptr);
  page.activateWindow();
  QTRY_VERIFY(field<QComboBox>("precision")->hasFocus());
}

NS_UI_TEST(TestSettingsPage)
#include "test_settings_page.moc"
