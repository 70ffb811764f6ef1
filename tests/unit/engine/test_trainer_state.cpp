// The engine's part of a checkpoint's manifest: it comes back as it was, and any other text is refused.
#include <QtTest>

#include "core/engine/trainer_state.h"
#include "tests/support/test_main.h"

using namespace neuroshard;          // NOLINT
using namespace neuroshard::engine;  // NOLINT

namespace {

TrainerState state_with(std::vector<RoundPlace> places) {
  TrainerState state;
  state.tokenizer_hash.fill(7);
  state.memory_limit = 5;
  state.max_micro_batch = 8;
  state.places = std::move(places);
  return state;
}

RoundPlace place_in(std::uint64_t round, std::uint64_t steps) {
  RoundPlace place{round, {}, steps, 100 * steps};
  place.anchor.fill(9);
  return place;
}

}  // namespace

class TestTrainerState : public QObject {
  Q_OBJECT
 private Q_SLOTS:
  void comes_back_as_it_was();
  void places_in_rounds_come_back();
  void the_warm_up_comes_back_as_long_as_it_lasts();
  void other_texts_are_refused_data();
  void other_texts_are_refused();
  void a_place_that_lacks_a_field_is_refused();
  void every_truncation_is_refused();
};

void TestTrainerState::comes_back_as_it_was() {
  const TrainerState state = state_with({});
  TrainerState read;
  read.step = 3;
  QVERIFY(decode_trainer_state(encode_trainer_state(state), &read).ok());
  QCOMPARE(read.tokenizer_hash, state.tokenizer_hash);
  QCOMPARE(read.memory_limit, std::uint64_t{5});
  QCOMPARE(read.max_micro_batch, std::uint64_t{8});
  QVERIFY(read.places.empty());
  QCOMPARE(read.step, std::uint64_t{3});  // the manifest has a field of its own for it
}

// Of the whole model, as checkpoints have had it since there are rounds, or of each fragment.
void TestTrainerState::places_in_rounds_come_back() {
  const RoundPlace first = place_in(12, 3), none{}, second = place_in(11, 7);
  for (const auto& places : {std::vector<RoundPlace>{}, {first}, {first, second}, {none, second, first}}) {
    const std::string text = encode_trainer_state(state_with(places));
    QCOMPARE(text.find("\"round\":{") != std::string::npos, places.size() == 1);
    TrainerState read = state_with({second});
    QVERIFY(decode_trainer_state(text, &read).ok());
    QVERIFY(read.places == places);
  }
  TrainerState read;
  const std::string most = encode_trainer_state(state_with(std::vector<RoundPlace>(64, first)));
  QVERIFY(decode_trainer_state(most, &read).ok());
  const std::string more = encode_trainer_state(state_with(std::vector<RoundPlace>(65, first)));
  QCOMPARE(decode_trainer_state(more, &read).error().code, ErrorCode::Corrupt);
}

// Checkpoints without the field are of a model that is not in it.
void TestTrainerState::the_warm_up_comes_back_as_long_as_it_lasts() {
  for (const auto& [since, kept] : {std::pair{0u, false}, {1u, true}, {19u, true}, {20u, false}}) {
    TrainerState state = state_with({place_in(12, 3)});
    state.since_arrival = since;
    const std::string text = encode_trainer_state(state);
    QCOMPARE(text.find("since_arrival") != std::string::npos, kept);
    TrainerState read;
    read.since_arrival = 7;
    QVERIFY(decode_trainer_state(text, &read).ok());
    QCOMPARE(read.since_arrival, std::uint64_t{kept ? since : 0u});
  }
}

void TestTrainerState::other_texts_are_refused_data() {
  QTest::addColumn<QString>("text");
  for (const char* const text : {"[]", "{", "{\"tokenizer\":3}", "{\"tokenizer\":\"zz\"}",
                                 "{\"tokenizer\":\"00\",\"memory_limit\":-1,\"max_micro_batch\":\"x\"}"})
    QTest::newRow(text) << QString(text);
  QTest::newRow("nothing") << QString();
  QString whole = QString::fromStdString(encode_trainer_state(state_with({place_in(12, 3)})));
  QTest::newRow("a round that is a number")
      << whole.replace(QRegularExpression("\"round\":\\{.*\\}(?=,)"), "\"round\":3");
  QString parts = QString::fromStdString(encode_trainer_state(state_with({place_in(12, 3), {}})));
  TrainerState young = state_with({});
  young.since_arrival = 3;
  QString early = QString::fromStdString(encode_trainer_state(young));
  QTest::newRow("a warm-up below zero") << early.replace("\"since_arrival\":3", "\"since_arrival\":-3");
  QTest::newRow("fragments that are no list")
      << parts.replace(QRegularExpression("\"fragments\":\\[.*\\]"), "\"fragments\":{}");
}

void TestTrainerState::other_texts_are_refused() {
  QFETCH(QString, text);
  TrainerState read;
  QCOMPARE(decode_trainer_state(text.toStdString(), &read).error().code, ErrorCode::Corrupt);
}

void TestTrainerState::a_place_that_lacks_a_field_is_refused() {
  const QString whole = QString::fromStdString(encode_trainer_state(state_with({place_in(12, 3)})));
  for (const char* field : {"anchor", "steps", "tokens"}) {
    QString text = whole;
    text.replace(QString("\"%1\"").arg(field), "\"other\"");
    QVERIFY(text != whole);
    TrainerState read;
    QCOMPARE(decode_trainer_state(text.toStdString(), &read).error().code, ErrorCode::Corrupt);
  }
}

void TestTrainerState::every_truncation_is_refused() {
  const std::string text = encode_trainer_state(state_with({place_in(12, 3), place_in(11, 7)}));
  for (std::size_t length = 0; length < text.size(); ++length) {
    TrainerState read;
    QVERIFY(!decode_trainer_state(text.substr(0, length), &read).ok());
  }
}

NS_TEST(TestTrainerState)
#include "test_trainer_state.moc"
