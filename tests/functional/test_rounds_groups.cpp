// Real processes whose rows are aggregated in sub-groups while more than three contribute: with a laboratory's
// constant four processes show what takes 17 elsewhere.
#include <QTest>

#include "tests/support/rounds_run.h"
#include "tests/support/test_main.h"

using namespace neuroshard::test;  // NOLINT

class TestRoundsGroups : public QObject {
  Q_OBJECT
 private Q_SLOTS:
  void initTestCase();
  void three_are_one_group();
  void four_make_two_sub_groups();
  void one_is_killed_in_the_middle_and_comes_back();
  void three_go_on_without_the_fourth();
  void all_certified_the_same();
  void a_profile_says_so();

 private:
  RoundsRun run_;
};

void TestRoundsGroups::initTestCase() {
  run_.founder = "a";
  const QByteArray trouble = run_.make("groups", "100", {"--group-members", "3"});
  QVERIFY2(trouble.isEmpty(), trouble.constData());
}

void TestRoundsGroups::three_are_one_group() {
  QCOMPARE(run_.start_all({"a", "b", "c"}), QByteArray());
  QVERIFY(run_.together({"a", "b", "c"}));
}

void TestRoundsGroups::four_make_two_sub_groups() {
  QCOMPARE(run_.start("d"), QByteArray());
  QVERIFY(run_.together({"a", "b", "c", "d"}));
  QVERIFY(run_.together({"a", "b", "c", "d"}, run_.round("a")));
  QVERIFY(run_.rounds("d")["fetched"].toInt() >= 1);
}

void TestRoundsGroups::one_is_killed_in_the_middle_and_comes_back() {
  run_.node("d").kill_now();
  const int before = run_.round("a");
  QTRY_VERIFY_WITH_TIMEOUT(run_.round("a") > before, RoundsRun::patience_ms);
  QCOMPARE(run_.start("d"), QByteArray());
  QVERIFY(run_.together({"a", "b", "c", "d"}, before + 1));
}

void TestRoundsGroups::three_go_on_without_the_fourth() {
  run_.node("d").terminate();
  const ProcessResult stopped = run_.node("d").finish();
  QVERIFY2(stopped.ok(), stopped.text().constData());
  QVERIFY(run_.together({"a", "b", "c"}, run_.round("a")));
  for (const char* name : {"a", "b", "c"}) QCOMPARE(run_.rounds(name)["corruptions"].toInt(), 0);
}

void TestRoundsGroups::all_certified_the_same() {
  const auto at_a = run_.certified("a");
  int compared = 0, of_four = 0;
  for (const char* name : {"b", "c", "d"}) {
    const auto other = run_.certified(name);
    for (auto it = at_a.begin(); it != at_a.end(); ++it) {
      if (!other.contains(it.key())) continue;
      QCOMPARE(other.value(it.key()).anchor, it->anchor);
      QCOMPARE(other.value(it.key()).contributors, it->contributors);
      ++compared;
    }
  }
  for (const CertifiedRound& one : at_a) of_four += one.contributors == 4 ? 1 : 0;
  QVERIFY2(compared >= 8 && of_four >= 1, QByteArray::number(compared).constData());
}

void TestRoundsGroups::a_profile_says_so() {
  const ProcessResult shown = run_node({"network", "show", run_.profile()});
  QVERIFY2(shown.out.contains("group_members                3"), shown.text().constData());
  const ProcessResult usual = run_node({"network", "show", "devnet"});
  QVERIFY2(usual.out.contains("group_members                16"), usual.text().constData());
  const ProcessResult refused =
      run_node({"network", "create", "--name", "many", "--group-members", "17", "--out", run_.path("many")});
  QVERIFY2(!refused.ok() && refused.text().contains("--group-members"), refused.text().constData());
}

NS_TEST(TestRoundsGroups)
#include "test_rounds_groups.moc"
