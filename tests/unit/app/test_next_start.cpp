// Whether a node starts anew in its process, and with which command line.
#include <QtTest>

#include "app/node/next_start.h"
#include "tests/support/test_main.h"

using neuroshard::CancelSource;
using neuroshard::app::arguments_of_next_start;
using neuroshard::app::EarlierStart;
using neuroshard::app::Ending;
using neuroshard::app::starts_anew;

namespace {

using Words = std::vector<std::string>;

EarlierStart start(bool joined, bool prepared) {
  EarlierStart before;
  before.joined = joined;
  before.prepared = prepared;
  return before;
}

}  // namespace

class TestNextStart : public QObject {
  Q_OBJECT
 private Q_SLOTS:
  void only_with_a_reason_it_starts_anew();
  void a_stop_by_anybody_wins_over_a_new_start();
  void the_arguments_stay();
  void an_invitation_that_was_followed_is_not_named_again();
  void imported_text_is_not_named_again();
};

void TestNextStart::only_with_a_reason_it_starts_anew() {
  const CancelSource signals;
  Ending ending;
  QVERIFY(!starts_anew(ending, signals.token()));
  ending.next = "The program was replaced.";
  QVERIFY(starts_anew(ending, signals.token()));
}

// A person may stop the node after it began to end for its new start.
void TestNextStart::a_stop_by_anybody_wins_over_a_new_start() {
  Ending ending;
  ending.next = "The program was replaced.";
  CancelSource signals;
  signals.cancel();
  QVERIFY(!starts_anew(ending, signals.token()));
  ending.stopped.cancel();
  QVERIFY(!starts_anew(ending, CancelSource().token()));
}

void TestNextStart::the_arguments_stay() {
  const Words words{"neuroshardd", "run", "--json", "--text", "books"};
  QVERIFY(arguments_of_next_start(words, start(false, false)) == words);
  const Words plain{"neuroshardd", "run", "--json"};
  QVERIFY(arguments_of_next_start(plain, start(false, true)) == plain);
}

void TestNextStart::an_invitation_that_was_followed_is_not_named_again() {
  const Words plain{"neuroshardd", "run"};
  const Words asked{"neuroshardd", "run", "--join", "neuroshard:join?to=A"};
  const Words joined{"neuroshardd", "run", "--join=neuroshard:join?to=A"};
  const Words from_input{"neuroshardd", "run", "--join", "-"};
  for (const Words& words : {asked, joined, from_input}) {
    QVERIFY(arguments_of_next_start(words, start(true, false)) == plain);
    QVERIFY(arguments_of_next_start(words, start(false, false)) == words);
  }
}

void TestNextStart::imported_text_is_not_named_again() {
  const Words words{"neuroshardd", "run",    "--text",      "books",    "--data-dir",
                    "d",           "--text", "more=--text", "--text=e", "--textual"};
  const Words kept{"neuroshardd", "run", "--data-dir", "d", "--textual"};
  QVERIFY(arguments_of_next_start(words, start(false, true)) == kept);
}

NS_TEST(TestNextStart)
#include "test_next_start.moc"
