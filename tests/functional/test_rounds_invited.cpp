// Real processes on the loopback interface in a network whose voters are invited: its founder begins alone, a
// friend becomes a voter by a link, and nobody else does.
#include <QTest>

#include "core/config/invite_link.h"
#include "tests/support/rounds_run.h"
#include "tests/support/test_main.h"
#include "tests/support/until.h"

using namespace neuroshard::test;  // NOLINT

class TestRoundsInvited : public QObject {
  Q_OBJECT
 private Q_SLOTS:
  void initTestCase();
  void the_founder_begins_alone();
  void a_link_with_another_first_block_leads_nowhere();
  void a_friend_becomes_a_voter_by_a_link();
  void a_link_without_a_vote_makes_a_candidate();
  void a_restart_still_trusts_the_invitation();

 private:
  QJsonObject invite(const QString& name, const QStringList& further = {}) const {
    const ProcessResult made =
        run_node(QStringList{"network", "invite", "--json", "--data-dir", run_.path(name)} + further);
    return made.ok() ? json_lines(made.out).value(0) : QJsonObject{{"error", QString(made.text())}};
  }
  // A node's wallet votes exactly when its invitations can give a vote.
  bool votes(const QString& name) const { return invite(name)["may_vote"].toBool(); }
  QString trouble(const QString& name) const { return run_.rounds(name)["trouble"].toString(); }

  RoundsRun run_;
  QString link_;  // with a vote
};

void TestRoundsInvited::initTestCase() {
  const ProcessResult wallet = run_node({"wallet", "create", "--data-dir", run_.path("founder")});
  QVERIFY2(wallet.ok(), wallet.text().constData());
  QCOMPARE(run_.make("family", "30",
                     {"--voters", "invited", "--founder", "mine", "--data-dir", run_.path("founder"),
                      "--block-time-s", "1", "--admission-contributions", "2"}),
           QByteArray());
}

void TestRoundsInvited::the_founder_begins_alone() {
  QCOMPARE(run_.start("founder"), QByteArray());
  QTRY_VERIFY_WITH_TIMEOUT(run_.round("founder") >= 1, RoundsRun::patience_ms);
  const QJsonObject made = invite("founder");
  link_ = made["link"].toString();
  QVERIFY2(made["may_vote"].toBool(), QJsonDocument(made).toJson().constData());
  QVERIFY(!made["peers"].toArray().isEmpty());
  QVERIFY2(link_ != invite("founder")["link"].toString(), "each invitation has a voucher of its own");
}

// A person who was lied to, or a network that began anew.
void TestRoundsInvited::a_link_with_another_first_block_leads_nowhere() {
  auto link = neuroshard::config::parse_invite_link(link_.toStdString());
  QVERIFY(link.ok() && link->trust.genesis);
  (*link->trust.genesis)[0] ^= 1;
  link->voucher.reset();
  link->trust.recent.reset();
  run_.launch_invited("misled", QString::fromStdString(*neuroshard::config::format_invite_link(*link)));
  QCOMPARE(run_.joined("misled"), QByteArray());
}

void TestRoundsInvited::a_friend_becomes_a_voter_by_a_link() {
  run_.launch_invited("friend", link_);
  QCOMPARE(run_.joined("friend"), QByteArray());
  QVERIFY(neuroshard::testing::seen_once([this] { return votes("friend"); }, RoundsRun::patience_ms));
  QVERIFY(run_.round("founder") > 1);
}

void TestRoundsInvited::a_link_without_a_vote_makes_a_candidate() {
  const QJsonObject made = invite("founder", {"--without-vote"});
  QVERIFY(!made["may_vote"].toBool() && made["no_vote"].toString().isEmpty());
  run_.launch_invited("guest", made["link"].toString());
  QCOMPARE(run_.joined("guest"), QByteArray());
  const auto follows = [this] {
    const QJsonObject seen = run_.rounds("guest");
    return seen["member"].toBool() && seen["agrees"].toBool() && seen["members"].toInt() == 3;
  };
  QVERIFY(neuroshard::testing::seen_once(follows, RoundsRun::patience_ms));
  // Longer than it takes to be admitted.
  const int since = run_.round("founder");
  QTRY_VERIFY_WITH_TIMEOUT(run_.round("guest") >= since + 4, RoundsRun::patience_ms);
  const QJsonObject refused = invite("guest");
  QVERIFY(!refused["may_vote"].toBool());
  QVERIFY2(refused["no_vote"].toString().contains("has none yet"),
           QJsonDocument(refused).toJson().constData());
}

void TestRoundsInvited::a_restart_still_trusts_the_invitation() {
  const auto told = [this] { return trouble("misled").contains("joins no chain"); };
  QVERIFY(neuroshard::testing::seen_once(told, RoundsRun::patience_ms));
  QCOMPARE(run_.round("misled"), 0);
  run_.node("misled").kill_now();
  QCOMPARE(run_.start("misled"), QByteArray());
  QVERIFY(neuroshard::testing::seen_once(told, RoundsRun::patience_ms));
  QCOMPARE(run_.round("misled"), 0);
}

NS_TEST(TestRoundsInvited)
#include "test_rounds_invited.moc"
