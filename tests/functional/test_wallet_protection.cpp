// neuroshardd wallet protect | backup: passphrases, the keychain, encrypted backups and the words shown
// again, as a person and a script meet them.
#include <QFileInfo>
#include <QTemporaryDir>
#include <QTest>

#include "tests/support/test_main.h"
#include "tests/support/wallet_run.h"

using namespace neuroshard::test;  // NOLINT

class TestWalletProtection : public QObject {
  Q_OBJECT
 private Q_SLOTS:
  void initTestCase();
  void passphrase_protects();
  void unprotected_file_is_overwritten_data();
  void unprotected_file_is_overwritten();
  void protection_changes_only_with_the_right_passphrase();
  void passphrase_files_are_checked();
  void keychain_that_is_not_there_changes_nothing();
  void backup_file_restores();
  void damaged_backup_restores_nothing();
  void words_are_shown_again();

 private:
  QString path(const QString& name) const { return folder_.filePath(name); }
  QString write(const QString& name, const QByteArray& content) const;

  QTemporaryDir folder_;
};

QString TestWalletProtection::write(const QString& name, const QByteArray& content) const {
  QFile file(path(name));
  if (!file.open(QIODevice::WriteOnly) || file.write(content) != content.size()) return {};
  return file.fileName();
}

void TestWalletProtection::initTestCase() {
  QVERIFY(folder_.isValid());
  QVERIFY2(QFileInfo(node_program()).isExecutable(), qPrintable(node_program()));
  // The programs inherit it: what is private then, the program itself made private.
  ::umask(0);
}

void TestWalletProtection::passphrase_protects() {
  const QString directory = path("protected");
  const QString right = write("right.pass", "gr\xc3\xbc\xc3\x9f dich\n");
  const QString wrong = write("wrong.pass", "gruss dich\n");
  QVERIFY(make_fixed(directory));
  const ProcessResult done =
      wallet({"protect", "--protection", "passphrase", "--passphrase-file", right, "--json"}, directory);
  QVERIFY2(done.ok(), done.text().constData());
  QVERIFY(json_lines(done.out).value(0)["protected"].toBool());
  QVERIFY(!any_in(secrets_of(fixed_words, true), keystore_in(directory)));
  QCOMPARE(mode_of(directory + "/wallet.keystore"), 0600);
  // Showing needs no passphrase; it is the same wallet.
  const QJsonObject object = shown(directory);
  QCOMPARE(object["protection"].toString(), QString("passphrase"));
  QCOMPARE(object["wallet_id"].toString(), QString(fixed_id));
  QVERIFY(!wallet({"show"}, directory).out.contains("not protected"));
  // Its words do.
  const ProcessResult denied = wallet({"backup", "--words", "--passphrase-file", wrong}, directory);
  QCOMPARE(denied.exit_code, 77);
  QVERIFY2(denied.err.contains("wrong passphrase"), denied.text().constData());
  QVERIFY(!any_in(secrets_of(fixed_words, true), denied.out + denied.err));
  QVERIFY(!denied.err.contains("dich"));
  const ProcessResult unasked = wallet({"backup", "--words"}, directory);
  QCOMPARE(unasked.exit_code, 77);
  QVERIFY2(unasked.err.contains("--passphrase-file"), unasked.text().constData());
  const ProcessResult named =
      wallet({"backup", "--words"}, directory, {}, {"NEUROSHARD_PASSPHRASE_FILE=" + right});
  QVERIFY2(named.ok(), named.text().constData());
  QCOMPARE(phrases_in(named.err), QList<QByteArray>{fixed_words});
}

void TestWalletProtection::unprotected_file_is_overwritten_data() {
  QTest::addColumn<QStringList>("command");
  QTest::newRow("protect") << QStringList{"protect", "--protection", "passphrase"};
  QTest::newRow("restore") << QStringList{"restore", "--replace", "--protection", "passphrase"};
}

