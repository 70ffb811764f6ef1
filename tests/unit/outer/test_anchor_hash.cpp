// The anchor hash: its exact form, by a second construction of the tree, and that everything in it counts.
#include <QTest>
#include <set>
#include <vector>

#include "core/crypto/hash.h"
#include "core/outer/anchor_hash.h"
#include "tests/support/test_main.h"

using namespace neuroshard;
using namespace neuroshard::outer;

namespace {

std::vector<float> ramp(std::size_t count, float from) {
  std::vector<float> values(count);
  for (std::size_t i = 0; i < count; ++i) values[i] = from + 0.5f * static_cast<float>(i);
  return values;
}

Hash256 node(const Hash256& left, const Hash256& right) {
  crypto::Sha256 hash;
  const std::uint8_t prefix = 1;
  return hash.update({&prefix, 1}).update(left).update(right).finish();
}

Hash256 leaf(ByteSpan bytes) {
  crypto::Sha256 hash;
  const std::uint8_t prefix = 0;
  return hash.update({&prefix, 1}).update(bytes).finish();
}

AnchorIdentity identity() {
  AnchorIdentity id;
  id.network.fill(7);
  id.architecture_version = 3;
  id.slot = 5;
  id.round = 41;
  id.tokenizer.fill(9);
  return id;
}

struct State {
  Span<const float> weights, momentum, bias;

  AnchorCounts counts() const { return {weights.size(), momentum.size(), bias.size()}; }
  ByteSourcePtr bytes() const {
    Bytes all;
    for (const ByteSpan part : {as_bytes(weights), as_bytes(momentum), as_bytes(bias)})
      all.insert(all.end(), part.begin(), part.end());
    return in_memory(std::move(all));
  }
};

Hash256 hash_of(const AnchorIdentity& id, const State& state) {
  return *anchor_hash(id, state.counts(), *state.bytes());
}

class Unreadable final : public ByteSource {
 public:
  std::uint64_t size() const override { return 4 * 70000; }
  Expected<void> read_at(std::uint64_t offset, MutableByteSpan target) const override {
    if (offset > 0) return make_error(ErrorCode::Io, "the disk is gone");
    std::fill(target.begin(), target.end(), std::uint8_t{0});
    return {};
  }
};

}  // namespace

class TestAnchorHash : public QObject {
  Q_OBJECT

 private Q_SLOTS:
  // 70,000 weights are two chunks, momentum and bias one each: five leaves with the header.
  void the_tree_by_hand() {
    const std::vector<float> weights = ramp(70000, 1), momentum = ramp(10, -3), bias = ramp(8, 0);
    Bytes header;
    for (const char c : std::string_view("neuroshard.anchor.v1"))
      header.push_back(static_cast<std::uint8_t>(c));
    header.insert(header.end(), 32, 7);
    for (const std::uint8_t b : {3, 0, 0, 0, 0, 0, 0, 0, 5, 0, 0, 0, 41, 0, 0, 0, 0, 0, 0, 0})
      header.push_back(b);
    header.insert(header.end(), 32, 9);
    for (const std::uint64_t count : {70000, 10, 8}) append_le(header, count);

    const ByteSpan bytes = as_bytes(Span<const float>(weights));
    const Hash256 leaves[5] = {leaf(header), leaf(bytes.first(262144)), leaf(bytes.subspan(262144)),
                               leaf(as_bytes(Span<const float>(momentum))),
                               leaf(as_bytes(Span<const float>(bias)))};
    const Hash256 root = node(node(node(leaves[0], leaves[1]), node(leaves[2], leaves[3])), leaves[4]);

    const State state{weights, momentum, bias};
    QCOMPARE(anchor_leaves(identity(), state.counts(), *state.bytes())->size(), std::size_t{5});
    QCOMPARE(to_hex(hash_of(identity(), state)), to_hex(root));
  }

  void everything_in_it_counts() {
    const std::vector<float> weights = ramp(300, 1), momentum = ramp(300, 2), bias = ramp(8, 3);
    std::set<Hash256> seen;
    const auto is_new = [&](const AnchorIdentity& id, const State& state) {
      return seen.insert(hash_of(id, state)).second;
    };
    QVERIFY(is_new(identity(), {weights, momentum, bias}));
    QVERIFY(!is_new(identity(), {weights, momentum, bias}));
    AnchorIdentity id = identity();
    id.network[31] ^= 1;
    QVERIFY(is_new(id, {weights, momentum, bias}));
    id = identity();
    id.architecture_version++;
    QVERIFY(is_new(id, {weights, momentum, bias}));
    id = identity();
    id.slot++;
    QVERIFY(is_new(id, {weights, momentum, bias}));
    id = identity();
    id.round++;
    QVERIFY(is_new(id, {weights, momentum, bias}));
    id = identity();
    id.tokenizer[0] ^= 1;
    QVERIFY(is_new(id, {weights, momentum, bias}));
    for (std::size_t part = 0; part < 3; ++part) {
      std::vector<float> w = weights, v = momentum, b = bias;
      (part == 0 ? w : part == 1 ? v : b).back() = -0.0f;
      QVERIFY(is_new(identity(), {w, v, b}));
    }
    // A value can't move from one part to the next.
    QVERIFY(is_new(identity(), {Span<const float>(weights).first(292), momentum, bias}));
    std::vector<float> all = weights;
    all.insert(all.end(), momentum.begin(), momentum.end());
    QVERIFY(is_new(identity(), {all, {}, bias}));
    QVERIFY(is_new(identity(), {{}, all, bias}));
  }

  void a_state_of_another_size_or_that_fails_is_an_error() {
    const std::vector<float> weights = ramp(300, 1);
    const State state{weights, {}, {}};
    for (const std::uint64_t count : {299u, 301u})
      QCOMPARE(anchor_hash(identity(), {count, 0, 0}, *state.bytes()).error().code,
               ErrorCode::InvalidArgument);
    QCOMPARE(anchor_hash(identity(), {70000, 0, 0}, Unreadable()).error().code, ErrorCode::Io);
  }

  // Frozen: a change of this value is a change of the protocol.
  void golden() {
    const std::vector<float> weights = ramp(1000, 0.25f), momentum = ramp(1000, -1);
    QCOMPARE(QByteArray::fromStdString(to_hex(hash_of(identity(), {weights, momentum, {}}))),
             QByteArray("3b8160f79fec28429cad44aac1011c2249f566d87eb9b58363e13b531498416f"));
  }
};

NS_TEST(TestAnchorHash)
#include "test_anchor_hash.moc"
