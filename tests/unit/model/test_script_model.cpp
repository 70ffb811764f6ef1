// TorchScript models in the compute module: their graphs, and their results in blocks, against what Python's
// PyTorch computed (tests/golden/make_script_models.py writes both).
#include <QDir>
#include <QFile>
#include <QJsonArray>
#include <QJsonDocument>
#include <QJsonObject>
#include <QProcess>
#include <QTemporaryDir>
#include <QTest>
#include <cstring>
#include <set>

#include "tests/support/test_main.h"
#include "tests/unit/model/model_test.h"
#include "tests/unit/model/script_golden.h"

using namespace neuroshard;              // NOLINT
using namespace neuroshard::model_test;  // NOLINT

namespace {

Span<const std::uint8_t> view(const QByteArray& bytes) {
  return {reinterpret_cast<const std::uint8_t*>(bytes.constData()), static_cast<std::size_t>(bytes.size())};
}

}  // namespace

class TestScriptModel : public QObject {
  Q_OBJECT
 private Q_SLOTS:
  void initTestCase();
  void blocks_give_what_python_gives_data();
  void blocks_give_what_python_gives();
  void graph_has_what_the_model_has();
  void nodes_are_named_as_in_the_source();
  void names_that_two_lists_share_have_no_list();
  void a_block_may_have_no_results();
  void a_block_without_inputs_is_started();
  void in_place_and_views_stay_together();
  void impossible_cuts_are_refused();
  void wrong_files_are_refused_data();
  void wrong_files_are_refused();
  void wrong_inputs_are_refused();
  void damaged_messages_are_refused();
  void timed_beside_others_it_is_the_same_model();

 private:
  QByteArray bytes_of(const QString& name) const {
    QFile file(folder_.filePath(name));
    return file.open(QIODevice::ReadOnly) ? file.readAll() : QByteArray();
  }
  Golden golden(const QString& name) const { return read_golden(QDir(folder_.path()), name); }
  compute::ScriptModelPtr open(const Golden& model, std::uint32_t companions = 0) {
    const MemoryHost host(model.file.constData(), static_cast<std::size_t>(model.file.size()));
    compute::ScriptOptions options;
    options.samples = model.samples;
    options.passes = 1;
    options.companions = companions;
    auto opened = compute::open_script(*module_, host, options);
    if (!opened.ok()) qWarning("%s", opened.error().describe().c_str());
    return opened.ok() ? std::move(*opened) : nullptr;
  }
  // Blocks of about equal numbers of nodes that keep groups whole and let nothing flow backwards.
  static std::vector<std::uint32_t> even_blocks(const compute::ScriptModel& model, std::uint32_t blocks) {
    const std::uint32_t n = model.node_count();
    std::vector<std::uint32_t> block(n);
    for (std::uint32_t i = 0; i < n; ++i) block[i] = i * blocks / n;
    for (bool changed = true; changed;) {
      changed = false;
      const auto raise = [&](std::uint32_t node, std::uint32_t to) {
        changed = changed || block[node] < to;
        block[node] = std::max(block[node], to);
      };
      for (std::uint32_t i = 0; i < n; ++i) {
        for (const std::uint32_t input : model.node(i).inputs) raise(i, block[input]);
      }
      for (std::uint32_t g = 0; g < model.group_count(); ++g) {
        for (const std::uint32_t a : model.group(g)) {
          for (const std::uint32_t b : model.group(g)) raise(a, block[b]);
        }
      }
    }
    return block;
  }
  void run_blocks(compute::ScriptModel& model, std::uint32_t blocks, std::vector<QByteArray>* messages);
  void compare_with_python(const compute::ScriptModel& model, const Golden& golden,
                           const std::vector<QByteArray>& messages);

  QTemporaryDir folder_;
  Module* module_ = nullptr;
};

