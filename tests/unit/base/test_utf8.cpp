// Text of any origin as valid UTF-8.
#include <QtTest>

#include "core/base/utf8.h"
#include "tests/support/test_main.h"

using namespace neuroshard;

class TestUtf8 : public QObject {
  Q_OBJECT
 private Q_SLOTS:
  void valid_text_stays() {
    const std::string text = "a \xC3\xA9 \xE2\x82\xAC \xF0\x9F\x98\x80\n";
    QCOMPARE(valid_utf8(text), text);
    QCOMPARE(valid_utf8(text, text.size()), text);
    QCOMPARE(valid_utf8({}, 0), std::string());
  }

  void other_bytes_are_replaced_data() {
    QTest::addColumn<QByteArray>("bytes");
    QTest::addColumn<int>("replaced");
    QTest::newRow("no beginning") << QByteArray("\x80") << 1;
    QTest::newRow("cut off") << QByteArray("\xE2\x82") << 1;
    QTest::newRow("overlong") << QByteArray("\xC0\xAF") << 2;
    QTest::newRow("surrogate") << QByteArray("\xED\xA0\x80") << 3;
    QTest::newRow("beyond Unicode") << QByteArray("\xF4\x90\x80\x80") << 4;
    QTest::newRow("no such byte") << QByteArray("\xFF\xFE") << 2;
  }
  void other_bytes_are_replaced() {
    QFETCH(QByteArray, bytes);
    QFETCH(int, replaced);
    std::string expected = "a";
    for (int i = 0; i < replaced; ++i) expected += "\xEF\xBF\xBD";
    expected += "b";
    QCOMPARE(valid_utf8("a" + bytes.toStdString() + "b"), expected);
  }

  void a_line_has_no_control_characters() {
    QCOMPARE(one_line("a\nb\x1b[2J\x7f\xFF"), std::string("a b [2J \xEF\xBF\xBD"));
    QCOMPARE(one_line("a\nb", 2), std::string("a "));
    // Terminals take U+009B as the start of a sequence; U+00A0 is no control character.
    QCOMPARE(one_line("a\xC2\x9B;b\xC2\x80\xC2\xA0"), std::string("a ;b \xC2\xA0"));
  }

  void it_is_cut_between_characters() {
    const std::string euros = "\xE2\x82\xAC\xE2\x82\xAC";
    QCOMPARE(valid_utf8(euros, 5), euros.substr(0, 3));
    QCOMPARE(valid_utf8(euros, 2), std::string());
    QCOMPARE(valid_utf8("ab\xFF", 4), std::string("ab"));  // a replacement is as long as three
  }
};

NS_TEST(TestUtf8)
#include "test_utf8.moc"
