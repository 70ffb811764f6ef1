#include "ui/pages/capacity_card.h"

#include <QHBoxLayout>
#include <QLabel>
#include <QVBoxLayout>
#include <utility>

#include "ui/pages/what_if_panel.h"
#include "ui/text/capacity_text.h"
#include "ui/text/format.h"
#include "ui/widgets/gauge.h"

namespace neuroshard::ui {

CapacityCard::CapacityCard(const Theme& theme, Bridge& bridge, QWidget* parent)
    : Card(tr("Memory of the network"), parent) {
  setObjectName(QStringLiteral("capacity_card"));
  set_caption(tr("offered by the members"));
  offered_ = new Fact(theme, tr("All members"), this);
  tier_ = new Fact(theme, tr("Tier"), this);
  own_ = new Fact(theme, tr("This computer"), this);
  needed_ = new Fact(theme, tr("Needed by each"), this);
  for (const auto& [first, second] : {std::pair{offered_, tier_}, std::pair{own_, needed_}}) {
    auto* row = new QHBoxLayout;
    row->addWidget(first, 1);
    row->addWidget(second, 1);
    body()->addLayout(row);
  }
  models_ = make_paragraph({}, "", this);
  models_->setObjectName(QStringLiteral("capacity_models"));
  body()->addWidget(models_);
  rule_ = make_paragraph({}, "caption", this);
  rule_->setObjectName(QStringLiteral("capacity_rule"));
  body()->addWidget(rule_);
  what_if_ = new WhatIfPanel(bridge, this);
  body()->addWidget(what_if_);
  body()->addStretch(1);
  hide();
}

void CapacityCard::show_snapshot(const node::Snapshot& snapshot) {
  const node::RoundsView& rounds = snapshot.rounds;
  setVisible(rounds.taking_part && rounds.memory);
  if (!rounds.memory) return;
  const node::NetworkMemoryView& memory = *rounds.memory;
  offered_->set(memory.known > 0 ? Format::gigabytes(memory.offered_bytes) : Format::dash(),
                CapacityWords::members(memory));
  tier_->set(CapacityWords::tier(memory), CapacityWords::next_tier(memory));
  own_->set(memory.own_bytes > 0 ? Format::gigabytes(memory.own_bytes) : Format::dash(),
            tr("its memory limit"));
  needed_->set(Format::gigabytes(memory.present.member_bytes), CapacityWords::with_room(memory));
  models_->setText(CapacityWords::models(memory));
  rule_->setText(CapacityWords::rule(memory));
  what_if_->show_snapshot(snapshot);
}

}  // namespace neuroshard::ui