// Somebody who still has the former file open reads zeros.
void TestWalletProtection::unprotected_file_is_overwritten() {
  QFETCH(QStringList, command);
  const QString directory = path(QString("overwritten-") + QTest::currentDataTag());
  const QString passphrase = write("overwritten.pass", "a passphrase");
  QVERIFY(make_fixed(directory));
  QFile former(directory + "/wallet.keystore");
  QVERIFY(former.open(QIODevice::ReadOnly | QIODevice::Unbuffered));
  QVERIFY(any_in(secrets_of(fixed_words, true), former.readAll()));
  const ProcessResult done =
      wallet(command + QStringList{"--passphrase-file", passphrase}, directory, fixed_words);
  QVERIFY2(done.ok(), done.text().constData());
  QVERIFY(former.seek(0));
  QCOMPARE(former.readAll(), QByteArray(former.size(), '\0'));
  QVERIFY(former.size() > 0);
  QVERIFY2(done.err.contains("SSD") && done.err.contains("new wallet"), done.text().constData());
  QCOMPARE(QDir(directory).entryList({"wallet.keystore*"}, QDir::Files), QStringList{"wallet.keystore"});
  QCOMPARE(shown(directory)["wallet_id"].toString(), QString(fixed_id));
  // A file that was protected is not worth a word.
  const ProcessResult again =
      wallet({"protect", "--protection", "none", "--passphrase-file", passphrase}, directory);
  QVERIFY2(again.ok() && !again.err.contains("SSD"), again.text().constData());
}

void TestWalletProtection::protection_changes_only_with_the_right_passphrase() {
  const QString directory = path("change");
  const QString first = write("first.pass", "first");
  const QString second = write("second.pass", "second\r\n");
  QVERIFY(wallet({"restore", "--passphrase-file", first}, directory, fixed_words).ok());
  const QByteArray before = keystore_in(directory);
  const QStringList change{"protect", "--protection", "passphrase", "--passphrase-file", second};
  QCOMPARE(wallet(change + QStringList{"--old-passphrase-file", second}, directory).exit_code, 77);
  const QStringList open{"protect", "--protection", "none", "--passphrase-file"};
  QCOMPARE(wallet(open + QStringList{second}, directory).exit_code, 77);
  QCOMPARE(keystore_in(directory), before);
  const QJsonObject object = shown(directory);
  QVERIFY(wallet(change + QStringList{"--old-passphrase-file", first}, directory).ok());
  QCOMPARE(wallet(open + QStringList{first}, directory).exit_code, 77);
  QVERIFY(wallet(open + QStringList{second}, directory).ok());
  const QJsonObject after = shown(directory);
  QCOMPARE(after["protected"].toBool(true), false);
  for (const char* key : {"wallet_id", "public_key", "created", "has_words"})
    QCOMPARE(after[key], object[key]);
}

