// The one table of colours: every colour that the app shows comes from here, once for light and once for
// dark. tests/unit/ui holds text_pairs() to a contrast of 4.5:1 and graphic_pairs() to 3:1 (WCAG 2.1, 1.4.3
// and 1.4.11).
#pragma once

#include <QColor>
#include <string_view>
#include <vector>

namespace neuroshard::ui {

enum class Token {
  Window,        // behind everything
  Surface,       // cards, tables, inputs
  SurfaceAlt,    // hover, table headings, bars without value
  Rail,          // navigation and header
  Border,        // lines that only separate
  BorderStrong,  // edges of inputs and switches
  Text,          // what is read
  TextMuted,     // captions, axes
  TextDisabled,  // exempt from contrast, but still to be seen
  Accent,        // the main button, links, selection marks
  AccentHover,
  OnAccent,     // text on Accent
  Selection,    // background of selected rows and of the page in the rail
  Focus,        // keyboard focus
  Working,      // green: works
  WorkingSoft,  // its background
  Info,         // blue: synchronising, information
  InfoSoft,
  Paused,  // grey: the user's own pause
  PausedSoft,
  Warning,  // amber: waits, or works less well
  WarningSoft,
  Danger,  // red: needs the user
  DangerSoft,
  Series1,  // Okabe and Ito's colours, darkened or lightened where the background asks for it: blue
  Series2,  // vermilion
  Series3,  // bluish green
  Series4,  // reddish purple
  Series5,  // orange
  Series6,  // sky blue
  Grid,     // lines of a chart
  HeatLow,  // ends of the scale of heat maps
  HeatHigh,
  Tooltip,
  OnTooltip,
  Count,
};

struct TokenEntry {
  std::string_view name;  // as the style sheet writes it: @surface
  QColor light, dark;
};

const TokenEntry& token(Token token);

struct TokenPair {
  Token foreground, background;
};
const std::vector<TokenPair>& text_pairs();     // every text colour with every background it is drawn on
const std::vector<TokenPair>& graphic_pairs();  // lines and marks that carry meaning

// (L1 + 0.05) / (L2 + 0.05) of the relative luminances; 1 … 21 (WCAG 2.1).
double contrast(const QColor& one, const QColor& other);
// Black or white, whichever can be read on it.
QColor readable_on(const QColor& background);
// Between two colours, 0 … 1.
QColor mix(const QColor& from, const QColor& to, double share);

}  // namespace neuroshard::ui
