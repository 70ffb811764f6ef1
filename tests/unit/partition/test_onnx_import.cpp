// ONNX models as graphs: against ONNX's own shape inference and PyTorch's counts where Debian's Python has
// them (onnx_oracle.py), and against models written here field by field.
#include <QDir>
#include <QElapsedTimer>
#include <QFile>
#include <QJsonArray>
#include <QJsonDocument>
#include <QJsonObject>
#include <QProcess>
#include <QTemporaryDir>
#include <QTest>

#include "core/partition/graph/wire_format.h"
#include "core/partition/import/onnx_import.h"
#include "tests/support/test_main.h"

using namespace neuroshard;             // NOLINT
using namespace neuroshard::partition;  // NOLINT

namespace {

constexpr int no_python = 77;

Bytes value_info(const std::string& name, const std::vector<std::int64_t>& dims,
                 const std::string& open = "") {
  WireWriter shape, tensor, type, value;
  for (const std::int64_t dim : dims) {
    WireWriter message;
    if (dim < 0) {
      message.text(2, open);
    } else {
      message.varint(1, static_cast<std::uint64_t>(dim));
    }
    shape.bytes(1, message.result());
  }
  tensor.varint(1, 1);
  tensor.bytes(2, shape.result());
  type.bytes(1, tensor.result());
  value.text(1, name);
  value.bytes(2, type.result());
  return value.take();
}

Bytes weight(const std::string& name, const std::vector<std::int64_t>& dims) {
  WireWriter tensor;
  for (const std::int64_t dim : dims) tensor.varint(1, static_cast<std::uint64_t>(dim));
  tensor.varint(2, 1);
  tensor.text(8, name);
  return tensor.take();
}

// A tensor of one integer.
Bytes integer(const std::string& name, std::uint64_t value) {
  WireWriter tensor;
  tensor.varint(1, 1);
  tensor.varint(2, static_cast<std::uint64_t>(OnnxType::Int64));
  tensor.varint(7, value);
  tensor.text(8, name);
  return tensor.take();
}

Bytes node(const std::string& op, const std::vector<std::string>& inputs,
           const std::vector<std::string>& outputs, const std::vector<Bytes>& attributes = {}) {
  WireWriter message;
  for (const std::string& name : inputs) message.bytes(1, as_bytes(std::string_view(name)));
  for (const std::string& name : outputs) message.bytes(2, as_bytes(std::string_view(name)));
  message.text(3, op + " of " + (outputs.empty() ? "nothing" : outputs[0]));
  message.text(4, op);
  for (const Bytes& attribute : attributes) message.bytes(5, attribute);
  return message.take();
}

Bytes model(const std::vector<Bytes>& nodes, const std::vector<Bytes>& weights,
            const std::vector<Bytes>& inputs) {
  WireWriter graph, opset, file;
  for (const Bytes& message : nodes) graph.bytes(1, message);
  for (const Bytes& message : weights) graph.bytes(5, message);
  for (const Bytes& message : inputs) graph.bytes(11, message);
  opset.varint(2, 13);
  file.varint(1, 8);
  file.bytes(7, graph.result());
  file.bytes(8, opset.result());
  return file.take();
}

double product_flops(const CostedGraph& costed) {
  double sum = 0;
  for (std::size_t v = 0; v < costed.costs.size(); ++v) {
    const std::string& op = costed.graph.nodes[v].op;
    if (op == "MatMul" || op == "Gemm" || op == "Conv" || op == "ConvTranspose") sum += costed.costs[v].flops;
  }
  return sum;
}

double parameters(const CostedGraph& costed) {
  double sum = 0;
  for (const GraphNode& v : costed.graph.nodes) sum += v.param_bytes;
  return sum;
}

const GraphNode* find(const CostedGraph& costed, const std::string& id) {
  for (const GraphNode& v : costed.graph.nodes) {
    if (v.id == id) return &v;
  }
  return nullptr;
}

}  // namespace

class TestOnnxImport : public QObject {
  Q_OBJECT
 private Q_SLOTS:
  void initTestCase();
  void shapes_and_costs_data();
  void shapes_and_costs();
  void weights_elsewhere();
  void recurrent_cells();
  void several_outputs();
  void weights_read_twice();
  void control_flow_is_one_node();
  void equal_names_are_numbered();
  void long_names_are_cut_between_characters();
  void folded_constants_are_bounded();
  void folded_constants_are_exact();
  void bad_models_data();
  void bad_models();
  void any_cut_is_refused();

