// Numbers and times as people read them, in the user's locale. Unknown is a dash, never 0.
#pragma once

#include <QCoreApplication>
#include <QString>
#include <chrono>
#include <cstdint>
#include <optional>

#include "core/base/clock.h"

namespace neuroshard::ui {

class Format {
  Q_DECLARE_TR_FUNCTIONS(neuroshard::ui::Format)
 public:
  static QString dash();                        // "—"
  static QString integer(std::uint64_t value);  // "12,345"
  static QString si(double value);              // "1.24 M", for tokens and parameters
  static QString bytes(std::uint64_t value);    // "1.50 GiB"
  static QString gigabytes(
      std::uint64_t value);           // "1.5 GB", "1.6 TB": of memory that members offer, in whole 0.5 GB
  static QString loss(double value);  // four significant digits: "3.214"; not finite: dash
  static QString loss(const std::optional<double>& value);
  static QString significant(double value,
                             int digits);         // plain or with an exponent, whichever is shorter to read
  static QString percent(double share);           // 0 … 1: "12 %"
  static QString rate(double tokens_per_second);  // "7,132 tokens/s"
  static QString seconds(double value);           // "840 ms", "2.4 s", "3 min 5 s"
  static QString duration(std::chrono::seconds value);  // "45 s", "12 min", "2 h 5 min", "3 d 4 h"
  static QString ago(WallTime then, WallTime now);      // "just now", "3 min ago"; the epoch: dash
  static QString date_time(WallTime at);                // absolute, for tooltips; the epoch: dash
  static QString until(WallTime at, WallTime now);      // "21:31", "tomorrow 09:00", "Mon 24 Nov 09:00"
  static QString middle_elided(const QString& text, int characters);  // "26870dc7…62c5"
};

}  // namespace neuroshard::ui
