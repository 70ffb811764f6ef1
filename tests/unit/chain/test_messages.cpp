// Messages of the chain: every kind is canonical, a block that comes with votes is the one they are for, and
// counts are bounded.
#include <QtTest>

#include "core/chain/messages.h"
#include "core/chain/status.h"
#include "tests/support/test_main.h"
#include "tests/unit/chain/samples.h"

using namespace neuroshard;
using namespace neuroshard::chain;
using test::key_of;

namespace {

BlockPtr small_block(std::uint8_t silent = 2) {
  BlockBody body;
  body.silent = {silent};
  return samples::block(std::move(body));
}

Quorum for_block(const Block& block, VoteStep step) {
  return samples::quorum(step, block.hash, block.header.height, block.header.previous);
}

Quorum of_view(Quorum quorum, std::uint32_t view) {
  quorum.view = view;
  return quorum;
}

Heartbeat heartbeat() {
  Heartbeat heartbeat;
  heartbeat.tip = {9, samples::filled(60)};
  heartbeat.time_ms = 1'790'000'000'000;
  heartbeat.boot = 12;
  heartbeat.incarnation = 0x1122334455667788;
  sign_heartbeat(heartbeat, key_of(1), samples::network);
  return heartbeat;
}

Statement founder() {
  return samples::statement(1, samples::registration(1, false), BlockReference{});
}

std::vector<ChainItem> items() {
  const BlockPtr block = small_block();
  const Quorum prepares = for_block(*block, VoteStep::Prepare);
  BlockBody succession;
  succession.succession = SuccessionSection{{1, 2, 3}};
  const BlockPtr successor = samples::block(succession);
  BlockBody genesis;
  genesis.genesis = samples::genesis_section();
  const CertifiedBlock certified = make_certified(block, {for_block(*block, VoteStep::Commit), prepares});
  const Quorum earlier = of_view(prepares, 1);
  return {Proposal{3, block, {}, {}},
          Proposal{4, block, prepares, {}},
          Proposal{4, block, prepares, earlier},
          Proposal{4, block, {}, {}, samples::vote().signature},
          samples::vote(),
          NewView{9, samples::filled(40), 5, {}, nullptr, {}},
          NewView{9, samples::filled(40), 5, prepares, block, {}},
          NewView{9, samples::filled(40), 5, prepares, block, earlier},
          Locked{prepares, {}},
          Locked{prepares, earlier},
          CertifiedPost{9, samples::filled(60), {}},
          CertifiedPost{9, block->hash, certified},
          StatementPost{samples::statement(4, Away{})},
          EvidencePost{samples::evidence()},
          heartbeat(),
          GenesisHello{founder()},
          GenesisProposal{samples::block(genesis, 0)},
          GenesisSignature{samples::filled(60), key_of(1).public_key(), samples::vote().signature},
          SuccessionProposal{successor, for_block(*successor, VoteStep::Succession)},
          VoucherOffer{{samples::voucher(), samples::filled(77)}},
          RelayedPost{RelayPath::Column,
                      {encode_item(heartbeat()), encode_item(RoundsPost{first_rounds_kind, {1}})}},
          RoundsPost{first_rounds_kind, {1, 2, 3}}};
}

Expected<ChainItem> decode(ByteSpan bytes) {
  return decode_item(bytes, samples::network);
}
bool is_read(const ChainItem& item) {
  return decode(encode_item(item)).ok();
}

}  // namespace

class TestChainMessages : public QObject {
  Q_OBJECT
 private Q_SLOTS:
  void every_item_is_canonical();
  void kinds_have_their_numbers();
  void unknown_kinds_are_unsupported();
  void a_strangers_voucher_is_wanted_later();
  void a_block_is_the_one_that_was_voted_on();
  void a_full_lock_is_an_earlier_one_of_the_same_block();
  void an_announced_block_is_the_one_that_comes();
  void a_founder_says_hello_with_a_registration();
  void only_items_for_all_voters_are_relayed();
  void a_heartbeat_holds_for_its_node_and_history();
  void answers_and_status_are_canonical();
  void block_answers_are_bounded();
  void registry_pieces_are_bounded();
};

void TestChainMessages::every_item_is_canonical() {
  for (const ChainItem& item : items()) {
    const Bytes bytes = encode_item(item);
    const auto again = decode(bytes);
    QVERIFY2(again.ok() && again->index() == item.index(), qPrintable(QString::number(bytes[0])));
    // Posts of the rounds are opaque here: a part of one is another post.
    if (std::holds_alternative<RoundsPost>(item)) {
      QVERIFY(encode_item(*again) == bytes);
      continue;
    }
    // A flipped bit of the kind may make another kind's item of the same bytes, so the kind stays.
    const auto reencode = [kind = bytes[0]](ByteSpan rest) -> std::optional<Bytes> {
      Bytes whole = {kind};
      whole.insert(whole.end(), rest.begin(), rest.end());
      const auto value = decode(whole);
      if (!value.ok()) return {};
      const Bytes written = encode_item(*value);
      return Bytes(written.begin() + 1, written.end());
    };
    QCOMPARE(samples::format_fault(Bytes(bytes.begin() + 1, bytes.end()), reencode), std::string());
  }
}

