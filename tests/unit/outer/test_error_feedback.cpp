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

std::vector<float> decoded_of(const ByteSourcePtr& payload, std::size_t count) {
  return decoded_of(*read_all(*payload), count);
}

// The buffer; empty when it has another size.
std::vector<float> copy(const ErrorFeedback& feedback, std::size_t count) {
  std::vector<float> values(count, 0.0f);
  if (feedback.buffer() == nullptr) return values;
  if (feedback.buffer()->size() != 4 * count) return {};
  return values_of(feedback.buffer(), 0, count).read(0, values).ok() ? values : std::vector<float>{};
}

ByteSourcePtr bytes_of(Span<const float> values) {
  const ByteSpan bytes = as_bytes(values);
  return in_memory(Bytes(bytes.begin(), bytes.end()));
}

ValueSource source_of(const std::vector<float>& values) {
  return values_of(Span<const float>(values));
}

// A spool whose items take only so many writes in all.
class FullSpool final : public Spool {
 public:
  explicit FullSpool(std::size_t writes) : left_(writes) {}
  Expected<std::unique_ptr<SpoolItem>> create(std::uint64_t bytes) override {
    NS_ASSIGN_OR_RETURN(auto item, memory_.create(bytes));
    return std::unique_ptr<SpoolItem>(std::make_unique<Item>(*this, std::move(item)));
  }
  std::size_t left() const { return left_; }

 private:
  class Item final : public SpoolItem {
   public:
    Item(FullSpool& spool, std::unique_ptr<SpoolItem> item) : spool_(spool), item_(std::move(item)) {}
    Expected<void> write_at(std::uint64_t offset, ByteSpan bytes) override {
      if (spool_.left_ == 0) return make_error(ErrorCode::Exhausted, "the disk is full");
      --spool_.left_;
      return item_->write_at(offset, bytes);
    }
    Expected<ByteSourcePtr> finish(std::uint64_t bytes) override { return item_->finish(bytes); }

   private:
    FullSpool& spool_;
    std::unique_ptr<SpoolItem> item_;
  };

  MemorySpool memory_;
  std::size_t left_;
};

}  // namespace

class TestErrorFeedback : public QObject {
  Q_OBJECT

 private Q_SLOTS:
  void sent_and_kept_are_what_came() {
    for (const Codec codec : {Codec::TopK, Codec::Int4, Codec::Int8, Codec::Fp16, Codec::SeedTopK}) {
      ErrorFeedback feedback(9001, 0.95f, spool_);
      for (std::uint64_t round = 0; round < 5; ++round) {
        const std::vector<float> before = copy(feedback, 9001);
        const std::vector<float> delta = oracle::sample("heavy tails", 9001, round);
        const auto payload = feedback.encode({codec, 64}, source_of(delta));
        QVERIFY(payload.ok());
        const std::vector<float> sent = decoded_of(*payload, 9001), after = copy(feedback, 9001);
        QCOMPARE(sent.size(), 9001u);
        QCOMPARE(after.size(), 9001u);
        for (std::size_t i = 0; i < sent.size(); ++i) {
          const float wanted = 0.95f * before[i] + delta[i];
          const float kept = after[i];
          QVERIFY(std::fabs(sent[i] + kept - wanted) <= step_at(sent[i], wanted));
        }
      }
    }
  }

  // The payload of the first round is that of the delta; what it left out is sent later.
  void what_is_left_out_is_sent_later() {
    std::vector<float> delta(codec_chunk, 0.0f);
    for (std::size_t i = 0; i < 8; ++i) delta[i * 10] = 1.0f;
    ErrorFeedback feedback(codec_chunk, 1.0f, spool_);
    const Bytes first = *read_all(**feedback.encode({Codec::TopK, 4}, source_of(delta)));
    QCOMPARE(first, *encode({Codec::TopK, 4}, delta));
    const std::vector<float> nothing(codec_chunk, 0.0f);
    const std::vector<float> second =
        decoded_of(*feedback.encode({Codec::TopK, 4}, source_of(nothing)), codec_chunk);
    for (std::size_t i = 0; i < 8; ++i) QCOMPARE(second[i * 10], i < 4 ? 0.0f : 1.0f);
    QCOMPARE(copy(feedback, codec_chunk), nothing);
  }

  void beta_forgets() {
    ErrorFeedback feedback(4, 0.5f, spool_);
    const float values[4] = {8, 0, 0, 0};
    QVERIFY(feedback.restore(bytes_of(values)).ok());
    const std::vector<float> nothing(4, 0.0f);
    QCOMPARE(decoded_of(*feedback.encode({Codec::TopK, 4096}, source_of(nothing)), 4)[0], 4.0f);
    ErrorFeedback off(4, 0.0f, spool_);
    QVERIFY(off.restore(bytes_of(values)).ok());
    QCOMPARE(decoded_of(*off.encode({Codec::TopK, 4096}, source_of(nothing)), 4)[0], 0.0f);
  }

