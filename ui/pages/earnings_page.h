// NEURO earned by this node. Nothing can be earned alone, so this says what will be here, and when.
#pragma once

#include "ui/pages/page.h"

class QLabel;
class QPushButton;

namespace neuroshard::ui {

class EarningsPage final : public Page {
  Q_OBJECT
 public:
  explicit EarningsPage(const Context& context, QWidget* parent = nullptr);
  QString title() const override { return tr("Earnings"); }
  QString icon() const override { return QStringLiteral("earnings"); }
  void refresh(const node::Snapshot& snapshot) override;

 private:
  void open_computers();

  QLabel* network_;
  QLabel* wallet_;
  QPushButton* computers_;
  QString directory_, own_node_;
};

}  // namespace neuroshard::ui
