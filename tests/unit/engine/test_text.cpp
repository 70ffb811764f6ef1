// Bytes of a model as text that every reader takes, and the router's load over twenty steps.
#include <QtTest>
#include <cmath>

#include "core/engine/generator.h"
#include "core/engine/router_load.h"
#include "core/engine/utf8_stream.h"
#include "core/engine/work_share.h"
#include "tests/support/test_main.h"

using neuroshard::engine::RouterLoad;
using neuroshard::engine::Utf8Stream;
using neuroshard::engine::WorkShare;

class TestText : public QObject {
  Q_OBJECT
 private Q_SLOTS:
  void characters_wait_until_they_are_whole() {
    Utf8Stream stream;
    QCOMPARE(stream.add("a\xE2\x82"), std::string("a"));
    QCOMPARE(stream.add("\xAC!"), std::string("\xE2\x82\xAC!"));
    QCOMPARE(stream.finish(), std::string());
  }
  void what_is_no_character_is_replaced() {
    const std::string mark = "\xEF\xBF\xBD";
    Utf8Stream stream;
    QCOMPARE(stream.add("\xFFx\xC0\xAF"), mark + "x" + mark + mark);  // overlong forms too
    QCOMPARE(stream.add("\xED\xA0\x80"), mark + mark + mark);         // half of a surrogate pair
    QCOMPARE(stream.add("\xE2\x82x"), mark + "x");                    // broken off
    QCOMPARE(stream.add("\xF0\x9F"), std::string());
    QCOMPARE(stream.finish(), mark);
    QCOMPARE(stream.finish(), std::string());
  }
  void any_bytes_become_utf8() {
    Utf8Stream stream;
    std::string text;
    unsigned state = 1;
    for (int i = 0; i < 20'000; ++i) {
      state = state * 1'664'525u + 1'013'904'223u;
      text += stream.add(std::string(1, static_cast<char>(state >> 24)));
    }
    text += stream.finish();
    QCOMPARE(QString::fromUtf8(text.data(), static_cast<qsizetype>(text.size())).toStdString(), text);
  }
  void both_have_their_share_of_the_time_data() {
    QTest::addColumn<double>("share");
    QTest::addColumn<double>("step");
    for (const double share : {0.05, 0.25, 0.5, 0.9}) {
      for (const double step : {0.01, 0.7, 9.0}) QTest::addRow("%g %g", share, step) << share << step;
    }
  }
  // A turn lasts a little longer than planned: the text in progress gets its token.
  void both_have_their_share_of_the_time() {
    QFETCH(double, share);
    QFETCH(double, step);
    WorkShare work(share);
    double text = 0, training = 0;
    while (text + training < 2000) {
      if (work.text_is_next()) {
        const double turn = work.turn_seconds() + 0.04;
        work.add_text(turn);
        text += turn;
      } else {
        work.add_training(step, /*texts_wait=*/true);
        training += step;
      }
    }
    QVERIFY2(std::abs(text / (text + training) / share - 1) < 0.05, qPrintable(QString::number(text)));
  }
  void time_without_texts_is_no_credit() {
    WorkShare work(0.5);
    work.add_training(1000, /*texts_wait=*/false);
    QVERIFY(work.text_is_next());  // the first token does not wait
    work.add_text(3);
    QVERIFY(!work.text_is_next());
    work.no_text_waits();
    QVERIFY(!work.text_is_next());  // nor is a debt forgotten
    work.add_training(4, /*texts_wait=*/false);
    QVERIFY(work.text_is_next());
    QCOMPARE(work.turn_seconds(), 1.0);
  }
  // A greedy client always has texts without a token; a modest one comes at any time.
  void a_clients_first_token_comes_early() {
    WorkShare work(0.5);
    double text = 0, training = 0;
    int waited = 0, most = 0, early = 0;
    bool modest_waits = false;
    for (int i = 0; i < 100'000; ++i) {
      if (!modest_waits && i % 211 == 0) {  // at most once between two turns of all
        modest_waits = true;
        waited = 0;
      }
      std::vector<std::string> waiting{"greedy"};
      if (modest_waits) waiting.push_back("modest");
      if (const auto turn = work.next_turn(waiting)) {
        const double seconds = turn->seconds + 0.004;
        if (turn->seconds == 0) ++early;
        if (!turn->only || turn->only == "modest") modest_waits = false;
        work.add_text(seconds);
        text += seconds;
      } else {
        work.add_training(0.01, /*texts_wait=*/true);
        training += 0.01;
        if (modest_waits) most = std::max(most, ++waited);
      }
    }
    QVERIFY2(most <= 1, QByteArray::number(most));
    QVERIFY(early > 100);
    QVERIFY2(std::abs(text / (text + training) / 0.5 - 1) < 0.05, QByteArray::number(text));
  }
  // However many clients there are, the training gets its share.
  void early_tokens_are_bounded() {
    WorkShare work(0.25);
    double text = 0, training = 0;
    int clients = 0;
    while (text + training < 2000) {
      if (const auto turn = work.next_turn({std::to_string(clients++)})) {
        work.add_text(turn->seconds + 0.1);
        text += turn->seconds + 0.1;
      } else {
        work.add_training(0.1, /*texts_wait=*/true);
        training += 0.1;
      }
    }
    QVERIFY2(std::abs(text / (text + training) / 0.25 - 1) < 0.05, QByteArray::number(text));
  }
  void an_embedding_is_the_mean_of_all_pieces() {
    neuroshard::engine::GenerateOptions options;
    options.embedding = true;
    neuroshard::engine::TextWriter text(options);
    const std::vector<float> other{9, 9, 9, 9}, first{3, 1, 1, 1}, second{2, 2};
    text.add_hidden(0, 2, other);  // of weights that have changed since
    text.add_hidden(0, 2, first);
    text.add_hidden(2, 2, second);
    text.end(/*stopped=*/false);
    const std::vector<float>& embedding = text.result().embedding;
    QCOMPARE(embedding.size(), std::size_t{2});
    const double length = std::sqrt(6.0 * 6.0 + 4.0 * 4.0);
    QVERIFY(std::abs(embedding[0] - 6 / length) < 1e-6 && std::abs(embedding[1] - 4 / length) < 1e-6);
  }
  void load_follows_the_last_steps() {
    neuroshard::compute::ModelShape shape;
    shape.layers = 2;
    shape.experts = 2;
    RouterLoad load(shape);
    QCOMPARE(load.view().size(), std::size_t{4});
    QCOMPARE(load.view()[0].share, 0.0);
    const std::vector<std::uint64_t> even{50, 50, 100, 0}, moved{0, 100, 100, 0};
    const std::vector<float> bias{0.5f, 0, 0, 0};
    load.add(even, bias);
    QCOMPARE(load.view()[0].share, 0.5);
    QCOMPARE(load.view()[2].share, 1.0);
    QCOMPARE(load.view()[0].bias, 0.5);
    for (int i = 0; i < 20; ++i) load.add(moved, bias);
    QVERIFY(load.view()[0].share > 0.04 && load.view()[0].share < 0.1);
    QCOMPARE(load.view()[1].tokens, std::uint64_t{2050});
    // A layer that this node computes from now on begins with its own load.
    RouterLoad part(shape);
    part.add(std::vector<std::uint64_t>{30, 10, 0, 0}, bias);
    part.add(std::vector<std::uint64_t>{0, 0, 10, 30}, bias);
    QCOMPARE(part.view()[2].share, 0.25);
    QCOMPARE(part.view()[0].share, 0.75);
    shape.experts = 1;
    QVERIFY(RouterLoad(shape).view().empty());
  }
};

NS_TEST(TestText)
#include "test_text.moc"
