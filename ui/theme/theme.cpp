#include "ui/theme/theme.h"

#include <QApplication>
#include <QFile>
#include <QFontDatabase>
#include <QPalette>
#include <QStyle>
#include <QToolTip>

#include "core/base/check.h"
#include "ui/theme/field_style.h"
#include "ui/theme/icon_engine.h"

// Resources of a static library are registered only when asked for; the macro must stand outside of
// namespaces.
static void init_resources() {
  Q_INIT_RESOURCE(icons);
  Q_INIT_RESOURCE(style);
}

namespace neuroshard::ui {
namespace {

QPalette palette_of(const Theme& theme) {
  QPalette palette;
  const auto set = [&palette, &theme](QPalette::ColorRole role, Token token) {
    palette.setColor(role, theme.color(token));
  };
  set(QPalette::Window, Token::Window);
  set(QPalette::WindowText, Token::Text);
  set(QPalette::Base, Token::Surface);
  set(QPalette::AlternateBase, Token::SurfaceAlt);
  set(QPalette::Text, Token::Text);
  set(QPalette::PlaceholderText, Token::TextMuted);
  set(QPalette::Button, Token::Surface);
  set(QPalette::ButtonText, Token::Text);
  set(QPalette::BrightText, Token::Danger);
  set(QPalette::Light, Token::Surface);
  set(QPalette::Midlight, Token::SurfaceAlt);
  set(QPalette::Mid, Token::Border);
  set(QPalette::Dark, Token::BorderStrong);
  set(QPalette::Highlight, Token::Accent);
  set(QPalette::HighlightedText, Token::OnAccent);
  set(QPalette::Link, Token::Accent);
  set(QPalette::LinkVisited, Token::Accent);
  set(QPalette::ToolTipBase, Token::Tooltip);
  set(QPalette::ToolTipText, Token::OnTooltip);
  for (const auto role : {QPalette::WindowText, QPalette::Text, QPalette::ButtonText})
    palette.setColor(QPalette::Disabled, role, theme.color(Token::TextDisabled));
  palette.setColor(QPalette::Disabled, QPalette::Highlight, theme.color(Token::Border));
  return palette;
}

}  // namespace

QString style_sheet(bool dark) {
  init_resources();
  QFile file(QStringLiteral(":/style/style.qss"));
  const bool opened = file.open(QIODevice::ReadOnly);
  NS_CHECK(opened);
  QString text = QString::fromUtf8(file.readAll());
  // Longest names first, because @surface is the beginning of @surface-alt.
  std::vector<const TokenEntry*> entries;
  for (int i = 0; i < static_cast<int>(Token::Count); ++i) entries.push_back(&token(static_cast<Token>(i)));
  std::sort(entries.begin(), entries.end(),
            [](const auto* a, const auto* b) { return a->name.size() > b->name.size(); });
  for (const TokenEntry* entry : entries) {
    const QString name =
        QStringLiteral("@") + QString::fromUtf8(entry->name.data(), static_cast<int>(entry->name.size()));
    text.replace(name, (dark ? entry->dark : entry->light).name());
  }
  return text;
}

Theme::Theme(std::unique_ptr<SchemeSource> source, QObject* parent)
    : QObject(parent), source_(std::move(source)) {
  init_resources();
  connect(source_.get(), &SchemeSource::changed, this, &Theme::update);
  dark_ = source_->scheme() == Scheme::Dark;
}

void Theme::apply(QApplication& application) {
  application_ = &application;
  QApplication::setStyle(new FieldStyle(this));  // the application owns it
  if (QFontDatabase::hasFamily(QStringLiteral("Inter"))) {
    QFont font(QStringLiteral("Inter"));
    font.setPointSizeF(std::max(9.0, QApplication::font().pointSizeF()));
    QApplication::setFont(font);
  }
  QApplication::setPalette(palette_of(*this));
  application.setStyleSheet(style_sheet(dark_));
}

void Theme::choose(ThemeChoice choice) {
  choice_ = choice;
  update();
}

void Theme::update() {
  const bool dark =
      choice_ == ThemeChoice::Dark || (choice_ == ThemeChoice::System && source_->scheme() == Scheme::Dark);
  if (dark == dark_) return;
  dark_ = dark;
  if (application_ != nullptr) {
    QApplication::setPalette(palette_of(*this));
    application_->setStyleSheet(style_sheet(dark_));
  }
  Q_EMIT changed();
}

QColor Theme::color(Token which) const {
  const TokenEntry& entry = token(which);
  return dark_ ? entry.dark : entry.light;
}

QIcon Theme::icon(const QString& name, Token colour) const {
  return QIcon(new IconEngine(this, name, colour));  // the icon owns it
}

QFont Theme::monospace() const {
  if (QFontDatabase::hasFamily(QStringLiteral("JetBrains Mono"))) {
    QFont font(QStringLiteral("JetBrains Mono"));
    font.setPointSizeF(QApplication::font().pointSizeF());
    return font;
  }
  return QFontDatabase::systemFont(QFontDatabase::FixedFont);
}

QColor Theme::series(int index) const {
  static constexpr Token order[] = {Token::Series1, Token::Series2, Token::Series3,
                                    Token::Series4, Token::Series5, Token::Series6};
  return color(order[static_cast<std::size_t>(index) % std::size(order)]);
}

QColor Theme::heat(double share) const {
  return mix(color(Token::HeatLow), color(Token::HeatHigh), share);
}

}  // namespace neuroshard::ui
