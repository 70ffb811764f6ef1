// A card: a heading, an optional caption and controls beside it, and a body. Cards stand on a grid of 8
// pixels.
#pragma once

#include <QFrame>

class QHBoxLayout;
class QLabel;
class QVBoxLayout;

namespace neuroshard::ui {

inline constexpr int grid_step = 8;
inline constexpr int card_margin = 2 * grid_step;

class Card : public QFrame {
  Q_OBJECT
 public:
  explicit Card(const QString& title = {}, QWidget* parent = nullptr);

  void set_title(const QString& title);
  QString title() const;
  // Small text beside the title; empty = none.
  void set_caption(const QString& caption);
  // A control at the right of the heading; the card owns it.
  void add_control(QWidget* control);
  QVBoxLayout* body() const { return body_; }

 private:
  QLabel* title_;
  QLabel* caption_;
  QHBoxLayout* heading_;
  QVBoxLayout* body_;
};

// A label with a role of the style sheet: "page-title", "card-title", "caption", "muted", "strong", "danger",
// "warning", "working". Plain text, never HTML, because what it shows may come from elsewhere.
QLabel* make_label(const QString& text, const char* role = nullptr, QWidget* parent = nullptr);
// The same for text of any length: wraps.
QLabel* make_paragraph(const QString& text, const char* role = nullptr, QWidget* parent = nullptr);
// Sets the role of a widget that the style sheet already knows, and redraws it.
void set_role(QWidget* widget, const char* property, const QString& value);

}  // namespace neuroshard::ui
