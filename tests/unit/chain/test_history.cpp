// A chain takes what follows and is certified, and nothing else; from peers, from its own disk, from a snapshot.
#include <QtTest>

#include <map>

#include "core/chain/messages.h"
#include "tests/support/test_main.h"
#include "tests/unit/chain/chain_fixture.h"
#include "tests/unit/chain/small_chain.h"

using namespace neuroshard;
using namespace neuroshard::chain;
using small::Chain;
using small::recertified;

namespace {

// Everything that makes a history's tip, for comparisons.
bool same_tip(const ChainTip& a, const ChainTip& b) {
  return a.block->hash == b.block->hash && a.registry->root() == b.registry->root() &&
         a.opening == b.opening && a.committee->units() == b.committee->units();
}

struct NoSignatureHolds final : SignatureChecks {
  bool vote(const SignedVote&, const crypto::PublicKey&, const Hash256&) override { return false; }
  bool statement(const Statement&, const Hash256&) override { return false; }
  bool vector(const VectorClaim&, const crypto::PublicKey&, const Hash256&) override { return false; }
};

struct CountingCache final : RegistryCache {
  std::optional<ChainTip> find(const Hash256& block) override {
    const auto at = tips.find(block);
    if (at == tips.end()) return std::nullopt;
    ++hits;
    return at->second;
  }
  void put(const ChainTip& tip) override { tips[tip.block->hash] = tip; }
  std::map<Hash256, ChainTip> tips;
  int hits = 0;
};

ErrorCode error_of(const Expected<void>& result) {
  return result.ok() ? ErrorCode::Internal : result.error().code;
}

}  // namespace

class TestHistory : public QObject {
  Q_OBJECT
 private Q_SLOTS:
  void a_genesis_needs_the_signatures_of_all_founders();
  void certified_blocks_are_appended();
  void what_does_not_follow_is_refused();
  void what_is_not_certified_is_refused();
  void a_stall_quorum_certifies_presence_only();
  void its_own_disk_is_replayed_without_signatures();
  void a_changed_block_of_its_own_disk_is_refused();
  void it_knows_how_long_rounds_took();
  void it_begins_at_a_snapshot();
  void certified_blocks_survive_their_encoding();
  void a_known_block_is_applied_once();
  void old_blocks_are_forgotten_and_loaded();
  void answers_are_bounded();
  void a_certified_block_replaces_a_succession();
  void only_a_better_succession_replaces_one();
};

void TestHistory::a_genesis_needs_the_signatures_of_all_founders() {
  Chain chain(3);
  const CertifiedBlock genesis = chain.genesis();
  const auto history = History::begin(chain.services(), genesis);
  QVERIFY(history.ok());
  QCOMPARE(history->genesis(), genesis.block->hash);
  QCOMPARE(history->tip().committee->size(), std::size_t{3});
  QCOMPARE(history->tip().opening, genesis.block->hash);

  const CertifiedBlock one_missing =
      recertified(genesis, [](Quorum& commits) { commits.signatures.pop_back(); });
  QCOMPARE(History::begin(chain.services(), one_missing).error().code, ErrorCode::Denied);
  const CertifiedBlock forged =
      recertified(genesis, [](Quorum& commits) { commits.signatures[1].signature[3] ^= 1; });
  QVERIFY(!History::begin(chain.services(), forged).ok());
  const Quorum voted = chain.sign(*genesis.block, VoteStep::Commit, 0, chain.all());
  QVERIFY(!History::begin(chain.services(), make_certified(genesis.block, {voted, {}})).ok());
  // Another registry than the one that follows from the body.
  BlockHeader header = genesis.block->header;
  header.registry = Hash256{5};
  const BlockPtr other = make_block(header, genesis.block->body, {}, small::network);
  const Quorum signatures = chain.sign(*other, VoteStep::Genesis, 0, chain.all());
  QVERIFY(!History::begin(chain.services(), make_certified(other, {signatures, {}})).ok());
  // A later block is no beginning.
  QVERIFY(!History::begin(chain.services(), chain.flip(history->tip())).ok());
}

