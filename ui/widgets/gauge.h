// One measured amount against its limit: caption, value, a bar, a note. Without a limit there is no bar;
// unknown is a dash.
#pragma once

#include <QWidget>
#include <optional>

class QLabel;

namespace neuroshard::ui {

class NumberLabel;
class Theme;

class Gauge final : public QWidget {
  Q_OBJECT
 public:
  Gauge(const Theme& theme, const QString& caption, QWidget* parent = nullptr);
  // share: 0 … 1 of the limit, unset = no limit or unknown. From `high` on the bar is amber and says so, from
  // 1 on red.
  void set(const QString& value, std::optional<double> share, const QString& note);
  // Off: full is normal, as for a processor that computes.
  void set_warns(bool on) { warns_ = on; }
  std::optional<double> share() const { return share_; }
  QString value() const;

 protected:
  void paintEvent(QPaintEvent* event) override;

 private:
  const Theme& theme_;
  NumberLabel* value_;
  QLabel* caption_;
  QLabel* note_;
  QWidget* bar_;
  std::optional<double> share_;
  bool warns_ = true;
};

// Caption, a big number, and a note below it.
class Fact final : public QWidget {
  Q_OBJECT
 public:
  Fact(const Theme& theme, const QString& caption, QWidget* parent = nullptr);
  void set(const QString& value, const QString& note = {});
  QString value() const;

 private:
  NumberLabel* value_;
  QLabel* note_;
  QString caption_;
};

}  // namespace neuroshard::ui
