// A question about the network: what would change if this computer offered other memory, or left. The core answers; nothing
// changes by asking.
//
// Threads: ui.
#pragma once

#include <QTimer>
#include <QWidget>
#include <optional>
#include <tuple>

#include "core/base/expected.h"
#include "core/node/what_if.h"

class QDoubleSpinBox;
class QLabel;
class QPushButton;

namespace neuroshard::ui {

class Bridge;

class WhatIfPanel final : public QWidget {
  Q_OBJECT
 public:
  explicit WhatIfPanel(Bridge& bridge, QWidget* parent = nullptr);
  // The memory field shows the present offer until somebody changes it. A question that is answered is asked again when the
  // members' offers have changed.
  void show_snapshot(const node::Snapshot& snapshot);

 private:
  void ask();
  void show_answer(const Expected<node::WhatIf>& answer);

  Bridge& bridge_;
  QDoubleSpinBox* memory_;
  QPushButton* leave_;
  QLabel* answer_;
  QTimer still_;  // typing
  std::optional<node::WhatIfQuery> asked_;
  std::uint64_t number_ = 0;                                               // of the newest question
  using Offers = std::tuple<std::uint32_t, std::uint64_t, std::uint64_t>;  // members, all bytes, own bytes
  Offers offers_;
};

}  // namespace neuroshard::ui
