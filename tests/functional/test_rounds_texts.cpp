// Real processes on the loopback interface whose people have three different texts: the network gets one tokenizer,
// all train together, and nobody's text leaves the computer.
#include <QDirIterator>
#include <QTest>

#include "tests/support/rounds_run.h"
#include "tests/support/test_main.h"

using namespace neuroshard::test;  // NOLINT

namespace {

// Letters that no text has, so that each is a token of its own.
const QMap<QString, QByteArray> planted{{"anna", "QZJXQQZV"}, {"ben", "WKYUWWKY"}, {"carl", "HGFDHHGF"}};

// A language of its own for each, and once in it the planted word.
QByteArray text_of(const QString& name, char shift) {
  QByteArray text = made_up_text(static_cast<std::uint64_t>(shift) + 3, 60'000);
  for (char& letter : text)
    if (letter >= 'a' && letter <= 'z') letter = static_cast<char>('a' + (letter - 'a' + shift) % 26);
  const auto middle = text.indexOf(' ', text.size() / 2);
  return text.insert(middle, " " + planted[name]);
}

// The word as the token files have it (int64), as a training node has it in its memory (int32), and as text.
std::vector<QByteArray> forms_of(const QByteArray& word) {
  QByteArray wide, narrow;
  for (const char letter : word) {
    narrow += static_cast<char>(letter + 10) + QByteArray(3, '\0');
    wide += static_cast<char>(letter + 10) + QByteArray(7, '\0');
  }
  return {word, narrow, wide};
}

bool contains(const QByteArray& bytes, const QByteArray& word) {
  const auto forms = forms_of(word);
  return std::any_of(forms.begin(), forms.end(),
                     [&bytes](const QByteArray& form) { return bytes.contains(form); });
}

bool folder_contains(const QString& folder, const QByteArray& word) {
  for (QDirIterator at(folder, QDir::Files | QDir::Hidden, QDirIterator::Subdirectories); at.hasNext();) {
    QFile file(at.next());
    if (file.open(QIODevice::ReadOnly) && contains(file.readAll(), word)) return true;
  }
  return false;
}

// All memory that the process can write.
bool process_contains(qint64 process, const QByteArray& word) {
  QFile maps(QString("/proc/%1/maps").arg(process)), memory(QString("/proc/%1/mem").arg(process));
  if (!maps.open(QIODevice::ReadOnly) || !memory.open(QIODevice::ReadOnly | QIODevice::Unbuffered))
    return true;
  for (const QByteArray& line : maps.readAll().split('\n')) {
    const QList<QByteArray> words = line.split(' ');
    if (words.size() < 2 || !words[1].startsWith("rw")) continue;
    const QList<QByteArray> range = words[0].split('-');
    const qint64 begin = range[0].toLongLong(nullptr, 16), end = range[1].toLongLong(nullptr, 16);
    if (memory.seek(begin) && contains(memory.read(end - begin), word)) return true;
  }
  return false;
}

}  // namespace

class TestRoundsTexts : public QObject {
  Q_OBJECT
 private Q_SLOTS:
  void init();
  void friends_follow_an_invitation();
  void all_begin_at_once();

 private:
  QByteArray write_texts() const {
    char shift = 0;
    for (auto at = planted.begin(); at != planted.end(); ++at, shift = static_cast<char>(shift + 7))
      if (!run_->write_text(at.key() + ".txt", text_of(at.key(), shift))) return "no room for the texts";
    return {};
  }
  QByteArray tokenizer(const QString& name) const {
    QFile file(run_->path(name) + "/data/tokenizer.json");
    return file.open(QIODevice::ReadOnly) ? file.readAll() : QByteArray();
  }
  double held_out_loss(const QString& name) const;
  void check_that_texts_stay();

  std::unique_ptr<RoundsRun> run_;
  const QStringList names_ = planted.keys();
};

void TestRoundsTexts::init() {
  run_ = std::make_unique<RoundsRun>();
  run_->eval_interval = "20";
}

// Zero: none yet.
double TestRoundsTexts::held_out_loss(const QString& name) const {
  return run_->status(name)["training"].toObject()["held_out_loss"].toDouble();
}

void TestRoundsTexts::check_that_texts_stay() {
  for (const QString& name : names_) {
    QVERIFY2(folder_contains(run_->path(name) + "/data", planted[name]),
             "the search finds a text at its own node");
    QVERIFY(process_contains(run_->node(name).pid(), planted[name]));
    for (const QString& other : names_) {
      if (other == name) continue;
      QVERIFY2(!folder_contains(run_->path(other), planted[name]), qPrintable(name + " at " + other));
      QVERIFY2(!process_contains(run_->node(other).pid(), planted[name]),
               qPrintable(name + " in the memory of " + other));
    }
  }
}

void TestRoundsTexts::friends_follow_an_invitation() {
  const QString founder = names_[2];  // not the first one by chance
  const ProcessResult wallet = run_node({"wallet", "create", "--data-dir", run_->path(founder)});
  QVERIFY2(wallet.ok(), wallet.text().constData());
  QCOMPARE(run_->make("family", "30",
                      {"--voters", "invited", "--founder", "mine", "--data-dir", run_->path(founder),
                       "--block-time-s", "1", "--admission-contributions", "2"}),
           QByteArray());
  QCOMPARE(write_texts(), QByteArray());
  QCOMPARE(run_->start(founder, founder + ".txt"), QByteArray());
  QTRY_VERIFY_WITH_TIMEOUT(run_->round(founder) >= 1, RoundsRun::patience_ms);
  for (const QString& name : names_) {
    if (name == founder) continue;
    const ProcessResult made =
        run_node(QStringList{"network", "invite", "--json", "--data-dir", run_->path(founder)});
    run_->launch_invited(name, json_lines(made.out).value(0)["link"].toString(), name + ".txt");
    QCOMPARE(run_->joined(name), QByteArray());
  }
  QVERIFY(run_->together(names_));
  for (const QString& name : names_) QCOMPARE(tokenizer(name), tokenizer(founder));
  QMap<QString, double> first;
  for (const QString& name : names_) QTRY_VERIFY((first[name] = held_out_loss(name)) > 0);
  QVERIFY(run_->together(names_, run_->round(founder) + 3));
  check_that_texts_stay();
  for (const QString& name : names_) {
    const double last = held_out_loss(name);
    qInfo().noquote() << name << "held-out loss" << first[name] << "->" << last;
    QVERIFY2(last < first[name] - 0.05, qPrintable(name));
  }
}

void TestRoundsTexts::all_begin_at_once() {
  QCOMPARE(run_->make("street", "30", {"--block-time-s", "1", "--voters", "open"}), QByteArray());
  QCOMPARE(write_texts(), QByteArray());
  for (const QString& name : names_) run_->launch(name, name + ".txt");
  for (const QString& name : names_) QCOMPARE(run_->joined(name), QByteArray());
  QVERIFY(run_->together(names_));
  for (const QString& name : names_) QCOMPARE(tokenizer(name), tokenizer(names_.first()));
}

NS_TEST(TestRoundsTexts)
#include "test_rounds_texts.moc"
