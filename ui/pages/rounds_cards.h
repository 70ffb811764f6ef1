// The outer rounds, for people: the one that is being made, who contributed to the last ones and
// who was late or left out and why, and what each node of the network says. Hidden where there are none.
#pragma once

#include <QWidget>

#include "core/node/rounds_report.h"
#include "core/node/snapshot.h"

class QLabel;
class QProgressBar;
class QStandardItemModel;

namespace neuroshard::ui {

class Bridge;
class Card;
class ChainCard;
class Fact;
class PlotPanel;
class Sections;
class TableView;
class Theme;

class RoundsCards final : public QWidget {
  Q_OBJECT
 public:
  // All but its frame is added to the sections of the page.
  RoundsCards(const Theme& theme, Bridge& bridge, Sections& sections, QWidget* parent);
  // At most ten times a second. may_steer: a decision of the person can be sent.
  void show_snapshot(const node::Snapshot& snapshot, bool may_steer);
  // The long answer, every few seconds.
  void show_report(const node::RoundsReport& report, WallTime now);
  // It could not be had; empty: it could.
  void show_problem(const QString& problem);
  // The outcome of a decision to go on without members.
  void show_continuation(const QString& outcome);

 Q_SIGNALS:
  // The person goes on without these members, or agrees with another member's proposal, which is a block.
  void continuation_decided(const QStringList& without, const QString& agree);

 private:
  Card* make_round();
  Card* make_network();
  ChainCard* make_chain();
  PlotPanel* make_losses();
  Card* make_rounds();
  Card* make_nodes();

  const Theme& theme_;
  Bridge& bridge_;
  QString shown_icon_;
  Fact* round_;
  Fact* members_;
  Fact* waiting_;
  Fact* traffic_;
  QLabel* phase_;
  QProgressBar* progress_;
  QLabel* alerts_;
  QLabel* caution_;
  QLabel* left_out_;
  ChainCard* chain_;
  Fact* loss_;
  Fact* own_loss_;
  Fact* nodes_training_;
  Fact* tokens_;
  QLabel* agreement_icon_;
  QLabel* agreement_;
  QLabel* verified_;
  QLabel* problem_;
  QLabel* refused_;
  TableView* round_table_;
  QStandardItemModel* rounds_;
  TableView* node_table_;
  QStandardItemModel* nodes_;
  PlotPanel* losses_;
};

}  // namespace neuroshard::ui
