#include "ui/pages/what_if_panel.h"

#include <QDoubleSpinBox>
#include <QHBoxLayout>
#include <QLabel>
#include <QPushButton>
#include <QSignalBlocker>
#include <QVBoxLayout>
#include <algorithm>
#include <cmath>
#include <utility>

#include "core/node/member_decisions.h"
#include "ui/bridge/bridge.h"
#include "ui/pages/setting_editor_parts.h"
#include "ui/text/what_if_text.h"
#include "ui/widgets/card.h"

namespace neuroshard::ui {
namespace {

// Offers are counted in such.
constexpr std::uint64_t tier_bytes = 500'000'000;
constexpr double step_gb = 0.5;
constexpr std::uint64_t most_tiers = 2'000;  // of a machine whose memory is not known
constexpr int still_ms = 300;

double gigabytes(std::uint64_t tiers) {
  return step_gb * static_cast<double>(tiers);
}

}  // namespace

WhatIfPanel::WhatIfPanel(Bridge& bridge, QWidget* parent) : QWidget(parent), bridge_(bridge) {
  setObjectName(QStringLiteral("what_if"));
  auto* column = new QVBoxLayout(this);
  column->setContentsMargins(0, 0, 0, 0);
  column->setSpacing(grid_step);
  QLabel* label = make_paragraph(tr("See what would change if this computer offered"), "caption", this);
  column->addWidget(label);
  auto* row = new QHBoxLayout;
  memory_ = new QDoubleSpinBox(this);
  memory_->setObjectName(QStringLiteral("what_if_memory"));
  memory_->setAccessibleName(tr("Memory that this computer would offer"));
  memory_->setToolTip(
      tr("Shows what would change. To offer more or less, change the memory limit in the settings."));
  memory_->setRange(step_gb, gigabytes(most_tiers));
  memory_->setSingleStep(step_gb);
  memory_->setDecimals(1);
  memory_->setSuffix(tr(" GB"));
  guard_wheel(memory_);
  // Its own size hint is of the maximum, and leaves the style's padding and arrows out.
  const int widest = memory_->fontMetrics().horizontalAdvance(QStringLiteral("00,000.0") + memory_->suffix());
  memory_->setMinimumWidth(widest + 5 * grid_step);
  label->setBuddy(memory_);
  leave_ = new QPushButton(tr("If this computer left"), this);
  leave_->setObjectName(QStringLiteral("what_if_leave"));
  leave_->setProperty("role", QStringLiteral("link"));
  leave_->setAccessibleName(tr("See what would change if this computer left"));
  leave_->setToolTip(tr("Shows what would change. The computer stays in the network."));
  leave_->setAutoDefault(false);
  row->addWidget(memory_);
  row->addWidget(leave_);
  row->addStretch(1);
  column->addLayout(row);
  answer_ = make_paragraph({}, "", this);
  answer_->setObjectName(QStringLiteral("what_if_answer"));
  answer_->hide();
  column->addWidget(answer_);
  still_.setSingleShot(true);
  still_.setInterval(still_ms);
  connect(&still_, &QTimer::timeout, this, &WhatIfPanel::ask);
  connect(memory_, &QDoubleSpinBox::valueChanged, this, [this](double value) {
    const auto tiers = static_cast<std::uint64_t>(std::max(1.0, std::floor(value / step_gb)));
    asked_ = node::WhatIfQuery{tiers * tier_bytes};
    still_.start();
  });
  connect(leave_, &QPushButton::clicked, this, [this] {
    still_.stop();
    asked_ = node::WhatIfQuery{};
    ask();
  });
  connect(&bridge_, &Bridge::attached_changed, this, [this] {
    asked_.reset();
    answer_->hide();
  });
}

void WhatIfPanel::show_snapshot(const node::Snapshot& snapshot) {
  if (!snapshot.rounds.memory) return;
  const node::NetworkMemoryView& memory = *snapshot.rounds.memory;
  const std::uint64_t total = snapshot.resources.memory_total_bytes, own = memory.own_bytes / tier_bytes;
  const std::uint64_t most = std::max({std::uint64_t{1}, own, total == 0 ? most_tiers : total / tier_bytes});
  const Offers offers{memory.members, memory.offered_bytes, memory.own_bytes};
  const bool changed = std::exchange(offers_, offers) != offers;
  {
    const QSignalBlocker quiet(memory_);
    memory_->setMaximum(gigabytes(most));
    if (!asked_ && own > 0 && !memory_->hasFocus()) memory_->setValue(gigabytes(own));
  }
  if (changed && asked_ && !still_.isActive()) ask();
}

void WhatIfPanel::ask() {
  if (!asked_ || !bridge_.attached()) return;
  const std::uint64_t number = ++number_;
  bridge_.query<node::WhatIf>(
      this,
      [query = *asked_](node::Node& node, node::Reply<node::WhatIf> reply) {
        return node.decisions().query_what_if(query, std::move(reply));
      },
      [this, number](const Expected<node::WhatIf>& answer) {
        if (number == number_ && asked_) show_answer(answer);
      });
}

void WhatIfPanel::show_answer(const Expected<node::WhatIf>& answer) {
  answer_->setText(answer.ok() ? WhatIfWords::answer(*asked_, *answer)
                               : QString::fromStdString(answer.error().message));
  answer_->show();
}

}  // namespace neuroshard::ui
