// A peer's chain beside one's own: what it claims costs a fetch, what it proves decides.
#include <QtTest>

#include "tests/support/test_main.h"
#include "tests/unit/chain/small_chain.h"

using namespace neuroshard;
using namespace neuroshard::chain;
using small::Chain;

namespace {

// A chain and all of its blocks.
struct Grown {
  Chain chain;
  History history;
  std::vector<CertifiedBlock> blocks;
  explicit Grown(std::size_t founders, std::size_t height) : chain(founders), history(chain.begin()) {
    blocks.push_back(*history.find(0));
    for (std::size_t i = 0; i < height; ++i) grow(chain.flip(history.tip()));
  }
  void grow(const CertifiedBlock& block) {
    QVERIFY(history.append(block).ok());
    blocks.push_back(block);
  }
  BlockReference reference(std::uint64_t height) const { return {height, *history.hash_at(height)}; }
};

ErrorCode error_of(const Expected<void>& result) {
  return result.ok() ? ErrorCode::Internal : result.error().code;
}

struct CountingChecks final : SignatureChecks {
  bool vote(const SignedVote& vote, const crypto::PublicKey& node, const Hash256& network) override {
    ++count;
    return SignatureChecks::vote(vote, node, network);
  }
  bool statement(const Statement& statement, const Hash256& network) override {
    ++count;
    return SignatureChecks::statement(statement, network);
  }
  int count = 0;
};

}  // namespace

class TestForeignChain : public QObject {
  Q_OBJECT
 private Q_SLOTS:
  void a_chain_is_verified_block_by_block();
  void answers_may_overlap();
  void forged_blocks_end_it();
  void a_chain_without_its_beginning_is_refused();
  void another_genesis_is_refused_before_any_signature();
  void the_founder_has_to_be_named();
  void the_trusted_block_has_to_be_in_it();
  void a_chain_longer_than_memory_begins_again();
  void open_starts_merge_by_wallets_then_by_hash();
};

void TestForeignChain::a_chain_is_verified_block_by_block() {
  Grown own(2, 3), foreign(4, 6);
  const Hash256 own_tip = own.history.tip().block->hash;
  ForeignChain fetched(foreign.chain.services(), {});
  QCOMPARE(fetched.next_height(), std::uint64_t{0});
  QVERIFY(fetched.history() == nullptr);
  for (const CertifiedBlock& block : foreign.blocks) {
    QCOMPARE(fetched.next_height(), block.block->header.height);
    QVERIFY(fetched.take({block}).ok());
  }
  auto history = std::move(fetched).finish();
  QVERIFY(history.ok());
  QCOMPARE(history->tip().block->hash, foreign.history.tip().block->hash);
  QCOMPARE(history->tip().registry->root(), foreign.history.tip().registry->root());
  QCOMPARE(own.history.tip().block->hash, own_tip);
  // It goes on like any other.
  QVERIFY(history->append(foreign.chain.flip(foreign.history.tip())).ok());
}

void TestForeignChain::answers_may_overlap() {
  Grown foreign(3, 4), other(3, 0);
  ForeignChain fetched(foreign.chain.services(), {});
  QVERIFY(fetched.take({foreign.blocks[0], foreign.blocks[1], foreign.blocks[2]}).ok());
  QVERIFY(fetched.take({foreign.blocks[1], foreign.blocks[2], foreign.blocks[3]}).ok());
  QCOMPARE(fetched.next_height(), std::uint64_t{4});
  other.grow(other.chain.certified(other.history.tip(), other.chain.away(other.history.tip(), 0)));
  QCOMPARE(error_of(fetched.take({other.blocks[1]})), ErrorCode::Denied);
  QVERIFY(fetched.take({}).ok());
  QVERIFY(std::move(fetched).finish().ok());
}

// A longer chain of a peer that makes its own certificates.
void TestForeignChain::forged_blocks_end_it() {
  Grown foreign(4, 5);
  const auto refuses = [&](auto&& change) {
    ForeignChain fetched(foreign.chain.services(), {});
    std::vector<CertifiedBlock> blocks = foreign.blocks;
    change(blocks);
    const ErrorCode code = error_of(fetched.take(blocks));
    return code == ErrorCode::Denied && fetched.next_height() <= 3;
  };
  const auto with_commits = [](auto&& change) {
    return [change](auto& blocks) { blocks[3] = small::recertified(blocks[3], change); };
  };
  QVERIFY(refuses(with_commits([](Quorum& commits) { commits.signatures.resize(2); })));
  QVERIFY(refuses(with_commits([](Quorum& commits) { commits.signatures[1].signature[5] ^= 1; })));
  QVERIFY(refuses([](auto& blocks) { blocks[3].certificate = blocks[2].certificate; }));
  QVERIFY(refuses([](auto& blocks) { blocks.erase(blocks.begin() + 3); }));
  QVERIFY(refuses([](auto& blocks) { std::swap(blocks[3], blocks[2]); }));
  // Certified by strangers.
  Chain strangers(4);
  for (std::uint16_t i = 0; i < 4; ++i) strangers.parties[i] = small::party_of(100 + i);
  const Block& third = *foreign.blocks[3].block;
  QVERIFY(refuses(with_commits(
      [&](Quorum& commits) { commits = strangers.sign(third, VoteStep::Commit, 0, strangers.all()); })));
}

