// Five real processes with a chain, which are killed with kill -9 at random moments. Meanwhile the network is cut
// in two (3 | 2), one node loses its disk, and a sixth node joins. No two blocks have one height, no contribution
// counts twice, all anchors are equal, and each kill costs at most one round.
//
// Each node has a network namespace of its own (bridged_homes.h), so that no packet passes a cut. Without root there
// are no namespaces: then a cut stops the two nodes (SIGSTOP), which shows less.
// The lost disk is that of a person who kept the wallet and the key of the node, and nothing else.
//
// NS_LONG=1 (tests/long.sh kills): 100 kills and two cuts that last until the three go on alone, instead of 3
// and a short one. NS_SEED repeats the choices of a run, not its timing.
#include <QCoreApplication>
#include <QDateTime>
#include <QElapsedTimer>
#include <QTest>
#include <optional>

#include "core/base/rng.h"
#include "tests/support/bridged_homes.h"
#include "tests/support/chain_ledger.h"
#include "tests/support/net_lab.h"
#include "tests/support/rounds_run.h"

using namespace neuroshard;        // NOLINT
using namespace neuroshard::test;  // NOLINT

namespace {

constexpr int inner_steps = 30, step_tokens = 512;  // step_tokens: as in RoundsRun

const QStringList founders{"a", "b", "c", "d", "e"};
const QString joiner = "f";
const QStringList kept_files{"wallet.keystore", "node.key"};  // by a person whose disk is lost
constexpr int patience_ms = 150'000;                          // a busy machine; a quiet one needs seconds

qint64 now_ms() {
  return QDateTime::currentMSecsSinceEpoch();
}

constexpr const char* event_names[] = {"a kill", "a cut", "a lost disk", "a joiner"};

struct Kill {
  QString name;
  qint64 at_ms = 0, back_ms = 0;
  bool alone = true;  // the disk is not lost, and no cut comes before the node has work in a round again
};

}  // namespace

class TestRoundsKills : public QObject {
  Q_OBJECT
 public:
  QString why_no_lab;

 private Q_SLOTS:
  void initTestCase();
  void five_begin_together();
  void they_outlive_kills_cuts_and_a_lost_disk();
  void all_have_one_history();
  void a_kill_costs_at_most_one_round();
  void no_work_counts_twice();

 private:
  enum class Event { Kill, Cut, LostDisk, Join };

  bool has_lab() const { return why_no_lab.isEmpty(); }
  // Empty results of these: all is well; else what went wrong.
  void launch(const QString& name);
  QByteArray kill(const QString& name, bool alone);
  QByteArray lose_disk();
  QByteArray cut();
  QByteArray join();
  QByteArray perform(Event event);
  // Until each of these holds the anchor of a round from `round` on, or has work in one that opened later.
  QByteArray hold(const QStringList& names, int round);
  QByteArray work(const QStringList& names, qint64 since_ms);
  QByteArray wait(const std::function<bool()>& until, const char* what);

  // Reads their blocks, anchors and logs.
  void read(const QStringList& names);
  QList<Event> events();
  bool learn_numbers();
  // Rounds without the work of that kill's node, up to its next kill.
  ChainLedger::Missing missing_after(qsizetype kill);
  int below(int bound) { return static_cast<int>(rng_->below(static_cast<std::uint64_t>(bound))); }
  // kill -9, after a look at the steps that it has done.
  void kill_counted(const QString& name);
  QStringList all() const { return joined_ ? founders + QStringList{joiner} : founders; }

  const bool full_ = qEnvironmentVariableIsSet("NS_LONG");
  std::uint64_t seed_ = 0;
  std::optional<Rng> rng_;
  RoundsRun run_;
  ChainLedger ledger_{inner_steps * step_tokens};
  bool joined_ = false;
  QList<Kill> kills_;
  Kill lost_;                                // that with the lost disk
  QMap<QString, int> numbers_;               // of members
  QMap<QString, qint64> trained_;            // steps, at most, of processes that have ended
  QMap<QString, QSet<qint64>> trains_from_;  // when its processes could train
  int cuts_ = 0;
  qint64 begun_ms_ = 0;
};

