// The first minutes of a person with the app: set it up, see the loss fall, pause it from the tray, see why,
// go on, quit. The real window drives a real core: the default model of the profile "solo".
#include <QAction>
#include <QJsonArray>
#include <QLabel>
#include <QLineEdit>
#include <QMap>
#include <QMenu>
#include <QPushButton>
#include <QRadioButton>
#include <QToolButton>

#include "tests/gui/support/app_fixture.h"
#include "tests/support/test_main.h"
#include "ui/text/format.h"
#include "ui/widgets/cell_grid.h"
#include "ui/widgets/plot_widget.h"
#include "ui/wizard/setup_dialog.h"

using namespace neuroshard;        // NOLINT
using namespace neuroshard::test;  // NOLINT

class TestAppJourney : public QObject {
  Q_OBJECT
 private Q_SLOTS:
  void initTestCase() { fixture_ = std::make_unique<AppFixture>(); }
  void cleanupTestCase() { fixture_.reset(); }
  void init() {
    if (failed_) QSKIP("the step before failed");
  }
  void cleanup() {
    if (!QTest::currentTestFailed()) return;
    failed_ = true;
    fixture_->tell();
  }
  void the_assistant_sets_it_up();
  void starting_is_calm();
  void it_trains();
  void a_pause_from_the_tray_says_why();
  void what_is_drawn_is_what_the_core_says();
  void the_map_is_what_the_core_says();
  void it_goes_on_and_the_loss_falls();
  void quit_stops_the_core();

 private:
  ui::SetupDialog* assistant() { return fixture_->app().window().findChild<ui::SetupDialog*>(); }
  template <class Widget>
  Widget* in_assistant(const char* name) {
    return assistant()->findChild<Widget*>(name);
  }
  void next() {
    auto* button = in_assistant<QPushButton>("setupNext");
    NS_WAIT_FOR(patience_, button->isEnabled());
    QTest::mouseClick(button, Qt::LeftButton);
  }
  // Asks the core itself, in a process of its own, for its last step.
  void remember_loss() {
    const QJsonObject step = fixture_->core({"status"})["training"].toObject()["last_step"].toObject();
    if (!step.isEmpty()) said_[step["step"].toInteger()] = step["loss"].toDouble();
  }

