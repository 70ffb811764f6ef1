// Helpers for tests of real networks of processes. Header only; needs Qt.
#pragma once

#include "tests/support/process.h"

namespace neuroshard::test {

// The first object on standard output that has this key.
inline QJsonObject wait_for_object(NodeProcess& process, const QString& key, int timeout_ms = 60'000) {
  const QDeadlineTimer deadline(timeout_ms);
  while (!deadline.hasExpired()) {
    const auto line = process.next_line(static_cast<int>(deadline.remainingTime()));
    if (!line) break;
    const QJsonObject object = QJsonDocument::fromJson(*line).object();
    if (object.contains(key)) return object;
  }
  return {};
}

// The nodes that somebody knows.
inline QList<QJsonObject> peers(const QString& profile, const QString& at) {
  const ProcessResult result = run_node({"peers", "--json", "--lan", "--profile", profile, "--at", at});
  return result.ok() ? json_lines(result.out) : QList<QJsonObject>();
}

}  // namespace neuroshard::test
