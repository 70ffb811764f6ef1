#include "ui/text/format.h"

#include <QDateTime>
#include <QLocale>
#include <array>
#include <cmath>

namespace neuroshard::ui {
namespace {

QDateTime local(WallTime at) {
  return QDateTime::fromMSecsSinceEpoch(to_unix_ms(at));
}

// Three significant digits in the locale's writing.
QString three_digits(double value) {
  const double size = std::abs(value);
  const int decimals = size >= 100 ? 0 : size >= 10 ? 1 : 2;
  return QLocale().toString(value, 'f', decimals);
}

}  // namespace

QString Format::dash() {
  return QStringLiteral("—");
}

QString Format::integer(std::uint64_t value) {
  return QLocale().toString(static_cast<qulonglong>(value));
}

QString Format::si(double value) {
  if (!std::isfinite(value)) return dash();
  static constexpr std::array<const char*, 5> units = {"", "k", "M", "G", "T"};
  std::size_t unit = 0;
  double scaled = value;
  // 999.5 would be written as 1000.
  while (std::abs(scaled) >= 999.5 && unit + 1 < units.size()) {
    scaled /= 1000;
    ++unit;
  }
  if (unit == 0 && scaled == std::floor(scaled)) return QLocale().toString(scaled, 'f', 0);
  const QString text = three_digits(scaled);
  return unit == 0 ? text : text + QStringLiteral("\u00a0") + QLatin1String(units[unit]);
}

QString Format::bytes(std::uint64_t value) {
  static constexpr std::array<const char*, 5> units = {"KiB", "MiB", "GiB", "TiB", "PiB"};
  if (value < 1024) return tr("%1\u00a0B").arg(integer(value));
  double scaled = static_cast<double>(value) / 1024;
  std::size_t unit = 0;
  while (scaled >= 1023.5 && unit + 1 < units.size()) {
    scaled /= 1024;
    ++unit;
  }
  return three_digits(scaled) + QStringLiteral("\u00a0") + QLatin1String(units[unit]);
}

QString Format::gigabytes(std::uint64_t value) {
  const bool large = value >= 1'000'000'000'000;
  return QLocale().toString(static_cast<double>(value) / (large ? 1e12 : 1e9), 'f', 1) +
         (large ? QStringLiteral("\u00a0TB") : QStringLiteral("\u00a0GB"));
}

QString Format::loss(double value) {
  return significant(value, 4);
}

QString Format::loss(const std::optional<double>& value) {
  return value ? loss(*value) : dash();
}

QString Format::significant(double value, int digits) {
  if (!std::isfinite(value)) return dash();
  if (value == 0) return QStringLiteral("0");
  const int magnitude = static_cast<int>(std::floor(std::log10(std::abs(value))));
  if (magnitude < -4 || magnitude > 6) return QLocale().toString(value, 'e', digits - 1);
  return QLocale().toString(value, 'f', std::max(0, digits - 1 - magnitude));
}

QString Format::percent(double share) {
  if (!std::isfinite(share)) return dash();
  const double value = share * 100;
  return tr("%1\u00a0%").arg(QLocale().toString(value, 'f', value != 0 && std::abs(value) < 9.95 ? 1 : 0));
}

QString Format::rate(double tokens_per_second) {
  if (!std::isfinite(tokens_per_second)) return dash();
  return tr("%1 tokens/s").arg(QLocale().toString(tokens_per_second, 'f', tokens_per_second < 100 ? 1 : 0));
}

QString Format::seconds(double value) {
  if (!std::isfinite(value)) return dash();
  if (value < 1) return tr("%1\u00a0ms").arg(QLocale().toString(value * 1000, 'f', value < 0.01 ? 1 : 0));
  if (value < 60) return tr("%1\u00a0s").arg(QLocale().toString(value, 'f', value < 10 ? 2 : 1));
  return duration(std::chrono::seconds(std::llround(value)));
}

QString Format::duration(std::chrono::seconds value) {
  const qlonglong s = std::max<qlonglong>(0, value.count());
  const auto number = [](qlonglong n) { return QLocale().toString(n); };
  if (s < 60) return tr("%1\u00a0s").arg(number(s));
  if (s < 3600)
    return s % 60 == 0 || s >= 600 ? tr("%1\u00a0min").arg(number(s / 60))
                                   : tr("%1\u00a0min %2\u00a0s").arg(number(s / 60), number(s % 60));
  if (s < 86400)
    return s / 60 % 60 == 0 ? tr("%1\u00a0h").arg(number(s / 3600))
                            : tr("%1\u00a0h %2\u00a0min").arg(number(s / 3600), number(s / 60 % 60));
  return s / 3600 % 24 == 0 ? tr("%1\u00a0d").arg(number(s / 86400))
                            : tr("%1\u00a0d %2\u00a0h").arg(number(s / 86400), number(s / 3600 % 24));
}

QString Format::ago(WallTime then, WallTime now) {
  if (to_unix_ms(then) <= 0) return dash();
  const auto past = std::chrono::duration_cast<std::chrono::seconds>(now - then);
  if (past < std::chrono::seconds(5)) return tr("just now");
  if (past < std::chrono::hours(1)) {
    const auto whole = past < std::chrono::minutes(1) ? past : past - past % std::chrono::minutes(1);
    return tr("%1 ago").arg(duration(whole));
  }
  if (past < std::chrono::hours(48)) return tr("%1 ago").arg(duration(past - past % std::chrono::hours(1)));
  return tr("%1 ago").arg(duration(past - past % std::chrono::hours(24)));
}

QString Format::date_time(WallTime at) {
  if (to_unix_ms(at) <= 0) return dash();
  return QLocale().toString(local(at), QLocale::ShortFormat);
}

QString Format::until(WallTime at, WallTime now) {
  const QDateTime then = local(at);
  const QDate today = local(now).date();
  const QString time = QLocale().toString(then.time(), QLocale::ShortFormat);
  if (then.date() == today) return time;
  if (then.date() == today.addDays(1)) return tr("tomorrow %1").arg(time);
  return tr("%1 %2", "date, time").arg(QLocale().toString(then.date(), QStringLiteral("ddd d MMM")), time);
}

QString Format::middle_elided(const QString& text, int characters) {
  if (text.size() <= characters || characters < 3) return text;
  const int kept = characters - 1;
  return text.left((kept + 1) / 2) + QStringLiteral("…") + text.right(kept / 2);
}

}  // namespace neuroshard::ui
