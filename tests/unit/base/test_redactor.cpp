// The redactor: every kind of secret planted in the forms in which texts carry it is gone; what a reader of
// diagnostics needs stays.
#include <QtTest>

#include "core/base/redactor.h"
#include "tests/support/test_main.h"

using namespace neuroshard;  // NOLINT

namespace {

const char* const words[] = {"legal",   "winner", "thank",  "year",  "wave",
                             "sausage", "worth",  "useful", "yellow"};

Redactor redactor(bool personal = true) {
  Redactor::Options options;
  options.is_wallet_word = [](std::string_view word) {
    return std::find(std::begin(words), std::end(words), word) != std::end(words);
  };
  options.personal = personal;
  options.home = "/srv/people/ada";
  options.user = "ada";
  options.host = "bitbox";
  return Redactor(options);
}

constexpr const char* hex64 = "8f14e45fceea167a5a36dedd4bea2543f3a0c1d2b4e5968778695a4b3c2d1e0f";

}  // namespace

class TestRedactor : public QObject {
  Q_OBJECT
 private Q_SLOTS:
  void secrets_are_taken_out_data();
  void secrets_are_taken_out();
  void what_is_needed_stays_data();
  void what_is_needed_stays();
  void named_values_go_whatever_they_look_like();
  void same_value_same_number();
  void local_logs_keep_what_is_personal();
  void counts_say_what_was_done();
  void any_bytes_are_safe();
};

void TestRedactor::secrets_are_taken_out_data() {
  QTest::addColumn<QString>("text");
  QTest::addColumn<QString>("secret");
  QTest::addColumn<QString>("result");
  const QString hex(hex64);
  QTest::newRow("hex") << "key " + hex + "." << hex << "key <id 1>.";
  QTest::newRow("hex with 0x") << "0x" + hex << hex << "0x<id 1>";
  QTest::newRow("hex in capitals") << hex.toUpper() << hex.toUpper() << "<id 1>";
  QTest::newRow("hex in a path") << "control-" + hex + ".json" << hex << "control-<id 1>.json";
  QTest::newRow("base64") << "k: 3q2+7wAAQmFzZTY0S2V5TWF0ZXJpYWxPZjMyQnl0ZXM="
                          << "3q2"
                          << "k: <id 1>";
  QTest::newRow("base64 with slashes") << "3q2/7wAAQmFzZTY0S2V5TWF0/XJpYWxPZjMyQnl0ZXM="
                                       << "3q2"
                                       << "<id 1>";
  QTest::newRow("json value") << R"({"cookie": "abc def","pid":5})"
                              << "abc"
                              << R"({"cookie": "<secret>","pid":5})";
  QTest::newRow("json in json") << R"("{\"token\":\"s3cr3t\"}")"
                                << "s3cr3t"
                                << R"("{\"token\":\"<secret>\"}")";
  QTest::newRow("assignment") << "NEUROSHARD_PASSPHRASE=hunter2 next"
                              << "hunter2"
                              << "NEUROSHARD_PASSPHRASE=<secret> next";
  QTest::newRow("flag") << "run --wallet-token s3cr3t --json"
                        << "s3cr3t"
                        << "run --wallet-token <secret> --json";
  QTest::newRow("header") << "Authorization: Bearer s3.cr.et"
                          << "s3.cr"
                          << "Authorization: <secret>";
  QTest::newRow("toml") << "api_key = 's3cr3t'"
                        << "s3cr3t"
                        << "api_key = '<secret>'";
  QTest::newRow("url") << "http://ada:s3cr3t@proxy:8080/x"
                       << "s3cr3t"
                       << "http://<credentials>@proxy:8080/x";
  QTest::newRow("private key") << "a\n-----BEGIN EC PRIVATE KEY-----\nMHcCAQ\n-----END EC PRIVATE KEY-----\nb"
                               << "MHcCAQ"
                               << "a\n<private key>\nb";
  QTest::newRow("cut private key") << "-----BEGIN PRIVATE KEY-----\nMHcCAQ"
                                   << "MHcCAQ"
                                   << "<private key>";
  QTest::newRow("phrase") << "words: legal winner thank year wave sausage worth useful"
                          << "sausage"
                          << "words: <wallet words>";
  QTest::newRow("phrase in capitals, numbered")
      << "1. Legal\n2. Winner\n3. Thank\n4. Year\n5. Wave\n6. Sausage\nend"
      << "Sausage"
      << "1. <wallet words>\nend";
  QTest::newRow("phrase in json") << R"(["legal","winner","thank","year","wave","sausage"])"
                                  << "sausage"
                                  << R"(["<wallet words>"])";
  QTest::newRow("phrase with escapes") << R"("legal\nwinner\nthank\nyear\nwave\nsausage")"
                                       << "sausage"
                                       << R"("<wallet words>")";
  QTest::newRow("home") << "can't open /srv/people/ada/books/a.txt"
                        << "people"
                        << "can't open ~/books/a.txt";
  QTest::newRow("another's home") << QString("see /home") + "/grace.h/x"
                                  << "grace" << QString("see /home") + "/<user>/x";
  QTest::newRow("home on Windows") << R"(C:\Users\Grace\AppData)"
                                   << "Grace"
                                   << R"(C:\Users\<user>\AppData)";
  QTest::newRow("home on Windows in json") << R"("C:\\Users\\Grace\\AppData")"
                                           << "Grace"
                                           << R"("C:\\Users\\<user>\\AppData")";
  QTest::newRow("user") << "owned by ada, not by adam"
                        << "ada,"
                        << "owned by <user>, not by adam";
  QTest::newRow("host") << "bitbox: up"
                        << "bitbox"
                        << "<computer>: up";
  QTest::newRow("v4") << "peer 203.0.113.7:9000 left"
                      << "203"
                      << "peer <address 1>:9000 left";
  QTest::newRow("v6") << "[2001:db8::7]:9000"
                      << "db8"
                      << "[<address 1>]:9000";
  QTest::newRow("v6 in full") << "2001:db8:0:1:2:3:4:5"
                              << "db8"
                              << "<address 1>";
  QTest::newRow("hardware") << "at 00:1b:44:11:3a:b7"
                            << "1b:44"
                            << "at <address 1>";
  QTest::newRow("e-mail") << "write to ada.l@example.org."
                          << "example"
                          << "write to <e-mail 1>.";
}

