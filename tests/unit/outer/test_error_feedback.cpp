// Error feedback: nothing of a delta is lost, only late; and a contribution that did not count is put back.
#include <QTest>
#include <vector>

#include "core/outer/error_feedback.h"
#include "tests/support/test_main.h"
#include "tests/unit/outer/codec_oracle.h"

using namespace neuroshard;
using namespace neuroshard::outer;

namespace {

std::vector<float> decoded_of(const Bytes& payload, std::size_t count) {
  std::vector<float> values(count);
  return decode(payload, values).ok() ? values : std::vector<float>{};
}

// One unit in the last place of the larger of what is added.
float step_at(float a, float b) {
  const float largest = std::max(std::fabs(a), std::fabs(b));
  return std::nextafter(largest, INFINITY) - largest;
}

std::vector<float> copy(Span<const float> values) {
  return {values.begin(), values.end()};
}

// An ErrorFeedback whose payloads and buffer are in memory.
class Feedback {
 public:
  Feedback(std::size_t count, float beta) : count_(count), feedback_(count, beta, spool_) {}
  Expected<Bytes> encode(const CodecOptions& options, const std::vector<float>& delta) {
    options_ = options;
    NS_ASSIGN_OR_RETURN(const ByteSourcePtr payload, feedback_.encode(options, values_of(delta)));
    return read_all(*payload);
  }
  Expected<void> roll_back(ByteSpan payload) {
    return feedback_.roll_back(options_, in_memory({payload.begin(), payload.end()}));
  }
  Expected<void> restore(const std::vector<float>& buffer) {
    const ByteSpan bytes = as_bytes(Span<const float>(buffer));
    return feedback_.restore(in_memory({bytes.begin(), bytes.end()}));
  }
  std::vector<float> buffer() const {
    if (!feedback_.buffer()) return std::vector<float>(count_, 0.0f);
    return read_all(values_of(feedback_.buffer(), 0, count_)).value();
  }

 private:
  std::size_t count_;
  MemorySpool spool_;
  ErrorFeedback feedback_;
  CodecOptions options_;
};

}  // namespace

class TestErrorFeedback : public QObject {
  Q_OBJECT

 private Q_SLOTS:
  void sent_and_kept_are_what_came() {
    for (const Codec codec : {Codec::TopK, Codec::Int4, Codec::Int8, Codec::Fp16, Codec::SeedTopK}) {
      Feedback feedback(9001, 0.95f);
      for (std::uint64_t round = 0; round < 5; ++round) {
        const std::vector<float> before = copy(feedback.buffer());
        const std::vector<float> delta = oracle::sample("heavy tails", 9001, round);
        const auto payload = feedback.encode({codec, 64}, delta);
        QVERIFY(payload.ok());
        const std::vector<float> sent = decoded_of(*payload, 9001);
        QCOMPARE(sent.size(), 9001u);
        const std::vector<float> kept = feedback.buffer();
        for (std::size_t i = 0; i < sent.size(); ++i) {
          const float wanted = 0.95f * before[i] + delta[i];
          QVERIFY(std::fabs(sent[i] + kept[i] - wanted) <= step_at(sent[i], wanted));
        }
      }
    }
  }

  // The payload of the first round is that of the delta; what it left out is sent later.
  void what_is_left_out_is_sent_later() {
    std::vector<float> delta(codec_chunk, 0.0f);
    for (std::size_t i = 0; i < 8; ++i) delta[i * 10] = 1.0f;
    Feedback feedback(codec_chunk, 1.0f);
    const Bytes first = *feedback.encode({Codec::TopK, 4}, delta);
    QCOMPARE(first, *encode({Codec::TopK, 4}, delta));
    const std::vector<float> nothing(codec_chunk, 0.0f);
    const std::vector<float> second = decoded_of(*feedback.encode({Codec::TopK, 4}, nothing), codec_chunk);
    for (std::size_t i = 0; i < 8; ++i) QCOMPARE(second[i * 10], i < 4 ? 0.0f : 1.0f);
    QCOMPARE(copy(feedback.buffer()), nothing);
  }