void TestChainMessages::kinds_have_their_numbers() {
  std::vector<int> kinds;
  for (const ChainItem& item : items()) kinds.push_back(encode_item(item)[0]);
  QCOMPARE(kinds, (std::vector<int>{1, 1, 1, 1, 2, 3, 3, 3, 4, 4, 5, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 32}));
}

void TestChainMessages::unknown_kinds_are_unsupported() {
  QVERIFY(!decode({}).ok());
  for (const std::uint8_t kind : {0, 15, 31}) {
    const Bytes bytes = {kind, 1, 2};
    QVERIFY(decode(bytes).error().code == ErrorCode::Unsupported);
  }
  for (const std::uint8_t kind : {32, 255}) QVERIFY(decode(Bytes{kind}).ok());
}

// Its sender may have got its vote in a block that the recipient lacks.
void TestChainMessages::a_strangers_voucher_is_wanted_later() {
  const Bytes offer = encode_item(VoucherOffer{{samples::voucher(), samples::filled(77)}});
  QVERIFY(item_of_stranger(offer) == StrangerItem::Later);
}

void TestChainMessages::a_block_is_the_one_that_was_voted_on() {
  const BlockPtr block = small_block(), other = small_block(3);
  const Quorum prepares = for_block(*block, VoteStep::Prepare);
  QVERIFY(!is_read(Proposal{4, other, prepares, {}}));
  QVERIFY(!is_read(Proposal{4, block, for_block(*block, VoteStep::Commit), {}}));
  QVERIFY(!is_read(NewView{9, samples::filled(40), 5, prepares, other, {}}));
  QVERIFY(!is_read(NewView{10, samples::filled(40), 5, prepares, block, {}}));
  QVERIFY(!is_read(NewView{9, samples::filled(41), 5, prepares, block, {}}));
  QVERIFY(!is_read(SuccessionProposal{other, for_block(*block, VoteStep::Succession)}));
  QVERIFY(!is_read(SuccessionProposal{block, prepares}));
}

void TestChainMessages::a_full_lock_is_an_earlier_one_of_the_same_block() {
  const BlockPtr block = small_block();
  const Quorum prepares = for_block(*block, VoteStep::Prepare);
  QVERIFY(is_read(Locked{prepares, of_view(prepares, 2)}));
  QVERIFY(!is_read(Locked{prepares, prepares}));
  QVERIFY(!is_read(Locked{prepares, of_view(prepares, 4)}));
  QVERIFY(!is_read(Locked{prepares, of_view(for_block(*small_block(3), VoteStep::Prepare), 2)}));
  QVERIFY(!is_read(Locked{prepares, of_view(for_block(*block, VoteStep::Commit), 2)}));
  QVERIFY2(!decode(Bytes{4, 0}).ok(), "no quorum at all");
}

void TestChainMessages::an_announced_block_is_the_one_that_comes() {
  const BlockPtr block = small_block();
  const CertifiedBlock certified = make_certified(block, {for_block(*block, VoteStep::Commit), {}});
  QVERIFY(is_read(CertifiedPost{9, block->hash, certified}));
  QVERIFY(!is_read(CertifiedPost{8, block->hash, certified}));
  QVERIFY(!is_read(CertifiedPost{9, samples::filled(60), certified}));
}

// A vote goes to the leader only. A bundle in a bundle would go on for ever.
void TestChainMessages::only_items_for_all_voters_are_relayed() {
  const Bytes said = encode_item(heartbeat());
  const RelayedPost once{RelayPath::Row, {said}};
  QVERIFY(is_read(once));
  QVERIFY(!is_read(RelayedPost{RelayPath::Row, {said, encode_item(samples::vote())}}));
  QVERIFY(!is_read(RelayedPost{RelayPath::Row, {encode_item(once)}}));
  QVERIFY(!is_read(RelayedPost{RelayPath::Row, {said, {}}}));
  QVERIFY(!is_read(RelayedPost{static_cast<RelayPath>(3), {said}}));
  Bytes empty = encode_item(once);
  empty.resize(2);
  empty.insert(empty.end(), 2, 0);
  QVERIFY(!decode(empty).ok());
}

void TestChainMessages::a_founder_says_hello_with_a_registration() {
  QVERIFY(is_read(GenesisHello{founder()}));
  QVERIFY(!is_read(GenesisHello{samples::statement(1, samples::registration(1, false))}));
  QVERIFY(!is_read(GenesisHello{samples::statement(1, Away{}, BlockReference{})}));
}

void TestChainMessages::a_heartbeat_holds_for_its_node_and_history() {
  const Heartbeat sent = heartbeat();
  QVERIFY(heartbeat_holds(sent, samples::network));
  QVERIFY(!heartbeat_holds(sent, samples::filled(8)));
  Heartbeat other = sent;
  other.node = key_of(2).public_key();
  QVERIFY(!heartbeat_holds(other, samples::network));
  other = sent;
  other.tip.hash = samples::filled(61);
  QVERIFY(!heartbeat_holds(other, samples::network));
  other = sent;
  other.tip.height += 1;
  QVERIFY(!heartbeat_holds(other, samples::network));
  other = sent;
  other.time_ms += 1;
  QVERIFY(!heartbeat_holds(other, samples::network));
  other = sent;
  other.boot += 1;
  QVERIFY(!heartbeat_holds(other, samples::network));
  other = sent;
  other.incarnation += 1;
  QVERIFY(!heartbeat_holds(other, samples::network));
}