void TestHistory::certified_blocks_are_appended() {
  Chain chain(4);
  History history = chain.begin();
  const Hash256 genesis = history.tip().block->hash;
  for (int i = 0; i < 4; ++i) QVERIFY(history.append(chain.flip(history.tip())).ok());
  QVERIFY(history.append(chain.certified(history.tip(), chain.round_step(history.tip()))).ok());
  QCOMPARE(history.tip().opening, genesis);
  QVERIFY(history.append(chain.certified(history.tip(), chain.round_step(history.tip()))).ok());
  QCOMPARE(history.tip().height(), std::uint64_t{6});
  QCOMPARE(history.tip().opening, history.tip().block->hash);
  QCOMPARE(history.tip().registry->round(), std::uint64_t{1});
  QVERIFY(history.append(chain.flip(history.tip())).ok());
  QCOMPARE(history.tip().opening, *history.hash_at(6));
  QCOMPARE(*history.hash_at(0), genesis);
  QVERIFY(!history.hash_at(8));
  QVERIFY(history.contains({6, *history.hash_at(6)}));
  QVERIFY(!history.contains({5, *history.hash_at(6)}));
  QVERIFY(!history.contains({8, *history.hash_at(6)}));
  QCOMPARE(history.find(6)->block->hash, *history.hash_at(6));
  QVERIFY(history.find(8) == nullptr);
}

void TestHistory::what_does_not_follow_is_refused() {
  Chain chain(4);
  History history = chain.begin();
  const CertifiedBlock first = chain.flip(history.tip());
  QVERIFY(history.append(first).ok());
  QCOMPARE(error_of(history.append(first)), ErrorCode::AlreadyExists);
  const ChainTip tip = history.tip();

  History ahead = chain.begin();
  QVERIFY(ahead.append(first).ok());
  QVERIFY(ahead.append(chain.flip(ahead.tip())).ok());
  QCOMPARE(error_of(history.append(chain.flip(ahead.tip()))), ErrorCode::Denied);  // leaves one out
  // Of the right height, on another block.
  History other = chain.begin();
  QVERIFY(other.append(chain.certified(other.tip(), chain.away(other.tip(), 0))).ok());
  QCOMPARE(error_of(history.append(chain.certified(other.tip(), chain.back(other.tip(), 0)))),
           ErrorCode::Denied);
  // Names another opening block.
  const CertifiedBlock next = chain.flip(tip);
  const CertifiedBlock opening = make_certified(
      make_block(next.block->header, next.block->body, Hash256{3}, small::network), *next.certificate);
  QCOMPARE(error_of(history.append(opening)), ErrorCode::Denied);
  QVERIFY(same_tip(history.tip(), tip));
  QVERIFY(history.append(next).ok());
}

void TestHistory::what_is_not_certified_is_refused() {
  Chain chain(4);
  History history = chain.begin();
  const ChainTip tip = history.tip();
  const BlockBody body = chain.round_step(tip);
  QCOMPARE(error_of(history.append(chain.certified(tip, body, {0, 1}))), ErrorCode::Denied);
  const CertifiedBlock right = chain.certified(tip, body);
  const auto refuses = [&](auto&& change) { return !history.append(recertified(right, change)).ok(); };
  QVERIFY(refuses(
      [&](Quorum& commits) { commits = chain.sign(*right.block, VoteStep::Prepare, 0, chain.all()); }));
  QVERIFY(refuses([](Quorum& commits) { commits.signatures[2].signature[0] ^= 1; }));
  QVERIFY(refuses([&](Quorum& commits) { commits = chain.flip(tip).certificate->commits; }));
  QVERIFY(refuses([](Quorum& commits) {
    commits.signatures.resize(2);
    commits.signatures.push_back(commits.signatures[1]);
  }));
  QVERIFY(same_tip(history.tip(), tip));
  QVERIFY(history.append(chain.certified(tip, body, {0, 1, 3})).ok());
}

void TestHistory::a_stall_quorum_certifies_presence_only() {
  Chain chain(3);
  History history = chain.begin();
  BlockBody marks;
  marks.silent = {2};
  // Two of three are no quorum, but a stall quorum.
  QVERIFY(!history.append(chain.certified(history.tip(), chain.round_step(history.tip()), {0, 1})).ok());
  QVERIFY(history.append(chain.certified(history.tip(), marks, {0, 1})).ok());
  QCOMPARE(history.tip().committee->size(), std::size_t{2});
}

