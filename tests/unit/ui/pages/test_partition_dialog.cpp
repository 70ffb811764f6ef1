// The dialog that cuts a model into blocks, driven as a user does, with the real neuroshardd behind it.
#include <QFile>
#include <QJsonArray>
#include <QJsonDocument>
#include <QJsonObject>
#include <QLineEdit>
#include <QPointer>
#include <QProcess>
#include <QScrollArea>
#include <QScrollBar>
#include <QSpinBox>
#include <QTableView>
#include <cmath>

#include "tests/support/test_main.h"
#include "tests/unit/ui/pages/page_fixture.h"
#include "tests/unit/ui/window/layout_checks.h"
#include "ui/pages/network_page.h"
#include "ui/pages/partition_bars.h"
#include "ui/pages/partition_dialog.h"
#include "ui/pages/partition_form.h"
#include "ui/pages/partition_picture.h"
#include "ui/pages/partition_words.h"
#include "ui/text/translation.h"
#include "ui/widgets/empty_state.h"

using namespace neuroshard;      // NOLINT
using namespace neuroshard::ui;  // NOLINT

namespace {

constexpr int patience = 30'000;

QString program() {
  return qEnvironmentVariable("NS_BIN_DIR") + QStringLiteral("/neuroshardd");
}

QJsonObject operation(const QString& id, double work, const QStringList& inputs) {
  return {{"id", id},
          {"op", "matmul"},
          {"work", work},
          {"param_bytes", 1048576},
          {"output_bytes", 1000000},
          {"inputs", QJsonArray::fromStringList(inputs)}};
}

// It is a child of this one until it was asked for its end.
bool running(qint64 process) {
  QFile stat(QStringLiteral("/proc/%1/stat").arg(process));
  if (!stat.open(QIODevice::ReadOnly)) return false;
  const QByteArray line = stat.readAll();
  return line.mid(line.lastIndexOf(')') + 2, 1) != "Z";
}

}  // namespace

class TestPartitionDialog : public QObject {
  Q_OBJECT
 private Q_SLOTS:
  void init();
  void cleanup() {
    delete dialog_;
    fixture_.reset();
  }
  void a_graph_is_cut_and_the_proof_is_shown();
  void what_is_asked_for();
  void limits_reach_the_answer();
  void wrong_files_are_told();
  void stop_brings_the_best_so_far();
  void closing_ends_the_program();
  void without_the_program_it_says_so();
  void a_narrow_one_needs_no_scrolling_sideways();
  void the_network_page_leads_here();
  void only_what_the_program_writes_is_read();
  void costs_tell_blocks_apart();
  void the_cores_clauses_are_translated();

