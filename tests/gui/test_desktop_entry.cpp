// The app's registration with the desktop: its entry, and what `cmake --install` puts where, in a folder of
// its own.
#include <QDir>
#include <QFile>
#include <QProcess>
#include <QTemporaryDir>
#include <QtTest>

#include "tests/gui/support/desktop_fixture.h"
#include "tests/support/test_main.h"

using namespace neuroshard::test;  // NOLINT

class TestDesktopEntry : public QObject {
  Q_OBJECT
 private Q_SLOTS:
  void the_entry_is_valid();
  void it_opens_links();
  void installed_programs_find_each_other();
};

namespace {

QString entry_file() {
  return qEnvironmentVariable("NS_SOURCE_DIR") + "/resources/desktop/neuroshard.desktop";
}

}  // namespace

void TestDesktopEntry::the_entry_is_valid() {
  const QString missing = missing_programs({"desktop-file-validate"});
  QVERIFY2(missing.isEmpty(), qPrintable(missing));
  QProcess tool;
  tool.setProcessChannelMode(QProcess::MergedChannels);
  tool.start("desktop-file-validate", {entry_file()});
  QVERIFY(tool.waitForFinished(generous_ms));
  QVERIFY2(tool.exitCode() == 0, tool.readAll().constData());
}

void TestDesktopEntry::it_opens_links() {
  QFile file(entry_file());
  QVERIFY(file.open(QIODevice::ReadOnly));
  const QByteArray text = file.readAll();
  QVERIFY(text.contains("\nMimeType=x-scheme-handler/neuroshard;\n"));
  QVERIFY(text.contains("\nExec=neuroshard %u\n"));
}

void TestDesktopEntry::installed_programs_find_each_other() {
  const QTemporaryDir folder;
  QProcess install;
  install.setProcessChannelMode(QProcess::MergedChannels);
  const QString build = QDir(qEnvironmentVariable("NS_BIN_DIR") + "/..").absolutePath();
  install.start("cmake", {"--install", build, "--prefix", folder.path()});
  QVERIFY(install.waitForFinished(generous_ms));
  QVERIFY2(install.exitCode() == 0, install.readAll().right(2000).constData());
  for (const char* name :
       {"bin/neuroshard", "bin/neuroshardd", "lib/neuroshard/network.so",
        "share/applications/neuroshard.desktop", "share/icons/hicolor/scalable/apps/neuroshard.svg"})
    QVERIFY2(QFile::exists(folder.filePath(name)), name);
  QProcess app;
  app.start(folder.filePath("bin/neuroshard"), {"--version"});
  QVERIFY(app.waitForFinished(generous_ms));
  QCOMPARE(app.exitCode(), 0);
  QVERIFY(app.readAllStandardOutput().startsWith("neuroshard "));
  QProcess wrong;
  wrong.start(folder.filePath("bin/neuroshard"), {"--fast"});
  QVERIFY(wrong.waitForFinished(generous_ms));
  QCOMPARE(wrong.exitCode(), 64);
  QProcess quit;
  QProcessEnvironment environment = QProcessEnvironment::systemEnvironment();
  environment.insert("QT_QPA_PLATFORM", "offscreen");
  for (const char* name : {"XDG_RUNTIME_DIR", "XDG_CONFIG_HOME"}) environment.insert(name, folder.path());
  quit.setProcessEnvironment(environment);
  quit.start(folder.filePath("bin/neuroshard"), {"--quit"});
  QVERIFY(quit.waitForFinished(generous_ms));
  QCOMPARE(quit.exitCode(), 0);
  QVERIFY(quit.readAllStandardOutput().contains("no app runs"));
}

NS_TEST(TestDesktopEntry)
#include "test_desktop_entry.moc"