void TestScriptModel::initTestCase() {
  QVERIFY(folder_.isValid());
  QProcess python;
  python.start("/usr/bin/python3", {NS_SCRIPT_MODELS, folder_.path()});
  QVERIFY(python.waitForStarted() && python.waitForFinished(60'000));
  if (python.exitCode() == 77) QSKIP("Python has no PyTorch here, so there are no models to read.");
  QVERIFY2(python.exitCode() == 0, python.readAllStandardError().constData());
  const auto loaded = load(1);
  QVERIFY2(loaded.ok(), loaded.ok() ? "" : loaded.error().describe().c_str());
  module_ = loaded->module;
}

// Each block from its own file, messages passed by hand. The driver's links keep their messages.
void TestScriptModel::run_blocks(compute::ScriptModel& model, std::uint32_t blocks,
                                 std::vector<QByteArray>* messages) {
  messages->assign(model.link_count(), {});
  for (std::uint32_t i = 0; i < model.link_count(); ++i) {
    if (model.link(i).from != compute::script_driver) continue;
    Span<const std::uint8_t> message;
    QVERIFY(model.driver_message(0, i, &message).ok());
    (*messages)[i] = QByteArray(reinterpret_cast<const char*>(message.data()), qsizetype(message.size()));
  }
  for (std::uint32_t b = 0; b < blocks; ++b) {
    Span<const std::uint8_t> file;
    const Status written = model.block_file(b, &file);
    QVERIFY2(written.ok(), written.message);
    const MemoryHost host(file.data(), file.size());
    const auto block = compute::open_script_block(*module_, host);
    QVERIFY2(block.ok(), block.ok() ? "" : block.error().describe().c_str());
    std::uint32_t first = 0;
    for (std::uint32_t i = 0; i < model.link_count(); ++i) {
      if (model.link(i).to != b) continue;
      QVERIFY(model.link(i).from == compute::script_driver || model.link(i).from < b);
      const Status taken = (*block)->take(first, model.link(i).values, view((*messages)[i]));
      QVERIFY2(taken.ok(), taken.message);
      first += model.link(i).values;
    }
    QCOMPARE(first, (*block)->input_count());
    const Status ran = (*block)->run();
    QVERIFY2(ran.ok(), ran.message);
    first = 0;
    for (std::uint32_t i = 0; i < model.link_count(); ++i) {
      if (model.link(i).from != b) continue;
      Span<const std::uint8_t> message;
      const Status given = (*block)->give(first, model.link(i).values, &message);
      QVERIFY2(given.ok(), given.message);
      (*messages)[i] = QByteArray(reinterpret_cast<const char*>(message.data()), qsizetype(message.size()));
      first += model.link(i).values;
    }
  }
}

// Every real tensor that Python gave is found, value by value, in what came to the driver. Messages hold
// tensors dense and at multiples of 64 bytes (core/model/script_values.h).
void TestScriptModel::compare_with_python(const compute::ScriptModel& model, const Golden& golden,
                                          const std::vector<QByteArray>& messages) {
  qsizetype at = 0;
  for (const QJsonValue& result : golden.description["results"].toArray()) {
    const QString dtype = result["dtype"].toString();
    const qint64 count = elements(result.toObject());
    const qsizetype bytes = count * qsizetype(width_of(dtype));
    const char* expected = golden.out.constData() + at;
    at += bytes;
    if (dtype != "float32") continue;
    bool found = false;
    for (std::uint32_t i = 0; i < model.link_count() && !found; ++i) {
      if (model.link(i).to != compute::script_driver) continue;
      for (qsizetype offset = 64; offset + bytes <= messages[i].size() && !found; offset += 64) {
        bool same = true;
        for (qint64 e = 0; e < count && same; ++e) {
          float a = 0, b = 0;
          std::memcpy(&a, messages[i].constData() + offset + e * 4, 4);
          std::memcpy(&b, expected + e * 4, 4);
          same = std::abs(a - b) <= 1e-5f * std::max(1.0f, std::abs(b));
        }
        found = same;
      }
    }
    QVERIFY2(found, "a result of Python's is not among those of the blocks");
  }
  QCOMPARE(at, golden.out.size());
}

void TestScriptModel::blocks_give_what_python_gives_data() {
  QTest::addColumn<QString>("name");
  for (const char* name :
       {"perceptron", "convolutional", "encoder", "scripted", "control", "checked", "frozen"})
    QTest::newRow(name) << name;
}

void TestScriptModel::blocks_give_what_python_gives() {
  QFETCH(QString, name);
  const Golden data = golden(name);
  const auto model = open(data);
  QVERIFY(model != nullptr);
  const Status made = model->make_batches(1);
  QVERIFY2(made.ok(), made.message);
  for (const std::uint32_t blocks : {1u, 2u, 4u}) {
    const auto block_of = even_blocks(*model, blocks);
    const Status cut = model->cut(block_of, blocks);
    QVERIFY2(cut.ok(), cut.message);
    std::vector<QByteArray> messages;
    run_blocks(*model, blocks, &messages);
    if (QTest::currentTestFailed()) return;
    compute::ScriptDeviation deviation;
    std::uint32_t results = 0;
    for (std::uint32_t i = 0; i < model->link_count(); ++i) {
      if (model->link(i).to != compute::script_driver) continue;
      ++results;
      const Status compared = model->compare(0, i, view(messages[i]), &deviation);
      QVERIFY2(compared.ok(), compared.message);
    }
    QVERIFY(results > 0);
    QVERIFY2(deviation.relative <= 1e-5, QByteArray::number(deviation.relative).constData());
    compare_with_python(*model, data, messages);
    if (QTest::currentTestFailed()) return;
    if (blocks > 1) QVERIFY(std::set<std::uint32_t>(block_of.begin(), block_of.end()).size() > 1);
  }
}

void TestScriptModel::graph_has_what_the_model_has() {
  const auto model = open(golden("perceptron"));
  QVERIFY(model != nullptr);
  double operations = 0, parameters = 0;
  std::set<QByteArray> ids;
  for (std::uint32_t i = 0; i < model->node_count(); ++i) {
    const compute::ScriptNode node = model->node(i);
    operations += node.operations;
    parameters += node.param_bytes;
    ids.insert(node.id);
    for (const std::uint32_t input : node.inputs) QVERIFY(input < i);
    QVERIFY(node.seconds >= 0 && node.seconds < 1);
  }
  QCOMPARE(ids.size(), std::size_t{model->node_count()});
  QCOMPARE(model->node_count(), 8u);  // the argument, four layers, three activations
  QCOMPARE(operations, 2.0 * 8 * (64 * 256 + 256 * 256 + 256 * 128 + 128 * 10));
  QCOMPARE(parameters, 4.0 * (64 * 256 + 256 * 256 + 256 * 128 + 128 * 10 + 256 + 256 + 128 + 10));
  QCOMPARE(model->node(0).output_bytes, 8.0 * 64 * 4);
  QCOMPARE(model->node(1).output_bytes, 8.0 * 256 * 4);
  QCOMPARE(QByteArray(model->node(1).op), QByteArray("aten::linear"));
}

void TestScriptModel::nodes_are_named_as_in_the_source() {
  const auto model = open(golden("convolutional"));
  QVERIFY(model != nullptr);
  QByteArray ids;
  for (std::uint32_t i = 0; i < model->node_count(); ++i) ids += QByteArray(model->node(i).id) + '\n';
  QVERIFY2(!ids.contains("SELF") && !ids.contains("UNKNOWN"), ids.constData());
  // A list's modules, what has equal parameters twice, and what has none.
  for (const char* name : {" stem conv2d\n", " blocks.1.conv2 conv2d\n", " blocks.2.norm1 batch_norm\n",
                           " blocks.0 add\n", " head linear\n"})
    QVERIFY2(ids.contains(name), (name + ids).constData());
}

// An operation without parameters gets the list's name from its module's others, if they agree.
void TestScriptModel::names_that_two_lists_share_have_no_list() {
  const auto model = open(golden("lists"));
  QVERIFY(model != nullptr);
  QByteArray ids;
  for (std::uint32_t i = 0; i < model->node_count(); ++i) ids += QByteArray(model->node(i).id) + '\n';
  for (const char* name : {" first.0.conv1 conv2d\n", " second.0.conv2 conv2d\n", " 0 add\n"})
    QVERIFY2(ids.contains(name), (name + ids).constData());
  QVERIFY2(!ids.contains("first.0 add") && !ids.contains("second.0 add"), ids.constData());
}

// The check of the values alone behind everything else: what it reads is sent to it, and nothing comes back.
void TestScriptModel::a_block_may_have_no_results() {
  const Golden data = golden("checked");
  const auto model = open(data);
  QVERIFY(model != nullptr);
  QVERIFY(model->make_batches(1).ok());
  std::vector<std::uint32_t> block_of(model->node_count(), 0);
  const auto largest = [&] {
    for (std::uint32_t i = 0; i < model->node_count(); ++i)
      if (QByteArray(model->node(i).op) == "aten::max") return i;
    return UINT32_MAX;
  }();
  QVERIFY(largest != UINT32_MAX);
  block_of[largest] = 1;
  const Status cut = model->cut(block_of, 2);
  QVERIFY2(cut.ok(), cut.message);
  std::vector<QByteArray> messages;
  run_blocks(*model, 2, &messages);
  if (QTest::currentTestFailed()) return;
  for (std::uint32_t i = 0; i < model->link_count(); ++i) QVERIFY(model->link(i).from != 1);
  compare_with_python(*model, data, messages);
}

// A worker runs its block for each message, so a block that reads nothing gets empty ones.
void TestScriptModel::a_block_without_inputs_is_started() {
  const auto model = open(golden("perceptron"));
  QVERIFY(model != nullptr);
  QVERIFY(model->make_batches(1).ok());
  const Status cut = model->cut(std::vector<std::uint32_t>(model->node_count(), 1), 2);
  QVERIFY2(cut.ok(), cut.message);
  std::vector<std::uint32_t> incoming(2, 0);
  for (std::uint32_t i = 0; i < model->link_count(); ++i) {
    const compute::ScriptLink link = model->link(i);
    if (link.to == compute::script_driver) continue;
    ++incoming[link.to];
    QCOMPARE(link.from, compute::script_driver);
    Span<const std::uint8_t> message;
    QVERIFY(model->driver_message(0, i, &message).ok());
    QCOMPARE(message.size() == 0, link.to == 0);
    QCOMPARE(link.values, link.to);
  }
  QCOMPARE(incoming, (std::vector<std::uint32_t>{1, 1}));
}

void TestScriptModel::in_place_and_views_stay_together() {
  const auto model = open(golden("control"));
  QVERIFY(model != nullptr);
  const auto find = [&](const char* op) {
    for (std::uint32_t i = 0; i < model->node_count(); ++i)
      if (std::strcmp(model->node(i).op, op) == 0) return i;
    return UINT32_MAX;
  };
  // The tensor multiplied in place is a part of what the loop or its last addition gave, and `before` is read
  // first.
  const std::uint32_t written = find("aten::mul_"), zeroed = find("aten::zero_"), before = find("aten::mean");
  const std::uint32_t branch = find("prim::If");
  QVERIFY(branch != UINT32_MAX && model->node(branch).timed_only);
  QVERIFY(written != UINT32_MAX && zeroed != UINT32_MAX && before != UINT32_MAX);
  bool together = false;
  for (std::uint32_t g = 0; g < model->group_count(); ++g) {
    std::set<std::uint32_t> members(model->group(g).begin(), model->group(g).end());
    together = together || (members.count(written) && members.count(zeroed) && members.count(before));
  }
  QVERIFY(together);
}

void TestScriptModel::impossible_cuts_are_refused() {
  const auto model = open(golden("perceptron"));
  QVERIFY(model != nullptr);
  std::vector<std::uint32_t> blocks(model->node_count(), 0);
  blocks[2] = 1;  // and what follows it flows back to 0
  const Status back = model->cut(blocks, 2);
  QVERIFY(!back.ok() && QByteArray(back.message).contains("backwards"));
  blocks[2] = 7;
  QVERIFY(!model->cut(blocks, 2).ok());
  blocks.pop_back();
  QVERIFY(!model->cut(blocks, 8).ok());
}

void TestScriptModel::wrong_files_are_refused_data() {
  QTest::addColumn<QString>("name");
  QTest::addColumn<QByteArray>("told");
  QTest::newRow("weights only") << "weights.pt" << QByteArray("no TorchScript program");
  QTest::newRow("cut off") << "cut_off.pt" << QByteArray("not a TorchScript file");
  QTest::newRow("state") << "stateful.pt" << QByteArray("keeps state");
  QTest::newRow("empty") << "perceptron.json" << QByteArray("not a TorchScript file");
}

void TestScriptModel::wrong_files_are_refused() {
  QFETCH(QString, name);
  QFETCH(QByteArray, told);
  Golden data = golden("perceptron");
  data.file = bytes_of(name);
  const MemoryHost host(data.file.constData(), static_cast<std::size_t>(data.file.size()));
  compute::ScriptOptions options;
  options.samples = data.samples;
  const auto opened = compute::open_script(*module_, host, options);
  QVERIFY(!opened.ok());
  QVERIFY2(QByteArray(opened.error().message.c_str()).contains(told), opened.error().message.c_str());
}

void TestScriptModel::wrong_inputs_are_refused() {
  const Golden data = golden("encoder");
  const MemoryHost host(data.file.constData(), static_cast<std::size_t>(data.file.size()));
  const auto told = [&](const std::vector<compute::ScriptSample>& samples) {
    compute::ScriptOptions options;
    options.samples = samples;
    const auto opened = compute::open_script(*module_, host, options);
    return opened.ok() ? QByteArray() : QByteArray(opened.error().message.c_str());
  };
  QVERIFY2(told({}).contains("tokens: Tensor, mask: Tensor"), told({}).constData());
  QVERIFY(told({data.samples[0]}).contains("\"mask\" is missing"));
  QVERIFY(told({data.samples[0], data.samples[1], data.samples[1]}).contains("more inputs than arguments"));
  auto large = data.samples;
  large[1].sizes[0] = std::int64_t{1} << 50;
  QVERIFY(told(large).contains("too large"));
  auto unfitting = data.samples;
  unfitting[1].sizes[0] = 5;
  unfitting[1].data = nullptr;
  QVERIFY2(told(unfitting).contains("must match"), told(unfitting).constData());
}

void TestScriptModel::damaged_messages_are_refused() {
  const auto model = open(golden("perceptron"));
  QVERIFY(model != nullptr);
  QVERIFY(model->cut(std::vector<std::uint32_t>(model->node_count(), 0), 1).ok());
  Span<const std::uint8_t> span;
  const Status packed = model->driver_message(0, 0, &span);
  QVERIFY2(packed.ok(), packed.message);
  const QByteArray message(reinterpret_cast<const char*>(span.data()), qsizetype(span.size()));
  Span<const std::uint8_t> file;
  QVERIFY(model->block_file(0, &file).ok());
  const MemoryHost host(file.data(), file.size());
  const auto block = compute::open_script_block(*module_, host);
  QVERIFY(block.ok());
  const auto refused = [&](const QByteArray& bytes) { return !(*block)->take(0, 1, view(bytes)).ok(); };
  QVERIFY(!refused(message));
  for (const qsizetype length : {0, 3, 8, 20, 63, 64, 1000}) QVERIFY(refused(message.left(length)));
  QVERIFY(refused(message + "12345678"));
  for (qsizetype at = 0; at < 32; at += 4) {  // tag, type, count of sizes, sizes
    QByteArray damaged = message;
    damaged[at + 3] = '\x7f';
    QVERIFY2(refused(damaged) || at == 12, QByteArray::number(at).constData());
  }
  QVERIFY((*block)->take(1, 1, view(message)).ok() == false);
}

// Threads that run the model while it is timed change what it takes, and nothing else.
void TestScriptModel::timed_beside_others_it_is_the_same_model() {
  const Golden model = golden("encoder");
  const auto alone = open(model), beside = open(model, 2);
  QVERIFY(alone && beside);
  QCOMPARE(alone->companions(), 0u);
  QCOMPARE(beside->companions(), 2u);
  QCOMPARE(beside->node_count(), alone->node_count());
  double seconds = 0;
  for (std::uint32_t i = 0; i < alone->node_count(); ++i) {
    QCOMPARE(QByteArray(beside->node(i).id), QByteArray(alone->node(i).id));
    QCOMPARE(beside->node(i).operations, alone->node(i).operations);
    seconds += beside->node(i).seconds;
  }
  QVERIFY(seconds > 0);
}

NS_TEST(TestScriptModel)
#include "test_script_model.moc"
