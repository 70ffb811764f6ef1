// The model's learning: curves with marks, the parts of a step's time, progress to the target, and start and
// stop.
#pragma once

#include <QTimer>
#include <set>

#include "core/node/member_decisions.h"
#include "core/node/rounds_report.h"
#include "ui/pages/page.h"
#include "ui/pages/training_marks.h"
#include "ui/widgets/plot_painter.h"

class QLabel;
class QLineEdit;
class QProgressBar;
class QPushButton;
class QSpinBox;

namespace neuroshard::ui {

class Card;
class CardGrid;
class PlotPanel;
class RoundsCards;
class SeriesFeed;
class ShareBar;

class TrainingPage final : public Page {
  Q_OBJECT
 public:
  explicit TrainingPage(const Context& context, QWidget* parent = nullptr);
  QString title() const override { return tr("Training"); }
  QString icon() const override { return QStringLiteral("training"); }
  void refresh(const node::Snapshot& snapshot) override;
  void shown() override;
  void hidden() override;
  void open_detail(const QString& detail) override;

  PlotPanel* loss_panel() const { return loss_; }

 private:
  void ask_rounds();
  void continue_network(const QStringList& without, const QString& agree);
  void show_rounds();
  Card* make_controls();
  Card* make_breakdown();
  void plan_small_panels(CardGrid* grid);
  PlotPanel* make_panel(const QString& title, const QString& file,
                        const std::vector<std::pair<std::string, QString>>& names);
  void choose_folder();
  void choose_file();
  void start();
  void stop();
  void say(const QString& text, bool bad);
  void ask_checkpoints();
  void show_controls(const node::Snapshot& snapshot);
  void show_marks();
  void start_over();  // with another core

  QLineEdit* source_;
  QPushButton* folder_;
  QPushButton* file_;
  QSpinBox* steps_;
  QPushButton* start_;
  QPushButton* stop_;
  QLabel* progress_text_;
  QProgressBar* progress_;
  QLabel* message_;
  PlotPanel* loss_;
  RoundsCards* rounds_;
  QTimer rounds_timer_;
  std::vector<SeriesFeed*> feeds_;
  std::vector<PlotMark> checkpoint_marks_, round_marks_;
  ShareBar* breakdown_;
  QLabel* breakdown_note_;
  bool shown_ = false, asking_ = false, asking_rounds_ = false;
};

}  // namespace neuroshard::ui