void TestRedactor::secrets_are_taken_out() {
  QFETCH(QString, text);
  QFETCH(QString, secret);
  QFETCH(QString, result);
  const QString clean = QString::fromStdString(redactor().apply(text.toStdString()));
  QVERIFY2(!clean.contains(secret), qPrintable(clean));
  QCOMPARE(clean, result);
}

void TestRedactor::what_is_needed_stays_data() {
  QTest::addColumn<QString>("text");
  for (const char* text :
       {"2026-11-21 12:30:45.123 [info] train: step 120 of 1000, loss 5.4321",
        "checkpoint 0000000100-df2e427f saved in 1.25 s", "tokens: 409600, bytes_per_token: 4.25",
        R"({"eval_tokens":"16384","shard_tokens":2500000,"token":null})", "listening on 127.0.0.1:43210",
        "version 1.2.3, Debian 12.4", "a legal winner, year after year",
        "std::string and Redactor::apply are names",
        "/usr/lib/x86_64-linux-gnu/libstdc++.so.6 of the processor", "AMD EPYC 7763; avx2; 2 threads",
        "http://example.org/a@b", "root cause", "ratio 10:20:30"})
    QTest::newRow(text) << QString(text);
}

void TestRedactor::what_is_needed_stays() {
  QFETCH(QString, text);
  QCOMPARE(QString::fromStdString(redactor().apply(text.toStdString())), text);
}

void TestRedactor::named_values_go_whatever_they_look_like() {
  Redactor r = redactor();
  r.add_secret("correct horse");
  r.add_secret("correct horse battery");
  r.add_secret("abc");  // too short to be looked for
  QCOMPARE(r.apply("it is correct horse battery, abc"), std::string("it is <secret>, abc"));
}

void TestRedactor::same_value_same_number() {
  Redactor r = redactor();
  const std::string a(64, 'a'), b(64, 'b');
  QCOMPARE(r.apply(a + " " + b), std::string("<id 1> <id 2>"));
  QCOMPARE(r.apply(b + " " + a), std::string("<id 2> <id 1>"));
}

void TestRedactor::local_logs_keep_what_is_personal() {
  Redactor r = redactor(/*personal=*/false);
  QCOMPARE(r.apply("ada at bitbox, /srv/people/ada, 203.0.113.7, token=s3cr3t"),
           std::string("ada at bitbox, /srv/people/ada, 203.0.113.7, token=<secret>"));
}

void TestRedactor::counts_say_what_was_done() {
  Redactor r = redactor();
  QVERIFY(r.counts().empty());
  static_cast<void>(r.apply(std::string("cookie=x1234 203.0.113.7 203.0.113.8 ") + hex64));
  const std::map<std::string, std::uint64_t> expected = {{"address", 2}, {"id", 1}, {"secret", 1}};
  QVERIFY(r.counts() == expected);
}

void TestRedactor::any_bytes_are_safe() {
  Redactor r = redactor();
  std::string all;
  for (int round = 0; round < 3; ++round) {
    for (int c = 0; c < 256; ++c) all.push_back(static_cast<char>(c));
  }
  for (const std::string& text :
       {std::string(), all, std::string("token="), std::string("\\"), std::string("://"), std::string("@"),
        std::string("-----BEGIN "), std::string(100'000, ':'), std::string(100'000, 'f'),
        std::string(100'000, '"'), std::string(50'000, '.')})
    static_cast<void>(r.apply(text));
  QVERIFY(r.apply(std::string(100'000, 'f')).size() < 20);
}

NS_TEST(TestRedactor)
#include "test_redactor.moc"