void TestChainMessages::answers_and_status_are_canonical() {
  QCOMPARE(samples::format_fault(encode_answer({Verdict::Copied, 12}),
                                 samples::reencoder(decode_answer, encode_answer)),
           std::string());
  const ChainStatus status{samples::filled(1), 20, samples::filled(2), 9, 4, 3, true};
  QCOMPARE(samples::format_fault(encode_status(status), samples::reencoder(decode_status, encode_status)),
           std::string());
  QVERIFY(*decode_status(encode_status(status)) == status);
  ChainStatus whole = status;
  whole.asker = heartbeat();
  whole.of_asker.vote = samples::vote();
  whole.forgot_votes = true;
  whole.of_asker.contribution = ContributionEntry{3, 4, samples::filled(5), samples::filled(6), {}, {}};
  whole.of_asker.vector = VectorClaim{{}, 0, 0, samples::filled(7), {}};
  QCOMPARE(samples::format_fault(encode_status(whole), samples::reencoder(decode_status, encode_status)),
           std::string());
  QVERIFY(*decode_status(encode_status(whole)) == whole);
  ChainStatus forgetful = status;
  forgetful.forgot_votes = true;
  Bytes without_vote = encode_status(forgetful);
  QVERIFY(*decode_status(without_vote) == forgetful);
  without_vote[without_vote.size() - 3] = 4;  // before the vote, the contribution and the vector
  QVERIFY(!decode_status(without_vote).ok());
  const StatusRequest asked{true, heartbeat()};
  Bytes cut = encode_status_request(asked);
  while (cut.size() > 1) {  // nothing at all is the request of a node without a history
    cut.pop_back();
    QVERIFY(!decode_status_request(cut).ok());
  }
  QVERIFY(*decode_status_request(encode_status_request(asked)) == asked);
  QVERIFY(!decode_status_request({})->asker);
  QCOMPARE(*decode_blocks_request(encode_blocks_request(77)), std::uint64_t{77});
  const RegistryRequest request{samples::filled(1), 1u << 20};
  QCOMPARE(samples::format_fault(encode_registry_request(request),
                                 samples::reencoder(decode_registry_request, encode_registry_request)),
           std::string());
  Bytes unknown = encode_answer({Verdict::Taken, 12});
  unknown[0] = static_cast<std::uint8_t>(Verdict::Count_);
  QVERIFY(!decode_answer(unknown).ok());
}

void TestChainMessages::block_answers_are_bounded() {
  const Bytes one{1, 2}, two{3}, three{4, 5, 6};
  BlocksAnswer answer{true, {one, two, three}};
  QCOMPARE(samples::format_fault(encode_blocks_answer(answer),
                                 samples::reencoder(decode_blocks_answer, encode_blocks_answer)),
           std::string());
  Bytes bytes = encode_blocks_answer(answer);
  const auto decoded = decode_blocks_answer(bytes);
  QCOMPARE(decoded->blocks.size(), answer.blocks.size());
  QVERIFY(std::ranges::equal(decoded->blocks.back(), three));
  QVERIFY(decode_blocks_answer(encode_blocks_answer({})).ok());

  answer.blocks.assign(max_blocks_per_answer, two);
  bytes = encode_blocks_answer(answer);
  QVERIFY(decode_blocks_answer(bytes).ok());
  bytes[1] += 1;
  bytes.insert(bytes.end(), {1, 0, 0, 0, 1});
  QVERIFY(!decode_blocks_answer(bytes).ok());

  const Bytes large(most_answer_bytes, 1);
  QVERIFY2(decode_blocks_answer(encode_blocks_answer({true, {large}})).ok(), "one block in any case");
  QVERIFY(!decode_blocks_answer(encode_blocks_answer({true, {large, one}})).ok());
  QVERIFY2(!decode_blocks_answer(encode_blocks_answer({true, {ByteSpan()}})).ok(), "an empty block");
}

void TestChainMessages::registry_pieces_are_bounded() {
  const RegistryAnswer answer{1000, Bytes(10, 3)};
  QVERIFY(*decode_registry_answer(encode_registry_answer(answer)) == answer);
  QVERIFY(!decode_registry_answer(encode_registry_answer({9, Bytes(10, 3)})).ok());
  Bytes bytes = encode_registry_answer({~std::uint64_t{0}, Bytes(max_registry_piece, 3)});
  QVERIFY(decode_registry_answer(bytes).ok());
  bytes.push_back(3);
  QVERIFY(!decode_registry_answer(bytes).ok());
  QVERIFY(!decode_registry_answer(ByteSpan(bytes).first(7)).ok());
}

NS_TEST(TestChainMessages)
#include "test_messages.moc"
