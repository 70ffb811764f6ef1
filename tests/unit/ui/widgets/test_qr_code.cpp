// The QR code of an invitation: another program reads from its pixels what was put in, at any size.
#include <QProcess>
#include <QStandardPaths>
#include <QTemporaryDir>
#include <QtTest>

#include "tests/support/test_main.h"
#include "ui/widgets/qr_code.h"

using neuroshard::ui::QrCode;

class TestQrCode : public QObject {
  Q_OBJECT
 private Q_SLOTS:
  void what_is_painted_is_read_by_another_program_data();
  void what_is_painted_is_read_by_another_program();
  void it_says_what_it_can_not_show();
};

void TestQrCode::what_is_painted_is_read_by_another_program_data() {
  QTest::addColumn<int>("characters");
  QTest::addColumn<int>("pixels");
  QTest::newRow("small") << 85 << 200;
  QTest::newRow("usual") << 200 << 301;
  QTest::newRow("large") << 1200 << 640;
}

void TestQrCode::what_is_painted_is_read_by_another_program() {
  QFETCH(int, characters);
  QFETCH(int, pixels);
  const QString text = QString("neuroshard:join?to=").leftJustified(characters, u'x');
  QrCode code;
  QVERIFY(code.set_text(text));
  code.resize(pixels, pixels + 20);
  const QImage painted = code.grab().toImage();
  // Dark modules are black and light ones white, with nothing in between: the corner of a finder pattern.
  const QImage image = code.image();
  QCOMPARE(image.width(), code.modules());
  QCOMPARE(image.pixelColor(QrCode::quiet, QrCode::quiet), QColor(Qt::black));
  QCOMPARE(image.pixelColor(QrCode::quiet - 1, QrCode::quiet - 1), QColor(Qt::white));
  const QString reader = QStandardPaths::findExecutable("zbarimg");
  if (reader.isEmpty()) QSKIP("zbarimg is not installed (zbar-tools)");
  const QTemporaryDir folder;
  QVERIFY(painted.save(folder.filePath("code.png")));
  QProcess read;
  read.start(reader, {"--raw", "-q", folder.filePath("code.png")});
  QVERIFY(read.waitForFinished(60'000));
  QCOMPARE(QString::fromUtf8(read.readAllStandardOutput()).trimmed(), text);
}

void TestQrCode::it_says_what_it_can_not_show() {
  QrCode code;
  QVERIFY(!code.set_text({}) && code.image().isNull() && code.modules() == 0);
  QVERIFY(code.set_text(QString(QrCode::most_bytes, 'x')));
  QVERIFY(!code.set_text(QString(QrCode::most_bytes + 1, 'x')));
  QVERIFY(code.image().isNull() && code.accessibleName().isEmpty());
  code.resize(100, 100);
  code.grab();
}

NS_UI_TEST(TestQrCode)
#include "test_qr_code.moc"
