// Checkpoints and the history go to files, and a checkpoint comes from a folder.
#include <QAction>
#include <QDir>
#include <QFileDialog>

#include "tests/support/test_main.h"
#include "tests/unit/ui/pages/checkpoints_fixture.h"

using namespace neuroshard;      // NOLINT
using namespace neuroshard::ui;  // NOLINT

class TestCheckpointExports : public QObject {
  Q_OBJECT
 private Q_SLOTS:
  void init() { fixture_ = std::make_unique<CheckpointsFixture>(); }
  void cleanup() { fixture_.reset(); }
  void exports_to_a_file_data();
  void exports_to_a_file();
  void imports_a_folder();
  void exports_the_history_data();
  void exports_the_history();

 private:
  std::unique_ptr<CheckpointsFixture> fixture_;
};

void TestCheckpointExports::exports_to_a_file_data() {
  QTest::addColumn<QString>("action");
  QTest::addColumn<QString>("name");
  QTest::addColumn<QString>("format");
  QTest::newRow("weights") << "export_weights"
                           << "out.safetensors"
                           << "safetensors";
  QTest::newRow("gguf") << "export_gguf"
                        << "out.gguf"
                        << "gguf";
  QTest::newRow("8 bits") << "export_gguf_small"
                          << "out.gguf"
                          << "gguf:q8_0";
  QTest::newRow("hugging face") << "export_hugging_face"
                                << "out"
                                << "huggingface";
  QTest::newRow("all") << "export_checkpoint"
                       << "out"
                       << "checkpoint";
}

void TestCheckpointExports::exports_to_a_file() {
  QFETCH(const QString, action);
  QFETCH(const QString, name);
  QFETCH(const QString, format);
  fixture_->start_three();
  fixture_->select(1);
  fixture_->page->findChild<QAction*>(action)->trigger();
  const QString path = fixture_->save_as(name);
  QVERIFY(!path.isEmpty());
  QTRY_VERIFY(fixture_->commanded("export c2 " + format.toStdString() + " " + path.toStdString()));
  QTRY_VERIFY(fixture_->outcome().text.contains(path));
  QVERIFY(fixture_->ended_work.size() == 1 && fixture_->ended_work[0].contains(path));
}

void TestCheckpointExports::imports_a_folder() {
  fixture_->start_three();
  fixture_->page->findChild<QAction*>(QStringLiteral("import"))->trigger();
  auto* dialog = fixture_->page->findChild<QFileDialog*>(QStringLiteral("import_dialog"));
  QVERIFY(dialog != nullptr);
  QCOMPARE(dialog->fileMode(), QFileDialog::Directory);
  const QString path = fixture_->folder.filePath(QStringLiteral("from a friend"));
  QVERIFY(QDir().mkpath(path));
  dialog->selectFile(path);
  QMetaObject::invokeMethod(dialog, "accept");
  QTRY_VERIFY(fixture_->commanded("import " + path.toStdString()));
  QTRY_VERIFY(fixture_->find<Banner>("work_outcome")->isVisible());
  QVERIFY(fixture_->ended_work.size() == 1 && fixture_->ended_work[0].contains(QStringLiteral("imported")));
}

void TestCheckpointExports::exports_the_history_data() {
  QTest::addColumn<QString>("format");
  QTest::addColumn<QString>("name");
  QTest::newRow("table") << "csv"
                         << "h.csv";
  QTest::newRow("lines") << "jsonl"
                         << "h.jsonl";
  QTest::newRow("events") << "tensorboard"
                          << "runs";
}

void TestCheckpointExports::exports_the_history() {
  QFETCH(const QString, format);
  QFETCH(const QString, name);
  fixture_->start_three();
  fixture_->page->findChild<QAction*>(QStringLiteral("export_history_") + format)->trigger();
  const QString path = fixture_->save_as(name);
  QVERIFY(!path.isEmpty());
  QTRY_VERIFY(fixture_->commanded("export history " + format.toStdString() + " " + path.toStdString()));
  QTRY_VERIFY(fixture_->outcome().text.contains(path));
  QVERIFY(fixture_->ended_work.size() == 1 && fixture_->ended_work[0].contains(path));
}

NS_UI_TEST(TestCheckpointExports)
#include "test_checkpoint_exports.moc"
