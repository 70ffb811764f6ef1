// Outer rounds and the training of the whole network in words, for the pages.
#pragma once

#include <QCoreApplication>
#include <QString>
#include <QStringList>

#include "core/node/snapshot.h"
#include "ui/text/state_text.h"

namespace neuroshard::ui {

class RoundsWords {
  Q_DECLARE_TR_FUNCTIONS(neuroshard::ui::RoundsWords)
 public:
  // "Training its part, about 2 min left"; what the core says where it is none of the known phases.
  static QString phase(const node::RoundsView& rounds);
  // A caution about the rounds: alone, too few to vote, not a member yet. Empty: no caution.
  static QString caution(const node::RoundsView& rounds);
  // This node's part of the model and the pipeline through it. Empty: it holds the whole model.
  static QString part(const node::RoundsView& rounds);
  // The results of this node's checks of other parts, and the parts that nobody checks.
  static QStringList checks(const node::PartView& part);
  // Whether the network or the owner chose the part, and where the node moves.
  static QStringList placement(const node::PartView& part);
  static QStringList holders(const node::PartView& part);
  static QStringList speed(const node::PartView& part);
  // The nodes that this node's text passes, one a line, each with its times where they are known. Empty: there is no path.
  static QString path(const node::Snapshot& snapshot);
  // "improving", "not enough data yet".
  static QString trend(const node::GlobalTrainingView& global);
  struct Judgement {
    QString text;
    Tone tone = Tone::Info;
    QString icon;  // in resources/icons
  };
  // Whether all hold the same anchor, and whether the rounds' work counts: the worst of it.
  static Judgement agreement(const node::GlobalTrainingView& global);
};

}  // namespace neuroshard::ui
