// A node asks for contributions and gives pieces of them: strangers and silent contributors cost it little.
#include <QtTest>

#include <algorithm>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <utility>
#include <vector>

#include "core/rounds/round_exchange.h"
#include "core/rounds/round_roles.h"
#include "tests/support/manual_executor.h"
#include "tests/support/test_main.h"
#include "tests/unit/rounds/chain_round.h"
#include "tests/unit/rounds/computing_node.h"
#include "tests/unit/rounds/later_work.h"

using namespace neuroshard;
using namespace neuroshard::rounds;
using What = PieceRequest::What;

namespace {

constexpr Duration tick = std::chrono::milliseconds(500);
constexpr std::size_t calls_per_fetch = 4;  // of one source that has nothing

constexpr std::uint64_t few_values = 5000;
constexpr std::uint64_t many_values = 300'000;  // a payload of them is not read at once

test::ChainRoundOptions few_nodes(std::uint32_t rows, std::uint64_t values) {
  test::ChainRoundOptions options;
  options.others = 2;
  options.values = values;
  options.rows = rows;
  return options;
}

// A member that has one contribution to the round, and not its payload.
struct ExchangeBench {
  explicit ExchangeBench(std::uint32_t rows = 1, std::uint64_t values = few_values)
      : network(few_nodes(rows, values)) {
    node.book.open(network.opening);
    vectors.open(network.opening);
    node.take(network, 0);
  }
  void give(bool on) {
    node.own.sources.script = nullptr;
    if (on) return;
    node.own.sources.script = [](const net::NodeId&, const PieceRequest&) -> std::optional<Expected<Bytes>> {
      return piece_not_held();
    };
  }
  std::size_t asked() const { return node.own.sources.asked_for(What::Payload); }
  void ask() { exchange.ask(network.opening, true, false); }
  void look_for(Duration time) {
    for (Duration passed{}; passed < time; passed += tick) {
      ask();
      world.run_for(tick);
    }
  }

  // As node 0 has its own payload, or finds it on its disk.
  void take_own(const Bytes& payload, const std::vector<PayloadReading>& readings = {}) {
    exchange.take_own(network.chain.number(network.holders[0]), {in_memory(payload)}, readings);
  }
  const Bytes& payload() const { return network.round->payloads[0]; }
  const ContributionBook::Entry& entry(std::size_t holder) const {
    return *node.book.find(network.chain.number(network.holders[holder]));
  }

  const test::ChainRound network;
  sim::World world;
  const std::shared_ptr<test::LaterWork> later = std::make_shared<test::LaterWork>();
  test::ComputingNode node{world, *network.round, network.chain.rules(),
                           network.chain.rules().has_holders() ? chain::RowSet::of({0}) : chain::RowSet()};
  VectorBook vectors{network.chain.rules(), node.checks};
  int arrived = 0;
  std::vector<Error> failures;
  RoundExchange exchange{
      {node.own.sources, node.own.sources, node.own.fetcher, node.book, vectors, world.clock(), *later},
      network.chain.rules(),
      FetchOptions(),
      network.id(network.others[0]),
      {[this] { ++arrived; }, [](const chain::Evidence&) {},
       [this](const Error& error) { failures.push_back(error); }}};
};

// Answers nothing until the test says so.
struct SilentPeers final : net::PeerCaller, chain::Peers {
  void call(const net::Contact& peer, net::Method, Bytes, Duration, net::CallDone done) override {
    asked.push_back(peer.id);
    waiting.push_back(std::move(done));
  }
  std::optional<net::Contact> find(const net::NodeId& id) override {
    return net::Contact{id, {platform::IpAddress::v4(11, 0, 0, id[0]), 9000}};
  }
  std::vector<net::Contact> some() override { return {}; }
  void refuse_all() {
    while (!waiting.empty()) {
      const net::CallDone done = std::move(waiting.back());
      waiting.pop_back();
      done(piece_not_held());
    }
  }
  std::vector<net::NodeId> asked;
  std::vector<net::CallDone> waiting;
};

// Two voters and many candidates have contributed to the second round of a network of three voters.
struct CandidatesBench {
  CandidatesBench() : voters(chain.add_nodes(3)), candidates(chain.add_nodes(20)) {
    need(chain.begin(voters).ok());
    for (const std::size_t node : candidates) need(chain.join(node));
    need(chain.round_of(voters));
    book.open(tip());
    vectors.open(tip());
    for (const std::size_t node : candidates) take(node);
    for (const std::size_t node : {voters[1], voters[2]}) take(node);
  }
  static void need(bool done) {
    if (!done) qFatal("the chain does not go on");
  }
  void take(std::size_t node) {
    const auto held = std::make_shared<const HeldContribution>(chain.contribution(node, 500));
    need(book.take(held, tip()).verdict == chain::Verdict::Taken);
  }
  // The vector of this voter, with the contribution of one node.
  void list(std::size_t voter, std::size_t node) {
    const chain::Contribution made = chain.contribution(node, 500);
    const std::vector<chain::ContributionEntry> entries{chain::entry_of(made, chain.number(node))};
    const auto held = std::make_shared<const HeldVector>(chain.vector(voter, entries));
    need(vectors.take(held, tip()).verdict == chain::Verdict::Taken);
  }
  net::NodeId id(std::size_t node) const { return crypto::node_id(chain.key(node).public_key()); }
  chain::ChainTip tip() const {
    return {chain.blocks().back(),
            chain.registry_ptr(),
            chain.committee(),
            chain.registry().opening(chain.hash()),
            {}};
  }
  // Those that an ask() newly asks.
  std::set<net::NodeId> ask() {
    const std::size_t before = peers.asked.size();
    exchange.ask(tip(), true, false);
    return {peers.asked.begin() + static_cast<std::ptrdiff_t>(before), peers.asked.end()};
  }

