// Real processes on the loopback interface whose people have three different texts: the network gets one tokenizer,
// all train together, and nobody's text leaves the computer.
#include <QDirIterator>
#include <QTest>
#include <cstring>
#include <optional>

#include "tests/support/test_main.h"
#include "tests/support/three_texts.h"

using namespace neuroshard::test;  // NOLINT

namespace {

// The word as the token files have it (int64), as a training node has it in its memory (int32), and as text.
std::vector<QByteArray> forms_of(const QByteArray& word) {
  QByteArray wide, narrow;
  for (const char letter : word) {
    narrow += static_cast<char>(letter + 10) + QByteArray(3, '\0');
    wide += static_cast<char>(letter + 10) + QByteArray(7, '\0');
  }
  return {word, narrow, wide};
}

// The people whose planted words are in these bytes.
QSet<QString> people_in(const QByteArray& bytes) {
  QSet<QString> found;
  const auto has = [&bytes](const QByteArray& form) {
    return memmem(bytes.constData(), static_cast<std::size_t>(bytes.size()), form.constData(),
                  static_cast<std::size_t>(form.size())) != nullptr;
  };
  for (auto at = planted.begin(); at != planted.end(); ++at) {
    const std::vector<QByteArray> forms = forms_of(at.value());
    if (std::any_of(forms.begin(), forms.end(), has)) found.insert(at.key());
  }
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
  const QString founder = names_[2];  // not the first one by chance
  const ProcessResult wallet = run_node({"wallet", "create", "--data-dir", run_->path(founder)});
  QVERIFY2(wallet.ok(), wallet.text().constData());
  QCOMPARE(run_->make("family", "30",
                      {"--voters", "invited", "--founder", "mine", "--data-dir", run_->path(founder),
                       "--block-time-s", "1", "--admission-contributions", "2"}),
           QByteArray());
  QCOMPARE(write_texts(*run_), QByteArray());
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
  for (const QString& name : names_) QCOMPARE(tokenizer_of(*run_, name), tokenizer_of(*run_, founder));
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

NS_TEST(TestRoundsTexts)
#include "test_rounds_texts.moc"
