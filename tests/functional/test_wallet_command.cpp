// neuroshardd wallet create | show | restore as a person and a script meet them: where the words appear and
// where they never do, what brings a wallet back, who may read the files, and that nothing that is refused
// loses anything.
#include <QFileInfo>
#include <QTemporaryDir>
#include <QTest>

#include "tests/support/test_main.h"
#include "tests/support/wallet_run.h"

using namespace neuroshard::test;  // NOLINT

class TestWalletCommand : public QObject {
  Q_OBJECT
 private Q_SLOTS:
  void initTestCase();
  void new_words_appear_once_data();
  void new_words_appear_once();
  void words_are_in_no_file();
  void wallet_of_a_new_directory_shows_its_words();
  void show_says_not_protected();
  void second_create_loses_nothing();
  void words_restore_the_wallet_data();
  void words_restore_the_wallet();
  void token_restores_the_wallet();
  void wrong_words_restore_nothing_data();
  void wrong_words_restore_nothing();
  void replaced_wallet_is_kept();
  void damaged_wallet_is_replaced_data();
  void damaged_wallet_is_replaced();
  void token_does_not_replace_the_words();
  void nothing_there_is_66();
  void run_with_an_existing_wallet_creates_none();
  void directory_of_the_environment_is_used();
  void wrong_usage_is_64();
  void held_directory_is_75();

 private:
  QString path(const QString& name) const { return folder_.filePath(name); }
  QString write(const QString& name, const QByteArray& content) const;

  QTemporaryDir folder_;
};

QString TestWalletCommand::write(const QString& name, const QByteArray& content) const {
  QFile file(path(name));
  if (!file.open(QIODevice::WriteOnly) || file.write(content) != content.size()) return {};
  return file.fileName();
}

void TestWalletCommand::initTestCase() {
  QVERIFY(folder_.isValid());
  QVERIFY2(QFileInfo(node_program()).isExecutable(), qPrintable(node_program()));
  // The programs inherit it: what is private then, the program itself made private.
  ::umask(0);
}

void TestWalletCommand::new_words_appear_once_data() {
  QTest::addColumn<QStringList>("flags");
  QTest::newRow("for people") << QStringList{};
  QTest::newRow("json") << QStringList{"--json"};
  QTest::newRow("quiet") << QStringList{"--quiet"};
}

void TestWalletCommand::new_words_appear_once() {
  QFETCH(QStringList, flags);
  const QString directory = path(QString("new-") + QTest::currentDataTag());
  const ProcessResult made = wallet(QStringList{"create"} + flags, directory);
  QVERIFY2(made.ok(), made.text().constData());
  const QList<QByteArray> phrases = phrases_in(made.err);
  QCOMPARE(phrases.size(), 1);
  const auto secret = neuroshard::crypto::WalletSecret::parse(phrases[0].toStdString());
  QVERIFY2(secret.ok(), "the words have a right checksum");
  QVERIFY(!any_in(secrets_of(phrases[0], true), made.out));
  const QString id = QString::fromStdString(neuroshard::crypto::wallet_id(secret->key().public_key()));
  QCOMPARE(shown(directory)["wallet_id"].toString(), id);
  if (flags.contains("--json")) {
    QCOMPARE(made.out.trimmed().split('\n').size(), 1);
    const QJsonObject object = json_lines(made.out).value(0);
    QCOMPARE(object["wallet_id"].toString(), id);
    QVERIFY(object["has_words"].toBool());
  } else {
    QVERIFY(made.out.contains(id.toUtf8()));
  }
  // Not a second time without being asked.
  const ProcessResult show = wallet({"show"}, directory);
  QVERIFY(!any_in(secrets_of(phrases[0], true), show.out + show.err));
  QCOMPARE(mode_of(directory), 0700);
  QCOMPARE(mode_of(directory + "/wallet.keystore"), 0600);
}

