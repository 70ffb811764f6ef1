#include "ui/theme/tokens.h"

#include <algorithm>
#include <array>
#include <cmath>

namespace neuroshard::ui {
namespace {

using Table = std::array<TokenEntry, static_cast<std::size_t>(Token::Count)>;

// In the order of Token.
const Table& table() {
  static const Table entries = {{
      {"window", QColor(0xf3f5f8), QColor(0x11151b)},
      {"surface", QColor(0xffffff), QColor(0x1a2029)},
      {"surface-alt", QColor(0xe9edf2), QColor(0x252d39)},
      {"rail", QColor(0xfafbfc), QColor(0x161b23)},
      {"border", QColor(0xd6dce4), QColor(0x303a48)},
      {"border-strong", QColor(0x7d8998), QColor(0x738095)},
      {"text", QColor(0x18202b), QColor(0xe7ebf1)},
      {"text-muted", QColor(0x4d5968), QColor(0xa9b4c3)},
      {"text-disabled", QColor(0x8a95a3), QColor(0x6c788a)},
      {"accent", QColor(0x0b63c0), QColor(0x6cb2ff)},
      {"accent-hover", QColor(0x084f9b), QColor(0x8cc4ff)},
      {"on-accent", QColor(0xffffff), QColor(0x06121f)},
      {"selection", QColor(0xd5e6fa), QColor(0x1f3a5a)},
      {"focus", QColor(0x0b63c0), QColor(0x6cb2ff)},
      {"working", QColor(0x17693a), QColor(0x5fd48c)},
      {"working-soft", QColor(0xdcf2e3), QColor(0x15321f)},
      {"info", QColor(0x0b5aae), QColor(0x78b8ff)},
      {"info-soft", QColor(0xdceafb), QColor(0x14304f)},
      {"paused", QColor(0x4d5968), QColor(0xb1bbc9)},
      {"paused-soft", QColor(0xe5e9ee), QColor(0x2b3441)},
      {"warning", QColor(0x7d4e00), QColor(0xf2b84b)},
      {"warning-soft", QColor(0xfdedcd), QColor(0x3b2c0c)},
      {"danger", QColor(0xa81e18), QColor(0xff9b92)},
      {"danger-soft", QColor(0xfde2e0), QColor(0x4a1a18)},
      {"series-1", QColor(0x0072b2), QColor(0x56a8e0)},
      {"series-2", QColor(0xd55e00), QColor(0xf08a3c)},
      {"series-3", QColor(0x00875f), QColor(0x2fc79a)},
      {"series-4", QColor(0xb0568b), QColor(0xd88fba)},
      {"series-5", QColor(0xa87400), QColor(0xe6b03c)},
      {"series-6", QColor(0x2a87bf), QColor(0x86cdf2)},
      {"grid", QColor(0xe3e8ee), QColor(0x2a3340)},
      {"heat-low", QColor(0xe8f1fa), QColor(0x1c2938)},
      {"heat-high", QColor(0x08519c), QColor(0x8fd0ff)},
      {"tooltip", QColor(0x18202b), QColor(0xe7ebf1)},
      {"on-tooltip", QColor(0xffffff), QColor(0x11151b)},
  }};
  return entries;
}

double luminance(const QColor& colour) {
  const auto linear = [](double c) { return c <= 0.03928 ? c / 12.92 : std::pow((c + 0.055) / 1.055, 2.4); };
  return 0.2126 * linear(colour.redF()) + 0.7152 * linear(colour.greenF()) + 0.0722 * linear(colour.blueF());
}

}  // namespace

const TokenEntry& token(Token token) {
  return table()[static_cast<std::size_t>(token)];
}

const std::vector<TokenPair>& text_pairs() {
  using T = Token;
  static const std::vector<TokenPair> pairs = {
      {T::Text, T::Window},          {T::Text, T::Surface},
      {T::Text, T::SurfaceAlt},      {T::Text, T::Rail},
      {T::Text, T::Selection},       {T::Text, T::InfoSoft},
      {T::Text, T::WarningSoft},     {T::Text, T::DangerSoft},
      {T::Text, T::WorkingSoft},     {T::Text, T::PausedSoft},
      {T::TextMuted, T::Window},     {T::TextMuted, T::Surface},
      {T::TextMuted, T::SurfaceAlt}, {T::TextMuted, T::Rail},
      {T::TextMuted, T::Selection},  {T::Accent, T::Window},
      {T::Accent, T::Surface},       {T::Accent, T::Rail},
      {T::Accent, T::Selection},     {T::OnAccent, T::Accent},
      {T::OnAccent, T::AccentHover}, {T::Working, T::Surface},
      {T::Working, T::Window},       {T::Working, T::WorkingSoft},
      {T::Info, T::Surface},         {T::Info, T::Window},
      {T::Info, T::InfoSoft},        {T::Paused, T::Surface},
      {T::Paused, T::Window},        {T::Paused, T::PausedSoft},
      {T::Warning, T::Surface},      {T::Warning, T::Window},
      {T::Warning, T::WarningSoft},  {T::Danger, T::Surface},
      {T::Danger, T::Window},        {T::Danger, T::DangerSoft},
      {T::OnTooltip, T::Tooltip},
  };
  return pairs;
}

const std::vector<TokenPair>& graphic_pairs() {
  using T = Token;
  static const std::vector<TokenPair> pairs = {
      {T::Series1, T::Surface},      {T::Series2, T::Surface},     {T::Series3, T::Surface},
      {T::Series4, T::Surface},      {T::Series5, T::Surface},     {T::Series6, T::Surface},
      {T::BorderStrong, T::Surface}, {T::BorderStrong, T::Window}, {T::BorderStrong, T::Rail},
      {T::Focus, T::Window},         {T::Focus, T::Surface},       {T::Focus, T::Rail},
      {T::Accent, T::SurfaceAlt},    {T::Working, T::SurfaceAlt},  {T::Warning, T::SurfaceAlt},
      {T::Danger, T::SurfaceAlt},    {T::HeatHigh, T::HeatLow},
  };
  return pairs;
}

double contrast(const QColor& one, const QColor& other) {
  const double a = luminance(one), b = luminance(other);
  return (std::max(a, b) + 0.05) / (std::min(a, b) + 0.05);
}

QColor readable_on(const QColor& background) {
  const QColor dark(0x11, 0x15, 0x1b), light(Qt::white);
  return contrast(dark, background) >= contrast(light, background) ? dark : light;
}

QColor mix(const QColor& from, const QColor& to, double share) {
  const double t = std::clamp(share, 0.0, 1.0);
  const auto between = [t](double a, double b) { return static_cast<float>(a + (b - a) * t); };
  return QColor::fromRgbF(between(from.redF(), to.redF()), between(from.greenF(), to.greenF()),
                          between(from.blueF(), to.blueF()));
}

}  // namespace neuroshard::ui