void TestWalletProtection::passphrase_files_are_checked() {
  const QString directory = path("files-checked");
  const auto create = [&](const QString& file) {
    return wallet({"create", "--passphrase-file", file}, directory);
  };
  QCOMPARE(create(path("no-such-file")).exit_code, 66);
  QCOMPARE(create(write("empty.pass", "")).exit_code, 64);
  QCOMPARE(create(write("newline.pass", "\n")).exit_code, 64);
  QCOMPARE(create(write("endless.pass", QByteArray(1025, 'x'))).exit_code, 64);
  QCOMPARE(create(write("huge.pass", QByteArray(100'000, 'x'))).exit_code, 64);
  const ProcessResult unnamed = wallet({"create", "--protection", "passphrase"}, directory);
  QCOMPARE(unnamed.exit_code, 77);
  QVERIFY(phrases_in(unnamed.err).isEmpty());
  // No wallet whose passphrase nobody knows.
  QVERIFY(!QFileInfo::exists(directory + "/wallet.keystore"));
}

void TestWalletProtection::keychain_that_is_not_there_changes_nothing() {
  const QString directory = path("keychain");
  const ProcessResult made = wallet({"create", "--protection", "keychain"}, directory, {}, {no_desktop});
  QCOMPARE(made.exit_code, 69);
  QVERIFY(phrases_in(made.err).isEmpty());
  QVERIFY(!QFileInfo::exists(directory + "/wallet.keystore"));
  QVERIFY(make_fixed(directory));
  const QByteArray before = keystore_in(directory);
  QCOMPARE(wallet({"protect", "--protection", "keychain"}, directory, {}, {no_desktop}).exit_code, 69);
  QCOMPARE(keystore_in(directory), before);
}

void TestWalletProtection::backup_file_restores() {
  const QString directory = path("backup");
  const QString backup = path("wallet.backup");
  const QString right = write("backup.pass", "of the backup\n");
  const QString wrong = write("not-backup.pass", "of something else\n");
  QVERIFY(make_fixed(directory));
  const QStringList make{"backup", "--file", backup, "--backup-passphrase-file", right, "--json"};
  const ProcessResult made = wallet(make, directory);
  QVERIFY2(made.ok(), made.text().constData());
  const QJsonObject object = json_lines(made.out).value(0);
  QCOMPARE(object["wallet_id"].toString(), QString(fixed_id));
  QVERIFY(object["verified"].toBool());
  const QByteArray content = content_of(backup);
  QVERIFY(!content.isEmpty());
  QVERIFY(!any_in(secrets_of(fixed_words, true), content + made.out + made.err));
  QCOMPARE(mode_of(backup), 0600);
  // An older backup is never written over.
  QCOMPARE(wallet(make, directory).exit_code, 73);
  QCOMPARE(content_of(backup), content);

  const QString other = path("backup-back");
  const QStringList restore{"restore", "--from", backup, "--json", "--backup-passphrase-file"};
  QCOMPARE(wallet(restore + QStringList{wrong}, other).exit_code, 77);
  QVERIFY(!QFileInfo::exists(other + "/wallet.keystore"));
  QVERIFY(wallet(restore + QStringList{right}, other).ok());
  const QJsonObject back = shown(other);
  QCOMPARE(back["public_key"].toString(), shown(directory)["public_key"].toString());
  QVERIFY(back["has_words"].toBool());
  QVERIFY(!back["protected"].toBool(true));  // --passphrase-file was not given
  QCOMPARE(content_of(backup), content);
}

void TestWalletProtection::damaged_backup_restores_nothing() {
  const QByteArray good = content_of(qEnvironmentVariable("NS_SOURCE_DIR") +
                                     "/tests/golden/formats/keystore-v1/passphrase-words.keystore");
  const QString pass = write("damaged.pass", "correct horse battery staple \xe2\x80\x94 \xc3\xbc");
  const QString directory = path("damaged");
  const auto restore = [&](const QByteArray& content) {
    const QString file = write("damaged.backup", content);
    return wallet({"restore", "--from", file, "--backup-passphrase-file", pass}, directory).exit_code;
  };
  QByteArray flipped = good;
  flipped[130] = static_cast<char>(flipped[130] ^ 1);
  QCOMPARE(restore(flipped), 65);
  QCOMPARE(restore(good.left(100)), 65);
  QCOMPARE(restore(good + "x"), 65);
  QVERIFY(!QFileInfo::exists(directory + "/wallet.keystore"));
  QCOMPARE(restore(good), 0);
  QCOMPARE(shown(directory)["wallet_id"].toString(), QString(fixed_id));
  // A damaged keystore is reported, and kept: it may still help somebody.
  QFile keystore(directory + "/wallet.keystore");
  QVERIFY(keystore.open(QIODevice::ReadWrite) && keystore.seek(50) && keystore.write("?") == 1);
  keystore.close();
  const QByteArray damaged = keystore_in(directory);
  const ProcessResult show = wallet({"show"}, directory);
  QCOMPARE(show.exit_code, 65);
  QVERIFY2(show.err.contains("wallet.keystore") && show.err.contains("backup"), show.text().constData());
  QCOMPARE(wallet({"create"}, directory).exit_code, 73);
  QCOMPARE(keystore_in(directory), damaged);
}

void TestWalletProtection::words_are_shown_again() {
  const QString directory = path("again");
  QVERIFY(make_fixed(directory));
  const ProcessResult backup = wallet({"backup", "--words"}, directory);
  QVERIFY2(backup.ok(), backup.text().constData());
  QCOMPARE(backup.err.count(fixed_words), 1);
  QVERIFY(backup.out.isEmpty());
  const ProcessResult json = wallet({"backup", "--words", "--json"}, directory);
  QCOMPARE(json.exit_code, 64);
  QVERIFY(!any_in(secrets_of(fixed_words, true), json.out + json.err));
}

NS_TEST(TestWalletProtection)
#include "test_wallet_protection.moc"
