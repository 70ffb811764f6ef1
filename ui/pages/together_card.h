// The network on the overview: its loss, whether all nodes agree, its rounds and its chain. A node that trains
// alone sees what it would show.
#pragma once

#include "core/node/snapshot.h"
#include "ui/text/rounds_text.h"
#include "ui/widgets/card.h"

class QLabel;

namespace neuroshard::ui {

class Fact;
class Theme;

class TogetherCard final : public Card {
  Q_OBJECT
 public:
  explicit TogetherCard(const Theme& theme, QWidget* parent = nullptr);
  void show_network(const node::Snapshot& snapshot);

 Q_SIGNALS:
  void rounds_wanted();

 private:
  void add_agreement(QVBoxLayout* inside);
  void draw_agreement();
  void show_rounds(const node::RoundsView& rounds);

  const Theme& theme_;
  QLabel* network_;
  QLabel* note_;
  QWidget* together_;  // what is known of all nodes; hidden where the node trains alone
  Fact* loss_;
  Fact* nodes_;
  QLabel* agreement_icon_;
  QLabel* agreement_;
  QLabel* rounds_;
  QLabel* chain_;
  QLabel* caution_;
  RoundsWords::Judgement judged_;
};

}  // namespace neuroshard::ui