 private:
  // A chain: 3, 1, 1, 1 ms, so that two blocks of equal work are the best.
  QString chain() {
    return write(QStringLiteral("chain.json"),
                 {operation("first", 3, {}), operation("second", 1, {"first"}),
                  operation("third", 1, {"second"}), operation("last", 1, {"third"})});
  }
  // Layers of nodes that all read all of the layer before, with uneven work: nothing is proved quickly.
  QString hard() {
    QJsonArray nodes;
    QStringList before;
    quint32 random = 7;
    for (int layer = 0; layer < 40; ++layer) {
      QStringList now;
      for (int i = 0; i < 12; ++i) {
        random = random * 1664525 + 1013904223;
        now << QStringLiteral("%1.%2").arg(layer).arg(i);
        nodes.append(operation(now.back(), 0.1 + (random >> 20) / 1000.0, before.mid((random >> 8) % 8, 4)));
      }
      before = now;
    }
    return write(QStringLiteral("hard.json"), nodes);
  }
  QString write(const QString& name, const QJsonArray& nodes) {
    const QString path = fixture_->folder.filePath(name);
    QFile file(path);
    if (!file.open(QIODevice::WriteOnly)) qFatal("no file");
    file.write(QJsonDocument(QJsonObject{{"unit", "ms"}, {"nodes", nodes}}).toJson());
    return path;
  }
  template <class W>
  W* find(const char* name) const {
    W* found = dialog_->findChild<W*>(QString::fromLatin1(name));
    if (found == nullptr) qFatal("there is no %s", name);
    return found;
  }
  void click(const char* name) const {
    auto* button = find<QAbstractButton>(name);
    if (!button->isEnabled() || !button->isVisible()) qFatal("%s can't be clicked", name);
    QTest::mouseClick(button, Qt::LeftButton);
  }
  QString text(const char* name) const { return find<QLabel>(name)->text(); }
  void open(const QString& path, int blocks) const {
    auto* model = find<QLineEdit>("partition_model");
    model->setText(path);
    find<QSpinBox>("partition_blocks")->setValue(blocks);
    find<QDoubleSpinBox>("partition_bandwidth")->setValue(1'000'000);  // transfers take next to nothing
  }
  void picture(const char* name) const {
    const QString folder = qEnvironmentVariable("NS_PICTURES");
    if (folder.isEmpty()) return;
    dialog_->resize(1080, 1240);
    for (const bool dark : {false, true}) {
      fixture_->theme.choose(dark ? ThemeChoice::Dark : ThemeChoice::Light);
      for (int i = 0; i < 5; ++i) QApplication::processEvents();
      dialog_->grab().save(QStringLiteral("%1/partition-%2-%3.png")
                               .arg(folder, QString::fromLatin1(name),
                                    dark ? QStringLiteral("dark") : QStringLiteral("light")));
    }
    fixture_->theme.choose(ThemeChoice::Light);
  }

  std::unique_ptr<PageFixture> fixture_;
  QPointer<PartitionDialog> dialog_;
};

void TestPartitionDialog::costs_tell_blocks_apart() {
  const QString space = QStringLiteral("\u00a0");
  QCOMPARE(cost_text(16.34, "ms"), "16.34" + space + "ms");
  QCOMPARE(cost_text(16.31, "ms"), "16.31" + space + "ms");
  QCOMPARE(cost_text(0.01634, "s"), "16.34" + space + "ms");
  QCOMPARE(cost_text(1634, "ms"), "1.634" + space + "s");
  QCOMPARE(cost_text(0.00071, "s"), "0.7100" + space + "ms");
  QCOMPARE(cost_text(12.5, "steps"), "12.50" + space + "steps");
  QCOMPARE(cost_text(std::nan(""), "ms"), QString::fromUtf8("—"));
}

void TestPartitionDialog::the_cores_clauses_are_translated() {
  const QString whole =
      "a tensor costs output_bytes / bandwidth, once per producer for each consuming block and once on "
      "output";
  QCOMPARE(convention_text("own form: work in ms; " + whole), "own form: work in ms; " + whole);
  PseudoTranslator pseudo_translator(false, this);
  QCoreApplication::installTranslator(&pseudo_translator);
  const QStringList told =
      convention_text("own form: work in ms; " + whole + "; the author's own words").split("; ");
  const QString model =
      convention_text("NeuroLLM of 6 layers, 3 of 4 parameters per token; forward pass of 128 tokens");
  QCoreApplication::removeTranslator(&pseudo_translator);
  QCOMPARE(told.size(), 3);
  QCOMPARE(told[0], pseudo("own form: work in %1").replace("%1", "ms"));
  QCOMPARE(told[1], pseudo(whole));
  QCOMPARE(told[2], QString("the author's own words"));
  QVERIFY2(model.contains("128") && model.contains('6') && !model.contains('%') && !model.contains("tokens"),
           qPrintable(model));
}

void TestPartitionDialog::init() {
  fixture_ = std::make_unique<PageFixture>();
  fixture_->theme.apply(*qApp);
  dialog_ = new PartitionDialog(fixture_->theme, program());
  dialog_->show();
}