  const Patience patience_{110'000};  // half a minute; several times that when much else runs
  std::unique_ptr<AppFixture> fixture_;
  std::vector<std::pair<QString, QString>> start_pills_;  // word and tone, until the core answered
  QMap<qint64, double> said_;                             // losses by step, as the core's JSON has them
  std::uint64_t paused_at_ = 0;
  bool failed_ = false;
};

void TestAppJourney::the_assistant_sets_it_up() {
  fixture_->start();
  connect(&fixture_->app().supervisor(), &gui::CoreSupervisor::status_changed, this, [this] {
    if (fixture_->phase() == gui::CorePhase::Running) return;
    const auto* pill = fixture_->find<QToolButton>("state_pill");
    start_pills_.emplace_back(pill->text(), pill->property("tone").toString());
  });
  NS_WAIT_FOR(patience_, assistant() != nullptr && assistant()->isVisible());
  // Nothing runs yet, and nothing is wrong.
  QVERIFY2(fixture_->app().tray().view().display == ui::DisplayState::Idle,
           qPrintable(fixture_->app().tray().view().status));
  next();  // look
  auto* folder = in_assistant<QLineEdit>("setupFolder");
  QCOMPARE(folder->text(), fixture_->data());
  folder->setText("relative");
  QVERIFY(!in_assistant<QPushButton>("setupNext")->isEnabled());
  folder->setText(fixture_->data());
  NS_WAIT_FOR(patience_, in_assistant<QLabel>("setupSpace")->text().contains("free"));
  next();  // folder
  QVERIFY(in_assistant<QRadioButton>("setupCreate")->isChecked());
  next();  // identity: the wallet is made
  auto* first_word = in_assistant<QLabel>("setupWord1");
  NS_WAIT_FOR(patience_, first_word->isVisible());
  QStringList words;
  for (int i = 1; i <= 12; ++i)
    words << in_assistant<QLabel>(qPrintable(QString("setupWord%1").arg(i)))->text().section(' ', -1);
  next();  // written down
  auto* answer = in_assistant<QLineEdit>("setupAnswer1");
  auto* other = in_assistant<QLineEdit>("setupAnswer2");
  NS_WAIT_FOR(patience_, answer->isVisible());
  answer->setText("wrong");
  other->setText("wrong");
  next();
  QVERIFY(answer->isVisible());  // wrong words are not let through
  answer->setText(words[answer->property("word").toInt()]);
  other->setText(words[other->property("word").toInt()]);
  next();
  auto* max = in_assistant<QRadioButton>("setupMax");
  NS_WAIT_FOR(patience_, max->isVisible());
  max->setChecked(true);
  next();
  auto* text = in_assistant<QLineEdit>("setupText");
  NS_WAIT_FOR(patience_, text->isVisible());
  QVERIFY(in_assistant<QRadioButton>("setupSample")->isChecked());
  text->setText(fixture_->path("nothing here"));
  next();
  QVERIFY(text->isVisible());
  // Nobody who tries the program has to look for text.
  text->clear();
  auto* sample = in_assistant<QRadioButton>("setupSample");
  QVERIFY(sample->isVisible());
  sample->setChecked(true);
  next();
  NS_WAIT_FOR(patience_, assistant() == nullptr);
  NS_WAIT_FOR(patience_, fixture_->phase() == gui::CorePhase::Running);
  QVERIFY(fixture_->app().supervisor().status().ours);
}

// Nothing is wrong while the core comes up, so nothing is red.
void TestAppJourney::starting_is_calm() {
  bool starting = false;
  for (const auto& [text, tone] : start_pills_) {
    QVERIFY2(tone != "danger", qPrintable("the pill said in red: " + text));
    starting = starting || text == "Starting";
  }
  QVERIFY(starting);
}

void TestAppJourney::it_trains() {
  NS_WAIT_FOR(patience_, fixture_->step() >= 1);
  remember_loss();
  NS_WAIT_FOR(patience_, fixture_->pill().contains("Training"));
  const auto view = fixture_->snapshot();
  QVERIFY(view->training.smoothed_loss.has_value());
  QVERIFY(view->model.experts > 1);  // the default model is a mixture of experts
}

void TestAppJourney::a_pause_from_the_tray_says_why() {
  QAction* contribute = fixture_->tray_entry("Contribute");
  QVERIFY(contribute != nullptr && contribute->isEnabled() && contribute->isChecked());
  contribute->trigger();
  NS_WAIT_FOR(patience_, fixture_->snapshot()->state == node::RunState::Paused);
  QVERIFY(!contribute->isChecked());
  NS_WAIT_FOR(patience_, fixture_->pill().contains("Paused"));
  const auto* pill = fixture_->find<QToolButton>("state_pill");
  QVERIFY2(pill->toolTip().contains("contribut"), qPrintable(pill->toolTip()));
  QVERIFY(fixture_->app().tray().view().tooltip.contains("contribut"));
  paused_at_ = fixture_->step();
}

void TestAppJourney::what_is_drawn_is_what_the_core_says() {
  const QJsonObject status = fixture_->core({"status"});
  const QJsonObject training = status["training"].toObject();
  QCOMPARE(training["step"].toInteger(), static_cast<qint64>(paused_at_));
  remember_loss();
  fixture_->app().window().open_page("training");
  // By step; whole when each step has its point.
  const auto drawn = [this] {
    QMap<qint64, double> points;
    for (const auto* plot : fixture_->app().window().findChildren<ui::PlotWidget*>()) {
      if (plot->title() != "Loss" || !plot->isVisible() || plot->series().empty()) continue;
      for (const ui::PlotPoint& point : plot->series()[0].points)
        points[static_cast<qint64>(point.x)] = point.mean;
    }
    return points;
  };
  NS_WAIT_FOR(patience_, drawn().size() == static_cast<qsizetype>(paused_at_));
  QVERIFY(said_.contains(static_cast<qint64>(paused_at_)));
  for (auto at = said_.begin(); at != said_.end(); ++at) {
    // History keeps single precision.
    QVERIFY2(std::abs(drawn()[at.key()] - at.value()) < 1e-5 * at.value(),
             qPrintable(QString("step %1: %2 is drawn, the core says %3")
                            .arg(at.key())
                            .arg(drawn()[at.key()])
                            .arg(at.value())));
  }
}

// Each slot in its place, with what it holds and takes; each expert with its load. Paused: nothing changes
// meanwhile.
void TestAppJourney::the_map_is_what_the_core_says() {
  const QJsonObject model = fixture_->core({"status"})["model"].toObject();
  const QJsonObject map = fixture_->core({"status", "--map"}, 1);
  const QJsonArray all = map["slots"].toArray(), loads = map["experts"].toArray();
  const int layers = model["layers"].toInt(), experts = model["experts"].toInt();
  QCOMPARE(all.size(), layers * (1 + experts) + 2);  // each layer and its experts, the embedding, the head
  QCOMPARE(loads.size(), layers * experts);

  fixture_->app().window().open_page("network");
  const auto* slots_drawn = fixture_->find<ui::CellGrid>("layer_map");
  NS_WAIT_FOR(patience_, !slots_drawn->content().cells.empty());
  qsizetype cells = 0;
  for (const ui::GridCell& cell : slots_drawn->content().cells) cells += cell.description.isEmpty() ? 0 : 1;
  QCOMPARE(cells, all.size());
  for (const auto& one : all) {
    const QJsonObject slot = one.toObject();
    const QString kind = slot["kind"].toString();
    const qsizetype columns = slots_drawn->content().columns.size();
    const qsizetype row = kind == "expert" ? slot["expert"].toInt() + 1 : 0;
    const qsizetype column = kind == "embed" ? 0 : kind == "head" ? columns - 1 : slot["layer"].toInt() + 1;
    const ui::GridCell& cell = slots_drawn->content().cells[static_cast<std::size_t>(row * columns + column)];
    const QString nodes = slot["replicas"].isNull()
                              ? ui::Format::dash()
                              : ui::Format::integer(static_cast<std::uint64_t>(slot["replicas"].toInteger()));
    QCOMPARE(cell.text, nodes);
    QCOMPARE(cell.outlined, slot["mine"].toBool());
    for (const QString& text : {ui::Format::si(slot["parameters"].toDouble()) + " parameters",
                                ui::Format::bytes(static_cast<std::uint64_t>(slot["bytes"].toInteger()))})
      QVERIFY2(cell.description.contains(text), qPrintable(cell.description + " lacks " + text));
  }

  fixture_->app().window().open_page("experts");
  const auto* loads_drawn = fixture_->find<ui::CellGrid>("expert_matrix");
  NS_WAIT_FOR(patience_, static_cast<qsizetype>(loads_drawn->content().cells.size()) == loads.size());
  QStringList differing;
  const auto compare = [&] {
    differing.clear();
    for (const auto& one : loads) {
      const QJsonObject load = one.toObject();
      const ui::GridCell& cell =
          loads_drawn->content()
              .cells[static_cast<std::size_t>(load["layer"].toInt() * experts + load["expert"].toInt())];
      const QString even = QLocale().toString(load["share"].toDouble() * experts, 'f', 2);
      const QString share = ui::Format::percent(load["share"].toDouble()) + " of the layer";
      const QString tokens = ui::Format::si(load["tokens"].toDouble()) + " tokens";
      if (cell.text != even || cell.outlined != load["mine"].toBool() || !cell.description.contains(share) ||
          !cell.description.contains(tokens))
        differing << cell.description + " / the core: " + even + ", " + share + ", " + tokens;
    }
    return differing.isEmpty();
  };
  QVERIFY2(QTest::qWaitFor(compare, patience_.left_ms()), qPrintable(differing.join('\n')));
  double sum = 0;  // and not all zero
  for (const auto& one : loads) sum += one.toObject()["share"].toDouble();
  QVERIFY2(std::abs(sum - layers) < 1e-3, qPrintable(QString::number(sum)));
}

void TestAppJourney::it_goes_on_and_the_loss_falls() {
  fixture_->tray_entry("Contribute")->trigger();
  NS_WAIT_FOR(patience_, fixture_->step() > paused_at_);
  QVERIFY(fixture_->snapshot()->contributing);
  remember_loss();
  QVERIFY(said_.lastKey() > static_cast<qint64>(paused_at_));
  QVERIFY2(said_.last() < said_.first(),
           qPrintable(QString("%1, then %2").arg(said_.first()).arg(said_.last())));
}

void TestAppJourney::quit_stops_the_core() {
  const std::int64_t pid = fixture_->core_pid();
  QVERIFY(platform::find_process(pid).has_value());
  QSignalSpy finished(&fixture_->app(), &gui::Application::finished);
  fixture_->app().quit();
  NS_WAIT_FOR(patience_, finished.count() == 1);
  QVERIFY(!platform::find_process(pid).has_value());
  const ProcessResult list = run_node({"checkpoint", "list", "--data-dir", fixture_->data(), "--json"});
  QVERIFY2(list.ok(), list.text().constData());  // the directory is free again
}

NS_UI_TEST(TestAppJourney)
#include "test_app_journey.moc"
