// The memory that a network's members offer, and the models that it is enough for, in words.
#pragma once

#include <QCoreApplication>
#include <QString>

#include "core/node/snapshot.h"

namespace neuroshard::ui {

class CapacityWords {
  Q_DECLARE_TR_FUNCTIONS(neuroshard::ui::CapacityWords)
 public:
  // "Nano", and "Micro from 37.3 GiB".
  static QString tier(const node::NetworkMemoryView& memory);
  static QString next_tier(const node::NetworkMemoryView& memory);
  // The largest model that enough members have room for. The next larger one: how many have room for that, and whether this
  // computer has.
  static QString models(const node::NetworkMemoryView& memory);
};

}  // namespace neuroshard::ui
