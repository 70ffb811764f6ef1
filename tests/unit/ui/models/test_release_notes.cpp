// The release notes of each version, from the file that software centres read.
#include <QFile>
#include <QtTest>

#include "tests/support/test_main.h"
#include "ui/models/release_notes.h"

using namespace neuroshard;      // NOLINT
using namespace neuroshard::ui;  // NOLINT

class TestReleaseNotes : public QObject {
  Q_OBJECT
 private Q_SLOTS:
  void notes_are_read_newest_first();
  void a_translation_goes_before_english();
  void versions_in_between_are_chosen();
  void damaged_files_have_no_notes();
  void the_program_has_its_own();
};

namespace {

const QByteArray metainfo = R"(<?xml version="1.0"?>
<component><name>NeuroShard</name>
  <description><p>No note of a version</p></description>
  <releases>
    <release version="0.1.0" date="2026-11-21"><description><p>First.</p></description></release>
    <release version="0.3.0" date="2027-02-01">
      <description>
        <p>Two  things
           are new.</p>
        <p xml:lang="de">Zwei Dinge sind neu.</p>
        <ul><li>One <em>thing</em></li><li>Another</li></ul>
      </description>
    </release>
    <release version="0.2.0" date="not a day"><description><p>Second.</p></description></release>
    <release version="0.2.1" date="2027-01-02"/>
    <release version="next" date="2027-03-01"><description><p>Soon.</p></description></release>
  </releases>
</component>)";

QStringList versions(const std::vector<ReleaseNote>& notes) {
  QStringList all;
  for (const ReleaseNote& note : notes) all << QString::fromStdString(note.version.text());
  return all;
}

Version version(const char* text) {
  return Version::parse(text).value();
}

}  // namespace

void TestReleaseNotes::notes_are_read_newest_first() {
  const auto notes = read_release_notes(metainfo, QStringLiteral("en"));
  QCOMPARE(versions(notes), QStringList({"0.3.0", "0.2.0", "0.1.0"}));
  QCOMPARE(notes[0].date, QDate(2027, 2, 1));
  QVERIFY(!notes[1].date.isValid());
  QCOMPARE(notes[0].blocks.size(), std::size_t{3});
  QCOMPARE(notes[0].blocks[0].text, QStringLiteral("Two things are new."));
  QVERIFY(!notes[0].blocks[0].item && notes[0].blocks[1].item);
  QCOMPARE(notes[0].blocks[1].text, QStringLiteral("One thing"));
}

void TestReleaseNotes::a_translation_goes_before_english() {
  const auto notes = read_release_notes(metainfo, QStringLiteral("de"));
  QCOMPARE(notes[0].blocks.size(), std::size_t{1});
  QCOMPARE(notes[0].blocks[0].text, QStringLiteral("Zwei Dinge sind neu."));
  QCOMPARE(notes[1].blocks[0].text, QStringLiteral("Second."));
}

void TestReleaseNotes::versions_in_between_are_chosen() {
  const auto all = read_release_notes(metainfo, {});
  QCOMPARE(versions(notes_between(all, version("0.1.0"), version("0.3.0"))), QStringList({"0.3.0", "0.2.0"}));
  QCOMPARE(versions(notes_between(all, version("0.1.0+git1.a"), version("0.2.9"))), QStringList({"0.2.0"}));
  QVERIFY(notes_between(all, version("0.3.0"), version("0.3.0")).empty());
}

void TestReleaseNotes::damaged_files_have_no_notes() {
  QVERIFY(read_release_notes({}, {}).empty());
  QVERIFY(read_release_notes("<releases><release version=\"0.1.0\">", {}).empty());
  for (qsizetype length = 0; length < metainfo.size(); length += 7)  // ends, whatever is missing
    QVERIFY(read_release_notes(metainfo.left(length), {}).size() <= 3);
}

void TestReleaseNotes::the_program_has_its_own() {
  const auto own = own_release_notes(QStringLiteral("en"));
  QVERIFY(!own.empty());
  QCOMPARE(versions(own).last(), QStringLiteral("0.1.0"));
}

NS_UI_TEST(TestReleaseNotes)
#include "test_release_notes.moc"