void TestHistory::its_own_disk_is_replayed_without_signatures() {
  Chain chain(3);
  History history = chain.begin();
  std::vector<Bytes> disk;
  disk.push_back(*history.find(0)->bytes);
  for (int i = 0; i < 6; ++i) {
    const ChainTip& tip = history.tip();
    QVERIFY(history.append(i % 2 ? chain.certified(tip, chain.round_step(tip)) : chain.flip(tip)).ok());
    disk.push_back(*history.find(tip.height())->bytes);
  }

  SignatureChecks checks;
  auto replayed = History::begin(chain.services(), *decode_certified(disk[0], small::network));
  QVERIFY(replayed.ok());
  NoSignatureHolds none;
  History own = std::move(*replayed);
  History strict = chain.begin();
  for (std::size_t i = 1; i < disk.size(); ++i)
    QVERIFY(own.append(*decode_certified(disk[i], small::network), History::Origin::OwnDisk).ok());
  QVERIFY(same_tip(own.tip(), history.tip()));
  // The same bytes with nobody's signature: still its own, but no peer's.
  const CertifiedBlock block = recertified(*decode_certified(disk[1], small::network),
                                           [](Quorum& commits) { commits.signatures[0].signature = {}; });
  QVERIFY(!strict.append(block).ok());
  QVERIFY(strict.append(block, History::Origin::OwnDisk).ok());
}

void TestHistory::a_changed_block_of_its_own_disk_is_refused() {
  Chain chain(3);
  History history = chain.begin();
  const CertifiedBlock block = chain.flip(history.tip());
  BlockHeader header = block.block->header;
  header.registry = Hash256{4};
  QCOMPARE(
      error_of(history.append(
          make_certified(make_block(header, block.block->body, block.block->opening, small::network), {}),
          History::Origin::OwnDisk)),
      ErrorCode::Denied);
  BlockBody other = chain.away(history.tip(), 0);
  QCOMPARE(
      error_of(history.append(
          make_certified(make_block(block.block->header, other, block.block->opening, small::network), {}),
          History::Origin::OwnDisk)),
      ErrorCode::Denied);
  QVERIFY(history.append(block, History::Origin::OwnDisk).ok());
}

