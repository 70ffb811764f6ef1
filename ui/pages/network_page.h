// The layers of the model and who holds them, the peers, and whether others can reach this node.
#pragma once

#include <QTimer>
#include <vector>

#include "ui/pages/page.h"
#include "ui/widgets/share_legend.h"

class QLabel;
class QStandardItemModel;

namespace neuroshard::node {
struct NetworkView;
struct SlotEntry;
}  // namespace neuroshard::node

namespace neuroshard::ui {

class CapacityCard;
class Card;
class CellGrid;
class Donut;
class NetworkCards;
class TableView;
struct GridContent;

class NetworkPage final : public Page {
  Q_OBJECT
 public:
  explicit NetworkPage(const Context& context, QWidget* parent = nullptr);
  QString title() const override { return tr("Network"); }
  QString icon() const override { return QStringLiteral("network"); }
  void refresh(const node::Snapshot& snapshot) override;
  void shown() override;
  void hidden() override;

 private:
  Card* make_map();
  Card* make_memory();
  void ask();
  void ask_network(bool test);
  void invite();
  void show_slots(const std::vector<node::SlotEntry>& entries);
  void clear_slots();

  CellGrid* map_;
  TableView* table_;
  QStandardItemModel* model_;
  QLabel* detail_;
  QLabel* part_ = nullptr;  // made with the map
  QLabel* path_ = nullptr;  // likewise
  QLabel* summary_;
  CapacityCard* capacity_ = nullptr;  // likewise
  Donut* memory_;
  QLabel* memory_note_;
  std::uint64_t asked_parameters_ = 0;  // of the model that the map shows
  std::vector<std::uint32_t> asked_holders_;
  std::uint32_t asked_part_ = 0;
  bool asking_ = false;
  NetworkCards* network_;
  QTimer timer_;
  bool asking_network_ = false;
  QString invitation_;  // the latest answer's
  bool can_let_vote_ = false, votes_by_invitation_ = false;
};

// Columns: embedding, layers, head; rows: the shared part, then each expert. A cell says how many nodes hold
// it.
GridContent layer_map(const std::vector<node::SlotEntry>& entries);
// Memory of the slots held here, by kind; kinds without slots are left out.
std::vector<SharePart> memory_by_kind(const std::vector<node::SlotEntry>& entries);

}  // namespace neuroshard::ui
