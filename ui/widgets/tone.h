// The colour and the icon of a tone.
#pragma once

#include "ui/text/state_text.h"
#include "ui/theme/theme.h"

namespace neuroshard::ui {

Token token_of(Tone tone);
QString icon_of(Tone tone);  // in resources/icons

}  // namespace neuroshard::ui
