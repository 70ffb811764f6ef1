// The texts about newer versions: for each state of a look, and for each way of installing.
#include <QtTest>

#include "tests/support/test_main.h"
#include "ui/text/release_text.h"

using namespace neuroshard;      // NOLINT
using namespace neuroshard::ui;  // NOLINT

class TestReleaseText : public QObject {
  Q_OBJECT
 private Q_SLOTS:
  void nothing_is_said_while_it_is_off();
  void each_outcome_has_its_words();
  void the_notice_says_how_this_install_is_upgraded();
  void a_build_without_a_place_says_so();
};

namespace {

const WallTime now{std::chrono::milliseconds(1'795'000'000'000)};

ReleaseState state_of(ReleaseFound found) {
  ReleaseState state;
  state.place = QStringLiteral("https://releases.example/neuroshard");
  state.on = true;
  state.found = found;
  state.version = QStringLiteral("0.3.0");
  state.why = QStringLiteral("the signature was made with another key");
  state.looked = now - std::chrono::hours(2);
  state.next = now + std::chrono::hours(25);
  return state;
}

}  // namespace

void TestReleaseText::nothing_is_said_while_it_is_off() {
  ReleaseState off = state_of(ReleaseFound::Refused);
  off.on = false;
  QVERIFY(ReleaseWords::note(off, now).text.isEmpty());
  ReleaseState nowhere = state_of(ReleaseFound::Newer);
  nowhere.place.clear();
  QVERIFY(ReleaseWords::note(nowhere, now).text.isEmpty());
}

void TestReleaseText::each_outcome_has_its_words() {
  const auto said = [](ReleaseFound found) { return ReleaseWords::note(state_of(found), now); };
  QVERIFY(said(ReleaseFound::Nothing).text.startsWith(QStringLiteral("Next look")));
  QVERIFY(said(ReleaseFound::Newest).text.startsWith(QStringLiteral("This version is the newest one")));
  QVERIFY(said(ReleaseFound::Newer).text.startsWith(QStringLiteral("Version 0.3.0 is available")));
  const ReleaseWords::Note refused = said(ReleaseFound::Refused);
  QVERIFY(refused.tone == Tone::Danger && refused.text.startsWith(QStringLiteral("Refused")));
  QVERIFY(refused.text.contains(QStringLiteral("another key")));
  const ReleaseWords::Note away = said(ReleaseFound::NotReached);
  QVERIFY(away.tone != Tone::Danger &&
          away.text.startsWith(QStringLiteral("releases.example could not be reached")));
  ReleaseState looking = state_of(ReleaseFound::Newer);
  looking.looking = true;
  QVERIFY(ReleaseWords::note(looking, now).text.startsWith(QStringLiteral("Looking")));
}

void TestReleaseText::the_notice_says_how_this_install_is_upgraded() {
  const auto notice = [](InstallKind kind) {
    return ReleaseWords::notice(state_of(ReleaseFound::Newer), QStringLiteral("0.1.0"), kind);
  };
  for (const InstallKind kind : {InstallKind::Package, InstallKind::Portable, InstallKind::Other}) {
    QCOMPARE(notice(kind).title, QStringLiteral("Version 0.3.0 is available; you have 0.1.0"));
    QVERIFY(notice(kind).text.contains(QStringLiteral("https://releases.example/neuroshard")));
    QCOMPARE(notice(kind).text.contains(QStringLiteral("sudo apt install")), kind == InstallKind::Package);
    QCOMPARE(notice(kind).text.contains(QStringLiteral("archive")), kind == InstallKind::Portable);
  }
}

void TestReleaseText::a_build_without_a_place_says_so() {
  QCOMPARE(ReleaseWords::help({}), QStringLiteral("This build names no place to look for releases."));
  const QString help = ReleaseWords::help(QStringLiteral("https://releases.example/neuroshard"));
  QVERIFY(help.contains(QStringLiteral("releases.example")) &&
          help.contains(QStringLiteral("Nothing is installed")));
}

NS_UI_TEST(TestReleaseText)
#include "test_release_text.moc"
