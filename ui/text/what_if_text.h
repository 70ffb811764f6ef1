// The changes that would follow in the network if this computer offered other memory or left, in some sentences.
#pragma once

#include <QCoreApplication>
#include <QString>
#include <QStringList>

#include "core/node/what_if.h"

namespace neuroshard::ui {

class WhatIfWords {
  Q_DECLARE_TR_FUNCTIONS(neuroshard::ui::WhatIfWords)
 public:
  static QString answer(const node::WhatIfQuery& query, const node::WhatIf& answer);
  // Of 10⁹ bytes, as the members' offers are counted: "8.5 GB".

 private:
  static QString offered(const node::WhatIf& answer, bool leaves);
  static QStringList sized_model(const node::MemoryOutlook& then, bool leaves);
  static QStringList kept_model(const node::MemoryOutlook& now, const node::MemoryOutlook& then, bool leaves);
  static QString needs(const QString& which, const node::MemoryOutlook& outlook);
  static QString size_of(const node::NetworkMemoryView::Model& model);
  static QString part(const node::PartWithout& part);
  static QString votes(const node::VotesWithout& votes);
};

}  // namespace neuroshard::ui
