// The memory that the members of the network offer, the models that it is enough for, and what would change with other memory.
// Hidden where there is no network.
#pragma once

#include "core/node/snapshot.h"
#include "ui/widgets/card.h"

class QLabel;

namespace neuroshard::ui {

class Bridge;
class Fact;
class Theme;
class WhatIfPanel;

class CapacityCard final : public Card {
  Q_OBJECT
 public:
  CapacityCard(const Theme& theme, Bridge& bridge, QWidget* parent);
  void show_snapshot(const node::Snapshot& snapshot);

 private:
  Fact* offered_;
  Fact* tier_;
  Fact* own_;
  Fact* needed_;
  QLabel* models_;
  QLabel* rule_;
  WhatIfPanel* what_if_;
};

}  // namespace neuroshard::ui
