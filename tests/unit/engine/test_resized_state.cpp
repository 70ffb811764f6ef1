// The outer state of a model that changes its size: slot by slot as growth says, the same from a part as from the whole, and back
// again.
#include <QtTest>
#include <algorithm>
#include <cmath>

#include "core/base/rng.h"
#include "core/compute/growth.h"
#include "core/engine/resized_state.h"
#include "tests/support/test_main.h"

using namespace neuroshard;           // NOLINT
using namespace neuroshard::compute;  // NOLINT
using engine::resized_state;

namespace {

const Hash256 seed{7};

ModelShape shape_of(std::uint32_t layers, std::uint32_t hidden, std::uint32_t experts = 3) {
  ModelShape shape;
  shape.layers = layers;
  shape.hidden = hidden;
  shape.head_dim = 8;
  shape.heads = hidden / 8;
  shape.kv_heads = hidden / 16;
  shape.ffn = hidden + hidden / 2;
  shape.experts = experts;
  shape.experts_per_token = experts > 1 ? 2 : 1;
  shape.vocab = 11;
  shape.sequence = 8;
  return shape;
}

std::vector<float> random_values(std::uint64_t count, std::uint64_t seed) {
  Rng rng(seed);
  std::vector<float> values(count);
  for (float& value : values) value = rng.normal();
  return values;
}

rounds::Anchor random_state(const ModelShape& shape, const StageRange& range) {
  const std::uint64_t count = compute::values_of(shape, range).count;
  return rounds::state_in_memory(random_values(count, 1), random_values(count, 2));
}

Expected<rounds::Anchor> resized(const ModelShape& from, const StageRange& from_range, const ModelShape& to,
                                 const StageRange& to_range, const rounds::Anchor& state) {
  MemorySpool spool;
  return resized_state(from, from_range, to, to_range, seed, *state, spool);
}
rounds::Anchor resized(const ModelShape& from, const ModelShape& to, const rounds::Anchor& state) {
  return resized(from, whole_range(from), to, whole_range(to), state).value();
}

std::vector<float> all_of(const outer::ValueSource& values) {
  return outer::read_all(values).value();
}

// The range's values of the state of the whole model.
rounds::Anchor part_of_state(const ModelShape& shape, const StageRange& range, const rounds::Anchor& whole) {
  const ValueRange values = compute::values_of(shape, range);
  std::vector<float> weights(values.count), momentum(values.count);
  if (!whole->weights().read(values.first, weights).ok() ||
      !whole->momentum().read(values.first, momentum).ok())
    return nullptr;
  return rounds::state_in_memory(weights, momentum);
}

bool same(const rounds::Anchor& a, const rounds::Anchor& b) {
  return a->counts.weights == b->counts.weights && a->counts.momentum == b->counts.momentum &&
         a->counts.bias == b->counts.bias && read_all(*a->bytes).value() == read_all(*b->bytes).value();
}

// Layers [first, end) with what belongs to the ends of the model.
StageRange part(const ModelShape& shape, std::uint32_t first, std::uint32_t end) {
  return {first, end - first, first == 0, end == shape.layers};
}

// Refuses after so many writes, and notes the largest.
class NarrowSpool final : public Spool {
 public:
  explicit NarrowSpool(std::size_t writes = 1'000'000) : left_(writes) {}
  Expected<std::unique_ptr<SpoolItem>> create(std::uint64_t bytes) override {
    NS_ASSIGN_OR_RETURN(auto item, memory_.create(bytes));
    return std::unique_ptr<SpoolItem>(std::make_unique<Item>(*this, std::move(item)));
  }
  std::size_t largest = 0;

 private:
  class Item final : public SpoolItem {
   public:
    Item(NarrowSpool& spool, std::unique_ptr<SpoolItem> item) : spool_(spool), item_(std::move(item)) {}
    Expected<void> write_at(std::uint64_t offset, ByteSpan bytes) override {
      if (spool_.left_ == 0) return make_error(ErrorCode::Exhausted, "the disk is full");
      --spool_.left_;
      spool_.largest = std::max(spool_.largest, bytes.size());
      return item_->write_at(offset, bytes);
    }
    Expected<ByteSourcePtr> finish(std::uint64_t bytes) override { return item_->finish(bytes); }