void TestHistory::it_knows_how_long_rounds_took() {
  testing::ChainFixture chain;
  const auto nodes = chain.add_nodes(4);
  QVERIFY(chain.begin(nodes).ok());
  const auto tip_after = [&](const ChainTip* before) {
    return History::tip_of(chain.rules(), before, chain.blocks().back(), chain.registry_ptr());
  };
  ChainTip tip = tip_after(nullptr);
  QVERIFY(tip.times.durations.empty());
  // Three of four contribute, then two, so the third round does not close by quorum. The fourth closes in the least time
  // that is possible: the clocks are behind the chain.
  for (const auto& [contributors, after_ms] :
       {std::pair(3, 10'000), std::pair(4, 20'000), std::pair(2, 500'000), std::pair(4, 1),
        std::pair(4, 30'000), std::pair(3, 40'000)}) {
    std::vector<testing::Work> works;
    for (int i = 0; i < contributors; ++i) works.push_back({nodes[static_cast<std::size_t>(i)]});
    BlockBody closing, resulting;
    closing.close = chain.close(works);
    QVERIFY(chain.append(closing, static_cast<std::uint64_t>(after_ms)).ok());
    tip = tip_after(&tip);
    resulting.result = chain.result();
    QVERIFY(chain.append(resulting, 7000).ok());
    tip = tip_after(&tip);
  }
  using std::chrono::seconds;
  QVERIFY(tip.times.durations == (std::deque<Duration>{seconds(20), seconds(30), seconds(40)}));
}

void TestHistory::it_begins_at_a_snapshot() {
  Chain chain(3);
  History history = chain.begin();
  for (int i = 0; i < 5; ++i) QVERIFY(history.append(chain.flip(history.tip())).ok());
  const CertifiedBlock at = *history.find(5);
  const Bytes snapshot = history.tip().registry->encode();
  auto begun = History::begin_at(chain.services(), history.genesis(), at, snapshot);
  QVERIFY(begun.ok());
  QVERIFY(same_tip(begun->tip(), history.tip()));
  QCOMPARE(begun->genesis(), history.genesis());
  QCOMPARE(begun->first_height(), std::uint64_t{5});
  QVERIFY(!begun->hash_at(4));
  QVERIFY(begun->find(4) == nullptr);
  const CertifiedBlock next = chain.flip(history.tip());
  QVERIFY(begun->append(next).ok());
  QVERIFY(history.append(next).ok());
  QVERIFY(same_tip(begun->tip(), history.tip()));

  // Of another block, changed, or cut.
  const Bytes later = history.tip().registry->encode();
  QCOMPARE(History::begin_at(chain.services(), history.genesis(), at, later).error().code, ErrorCode::Denied);
  Bytes changed = snapshot;
  changed[changed.size() - 1] ^= 1;
  QVERIFY(!History::begin_at(chain.services(), history.genesis(), at, changed).ok());
  QVERIFY(!History::begin_at(chain.services(), history.genesis(), at,
                             ByteSpan(snapshot).first(snapshot.size() / 2))
               .ok());
}

void TestHistory::certified_blocks_survive_their_encoding() {
  Chain chain(3);
  History history = chain.begin();
  const CertifiedBlock block = chain.certified(history.tip(), chain.round_step(history.tip()));
  const Bytes& bytes = *block.bytes;
  const auto decoded = decode_certified(bytes, small::network);
  QVERIFY(decoded.ok());
  QCOMPARE(decoded->block->hash, block.block->hash);
  QCOMPARE(*decoded->certificate, *block.certificate);
  QCOMPARE(*decoded->bytes, bytes);
  for (std::size_t size = 0; size < bytes.size(); ++size)
    QVERIFY(!decode_certified(ByteSpan(bytes).first(size), small::network).ok());
  Bytes longer = bytes;
  longer.push_back(0);
  QVERIFY(!decode_certified(longer, small::network).ok());
  Bytes version = bytes;
  version[4] = 2;
  QCOMPARE(decode_certified(version, small::network).error().code, ErrorCode::Unsupported);
}

void TestHistory::a_known_block_is_applied_once() {
  Chain chain(3);
  CountingCache cache;
  const History::Services services{chain.rules, chain.checks, &cache};
  const CertifiedBlock genesis = chain.genesis();
  History first = std::move(*History::begin(services, genesis));
  const CertifiedBlock block = chain.flip(first.tip());
  QVERIFY(first.append(block).ok());
  QCOMPARE(cache.hits, 0);
  History second = std::move(*History::begin(services, genesis));
  QVERIFY(second.append(block).ok());
  QCOMPARE(cache.hits, 2);
  QVERIFY(first.tip().registry == second.tip().registry);
  // The certificate is checked by each all the same.
  History third = std::move(*History::begin(services, genesis));
  const CertifiedBlock bare = recertified(block, [](Quorum& commits) { commits.signatures.resize(1); });
  QVERIFY(!third.append(bare).ok());
}

void TestHistory::old_blocks_are_forgotten_and_loaded() {
  Chain chain(2);
  History history = chain.begin();
  std::map<std::uint64_t, Bytes> disk{{0, *history.find(0)->bytes}};
  const auto grow = [&](const CertifiedBlock& block) {
    QVERIFY(history.append(block).ok());
    disk[block.block->header.height] = *block.bytes;
  };
  const std::uint64_t more = 40;
  for (std::uint64_t i = 0; i < blocks_kept + more; ++i) grow(chain.flip(history.tip()));
  QVERIFY(history.find(0) != nullptr);  // of the last three rounds: no round has ended
  for (int i = 0; i < 8; ++i) grow(chain.certified(history.tip(), chain.round_step(history.tip())));
  const std::uint64_t oldest = history.tip().height() + 1 - blocks_kept;
  QVERIFY(history.find(oldest) != nullptr);
  QVERIFY(history.find(oldest - 1) == nullptr);
  QCOMPARE(history.first_height(), std::uint64_t{0});
  QVERIFY(history.hash_at(3).has_value());

  QVERIFY(history.blocks_from(3, 1u << 20, nullptr).empty());
  std::vector<std::uint64_t> loaded;
  const auto load = [&](std::uint64_t height) -> Expected<Bytes> {
    loaded.push_back(height);
    return disk.at(height);
  };
  const std::vector<BlockBytes> blocks = history.blocks_from(oldest - 2, 1u << 20, load);
  QCOMPARE(blocks.size(), std::size_t{64});
  QCOMPARE(loaded, (std::vector<std::uint64_t>{oldest - 2, oldest - 1}));
  for (std::size_t i = 0; i < blocks.size(); ++i) QCOMPARE(*blocks[i], disk.at(oldest - 2 + i));
}

void TestHistory::answers_are_bounded() {
  Chain chain(3);
  History history = chain.begin();
  for (int i = 0; i < 70; ++i) QVERIFY(history.append(chain.flip(history.tip())).ok());
  QCOMPARE(history.blocks_from(1, 1u << 30, nullptr).size(), max_blocks_per_answer);
  QCOMPARE(history.blocks_from(70, 1u << 30, nullptr).size(), std::size_t{1});
  QVERIFY(history.blocks_from(71, 1u << 30, nullptr).empty());
  QVERIFY(history.blocks_from(~std::uint64_t{0}, 1u << 30, nullptr).empty());
  QCOMPARE(history.blocks_from(1, 1, nullptr).size(), std::size_t{1});
  const std::size_t most = 5000;
  std::size_t sum = 0;
  const std::vector<BlockBytes> blocks = history.blocks_from(1, most, nullptr);
  for (const BlockBytes& block : blocks) sum += block->size();
  QVERIFY(sum <= most);
  QVERIFY(sum + history.find(1 + blocks.size())->bytes->size() > most);
}

void TestHistory::a_certified_block_replaces_a_succession() {
  Chain chain(2);
  History history = chain.begin();
  QVERIFY(history.append(chain.flip(history.tip())).ok());
  const ChainTip before = history.tip();  // one is dormant
  const CertifiedBlock certified = chain.flip(before);
  QCOMPARE(error_of(history.replace_succession(certified)), ErrorCode::Denied);  // nothing to replace
  QVERIFY(history.append(chain.succession(before, {1})).ok());
  QCOMPARE(history.tip().committee->members()[0].number, std::uint32_t{1});

  const ChainTip succeeded = history.tip();
  const CertifiedBlock forged =
      recertified(certified, [](Quorum& commits) { commits.signatures[0].signature[0] ^= 1; });
  QVERIFY(!history.replace_succession(forged).ok());
  // Of the next height.
  QVERIFY(!history.replace_succession(chain.certified(succeeded, chain.round_step(succeeded))).ok());
  QVERIFY(same_tip(history.tip(), succeeded));
  QVERIFY(history.replace_succession(certified).ok());
  QCOMPARE(history.tip().block->hash, certified.block->hash);
  QCOMPARE(*history.hash_at(2), certified.block->hash);
  QCOMPARE(history.find(2)->block->hash, certified.block->hash);
  QCOMPARE(history.find(1)->block->hash, before.block->hash);
  QVERIFY(history.append(chain.flip(history.tip())).ok());
  QVERIFY(!history.replace_succession(certified).ok());
}

void TestHistory::only_a_better_succession_replaces_one() {
  Chain chain(5);
  History history = chain.begin();
  const ChainTip before = history.tip();
  const CertifiedBlock unsigned_by_one =
      recertified(chain.succession(before, {0, 1}), [](Quorum& commits) { commits.signatures.pop_back(); });
  QVERIFY(!history.append(unsigned_by_one).ok());
  CertifiedBlock low = chain.succession(before, {0, 1}, small::first_ms + 5000);
  CertifiedBlock high = chain.succession(before, {0, 1}, small::first_ms + 6000);
  if (high.block->hash < low.block->hash) std::swap(low, high);
  const CertifiedBlock larger = chain.succession(before, {2, 3, 4});
  QVERIFY(history.append(high).ok());
  QCOMPARE(error_of(history.replace_succession(high)), ErrorCode::AlreadyExists);
  QVERIFY(history.replace_succession(low).ok());
  QCOMPARE(error_of(history.replace_succession(high)), ErrorCode::Denied);
  QVERIFY(history.replace_succession(larger).ok());
  QCOMPARE(error_of(history.replace_succession(low)), ErrorCode::Denied);
  QCOMPARE(history.tip().committee->size(), std::size_t{3});
}

NS_TEST(TestHistory)
#include "test_history.moc"
