// The cards of the network page about this node: reachability, peers, sources of peers, and traffic. Fed with
// one answer of the core at a time.
#pragma once

#include <QWidget>

#include "core/node/network_view.h"
#include "core/node/snapshot.h"

class QLabel;
class QPushButton;
class QStandardItemModel;

namespace neuroshard::ui {

class Card;
class CardGrid;
class EmptyState;
class PeerModel;
class PlotPanel;
class TableView;
class Sections;
class Theme;

class NetworkCards final : public QWidget {
  Q_OBJECT
 public:
  // All but its frame is added to the sections of the page.
  NetworkCards(const Theme& theme, Sections& sections, QWidget* parent);
  // may_steer: a test can be asked for.
  void show_view(const node::NetworkView& view, WallTime now, bool may_steer);
  // At most ten times a second: why there may be no view.
  void show_snapshot(const node::Snapshot& snapshot);
  // The core could not be asked.
  void show_problem(const QString& problem);

 Q_SIGNALS:
  void test_wanted();
  void invite_wanted();

 private:
  Card* make_reach();
  PlotPanel* make_traffic(const Theme& theme);
  Card* make_sources();
  Card* make_peers();
  void show_reach(const node::NetworkView& view, WallTime now);
  void show_traffic(const node::NetworkView& view);

  EmptyState* alone_;
  QWidget* content_;
  QLabel* problem_;
  QLabel* reach_;
  QLabel* summary_;
  QLabel* found_;
  QLabel* advice_;
  QLabel* tested_;
  QPushButton* test_;
  QPushButton* invite_;
  QStandardItemModel* sources_;
  TableView* source_table_;
  PeerModel* peers_;
  TableView* peer_table_;
  Card* peer_card_;
  QLabel* refused_;
  PlotPanel* traffic_;
};

}  // namespace neuroshard::ui
