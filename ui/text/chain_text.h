// The chain on which the members agree in words, for the pages.
#pragma once

#include <QCoreApplication>
#include <QString>
#include <chrono>

#include "core/node/snapshot.h"

namespace neuroshard::ui {

class ChainWords {
  Q_DECLARE_TR_FUNCTIONS(neuroshard::ui::ChainWords)
 public:
  // After so long without enough voters the app offers to go on without those that are gone.
  static constexpr std::chrono::hours offer_after{24};

  // "Block 120 is certified, 3 s ago". Empty: no history yet.
  static QString block(const node::ChainView& chain);
  // The voters that are reachable, and those that are not.
  static QString presence(const node::ChainView& chain);
  // This node's standing, and how far a candidate is from a vote.
  static QString standing(const node::ChainView& chain);
  // Other histories of this network. Empty: none was seen.
  static QString others(const node::ChainView& chain);
  // The choice of a person when too few voters are left. Empty: nothing is to be decided.
  static QString recovery(const node::ChainView& chain);
  // The app offers a decision: to go on without the missing members, or to agree with another member.
  static bool offers_continuation(const node::ChainView& chain);
};

}  // namespace neuroshard::ui
