// The memory that the members of the network offer, and the models that it is enough for. Hidden where there is no network.
#pragma once

#include "core/node/snapshot.h"
#include "ui/widgets/card.h"

class QLabel;

namespace neuroshard::ui {

class Fact;
class Theme;

class CapacityCard final : public Card {
  Q_OBJECT
 public:
  CapacityCard(const Theme& theme, QWidget* parent);
  void show_rounds(const node::RoundsView& rounds);

 private:
  Fact* offered_;
  Fact* tier_;
  Fact* own_;
  Fact* needed_;
  QLabel* models_;
  QLabel* rule_;
};

}  // namespace neuroshard::ui