  void beta_forgets() {
    Feedback feedback(4, 0.5f);
    const std::vector<float> values = {8, 0, 0, 0};
    QVERIFY(feedback.restore(values).ok());
    const std::vector<float> nothing(4, 0.0f);
    QCOMPARE(decoded_of(*feedback.encode({Codec::TopK, 4096}, nothing), 4)[0], 4.0f);
    Feedback off(4, 0.0f);
    QVERIFY(off.restore(values).ok());
    QCOMPARE(decoded_of(*off.encode({Codec::TopK, 4096}, nothing), 4)[0], 0.0f);
  }

  // A delta that was left out of the set: the next round begins as if nothing had been sent.
  void a_contribution_that_did_not_count_comes_back() {
    for (const Codec codec : {Codec::TopK, Codec::Int4}) {
      Feedback feedback(9001, 0.95f);
      QVERIFY(feedback.encode({codec, 64}, oracle::sample("normal", 9001, 1)).ok());
      const std::vector<float> before = copy(feedback.buffer());
      const std::vector<float> delta = oracle::sample("normal", 9001, 2);
      const Bytes payload = *feedback.encode({codec, 64}, delta);
      const std::vector<float> sent = decoded_of(payload, 9001);
      QVERIFY(feedback.roll_back(payload).ok());
      const std::vector<float> after = feedback.buffer();
      for (std::size_t i = 0; i < before.size(); ++i) {
        const float wanted = 0.95f * before[i] + delta[i];
        QVERIFY(std::fabs(after[i] - wanted) <= step_at(sent[i], wanted));
      }
    }
  }

  void errors_leave_the_buffer_alone() {
    Feedback feedback(300, 0.9f);
    const Bytes payload = *feedback.encode({Codec::TopK, 64}, oracle::sample("normal", 300, 1));
    const std::vector<float> before = copy(feedback.buffer());
    std::vector<float> bad(300, 0.0f);
    bad[299] = NAN;
    QVERIFY(!feedback.encode({Codec::TopK, 64}, bad).ok());
    QVERIFY(!feedback.encode({Codec::TopK, 64}, std::vector<float>(299, 0.0f)).ok());
    QVERIFY(!feedback.restore(bad).ok());
    QVERIFY(!feedback.restore(std::vector<float>(301, 0.0f)).ok());
    for (std::size_t length = 0; length < payload.size(); ++length)
      QVERIFY(!feedback.roll_back(ByteSpan(payload.data(), length)).ok());
    Bytes flipped = payload;
    flipped.back() ^= 1;
    QVERIFY(!feedback.roll_back(flipped).ok());
    QCOMPARE(copy(feedback.buffer()), before);
    QVERIFY(feedback.restore(std::vector<float>(300, 1.5f)).ok());
    QCOMPARE(feedback.buffer()[299], 1.5f);
  }

  // Why it is there: over many rounds of one direction, the sum of what was sent follows the sum of what
  // came.
  void without_it_small_values_never_arrive() {
    const std::vector<float> delta = oracle::sample("normal", codec_chunk, 21);
    const auto lag_of = [&](float beta) {
      Feedback feedback(codec_chunk, beta);
      std::vector<double> arrived(codec_chunk, 0.0);
      const int rounds = 300;
      for (int round = 0; round < rounds; ++round) {
        const std::vector<float> sent = decoded_of(*feedback.encode({Codec::TopK, 64}, delta), codec_chunk);
        for (std::size_t i = 0; i < sent.size(); ++i) arrived[i] += sent[i];
      }
      double error = 0, norm = 0;
      for (std::size_t i = 0; i < arrived.size(); ++i) {
        const double wanted = static_cast<double>(rounds) * delta[i];
        error += (arrived[i] - wanted) * (arrived[i] - wanted);
        norm += wanted * wanted;
      }
      return std::sqrt(error / norm);
    };
    QVERIFY(lag_of(1.0f) < 0.3);
    QVERIFY(lag_of(0.0f) > 0.9);
  }
};

NS_TEST(TestErrorFeedback)
#include "test_error_feedback.moc"