void TestWalletCommand::words_are_in_no_file() {
  const QString directory = path("files");
  const QString passphrase = write("files.pass", "a long enough passphrase\n");
  const ProcessResult made = wallet({"create", "--passphrase-file", passphrase}, directory);
  QVERIFY2(made.ok(), made.text().constData());
  const QList<QByteArray> phrases = phrases_in(made.err);
  QCOMPARE(phrases.size(), 1);
  // Settings, node key, log and state of a node that runs with the wallet and never asks for its passphrase.
  NodeProcess node({"run", "--data-dir", directory, "--json", "--log-level", "debug"});
  const auto ready = node.next_line();
  QVERIFY(ready.has_value());
  QCOMPARE(json_lines(*ready).value(0)["wallet_id"].toString(), shown(directory)["wallet_id"].toString());
  node.terminate();
  const ProcessResult stopped = node.finish();
  QVERIFY2(!stopped.crashed && !stopped.timed_out, stopped.text().constData());
  const QList<QByteArray> secrets = secrets_of(phrases[0], true) << "a long enough passphrase";
  QVERIFY(!any_in(secrets, stopped.out + stopped.err));
  int looked_at = 0;
  const QStringList found = files_with(secrets, directory, &looked_at);
  QVERIFY2(found.isEmpty(), qPrintable(found.join(' ')));
  QVERIFY(looked_at >= 5);
  QVERIFY(QFileInfo::exists(directory + "/logs/neuroshardd.log"));
  for (const char* name : {"", "/logs", "/crash"}) QCOMPARE(mode_of(directory + name), 0700);
  for (const char* name : {"/wallet.keystore", "/node.key"}) QCOMPARE(mode_of(directory + name), 0600);
}

void TestWalletCommand::wallet_of_a_new_directory_shows_its_words() {
  const QString directory = path("implicit");
  const QStringList set{"settings", "set", "cpu_threads", "1", "--data-dir", directory, "--json"};
  const ProcessResult first = run_node(set);
  QVERIFY2(first.ok(), first.text().constData());
  const QList<QByteArray> phrases = phrases_in(first.err);
  QCOMPARE(phrases.size(), 1);
  QVERIFY(!any_in(secrets_of(phrases[0], true), first.out));
  QVERIFY(phrases_in(run_node(set).err).isEmpty());
  int looked_at = 0;
  QCOMPARE(files_with(secrets_of(phrases[0], false), directory, &looked_at), QStringList());
  QVERIFY(wallet({"restore"}, path("implicit-back"), phrases[0]).ok());
  QCOMPARE(shown(path("implicit-back"))["public_key"].toString(), shown(directory)["public_key"].toString());
}

void TestWalletCommand::show_says_not_protected() {
  const QString directory = path("open");
  QVERIFY(make_fixed(directory));
  const ProcessResult show = wallet({"show"}, directory);
  QVERIFY2(show.ok(), show.text().constData());
  QVERIFY(show.out.contains("not protected") && show.out.contains("wallet protect"));
  const QJsonObject object = shown(directory);
  QCOMPARE(object["protection"].toString(), QString("none"));
  QCOMPARE(object["protected"].toBool(true), false);
  QCOMPARE(object["wallet_id"].toString(), QString(fixed_id));
  NodeProcess node({"run", "--data-dir", directory});
  const auto ready = node.next_line();
  QVERIFY(ready.has_value());
  QVERIFY2(ready->contains(fixed_id) && ready->contains("(not protected)"), ready->constData());
}

void TestWalletCommand::second_create_loses_nothing() {
  const QString directory = path("twice");
  QVERIFY(wallet({"create"}, directory).ok());
  const QByteArray before = keystore_in(directory);
  QVERIFY(!before.isEmpty());
  const ProcessResult again = wallet({"create"}, directory);
  QCOMPARE(again.exit_code, 73);
  QVERIFY(again.out.isEmpty());
  QVERIFY2(again.err.contains("already exists") && again.err.contains("--data-dir"),
           again.text().constData());
  QVERIFY(phrases_in(again.err).isEmpty());
  QCOMPARE(wallet({"restore"}, directory, fixed_words).exit_code, 73);
  QCOMPARE(keystore_in(directory), before);
  QCOMPARE(QDir(directory).entryList({"wallet*"}, QDir::Files).size(), 1);
}

