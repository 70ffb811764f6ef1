// Two real processes end a round together and save it. The weights that each exports are compared, not the
// nodes' own words about them.
#include <QTest>

#include "tests/support/rounds_run.h"
#include "tests/support/test_main.h"

using namespace neuroshard::test;  // NOLINT

namespace {

// All values of a safetensors file, without its header, which names the node and the time.
QByteArray weights_of(const QString& path) {
  QFile file(path);
  quint64 header_bytes = 0;
  if (!file.open(QIODevice::ReadOnly)) return {};
  QDataStream head(&file);
  head.setByteOrder(QDataStream::LittleEndian);
  head >> header_bytes;
  return file.seek(8 + static_cast<qint64>(header_bytes)) ? file.readAll() : QByteArray();
}

}  // namespace

class TestRoundsWeights : public QObject {
  Q_OBJECT
 private Q_SLOTS:
  void nodes_that_finish_a_round_export_equal_weights();

 private:
  // The weights of every checkpoint of a node, by the checkpoint's name.
  QMap<QString, QByteArray> exported(const QString& node) const {
    QMap<QString, QByteArray> all;
    const ProcessResult list = run_node({"checkpoint", "list", "--json", "--data-dir", run_.path(node)});
    for (const QJsonObject& entry : json_lines(list.out)) {
      const QString name = entry["name"].toString(), file = run_.path(node + ".safetensors");
      const ProcessResult result =
          run_node({"checkpoint", "export", name, "--out", file, "--force", "--data-dir", run_.path(node)});
      if (!result.ok()) qWarning("%s", result.text().constData());
      all[name] = weights_of(file);
    }
    return all;
  }

  RoundsRun run_;
};

void TestRoundsWeights::nodes_that_finish_a_round_export_equal_weights() {
  QCOMPARE(run_.make("weights", "400"), QByteArray());
  QCOMPARE(run_.start("a"), QByteArray());
  QTRY_VERIFY_WITH_TIMEOUT(run_.round("a") >= 1, RoundsRun::patience_ms);
  QCOMPARE(run_.start("b"), QByteArray());
  QVERIFY(run_.together({"a", "b"}));
  {
    NodeProcess a({"finish", "--data-dir", run_.path("a")}), b({"finish", "--data-dir", run_.path("b")});
    QTRY_VERIFY_WITH_TIMEOUT(!a.running() && !b.running(), RoundsRun::patience_ms);
  }
  const QMap<QString, QByteArray> a = exported("a"), b = exported("b");
  int equal = 0;
  for (const QByteArray& weights : a)
    if (weights.size() > 10'000 && b.values().contains(weights)) ++equal;
  QVERIFY2(equal > 0, qPrintable(a.keys().join(' ') + " and " + b.keys().join(' ')));
}

NS_TEST(TestRoundsWeights)
#include "test_rounds_weights.moc"
