#include "app/gui/link.h"

#include <QCoreApplication>
#include <QDir>
#include <QRegularExpression>
#include <QUrl>
#include <QUrlQuery>

namespace neuroshard::gui {
namespace {

constexpr qsizetype longest = 4096;

QString tr(const char* text) {
  return QCoreApplication::translate("Link", text);
}

// Nothing that could reorder or hide what the question shows.
bool is_plain(const QString& text) {
  for (const QChar c : text) {
    if (!c.isPrint() || c.category() == QChar::Other_Format) return false;
  }
  return !text.isEmpty();
}

Link parse_attach(const QUrlQuery& query) {
  const QString file = query.queryItemValue("file", QUrl::FullyDecoded);
  if (!is_plain(file) || !QDir::isAbsolutePath(file))
    return UnknownLink{tr("It must name a control file on this computer by its full path.")};
  return AttachLink{file};
}

Link parse_join(const QUrlQuery& query) {
  static const QRegularExpression base64url("^[A-Za-z0-9_-]+$");
  const QString to = query.queryItemValue("to", QUrl::FullyDecoded);
  if (!base64url.match(to).hasMatch())
    return UnknownLink{tr("The invitation is incomplete. Copy the whole link again.")};
  return JoinLink{"neuroshard:join?to=" + to};
}

Link parse_invite(const QUrlQuery& query) {
  static const QRegularExpression peer_pattern(
      R"(^(\[[0-9A-Fa-f:]{2,45}\]|[A-Za-z0-9.-]{1,253}):([0-9]{1,5})$)");
  const QString peer = query.queryItemValue("peer", QUrl::FullyDecoded);
  const auto match = peer_pattern.match(peer);
  const int port = match.captured(2).toInt();
  if (!match.hasMatch() || port < 1 || port > 65535)
    return UnknownLink{tr("It must name a computer and a port, like host.example:9000.")};
  return InviteLink{peer};
}

}  // namespace

Link parse_link(const QString& text) {
  if (text.size() > longest) return UnknownLink{tr("It is too long.")};
  const QUrl url(text, QUrl::StrictMode);
  if (!url.isValid() || url.scheme().toLower() != "neuroshard")
    return UnknownLink{tr("It is not a neuroshard: link.")};
  QString verb = url.host().isEmpty() ? url.path() : url.host();
  verb.remove('/');
  const QUrlQuery query(url);
  if (verb == "attach") return parse_attach(query);
  if (verb == "join") return parse_join(query);
  if (verb == "invite") return parse_invite(query);
  return UnknownLink{
      tr("This version follows links that begin with neuroshard:join or neuroshard:attach. A newer version "
         "may follow this one.")};
}

}  // namespace neuroshard::gui
