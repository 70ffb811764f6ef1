// A QR code (ISO/IEC 18004, drawn by libqrencode) of a link, for a terminal and as a picture.
#pragma once

#include <string>
#include <string_view>

#include "core/base/expected.h"

namespace neuroshard::app {

// Half blocks, two rows of modules to a line, with the quiet zone of four modules that readers need. colour:
// black on white by escape codes, whatever the terminal's colours are; without, a dark background is assumed.
// Exhausted: more than a QR code holds (2,953 bytes).
Expected<std::string> qr_for_terminal(std::string_view text, bool colour);
// SVG, black on white, one unit a module, with the quiet zone.  Exhausted.
Expected<std::string> qr_as_svg(std::string_view text);

}  // namespace neuroshard::app
