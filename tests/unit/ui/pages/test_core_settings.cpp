// The core's real table of settings in the page: every one has the editor of its type, shows every value that
// the core may hold, and gives back a text that the core takes for the same value.
#include <QComboBox>
#include <QLineEdit>

#include "tests/support/core_settings.h"
#include "tests/unit/ui/pages/page_fixture.h"
#include "ui/pages/setting_editor_parts.h"
#include "ui/pages/setting_row.h"
#include "ui/pages/settings_page.h"
#include "ui/widgets/card.h"

using namespace neuroshard;      // NOLINT
using namespace neuroshard::ui;  // NOLINT
using engine::SettingInfo;
using engine::SettingType;

namespace {

// Without a default: a type that is added to the core does not compile here until the page has an editor for
// it.
bool is_right(const SettingEditor* editor, const SettingInfo& info, const node::SettingEntry& entry) {
  switch (info.type) {
    case SettingType::Integer:
    case SettingType::Bytes:
    case SettingType::Seconds: return qobject_cast<const NumberEditor*>(editor) != nullptr;
    case SettingType::Choice:
      return is_switch(entry) ? qobject_cast<const SwitchEditor*>(editor) != nullptr
                              : qobject_cast<const ChoiceEditor*>(editor) != nullptr;
    case SettingType::Hours: return qobject_cast<const ScheduleEditor*>(editor) != nullptr;
    case SettingType::Programs: return qobject_cast<const ProgramsEditor*>(editor) != nullptr;
  }
  return false;
}

// Values at the bounds and a few between, as the core writes them.
QStringList samples(const SettingInfo& info) {
  const auto number = [&info](std::uint64_t value) {
    return QString::fromStdString(engine::format_setting(info.id, {value, {}}));
  };
  switch (info.type) {
    case SettingType::Integer:
    case SettingType::Bytes:
    case SettingType::Seconds: {
      QStringList all{number(info.least), number(info.most)};
      for (const std::uint64_t value : {1u, 59u, 60u, 90u, 1024u, 1536u, 3600u, 5400u, 86'400u, 1u << 30})
        if (value >= info.least && value <= info.most) all << number(value);
      return all;
    }
    case SettingType::Choice: return QString::fromLatin1(info.choices).split(u'|');
    case SettingType::Hours: return {"always", "never", "mon-fri 18-8; sat-sun"};
    case SettingType::Programs: return {"", "obs", "obs, steam"};
  }
  return {};
}

}  // namespace

class TestCoreSettings : public QObject {
  Q_OBJECT
 private Q_SLOTS:
  void every_setting_data() {
    QTest::addColumn<int>("row");
    for (std::size_t i = 0; i < engine::setting_count; ++i)
      QTest::newRow(engine::settings_table()[i].name) << static_cast<int>(i);
  }
  void every_setting() {
    QFETCH(int, row);
    const SettingInfo& info = engine::settings_table()[static_cast<std::size_t>(row)];
    const node::SettingEntry entry = testing::core_settings()[static_cast<std::size_t>(row)];
    const Theme theme(std::make_unique<LightScheme>());
    const std::unique_ptr<SettingEditor> editor(make_setting_editor(theme, entry));
    QVERIFY2(is_right(editor.get(), info, entry), editor->metaObject()->className());
    QVERIFY(editor->focusProxy() != nullptr);
    // A setting that nobody touched does not count as changed.
    QCOMPARE(QString::fromStdString(entry.value), QString::fromStdString(entry.default_value));
    const QStringList texts = samples(info);
    QVERIFY(!texts.isEmpty());
    for (const QString& text : texts) {
      const auto meant = engine::parse_setting(info.id, text.toStdString());
      QVERIFY2(meant.ok(), qPrintable(text));
      editor->set_value(text);
      const auto given = engine::parse_setting(info.id, editor->value().toStdString());
      QVERIFY2(given.ok(), qPrintable(text + " became " + editor->value()));
      QVERIFY2(*given == *meant, qPrintable(text + " became " + editor->value()));
    }
  }
  void the_page_shows_all_of_them() {
    PageFixture fixture;
    fixture.node->settings = testing::core_settings();
    fixture.show<SettingsPage>();
    QTRY_COMPARE(fixture.page->findChildren<SettingRow*>().size(), int(engine::setting_count));
    const QStringList groups = {"Limits",  "Schedule",   "Power",         "Training", "Storage",
                                "Network", "Appearance", "Notifications", "Advanced"};
    for (const SettingRow* row : fixture.page->findChildren<SettingRow*>()) {
      const node::SettingEntry& entry = row->entry();
      QVERIFY2(groups.contains(QString::fromStdString(entry.group)), entry.name.c_str());
      QVERIFY2(row->isVisibleTo(fixture.page.get()), entry.name.c_str());
      QVERIFY2(!row->is_changed(), entry.name.c_str());
      QVERIFY2(!entry.title.empty() && !entry.help.empty(), entry.name.c_str());
      QVERIFY2(row->editor()->isEnabled(), entry.name.c_str());
    }
  }
};

QTEST_MAIN(TestCoreSettings)
#include "test_core_settings.moc"
