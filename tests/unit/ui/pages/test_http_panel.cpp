// The local HTTP server in the settings: what it does, its key, and examples that can be pasted as they are.
#include <QClipboard>
#include <QComboBox>
#include <QLineEdit>
#include <QPlainTextEdit>
#include <QTemporaryDir>

#include "tests/support/core_settings.h"
#include "tests/support/test_main.h"
#include "tests/unit/ui/pages/page_fixture.h"
#include "ui/pages/setting_row.h"
#include "ui/pages/settings_page.h"

using namespace neuroshard;      // NOLINT
using namespace neuroshard::ui;  // NOLINT

class TestHttpPanel : public QObject {
  Q_OBJECT
 private Q_SLOTS:
  void init();
  void cleanup() { fixture_.reset(); }
  void the_state_follows_the_server();
  void a_taken_port_is_shown_as_trouble();
  void the_key_is_hidden_until_it_is_shown();
  void the_key_of_another_core_is_another();
  void the_key_is_copied_without_being_shown();
  void a_new_key_is_made_after_a_question();
  void a_removed_key_is_gone();
  void a_refusal_is_shown();
  void the_examples_name_address_model_and_key_file();
  void a_base_model_is_called_one();
  void a_search_finds_it();

 private:
  QString text(const char* name) const { return fixture_->find<QLabel>(name)->text(); }
  QString key() const { return fixture_->find<QLineEdit>("http_key")->text(); }
  QString example() const { return fixture_->find<QPlainTextEdit>("http_example")->toPlainText(); }
  void listen(const std::string& address) {
    fixture_->publish([&](node::Snapshot& view) { view.http.address = address; });
  }
  std::unique_ptr<PageFixture> fixture_;
};

void TestHttpPanel::init() {
  fixture_ = std::make_unique<PageFixture>();
  fixture_->node->settings = testing::core_settings();
  fixture_->node->publish([](node::Snapshot& view) { view.program.network = "solo"; });
  fixture_->show<SettingsPage>();
  QTRY_VERIFY(fixture_->page->findChild<QWidget*>("http_panel") != nullptr);
  QTRY_VERIFY(fixture_->find<QWidget>("http_panel")->isVisible());
  fixture_->page->refresh(*fixture_->node->snapshot());
}

void TestHttpPanel::the_state_follows_the_server() {
  QCOMPARE(text("http_state"), QStringLiteral("Off"));
  QVERIFY(!fixture_->find<QPushButton>("http_copy_address")->isVisible());
  listen("http://127.0.0.1:8123");
  QVERIFY(text("http_state").contains("http://127.0.0.1:8123"));
  fixture_->click("http_copy_address");
  QCOMPARE(QGuiApplication::clipboard()->text(), QStringLiteral("http://127.0.0.1:8123"));
}

void TestHttpPanel::a_taken_port_is_shown_as_trouble() {
  QVERIFY(!fixture_->find<QLabel>("http_trouble")->isVisible());
  fixture_->publish([](node::Snapshot& view) { view.http.trouble = "the port 8000 can't be used"; });
  QVERIFY(fixture_->find<QLabel>("http_trouble")->isVisible());
  QCOMPARE(text("http_trouble"), QStringLiteral("the port 8000 can't be used"));
  QVERIFY(!text("http_state").startsWith("Off"));
}

void TestHttpPanel::the_key_is_hidden_until_it_is_shown() {
  QCOMPARE(key(), QString());
  fixture_->click("http_show_key");
  QTRY_COMPARE(key(), QStringLiteral("ns-0123456789abcdef"));
  fixture_->click("http_show_key");
  QCOMPARE(key(), QString());
  fixture_->click("http_show_key");
  QTRY_COMPARE(key(), QStringLiteral("ns-0123456789abcdef"));
  fixture_->page->hidden();  // the person went to another page
  QCOMPARE(key(), QString());
}

void TestHttpPanel::the_key_of_another_core_is_another() {
  fixture_->page->shown();
  QTRY_VERIFY(example().contains("/srv/neuroshard/http.key"));
  fixture_->click("http_show_key");
  QTRY_COMPARE(key(), QStringLiteral("ns-0123456789abcdef"));
  fixture_->click("http_remove_key");
  QTRY_VERIFY(fixture_->question() != nullptr);
  auto other = std::make_shared<testing::FakeNode>();
  other->settings = fixture_->node->settings;
  other->http_key_now.file = "/srv/other/http.key";
  fixture_->replace_core(other, [](node::Snapshot& view) { view.program.network = "solo"; });
  QTRY_VERIFY(fixture_->question() == nullptr);  // it was about that core's key
  QCOMPARE(key(), QString());
  QVERIFY(!example().contains("/srv/neuroshard/http.key"));
  QTRY_VERIFY(example().contains("/srv/other/http.key"));
}

