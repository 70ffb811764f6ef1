// The first hour of a person with the app: set it up, see the loss fall, pause it from the tray, go on, go
// back to a checkpoint, quit. The real window drives a real core: the default model of the profile "solo".
#include <QAction>
#include <QLabel>
#include <QLineEdit>
#include <QMenu>
#include <QPushButton>
#include <QRadioButton>
#include <QTableView>
#include <QToolButton>

#include "core/control/service_module.h"
#include "tests/gui/support/app_fixture.h"
#include "ui/widgets/cell_grid.h"
#include "ui/widgets/plot_widget.h"
#include "ui/wizard/setup_dialog.h"

using namespace neuroshard;        // NOLINT
using namespace neuroshard::test;  // NOLINT

namespace {

constexpr int long_ms = 50'000;  // two busy processors

}  // namespace

class TestAppJourney : public QObject {
  Q_OBJECT
 private Q_SLOTS:
  void initTestCase() { fixture_ = std::make_unique<AppFixture>(); }
  void cleanupTestCase() { fixture_.reset(); }
  void the_assistant_sets_it_up();
  void the_loss_falls();
  void a_pause_from_the_tray_says_why();
  void what_is_drawn_is_what_the_core_says();
  void it_goes_on();
  void a_checkpoint_is_restored();
  void quit_stops_the_core();

 private:
  ui::SetupDialog* assistant() { return fixture_->app().window().findChild<ui::SetupDialog*>(); }
  template <class Widget>
  Widget* in_assistant(const char* name) {
    return assistant()->findChild<Widget*>(name);
  }
  void next() {
    auto* button = in_assistant<QPushButton>("setupNext");
    QTRY_VERIFY_WITH_TIMEOUT(button->isEnabled(), long_ms);
    QTest::mouseClick(button, Qt::LeftButton);
  }

  std::unique_ptr<AppFixture> fixture_;
  std::uint64_t paused_at_ = 0;
};

void TestAppJourney::the_assistant_sets_it_up() {
  fixture_->start();
  QTRY_VERIFY_WITH_TIMEOUT(assistant() != nullptr && assistant()->isVisible(), long_ms);
  next();  // look
  auto* folder = in_assistant<QLineEdit>("setupFolder");
  QCOMPARE(folder->text(), fixture_->data());
  folder->setText("relative");
  QVERIFY(!in_assistant<QPushButton>("setupNext")->isEnabled());
  folder->setText(fixture_->data());
  QTRY_VERIFY(in_assistant<QLabel>("setupSpace")->text().contains("free"));
  next();  // folder
  QVERIFY(in_assistant<QRadioButton>("setupCreate")->isChecked());
  next();  // identity: the wallet is made
  auto* first_word = in_assistant<QLabel>("setupWord1");
  QTRY_VERIFY_WITH_TIMEOUT(first_word->isVisible(), long_ms);
  QStringList words;
  for (int i = 1; i <= 12; ++i)
    words << in_assistant<QLabel>(qPrintable(QString("setupWord%1").arg(i)))->text().section(' ', -1);
  next();  // written down
  auto* answer = in_assistant<QLineEdit>("setupAnswer1");
  auto* other = in_assistant<QLineEdit>("setupAnswer2");
  QTRY_VERIFY(answer->isVisible());
  answer->setText("wrong");
  other->setText("wrong");
  next();
  QVERIFY(answer->isVisible());  // wrong words are not let through
  answer->setText(words[answer->property("word").toInt()]);
  other->setText(words[other->property("word").toInt()]);
  next();
  auto* max = in_assistant<QRadioButton>("setupMax");
  QTRY_VERIFY(max->isVisible());
  max->setChecked(true);
  next();
  auto* text = in_assistant<QLineEdit>("setupText");
  QTRY_VERIFY_WITH_TIMEOUT(text->isVisible(), long_ms);
  text->setText(fixture_->path("nothing here"));
  next();
  QVERIFY(text->isVisible());
  text->setText(fixture_->path("text"));
  next();
  QTRY_VERIFY(assistant() == nullptr);
  QTRY_COMPARE_WITH_TIMEOUT(fixture_->phase(), gui::CorePhase::Running, long_ms);
  QVERIFY(fixture_->app().supervisor().status().ours);
}

void TestAppJourney::the_loss_falls() {
  auto* pill = fixture_->find<QToolButton>("state_pill");
  QTRY_VERIFY_WITH_TIMEOUT(fixture_->step() >= 3, long_ms);
  QTRY_VERIFY_WITH_TIMEOUT(pill->text().contains("Training"), long_ms);
  const auto view = fixture_->snapshot();
  QVERIFY(view->training.smoothed_loss.has_value());
  QVERIFY(view->model.experts > 1);  // the default model is a mixture of experts
}

