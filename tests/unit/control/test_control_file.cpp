// control.json: found by the data directory's path, believed only when it is ours, and recognised when the
// core that wrote it is gone.
#include <QFile>
#include <QProcess>
#include <QTemporaryDir>
#include <QtTest>

#include "core/control/control_file.h"
#include "core/platform/file/private_directory.h"
#include "core/storage/file_env.h"
#include "tests/support/test_main.h"

using namespace neuroshard;           // NOLINT
using namespace neuroshard::control;  // NOLINT

class TestControlFile : public QObject {
  Q_OBJECT
 private Q_SLOTS:
  void init() { folder_ = std::make_unique<QTemporaryDir>(); }
  void one_name_for_one_directory();
  void written_and_read();
  void stale_files_are_recognised();
  void files_of_others_are_not_believed();
  void any_bytes_are_safe();
  void runtime_directory_must_be_private();

 private:
  QString path(const QString& name) const { return folder_->filePath(name); }
  std::string runtime() const { return folder_->path().toStdString(); }
  ControlFile sample() const {
    ControlFile file;
    file.process = platform::own_process();
    file.started = WallTime(std::chrono::milliseconds(1'700'000'000'000));
    file.address = "127.0.0.1:4711";
    file.certificate = "-----BEGIN CERTIFICATE-----\n";
    file.cookie = std::string(64, 'c');
    file.data_directory = "/data";
    return file;
  }
  QString write(const ControlFile& file) const {
    const std::string where = control_file_path(runtime(), file.data_directory);
    if (!storage::write_file_atomic(*files_, where, as_bytes(format_control_file(file))).ok())
      qFatal("write");
    return QString::fromStdString(where);
  }

  std::unique_ptr<QTemporaryDir> folder_;
  std::unique_ptr<storage::FileEnv> files_ = storage::make_posix_file_env();
};

void TestControlFile::one_name_for_one_directory() {
  QVERIFY(QDir(folder_->path()).mkpath("a/b"));
  QVERIFY(QFile::link(path("a/b"), path("link")));
  const std::string name = control_file_path("/run", path("a/b").toStdString());
  for (const char* other : {"a/b/", "a/./b", "a/../a/b", "link", "link/"})
    QCOMPARE(control_file_path("/run", path(other).toStdString()), name);
  QVERIFY(control_file_path("/run", path("a").toStdString()) != name);
}

void TestControlFile::written_and_read() {
  write(sample());
  const auto found = find_core(runtime(), "/data");
  QVERIFY2(found.ok(), found.ok() ? "" : found.error().message.c_str());
  QVERIFY(found->process == platform::own_process());
  QCOMPARE(found->address, std::string("127.0.0.1:4711"));
  QCOMPARE(found->cookie, std::string(64, 'c'));
  QCOMPARE(to_unix_ms(found->started), std::int64_t{1'700'000'000'000});
  QCOMPARE(find_core(runtime(), "/elsewhere").error().code, ErrorCode::NotFound);
}

void TestControlFile::stale_files_are_recognised() {
  ControlFile file = sample();
  file.process.start += 1;  // the number lives on, the process is another one
  write(file);
  QCOMPARE(find_core(runtime(), "/data").error().code, ErrorCode::Unavailable);
  QProcess child;
  child.start("/bin/cat", {});
  QVERIFY(child.waitForStarted());
  const auto process = platform::find_process(child.processId());
  QVERIFY(process.has_value());
  file.process = *process;
  write(file);
  QVERIFY(find_core(runtime(), "/data").ok());
  child.kill();
  child.waitForFinished();
  const auto stale = find_core(runtime(), "/data");
  QCOMPARE(stale.error().code, ErrorCode::Unavailable);
  QVERIFY(stale.error().message.find(std::to_string(process->pid)) != std::string::npos);
}

void TestControlFile::files_of_others_are_not_believed() {
  const QString where = write(sample());
  for (const auto open : {QFile::ReadGroup, QFile::ReadOther, QFile::WriteOther}) {
    QVERIFY(QFile::setPermissions(where, QFile::ReadOwner | QFile::WriteOwner | open));
    QCOMPARE(find_core(runtime(), "/data").error().code, ErrorCode::Denied);
  }
  QVERIFY(QFile::setPermissions(where, QFile::ReadOwner | QFile::WriteOwner));
  QVERIFY(find_core(runtime(), "/data").ok());
  // A link that somebody put there, even to a good file.
  QVERIFY(QFile::rename(where, path("elsewhere.json")) && QFile::link(path("elsewhere.json"), where));
  QCOMPARE(find_core(runtime(), "/data").error().code, ErrorCode::Denied);
}

void TestControlFile::any_bytes_are_safe() {
  const std::string good = format_control_file(sample());
  QVERIFY(parse_control_file(good).ok());
  for (std::size_t length = 0; length + 2 < good.size(); ++length)
    QCOMPARE(parse_control_file(good.substr(0, length)).error().code, ErrorCode::Corrupt);
  for (const char* text :
       {"[]", "{}", "null", "{\"pid\":-1,\"process_start\":1}", "{\"pid\":1e30}",
        "{\"pid\":\"7\",\"process_start\":1}", "{\"pid\":99999999999999,\"process_start\":1}"})
    QCOMPARE(parse_control_file(text).error().code, ErrorCode::Corrupt);
  const std::string where = control_file_path(runtime(), "/data");
  QVERIFY(storage::write_file_atomic(*files_, where, as_bytes(std::string(max_control_file_bytes + 1, ' ')))
              .ok());
  QCOMPARE(find_core(runtime(), "/data").error().code, ErrorCode::Exhausted);
}

void TestControlFile::runtime_directory_must_be_private() {
  const std::string fresh = path("deep/run").toStdString();
  QVERIFY(platform::make_private_directory(fresh).ok());
  QVERIFY(platform::make_private_directory(fresh).ok());  // its own again
  QVERIFY(QFile::setPermissions(path("deep/run"),
                                QFile::ReadOwner | QFile::WriteOwner | QFile::ExeOwner | QFile::ExeOther));
  QCOMPARE(platform::make_private_directory(fresh).error().code, ErrorCode::Denied);
  QVERIFY(QFile::link(path("deep"), path("link")));
  QCOMPARE(platform::make_private_directory(path("link").toStdString()).error().code, ErrorCode::Denied);
}

NS_TEST(TestControlFile)
#include "test_control_file.moc"