void TestPartitionDialog::a_graph_is_cut_and_the_proof_is_shown() {
  QVERIFY(dialog_->findChild<EmptyState*>()->isVisible());
  picture("empty");
  open(chain(), 2);
  click("partition_cut");
  QVERIFY(find<QAbstractButton>("partition_stop")->isVisible());  // at once, and the window goes on
  QTRY_VERIFY_WITH_TIMEOUT(find<QLabel>("partition_headline")->isVisible(), patience);
  QVERIFY(!dialog_->findChild<EmptyState*>()->isVisible());
  QVERIFY2(text("partition_headline").startsWith(QStringLiteral("2 blocks; the slowest takes 3")),
           qPrintable(text("partition_headline")));
  QVERIFY(text("partition_headline").contains(QStringLiteral(": 333")));
  QVERIFY(text("partition_proof").startsWith(QStringLiteral("Proved optimal")));
  QVERIFY(text("partition_origin").startsWith(QStringLiteral("4 nodes, 3 edges")));
  // Both bars are as long as the scale: work alone.
  auto* bars = find<PartitionBars>("partition_bars");
  QVERIFY(std::abs(bars->part_rect(0, 1).width() - bars->part_rect(1, 1).width()) < 0.5);
  QVERIFY(bars->part_rect(0, 1).width() > 100);
  QVERIFY(bars->accessibleDescription().contains(QStringLiteral("Block 2")));
  auto* blocks = find<QTableView>("partition_block_table");
  QCOMPARE(blocks->model()->rowCount(), 2);
  QCOMPARE(blocks->model()->index(1, 1).data().toString(), QStringLiteral("second"));
  QCOMPARE(find<QTableView>("partition_node_table")->model()->rowCount(), 4);
  click("partition_graph_twin");
  QVERIFY(find<QTableView>("partition_node_table")->isVisible());
  click("partition_graph_twin");
  // The columns of the picture are in the two blocks' colours, whatever the theme.
  auto* drawn = find<PartitionPicture>("partition_picture");
  const auto colours = [&] {
    const QImage image = drawn->canvas().grab().toImage();
    QSet<QRgb> all;
    for (int y = 0; y < image.height(); ++y)
      for (int x = 0; x < image.width(); ++x) all.insert(image.pixel(x, y));
    return all;
  };
  for (const bool dark : {false, true}) {
    fixture_->theme.choose(dark ? ThemeChoice::Dark : ThemeChoice::Light);
    const QSet<QRgb> all = colours();
    for (const std::size_t block : {0u, 1u})
      QVERIFY(all.contains(
          mix(fixture_->theme.color(Token::Surface), block_colour(fixture_->theme, block), 0.22).rgb()));
  }
  picture("small");
  const double zoom = drawn->zoom();
  drawn->set_zoom(zoom * 2);
  QCOMPARE(drawn->zoom(), 2 * zoom);
  drawn->fit(true);
  QCOMPARE(drawn->zoom(), zoom);
}

void TestPartitionDialog::what_is_asked_for() {
  open(QStringLiteral("/models/net.pt"), 3);
  auto* details = find<QLineEdit>("partition_details");
  QVERIFY(details->isVisible());
  details->setText(QStringLiteral("1x3x8x8  4x16:int64:100"));
  find<QDoubleSpinBox>("partition_memory")->setValue(2);
  find<QDoubleSpinBox>("partition_bandwidth")->setValue(12.5);
  find<QSpinBox>("partition_time")->setValue(20);
  const QStringList script = dialog_->form().request().arguments(QStringLiteral("out"));
  QCOMPARE(script,
           QStringList({"partition", "--json", "--graph", "/models/net.pt", "--k", "3", "--layout", "out",
                        "--time-limit", "20", "--end-with-stdin", "--memory", "2147483648", "--bandwidth",
                        "12500000", "--input-shape", "1x3x8x8", "--input-shape", "4x16:int64:100"}));
  open(QStringLiteral("/models/net.onnx"), 3);
  details->setText(QStringLiteral("batch=8"));
  QVERIFY(dialog_->form().request().arguments({}).join(u' ').endsWith(QStringLiteral("--dim batch=8")));
  // The cost of a transfer: a model needs a network, a graph file may say it itself.
  QVERIFY(dialog_->form().request().bandwidth > 0);
  open(QStringLiteral("model:solo"), 3);
  QVERIFY(!details->isVisible());
  QVERIFY(!dialog_->form().request().arguments({}).contains(QStringLiteral("--dim")));
}