void TestWalletCommand::words_restore_the_wallet_data() {
  QTest::addColumn<QStringList>("flags");
  QTest::addColumn<QByteArray>("input");
  const QByteArray words = fixed_words;
  const QString file = write("restore.words", words + "\n");
  QTest::newRow("standard input") << QStringList{} << words;
  QTest::newRow("dash") << QStringList{"--from", "-"} << words + "\n";
  QTest::newRow("file") << QStringList{"--from", file} << QByteArray();
  QTest::newRow("as typed") << QStringList{} << "  " + words.toUpper().replace(" ", "\r\n \t") + "\r\n\n";
}

void TestWalletCommand::words_restore_the_wallet() {
  QFETCH(QStringList, flags);
  QFETCH(QByteArray, input);
  const QString directory = path(QString("words-") + QTest::currentDataTag());
  const ProcessResult restored = wallet(QStringList{"restore", "--json"} + flags, directory, input);
  QVERIFY2(restored.ok(), restored.text().constData());
  QVERIFY(!any_in(secrets_of(fixed_words, true), restored.out + restored.err));
  QCOMPARE(json_lines(restored.out).value(0)["wallet_id"].toString(), QString(fixed_id));
  const QJsonObject object = shown(directory);
  QCOMPARE(object["wallet_id"].toString(), QString(fixed_id));
  QVERIFY(object["has_words"].toBool());
  QCOMPARE(mode_of(directory), 0700);
  QCOMPARE(mode_of(directory + "/wallet.keystore"), 0600);
}

void TestWalletCommand::token_restores_the_wallet() {
  const QString directory = path("token");
  const QByteArray token = fixed_token;
  const ProcessResult restored = wallet({"restore", "--json"}, directory, "\n" + token.toUpper() + "\n");
  QVERIFY2(restored.ok(), restored.text().constData());
  QVERIFY(!(restored.out + restored.err).toLower().contains(token));
  const QJsonObject object = shown(directory);
  QCOMPARE(object["wallet_id"].toString(), QString(fixed_id));
  QVERIFY(!object["has_words"].toBool(true));
  // Words can't be found from it: the backup is the token itself.
  const ProcessResult backup = wallet({"backup", "--words"}, directory);
  QVERIFY2(backup.ok(), backup.text().constData());
  QCOMPARE(backup.err.count(token), 1);
  QVERIFY(backup.out.isEmpty() && phrases_in(backup.err).isEmpty());
}