  chain::testing::ChainFixture chain{chain::testing::small_rules(chain::VotersMode::Invited, 1)};
  std::vector<std::size_t> voters, candidates;  // nodes of the fixture
  SilentPeers peers;
  testing::ManualExecutor executor;
  ManualClock clock;
  MemorySpool spool;
  chain::SignatureChecks checks;
  RoundPool pool;
  test::LaterWork work;
  RoundFetcher fetcher{peers, peers, executor, clock, spool, FetchOptions()};
  ContributionBook book{chain.rules(), {{0, 0, 8192}}, {}, checks, pool};
  VectorBook vectors{chain.rules(), checks};
  RoundExchange exchange{{peers, peers, fetcher, book, vectors, clock, work},
                         chain.rules(),
                         FetchOptions(),
                         id(voters[0]),
                         {[] {}, [](const chain::Evidence&) {}, [](const Error&) {}}};
};

// Counts how often it is read.
class CountedSource final : public ByteSource {
 public:
  explicit CountedSource(Bytes bytes) : bytes_(std::move(bytes)) {}
  std::uint64_t size() const override { return bytes_.size(); }
  Expected<void> read_at(std::uint64_t offset, MutableByteSpan target) const override {
    ++reads;
    return BytesView(bytes_).read_at(offset, target);
  }
  mutable int reads = 0;

 private:
  const Bytes bytes_;
};

}  // namespace

class TestRoundExchange : public QObject {
  Q_OBJECT
 private Q_SLOTS:
  // Each try costs a call, and it may cost room on the disk.
  void a_payload_that_nobody_gives_is_asked_for_less_and_less() {
    ExchangeBench bench;
    bench.give(false);
    bench.look_for(std::chrono::minutes(1));
    const std::size_t tries = bench.asked() / calls_per_fetch;
    QVERIFY2(tries >= 5 && tries <= 8, QByteArray::number(static_cast<int>(tries)).constData());
    QVERIFY(bench.failures.empty() && bench.arrived == 0);
    bench.give(true);
    bench.look_for(std::chrono::minutes(1));
    QCOMPARE(bench.node.book.complete(), std::size_t{1});
    QCOMPARE(bench.arrived, 1);
  }

  // From then on voters have it.
  void the_close_ends_the_pause() {
    ExchangeBench bench;
    bench.give(false);
    bench.look_for(std::chrono::seconds(20));
    const std::size_t before = bench.asked();
    bench.ask();
    QCOMPARE(bench.asked(), before);
    bench.exchange.ask(bench.network.tip(), true, false);
    QVERIFY(bench.asked() > before);
  }

  // Anybody can be a candidate, and each of them could keep room on the disk occupied.
  void a_few_candidates_payloads_are_fetched_at_once() {
    CandidatesBench bench;
    const std::size_t most = most_candidates_at_once(*bench.chain.registry_ptr());
    const std::set<net::NodeId> first = bench.ask();
    QCOMPARE(first.size(), most + 2);
    QVERIFY(first.contains(bench.id(bench.voters[1])) && first.contains(bench.id(bench.voters[2])));
    QVERIFY(bench.ask().empty());
    // Those that gave nothing come after the others.
    bench.peers.refuse_all();
    bench.executor.run();
    bench.clock.advance(std::chrono::minutes(1));
    const std::set<net::NodeId> second = bench.ask();
    QCOMPARE(second.size(), most + 2);
    for (const std::size_t node : bench.candidates)
      QVERIFY(!first.contains(bench.id(node)) || !second.contains(bench.id(node)));
  }

