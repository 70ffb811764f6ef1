// The cloze task: questions follow the written rules, and from text and seed alone.
#include <QtTest>
#include <set>

#include "core/evaluation/cloze.h"
#include "tests/support/test_main.h"

using namespace neuroshard;
using namespace neuroshard::evaluation;

namespace {

// Words of four to seven letters, so that each length has several.
std::string sample() {
  const char* const words[] = {"tree",    "moon",    "lamp",    "ship",   "river",  "stone",
                               "night",   "cloud",   "garden",  "window", "silver", "candle",
                               "morning", "evening", "picture", "journey"};
  std::string text = "He said:";
  for (unsigned i = 0; i < 400; ++i)
    text += std::string(" ") + words[(i * i + i / 3) % 16] + (i % 9 == 8 ? "." : "");
  return text;
}

bool same(const std::vector<ClozeQuestion>& a, const std::vector<ClozeQuestion>& b) {
  return std::equal(a.begin(), a.end(), b.begin(), b.end(), [](const auto& x, const auto& y) {
    return x.begin == y.begin && x.end == y.end && x.choices == y.choices && x.right == y.right;
  });
}

}  // namespace

class TestCloze : public QObject {
  Q_OBJECT
 private Q_SLOTS:
  void questions_follow_the_rules() {
    const std::string text = sample();
    const auto questions = make_cloze(as_bytes(text), 100, 1);
    QCOMPARE(questions.size(), std::size_t{100});
    std::size_t before = 0;
    std::set<std::uint32_t> places;
    for (const ClozeQuestion& question : questions) {
      QVERIFY(question.end > before);  // in the order of the text, each word once
      before = question.end;
      QCOMPARE(question.choices.size(), std::size_t{cloze_choices});
      const std::string& answer = question.choices[question.right];
      QCOMPARE(text.substr(question.end, answer.size()), answer);
      QVERIFY(answer[0] == ' ' && answer.size() > min_cloze_letters);
      QCOMPARE(std::set<std::string>(question.choices.begin(), question.choices.end()).size(),
               question.choices.size());
      for (const std::string& choice : question.choices) QCOMPARE(choice.size(), answer.size());
      const std::string passage = text.substr(question.begin, question.end - question.begin);
      const auto spaces = static_cast<std::size_t>(std::count(passage.begin(), passage.end(), ' '));
      QVERIFY(spaces + 1 >= min_cloze_words / 2 && spaces <= max_cloze_words);
      places.insert(question.right);
    }
    QCOMPARE(places.size(), std::size_t{cloze_choices});
  }

  void text_and_seed_decide() {
    const std::string text = sample();
    QVERIFY(same(make_cloze(as_bytes(text), 50, 7), make_cloze(as_bytes(text), 50, 7)));
    QVERIFY(!same(make_cloze(as_bytes(text), 50, 7), make_cloze(as_bytes(text), 50, 8)));
  }

  void texts_without_words_have_no_questions_data() {
    QTest::addColumn<QByteArray>("text");
    QTest::newRow("nothing") << QByteArray();
    QTest::newRow("numbers") << QByteArray("1 22 333 4444 ").repeated(100);
    QTest::newRow("too few of a length") << QByteArray(" alpha gamma delta and").repeated(40);
    QTest::newRow("bytes") << QByteArray("\xff\xfe\x00\x80", 4).repeated(100);
  }
  void texts_without_words_have_no_questions() {
    QFETCH(const QByteArray, text);
    QVERIFY(make_cloze({reinterpret_cast<const std::uint8_t*>(text.constData()),
                        static_cast<std::size_t>(text.size())},
                       10, 1)
                .empty());
  }
};

NS_TEST(TestCloze)
#include "test_cloze.moc"
