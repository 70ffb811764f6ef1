// neuroshardd diagnostics: secrets planted in everything that it reads are not in the archive; what helps is.
#include <zip.h>

#include <QDir>
#include <QFile>
#include <QJsonArray>
#include <QTemporaryDir>
#include <QtTest>

#include "tests/support/test_main.h"
#include "tests/support/wallet_run.h"

using namespace neuroshard::test;  // NOLINT

namespace {

// Entries of a zip file by name; an empty map when it is none.
QMap<QString, QByteArray> unzip(const QString& path) {
  QMap<QString, QByteArray> entries;
  int problem = 0;
  zip_t* archive = zip_open(QFile::encodeName(path).constData(), ZIP_RDONLY, &problem);
  if (archive == nullptr) return entries;
  for (zip_int64_t i = 0; i < zip_get_num_entries(archive, 0); ++i) {
    zip_stat_t stat;
    zip_stat_init(&stat);
    if (zip_stat_index(archive, static_cast<zip_uint64_t>(i), 0, &stat) != 0) continue;
    QByteArray text(static_cast<qsizetype>(stat.size), '\0');
    zip_file_t* file = zip_fopen_index(archive, static_cast<zip_uint64_t>(i), 0);
    if (file != nullptr && zip_fread(file, text.data(), stat.size) == static_cast<zip_int64_t>(stat.size))
      entries[QString::fromUtf8(stat.name)] = text;
    if (file != nullptr) zip_fclose(file);
  }
  zip_discard(archive);
  return entries;
}

}  // namespace

class TestDiagnosticsCommand : public QObject {
  Q_OBJECT
 private Q_SLOTS:
  void initTestCase();
  void planted_secrets_are_not_in_the_archive();
  void what_helps_is_in_the_archive();
  void preview_writes_nothing_and_shows_all();
  void long_logs_are_cut_to_their_end();
  void an_empty_place_is_no_error();
  void wrong_use_is_told();

 private:
  QString path(const QString& name) const { return home_ + "/" + name; }
  QString data() const { return path("data"); }
  void plant(const QString& name, const QByteArray& text) const {
    QDir().mkpath(data() + "/" + name.section('/', 0, -2));
    QFile file(data() + "/" + name);
    QVERIFY(file.open(QIODevice::WriteOnly | QIODevice::Append));
    file.write(text);
  }
  ProcessResult diagnostics(const QStringList& words) const {
    return NodeProcess(QStringList{"diagnostics", "--data-dir", data(), "--json"} + words,
                       {"HOME=" + home_, "XDG_RUNTIME_DIR=" + path("runtime"), no_desktop})
        .finish();
  }

  QTemporaryDir root_;
  QString home_;
  // Each in the form and the place in which it could get there.
  const QList<QByteArray> secrets_ = {QByteArray(fixed_token),
                                      QByteArray(fixed_token).toUpper(),
                                      "candy arch gather",
                                      "Candy",
                                      "c00k1e-of-the-core",
                                      "hunter2hunter2",
                                      "s3cr3t",
                                      "MHcCAQEEIPlanted",
                                      "203.0.113.9",
                                      "2001:db8::77",
                                      "ada.l@example.org",
                                      "home-of-ada"};
};

void TestDiagnosticsCommand::initTestCase() {
  home_ = root_.filePath("home-of-ada");
  QDir().mkpath(home_);
  QVERIFY(make_fixed(data()));
  const QByteArray token(fixed_token), words(fixed_words);
  plant("settings.toml", "\n# passphrase = \"hunter2hunter2\"\n# wallet_token = " + token + "\n");
  plant("logs/neuroshardd.log",
        "2026-11-21 12:30:45.123 [info] train: step 120 of 1000, loss 5.4321\n"
        "token " +
            token + " and " + token.toUpper() +
            "\n"
            "words: " +
            words + "\n" + "json [\"" + QByteArray(words).replace(" ", "\",\"") + "\"]\n" + "lines:\n" +
            QByteArray(words).replace(" ", "\n").replace("candy", "Candy") +
            "\n--\n"
            "{\"cookie\":\"c00k1e-of-the-core\",\"pid\":5}\n"
            "proxy http://someone:s3cr3t@proxy:3128\nAuthorization: Bearer s3cr3t\n"
            "-----BEGIN PRIVATE KEY-----\nMHcCAQEEIPlanted\n-----END PRIVATE KEY-----\n"
            "peers 203.0.113.9:9000 [2001:db8::77]:9000, mail ada.l@example.org\n"
            "text of " +
            home_.toUtf8() + "/books/a.txt\n");
  plant("logs/" + QString(fixed_token) + ".log", "named like a token\n");
  plant(
      "crash/crash-000001000000-5.txt",
      "neuroshard crash 1\nsignal 11\ntime 1000000000\npid 5\naddress 16\ncounter 32\nbuild b token=s3cr3t " +
          token + "\n");
}

