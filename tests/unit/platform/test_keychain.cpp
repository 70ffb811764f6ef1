// The keychain contract on the fake one, and on the real Secret Service where gnome-keyring is installed: in
// a D-Bus session of its own, with its files in a temporary directory.
#include <dlfcn.h>

#include <QProcess>
#include <QStandardPaths>
#include <QTemporaryDir>
#include <QtTest>

#include "core/platform/secret/keychain.h"
#include "tests/support/test_main.h"

using namespace neuroshard;
using namespace neuroshard::platform;

class TestKeychain : public QObject {
  Q_OBJECT
 private Q_SLOTS:
  void memory_keychain_keeps_the_contract();
  void without_a_session_it_is_unavailable();
  void desktop_keychain_keeps_the_contract();
  void inside_a_session();
};

namespace {

constexpr const char* session_variable = "NS_TEST_KEYCHAIN_SESSION";

void check_contract(Keychain& keychain) {
  const Bytes key(32, 0xa5);
  const Bytes other = {0, 1, 255};
  QCOMPARE(keychain.load("item-1").error().code, ErrorCode::NotFound);
  QVERIFY(keychain.remove("item-1").ok());
  auto stored = keychain.store("item-1", "NeuroShard wallet", key);
  QVERIFY2(stored.ok(), stored.ok() ? "" : stored.error().message.c_str());
  QVERIFY(keychain.store("item-2", "NeuroShard wallet", other).ok());
  QVERIFY(keychain.load("item-1").value() == key);
  QVERIFY(keychain.load("item-2").value() == other);
  QVERIFY(keychain.store("item-1", "NeuroShard wallet", other).ok());
  QVERIFY(keychain.load("item-1").value() == other);
  QVERIFY(keychain.remove("item-1").ok());
  QCOMPARE(keychain.load("item-1").error().code, ErrorCode::NotFound);
  QVERIFY(keychain.load("item-2").value() == other);
}

QProcessEnvironment environment_without_session(const QString& home) {
  QProcessEnvironment environment = QProcessEnvironment::systemEnvironment();
  for (const char* name : {"DBUS_SESSION_BUS_ADDRESS", "DISPLAY", "WAYLAND_DISPLAY"})
    environment.remove(name);
  environment.insert("HOME", home);
  environment.insert("XDG_DATA_HOME", home + "/data");
  environment.insert("XDG_RUNTIME_DIR", home);
  environment.insert("XDG_CACHE_HOME", home + "/cache");
  environment.insert("XDG_CONFIG_HOME", home + "/config");
  return environment;
}

QByteArray run_self(QProcess& process, const QString& program, const QStringList& arguments) {
  process.setProcessChannelMode(QProcess::MergedChannels);
  process.start(program, arguments);
  if (!process.waitForFinished(30'000)) process.kill();
  return process.readAll();
}

}  // namespace

void TestKeychain::memory_keychain_keeps_the_contract() {
  MemoryKeychain keychain;
  check_contract(keychain);
}

void TestKeychain::without_a_session_it_is_unavailable() {
  const QTemporaryDir home;
  QProcess process;
  QProcessEnvironment environment = environment_without_session(home.path());
  environment.insert(session_variable, "none");
  process.setProcessEnvironment(environment);
  const QByteArray output =
      run_self(process, QCoreApplication::applicationFilePath(), {"TestKeychain", "inside_a_session"});
  QVERIFY2(process.exitStatus() == QProcess::NormalExit && process.exitCode() == 0, output.constData());
}

void TestKeychain::desktop_keychain_keeps_the_contract() {
  if (QStandardPaths::findExecutable("dbus-run-session").isEmpty() ||
      QStandardPaths::findExecutable("gnome-keyring-daemon").isEmpty()) {
    QSKIP("gnome-keyring or dbus-run-session is not installed: the real keychain is not tested here");
  }
  const QTemporaryDir home;
  QProcess process;
  QProcessEnvironment environment = environment_without_session(home.path());
  environment.insert(session_variable, "real");
  process.setProcessEnvironment(environment);
  // --unlock creates the login keyring with the password from standard input, so nothing asks.
  const QString script =
      QString(
          "printf password | gnome-keyring-daemon --unlock --components=secrets >/dev/null && "
          "exec '%1' TestKeychain inside_a_session")
          .arg(QCoreApplication::applicationFilePath());
  const QByteArray output = run_self(process, "dbus-run-session", {"--", "sh", "-c", script});
  QVERIFY2(process.exitStatus() == QProcess::NormalExit && process.exitCode() == 0, output.constData());
}

// Runs in the processes that the two tests above start.
void TestKeychain::inside_a_session() {
  const QByteArray session = qgetenv(session_variable);
  if (session.isEmpty()) return;
  QVERIFY2(dlopen("libsecret-1.so.0", RTLD_NOLOAD | RTLD_LAZY) == nullptr,
           "libsecret was loaded before its first use");
  const auto keychain = make_desktop_keychain();
  if (session == "none") {
    const auto key = keychain->load("item");
    QVERIFY(!key.ok());
    QCOMPARE(key.error().code, ErrorCode::Unavailable);
    QVERIFY(key.error().message.find("passphrase or none") != std::string::npos);
    QCOMPARE(keychain->store("item", "label", Bytes(3)).error().code, ErrorCode::Unavailable);
    return;
  }
  check_contract(*keychain);
}

NS_TEST(TestKeychain)
#include "test_keychain.moc"
