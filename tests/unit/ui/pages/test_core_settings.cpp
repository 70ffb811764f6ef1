// The core's real table of settings in the page: every one has the editor of its type, shows every value that
// the core may hold, gives back a text that the core takes for the same value, and is shown in the person's
// language.
#include <QAccessible>
#include <QComboBox>
#include <QDoubleSpinBox>
#include <QLineEdit>
#include <QProcess>
#include <QXmlStreamReader>

#include "tests/support/core_settings.h"
#include "tests/support/test_main.h"
#include "tests/unit/ui/pages/page_fixture.h"
#include "ui/models/setting_words.h"
#include "ui/pages/setting_editor_parts.h"
#include "ui/pages/setting_row.h"
#include "ui/pages/settings_page.h"
#include "ui/text/translation.h"
#include "ui/widgets/card.h"

using namespace neuroshard;      // NOLINT
using namespace neuroshard::ui;  // NOLINT
using config::SettingInfo;
using config::SettingType;

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
    case SettingType::Text:
    case SettingType::Path: return qobject_cast<const TextEditor*>(editor) != nullptr;
  }
  return false;
}

// Values at the bounds and a few between, as the core writes them.
QStringList samples(const SettingInfo& info) {
  const auto number = [&info](std::uint64_t value) {
    return QString::fromStdString(config::format_setting(info.id, {value, {}}));
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
    case SettingType::Text: return {"", "turn.example.org:3478", "[2001:db8::1]:3478"};
    case SettingType::Path: return {"", "turn.password", "/etc/neuroshard/turn password"};
  }
  return {};
}

// A catalogue that knows one setting.
class OneSetting : public QTranslator {
 public:
  bool isEmpty() const override { return false; }
  QString translate(const char* context, const char* source, const char* comment, int) const override {
    if (QLatin1String(context) == QLatin1String("CoreChoices"))
      return QLatin1String(source) == QLatin1String("low") ? QStringLiteral("schwach") : QString();
    if (QLatin1String(context) != QLatin1String("CoreSettings") || comment == nullptr) return {};
    if (QLatin1String(comment) != QLatin1String("memory_limit")) return {};
    return QLatin1String(source) == QLatin1String("Memory")
               ? QStringLiteral("Speicher")
               : QStringLiteral("Speicher des ganzen Prozesses; 0 = ohne Grenze");
  }
};

}  // namespace