  // Keys are free, and a block has no room for the contributions of all.
  void a_node_takes_the_contributions_of_so_many_candidates() {
    CandidatesBench bench;
    chain::ChainRules rules = bench.chain.rules();
    rules.most_candidates = 6;
    ContributionBook book{rules, {{0, 0, 8192}}, {}, bench.checks, bench.pool};
    book.open(bench.tip());
    std::map<chain::Verdict, int> verdicts;
    for (const std::size_t node : bench.candidates)
      ++verdicts[book.take(std::make_shared<const HeldContribution>(bench.chain.contribution(node, 500)),
                           bench.tip())
                     .verdict];
    QCOMPARE(verdicts[chain::Verdict::Taken], 6);
    QCOMPARE(verdicts[chain::Verdict::Limit], 14);
    for (const std::size_t node : bench.voters)
      QCOMPARE(book.take(std::make_shared<const HeldContribution>(bench.chain.contribution(node, 500)),
                         bench.tip())
                   .verdict,
               chain::Verdict::Taken);
  }

  // After a cut between all voters each lists its own contribution only, and signs no other vector in the round.
  void a_round_closes_where_no_contribution_is_due() {
    CandidatesBench bench;
    for (const std::size_t node : bench.voters) bench.list(node, node);
    const chain::ChainTip tip = bench.tip();
    QVERIFY(bench.vectors.can_close(*tip.committee, bench.book, *tip.registry));
    chain::BlockBody body;
    body.close = bench.vectors.close(*tip.committee, bench.book, *tip.registry);
    QVERIFY(body.close.has_value() && body.close->contributions.empty());
    QCOMPARE(body.close->vectors.size(), bench.voters.size());
    QVERIFY(bench.chain.append(body).ok());
  }

  void a_round_closes_when_the_only_due_member_left() {
    CandidatesBench bench;
    const std::size_t due = bench.chain.add_node();
    CandidatesBench::need(bench.chain.join(due));
    bench.vectors.open(bench.tip());
    for (const std::size_t node : bench.voters) bench.list(node, due);
    const chain::ChainTip before = bench.tip();
    QVERIFY(!bench.vectors.can_close(*before.committee, bench.book, *before.registry));  // it is not here
    CandidatesBench::need(bench.chain.say(due, chain::Leave{}));
    const chain::ChainTip after = bench.tip();
    bench.vectors.on_committee();
    QVERIFY(bench.vectors.can_close(*after.committee, bench.book, *after.registry));
  }

  void leaves_of_payloads_are_for_members_that_check_rows() {
    for (const std::uint32_t rows : {1u, 2u}) {
      ExchangeBench bench(rows);
      bench.node.take_payload(bench.network, 0);
      const Hash256 root = bench.network.round->works[0].payload;
      const net::NodeId member = bench.network.id(bench.network.others[1]);
      const net::NodeId stranger = test::Round::id_of(4321);
      const auto piece = [&](const net::NodeId& from, What what) {
        return bench.exchange.piece(from, {0, what, root, 0}, bench.network.tip());
      };
      QVERIFY(piece(member, What::Payload).ok());
      QCOMPARE(piece(member, What::PayloadLeaves).ok(), rows == 2);
      const auto refused = piece(stranger, What::PayloadLeaves);
      QVERIFY(!refused.ok());
      QCOMPARE(refused.error().code, ErrorCode::NotFound);
    }
  }

  // ---- Large payloads are read on the thread of the work, and there once

  void a_held_payload_is_not_read_for_its_leaves_data() {
    QTest::addColumn<quint64>("values");
    QTest::newRow("one slice") << quint64{few_values};
    QTest::newRow("many slices") << quint64{many_values};
  }
  void a_held_payload_is_not_read_for_its_leaves() {
    QFETCH(quint64, values);
    ExchangeBench bench(2, values);
    const net::NodeId id = bench.network.id(bench.network.holders[0]);
    const auto payload = std::make_shared<const CountedSource>(bench.payload());
    const auto reading = read_payload(id, *payload);
    payload->reads = 0;
    const std::uint32_t member = bench.network.chain.number(bench.network.holders[0]);
    QVERIFY(bench.node.book.take_payload(member, 0, payload, *reading));
    const Hash256 root = bench.network.round->works[0].payload;
    const auto leaves = bench.exchange.piece(bench.network.id(bench.network.others[1]),
                                             {0, What::PayloadLeaves, root, 0}, bench.network.tip());
    QCOMPARE(payload->reads, 0);
    const std::vector<Hash256> right = *payload_leaves(id, *payload);
    QVERIFY(leaves.ok());
    const PieceAnswer answer = *decode_piece_answer(*leaves);
    QCOMPARE(answer.whole, std::uint64_t{right.size() * sizeof(Hash256)});
    QVERIFY(std::equal(answer.bytes.begin(), answer.bytes.end(), right.front().data()));
  }

