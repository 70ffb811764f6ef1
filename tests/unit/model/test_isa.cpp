// Results repeat bit for bit in another process, and lower instruction sets agree with the machine's own to
// rounding.
#include <QtTest>

#include <cstdio>
#include <cstring>

#include "tests/unit/model/model_test.h"

using namespace neuroshard;
using namespace neuroshard::model_test;

namespace {

// Five losses, and a hash of all parameters after them, as one line of text with every bit.
std::string train(const std::string& max_isa, const std::string& precision) {
  const Expected<LoadedModule> loaded = load(2, 0, max_isa, precision);
  if (!loaded.ok()) return loaded.error().message;
  ModelShape shape = small_shape(4);
  shape.hidden = 64;
  shape.head_dim = 16;
  shape.ffn = 96;
  shape.sequence = 70;
  const StagePtr stage = stage_of(*loaded->module, whole_model(shape), 3);
  std::string line = std::string(loaded->info.isa) + "/" + loaded->info.precision;
  for (std::uint64_t step = 1; step <= 5; ++step) {
    const Batch batch(shape, 1, shape.sequence, step);
    ForwardMetrics metrics;
    StepMetrics result;
    StepOptions options;
    options.learning_rate = 1e-3;
    options.step = step;
    if (!stage->forward(1, batch.view, nullptr, &metrics).ok() || !stage->backward(1, nullptr, nullptr).ok())
      return "failed";
    options.tokens = metrics.tokens;
    if (!stage->step(options, &result).ok()) return "failed";
    char text[40];
    std::snprintf(text, sizeof text, " %a", metrics.loss_sum / static_cast<double>(metrics.tokens));
    line += text;
  }
  std::uint64_t hash = 1469598103934665603u;
  for (const float value : parameters(*stage)) {
    std::uint32_t bits = 0;
    std::memcpy(&bits, &value, sizeof bits);
    hash = (hash ^ bits) * 1099511628211u;
  }
  return line + " " + std::to_string(hash);
}

}  // namespace

class TestIsa : public QObject {
  Q_OBJECT
 private:
  // The same program again, in its own process: an instruction set can only be chosen once.
  static QStringList train_in_process(const QString& max_isa, const QString& precision) {
    QProcess process;
    process.start(QCoreApplication::applicationFilePath(), {"--train", max_isa, precision});
    if (!process.waitForFinished(50000)) return {};
    return QString::fromUtf8(process.readAllStandardOutput()).trimmed().split(' ');
  }
  static double loss(const QStringList& line, int step) {
    return std::strtod(line.at(step).toUtf8().constData(), nullptr);
  }

  QStringList first_;

 private Q_SLOTS:
  void initTestCase() {
    first_ = train_in_process("", "fp32");
    QCOMPARE(first_.size(), 7);
    QVERIFY2(std::isfinite(loss(first_, 5)) && loss(first_, 5) > 0, qPrintable(first_.join(' ')));
  }

  void processes_agree_bit_for_bit() { QCOMPARE(train_in_process("", "fp32"), first_); }

  void processes_agree_bit_for_bit_in_bf16() {
    const QStringList line = train_in_process("", "bf16");
    if (line.size() != first_.size()) QSKIP("this processor has no bf16 units");
    QVERIFY(line.at(0).endsWith("/bf16"));
    QCOMPARE(train_in_process("", "bf16"), line);
    QCOMPARE(train_in_process("", "auto"), line);
    // Attention without products of pairs: the same to the rounding of bf16.
    const QStringList widened = train_in_process("bf16-widened", "bf16");
    QCOMPARE(widened.size(), line.size());
    for (int step = 1; step <= 5; ++step) QVERIFY(std::abs(loss(widened, step) - loss(line, step)) < 1e-2);
  }

  void lower_instruction_sets_agree_to_rounding() {
    const QStringList own = first_;
    const QMap<QString, QString> names{{"avx512", "avx512_core"}, {"avx2", "avx2"}, {"sse4", "sse41"}};
    for (const QString& isa : names.keys()) {
      // Below the bf16 units, "auto" is fp32.
      const QStringList line = train_in_process(isa, "auto");
      QCOMPARE(line.size(), own.size());
      QVERIFY2(line.at(0) == names[isa] + "/fp32" || line.at(0) == own.at(0), qPrintable(line.at(0)));
      for (int step = 1; step <= 5; ++step) {
        QVERIFY2(std::abs(loss(line, step) - loss(own, step)) < 1e-4,
                 qPrintable(isa + " at " + QString::number(step)));
      }
    }
  }
};

int main(int argc, char** argv) {
  if (argc == 4 && std::string(argv[1]) == "--train") {
    std::puts(train(argv[2], argv[3]).c_str());
    return 0;
  }
  QCoreApplication application(argc, argv);
  TestIsa test;
  return QTest::qExec(&test, argc, argv);
}
#include "test_isa.moc"