void TestPartitionDialog::limits_reach_the_answer() {
  open(chain(), 2);
  // 1 MB through 1 MB/s is a second: one block is better, and it holds 4 MiB and what passes through it.
  find<QDoubleSpinBox>("partition_bandwidth")->setValue(1);
  click("partition_cut");
  QTRY_VERIFY_WITH_TIMEOUT(text("partition_headline").startsWith(QStringLiteral("One block, which takes 6")),
                           patience);
  // A table can say it too.
  QCOMPARE(find<QTableView>("partition_block_table")->model()->rowCount(), 1);
}

void TestPartitionDialog::wrong_files_are_told() {
  click("partition_cut");
  QVERIFY(text("partition_state").contains(QStringLiteral("Open a model file")));
  open(fixture_->folder.filePath(QStringLiteral("none.json")), 2);
  click("partition_cut");
  QTRY_VERIFY_WITH_TIMEOUT(text("partition_state").contains(QStringLiteral("none.json")), patience);
  QVERIFY(find<QAbstractButton>("partition_cut")->isVisible());
  open(chain(), 9);
  click("partition_cut");
  QTRY_VERIFY_WITH_TIMEOUT(text("partition_state").contains(QStringLiteral("4 nodes")), patience);
  // Options of the program are boxes here.
  open(chain(), 2);
  find<QDoubleSpinBox>("partition_bandwidth")->setValue(0);
  click("partition_cut");
  QTRY_VERIFY_WITH_TIMEOUT(text("partition_state").contains(QStringLiteral("the bandwidth above")), patience);
  QCOMPARE(find<QLabel>("partition_state")->property("role").toString(), QStringLiteral("danger"));
  QVERIFY(!text("partition_state").contains(u'{'));
  QVERIFY(dialog_->findChild<EmptyState*>()->isVisible());
  picture("error");
}

void TestPartitionDialog::stop_brings_the_best_so_far() {
  open(hard(), 8);
  find<QDoubleSpinBox>("partition_bandwidth")->setValue(1000);
  find<QSpinBox>("partition_time")->setValue(3600);
  click("partition_cut");
  QTRY_VERIFY_WITH_TIMEOUT(text("partition_state").startsWith(QStringLiteral("Reading and searching, 2")),
                           patience);
  picture("running");
  click("partition_stop");
  QTRY_VERIFY_WITH_TIMEOUT(find<QLabel>("partition_headline")->isVisible(), patience);
  QVERIFY(text("partition_headline").startsWith(QStringLiteral("8 blocks")));
  QVERIFY2(text("partition_proof").startsWith(QStringLiteral("Gap ")) &&
               text("partition_proof").contains(QStringLiteral("stopped")),
           qPrintable(text("partition_proof")));
  QCOMPARE(find<QTableView>("partition_node_table")->model()->rowCount(), 480);
  picture("large");
}

void TestPartitionDialog::closing_ends_the_program() {
  open(hard(), 8);
  find<QDoubleSpinBox>("partition_bandwidth")->setValue(1000);
  find<QSpinBox>("partition_time")->setValue(3600);
  click("partition_cut");
  QTRY_VERIFY_WITH_TIMEOUT(text("partition_state").startsWith(QStringLiteral("Reading and searching, 1")),
                           patience);
  const qint64 process = dialog_->process();
  QVERIFY(process > 0 && running(process));
  // Should this program crash, the search sees its input end.
  QVERIFY(QFile::symLinkTarget(QStringLiteral("/proc/%1/fd/0").arg(process)).contains(u"pipe:"));
  dialog_->close();
  QTRY_VERIFY(dialog_.isNull());
  QTRY_VERIFY_WITH_TIMEOUT(!running(process), patience);
}