void TestRoundsKills::initTestCase() {
  seed_ = qEnvironmentVariableIsSet("NS_SEED") ? qEnvironmentVariable("NS_SEED").toULongLong()
                                               : static_cast<std::uint64_t>(now_ms());
  rng_.emplace(seed_);
  qInfo("seed %llu (NS_SEED repeats it); %s", static_cast<unsigned long long>(seed_),
        has_lab() ? "cuts are those of a network" : qPrintable("cuts stop processes: " + why_no_lab));
  if (has_lab()) {
    QCOMPARE(bridged_homes::make(founders + QStringList{joiner}), QByteArray());
    run_.tracker_address = bridged_homes::host_address;
  }
  QCOMPARE(run_.make("kills", QString::number(inner_steps),
                     {"--voters", "invited", "--block-time-s", "2", "--stall-after-s", "10",
                      "--admission-contributions", "2", "--sync", "plain"}),
           QByteArray());
}

void TestRoundsKills::five_begin_together() {
  for (const QString& name : founders) launch(name);
  for (const QString& name : founders) QCOMPARE(run_.joined(name), QByteArray());
  QVERIFY(run_.together(founders, 1));
  begun_ms_ = now_ms();
}

void TestRoundsKills::they_outlive_kills_cuts_and_a_lost_disk() {
  QElapsedTimer time;
  time.start();
  for (const Event event : events()) {
    const QByteArray trouble = perform(event);
    qInfo("%s: %lld s", event_names[static_cast<int>(event)], time.elapsed() / 1000);
    const QStringList faults = ledger_.faults();
    QVERIFY2(trouble.isEmpty() && faults.isEmpty(), trouble + faults.join("; ").toUtf8());
  }
  QCOMPARE(work(all(), now_ms()), QByteArray());
  QCOMPARE(hold(all(), ledger_.newest_round()), QByteArray());
  qInfo(
      "MEASURED %lld kill -9, %d cuts%s, one lost disk, a late joiner: %d rounds in %d blocks, %lld s; seed "
      "%llu",
      static_cast<long long>(kills_.size()), cuts_, has_lab() ? "" : " by SIGSTOP, not of the network",
      ledger_.newest_round(), ledger_.block_count(), time.elapsed() / 1000,
      static_cast<unsigned long long>(seed_));
}

void TestRoundsKills::all_have_one_history() {
  for (const QString& name : all()) {
    QVERIFY2(run_.node(name).running(), qPrintable(name));
    QCOMPARE(run_.crashes(name), QByteArray());
    const ProcessResult checked = run_node({"chain", "verify", "--data-dir", run_.path(name)});
    QVERIFY2(checked.ok(), checked.text().constData());
  }
  read(all());
  QCOMPARE(ledger_.faults(), QStringList());
  // The joiner begins with the history as it finds it, the disk that was lost has less.
  const int compared = ledger_.compared(4);
  QVERIFY2(compared >= 5, QByteArray::number(compared).constData());
  qInfo("MEASURED anchors: %d rounds of %d compared between at least four nodes, all equal", compared,
        ledger_.newest_round());
}