class TestCoreSettings : public QObject {
  Q_OBJECT
 private Q_SLOTS:
  void every_setting_data() {
    QTest::addColumn<int>("row");
    for (std::size_t i = 0; i < config::setting_count; ++i)
      QTest::newRow(config::settings_table()[i].name) << static_cast<int>(i);
  }
  void every_setting() {
    QFETCH(int, row);
    const SettingInfo& info = config::settings_table()[static_cast<std::size_t>(row)];
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
      const auto meant = config::parse_setting(info.id, text.toStdString());
      QVERIFY2(meant.ok(), qPrintable(text));
      editor->set_value(text);
      const auto given = config::parse_setting(info.id, editor->value().toStdString());
      QVERIFY2(given.ok(), qPrintable(text + " became " + editor->value()));
      QVERIFY2(*given == *meant, qPrintable(text + " became " + editor->value()));
    }
  }
  void the_page_shows_all_of_them() {
    PageFixture fixture;
    fixture.node->settings = testing::core_settings();
    fixture.show<SettingsPage>();
    QTRY_COMPARE(fixture.page->findChildren<SettingRow*>().size(), int(config::setting_count));
    const QStringList groups = {"Limits",  "Schedule",   "Power",      "Training",      "Storage",
                                "Network", "Local HTTP", "Appearance", "Notifications", "Advanced"};
    for (const SettingRow* row : fixture.page->findChildren<SettingRow*>()) {
      const node::SettingEntry& entry = row->entry();
      QVERIFY2(groups.contains(QString::fromStdString(entry.group)), entry.name.c_str());
      QVERIFY2(row->isVisibleTo(fixture.page.get()), entry.name.c_str());
      QVERIFY2(!row->is_changed(), entry.name.c_str());
      QVERIFY2(!entry.title.empty() && !entry.help.empty(), entry.name.c_str());
      QVERIFY2(row->editor()->isEnabled(), entry.name.c_str());
    }
  }
  // Nobody's line carries GiB in a second: a limit of it begins where people type one.
  void rates_begin_in_mib_per_second() {
    PageFixture fixture;
    fixture.node->settings = testing::core_settings();
    fixture.show<SettingsPage>();
    QTRY_COMPARE(fixture.page->findChildren<SettingRow*>().size(), int(config::setting_count));
    const auto unit = [&fixture](const char* row) {
      return fixture.find<SettingRow>(row)->editor()->findChild<QComboBox*>()->currentText();
    };
    QCOMPARE(unit("setting_upload_limit"), QStringLiteral("MiB/s"));
    QCOMPARE(unit("setting_download_limit"), QStringLiteral("MiB/s"));
    QCOMPARE(unit("setting_memory_limit"), QStringLiteral("GiB"));
    auto* number = fixture.find<SettingRow>("setting_upload_limit")->editor()->findChild<QDoubleSpinBox*>();
    number->setFocus();
    number->selectAll();
    QTest::keyClicks(number, QStringLiteral("5"));
    QTest::keyClick(number, Qt::Key_Return);
    QTRY_VERIFY(fixture.commanded("set upload_limit 5MiB"));
  }
  void a_port_is_written_as_in_an_address() {
    PageFixture fixture;
    fixture.node->settings = testing::core_settings();
    fixture.show<SettingsPage>();
    QTRY_COMPARE(fixture.page->findChildren<SettingRow*>().size(), int(config::setting_count));
    const auto number = [&fixture](const char* row) {
      return fixture.find<SettingRow>(row)->editor()->findChild<QDoubleSpinBox*>();
    };
    QCOMPARE(number("setting_http_port")->text(), QStringLiteral("8000"));
    number("setting_cpu_threads")->setMaximum(5000);
    number("setting_cpu_threads")->setValue(4000);
    QCOMPARE(number("setting_cpu_threads")->text(), QLocale().toString(4000));  // an amount
  }
  // As the target update_translations does it: every word of the core's table, neither less nor more, stands
  // in the catalogue that translators are given.
  void translators_are_given_every_word() {
    const QTemporaryDir folder;
    const QString words = folder.filePath("words.cpp"), catalogue = folder.filePath("of_de.ts");
    QCOMPARE(QProcess::execute(QStringLiteral(NS_SETTING_WORDS), {words}), 0);
    QCOMPARE(QProcess::execute(QStringLiteral(NS_LUPDATE), {"-silent", words, "-source-language", "en",
                                                            "-target-language", "de", "-ts", catalogue}),
             0);
    QSet<QString> given, wanted;
    QFile file(catalogue);
    QVERIFY(file.open(QIODevice::ReadOnly));
    QXmlStreamReader xml(&file);
    QString context, source, comment;
    while (!xml.atEnd()) {
      const auto token = xml.readNext();
      if (token == QXmlStreamReader::StartElement) {
        if (xml.name() == u"name") context = xml.readElementText();
        if (xml.name() == u"message") source = comment = QString();
        if (xml.name() == u"source") source = xml.readElementText();
        if (xml.name() == u"comment") comment = xml.readElementText();
      } else if (token == QXmlStreamReader::EndElement && xml.name() == u"message") {
        given << context + " | " + comment + " | " + source;
      }
    }
    QVERIFY(!xml.hasError());
    for (const node::SettingEntry& entry : testing::core_settings()) {
      const QString name = QString::fromStdString(entry.name);
      for (const std::string& text : {entry.title, entry.help})
        wanted << "CoreSettings | " + name + " | " + QString::fromStdString(text);
      for (const QString& choice : setting_choices(entry)) wanted << "CoreChoices |  | " + choice;
    }
    QVERIFY2(given == wanted, qPrintable("not given:\n" + (wanted - given).values().join(u'\n') +
                                         "\nnobody shows:\n" + (given - wanted).values().join(u'\n')));
  }
  // A text without the pseudo-language's brackets can't be translated.
  void every_word_is_translatable() {
    PseudoTranslator language(false, nullptr);  // removes itself at its end
    QCoreApplication::installTranslator(&language);
    PageFixture fixture;
    fixture.node->settings = testing::core_settings();
    fixture.show<SettingsPage>();
    QTRY_COMPARE(fixture.page->findChildren<SettingRow*>().size(), int(config::setting_count));
    for (const SettingRow* row : fixture.page->findChildren<SettingRow*>()) {
      const node::SettingEntry& entry = row->entry();
      QStringList shown;
      for (const QLabel* label : row->findChildren<QLabel*>()) {
        if (label->text().isEmpty()) continue;
        shown << label->text();
        QVERIFY2(label->text().startsWith(u'['), qPrintable(label->text()));
      }
      QVERIFY2(shown.contains(pseudo(QString::fromStdString(entry.title))), entry.name.c_str());
      QVERIFY2(row->editor()->accessibleDescription().startsWith(u'['), entry.name.c_str());
      const QString spoken =
          QAccessible::queryAccessibleInterface(row->editor()->focusProxy())->text(QAccessible::Name);
      QVERIFY2(spoken.contains(u'['), qPrintable(spoken));
      if (qobject_cast<ChoiceEditor*>(row->editor()) == nullptr) continue;
      const auto* box = row->editor()->findChild<QComboBox*>();
      for (int i = 0; i < box->count(); ++i)
        QVERIFY2(box->itemText(i).startsWith(u'['), qPrintable(box->itemText(i)));
      // The command still carries the core's own name.
      QCOMPARE(row->editor()->value().toStdString(), entry.value);
    }
  }
  void a_catalogue_changes_what_is_shown_and_found() {
    OneSetting catalogue;
    QCoreApplication::installTranslator(&catalogue);
    PageFixture fixture;
    fixture.node->settings = testing::core_settings();
    fixture.show<SettingsPage>();
    QTRY_COMPARE(fixture.page->findChildren<SettingRow*>().size(), int(config::setting_count));
    const auto* memory = fixture.find<SettingRow>("setting_memory_limit");
    QCOMPARE(memory->findChildren<QLabel*>().front()->text(), QStringLiteral("Speicher"));
    QCOMPARE(memory->editor()->findChild<QDoubleSpinBox*>()->text(), QStringLiteral("ohne Grenze"));
    auto* battery = fixture.find<SettingRow>("setting_pause_on_battery")->editor()->findChild<QComboBox*>();
    QVERIFY(battery->findText(QStringLiteral("schwach")) >= 0);
    // Missing translations stay English, and English words are found too: documents and command lines have
    // them.
    QCOMPARE(fixture.find<SettingRow>("setting_disk_limit")->findChildren<QLabel*>().front()->text(),
             QStringLiteral("Disk space"));
    auto* search = fixture.find<QLineEdit>("search");
    for (const char* word : {"speicher", "memory"}) {
      search->setText(QString::fromLatin1(word));
      QVERIFY2(memory->isVisible(), word);
      QVERIFY2(!battery->isVisible(), word);
    }
    // By hand: the core is sent its own word.
    search->clear();
    battery->setFocus();
    battery->setCurrentIndex(battery->findText(QStringLiteral("schwach")));
    Q_EMIT battery->activated(battery->currentIndex());
    QTRY_VERIFY(fixture.commanded("set pause_on_battery low"));
  }
};

NS_UI_TEST(TestCoreSettings)
#include "test_core_settings.moc"
