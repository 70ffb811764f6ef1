// When a program counts as replaced by an upgrade.
#include <QDir>
#include <QFile>
#include <QTemporaryDir>
#include <QtTest>

#include "core/platform/process/program_file.h"
#include "tests/support/test_main.h"

using neuroshard::platform::ProgramFile;

class TestProgramFile : public QObject {
  Q_OBJECT
 private Q_SLOTS:
  void a_program_that_stays_is_not_replaced();
  void another_file_is_when_it_was_seen_twice();
  void a_file_that_grows_is_waited_for();
  void a_program_that_does_not_start_is_waited_for();
  void a_removed_program_is_not_replaced();
  void it_knows_its_own();
  void the_arguments_are_those_of_this_process();

 private:
  // As installers do it: a file beside, renamed over the old one. `exit_code` is what it answers to --version.
  void put(const char* exit_code) {
    const QString path = folder_.filePath("program");
    QFile file(path + ".new");
    QVERIFY(file.open(QIODevice::WriteOnly | QIODevice::Truncate));
    file.write(QByteArray("#!/bin/sh\n[ \"$1\" = --version ] && exit ") + exit_code + "\nexit 9\n");
    file.setPermissions(QFile::ReadOwner | QFile::WriteOwner | QFile::ExeOwner);
    file.close();
    QFile::remove(path);
    QVERIFY(QFile::rename(file.fileName(), path));
  }
  std::string path() const { return folder_.filePath("program").toStdString(); }

  QTemporaryDir folder_;
};

void TestProgramFile::a_program_that_stays_is_not_replaced() {
  put("0");
  ProgramFile program(path());
  for (int look = 0; look < 3; ++look) QVERIFY(!program.replaced());
}

void TestProgramFile::another_file_is_when_it_was_seen_twice() {
  put("0");
  ProgramFile program(path());
  put("0");
  QVERIFY(!program.replaced());
  QVERIFY(program.replaced());
}

void TestProgramFile::a_file_that_grows_is_waited_for() {
  put("0");
  ProgramFile program(path());
  put("0");
  QVERIFY(!program.replaced());
  QFile file(folder_.filePath("program"));
  QVERIFY(file.open(QIODevice::Append));
  file.write("# more\n");
  file.close();
  QVERIFY(!program.replaced());
  QVERIFY(program.replaced());
}

void TestProgramFile::a_program_that_does_not_start_is_waited_for() {
  put("0");
  ProgramFile program(path());
  put("127");  // a library is not there yet
  QVERIFY(!program.replaced());
  QVERIFY(!program.replaced());
  put("0");
  QVERIFY(!program.replaced());
  QVERIFY(program.replaced());
}

void TestProgramFile::a_removed_program_is_not_replaced() {
  put("0");
  ProgramFile program(path());
  QVERIFY(QFile::remove(folder_.filePath("program")));
  for (int look = 0; look < 3; ++look) QVERIFY(!program.replaced());
  put("0");  // installed again
  QVERIFY(!program.replaced());
  QVERIFY(program.replaced());
}

void TestProgramFile::it_knows_its_own() {
  const auto own = ProgramFile::of_this_process();
  QVERIFY(own.ok());
  QCOMPARE(QString::fromStdString(own->path()), QCoreApplication::applicationFilePath());
}

void TestProgramFile::the_arguments_are_those_of_this_process() {
  const std::vector<std::string> arguments = neuroshard::platform::own_arguments();
  QStringList words;
  for (const std::string& argument : arguments) words << QString::fromLocal8Bit(argument.c_str());
  QVERIFY(words.size() > 1);
  QCOMPARE(words.takeAt(1), QString("TestProgramFile"));  // which the main function of the tests takes away
  QCOMPARE(words, QCoreApplication::arguments());
}

NS_TEST(TestProgramFile)
#include "test_program_file.moc"