  // A delta that was left out of the set: the next round begins as if nothing had been sent.
  void a_contribution_that_did_not_count_comes_back() {
    for (const Codec codec : {Codec::TopK, Codec::Int4}) {
      ErrorFeedback feedback(9001, 0.95f, spool_);
      QVERIFY(feedback.encode({codec, 64}, source_of(oracle::sample("normal", 9001, 1))).ok());
      const std::vector<float> before = copy(feedback, 9001);
      const std::vector<float> delta = oracle::sample("normal", 9001, 2);
      const ByteSourcePtr payload = *feedback.encode({codec, 64}, source_of(delta));
      const std::vector<float> sent = decoded_of(payload, 9001);
      QVERIFY(feedback.roll_back({codec, 64}, payload).ok());
      const std::vector<float> after = copy(feedback, 9001);
      QCOMPARE(after.size(), 9001u);
      for (std::size_t i = 0; i < before.size(); ++i) {
        const float wanted = 0.95f * before[i] + delta[i];
        QVERIFY(std::fabs(after[i] - wanted) <= step_at(sent[i], wanted));
      }
    }
  }

  void errors_leave_the_buffer_alone() {
    ErrorFeedback feedback(300, 0.9f, spool_);
    const std::vector<float> delta = oracle::sample("normal", 300, 1);
    const CodecOptions options{Codec::TopK, 64};
    const Bytes payload = *read_all(**feedback.encode(options, source_of(delta)));
    const std::vector<float> before = copy(feedback, 300);
    std::vector<float> bad(300, 0.0f);
    bad[299] = NAN;
    QVERIFY(!feedback.encode(options, source_of(bad)).ok());
    QVERIFY(!feedback.encode(options, source_of(std::vector<float>(299, 0.0f))).ok());
    QVERIFY(!feedback.encode({Codec::TopK, 0}, source_of(delta)).ok());
    QVERIFY(!feedback.restore(bytes_of(bad)).ok());
    QVERIFY(!feedback.restore(bytes_of(std::vector<float>(301, 0.0f))).ok());
    for (std::size_t length = 0; length < payload.size(); ++length)
      QVERIFY(!feedback.roll_back(options, part_of(in_memory(payload), 0, length)).ok());
    Bytes flipped = payload;
    flipped.back() ^= 1;
    QVERIFY(!feedback.roll_back(options, in_memory(flipped)).ok());
    QCOMPARE(copy(feedback, 300), before);
    QVERIFY(feedback.restore(bytes_of(std::vector<float>(300, 1.5f))).ok());
    QCOMPARE(copy(feedback, 300)[299], 1.5f);
    QVERIFY(feedback.restore(nullptr).ok());
    QCOMPARE(copy(feedback, 300), std::vector<float>(300, 0.0f));
  }

  // Parts of 64 KiB and a last short one; several chunks of the codec in each.
  void streams_as_it_would_in_memory() {
    const std::size_t count = 5 * 16384 + 777;
    ErrorFeedback feedback(count, 0.9f, spool_);
    std::vector<float> kept(count, 0.0f);
    for (std::uint64_t round = 0; round < 3; ++round) {
      const std::vector<float> delta = oracle::sample("heavy tails", count, round);
      for (std::size_t i = 0; i < count; ++i) kept[i] = 0.9f * kept[i] + delta[i];
      const Bytes expected = *encode({Codec::TopK, 64}, kept);
      const auto payload = feedback.encode({Codec::TopK, 64}, source_of(delta));
      QVERIFY(payload.ok() && *read_all(**payload) == expected);
      const std::vector<float> sent = decoded_of(expected, count);
      for (std::size_t i = 0; i < count; ++i) kept[i] -= sent[i];
      QCOMPARE(copy(feedback, count), kept);
    }
  }

  void a_full_disk_leaves_the_buffer_alone() {
    const std::size_t count = 3 * 16384;
    const std::vector<float> delta = oracle::sample("normal", count, 1);
    FullSpool enough(1000);
    ErrorFeedback whole(count, 0.9f, enough);
    QVERIFY(whole.encode({Codec::Int8}, source_of(delta)).ok());
    const std::size_t needed = 1000 - enough.left();
    for (std::size_t writes = 0; writes < needed; ++writes) {
      FullSpool spool(writes);
      ErrorFeedback feedback(count, 0.9f, spool);
      const ByteSourcePtr before = bytes_of(std::vector<float>(count, 0.25f));
      QVERIFY(feedback.restore(before).ok());
      const auto payload = feedback.encode({Codec::Int8}, source_of(delta));
      QVERIFY(!payload.ok());
      QCOMPARE(payload.error().code, ErrorCode::Exhausted);
      QCOMPARE(feedback.buffer(), before);
    }
  }

  // Why it is there: over many rounds of one direction, the sum of what was sent follows the sum of what
  // came.
  void without_it_small_values_never_arrive() {
    const std::vector<float> delta = oracle::sample("normal", codec_chunk, 21);
    const auto lag_of = [&](float beta) {
      ErrorFeedback feedback(codec_chunk, beta, spool_);
      std::vector<double> arrived(codec_chunk, 0.0);
      const int rounds = 300;
      for (int round = 0; round < rounds; ++round) {
        const std::vector<float> sent =
            decoded_of(*feedback.encode({Codec::TopK, 64}, source_of(delta)), codec_chunk);
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

 private:
  MemorySpool spool_;
};

NS_TEST(TestErrorFeedback)
#include "test_error_feedback.moc"
