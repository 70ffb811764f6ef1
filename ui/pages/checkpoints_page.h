// The saved states of the model: the step, quality and actions of each
// with them.
#pragma once

#include <QTimer>
#include <vector>

#include "core/base/expected.h"
#include "core/node/queries.h"
#include "core/node/records.h"
#include "ui/pages/page.h"

class QPushButton;
class QSortFilterProxyModel;
class QStackedWidget;
class QToolButton;
class QVBoxLayout;

namespace neuroshard::ui {

class Banner;
class Card;
class CheckpointActions;
class CheckpointModel;
class CheckpointTimeline;
class EmptyState;
class EvaluationCard;
class TableView;
class WorkPanel;

class CheckpointsPage final : public Page {
  Q_OBJECT
 public:
  static constexpr std::size_t max_shown = 2'000;

  explicit CheckpointsPage(const Context& context, QWidget* parent = nullptr);
  QString title() const override { return tr("Checkpoints"); }
  QString icon() const override { return QStringLiteral("checkpoints"); }
  void refresh(const node::Snapshot& snapshot) override;
  void shown() override;
  void hidden() override;
  void open_detail(const QString& name) override;  // selects that checkpoint; "prune": asks the rule

 private:
  using Entries = std::vector<node::CheckpointEntry>;

  void build_toolbar(QVBoxLayout* column);
  void build_stack(QVBoxLayout* column);  // what stands here without any checkpoint, and with some
  void build_table(QVBoxLayout* column);
  void connect_signals();
  QMenu* more_menu();
  void ask();
  void ask_evaluations();
  void take(const Expected<node::CheckpointPage>& page);
  void show_entries();
  Entries chosen() const;  // in the order of the table
  void choose(const QString& name, bool add);
  void update_actions();
  void show_undo(const node::UndoView& undo);

  CheckpointModel* model_;
  QSortFilterProxyModel* sorted_;
  CheckpointActions* actions_;
  WorkPanel* work_;
  Banner* undo_;
  std::string undo_shown_;
  CheckpointTimeline* timeline_;
  EvaluationCard* evaluations_;
  TableView* table_;
  Card* table_card_;
  QStackedWidget* stack_;
  EmptyState* empty_;
  bool has_model_ = false;  // without one there is nothing to save
  bool may_steer_ = true;   // as the actions were shown last
  QVBoxLayout* content_;
  QPushButton* save_;
  QPushButton* restore_;
  QPushButton* verify_;
  QPushButton* compare_;
  QPushButton* pin_;
  QToolButton* more_;
  std::vector<QAction*> exports_;
  std::vector<QAction*> steering_;  // commands that need no selection
  QAction* delete_ = nullptr;
  QTimer ageing_;
  bool asking_ = false, ask_again_ = false;
  Entries incoming_;
};

}  // namespace neuroshard::ui
