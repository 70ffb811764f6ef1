// The page of checkpoints over a fake core that has some.
#pragma once

#include <QFileDialog>
#include <QFileInfo>
#include <QTableView>

#include "tests/unit/ui/pages/page_fixture.h"
#include "ui/pages/checkpoints_page.h"
#include "ui/widgets/banner.h"

namespace neuroshard::ui {

inline node::CheckpointEntry checkpoint(const std::string& name, std::uint64_t step,
                                        const std::string& parent = {}) {
  node::CheckpointEntry entry;
  entry.name = name;
  entry.step = step;
  entry.at = WallTime(std::chrono::milliseconds(1'699'000'000'000 + static_cast<std::int64_t>(step) * 1000));
  entry.bytes = 10u << 20;
  entry.loss = 4.0;
  entry.hash = "abcdef0123456789";
  entry.parent = parent;
  return entry;
}

// One per test: start() shows the page.
class CheckpointsFixture : public PageFixture {
 public:
  // With these in the core, the newest first.
  void start(std::vector<node::CheckpointEntry> entries) {
    node->checkpoints = std::move(entries);
    show<CheckpointsPage>();
    if (!node->checkpoints.empty())
      QTRY_COMPARE(table()->model()->rowCount(), static_cast<int>(node->checkpoints.size()));
  }
  void start_three() {
    start({checkpoint("c3", 300, "c2"), checkpoint("c2", 200, "c1"), checkpoint("c1", 100)});
  }

  QTableView* table() const { return find<QTableView>("checkpoint_table"); }
  QString cell(int row, int column) const { return table()->model()->index(row, column).data().toString(); }
  void select(int row, bool add = false) const {
    table()->selectionModel()->select(
        table()->model()->index(row, 0),
        (add ? QItemSelectionModel::Select : QItemSelectionModel::ClearAndSelect) |
            QItemSelectionModel::Rows);
  }
  // The banner about the work that has ended.
  const BannerContent& outcome() const { return find<Banner>("work_outcome")->content(); }
  // Takes this name in the dialog that an export has opened. The path; empty: there is none, or it adds another suffix.
  QString save_as(const QString& name) const {
    auto* dialog = page->findChild<QFileDialog*>(QStringLiteral("export_dialog"));
    if (dialog == nullptr || dialog->defaultSuffix() != QFileInfo(name).suffix()) return {};
    const QString path = folder.filePath(name);
    dialog->selectFile(path);
    QMetaObject::invokeMethod(dialog, "accept");
    return path;
  }
};

}  // namespace neuroshard::ui
