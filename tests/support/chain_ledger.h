// Compares the accounts of one chain by several nodes: blocks from `neuroshardd chain export`, anchors from their
// logs. A contradiction is a fault, for as long as the ledger lives. Header only; needs Qt.
#pragma once

#include <QJsonArray>
#include <QJsonDocument>
#include <QJsonObject>
#include <QMap>
#include <QSet>
#include <QStringList>

#include "tests/support/rounds_run.h"

namespace neuroshard::test {

class ChainLedger {
 public:
  // round_tokens: the most that a member can train in one round.
  explicit ChainLedger(qint64 round_tokens) : round_tokens_(round_tokens) {}

  struct Round {
    qint64 opened_ms = 0, closed_ms = 0, ended_ms = 0;  // times of the blocks; 0: not yet
    QMap<int, qint64> tokens;                           // by the number of the contributor
    QString anchor;                                     // empty: no result yet, or carried
    bool carried = false;
  };

  // The lines of an export, or the new ones among them.
  void read_blocks(const QString& node, const QByteArray& lines) {
    for (const QJsonObject& block : json_lines(lines)) read_block(node, block);
  }
  // Only a beginning of each anchor.
  void read_anchors(const QString& node, const QMap<int, CertifiedRound>& rounds) {
    for (auto it = rounds.begin(); it != rounds.end(); ++it) anchors_[it.key()][it->anchor].insert(node);
  }

  // Empty: nothing contradicts.
  QStringList faults() const {
    QStringList found = faults_.values();
    for (auto it = anchors_.begin(); it != anchors_.end(); ++it) {
      const QString certified = rounds_.value(it.key()).anchor;
      for (auto anchor = it->begin(); anchor != it->end(); ++anchor) {
        if (it->size() > 1 || (!certified.isEmpty() && !certified.startsWith(anchor.key())))
          found += QString("round %1: %2 has the anchor %3, certified is %4")
                       .arg(QString::number(it.key()), names(*anchor), anchor.key(), certified.left(16));
      }
    }
    return found;
  }
  int newest_height() const { return blocks_.isEmpty() ? -1 : blocks_.lastKey(); }
  int newest_height(const QString& node) const { return heights_.value(node, -1); }
  int newest_round() const { return newest_round_; }
  const QMap<int, Round>& rounds() const { return rounds_; }
  int block_count() const { return static_cast<int>(blocks_.size()); }
  // Rounds whose anchor at least so many nodes have told.
  int compared(int nodes) const {
    int count = 0;
    for (const auto& told : anchors_) {
      QSet<QString> all;
      for (const QSet<QString>& some : told) all += some;
      count += all.size() >= nodes ? 1 : 0;
    }
    return count;
  }
  // In all rounds that were not carried.
  qint64 tokens_of(const QSet<int>& numbers) const {
    qint64 sum = 0;
    for (const Round& round : rounds_)
      for (auto it = round.tokens.begin(); it != round.tokens.end(); ++it)
        sum += !round.anchor.isEmpty() && numbers.contains(it.key()) ? it.value() : 0;
    return sum;
  }

  // Closed rounds without the work of a member that was away from at_ms until back_ms: those after at_ms, up to
  // the first one with its work that closed after back_ms, or to until_ms.
  //   absent: closed before back_ms, so that nobody could have work of it
  //   lost: all others
  struct Missing {
    int lost = 0, absent = 0;
    bool counts_again = false;
  };
  Missing missing(int number, qint64 at_ms, qint64 back_ms, qint64 until_ms) const {
    Missing result;
    for (const Round& round : rounds_) {
      if (round.closed_ms == 0 || round.closed_ms <= at_ms) continue;
      if (round.closed_ms > until_ms) break;
      const bool in = round.tokens.contains(number);
      result.counts_again = in && round.closed_ms > back_ms;
      if (result.counts_again) break;
      if (!in) ++(round.closed_ms < back_ms ? result.absent : result.lost);
    }
    return result;
  }
  // The longest time without a result between two of these, in ms.
  qint64 longest_pause(qint64 from_ms, qint64 to_ms) const {
    qint64 longest = 0, before = from_ms;
    for (const Round& round : rounds_) {
      if (round.ended_ms <= from_ms || round.ended_ms > to_ms) continue;
      longest = qMax(longest, round.ended_ms - before);
      before = round.ended_ms;
    }
    return qMax(longest, to_ms - before);
  }

