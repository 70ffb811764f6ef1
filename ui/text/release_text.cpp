#include "ui/text/release_text.h"

#include <QUrl>

#include "ui/text/format.h"

namespace neuroshard::ui {
namespace {

// Two facts in one line, each a sentence.
QString sentences(const QString& first, const QString& second) {
  return second.isEmpty() ? first : first + u' ' + second;
}

}  // namespace

QString ReleaseWords::title() {
  return tr("Look for new versions");
}

QString ReleaseWords::help(const QString& place) {
  if (place.isEmpty()) return tr("This build names no place to look for releases.");
  return tr("At most once a day, the app reads a signed list at %1. The request says nothing about you. "
            "Nothing is "
            "installed.")
      .arg(QUrl(place).host());
}

ReleaseWords::Note ReleaseWords::note(const ReleaseState& state, WallTime now) {
  if (state.place.isEmpty() || !state.on) return {};
  if (state.looking) return {tr("Looking for a new version …"), Tone::Info};
  const QString next = state.next ? tr("Next look: %1.").arg(Format::until(*state.next, now)) : QString();
  if (!state.looked || state.found == ReleaseFound::Nothing) return {next, Tone::Info};
  const QString ago = Format::ago(*state.looked, now), host = QUrl(state.place).host();
  switch (state.found) {
    case ReleaseFound::Newest:
      return {sentences(tr("This version is the newest one (last look: %1).").arg(ago), next), Tone::Working};
    case ReleaseFound::Newer:
      return {sentences(tr("Version %1 is available (last look: %2).").arg(state.version, ago), next),
              Tone::Working};
    case ReleaseFound::Refused:
      return {
          tr("Refused: the list of releases at %1 is not valid (%2). Install nothing from there until its "
             "owner explains this.")
              .arg(host, state.why),
          Tone::Danger};
    case ReleaseFound::NotReached:
      return {sentences(tr("%1 could not be reached (last look: %2).").arg(host, ago), next), Tone::Warning};
    case ReleaseFound::Nothing: break;
  }
  return {};
}

ReleaseWords::Notice ReleaseWords::notice(const ReleaseState& state, const QString& running,
                                          InstallKind kind) {
  const QString title = tr("Version %1 is available; you have %2").arg(state.version, running);
  switch (kind) {
    case InstallKind::Package:
      return {title,
              tr("Download the new packages from %1. Install them with: sudo apt install ./neuroshardd_*.deb "
                 "./neuroshard_*.deb")
                  .arg(state.place)};
    case InstallKind::Portable:
      return {
          title,
          tr("Download the new archive from %1, and use its folder instead of the one that you have. Your "
             "data is kept elsewhere and stays.")
              .arg(state.place)};
    case InstallKind::Other: break;
  }
  return {
      title,
      tr("The files are at %1. Upgrade in the way in which you installed this version.").arg(state.place)};
}

}  // namespace neuroshard::ui
