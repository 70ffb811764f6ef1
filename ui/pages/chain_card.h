// The chain on which the members agree: blocks, voters that are reachable, candidates, this node's standing, and
// the decision to go on without members that are gone.
#pragma once

#include <QStringList>

#include "core/node/snapshot.h"
#include "ui/widgets/card.h"

class QLabel;
class QPushButton;

namespace neuroshard::ui {

class Bridge;
class Fact;
class Theme;

class ChainCard final : public Card {
  Q_OBJECT
 public:
  ChainCard(const Theme& theme, Bridge& bridge, QWidget* parent = nullptr);
  // may_steer: a decision of the person can be sent.
  void show_chain(const node::ChainView& chain, bool may_steer);
  // The outcome of a decision; empty: nothing to say.
  void show_outcome(const QString& text);

 Q_SIGNALS:
  // The person has agreed to this. One of both is empty: ids of members that are gone, or the block to agree with.
  void decided(const QStringList& without, const QString& agree);

 private:
  void ask();

  Bridge& bridge_;
  QLabel* standing_;
  QLabel* presence_;
  QLabel* others_;
  QLabel* recovery_;
  QLabel* outcome_;
  QPushButton* go_on_;
  Fact* blocks_;
  Fact* voters_;
  Fact* candidates_;
  Fact* committee_;
  node::ChainView shown_;
};

}  // namespace neuroshard::ui