// A kill loses each round that closes without the work of the killed node after its process can train again, until
// a round has its work. Rounds that close before cannot have it. Not counted are kills while the network is cut, or
// shortly before, and that with the lost disk.
void TestRoundsKills::a_kill_costs_at_most_one_round() {
  int lost = 0, absent = 0, worst = 0, counted = 0;
  for (qsizetype i = 0; i < kills_.size(); ++i) {
    const Kill& kill = kills_[i];
    if (!kill.alone) continue;
    const ChainLedger::Missing missing = missing_after(i);
    ++counted;
    lost += missing.lost;
    absent += missing.absent;
    worst = qMax(worst, missing.lost);
    qInfo("kill %lld: %s back after %lld ms, %d rounds lost, %d absent", static_cast<long long>(i + 1),
          qPrintable(kill.name), kill.back_ms - kill.at_ms, missing.lost, missing.absent);
  }
  qInfo(
      "MEASURED kills: %d rounds lost by %d kills, at most %d by one; %d more while a node was away; longest "
      "time "
      "without a result %.1f s",
      lost, counted, worst, absent, static_cast<double>(ledger_.longest_pause(begun_ms_, now_ms())) / 1000);
  QVERIFY2(full_ ? 2 * counted >= kills_.size() : counted == 2, QByteArray::number(counted).constData());
  QVERIFY2(lost <= counted, QByteArray::number(lost).constData());
  // Of the two kills of the small size, one may lose both rounds: a machine that builds beside it can let another
  // round close while a node makes its first steps.
  if (full_) QVERIFY2(worst <= 1, QByteArray::number(worst).constData());
}

// A node cannot have certified more work than it has done.
void TestRoundsKills::no_work_counts_twice() {
  for (const QString& name : all()) kill_counted(name);
  qint64 certified = 0, trained = 0;
  for (const QString& name : all()) {
    const qint64 counted = ledger_.tokens_of({numbers_[name]});
    qint64 done = trained_[name] * step_tokens;
    QVERIFY2(counted > 0 && counted <= done,
             qPrintable(QString("%1: %2 tokens certified, %3 trained").arg(name).arg(counted).arg(done)));
    certified += counted;
    trained += done;
  }
  qInfo("MEASURED work: %lld of %lld trained tokens are certified", certified, trained);
}

// ---- Events

// In a random order. With few kills the lost disk comes first, so that the time until its node has work again is
// no time of its own.
QList<TestRoundsKills::Event> TestRoundsKills::events() {
  QList<Event> all(full_ ? 97 : 2,
                   Event::Kill);  // and that with the lost disk, and with NS_LONG those in cuts
  all += QList<Event>(full_ ? 2 : 1, Event::Cut);
  all << Event::Join << Event::LostDisk;
  for (qsizetype i = all.size() - (full_ ? 1 : 2); i > 0; --i)
    all.swapItemsAt(i, below(static_cast<int>(i) + 1));
  if (!full_) all.prepend(all.takeLast());
  return all;
}

QByteArray TestRoundsKills::perform(Event event) {
  switch (event) {
    case Event::Cut: return cut();
    case Event::LostDisk: return lose_disk();
    case Event::Join: return join();
    case Event::Kill: {
      if (kills_.size() % 10 == 9)  // all that were killed are back
        if (const QByteArray trouble = work(all(), now_ms()); !trouble.isEmpty()) return trouble;
      QTest::qWait(below(3000));  // a random moment
      read({founders.first(), founders.last()});
      const QString name = all()[below(static_cast<int>(all().size()))];
      // After its disk is lost, a node has no valid value for the beacon for some rounds; the kill does not cost these.
      if (name == lost_.name)
        if (const QByteArray trouble = work({name}, lost_.back_ms); !trouble.isEmpty()) return trouble;
      return kill(name, true);
    }
  }
  return "no such event";
}

QByteArray TestRoundsKills::kill(const QString& name, bool alone) {
  Kill kill{name, now_ms(), 0, alone};
  kill_counted(name);
  QTest::qWait(below(1000));
  launch(name);
  const QByteArray trouble = run_.joined(name);
  kill.back_ms = now_ms();
  kills_ << kill;
  // The losses of few kills can't even out, so each is over before anything else happens.
  return trouble.isEmpty() && !full_ && alone ? work({name}, kill.back_ms) : trouble;
}

