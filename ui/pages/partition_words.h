// Texts and units of a partition, in the user's language, with enough digits to distinguish blocks.
#pragma once

#include <QString>

namespace neuroshard::ui {

// With four digits, "16.34 ms": seconds and milliseconds as people read them, another unit as it is called.
QString cost_text(double cost, const QString& unit);
// A size that the partitioner knows as a real number.
QString size_text(double bytes);
// The core describes the costs of a graph in clauses. Those that it writes itself are translated; what a
// file says of itself stays.
QString convention_text(const QString& convention);

}  // namespace neuroshard::ui
