// The first page: what the node does and why, how well it learns, what it holds and takes, and what needs
// attention.
#pragma once

#include <vector>

#include "ui/pages/page.h"

class QLabel;
class QProgressBar;
class QPushButton;
class QVBoxLayout;

namespace neuroshard::ui {

class Card;
class CardGrid;
class Fact;
class Gauge;
class PlotWidget;
class SeriesFeed;
class TogetherCard;

class OverviewPage final : public Page {
  Q_OBJECT
 public:
  explicit OverviewPage(const Context& context, QWidget* parent = nullptr);
  QString title() const override { return tr("Overview"); }
  QString icon() const override { return QStringLiteral("overview"); }
  void refresh(const node::Snapshot& snapshot) override;
  void shown() override;
  void hidden() override;

 private:
  Card* make_state_card();
  Card* make_loss_card();
  Card* make_speed_card();
  Card* make_model_card();
  Card* make_resources_card();
  Card* make_alerts_card();
  Card* make_earned_card();
  void show_state(const node::Snapshot& snapshot);
  void show_learning(const node::Snapshot& snapshot);
  void show_model(const node::Snapshot& snapshot);
  static QString whole_model_text(const node::ModelView& model);
  void show_resources(const node::Snapshot& snapshot);
  void show_alerts(const node::Snapshot& snapshot);
  void make_alerts(const std::vector<node::Alert>& alerts);
  QWidget* make_alert(const node::Alert& alert);

  CardGrid* grid_;
  QLabel* state_icon_;
  QLabel* state_word_;
  QLabel* state_reason_;
  QLabel* activity_;
  QProgressBar* progress_;
  QPushButton* start_;
  QString shown_state_;
  Fact* loss_;
  Fact* held_out_;
  PlotWidget* loss_spark_;
  SeriesFeed* loss_feed_;
  Fact* speed_;
  Fact* tokens_;
  PlotWidget* speed_spark_;
  SeriesFeed* speed_feed_;
  Fact* parameters_;
  QLabel* slots_;
  Gauge* memory_;
  Gauge* disk_;
  Gauge* cpu_;
  QVBoxLayout* alerts_;
  QString shown_alerts_;
  std::vector<QLabel*> alert_ages_;  // of these alerts, in their order
  TogetherCard* together_;
};

}  // namespace neuroshard::ui