void TestAppJourney::a_pause_from_the_tray_says_why() {
  QAction* contribute = fixture_->tray_entry("Contribute");
  QVERIFY(contribute != nullptr && contribute->isChecked());
  contribute->trigger();
  QTRY_VERIFY_WITH_TIMEOUT(fixture_->snapshot()->state == node::RunState::Paused, long_ms);
  QVERIFY(!contribute->isChecked());
  auto* pill = fixture_->find<QToolButton>("state_pill");
  QTRY_VERIFY(pill->text().contains("Paused"));
  QVERIFY2(pill->toolTip().contains("contribut"), qPrintable(pill->toolTip()));
  QVERIFY(fixture_->app().tray().view().tooltip.contains("contribut"));
  paused_at_ = fixture_->step();
}

void TestAppJourney::what_is_drawn_is_what_the_core_says() {
  const QJsonObject status = fixture_->core({"status"});
  const QJsonObject training = status["training"].toObject();
  QCOMPARE(training["step"].toInteger(), static_cast<qint64>(paused_at_));
  fixture_->app().window().open_page("training");
  ui::PlotWidget* plot = nullptr;
  const auto drawn = [&plot, this]() -> double {
    for (auto* candidate : fixture_->app().window().findChildren<ui::PlotWidget*>()) {
      if (candidate->title() == "Loss" && candidate->isVisible()) plot = candidate;
    }
    if (plot == nullptr || plot->series().empty() || plot->series()[0].points.empty()) return -1;
    return plot->series()[0].points.back().mean;
  };
  const double said = training["last_step"].toObject()["loss"].toDouble();
  QVERIFY(said > 0);
  // History keeps single precision.
  QTRY_VERIFY_WITH_TIMEOUT(std::abs(drawn() - said) < 1e-5 * said, long_ms);
  QCOMPARE(plot->series()[0].points.size(), static_cast<std::size_t>(paused_at_));

  fixture_->app().window().open_page("network");
  auto* map = fixture_->find<ui::CellGrid>("layer_map");
  QVERIFY(map != nullptr);
  const QJsonObject model = status["model"].toObject();
  const auto here = [map] {
    return std::count_if(map->content().cells.begin(), map->content().cells.end(),
                         [](const ui::GridCell& cell) { return cell.outlined; });
  };
  // Each layer with its experts, the embedding and the head: all are held here.
  const qint64 slots_of_model = model["layers"].toInteger() * (1 + model["experts"].toInteger()) + 2;
  QTRY_COMPARE_WITH_TIMEOUT(static_cast<qint64>(here()), slots_of_model, long_ms);
}

void TestAppJourney::it_goes_on() {
  fixture_->tray_entry("Contribute")->trigger();
  QTRY_VERIFY_WITH_TIMEOUT(fixture_->step() > paused_at_, long_ms);
  QVERIFY(fixture_->snapshot()->contributing);
}

void TestAppJourney::a_checkpoint_is_restored() {
  fixture_->app().window().open_page("checkpoints");
  auto* table = fixture_->find<QTableView>("checkpoint_table");
  QVERIFY(table != nullptr);
  QTRY_VERIFY_WITH_TIMEOUT(table->model()->rowCount() >= 1, long_ms);
  table->selectRow(table->model()->rowCount() - 1);
  auto* restore = fixture_->find<QPushButton>("restore");
  QTRY_VERIFY(restore->isEnabled());
  QTest::mouseClick(restore, Qt::LeftButton);
  auto* yes = fixture_->find<QPushButton>("confirm_action");
  QTRY_VERIFY((yes = fixture_->find<QPushButton>("confirm_action")) != nullptr && yes->isVisible());
  QTest::mouseClick(yes, Qt::LeftButton);
  QTRY_VERIFY_WITH_TIMEOUT(!fixture_->snapshot()->undo.checkpoint.empty(), long_ms);
  const std::uint64_t restored = fixture_->step();
  QTRY_VERIFY_WITH_TIMEOUT(fixture_->step() > restored, long_ms);
  QVERIFY(std::isfinite(*fixture_->snapshot()->training.smoothed_loss));
}

void TestAppJourney::quit_stops_the_core() {
  const std::int64_t pid = fixture_->core_pid();
  QVERIFY(platform::find_process(pid).has_value());
  QSignalSpy finished(&fixture_->app(), &gui::Application::finished);
  fixture_->app().quit();
  QTRY_COMPARE_WITH_TIMEOUT(finished.count(), 1, 20'000);
  QVERIFY(!platform::find_process(pid).has_value());
  const ProcessResult list = run_node({"checkpoint", "list", "--data-dir", fixture_->data(), "--json"});
  QVERIFY2(list.ok(), list.text().constData());  // the directory is free again
}

QTEST_MAIN(TestAppJourney)
#include "test_app_journey.moc"
