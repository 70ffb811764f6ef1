// A tiny network, text and data directory for the functional tests of training: every run is a real
// neuroshardd process. Header only; needs Qt.
#pragma once

#include <QDir>
#include <QFile>
#include <QMap>
#include <QRegularExpression>
#include <QTemporaryDir>
#include <filesystem>

#include "core/base/rng.h"
#include "tests/support/process.h"

namespace neuroshard::test {

// Sentences of made-up words with a skewed frequency: text enough to learn from, the same on every machine.
inline QByteArray made_up_text(std::uint64_t seed, int bytes) {
  static const char* const syllables[] = {"ka",  "lo",  "mi", "ren", "tas", "vo",
                                          "shi", "dar", "el", "un",  "por", "gen"};
  Rng rng(seed);
  QByteArray text;
  while (text.size() < bytes) {
    for (std::uint64_t words = 4 + rng.below(8); words > 0; --words) {
      // The product of two small numbers is small more often than not.
      const std::uint64_t word = rng.below(24) * rng.below(24);
      text += syllables[word % 12];
      text += syllables[word / 12 % 12];
      if (word > 144) text += syllables[word / 144 % 12];
      text += words > 1 ? " " : ".\n";
    }
  }
  return text;
}

// The output of one `train --json`: the text of each step's loss exactly as written, by step.
using LossTexts = QMap<qint64, QByteArray>;

// The line's step and the text of its loss, when it is the line of a step.
inline bool read_step(const QByteArray& line, qint64* step, QByteArray* loss) {
  static const QRegularExpression pattern("\"step\": ?(\\d+).*?\"loss\": ?([-0-9.eE+a-zA-Z]+)");
  const QRegularExpressionMatch match = pattern.match(QString::fromUtf8(line));
  if (!match.hasMatch()) return false;
  *step = match.captured(1).toLongLong();
  *loss = match.captured(2).toUtf8();
  return true;
}

inline LossTexts losses_of(const QByteArray& output) {
  LossTexts losses;
  qint64 step = 0;
  QByteArray loss;
  for (const QByteArray& line : output.split('\n'))
    if (read_step(line, &step, &loss)) losses.insert(step, loss);
  return losses;
}

// Text, profile and an untrained data directory, made once per test program and copied for each run, so that
// all runs share node key, shards and first weights, and must therefore print the same losses.
class TrainingLab {
 public:
  // `shape` replaces or adds flags of `network create`.
  explicit TrainingLab(const QMap<QString, QString>& shape = {}) {
    for (auto it = shape.begin(); it != shape.end(); ++it) shape_.insert(it.key(), it.value());
  }

  // Empty on success, else what went wrong.
  QByteArray prepare() {
    if (!folder_.isValid()) return "no temporary directory";
    QDir().mkpath(path("text"));
    QFile text(path("text/tale.txt"));
    if (!text.open(QIODevice::WriteOnly) || text.write(made_up_text(7, 120'000)) < 0)
      return "can't write the text";
    text.close();
    QStringList arguments{"network", "create", "--from", "solo",
                          "--name",  "tiny",   "--out",  path("tiny.json")};
    for (auto it = shape_.begin(); it != shape_.end(); ++it) arguments += {"--" + it.key(), it.value()};
    const ProcessResult created = run_node(arguments);
    if (!created.ok()) return "network create: " + created.text();
    // One step makes wallet, node key, tokenizer and shards, and a first checkpoint.
    const ProcessResult first = run_node(train("origin", 1));
    if (!first.ok()) return "first step: " + first.text();
    return {};
  }

  QString path(const QString& name) const { return folder_.filePath(name); }

  // A copy of the directory after its first step.
  QString copy(const QString& name) const {
    std::filesystem::copy(path("origin").toStdString(), path(name).toStdString(),
                          std::filesystem::copy_options::recursive);
    return path(name);
  }

  // The command line of a run; a name is a folder of this lab, an absolute path is taken as it is. One
  // thread: sums have one order, and two tests share the machine.
  QStringList train(const QString& directory, int steps, const QStringList& more = {}) const {
    const QString data = QDir::isAbsolutePath(directory) ? directory : path(directory);
    return QStringList{"train",
                       "--text",
                       path("text"),
                       "--data-dir",
                       data,
                       "--profile",
                       path("tiny.json"),
                       "--steps",
                       QString::number(steps),
                       "--json",
                       "--cpu-threads",
                       "1",
                       "--checkpoint-min-interval",
                       "0",
                       "--checkpoint-every-steps",
                       "2",
                       "--eval-interval-steps",
                       "0"} +
           more;
  }

 private:
  QMap<QString, QString> shape_{{"layers", "2"},         {"hidden", "64"}, {"head-dim", "32"},
                                {"vocab", "300"},        {"experts", "4"}, {"sequence", "32"},
                                {"batch-tokens", "256"}, {"warmup", "5"},  {"decay-steps", "1000"}};
  QTemporaryDir folder_;
};

}  // namespace neuroshard::test