 private:
  struct Seen {
    QString hash, previous, node;
  };
  static QString names(const QSet<QString>& nodes) {
    QStringList sorted = nodes.values();
    sorted.sort();
    return sorted.join(", ");
  }

  void read_block(const QString& node, const QJsonObject& block) {
    const int height = block["height"].toInt();
    const Seen now{block["hash"].toString(), block["previous"].toString(), node};
    heights_[node] = qMax(heights_.value(node, -1), height);
    if (blocks_.contains(height)) {
      const Seen& first = blocks_[height];
      if (first.hash != now.hash)
        faults_.insert(QString("height %1: %2 has block %3, %4 has block %5")
                           .arg(QString::number(height), first.node, first.hash, node, now.hash));
      return;
    }
    blocks_[height] = now;
    check_neighbours(height);
    const qint64 time_ms = block["time_ms"].toInteger();
    if (block.contains("genesis")) rounds_[1].opened_ms = time_ms;
    if (block.contains("close")) read_close(block["close"].toObject(), time_ms);
    if (block.contains("result")) read_result(block["result"].toObject(), time_ms);
  }
  void check_neighbours(int height) {
    for (const int upper : {height, height + 1}) {
      if (!blocks_.contains(upper) || !blocks_.contains(upper - 1)) continue;
      if (blocks_[upper].previous != blocks_[upper - 1].hash)
        faults_.insert(QString("height %1: the block does not follow the one before").arg(upper));
    }
  }
  void read_close(const QJsonObject& close, qint64 time_ms) {
    const int number = close["round"].toInt();
    Round& round = rounds_[number];
    if (round.closed_ms != 0) faults_.insert(QString("round %1 is closed twice").arg(number));
    round.closed_ms = time_ms;
    for (const QJsonValue& one : close["contributions"].toArray()) {
      const int member = one["member"].toInt();
      if (round.tokens.contains(member))
        faults_.insert(
            QString("round %1: the contribution of member %2 counts twice").arg(number).arg(member));
      round.tokens[member] = one["tokens"].toInteger();
    }
    check_tokens(number);
  }
  // Work of a round that was not carried must not come again: a contribution has at most a round's tokens, and
  // those of the carried rounds just before.
  void check_tokens(int number) {
    int rounds = 1;
    while (rounds_.contains(number - rounds) && rounds_[number - rounds].carried) ++rounds;
    if (!rounds_.contains(number - rounds) || rounds_[number - rounds].ended_ms == 0) return;  // not seen
    for (auto it = rounds_[number].tokens.begin(); it != rounds_[number].tokens.end(); ++it)
      if (it.value() > rounds * round_tokens_)
        faults_.insert(QString("round %1: member %2 contributes %3 tokens, %4 rounds have %5")
                           .arg(number)
                           .arg(it.key())
                           .arg(it.value())
                           .arg(rounds)
                           .arg(rounds * round_tokens_));
  }
  void read_result(const QJsonObject& result, qint64 time_ms) {
    const int number = result["round"].toInt();
    Round& round = rounds_[number];
    if (round.ended_ms != 0) faults_.insert(QString("round %1 has two results").arg(number));
    const QJsonObject row = result["rows"].toArray().at(0).toObject();
    round.ended_ms = time_ms;
    round.carried = row["carried"].toBool();
    round.anchor = row["anchor"].toString();
    rounds_[number + 1].opened_ms = time_ms;
    newest_round_ = qMax(newest_round_, number);
  }

  const qint64 round_tokens_;
  QMap<int, Seen> blocks_;  // by height
  QMap<QString, int> heights_;
  QMap<int, Round> rounds_;
  QMap<int, QMap<QString, QSet<QString>>> anchors_;  // nodes by round and anchor
  QSet<QString> faults_;
  int newest_round_ = 0;
};

}  // namespace neuroshard::test
