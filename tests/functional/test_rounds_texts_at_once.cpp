// Three real nodes with three texts that begin a network at the same moment: it gets one tokenizer.
#include <QTest>

#include "tests/support/test_main.h"
#include "tests/support/three_texts.h"

using namespace neuroshard::test;  // NOLINT

class TestRoundsTextsAtOnce : public QObject {
  Q_OBJECT
 private Q_SLOTS:
  void all_begin_at_once();
};

void TestRoundsTextsAtOnce::all_begin_at_once() {
  RoundsRun run;
  const QStringList names = planted.keys();
  QCOMPARE(run.make("street", "30", {"--block-time-s", "1", "--voters", "open"}), QByteArray());
  QCOMPARE(write_texts(run), QByteArray());
  for (const QString& name : names) run.launch(name, name + ".txt");
  for (const QString& name : names) QCOMPARE(run.joined(name), QByteArray());
  QVERIFY(run.together(names));
  QVERIFY(!tokenizer_of(run, names.first()).isEmpty());
  for (const QString& name : names) QCOMPARE(tokenizer_of(run, name), tokenizer_of(run, names.first()));
}

NS_TEST(TestRoundsTextsAtOnce)
#include "test_rounds_texts_at_once.moc"
