// Real processes on the loopback interface whose people have three different texts: the network gets one tokenizer,
// all train together, and nobody's text leaves the computer.
#include <QDirIterator>
#include <QTest>
#include <array>
#include <cmath>
#include <cstring>
#include <optional>

#include "tests/support/test_main.h"
#include "tests/support/three_texts.h"

using namespace neuroshard::test;  // NOLINT

namespace {

// The word as tokens of so many bytes each: token files have int64, a training node's memory has int32.
QByteArray tokens_of(const QByteArray& word, int token_bytes) {
  QByteArray tokens;
  for (const char letter : word) tokens += static_cast<char>(letter + 10) + QByteArray(token_bytes - 1, '\0');
  return tokens;
}

// The people whose planted words are in these bytes as tokens. A search for the tokens themselves takes minutes in pages of
// zeros, so this looks for a first token that may be a letter's.
QSet<QString> people_in_tokens(const QByteArray& bytes) {
  constexpr std::uint32_t first = 'A' + 10, letters = 26;
  QMap<QString, std::array<QByteArray, 2>> forms;
  for (auto at = planted.begin(); at != planted.end(); ++at)
    forms[at.key()] = {tokens_of(at.value(), 4), tokens_of(at.value(), 8)};
  QSet<QString> found;
  for (qsizetype at = 0; at + 4 <= bytes.size(); ++at) {
    std::uint32_t token = 0;
    std::memcpy(&token, bytes.constData() + at, sizeof token);
    if (token - first >= letters) continue;
    for (auto person = forms.begin(); person != forms.end(); ++person)
      for (const QByteArray& form : *person)
        if (QByteArrayView(bytes).sliced(at).startsWith(form)) found.insert(person.key());
  }
  return found;
}

// The people whose planted words are in these bytes, as text or as tokens.
QSet<QString> people_in(const QByteArray& bytes) {
  QSet<QString> found = people_in_tokens(bytes);
  for (auto at = planted.begin(); at != planted.end(); ++at)
    if (bytes.contains(at.value())) found.insert(at.key());
  return found;
}

QSet<QString> people_in_folder(const QString& folder) {
  QSet<QString> found;
  for (QDirIterator at(folder, QDir::Files | QDir::Hidden, QDirIterator::Subdirectories); at.hasNext();) {
    QFile file(at.next());
    if (file.open(QIODevice::ReadOnly)) found += people_in(file.readAll());
  }
  return found;
}

// In all memory that the process can write. Nothing: it can't be read.
std::optional<QSet<QString>> people_in_process(qint64 process) {
  QFile maps(QString("/proc/%1/maps").arg(process)), memory(QString("/proc/%1/mem").arg(process));
  if (!maps.open(QIODevice::ReadOnly) || !memory.open(QIODevice::ReadOnly | QIODevice::Unbuffered))
    return std::nullopt;
  QSet<QString> found;
  for (const QByteArray& line : maps.readAll().split('\n')) {
    const QList<QByteArray> words = line.split(' ');
    if (words.size() < 2 || !words[1].startsWith("rw")) continue;
    const QList<QByteArray> range = words[0].split('-');
    const qint64 begin = range[0].toLongLong(nullptr, 16), end = range[1].toLongLong(nullptr, 16);
    if (memory.seek(begin)) found += people_in(memory.read(end - begin));
  }
  return found;
}

}  // namespace

class TestRoundsTexts : public QObject {
  Q_OBJECT
 private Q_SLOTS:
  void init();
  void friends_follow_an_invitation();

 private:
  double held_out_loss(const QString& name) const;
  void check_that_texts_stay();

  std::unique_ptr<RoundsRun> run_;
  const QStringList names_ = planted.keys();
};

void TestRoundsTexts::init() {
  qputenv("NEUROSHARD_INSPECTABLE", "1");  // the memory of nodes is looked at
  run_ = std::make_unique<RoundsRun>();
  run_->eval_interval = "20";
}

// Zero: none yet.
double TestRoundsTexts::held_out_loss(const QString& name) const {
  return run_->status(name)["training"].toObject()["held_out_loss"].toDouble();
}

// Each person's word is at the own node, and nowhere else.
void TestRoundsTexts::check_that_texts_stay() {
  for (const QString& name : names_) {
    QCOMPARE(people_in_folder(run_->path(name)), QSet<QString>{name});
    const auto in_memory = people_in_process(run_->node(name).pid());
    QVERIFY(in_memory.has_value());
    QCOMPARE(*in_memory, QSet<QString>{name});
  }
}

void TestRoundsTexts::friends_follow_an_invitation() {
  const QString founder = run_->founder = names_[2];  // not the first one by chance
  QCOMPARE(run_->make("family", "30", {"--block-time-s", "1", "--admission-contributions", "2"}),
           QByteArray());
  QCOMPARE(write_texts(*run_), QByteArray());
  QCOMPARE(run_->start(founder, founder + ".txt"), QByteArray());
  QTRY_VERIFY_WITH_TIMEOUT(run_->round(founder) >= 1, RoundsRun::patience_ms);
  for (const QString& name : names_) {
    if (name == founder) continue;
    run_->launch(name, name + ".txt");
    QCOMPARE(run_->joined(name), QByteArray());
  }
  QVERIFY(run_->together(names_));
  for (const QString& name : names_) QCOMPARE(tokenizer_of(*run_, name), tokenizer_of(*run_, founder));
  QVERIFY(run_->together(names_, run_->round(founder) + 3));
  check_that_texts_stay();
  // The model that all train together knows each person's text.
  const double of_no_model = std::log(300.0);
  for (const QString& name : names_) {
    QTRY_VERIFY_WITH_TIMEOUT(held_out_loss(name) > 0, RoundsRun::patience_ms);
    const double loss = held_out_loss(name);
    qInfo().noquote() << name << "held-out loss" << loss;
    QVERIFY2(loss < of_no_model - 2, qPrintable(name));
  }
}

NS_TEST(TestRoundsTexts)
#include "test_rounds_texts.moc"
