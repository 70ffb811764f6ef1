#include "ui/models/token_text.h"

#include <QStringDecoder>

namespace neuroshard::ui {

QString visible_token(const std::string& bytes) {
  if (bytes.empty()) return QStringLiteral("∅");
  QStringDecoder decoder(QStringDecoder::Utf8, QStringDecoder::Flag::Stateless);
  QString text = decoder.decode(QByteArrayView(bytes.data(), static_cast<qsizetype>(bytes.size())));
  if (decoder.hasError()) {
    const QByteArray raw(bytes.data(), static_cast<qsizetype>(bytes.size()));
    return QStringLiteral("⟨%1⟩").arg(QString::fromLatin1(raw.toHex(' ').toUpper()));
  }
  QString visible;
  for (const QChar c : text) {
    if (c == u' ')
      visible += QChar(0x00b7);
    else if (c == u'\n')
      visible += QChar(0x21b5);
    else if (c == u'\t')
      visible += QChar(0x2192);
    else if (c.category() == QChar::Other_Control)
      visible += QStringLiteral("⟨%1⟩").arg(c.unicode(), 2, 16, QLatin1Char('0'));
    else
      visible += c;
  }
  return visible;
}

}  // namespace neuroshard::ui