void TestPartitionDialog::without_the_program_it_says_so() {
  delete dialog_;
  dialog_ = new PartitionDialog(fixture_->theme, {});
  dialog_->show();
  QVERIFY(!find<QAbstractButton>("partition_cut")->isEnabled());
  QVERIFY(text("partition_state").contains(QStringLiteral("neuroshardd was not found")));
  delete dialog_;
  dialog_ = new PartitionDialog(fixture_->theme, fixture_->folder.filePath(QStringLiteral("nothing")));
  dialog_->show();
  open(chain(), 2);
  click("partition_cut");
  QTRY_COMPARE(find<QLabel>("partition_state")->property("role").toString(), QStringLiteral("danger"));
  QVERIFY(find<QAbstractButton>("partition_cut")->isVisible());
}

// In a language a third longer than English, on the narrowest window.
void TestPartitionDialog::a_narrow_one_needs_no_scrolling_sideways() {
  PseudoTranslator longer(false, nullptr);
  QCoreApplication::installTranslator(&longer);
  delete dialog_;
  dialog_ = new PartitionDialog(fixture_->theme, program());
  dialog_->resize(640, 600);
  dialog_->show();
  const auto* scroll = dialog_->findChild<QScrollArea*>({}, Qt::FindDirectChildrenOnly);
  const auto too_wide = [scroll] { return scroll->horizontalScrollBar()->maximum(); };
  QTRY_COMPARE(too_wide(), 0);
  open(QStringLiteral("model.pt"), 2);  // asks for the most
  QTRY_VERIFY(find<QLineEdit>("partition_details")->isVisible());
  QTRY_COMPARE(too_wide(), 0);
  QTRY_COMPARE(clipped(dialog_).join('\n'), QString());
  open(chain(), 2);
  click("partition_cut");
  QTRY_VERIFY_WITH_TIMEOUT(find<QLabel>("partition_headline")->isVisible(), patience);
  QTRY_COMPARE(too_wide(), 0);
  QTRY_COMPARE(clipped(dialog_).join('\n'), QString());
  // With enough room all limits are in one line.
  dialog_->resize(1080, 800);
  QTRY_COMPARE(find<QSpinBox>("partition_time")->mapTo(dialog_, QPoint()).y(),
               find<QSpinBox>("partition_blocks")->mapTo(dialog_, QPoint()).y());
}

void TestPartitionDialog::the_network_page_leads_here() {
  fixture_->core_program = program();
  fixture_->show<NetworkPage>();
  fixture_->click("open_partition");
  auto* opened = fixture_->page->window()->findChild<PartitionDialog*>();
  QVERIFY(opened != nullptr && opened->isVisible() && !opened->isModal());
  QVERIFY(opened->findChild<QAbstractButton*>(QStringLiteral("partition_cut"))->isEnabled());
}

void TestPartitionDialog::only_what_the_program_writes_is_read() {
  const QByteArray report = R"({"bottleneck":1,"gap":null,"blocks":[{"cost":1,"nodes":["a"]}]})";
  const QByteArray layout =
      R"({"width":9,"height":9,"top":1,"box":[1,1],"columns":[{"left":0,"width":9,"bottom":9}],
    "nodes":[{"id":"a","block":0}],"edges":[]})";
  QVERIFY(parse_partition(report, layout));
  QVERIFY(std::isinf(parse_partition(report, layout)->gap));
  QVERIFY(!parse_partition("", layout) && !parse_partition(report, "") && !parse_partition("[]", layout));
  QByteArray wrong = layout;
  QVERIFY(!parse_partition(report, wrong.replace("\"block\":0", "\"block\":1")));
  wrong = layout;
  QVERIFY(!parse_partition(report, wrong.replace("\"edges\":[]", "\"edges\":[[0,1]]")));
  wrong = layout;
  QVERIFY(!parse_partition(report, wrong.replace("\"columns\":[{", "\"columns\":[],\"x\":[{")));
}

NS_UI_TEST(TestPartitionDialog)
#include "test_partition_dialog.moc"
