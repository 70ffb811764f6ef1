// The look of the app: light or dark, by choice or as the desktop has it, from the one table of tokens.h.
// Widgets take colours when they paint, so that a switch needs nothing but a repaint.
#pragma once

#include <QColor>
#include <QFont>
#include <QIcon>
#include <QObject>
#include <memory>

#include "ui/theme/scheme_source.h"
#include "ui/theme/tokens.h"

class QApplication;

namespace neuroshard::ui {

enum class ThemeChoice { System, Light, Dark };

// Threads: ui. Outlives every widget that holds it.
class Theme final : public QObject {
  Q_OBJECT
 public:
  explicit Theme(std::unique_ptr<SchemeSource> source, QObject* parent = nullptr);

  // Fusion, the font, palette and style sheet; again by itself whenever the look changes.
  void apply(QApplication& application);
  void choose(ThemeChoice choice);
  ThemeChoice choice() const { return choice_; }

  bool dark() const { return dark_; }
  QColor color(Token token) const;
  // resources/icons/<name>.svg, drawn in the colour of the token, in the accent when checked or selected,
  // muted when disabled; crisp at any size, and follows the theme. An unknown name is a bug.
  QIcon icon(const QString& name, Token colour = Token::TextMuted) const;
  QFont monospace() const;
  // The colour of the n-th series of a chart.
  QColor series(int index) const;
  // 0 … 1 of a heat map.
  QColor heat(double share) const;

 Q_SIGNALS:
  void changed();

 private:
  void update();

  std::unique_ptr<SchemeSource> source_;
  QApplication* application_ = nullptr;
  ThemeChoice choice_ = ThemeChoice::System;
  bool dark_ = false;
};

// The style sheet of one of the two looks, every @token replaced.
QString style_sheet(bool dark);

}  // namespace neuroshard::ui