void TestWalletCommand::wrong_words_restore_nothing_data() {
  QTest::addColumn<QByteArray>("input");
  QTest::addColumn<QByteArray>("told");
  const QByteArray words = fixed_words;
  QTest::newRow("swapped") << QByteArray("amount abandon" + words.mid(14)) << QByteArray("checksum");
  QTest::newRow("misspelt") << QByteArray(words).replace("candy", "cendy") << QByteArray("\"candy\"");
  QTest::newRow("one missing") << words.left(words.lastIndexOf(' ')) << QByteArray("got 11");
  QTest::newRow("short token") << QByteArray(fixed_token).chopped(1) << QByteArray("64 characters");
  QTest::newRow("nothing") << QByteArray() << QByteArray("12 words");
  QTest::newRow("very much") << QByteArray(100'000, 'x') << QByteArray("too large");
}

void TestWalletCommand::wrong_words_restore_nothing() {
  QFETCH(QByteArray, input);
  QFETCH(QByteArray, told);
  const QString directory = path(QString("wrong-") + QTest::currentDataTag());
  const ProcessResult result = wallet({"restore"}, directory, input);
  QCOMPARE(result.exit_code, 64);
  QVERIFY2(result.err.contains(told), result.text().constData());
  QVERIFY(result.out.isEmpty());
  QVERIFY(!any_in(secrets_of(fixed_words, false), result.err));
  QVERIFY(!QFileInfo::exists(directory + "/wallet.keystore"));
}

// The folder has one former wallet, with this content and for its owner only, and the program has named it.
static bool keeps_old(const QString& directory, const QByteArray& content, const ProcessResult& said) {
  const QStringList kept = QDir(directory).entryList({"wallet.keystore.old-*"}, QDir::Files);
  if (kept.size() != 1) return false;
  const QString old = directory + "/" + kept[0];
  return said.err.contains(kept[0].toUtf8()) && content_of(old) == content && mode_of(old) == 0600;
}

void TestWalletCommand::replaced_wallet_is_kept() {
  const QString directory = path("replace");
  QVERIFY(wallet({"create"}, directory).ok());
  const QByteArray before = keystore_in(directory);
  // Wrong words replace nothing.
  QCOMPARE(wallet({"restore", "--replace"}, directory, "one two three").exit_code, 64);
  QCOMPARE(keystore_in(directory), before);
  const ProcessResult replaced = wallet({"restore", "--replace"}, directory, fixed_words);
  QVERIFY2(replaced.ok(), replaced.text().constData());
  QCOMPARE(shown(directory)["wallet_id"].toString(), QString(fixed_id));
  QVERIFY(keeps_old(directory, before, replaced));
  // The folder can still become a data directory.
  const ProcessResult first_use =
      NodeProcess({"settings", "set", "cpu_threads", "1", "--data-dir", directory}).finish();
  QVERIFY2(first_use.ok(), first_use.text().constData());
}

void TestWalletCommand::damaged_wallet_is_replaced_data() {
  QTest::addColumn<QByteArray>("content");
  QTest::newRow("cut") << QByteArray("NS");
  QTest::newRow("longer than a wallet") << QByteArray(5000, 'x');
}

// Each message names the next step.
void TestWalletCommand::damaged_wallet_is_replaced() {
  QFETCH(QByteArray, content);
  const QString directory = path(QString("damaged-") + QTest::currentDataTag());
  QVERIFY(QDir().mkpath(directory));
  QFile file(directory + "/wallet.keystore");
  QVERIFY(file.open(QIODevice::WriteOnly) && file.write(content) == content.size());
  file.close();
  QVERIFY(file.setPermissions(QFile::ReadOwner | QFile::WriteOwner));  // as of every wallet
  for (const QStringList& line : {QStringList{"run"}, QStringList{"wallet", "restore"}}) {
    const ProcessResult refused =
        NodeProcess(line + QStringList{"--data-dir", directory}, {}, {}, fixed_words).finish();
    QVERIFY(!refused.ok());
    QVERIFY2(refused.err.contains("wallet restore --replace"), refused.text().constData());
  }
  QCOMPARE(keystore_in(directory), content);
  const ProcessResult replaced = wallet({"restore", "--replace"}, directory, fixed_words);
  QVERIFY2(replaced.ok(), replaced.text().constData());
  QCOMPARE(shown(directory)["wallet_id"].toString(), QString(fixed_id));
  QVERIFY(keeps_old(directory, content, replaced));
}

void TestWalletCommand::token_does_not_replace_the_words() {
  const QString directory = path("token-after-words");
  QVERIFY(make_fixed(directory));
  const QByteArray before = keystore_in(directory);
  const auto kept = [&directory] {
    return QDir(directory).entryList({"wallet.keystore.old-*"}, QDir::Files);
  };
  const ProcessResult replaced = wallet({"restore", "--replace"}, directory, fixed_token);
  QVERIFY2(replaced.ok(), replaced.text().constData());
  QVERIFY(!shown(directory)["has_words"].toBool(true));
  QCOMPARE(kept().size(), 1);
  QCOMPARE(content_of(directory + "/" + kept()[0]), before);
  // The words have the token, so nothing of it is lost.
  QVERIFY(wallet({"restore", "--replace"}, directory, fixed_words).ok());
  QVERIFY(shown(directory)["has_words"].toBool());
  QCOMPARE(kept().size(), 1);
}

void TestWalletCommand::nothing_there_is_66() {
  const QString directory = path("nothing");
  const ProcessResult show = wallet({"show"}, directory);
  QCOMPARE(show.exit_code, 66);
  QVERIFY(show.err.contains("wallet create") && show.err.contains("wallet restore"));
  QCOMPARE(wallet({"backup", "--words"}, directory).exit_code, 66);
  QVERIFY(!QFileInfo::exists(directory));  // reading makes nothing
  QCOMPARE(wallet({"protect", "--protection", "none"}, directory).exit_code, 66);
  QCOMPARE(wallet({"restore", "--from", path("no-such-backup")}, directory).exit_code, 66);
}

void TestWalletCommand::run_with_an_existing_wallet_creates_none() {
  const QString directory = path("unpaid");
  const ProcessResult refused = run_node({"run", "--existing-wallet", "--data-dir", directory});
  QCOMPARE(refused.exit_code, 66);
  QVERIFY2(refused.err.contains("no wallet found in " + directory.toUtf8()), refused.text().constData());
  QVERIFY(refused.err.contains("wallet create") && refused.err.contains("wallet restore"));
  QVERIFY(!QFileInfo::exists(directory));
  QVERIFY(make_fixed(directory));
  NodeProcess running({"run", "--existing-wallet", "--data-dir", directory, "--json"});
  const auto ready = running.next_line();
  QVERIFY2(ready.has_value(), running.errors_so_far().constData());
  QCOMPARE(json_lines(*ready).value(0)["wallet_id"].toString(), QString(fixed_id));
}

// Without --data-dir, as the guide has it: the directory of the variable, else of the home folder.
void TestWalletCommand::directory_of_the_environment_is_used() {
  const QString home = path("home");
  for (const auto& [variable, directory] : {std::pair{"NEUROSHARD_DATA_DIR=" + path("named"), path("named")},
                                            std::pair{"XDG_DATA_HOME=" + home, home + "/neuroshard"}}) {
    const QStringList environment{no_desktop, variable};
    const ProcessResult missing = NodeProcess({"wallet", "show"}, environment).finish();
    QCOMPARE(missing.exit_code, 66);
    QVERIFY2(missing.err.contains(directory.toUtf8()), missing.err.constData());
    const ProcessResult made = NodeProcess({"wallet", "create"}, environment).finish();
    QVERIFY2(made.ok(), made.text().constData());
    const ProcessResult shown = NodeProcess({"wallet", "show"}, environment).finish();
    QVERIFY2(shown.ok(), shown.text().constData());
    QVERIFY2(shown.out.contains((directory + "/wallet.keystore").toUtf8()), shown.out.constData());
  }
}

void TestWalletCommand::wrong_usage_is_64() {
  const QString directory = path("usage");
  QVERIFY(make_fixed(directory));
  const QByteArray before = keystore_in(directory);
  const QStringList lines[] = {{},
                               {"burn"},
                               {"backup"},
                               {"backup", "--words", "--file", path("x")},
                               {"protect"},
                               {"protect", "--protection", "password"},
                               {"create", "--passphrase", "on the command line"}};
  for (const QStringList& line : lines) {
    const ProcessResult result = wallet(line, directory);
    QVERIFY2(result.exit_code == 64, (line.join(' ').toUtf8() + ": " + result.text()).constData());
  }
  QCOMPARE(keystore_in(directory), before);
}

void TestWalletCommand::held_directory_is_75() {
  const QString directory = path("held");
  QVERIFY(make_fixed(directory));
  const QByteArray before = keystore_in(directory);
  const QString passphrase = write("held.pass", "held");
  NodeProcess owner({"run", "--data-dir", directory, "--json"});
  QVERIFY(owner.next_line().has_value());  // ready
  const ProcessResult protect =
      wallet({"protect", "--protection", "passphrase", "--passphrase-file", passphrase}, directory);
  QCOMPARE(protect.exit_code, 75);
  QVERIFY2(protect.err.contains(QByteArray::number(owner.pid())), protect.text().constData());
  QCOMPARE(wallet({"restore", "--replace"}, directory, fixed_words).exit_code, 75);
  QCOMPARE(keystore_in(directory), before);
  QVERIFY(wallet({"show"}, directory).ok());
}

NS_TEST(TestWalletCommand)
#include "test_wallet_command.moc"
