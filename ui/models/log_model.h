// The last lines of the core's log as a table, filtered. Append-only: lines come in batches and go at the
// front when there are too many. A new filter is applied in slices, so that no event of the UI thread takes
// long.
//
// A gap is a line too: it marks the place of lines that the core did not keep.
#pragma once

#include <QAbstractTableModel>
#include <QRegularExpression>
#include <QSet>
#include <QTimer>
#include <deque>
#include <utility>
#include <vector>

#include "core/node/queries.h"
#include "ui/models/log_lines.h"

namespace neuroshard::ui {

struct LogFilter {
  LogLevel least = LogLevel::Info;
  QString category;               // empty = all
  QRegularExpression expression;  // of the message; empty pattern = all; must be valid
};

// Threads: ui.
class LogModel final : public QAbstractTableModel {
  Q_OBJECT
 public:
  enum Column { Time, Level, Category, Message, ColumnCount };
  static constexpr int max_lines = 50'000;  // about 20 MB
  static constexpr int slice = 2'000;       // lines per event while a filter is applied

  explicit LogModel(QObject* parent = nullptr);

  // `dropped`: lines before the first of these that the core did not keep.
  void append(const std::vector<node::LogEntry>& entries, quint64 dropped);
  void clear();
  void set_filter(const LogFilter& filter);
  const LogFilter& filter() const { return filter_; }
  // Whether a new filter is still being applied.
  bool filtering() const { return next_unfiltered_ < lines_.end(); }

  int lines() const { return static_cast<int>(lines_.size()); }  // before the filter
  quint64 dropped() const { return dropped_; }
  const LogLine& line(int row) const;  // of the filtered view
  // Of the filtered view, for what takes longer than the model stays as it is: all, or rows from first to
  // last, ranges in order.
  LogExcerpt shown_lines() const { return shown_lines({{0, rowCount() - 1}}); }
  LogExcerpt shown_lines(const std::vector<std::pair<int, int>>& ranges) const;
  // "2026-11-21 14:05:03.120  warning  train  …", for copying and saving.
  static QString text(const LogLine& line);
  QString text(int row) const { return text(line(row)); }
  static QString cell(const LogLine& line, int column);  // as the table shows it

  int rowCount(const QModelIndex& parent = {}) const override;
  int columnCount(const QModelIndex& parent = {}) const override;
  QVariant data(const QModelIndex& index, int role) const override;
  QVariant headerData(int section, Qt::Orientation orientation, int role) const override;

 Q_SIGNALS:
  void category_seen(const QString& category);  // for the first time

 private:
  bool passes(const LogLine& line) const;
  void trim();
  void filter_slice();
  void show_from(quint64 from, quint64 to);

  LogLines lines_;
  std::deque<quint64> shown_;    // running numbers of the lines that pass
  quint64 next_unfiltered_ = 0;  // running number; lines from here on were not looked at yet
  LogFilter filter_;
  quint64 dropped_ = 0;
  QSet<QString> categories_;  // shared strings: a category is stored once
  QTimer filter_timer_;
};

QString level_word(LogLevel level);

}  // namespace neuroshard::ui
