// Tokens in readable form: a piece may be a space, a line break or part of a character.
#pragma once

#include <QString>
#include <string>

namespace neuroshard::ui {

// Spaces, tabs and line breaks become visible marks; bytes that are no whole character are written as "⟨E2
// 82⟩"; an empty piece is "∅".
QString visible_token(const std::string& bytes);

}  // namespace neuroshard::ui
