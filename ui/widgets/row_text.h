// The text of a long table, made row by row in pieces, so that no event of the UI thread takes long.
#pragma once

#include <QByteArray>
#include <QObject>
#include <QString>
#include <QTimer>
#include <functional>

namespace neuroshard::ui {

// Threads: ui. If it is deleted before its end, for example with its parent, it emits nothing.
class RowText final : public QObject {
  Q_OBJECT
 public:
  static constexpr qsizetype rows_per_turn = 500;  // of the event loop

  // `row` makes the text of one row, line end included; it is asked for each of `rows` once, in order, and
  // must not depend on what changes meanwhile.
  RowText(const QString& head, qsizetype rows, std::function<QString(qsizetype)> row, QObject* parent);

  // The first piece is made at once; then done() comes, from here when that was all, and this is deleted.
  void start();

 Q_SIGNALS:
  void done(const QByteArray& utf8);

 private:
  void piece();

  QByteArray text_;
  qsizetype rows_, next_ = 0;
  std::function<QString(qsizetype)> row_;
  QTimer turn_;
};

}  // namespace neuroshard::ui
