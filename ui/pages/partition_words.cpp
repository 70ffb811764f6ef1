#include "ui/pages/partition_words.h"

#include <QCoreApplication>
#include <QRegularExpression>
#include <algorithm>
#include <cmath>

#include "ui/text/format.h"

namespace neuroshard::ui {
namespace {

constexpr int digits = 4;

// %1, %2 … stand for what differs.
constexpr const char* clauses[] = {
    QT_TRANSLATE_NOOP("PartitionWords", "own form: work in %1"),
    QT_TRANSLATE_NOOP("PartitionWords", "protobuf form: work in %1"),
    QT_TRANSLATE_NOOP("PartitionWords", "device-placement graph: work = fpgaLatency (ms)"),
    QT_TRANSLATE_NOOP("PartitionWords",
                      "a tensor costs its transfer as printed, once per producer for each "
                      "consuming block and once on output"),
    QT_TRANSLATE_NOOP("PartitionWords",
                      "a tensor costs output_bytes / bandwidth, once per producer for each "
                      "consuming block and once on output"),
    QT_TRANSLATE_NOOP("PartitionWords",
                      "a tensor costs its bytes / bandwidth, once per producer for each "
                      "consuming block and once on output"),
    QT_TRANSLATE_NOOP("PartitionWords",
                      "a tensor costs its edge's cost as printed, once per producer for "
                      "each consuming block and once on output"),
    QT_TRANSLATE_NOOP("PartitionWords", "colorClass, isBackwardNode, max* and supported* are ignored"),
    QT_TRANSLATE_NOOP("PartitionWords", "no memory limit unless given"),
    QT_TRANSLATE_NOOP("PartitionWords", "NeuroLLM of %1 layers, %2 of %3 parameters per token"),
    QT_TRANSLATE_NOOP("PartitionWords", "forward and backward pass of %1 tokens"),
    QT_TRANSLATE_NOOP("PartitionWords", "forward pass of %1 tokens"),
    QT_TRANSLATE_NOOP("PartitionWords", "ONNX model: operators of one forward pass"),
    QT_TRANSLATE_NOOP("PartitionWords", "weights count at each operator that reads them"),
    QT_TRANSLATE_NOOP("PartitionWords", "by their bytes alone: %1"),
    QT_TRANSLATE_NOOP("PartitionWords", "TorchScript model, frozen, with the sizes of the given inputs"),
    QT_TRANSLATE_NOOP("PartitionWords", "control flow as measured here"),
    QT_TRANSLATE_NOOP("PartitionWords", "work as measured here with one thread"),
    QT_TRANSLATE_NOOP("PartitionWords",
                      "work = max(FLOP / %1 per s, bytes / %2 per s) + %3 us per operation"),
};

QString clause_text(const QString& clause) {
  static const QRegularExpression slot(QStringLiteral("\\\\%[1-9]"));  // as escape() writes it
  for (const char* known : clauses) {
    QString pattern = QRegularExpression::escape(QString::fromLatin1(known));
    pattern.replace(slot, QStringLiteral("(.+)"));
    const QRegularExpressionMatch match =
        QRegularExpression(QRegularExpression::anchoredPattern(pattern)).match(clause);
    if (!match.hasMatch()) continue;
    QString text = QCoreApplication::translate("PartitionWords", known);
    for (int i = 1; i <= match.lastCapturedIndex(); ++i)
      text.replace(u'%' + QString::number(i), match.captured(i));
    return text;
  }
  return clause;
}

}  // namespace

QString cost_text(double cost, const QString& unit) {
  double seconds = cost;
  if (unit == QLatin1String("ms"))
    seconds = cost / 1000;
  else if (unit != QLatin1String("s"))
    return unit.isEmpty() ? Format::significant(cost, digits)
                          : Format::significant(cost, digits) + u'\u00a0' + unit;
  if (!std::isfinite(seconds) || seconds >= 60) return Format::seconds(seconds);
  return seconds < 1 ? Format::significant(seconds * 1000, digits) + QStringLiteral("\u00a0ms")
                     : Format::significant(seconds, digits) + QStringLiteral("\u00a0s");
}

QString size_text(double bytes) {
  return Format::bytes(static_cast<std::uint64_t>(std::clamp(bytes, 0.0, 1e18)));
}

QString convention_text(const QString& convention) {
  QStringList texts;
  for (const QString& clause : convention.split(QStringLiteral("; "))) texts << clause_text(clause);
  return texts.join(QStringLiteral("; "));
}

}  // namespace neuroshard::ui
