// A message over the page: what is wrong, what it means, what to do, and the details to copy.
#pragma once

#include <QFrame>
#include <functional>
#include <vector>

#include "ui/text/state_text.h"

class QLabel;
class QHBoxLayout;
class QToolButton;

namespace neuroshard::ui {

class Theme;

struct BannerAction {
  QString text;
  std::function<void()> run;
  bool primary = false;
};

struct BannerContent {
  Tone tone = Tone::Info;
  QString title;    // what happened
  QString text;     // what it means and what to do
  QString details;  // technical, shown on demand and copied with the rest; empty = none
  std::vector<BannerAction> actions;
  bool can_close = false;               // the user may put it away
  std::function<void()> on_close = {};  // the user did
};

class Banner final : public QFrame {
  Q_OBJECT
 public:
  explicit Banner(const Theme& theme, QWidget* parent = nullptr);
  void set_content(const BannerContent& content);
  const BannerContent& content() const { return content_; }

 Q_SIGNALS:
  void closed();

 private:
  void show_details(bool shown);
  void copy();

  const Theme& theme_;
  BannerContent content_;
  QLabel* icon_;
  QLabel* title_;
  QLabel* text_;
  QLabel* details_;
  QHBoxLayout* actions_;
  QToolButton* more_;
  QToolButton* copy_;
  QToolButton* close_;
};

}  // namespace neuroshard::ui