 private:
  bool oracle() const { return code_ == 0; }
  Bytes file(const QString& name) const {
    QFile f(folder_.filePath(name + ".onnx"));
    if (!f.open(QIODevice::ReadOnly)) return {};
    const QByteArray content = f.readAll();
    return Bytes(content.begin(), content.end());
  }
  QTemporaryDir folder_;
  QJsonObject expected_;
  int code_ = no_python;
};

// One run for all tests: loading PyTorch takes seconds.
void TestOnnxImport::initTestCase() {
  QVERIFY(folder_.isValid());
  QProcess python;
  python.start(
      "/usr/bin/python3",
      {qEnvironmentVariable("NS_SOURCE_DIR") + "/tests/unit/partition/onnx_oracle.py", folder_.path()});
  if (!python.waitForFinished(110'000)) python.kill();
  code_ = python.error() == QProcess::FailedToStart ? no_python : python.exitCode();
  if (code_ == no_python) return;
  QVERIFY2(code_ == 0, python.readAllStandardError().constData());
  expected_ = QJsonDocument::fromJson(python.readAllStandardOutput()).object();
  QVERIFY(expected_.size() >= 3);
}

void TestOnnxImport::shapes_and_costs_data() {
  QTest::addColumn<QString>("name");
  for (const char* name : {"convolutions", "shape_arithmetic", "torch_transformer", "torch_pictures"})
    QTest::newRow(name) << QString(name);
}

void TestOnnxImport::shapes_and_costs() {
  QFETCH(QString, name);
  if (!oracle() || !expected_.contains(name)) QSKIP("python3-onnx or python3-torch is not installed");
  const QJsonObject expected = expected_[name].toObject();
  const Bytes bytes = file(name);
  QVERIFY(is_onnx(bytes));
  const auto values = infer_onnx(bytes, {});
  QVERIFY2(values.ok(), values.ok() ? "" : values.error().describe().c_str());
  int compared = 0;
  const QJsonObject shapes = expected["shapes"].toObject();
  for (auto it = shapes.begin(); it != shapes.end(); ++it) {
    const auto at = values->find(it.key().toStdString());
    QVERIFY2(at != values->end() && at->second.shape, qPrintable(it.key()));
    const QJsonArray dims = it.value().toArray();
    QVERIFY2(static_cast<std::size_t>(dims.size()) == at->second.shape->size(), qPrintable(it.key()));
    for (int i = 0; i < dims.size(); ++i)
      QVERIFY2((*at->second.shape)[static_cast<std::size_t>(i)] == dims[i].toInteger(), qPrintable(it.key()));
    ++compared;
  }
  QVERIFY(compared >= 10);
  const auto costed = import_onnx(bytes, {});
  QVERIFY2(costed.ok(), costed.ok() ? "" : costed.error().describe().c_str());
  QVERIFY(validate(costed->graph).ok());
  QCOMPARE(product_flops(*costed), expected["product_flops"].toDouble());
  // PyTorch's profiler counts no biases; scalars of formulas count as parameters here.
  if (expected.contains("profiler_flops")) {
    const double profiled = expected["profiler_flops"].toDouble();
    QVERIFY2(std::abs(product_flops(*costed) - profiled) <= 0.01 * profiled,
             qPrintable(QString::number(profiled)));
  }
  const double weights =
      expected[expected.contains("parameter_bytes") ? "parameter_bytes" : "weight_bytes"].toDouble();
  const double scalars = 8 * static_cast<double>(costed->graph.nodes.size());
  if (name != "shape_arithmetic")  // all its weights are numbers for shapes
    QVERIFY2(std::abs(parameters(*costed) - weights) <= scalars,
             qPrintable(QString("%1 %2").arg(parameters(*costed)).arg(weights)));
  if (expected.contains("output")) {
    double output = 4;
    for (const auto& dim : expected["output"].toArray()) output *= dim.toDouble();
    QCOMPARE(costed->graph.nodes.back().output_bytes, output);
  }
}

void TestOnnxImport::weights_elsewhere() {
  if (!oracle()) QSKIP("python3-onnx is not installed");
  const Bytes bytes = file("external");
  const auto open = import_onnx(bytes, {});
  QVERIFY(!open.ok() && open.error().message.find("--dim batch=N") != std::string::npos);
  const auto costed = import_onnx(bytes, {{{"batch", 5}}});
  QVERIFY2(costed.ok(), costed.ok() ? "" : costed.error().describe().c_str());
  QCOMPARE(parameters(*costed), 64.0 * 128 * 4);
  QCOMPARE(product_flops(*costed), 2.0 * 5 * 64 * 128);
  QVERIFY(import_onnx(bytes, {{{"x:0", 5}}}).ok());
}

void TestOnnxImport::recurrent_cells() {
  if (!oracle() || !expected_.contains("torch_recurrent")) QSKIP("python3-torch is not installed");
  const auto costed = import_onnx(file("torch_recurrent"), {{{"batch", 2}}});
  QVERIFY2(costed.ok(), costed.ok() ? "" : costed.error().describe().c_str());
  const auto& nodes = costed->graph.nodes;
  const auto cell =
      std::find_if(nodes.begin(), nodes.end(), [](const GraphNode& v) { return v.op == "LSTM"; });
  QVERIFY(cell != nodes.end());
  // Two directions, nine steps of two sequences, four gates of 32 from 24 + 32 values, four operations per
  // gate.
  QCOMPARE(costed->costs[static_cast<std::size_t>(cell - nodes.begin())].flops,
           2.0 * 9 * 2 * 4 * 32 * (2 * (24 + 32) + 4));
  // Initial states of zeros are made per request and count as no parameter here.
  const double own = expected_["torch_recurrent"].toObject()["parameter_bytes"].toDouble();
  QVERIFY2(parameters(*costed) >= own && parameters(*costed) <= own + 2 * 2 * 2 * 32 * 4,
           qPrintable(QString::number(parameters(*costed))));
  QCOMPARE(nodes.back().output_bytes, 2.0 * 5 * 4);
}

// Each output that is read has its own size; they share the operator's block.
void TestOnnxImport::several_outputs() {
  WireWriter axis;
  axis.text(1, "axis");
  axis.varint(3, 1);
  const auto costed = import_onnx(model({node("Split", {"x"}, {"a", "b", "c"}, {axis.result()}),
                                         node("Relu", {"a"}, {"ra"}), node("Relu", {"c"}, {"rc"})},
                                        {}, {value_info("x", {4, 9})}),
                                  {});
  QVERIFY2(costed.ok(), costed.ok() ? "" : costed.error().describe().c_str());
  QCOMPARE(costed->graph.nodes.size(), std::size_t(5));
  const GraphNode* split = find(*costed, "Split of a");
  QVERIFY(split && split->output_bytes == 0);
  QCOMPARE(find(*costed, "Split of a:2")->output_bytes, 4.0 * 3 * 4);
  QCOMPARE(find(*costed, "Relu of rc")->inputs, (std::vector<std::uint32_t>{2}));
  QCOMPARE(costed->graph.colocated, (std::vector<std::vector<std::uint32_t>>{{0, 1, 2}}));
}

void TestOnnxImport::weights_read_twice() {
  WireWriter perm;
  perm.text(1, "perm");
  const Bytes packed{1, 0};
  perm.bytes(8, packed);
  const auto costed = import_onnx(
      model({node("Gather", {"table", "x"}, {"e"}), node("Transpose", {"table"}, {"t"}, {perm.result()}),
             node("MatMul", {"e", "t"}, {"y"})},
            {weight("table", {1000, 8})}, {value_info("x", {6})}),
      {});
  QVERIFY2(costed.ok(), costed.ok() ? "" : costed.error().describe().c_str());
  // The turned table is a constant: two nodes are left, each with a copy.
  QCOMPARE(costed->graph.nodes.size(), std::size_t(2));
  QCOMPARE(costed->graph.nodes[0].param_bytes, 32000.0);
  QCOMPARE(costed->graph.nodes[1].param_bytes, 32000.0);
  // A lookup reads its rows, not the table.
  QCOMPARE(costed->costs[0].bytes, 2.0 * 6 * 8 * 4 + 6 * 4);
  QCOMPARE(costed->costs[1].flops, 2.0 * 6 * 8 * 1000);
}

void TestOnnxImport::control_flow_is_one_node() {
  WireWriter inner, branch;
  inner.bytes(1, node("Add", {"h", "w"}, {"z"}));
  inner.bytes(5, weight("w", {4, 4}));
  branch.text(1, "then_branch");
  branch.bytes(6, inner.result());
  WireWriter graph, file;
  graph.bytes(1, node("Relu", {"x"}, {"h"}));
  graph.bytes(1, node("If", {"c"}, {"y"}, {branch.result()}));
  graph.bytes(11, value_info("x", {4, 4}));
  graph.bytes(11, value_info("c", {1}));
  graph.bytes(13, value_info("y", {4, 4}));
  file.varint(1, 8);
  file.bytes(7, graph.result());
  const auto costed = import_onnx(file.result(), {});
  QVERIFY2(costed.ok(), costed.ok() ? "" : costed.error().describe().c_str());
  const GraphNode* branch_node = find(*costed, "If of y");
  QVERIFY(branch_node);
  QCOMPARE(branch_node->inputs, (std::vector<std::uint32_t>{0}));  // what its body reads from outside
  QCOMPARE(branch_node->param_bytes, 64.0);
  QVERIFY(costed->graph.convention.find("If") != std::string::npos);
}

// In linear time: counting on from 2 for each of them takes minutes.
void TestOnnxImport::equal_names_are_numbered() {
  constexpr int count = 50'000;
  std::vector<Bytes> nodes;
  for (int i = 0; i < count; ++i) {
    WireWriter message;
    message.text(1, "x");
    message.text(2, "y" + std::to_string(i));
    message.text(3, i == 1 ? "same #3" : "same");
    message.text(4, "Relu");
    nodes.push_back(message.take());
  }
  QElapsedTimer timer;
  timer.start();
  const auto costed = import_onnx(model(nodes, {}, {value_info("x", {2})}), {});
  QVERIFY2(costed.ok(), costed.ok() ? "" : costed.error().describe().c_str());
  QVERIFY2(timer.elapsed() < 30'000, qPrintable(QString::number(timer.elapsed())));
  const auto& made = costed->graph.nodes;
  QCOMPARE(made.size(), std::size_t(count));
  QCOMPARE(made[0].id, std::string("same"));
  QCOMPARE(made[2].id, std::string("same #2"));
  QCOMPARE(made[3].id, std::string("same #4"));
  QCOMPARE(made.back().id, "same #" + std::to_string(count));
}

void TestOnnxImport::long_names_are_cut_between_characters() {
  WireWriter message;
  message.text(1, "x");
  message.text(2, "y");
  message.text(3, std::string(max_id_length - 17, 'a') + "\u00e4");
  message.text(4, "Relu");
  const auto costed = import_onnx(model({message.result()}, {}, {value_info("x", {2})}), {});
  QVERIFY2(costed.ok(), costed.ok() ? "" : costed.error().describe().c_str());
  QCOMPARE(costed->graph.nodes[0].id, std::string(max_id_length - 17, 'a'));
}

void TestOnnxImport::folded_constants_are_bounded() {
  constexpr std::size_t each = 4096, count = max_onnx_folded / each + 100;
  std::vector<Bytes> nodes;
  for (std::size_t i = 0; i < count; ++i)
    nodes.push_back(node("Expand", {"value", "count"}, {"y" + std::to_string(i)}));
  const auto values = infer_onnx(model(nodes, {integer("value", 7), integer("count", each)}, {}), {});
  QVERIFY2(values.ok(), values.ok() ? "" : values.error().describe().c_str());
  QCOMPARE(values->at("y0").integers->size(), each);
  std::size_t kept = 0;
  for (const auto& [name, value] : *values) {
    QVERIFY2(value.constant && value.shape, name.c_str());
    kept += value.integers ? value.integers->size() : 0;
  }
  QVERIFY2(kept > max_onnx_folded - 2 * each && kept <= max_onnx_folded + 2, std::to_string(kept).c_str());
}

void TestOnnxImport::folded_constants_are_exact() {
  using Values = std::vector<std::int64_t>;
  WireWriter to;
  to.text(1, "to");
  to.varint(3, static_cast<std::uint64_t>(OnnxType::Float));
  const std::vector<Bytes> nodes{
      node("Cast", {"seven"}, {"real"}, {to.result()}), node("Div", {"real", "two"}, {"three and a half"}),
      node("Div", {"real", "seven"}, {"one"}),          node("Div", {"seven", "two"}, {"three"}),
      node("Max", {"two", "seven"}, {"larger"}),        node("Max", {"two", "seven", "x"}, {"largest"})};
  const auto values =
      infer_onnx(model(nodes, {integer("seven", 7), integer("two", 2)}, {value_info("x", {1})}), {});
  QVERIFY2(values.ok(), values.ok() ? "" : values.error().describe().c_str());
  QVERIFY(!values->at("three and a half").integers);
  QVERIFY(values->at("three and a half").constant);
  QVERIFY(values->at("one").integers == Values{1});
  QVERIFY(values->at("three").integers == Values{3});
  QVERIFY(values->at("larger").integers == Values{7});
  // It depends on the request.
  QVERIFY(!values->at("largest").integers && !values->at("largest").constant);
}

void TestOnnxImport::bad_models_data() {
  QTest::addColumn<QByteArray>("file");
  QTest::addColumn<QByteArray>("told");
  const auto add = [](const char* name, const Bytes& bytes, const char* told) {
    QTest::newRow(name) << QByteArray(reinterpret_cast<const char*>(bytes.data()),
                                      static_cast<qsizetype>(bytes.size()))
                        << QByteArray(told);
  };
  const std::vector<Bytes> x{value_info("x", {2, 3})};
  add("nothing", {}, "not an ONNX model");
  add("no graph", {0x08, 0x07}, "not an ONNX model");
  add("dangling", model({node("Relu", {"nowhere"}, {"y"})}, {}, x), "\"nowhere\", which has no producer");
  add("control characters", model({node("Relu", {"\x1b[2J\nx"}, {"y"})}, {}, x), "\" [2J x\", which has");
  add("cycle", model({node("Add", {"x", "b"}, {"a"}), node("Relu", {"a"}, {"b"})}, {}, x), "cycle");
  add("made twice", model({node("Relu", {"x"}, {"y"}), node("Relu", {"x"}, {"y"})}, {}, x),
      "has two producers");
  add("unknown operator", model({node("Wizardry", {"x"}, {"y"})}, {}, x),
      "\"y\" of operator \"Wizardry of y\"");
  add("shapes that do not fit", model({node("MatMul", {"x", "x"}, {"y"})}, {}, x), "\"y\" of operator");
  add("open dimension", model({node("Relu", {"x"}, {"y"})}, {}, {value_info("x", {-1, 3}, "batch")}),
      "--dim batch=N");
  add("absurd size", model({node("Relu", {"x"}, {"y"})}, {}, {value_info("x", {1 << 30, 1 << 30})}),
      "larger than any tensor");
  add("absurd weight", model({node("Add", {"x", "w"}, {"y"})}, {weight("w", {1 << 30, 1 << 30})}, x),
      "larger than any tensor");
  add("no operators", model({}, {weight("w", {2})}, x), "no nodes");
}

void TestOnnxImport::bad_models() {
  QFETCH(QByteArray, file);
  QFETCH(QByteArray, told);
  const auto costed =
      import_onnx(as_bytes(std::string_view(file.constData(), static_cast<std::size_t>(file.size()))), {});
  QVERIFY(!costed.ok());
  QVERIFY2(costed.error().message.find(told.toStdString()) != std::string::npos,
           costed.error().describe().c_str());
}

void TestOnnxImport::any_cut_is_refused() {
  const Bytes whole = model({node("MatMul", {"x", "w"}, {"y"}), node("Relu", {"y"}, {"z"})},
                            {weight("w", {3, 5})}, {value_info("x", {2, 3})});
  QVERIFY(import_onnx(whole, {}).ok());
  // The operator set comes last and may be missing; everything before it may not.
  for (std::size_t size = 0; size + 4 < whole.size(); ++size)
    QVERIFY(!import_onnx(ByteSpan(whole.data(), size), {}).ok());
}

NS_TEST(TestOnnxImport)
#include "test_onnx_import.moc"
