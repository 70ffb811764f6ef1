// Cuts a model from a file into pipeline blocks and shows how good the cut is: the blocks' loads, the proof,
// and the graph. `neuroshardd partition` does the work, in a process of its own; the window never waits for
// it.
#pragma once

#include <QDialog>
#include <QTimer>

#include "ui/pages/partition_job.h"

class QLabel;
class QStandardItemModel;

namespace neuroshard::ui {

class Card;
class EmptyState;
class PartitionBars;
class PartitionForm;
class PartitionPicture;
class TableView;
class Theme;

// Threads: ui.
class PartitionDialog final : public QDialog {
  Q_OBJECT
 public:
  // `program`: neuroshardd; empty: the dialog says that it was not found.
  PartitionDialog(const Theme& theme, const QString& program, QWidget* parent = nullptr);

  PartitionForm& form() const { return *form_; }
  qint64 process() const { return job_.process(); }  // number of the program that works; 0 = none

 protected:
  void dragEnterEvent(QDragEnterEvent* event) override;
  void dropEvent(QDropEvent* event) override;

 private:
  void cut();
  void stop();
  void rest();
  Card* make_result();
  Card* make_load();
  Card* make_picture();
  void show_report(const PartitionReport& report);
  void fill_tables(const PartitionReport& report);

  const Theme& theme_;
  PartitionJob job_;
  QTimer tick_;  // of the words beside the progress bar
  PartitionForm* form_;
  EmptyState* empty_;
  QWidget* results_;
  QLabel* headline_;
  QLabel* proof_;
  QLabel* origin_;
  PartitionBars* bars_;
  PartitionPicture* picture_;
  TableView* block_table_;
  TableView* node_table_;
  QStandardItemModel* block_rows_;
  QStandardItemModel* node_rows_;
};

// The card on the network page that opens the dialog.
Card* make_partition_card(const Theme& theme, const QString& program, QWidget* parent = nullptr);

}  // namespace neuroshard::ui
