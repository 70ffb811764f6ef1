// NEURO earned by this node. Nothing can be earned alone, so this says what will be here, and when.
#pragma once

#include "ui/pages/page.h"

class QLabel;

namespace neuroshard::ui {

class EarningsPage final : public Page {
  Q_OBJECT
 public:
  explicit EarningsPage(const Context& context, QWidget* parent = nullptr);
  QString title() const override { return tr("Earnings"); }
  QString icon() const override { return QStringLiteral("earnings"); }
  void refresh(const node::Snapshot& snapshot) override;

 private:
  QLabel* network_;
  QLabel* wallet_;
};

}  // namespace neuroshard::ui