void TestDiagnosticsCommand::planted_secrets_are_not_in_the_archive() {
  const QString out = path("report.zip");
  const ProcessResult result = diagnostics({"--out", out});
  QVERIFY2(result.ok(), result.text().constData());
  const auto entries = unzip(out);
  QVERIFY(entries.size() >= 5);
  for (auto entry = entries.begin(); entry != entries.end(); ++entry) {
    for (const QByteArray& secret : secrets_) {
      QVERIFY2(!entry.value().contains(secret), (entry.key().toUtf8() + ": " + secret).constData());
      QVERIFY2(!entry.key().toUtf8().contains(secret), entry.key().toUtf8().constData());
    }
  }
  for (const QByteArray& secret : secrets_) {
    if (home_.toUtf8().contains(secret)) continue;  // the answer repeats the file's name as it was given
    QVERIFY2(!result.out.contains(secret), secret.constData());
  }
  // It says what it took out.
  const QJsonObject redacted = json_lines(result.out).value(0)["redacted"].toObject();
  for (const char* kind : {"secret", "wallet words", "id", "address", "e-mail", "home folder"})
    QVERIFY2(redacted[kind].toInteger() > 0, kind);
  QCOMPARE(QFile::permissions(out) & (QFile::ReadGroup | QFile::ReadOther), QFile::Permissions());
}

void TestDiagnosticsCommand::what_helps_is_in_the_archive() {
  const QString out = path("helpful.zip");
  QVERIFY(diagnostics({"--out", out}).ok());
  const auto entries = unzip(out);
  const QJsonObject about = QJsonDocument::fromJson(entries["neuroshard/about.json"]).object();
  QVERIFY(!about["version"].toString().isEmpty());
  QVERIFY(about["system"].toString().contains("Linux"));
  QVERIFY(about["usable_processors"].toInt() > 0);
  QCOMPARE(about["data_directory"].toString(), QString("~/data"));
  const QJsonObject status = QJsonDocument::fromJson(entries["neuroshard/status.json"]).object();
  QCOMPARE(status["running"].toBool(true), false);
  QVERIFY(status["unavailable"].toString().contains("no neuroshardd runs"));
  QVERIFY(entries["neuroshard/logs/neuroshardd.log"].contains("step 120 of 1000, loss 5.4321"));
  QVERIFY(entries["neuroshard/logs/neuroshardd.log"].contains("text of ~/books/a.txt"));
  const QJsonObject crash = QJsonDocument::fromJson(entries["neuroshard/crash/1.json"]).object();
  QCOMPARE(crash["signal"].toString(), QString("SIGSEGV"));
  QCOMPARE(crash["time"].toString(), QString("1970-01-12T13:46:40Z"));
  QVERIFY(entries.contains("neuroshard/settings.toml"));
}

void TestDiagnosticsCommand::preview_writes_nothing_and_shows_all() {
  const QStringList before = QDir(home_).entryList(QDir::AllEntries | QDir::NoDotAndDotDot);
  const ProcessResult result = diagnostics({"--preview"});
  QVERIFY2(result.ok(), result.text().constData());
  QCOMPARE(QDir(home_).entryList(QDir::AllEntries | QDir::NoDotAndDotDot), before);
  const QJsonObject preview = json_lines(result.out).value(0);
  QVERIFY(preview["out"].isNull());
  const QString out = path("same.zip");
  QVERIFY(diagnostics({"--out", out}).ok());
  const auto entries = unzip(out);
  QCOMPARE(preview["files"].toArray().size(), entries.size());
  for (const QJsonValue& file : preview["files"].toArray()) {
    const QString name = file["name"].toString();
    if (name == "about.json") continue;  // has the time and free memory
    QCOMPARE(file["text"].toString().toUtf8(), entries["neuroshard/" + name]);
    QCOMPARE(file["bytes"].toInteger(), entries["neuroshard/" + name].size());
    QVERIFY(!file["what"].toString().isEmpty());
  }
}

void TestDiagnosticsCommand::long_logs_are_cut_to_their_end() {
  plant("logs/long.log",
        "first line\n" + QByteArray("a line of the middle\n").repeated(40'000) + "last line\n");
  const QString out = path("long.zip");
  QVERIFY(diagnostics({"--out", out}).ok());
  const QByteArray text = unzip(out)["neuroshard/logs/long.log"];
  QVERIFY(text.size() <= 256 << 10);
  QVERIFY(text.startsWith("a line of the middle\n"));
  QVERIFY(text.endsWith("last line\n"));
  QVERIFY(QFile::remove(data() + "/logs/long.log"));
}

void TestDiagnosticsCommand::an_empty_place_is_no_error() {
  const ProcessResult result =
      NodeProcess({"diagnostics", "--preview", "--json", "--data-dir", path("nothing")},
                  {"HOME=" + home_, "XDG_RUNTIME_DIR=" + path("runtime")})
          .finish();
  QVERIFY2(result.ok(), result.text().constData());
  QVERIFY(json_lines(result.out).value(0)["files"].toArray().size() >= 3);
  QVERIFY(!QDir(path("nothing")).exists());
}

void TestDiagnosticsCommand::wrong_use_is_told() {
  const ProcessResult nowhere = diagnostics({});
  QCOMPARE(nowhere.exit_code, 64);
  QVERIFY(nowhere.err.contains("--preview"));
  QFile there(path("there.zip"));
  QVERIFY(there.open(QIODevice::WriteOnly));
  there.write("mine");
  there.close();
  const ProcessResult over = diagnostics({"--out", path("there.zip")});
  QVERIFY(!over.ok());
  QVERIFY(over.err.contains("already exists"));
  QVERIFY(there.open(QIODevice::ReadOnly));
  QCOMPARE(there.readAll(), QByteArray("mine"));
}

NS_TEST(TestDiagnosticsCommand)
#include "test_diagnostics_command.moc"
