// Going back, in the window: a checkpoint is chosen in the table and restored, the model is the earlier one,
// and the loss goes on from there. A real core with the default model; small batches, so that a step is
// short.
#include <QPushButton>
#include <QTableView>
#include <QtTest>

#include "tests/gui/support/app_fixture.h"
#include "tests/support/test_main.h"

using namespace neuroshard;        // NOLINT
using namespace neuroshard::test;  // NOLINT

class TestAppRestore : public QObject {
  Q_OBJECT
 private Q_SLOTS:
  void initTestCase();
  void cleanupTestCase() { fixture_.reset(); }
  void cleanup() {
    if (QTest::currentTestFailed() && fixture_) fixture_->tell();
  }
  void a_checkpoint_is_restored();

 private:
  const Patience patience_{110'000};  // half a minute; several times that when much else runs
  // The shape of "solo".
  TrainingLab lab_{{{"layers", "6"},
                    {"hidden", "256"},
                    {"head-dim", "64"},
                    {"vocab", "4096"},
                    {"experts", "8"},
                    {"sequence", "256"},
                    {"batch-tokens", "512"},
                    {"warmup", "20"},
                    {"decay-steps", "5000"}}};
  std::unique_ptr<AppFixture> fixture_;
};

void TestAppRestore::initTestCase() {
  const QByteArray problem = prepare_for_app(lab_);  // with a checkpoint of the first step
  QVERIFY2(problem.isEmpty(), problem.constData());
  fixture_ = std::make_unique<AppFixture>();
  fixture_->use_data_of(lab_);
}

void TestAppRestore::a_checkpoint_is_restored() {
  fixture_->start();
  fixture_->app().window().open_page("checkpoints");
  NS_WAIT_FOR(patience_, fixture_->step() >= 4);
  auto* table = fixture_->find<QTableView>("checkpoint_table");
  QVERIFY(table != nullptr);
  NS_WAIT_FOR(patience_, table->model()->rowCount() >= 1);
  table->selectRow(table->model()->rowCount() - 1);  // the first one
  auto* restore = fixture_->find<QPushButton>("restore");
  NS_WAIT_FOR(patience_, restore->isEnabled());
  QTest::mouseClick(restore, Qt::LeftButton);
  const auto confirm = [this] { return fixture_->find<QPushButton>("confirm_action"); };
  NS_WAIT_FOR(patience_, confirm() != nullptr && confirm()->isVisible());
  QTest::mouseClick(confirm(), Qt::LeftButton);
  // The core says where it is, and what an undo would bring back.
  NS_WAIT_FOR(patience_, !fixture_->snapshot()->undo.checkpoint.empty());
  const std::uint64_t before = fixture_->snapshot()->undo.step;
  QVERIFY(before >= 4);
  NS_WAIT_FOR(patience_, fixture_->step() >= 1 && fixture_->step() < before);
  const std::uint64_t restored = fixture_->step();
  NS_WAIT_FOR(patience_, fixture_->step() > restored);
  const auto view = fixture_->snapshot();
  QVERIFY(view->training.last_step && std::isfinite(view->training.last_step->loss));
  const QJsonObject training = fixture_->core({"status"})["training"].toObject();
  QVERIFY(training["last_step"].toObject()["loss"].toDouble() > 0);
}

NS_UI_TEST(TestAppRestore)
#include "test_app_restore.moc"
