// Actions on checkpoints: each explains its effect, asks where it matters, and sends the command.
#pragma once

#include <QObject>
#include <vector>

#include "core/node/queries.h"

namespace neuroshard::ui {

class Bridge;
class Theme;
class WorkPanel;

// Threads: ui.
class CheckpointActions final : public QObject {
  Q_OBJECT
 public:
  using Entries = std::vector<node::CheckpointEntry>;
  // `window` is the parent of questions and dialogs.
  CheckpointActions(Bridge& bridge, const Theme& theme, WorkPanel& work, QWidget* window);

  void save();
  void restore(const node::CheckpointEntry& entry);
  void undo();
  void verify(const Entries& entries);
  void compare(const node::CheckpointEntry& first, const node::CheckpointEntry& second);
  void pin(const Entries& entries, bool pinned);
  // The newest and pinned ones stay; a message says why.
  void remove(const Entries& entries, const std::string& newest);
  void prune();
  // format: as in node::Node::export_checkpoint.
  void export_as(const node::CheckpointEntry& entry, const QString& format);
  void import();
  // format: as in node::Records::export_history.
  void export_history(const QString& format);

 private:
  Bridge& bridge_;
  const Theme& theme_;
  WorkPanel& work_;
  QWidget* window_;
};

}  // namespace neuroshard::ui