  void a_fetched_payload_is_decoded_on_the_thread_of_the_work() {
    ExchangeBench bench(2, many_values);
    bench.node.own.fetcher.check_with(*bench.later);
    chain::Contribution noisy = bench.network.contribution(1);
    const Bytes noise(bench.network.round->payloads[1].size(), 0xff);
    noisy.rows[0].payload = payload_root(bench.network.id(bench.network.holders[1]), noise);
    chain::sign_contribution(noisy, bench.network.chain.key(bench.network.holders[1]),
                             bench.network.chain.rules().network);
    QCOMPARE(
        bench.node.book.take(std::make_shared<const HeldContribution>(noisy), bench.network.opening).verdict,
        chain::Verdict::Taken);
    bench.node.own.sources.script = [&](const net::NodeId&,
                                        const PieceRequest& request) -> std::optional<Expected<Bytes>> {
      if (request.hash != noisy.rows[0].payload) return std::nullopt;
      return answer_from(noise, request.place);
    };
    bench.look_for(std::chrono::seconds(5));
    QCOMPARE(bench.later->jobs.size(), std::size_t{2});
    QCOMPARE(bench.node.book.incomplete().size(), std::size_t{2});
    QCOMPARE(bench.arrived, 0);
    bench.later->run_all();
    QCOMPARE(bench.arrived, 2);
    QCOMPARE(bench.node.book.incomplete().size(), std::size_t{0});
    QVERIFY(bench.entry(0).payloads[0] && bench.entry(0).leaves[0]);
    QVERIFY(!bench.entry(1).payloads[0]);  // nobody can decode it
    const std::size_t asked = bench.asked();
    bench.look_for(std::chrono::seconds(5));
    QCOMPARE(bench.asked(), asked);
  }

  void an_own_payload_that_was_hashed_is_held_at_once() {
    ExchangeBench bench(2, many_values);
    const net::NodeId id = bench.network.id(bench.network.holders[0]);
    bench.take_own(bench.payload(), {*read_payload(id, BytesView(bench.payload()))});
    QVERIFY(bench.later->jobs.empty() && !bench.exchange.checks());
    QVERIFY(bench.entry(0).payloads[0] && bench.entry(0).leaves[0]);
  }

  void an_own_payload_of_before_a_restart_is_checked_on_the_thread_of_the_work() {
    ExchangeBench bench(2, many_values);
    bench.take_own(bench.payload());
    QCOMPARE(bench.later->jobs.size(), std::size_t{1});
    QVERIFY(bench.exchange.checks() && !bench.entry(0).payloads[0]);
    // Nobody is asked for it meanwhile, not even after the close.
    bench.look_for(std::chrono::seconds(5));
    bench.exchange.ask(bench.network.tip(), true, false);
    QCOMPARE(bench.asked(), std::size_t{0});
    bench.later->run_all();
    QVERIFY(!bench.exchange.checks() && bench.entry(0).payloads[0] && bench.entry(0).leaves[0]);
    QCOMPARE(bench.arrived, 1);
  }

  void an_own_payload_that_the_disk_changed_is_fetched() {
    for (const std::uint64_t values : {few_values, many_values}) {
      ExchangeBench bench(2, values);
      Bytes changed = bench.payload();
      changed.back() ^= 1;
      bench.take_own(changed);
      bench.later->run_all();
      QVERIFY(!bench.exchange.checks() && !bench.entry(0).payloads[0]);
      bench.look_for(std::chrono::seconds(10));
      QVERIFY(bench.asked() > 0 && bench.entry(0).payloads[0]);
      QVERIFY(read_all(*bench.entry(0).payloads[0]).value() == bench.payload());
    }
  }

  void a_check_that_ends_after_its_round_or_its_node_counts_for_nothing() {
    std::optional<ExchangeBench> bench(std::in_place, 2u, many_values);
    bench->take_own(bench->payload());
    chain::ChainTip next = bench->network.opening;
    next.opening = Hash256{9};
    bench->exchange.open();
    bench->node.book.open(next);
    bench->later->run_all();
    QVERIFY(!bench->exchange.checks() && bench->node.book.all().empty());
    QCOMPARE(bench->arrived, 0);
    bench.emplace(2u, many_values);
    bench->take_own(bench->payload());
    const std::shared_ptr<test::LaterWork> later = bench->later;
    bench.reset();
    later->run_all();
    QVERIFY(later->jobs.empty());
  }
};

NS_TEST(TestRoundExchange)
#include "test_round_exchange.moc"
