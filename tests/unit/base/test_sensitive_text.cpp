// The forms of secrets and addresses: each is recognised, and the harmless text that looks most like it is not.
#include <QtTest>

#include "core/base/detail/sensitive_text.h"
#include "tests/support/test_main.h"

using namespace neuroshard::detail;  // NOLINT

class TestSensitiveText : public QObject {
  Q_OBJECT
 private Q_SLOTS:
  void names_of_secrets();
  void values_of_names_data();
  void values_of_names();
  void keys_are_no_paths_and_no_long_names();
  void addresses_are_four_numbers_up_to_255();
  void addresses_with_colons_are_no_times_and_no_scopes();
  void words_are_bounded();
};

void TestSensitiveText::names_of_secrets() {
  for (const char* name : {"token", "TOKEN", "wallet_token", "--api-key", "NEUROSHARD_PASSPHRASE", "apikey"})
    QVERIFY2(is_secret_name(name), name);
  for (const char* name : {"", "tokens", "token_count", "key", "cookies"})
    QVERIFY2(!is_secret_name(name), name);
  for (const char* value : {"4", "0.25", "1234567890"}) QVERIFY2(is_small_number(value), value);
  for (const char* value : {"", "12345678901", "0x10", "-1"}) QVERIFY2(!is_small_number(value), value);
}

void TestSensitiveText::values_of_names_data() {
  QTest::addColumn<QString>("text");  // begins with the name "token"
  QTest::addColumn<bool>("flag");
  QTest::addColumn<QString>("value");
  QTest::newRow("equals") << "token = abc def" << false << "abc";
  QTest::newRow("colon") << "token:abc, more" << false << "abc";
  QTest::newRow("quoted") << "token='a b' c" << false << "a b";
  QTest::newRow("json") << R"(token": "a b"})" << false << "a b";
  QTest::newRow("json in json") << R"(token\":\"abc\"})" << false << "abc";
  QTest::newRow("quote without an end") << "token=\"abc\nnext" << false << "abc";
  QTest::newRow("header") << "token: Bearer a.b\r\nHost: c" << false << "Bearer a.b";
  QTest::newRow("another word follows") << "token abc" << false << QString();
  QTest::newRow("flag") << "token abc" << true << "abc";
  QTest::newRow("flag at the end") << "token" << true << QString();
  QTest::newRow("nothing assigned") << "token=" << false << QString();
  QTest::newRow("scheme at the end") << "token: Bearer" << false << "Bearer";
}

void TestSensitiveText::values_of_names() {
  QFETCH(QString, text);
  QFETCH(bool, flag);
  const std::string bytes = text.toStdString();
  const TextRange range = assigned_value(bytes, 5, flag);
  QVERIFY(range.begin <= range.end && range.end <= bytes.size());
  QTEST(QString::fromStdString(bytes.substr(range.begin, range.end - range.begin)), "value");
}

void TestSensitiveText::keys_are_no_paths_and_no_long_names() {
  QVERIFY(is_base64_key("3q2+7wAAQmFzZTY0S2V5TWF0ZXJpYWxPZjMyQnl0ZXM="));
  QVERIFY(is_base64_key("3q2/7wAAQmFzZTY0S2V5TWF0/XJpYWxPZjMyQnl0ZXM="));
  QVERIFY(!is_base64_key("/usr/lib/Qt6/plugins/platforms/A1/libqxcb-long"));
  QVERIFY(!is_base64_key("usr/lib/x86_64-linux-gnu/Qt6/plugins/platforms"));
  QVERIFY(!is_base64_key("a_test_with_a_name_that_says_all_there_is_to_it"));
  QVERIFY(is_hex("00ffAB"));
  QVERIFY(!is_hex("00ffAG"));
}

void TestSensitiveText::addresses_are_four_numbers_up_to_255() {
  for (const char* text : {"203.0.113.7", "255.255.255.255", "127.0.0.1"}) QVERIFY2(is_ipv4(text), text);
  for (const char* text : {"", "1.2.3", "1.2.3.4.5", "256.1.1.1", "1..2.3", "1.2.3.", "1.2.3.0004"})
    QVERIFY2(!is_ipv4(text), text);
  QVERIFY(is_here_only("127.0.0.1") && is_here_only("0.0.0.0"));
  QVERIFY(!is_here_only("203.0.113.7"));
}

void TestSensitiveText::addresses_with_colons_are_no_times_and_no_scopes() {
  for (const char* text : {"2001:db8::7", "2001:db8:0:1:2:3:4:5", "fe80::1", "00:1b:44:11:3a:b7"})
    QVERIFY2(is_colon_address(text), text);
  for (const char* text :
       {"", "12:30:45", "::", "::a", "10:20", "2001:db8:0:1", "00:1b:44:11:3a:b", "12345::67"})
    QVERIFY2(!is_colon_address(text), text);
}

void TestSensitiveText::words_are_bounded() {
  const std::string_view text = "ada, adam ada_b ada";
  QVERIFY(bounded(text, 0, 3));
  QVERIFY(!bounded(text, 5, 8));    // of adam
  QVERIFY(!bounded(text, 10, 13));  // of ada_b
  QVERIFY(bounded(text, 16, 19));
}

NS_TEST(TestSensitiveText)
#include "test_sensitive_text.moc"
