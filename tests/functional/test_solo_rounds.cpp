// Two real processes train a model as large as that of the profile "solo" in outer rounds. The weights that
// they hold after a round is compared by the weights that each exports, not by what their logs say.
#include <QTest>

#include "tests/support/rounds_run.h"
#include "tests/support/test_main.h"

using namespace neuroshard::test;  // NOLINT

namespace {

// Checkpoints that hold the anchor of a round and nothing trained after it, by the anchor.
QMap<QString, QString> anchors_of(const QString& data) {
  QMap<QString, QString> found;
  const QDir checkpoints(data + "/checkpoints");
  for (const QString& name : checkpoints.entryList(QDir::Dirs | QDir::NoDotAndDotDot)) {
    const QDir folder(checkpoints.filePath(name));
    for (const QFileInfo& entry : folder.entryInfoList(QDir::Files)) {
      QFile file(entry.filePath());
      if (entry.size() > 100'000 || !file.open(QIODevice::ReadOnly)) continue;
      const QJsonObject place = QJsonDocument::fromJson(file.readAll()).object()["round"].toObject();
      if (place["anchor"].isString() && place["steps"].toInt(-1) == 0)
        found[place["anchor"].toString()] = name;
    }
  }
  return found;
}

// The tensors of a safetensors file: names, shapes and places as JSON, and all values.
struct Weights {
  QJsonObject header;
  QByteArray values;
};

Weights read_weights(const QString& path) {
  QFile file(path);
  if (!file.open(QIODevice::ReadOnly)) return {};
  quint64 header_bytes = 0;
  QDataStream head(&file);
  head.setByteOrder(QDataStream::LittleEndian);
  head >> header_bytes;
  Weights weights;
  weights.header = QJsonDocument::fromJson(file.read(static_cast<qint64>(header_bytes))).object();
  weights.header.remove("__metadata__");  // who wrote it, and when
  weights.values = file.readAll();
  return weights;
}

}  // namespace

class TestSoloRounds : public QObject {
  Q_OBJECT
 private Q_SLOTS:
  void two_nodes_train_it_in_rounds();
  void their_exported_weights_are_equal();

 private:
  Weights exported(const QString& node, const QString& checkpoint) const {
    const QString file = run_.path(node + ".safetensors");
    const ProcessResult result = run_node(
        {"checkpoint", "export", checkpoint, "--out", file, "--force", "--data-dir", run_.path(node)});
    if (!result.ok()) qWarning("%s", result.text().constData());
    return read_weights(file);
  }

  RoundsRun run_;
};

void TestSoloRounds::two_nodes_train_it_in_rounds() {
  run_.solo = true;
  QCOMPARE(run_.make("solo-rounds", "3"), QByteArray());
  QCOMPARE(run_.start("a"), QByteArray());
  QTRY_VERIFY_WITH_TIMEOUT(run_.round("a") >= 1, RoundsRun::patience_ms);
  QCOMPARE(run_.start("b"), QByteArray());
  QVERIFY(run_.together({"a", "b"}));
}

void TestSoloRounds::their_exported_weights_are_equal() {
  QString anchor;
  const auto shared_anchor = [&] {
    const QMap<QString, QString> a = anchors_of(run_.path("a")), b = anchors_of(run_.path("b"));
    for (const QString& candidate : a.keys())
      if (b.contains(candidate)) anchor = candidate;
    return !anchor.isEmpty();
  };
  QTRY_VERIFY_WITH_TIMEOUT(shared_anchor(), RoundsRun::patience_ms);
  // Without the nodes nothing is pruned meanwhile.
  run_.kill_all();
  const Weights a = exported("a", anchors_of(run_.path("a"))[anchor]);
  const Weights b = exported("b", anchors_of(run_.path("b"))[anchor]);
  QVERIFY(a.values.size() > 10'000'000);
  QCOMPARE(a.header, b.header);
  QVERIFY(a.values == b.values);
}

NS_TEST(TestSoloRounds)
#include "test_solo_rounds.moc"