void TestForeignChain::a_chain_without_its_beginning_is_refused() {
  Grown foreign(3, 3);
  ForeignChain fetched(foreign.chain.services(), {});
  QCOMPARE(error_of(fetched.take({foreign.blocks[1]})), ErrorCode::Denied);
  QVERIFY(fetched.history() == nullptr);
  ForeignChain nothing(foreign.chain.services(), {});
  QCOMPARE(std::move(nothing).finish().error().code, ErrorCode::Denied);
}

void TestForeignChain::another_genesis_is_refused_before_any_signature() {
  Grown trusted(3, 0), foreign(4, 3);
  CountingChecks checks;
  TrustAnchor trust;
  trust.genesis = trusted.history.genesis();
  ForeignChain fetched({foreign.chain.rules, checks, nullptr}, trust);
  QCOMPARE(error_of(fetched.take(foreign.blocks)), ErrorCode::Denied);
  QCOMPARE(checks.count, 0);
  ForeignChain right({foreign.chain.rules, checks, nullptr}, trust);
  QVERIFY(right.take(trusted.blocks).ok());
  QVERIFY(checks.count > 0);
}

void TestForeignChain::the_founder_has_to_be_named() {
  Grown foreign(3, 1);
  TrustAnchor trust;
  trust.founder_wallet = foreign.chain.parties[1].wallet.public_key();
  ForeignChain named(foreign.chain.services(), trust);
  QVERIFY(named.take(foreign.blocks).ok());
  trust.founder_wallet = small::party_of(50).wallet.public_key();
  ForeignChain unnamed(foreign.chain.services(), trust);
  QCOMPARE(error_of(unnamed.take(foreign.blocks)), ErrorCode::Denied);
}

void TestForeignChain::the_trusted_block_has_to_be_in_it() {
  Grown foreign(3, 4), fork(3, 1);
  fork.grow(fork.chain.certified(fork.history.tip(), fork.chain.away(fork.history.tip(), 0)));
  TrustAnchor trust;
  trust.recent = foreign.reference(2);
  ForeignChain has_it(foreign.chain.services(), trust);
  QVERIFY(has_it.take(foreign.blocks).ok());
  QVERIFY(std::move(has_it).finish().ok());
  ForeignChain forked(foreign.chain.services(), trust);
  QVERIFY(forked.take({fork.blocks[0], fork.blocks[1]}).ok());
  QCOMPARE(error_of(forked.take({fork.blocks[2]})), ErrorCode::Denied);
  // Certified, and of the right genesis, but it ends before: nothing tells which chain it is.
  ForeignChain ends(foreign.chain.services(), trust);
  QVERIFY(ends.take({foreign.blocks[0], foreign.blocks[1]}).ok());
  QCOMPARE(std::move(ends).finish().error().code, ErrorCode::Denied);
}

// The log on the disk begins with the first block, so all blocks come once more; then only those.
void TestForeignChain::a_chain_longer_than_memory_begins_again() {
  Grown foreign(3, blocks_kept + 20);
  for (int i = 0; i < 8; ++i)  // all blocks of the last three rounds stay in memory
    foreign.grow(
        foreign.chain.certified(foreign.history.tip(), foreign.chain.round_step(foreign.history.tip())));
  ForeignChain fetched(foreign.chain.services(), {});
  QVERIFY(fetched.take(foreign.blocks).ok());
  QVERIFY(!fetched.is_certain());
  auto again = std::move(fetched).finish();
  QVERIFY(again.ok() && again->is_partial());
  QCOMPARE(again->tip().height(), std::uint64_t{0});
  const CertifiedBlock other = foreign.chain.certified(again->tip(), foreign.chain.away(again->tip(), 0));
  QVERIFY(again->is_known(*foreign.blocks[1].block) && !again->is_known(*other.block));
  QVERIFY(History(*again).append(foreign.blocks[1]).ok());
  QCOMPARE(error_of(again->append(other)), ErrorCode::Denied);
  for (std::size_t height = 1; height < foreign.blocks.size(); ++height) {
    QVERIFY(again->is_partial());
    QVERIFY(again->append(foreign.blocks[height]).ok());
  }
  QVERIFY(!again->is_partial());
  QVERIFY(again->append(foreign.chain.flip(again->tip())).ok());

  TrustAnchor trust;
  trust.genesis = foreign.history.genesis();
  ForeignChain trusted(foreign.chain.services(), trust);
  QVERIFY(!trusted.is_certain());
  QVERIFY(trusted.take({foreign.blocks[0]}).ok() && trusted.is_certain());
}

void TestForeignChain::open_starts_merge_by_wallets_then_by_hash() {
  const Hash256 low{1}, high{2};
  QVERIFY(prefers_other({high, 3, 2}, {low, 3, 3}));
  QVERIFY(prefers_other({low, 3, 2}, {high, 500, 3}));
  QVERIFY(!prefers_other({high, 3, 3}, {low, 9, 2}));
  QVERIFY(prefers_other({high, 7, 2}, {low, 0, 2}));
  QVERIFY(!prefers_other({low, 7, 2}, {high, 0, 2}));
  QVERIFY(!prefers_other({high, 8, 1}, {low, 0, 9}));  // of age: a person decides
  QVERIFY(!prefers_other({low, 0, 1}, {low, 0, 9}));
  // Of two young ones exactly one gives way.
  for (const std::size_t wallets : {1u, 2u, 3u})
    QVERIFY(prefers_other({low, 1, 2}, {high, 1, wallets}) != prefers_other({high, 1, wallets}, {low, 1, 2}));
}

NS_TEST(TestForeignChain)
#include "test_foreign_chain.moc"
