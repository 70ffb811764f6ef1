#include "ui/models/conversation.h"

namespace neuroshard::ui {
namespace {

const QString question_mark = QStringLiteral("User: ");
const QString answer_mark = QStringLiteral("Assistant:");
const QString next_turn = QStringLiteral("\nUser:");

}  // namespace

bool Conversation::add(const QString& text) {
  QString& answer = turns_.back().answer;
  // The mark may come in pieces, so the whole answer is looked at from a little before what is new.
  const qsizetype from = std::max<qsizetype>(0, answer.size() - next_turn.size());
  answer += text;
  const qsizetype at = answer.indexOf(next_turn, from);
  if (at < 0) return false;
  answer.truncate(at);
  return true;
}

QString Conversation::prompt(std::size_t max_bytes) const {
  QString text = turns_.empty() ? QString() : question_mark + turns_.back().question + u'\n' + answer_mark;
  for (auto turn = turns_.rbegin() + (turns_.empty() ? 0 : 1); turn != turns_.rend(); ++turn) {
    const QString longer = question_mark + turn->question + u'\n' + answer_mark + turn->answer + u'\n' + text;
    if (static_cast<std::size_t>(longer.toUtf8().size()) > max_bytes) break;
    text = longer;
  }
  return text;
}

}  // namespace neuroshard::ui
