// The memory that a network's members offer, and the models that it is enough for, in words.
#pragma once

#include <QCoreApplication>
#include <QString>
#include <QStringList>

#include "core/node/snapshot.h"

namespace neuroshard::ui {

class CapacityWords {
  Q_DECLARE_TR_FUNCTIONS(neuroshard::ui::CapacityWords)
 public:
  // "Nano", and "Micro from 37.3 GiB".
  static QString tier(const node::NetworkMemoryView& memory);
  static QString next_tier(const node::NetworkMemoryView& memory);
  // Beside the sum: "4 members", or "said by 3 of 4 members". Beside the need of each: "offered by 3 of 4 members".
  static QString members(const node::NetworkMemoryView& memory);
  static QString with_room(const node::NetworkMemoryView& memory);
  // Of a model that can change: the change that comes, or the next larger model and what its members lack for it. Else the models
  // that they would have memory for.
  static QString models(const node::NetworkMemoryView& memory);
  // Whether the model changes by itself, and when.
  static QString rule(const node::NetworkMemoryView& memory);

 private:
  using Memory = node::NetworkMemoryView;
  static QString size_of(const Memory::Model& model);
  static QStringList larger(const Memory::Model& model);
  static QStringList votes(const Memory::Model& model);
  static QStringList own_room(const Memory& memory, const Memory::Model& model);
  static QStringList kept(const Memory& memory);
  static QStringList next(const Memory& memory);
  static QStringList growing(const Memory& memory);
  static QStringList shrinking(const Memory& memory);
};

}  // namespace neuroshard::ui