   private:
    NarrowSpool& spool_;
    std::unique_ptr<SpoolItem> item_;
  };

  MemorySpool memory_;
  std::size_t left_;
};

// Notes the largest read.
class WatchedBytes final : public ByteSource {
 public:
  WatchedBytes(ByteSourcePtr bytes, std::size_t& largest) : bytes_(std::move(bytes)), largest_(largest) {}
  std::uint64_t size() const override { return bytes_->size(); }
  Expected<void> read_at(std::uint64_t offset, MutableByteSpan target) const override {
    largest_ = std::max(largest_, target.size());
    return bytes_->read_at(offset, target);
  }

 private:
  ByteSourcePtr bytes_;
  std::size_t& largest_;
};

std::size_t largest_slot_bytes(const ModelShape& shape) {
  std::uint64_t most = 0;
  for (const SlotId slot : model_slots(shape)) most = std::max(most, slot_parameter_count(shape, slot));
  return static_cast<std::size_t>(most) * sizeof(float);
}

// "" where the result is no error of that kind.
std::string refusal(const Expected<rounds::Anchor>& result, ErrorCode code) {
  return result.ok() || result.error().code != code ? std::string() : result.error().message;
}

bool has(const std::string& text, const char* part) {
  return text.find(part) != std::string::npos;
}

void add_shapes() {
  QTest::addColumn<unsigned>("experts");
  QTest::addColumn<unsigned>("layers");
  QTest::addColumn<unsigned>("hidden");
  for (const unsigned experts : {1u, 3u}) {
    QTest::addRow("deeper, %u experts", experts) << experts << 7u << 16u;
    QTest::addRow("wider, %u experts", experts) << experts << 4u << 48u;
    QTest::addRow("both, %u experts", experts) << experts << 10u << 32u;
  }
}

}  // namespace

class TestResizedState : public QObject {
  Q_OBJECT
 private Q_SLOTS:
  void slots_are_those_of_growth_data() { add_shapes(); }
  void slots_are_those_of_growth() {
    QFETCH(const unsigned, experts);
    QFETCH(const unsigned, layers);
    QFETCH(const unsigned, hidden);
    const ModelShape small = shape_of(4, 16, experts), large = shape_of(layers, hidden, experts);
    for (const bool grows : {true, false}) {
      const ModelShape &from = grows ? small : large, &to = grows ? large : small;
      const rounds::Anchor before = random_state(from, whole_range(from)), after = resized(from, to, before);
      QCOMPARE(after->counts.weights, model_parameter_count(to));
      QCOMPARE(after->counts.momentum, model_parameter_count(to));
      QCOMPARE(after->counts.bias, std::uint64_t{0});
      const std::vector<float> weights = all_of(before->weights()), momentum = all_of(before->momentum());
      std::vector<float> expected_weights, expected_momentum;
      for (const SlotId slot : model_slots(to)) {
        const auto source = grows ? grown_from(small, large, slot) : shrunk_from(small, large, slot);
        std::uint64_t first = 0, count = 0;
        if (source) {
          for (const SlotId other : model_slots(from)) {
            if (other == *source) break;
            first += slot_parameter_count(from, other);
          }
          count = slot_parameter_count(from, *source);
        }
        std::vector<float> values(slot_parameter_count(to, slot));
        const auto append = [&values](std::vector<float>& all) {
          all.insert(all.end(), values.begin(), values.end());
        };
        const Span<const float> old_weights(weights.data() + first, count);
        const Span<const float> old_momentum(momentum.data() + first, count);
        grows ? grow_slot(small, large, slot, old_weights, seed, values)
              : shrink_slot(small, large, slot, old_weights, values);
        append(expected_weights);
        grows ? grow_momentum(small, large, slot, old_momentum, values)
              : shrink_slot(small, large, slot, old_momentum, values);
        append(expected_momentum);
      }
      QVERIFY(same(after, rounds::state_in_memory(expected_weights, expected_momentum)));
    }
  }

