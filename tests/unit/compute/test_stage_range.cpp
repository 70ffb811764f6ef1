// The division of a model into contiguous parts.
#include <QtTest>

#include <algorithm>
#include <limits>

#include "core/compute/stage_range.h"
#include "tests/support/test_main.h"

using namespace neuroshard;
using namespace neuroshard::compute;

namespace {

ModelShape shape_of(std::uint32_t layers, std::uint32_t experts, std::uint32_t vocab) {
  ModelShape shape;
  shape.layers = layers;
  shape.hidden = 16;
  shape.head_dim = 8;
  shape.heads = 2;
  shape.kv_heads = 1;
  shape.ffn = 24;
  shape.experts = experts;
  shape.experts_per_token = experts > 1 ? 2 : 1;
  shape.vocab = vocab;
  shape.sequence = 16;
  return shape;
}

// Of all ways to cut layers [first, end) into `parts`: the fewest parameters of the largest part.
std::uint64_t best_cut(const ModelShape& shape, std::uint32_t first, std::size_t parts) {
  if (parts == 1) return values_of(shape, {first, shape.layers - first, first == 0, true}).count;
  std::uint64_t best = std::numeric_limits<std::uint64_t>::max();
  for (std::uint32_t end = first + 1; end + parts - 1 <= shape.layers; ++end) {
    const std::uint64_t own = values_of(shape, {first, end - first, first == 0, false}).count;
    best = std::min(best, std::max(own, best_cut(shape, end, parts - 1)));
  }
  return best;
}

}  // namespace

class TestStageRange : public QObject {
  Q_OBJECT
 private Q_SLOTS:
  void parts_hold_every_slot_once_and_in_order() {
    for (const std::uint32_t experts : {1u, 3u}) {
      const ModelShape shape = shape_of(7, experts, 300);
      for (std::size_t parts = 1; parts <= shape.layers; ++parts) {
        std::vector<SlotId> slots;
        std::uint64_t end = 0;
        for (const StageRange& range : cut_model(shape, parts)) {
          QVERIFY(range.layer_count >= 1);
          const std::vector<SlotId> own = slots_of(shape, range);
          slots.insert(slots.end(), own.begin(), own.end());
          for (const SlotId slot : model_slots(shape))
            QCOMPARE(holds(range, slot), std::find(own.begin(), own.end(), slot) != own.end());
          const ValueRange values = values_of(shape, range);
          QCOMPARE(values.first, end);
          end = values.first + values.count;
        }
        QVERIFY(slots == model_slots(shape));
        QCOMPARE(end, model_parameter_count(shape));
      }
    }
  }

  void the_largest_part_is_as_small_as_any_cut_allows() {
    for (const std::uint32_t vocab : {270u, 2'000u, 20'000u})
      for (std::uint32_t layers = 1; layers <= 9; ++layers) {
        const ModelShape shape = shape_of(layers, 2, vocab);
        for (std::size_t parts = 1; parts <= layers; ++parts) {
          std::uint64_t largest = 0;
          const std::vector<StageRange> cut = cut_model(shape, parts);
          QCOMPARE(cut.size(), parts);
          for (const StageRange& range : cut) largest = std::max(largest, values_of(shape, range).count);
          QCOMPARE(largest, best_cut(shape, 0, parts));
        }
      }
  }

  // Several nodes must agree on it: another cut is another network.
  void the_cut_of_known_models_stays() {
    const std::vector<StageRange> even = cut_model(shape_of(6, 1, 30), 3);
    QVERIFY(
        (even == std::vector<StageRange>{{0, 2, true, false}, {2, 2, false, false}, {4, 2, false, true}}));
    // A large vocabulary makes the ends heavy, so the middle takes the layers.
    const std::vector<StageRange> heavy = cut_model(shape_of(6, 1, 300), 3);
    QVERIFY(
        (heavy == std::vector<StageRange>{{0, 1, true, false}, {1, 4, false, false}, {5, 1, false, true}}));
  }

  void a_range_has_a_name_for_a_person() {
    QCOMPARE(to_text(StageRange{0, 4, true, false}), std::string("embedding, layers 0 to 3"));
    QCOMPARE(to_text(StageRange{4, 1, false, false}), std::string("layer 4"));
    QCOMPARE(to_text(StageRange{5, 2, false, true}), std::string("layers 5 to 6, head"));
  }
};

NS_TEST(TestStageRange)
#include "test_stage_range.moc"
