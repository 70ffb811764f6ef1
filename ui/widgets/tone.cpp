#include "ui/widgets/tone.h"

namespace neuroshard::ui {

Token token_of(Tone tone) {
  switch (tone) {
    case Tone::Working: return Token::Working;
    case Tone::Info: return Token::Info;
    case Tone::Paused: return Token::Paused;
    case Tone::Warning: return Token::Warning;
    case Tone::Danger: break;
  }
  return Token::Danger;
}

QString icon_of(Tone tone) {
  switch (tone) {
    case Tone::Working: return QStringLiteral("state-working");
    case Tone::Info: return QStringLiteral("state-info");
    case Tone::Paused: return QStringLiteral("state-paused");
    case Tone::Warning: return QStringLiteral("state-warning");
    case Tone::Danger: break;
  }
  return QStringLiteral("state-danger");
}

}  // namespace neuroshard::ui
