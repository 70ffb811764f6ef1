// The error of a program with --json as the window shows it.
#include <QtTest>

#include "tests/support/test_main.h"
#include "ui/text/program_error.h"

using neuroshard::ui::error_of_program;

class TestProgramError : public QObject {
  Q_OBJECT
 private Q_SLOTS:
  void the_message_is_shown_and_no_json();
  void other_text_is_shown_as_it_is();
};

// As Output::error of neuroshardd writes it.
void TestProgramError::the_message_is_shown_and_no_json() {
  QCOMPARE(error_of_program(R"({"error":{"code":"denied","message":"wrong passphrase","context":""}})"
                            "\n"),
           QString("wrong passphrase"));
  QCOMPARE(error_of_program(
               R"({"error":{"code":"corrupt","message":"no keystore","context":"/data/wallet.keystore"}})"
               "\n"),
           QString("/data/wallet.keystore: no keystore"));
}

void TestProgramError::other_text_is_shown_as_it_is() {
  QCOMPARE(error_of_program("neuroshardd: no such file\n"), QString("neuroshardd: no such file"));
  QCOMPARE(error_of_program(""), QString());
}

NS_UI_TEST(TestProgramError)
#include "test_program_error.moc"
