// The bottom of the window: peers, traffic, device, and how old what is shown is.
#pragma once

#include <QWidget>
#include <chrono>

#include "core/node/snapshot.h"

class QLabel;

namespace neuroshard::ui {

class Theme;

class StatusLine final : public QWidget {
  Q_OBJECT
 public:
  explicit StatusLine(const Theme& theme, QWidget* parent = nullptr);
  void refresh(const node::Snapshot* snapshot, bool attached, std::chrono::milliseconds age);

 private:
  void show_peers(const node::PeersView& peers);

  QLabel* peers_;
  QLabel* traffic_;
  QLabel* device_;
  QLabel* age_;
};

}  // namespace neuroshard::ui