  // A node computes the part that it holds, from what it held.
  void a_part_is_that_of_the_whole_data() { add_shapes(); }
  void a_part_is_that_of_the_whole() {
    QFETCH(const unsigned, experts);
    QFETCH(const unsigned, layers);
    QFETCH(const unsigned, hidden);
    const ModelShape small = shape_of(4, 16, experts), large = shape_of(layers, hidden, experts);
    const rounds::Anchor state = random_state(small, whole_range(small)),
                         grown = resized(small, large, state);
    const rounds::Anchor wide = random_state(large, whole_range(large)), shrunk = resized(large, small, wide);
    for (std::uint32_t cut = 1; cut < small.layers; ++cut) {
      const std::uint32_t large_cut = cut * large.layers / small.layers;
      const StageRange of_small[] = {part(small, 0, cut), part(small, cut, small.layers)};
      const StageRange of_large[] = {part(large, 0, large_cut), part(large, large_cut, large.layers)};
      for (int i = 0; i < 2; ++i) {
        const auto up =
            resized(small, of_small[i], large, of_large[i], part_of_state(small, of_small[i], state));
        QVERIFY2(up.ok(), up.ok() ? "" : up.error().message.c_str());
        QVERIFY(same(*up, part_of_state(large, of_large[i], grown)));
        const auto down =
            resized(large, of_large[i], small, of_small[i], part_of_state(large, of_large[i], wide));
        QVERIFY2(down.ok(), down.ok() ? "" : down.error().message.c_str());
        QVERIFY(same(*down, part_of_state(small, of_small[i], shrunk)));
      }
    }
  }

  void shrinking_undoes_growing_data() { add_shapes(); }
  void shrinking_undoes_growing() {
    QFETCH(const unsigned, experts);
    QFETCH(const unsigned, layers);
    QFETCH(const unsigned, hidden);
    const ModelShape small = shape_of(4, 16, experts), large = shape_of(layers, hidden, experts);
    const rounds::Anchor before = random_state(small, whole_range(small));
    const rounds::Anchor after = resized(large, small, resized(small, large, before));
    if (hidden == small.hidden) {
      QVERIFY(same(before, after));
      return;
    }
    for (const bool weights : {true, false}) {
      const std::vector<float> was = all_of(weights ? before->weights() : before->momentum());
      const std::vector<float> is = all_of(weights ? after->weights() : after->momentum());
      QCOMPARE(is.size(), was.size());
      std::size_t at = 0;
      for (const SlotId slot : model_slots(small)) {
        for (const ParameterInfo& parameter : slot_parameters(small, slot)) {
          for (std::uint64_t i = 0; i < parameter.count; ++i, ++at) {
            const bool gain = parameter.init == Init::One;
            QVERIFY(is[at] == was[at] || (gain && std::nextafter(was[at], is[at]) == is[at]));
          }
        }
      }
    }
  }

  void the_same_state_gives_the_same_bits() {
    const ModelShape small = shape_of(2, 16), large = shape_of(3, 32);
    const rounds::Anchor state = random_state(small, whole_range(small));
    const rounds::Anchor once = resized(small, large, state);
    QVERIFY(same(once, resized(small, large, state)));
    QVERIFY(same(state, resized(small, small, state)));
    // Another seed: other new weights, the same momentum.
    MemorySpool spool;
    const auto other =
        resized_state(small, whole_range(small), large, whole_range(large), Hash256{8}, *state, spool);
    QVERIFY(other.ok() && all_of((*other)->weights()) != all_of(once->weights()));
    QVERIFY(all_of((*other)->momentum()) == all_of(once->momentum()));
  }

  void one_slot_is_read_and_written_at_a_time() {
    const ModelShape small = shape_of(3, 16), large = shape_of(5, 32);
    for (const bool grows : {true, false}) {
      const ModelShape &from = grows ? small : large, &to = grows ? large : small;
      rounds::OuterState state = *random_state(from, whole_range(from));
      std::size_t largest_read = 0;
      state.bytes = std::make_shared<const WatchedBytes>(state.bytes, largest_read);
      NarrowSpool spool;
      QVERIFY(resized_state(from, whole_range(from), to, whole_range(to), seed, state, spool).ok());
      QCOMPARE(largest_read, largest_slot_bytes(from));
      QCOMPARE(spool.largest, largest_slot_bytes(to));
    }
  }

