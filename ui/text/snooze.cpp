#include "ui/text/snooze.h"

#include <QDateTime>

namespace neuroshard::ui {
namespace {
constexpr int morning_hour = 6;
}  // namespace

std::vector<Snooze::Choice> Snooze::choices() {
  const auto of = [](std::chrono::minutes duration) { return [duration](WallTime) { return duration; }; };
  return {{tr("15 minutes"), of(std::chrono::minutes(15))},
          {tr("1 hour"), of(std::chrono::hours(1))},
          {tr("4 hours"), of(std::chrono::hours(4))},
          {tr("Until tomorrow"), until_tomorrow}};
}

std::chrono::seconds Snooze::until_tomorrow(WallTime now) {
  const QDateTime local = QDateTime::fromMSecsSinceEpoch(to_unix_ms(now));
  const QDateTime morning(local.date().addDays(1), QTime(morning_hour, 0));
  return std::chrono::seconds(local.secsTo(morning));
}

}  // namespace neuroshard::ui