QByteArray TestRoundsKills::lose_disk() {
  const QString name = founders[below(static_cast<int>(founders.size()))];
  if (full_) {
    // A node keeps its knowledge of the starts of others in memory: after a start it has it from their next
    // heartbeats.
    if (const QByteArray trouble = work(all(), now_ms()); !trouble.isEmpty()) return trouble;
    QTest::qWait(12'000);
  }
  Kill kill{name, now_ms(), 0, false};
  kill_counted(name);
  read({name});
  const QDir folder(run_.path(name));
  const auto filter = QDir::AllEntries | QDir::Hidden | QDir::System | QDir::NoDotAndDotDot;
  for (const QFileInfo& entry : folder.entryInfoList(filter)) {
    if (kept_files.contains(entry.fileName())) continue;
    if (entry.isDir() ? !QDir(entry.filePath()).removeRecursively() : !QFile::remove(entry.filePath()))
      return "the disk can't be lost";
  }
  launch(name);
  const QByteArray trouble = run_.joined(name);
  kill.back_ms = now_ms();
  kills_ << kill;
  lost_ = kill;
  return trouble.isEmpty() && full_ ? work({name}, kill.back_ms) : trouble;
}

QByteArray TestRoundsKills::cut() {
  QStringList one = all(), other;
  while (other.size() < 2) other << one.takeAt(below(static_cast<int>(founders.size() - other.size())));
  // Three of five go on alone. With one of them taken for silent before, they would be two of four.
  if (full_)
    if (const QByteArray trouble = work(all(), now_ms()); !trouble.isEmpty()) return trouble;
  read(all());
  for (qsizetype i = 0; i < kills_.size(); ++i)
    if (!missing_after(i).counts_again) kills_[i].alone = false;
  const int height = ledger_.newest_height(), round = ledger_.newest_round();
  QElapsedTimer time;
  time.start();
  if (has_lab() && !bridged_homes::cut_off(other)) return "the network can't be cut";
  if (!has_lab())
    for (const QString& name : other) run_.node(name).hold();
  // One block may have had its votes on their way.
  const auto stands = [&](const QStringList& names) {
    return std::all_of(names.begin(), names.end(),
                       [&](const QString& name) { return ledger_.newest_height(name) <= height + 1; });
  };
  QTest::qWait(2000 + below(3000));
  QByteArray trouble;
  if (full_) trouble = kill(other[below(2)], false);  // which has nobody to ask
  if (full_ && trouble.isEmpty()) trouble = hold(one, round + 3);
  read(all());
  if (trouble.isEmpty() && !stands(other)) trouble = "a minority has certified blocks";
  // Three of five certify nothing before they take the others for silent, which is after 30 s.
  if (trouble.isEmpty() && !full_ && time.elapsed() < 20'000 && !stands(one))
    trouble = "three of five have certified blocks at once";
  if (has_lab() && !bridged_homes::take_back(other)) return "the network can't be mended";
  if (!has_lab())
    for (const QString& name : other) run_.node(name).go_on();
  if (!trouble.isEmpty()) return trouble;
  ++cuts_;
  qInfo("cut %s | %s for %lld ms", qPrintable(one.join(' ')), qPrintable(other.join(' ')), time.elapsed());
  time.start();
  read(all());
  trouble = work(all(), now_ms());
  qInfo("all have work in a round %lld ms later", time.elapsed());
  return trouble;
}

QByteArray TestRoundsKills::join() {
  launch(joiner);
  joined_ = true;
  const QByteArray trouble = run_.joined(joiner);
  return trouble.isEmpty() ? work({joiner}, now_ms()) : trouble;  // without work a kill can't cost any
}

// ---- Support

void TestRoundsKills::launch(const QString& name) {
  if (has_lab()) {
    run_.address = bridged_homes::address_of(name);
    run_.name_space = bridged_homes::name_space_of(name);
  }
  run_.launch(name);
}

void TestRoundsKills::kill_counted(const QString& name) {
  const qint64 steps = run_.status(name)["training"].toObject()["step"].toInteger();
  run_.node(name).kill_now();
  const QList<QJsonObject> said = json_lines(run_.node(name).finish().err);
  const qint64 before = said.isEmpty() ? 0 : said.first()["start"]["step"].toInteger();
  // It can have done a round's more since.
  trained_[name] += qMax<qint64>(steps - before, 0) + inner_steps;
}

void TestRoundsKills::read(const QStringList& names) {
  for (const QString& name : names) {
    const QString blocks = run_.path(name + ".jsonl");
    const ProcessResult written =
        run_node({"chain", "export", blocks, "--force", "--data-dir", run_.path(name)});
    QFile file(blocks);
    if (written.ok() && file.open(QIODevice::ReadOnly)) ledger_.read_blocks(name, file.readAll());
    ledger_.read_anchors(name, run_.certified(name));
    QFile log(run_.path(name) + "/logs/neuroshardd.log");
    if (!log.open(QIODevice::ReadOnly)) continue;
    for (const QByteArray& line : log.readAll().split('\n'))
      if (line.contains("[compute] matrix products"))
        trains_from_[name].insert(
            QDateTime::fromString(line.left(23), Qt::ISODateWithMs).toMSecsSinceEpoch());
  }
}

bool TestRoundsKills::learn_numbers() {
  for (const QString& name : all()) {
    if (numbers_.contains(name)) continue;
    const QString id = run_.status(name)["node_id"].toString();
    const ProcessResult shown =
        run_node({"chain", "show", "--json", "--data-dir", run_.path(founders.first())});
    for (const QJsonValue& member : json_lines(shown.out).value(0)["members"].toArray())
      if (member["id"].toString() == id) numbers_[name] = member["number"].toInt();
  }
  return numbers_.size() == all().size();
}

ChainLedger::Missing TestRoundsKills::missing_after(qsizetype kill) {
  const Kill& one = kills_[kill];
  qint64 until = now_ms();
  for (qsizetype next = kills_.size() - 1; next > kill; --next)
    if (kills_[next].name == one.name) until = kills_[next].at_ms;
  qint64 back = until;
  for (const qint64 start : trains_from_[one.name])
    if (start > one.at_ms) back = qMin(back, start);
  return ledger_.missing(numbers_.value(one.name, -1), one.at_ms, back, until);
}

QByteArray TestRoundsKills::wait(const std::function<bool()>& until, const char* what) {
  for (const QDeadlineTimer deadline(patience_ms); !deadline.hasExpired(); QTest::qWait(300)) {
    for (const QString& name : all())
      if (!run_.node(name).running()) return name.toUtf8() + " has ended: " + run_.node(name).errors_so_far();
    if (until()) return {};
  }
  for (const QString& name : all())
    qWarning().noquote() << name << QJsonDocument(run_.rounds(name)).toJson(QJsonDocument::Compact);
  return what;
}

QByteArray TestRoundsKills::hold(const QStringList& names, int round) {
  const auto all_hold = [&] {
    return std::all_of(names.begin(), names.end(), [&](const QString& name) {
      const QMap<int, CertifiedRound> rounds = run_.certified(name);
      return !rounds.isEmpty() && rounds.lastKey() >= round;
    });
  };
  return wait(all_hold, "a node does not follow");
}

QByteArray TestRoundsKills::work(const QStringList& names, qint64 since_ms) {
  const auto has_work = [&](const QString& name) {
    const QMap<int, ChainLedger::Round>& rounds = ledger_.rounds();
    return std::any_of(rounds.begin(), rounds.end(), [&](const ChainLedger::Round& round) {
      return round.opened_ms > since_ms && round.tokens.contains(numbers_.value(name, -1));
    });
  };
  const auto all_have = [&] {
    read({founders.first()});
    return learn_numbers() && std::all_of(names.begin(), names.end(), has_work);
  };
  return wait(all_have, "a node has no work in a round");
}

int main(int argc, char** argv) {
  const QString why_not = enter_net_lab(argv, {});
  const QCoreApplication application(argc, argv);
  TestRoundsKills test;
  test.why_no_lab = why_not;
  return QTest::qExec(&test, argc, argv);
}
#include "test_rounds_kills.moc"
