#include <QDoubleSpinBox>
#include <QJsonArray>
#include <QJsonDocument>
#include <QJsonObject>
#include <QLabel>
#include <QPushButton>
#include <QTemporaryDir>

#include "tests/unit/ui/window/camera.h"
#include "ui/pages/diagnostics_dialog.h"
#include "ui/pages/partition_dialog.h"
#include "ui/pages/partition_form.h"

namespace neuroshard::ui {
namespace {

// Layers of nodes that read some of the layer before, with uneven work.
QString write_graph(const QTemporaryDir& folder) {
  QJsonArray nodes;
  QStringList before;
  quint32 random = 7;
  for (int layer = 0; layer < 8; ++layer) {
    QStringList now;
    for (int i = 0; i < 3; ++i) {
      random = random * 1664525 + 1013904223;
      now << QStringLiteral("layer%1.%2").arg(layer).arg(i);
      nodes.append(QJsonObject{{"id", now.back()},
                               {"op", "matmul"},
                               {"work", 0.1 + (random >> 20) / 1000.0},
                               {"param_bytes", 1 << 20},
                               {"output_bytes", 1 << 16},
                               {"inputs", QJsonArray::fromStringList(before.mid((random >> 8) % 3, 2))}});
    }
    before = now;
  }
  const QString path = folder.filePath(QStringLiteral("graph.json"));
  QFile file(path);
  if (file.open(QIODevice::WriteOnly))
    file.write(QJsonDocument(QJsonObject{{"unit", "ms"}, {"nodes", nodes}}).toJson());
  return path;
}

}  // namespace

// With the real program behind it, which collects what there is of an empty folder.
void take_diagnostics(Camera& camera, const Theme& theme, const QString& program) {
  const QTemporaryDir folder;
  auto* dialog = new DiagnosticsDialog(theme, program, folder.path());
  dialog->show();
  const auto* save = dialog->findChild<QPushButton*>(QStringLiteral("diagnostics_save"));
  for (int i = 0; i < 100 && !save->isEnabled(); ++i) settle(100);
  camera.take(*dialog, QStringLiteral("dialog-diagnostics"));
  dialog->close();
}

// With the real program behind it; in the sizes of a wide and of a narrow screen.
void take_partition(Camera& camera, const Theme& theme, const QString& program) {
  const QTemporaryDir folder;
  const QString graph = write_graph(folder);
  for (const QSize size : {QSize(1080, 1240), QSize(640, 600), QSize(640, 1900)}) {
    auto* dialog = new PartitionDialog(theme, program, nullptr);
    dialog->resize(size);
    dialog->show();
    settle();
    const QString what = QStringLiteral("dialog-partition-%1x%2").arg(size.width()).arg(size.height());
    camera.take(*dialog, what + QStringLiteral("-empty"));
    dialog->form().set_model(graph);
    dialog->findChild<QDoubleSpinBox*>(QStringLiteral("partition_bandwidth"))->setValue(100);
    dialog->form().submit();
    const auto* headline = dialog->findChild<QLabel*>(QStringLiteral("partition_headline"));
    for (int i = 0; i < 100 && !headline->isVisible(); ++i) settle(100);
    if (!headline->isVisible()) qFatal("the graph was not cut: a picture of an error is not what is wanted");
    settle();
    camera.take(*dialog, what);
    dialog->close();
  }
}

}  // namespace neuroshard::ui