void TestHttpPanel::the_key_is_copied_without_being_shown() {
  fixture_->click("http_copy_key");
  QTRY_COMPARE(QGuiApplication::clipboard()->text(), QStringLiteral("ns-0123456789abcdef"));
  QCOMPARE(key(), QString());
}

void TestHttpPanel::a_new_key_is_made_after_a_question() {
  fixture_->click("http_new_key");
  QTRY_VERIFY(fixture_->question() != nullptr);
  QCOMPARE(fixture_->node->http_key_now.key, std::string("ns-0123456789abcdef"));
  fixture_->agree();
  QTRY_COMPARE(key(), QStringLiteral("ns-fedcba9876543210"));
}

void TestHttpPanel::a_removed_key_is_gone() {
  fixture_->click("http_remove_key");
  QTRY_VERIFY(fixture_->question() != nullptr);
  fixture_->agree();
  QTRY_VERIFY(text("http_key_note").startsWith("Removed"));
  QCOMPARE(key(), QString());
  fixture_->click("http_show_key");
  QTRY_VERIFY(text("http_key_note").contains("no key"));
}

void TestHttpPanel::a_refusal_is_shown() {
  fixture_->node->fail_queries(make_error(ErrorCode::Denied, "switch it off first"));
  fixture_->click("http_remove_key");
  QTRY_VERIFY(fixture_->question() != nullptr);
  fixture_->agree();
  QTRY_VERIFY(fixture_->find<QLabel>("http_key_note")->isVisible());
  QCOMPARE(text("http_key_note"), QStringLiteral("switch it off first"));
}

// The first example is run as it stands by a shell, with a curl that prints its arguments.
void TestHttpPanel::the_examples_name_address_model_and_key_file() {
  QTemporaryDir folder;
  QFile file(folder.filePath("http.key")), curl(folder.filePath("curl"));
  QVERIFY(file.open(QIODevice::WriteOnly) && file.write("ns-secret\nrest\n") > 0);
  QVERIFY(curl.open(QIODevice::WriteOnly) && curl.write("#!/bin/sh\nprintf '%s|' \"$@\"\n") > 0);
  file.close();
  curl.close();
  QVERIFY(curl.setPermissions(QFile::ReadOwner | QFile::WriteOwner | QFile::ExeOwner));
  fixture_->node->http_key_now.file = file.fileName().toStdString();
  listen("http://127.0.0.1:8123");
  fixture_->page->shown();
  QTRY_VERIFY(example().contains(file.fileName()));
  QProcess shell;
  shell.start("/bin/sh", {"-c", "PATH=" + folder.path() + ":$PATH\n" + example()});
  QVERIFY(shell.waitForFinished());
  const QStringList words = QString::fromUtf8(shell.readAllStandardOutput()).split('|');
  QVERIFY2(words.contains("Authorization: Bearer ns-secret"), qPrintable(words.join(' ')));
  QVERIFY(words.contains("http://127.0.0.1:8123/v1/completions"));
  QVERIFY(words.filter("neuroshard-solo").size() == 1);
  auto* kind = fixture_->find<QComboBox>("http_example_kind");
  for (int i = 1; i < kind->count(); ++i) {
    kind->setCurrentIndex(i);
    for (const QString& part :
         {QStringLiteral("http://127.0.0.1:8123/v1"), QStringLiteral("neuroshard-solo"), file.fileName()})
      QVERIFY2(example().contains(part), qPrintable(example()));
  }
  fixture_->click("http_copy_example");
  QCOMPARE(QGuiApplication::clipboard()->text(), example());
}

void TestHttpPanel::a_base_model_is_called_one() {
  QString texts;
  for (const QLabel* label : fixture_->find<QWidget>("http_panel")->findChildren<QLabel*>())
    texts += label->text();
  QVERIFY(texts.contains("base model"));
}

void TestHttpPanel::a_search_finds_it() {
  auto* search = fixture_->find<QLineEdit>("search");
  search->setText(QStringLiteral("base model"));
  QVERIFY(fixture_->find<QWidget>("http_panel")->isVisible());
  QVERIFY(!fixture_->find<SettingRow>("setting_http")->isVisible());
  search->setText(QStringLiteral("micro-batch"));
  QVERIFY(!fixture_->find<QWidget>("http_panel")->isVisible());
}

NS_UI_TEST(TestHttpPanel)
#include "test_http_panel.moc"