  void what_cant_be_resized_is_named() {
    const auto invalid = ErrorCode::InvalidArgument;
    const ModelShape small = shape_of(2, 16), large = shape_of(4, 32);
    const StageRange whole = whole_range(small), whole_large = whole_range(large);
    const rounds::Anchor state = random_state(small, whole);
    // Deeper and narrower: neither continues the other.
    const ModelShape deep = shape_of(4, 16), wide = shape_of(2, 32);
    const std::string neither = refusal(
        resized(deep, whole_range(deep), wide, whole_range(wide), random_state(deep, whole_range(deep))),
        invalid);
    QVERIFY2(has(neither, "layers of 4 can't become 2") && has(neither, "width of 32 can't become 16"),
             neither.c_str());
    ModelShape words = large;
    words.vocab = 12;
    QVERIFY(has(refusal(resized(small, whole, words, whole_range(words), state), invalid), "vocabulary"));
    // A state of something else.
    const StageRange first = part(small, 0, 1), first_large = part(large, 0, 2);
    QVERIFY(has(refusal(resized(small, first, large, first_large, state), invalid), "its range has"));
    rounds::OuterState no_momentum = *state;
    no_momentum.counts.momentum = 0;
    MemorySpool spool;
    QVERIFY(has(refusal(resized_state(small, whole, large, whole_large, seed, no_momentum, spool), invalid),
                "0 values of momentum"));
    // A slot that the range does not have: of a layer, of an end, and of an earlier layer.
    const rounds::Anchor front = part_of_state(small, first, state);
    QVERIFY(has(refusal(resized(small, first, large, part(large, 0, 3), front), invalid),
                "embedding, layer 0 lacks layer 1, which layer 2 of the new shape continues"));
    QVERIFY(has(refusal(resized(small, first, large, {0, 2, true, true}, front), invalid), "lacks head"));
    const StageRange last = part(small, 1, 2);
    QVERIFY(has(
        refusal(resized(small, last, large, part(large, 0, 4), part_of_state(small, last, state)), invalid),
        "lacks embed"));
    QVERIFY(has(refusal(resized(large, {0, 2, true, false}, small, {0, 2, true, false},
                                random_state(large, {0, 2, true, false})),
                        invalid),
                "lacks layer 2, which layer 1"));
    // New layers need nothing.
    QVERIFY(resized(small, first, large, {1, 1, false, false}, front).ok());
    // Balancing biases.
    const std::vector<float> none(model_parameter_count(small));
    const rounds::Anchor biased = rounds::state_in_memory(none, none, std::vector<float>(6));
    QVERIFY(has(refusal(resized(small, whole, large, whole_large, biased), ErrorCode::Unsupported), "bias"));
  }

  void errors_of_bytes_and_spool_are_passed_on() {
    const ModelShape small = shape_of(2, 16), large = shape_of(4, 32);
    const rounds::Anchor state = random_state(small, whole_range(small));
    const std::size_t slots = model_slots(large).size();
    for (const std::size_t writes : {std::size_t{0}, slots - 1, slots, 2 * slots - 1, 2 * slots}) {
      NarrowSpool spool(writes);
      const auto result =
          resized_state(small, whole_range(small), large, whole_range(large), seed, *state, spool);
      QCOMPARE(result.ok(), writes == 2 * slots);
      if (!result.ok()) QVERIFY(result.error().code == ErrorCode::Exhausted);
    }
    rounds::OuterState torn = *state;
    torn.bytes = part_of(state->bytes, 0, state->bytes->size() - sizeof(float));
    MemorySpool spool;
    const auto result =
        resized_state(small, whole_range(small), large, whole_range(large), seed, torn, spool);
    QVERIFY(!result.ok() && result.error().code == ErrorCode::Corrupt);
  }
};

NS_TEST(TestResizedState)
#include "test_resized_state.moc"
