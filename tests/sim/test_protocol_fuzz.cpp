// Messages that are changed at random, straight to the handlers of real nodes on virtual time: thousands of a
// second, from a stranger and from a member, at every method. Nothing may crash, each call has one answer, and
// honest nodes go on. Bugs that are planted in front of a node are found, and valid messages alone don't find
// them. NS_FUZZ_SEED=n repeats a run, NS_LONG=1 sends ten times as many.
#include <QtTest>

#include "core/chain/server.h"
#include "core/exchange/server.h"
#include "core/rounds/pieces.h"
#include "core/sim/identities.h"
#include "core/status/gossip.h"
#include "tests/sim/chain_lab.h"
#include "tests/support/fuzz_target.h"
#include "tests/support/memory_file_env.h"
#include "tests/support/message_source.h"
#include "tests/support/test_main.h"
#include "tests/support/village.h"

using namespace neuroshard;
using test::ChainLab;
using test::FuzzTarget;
using test::Message;
using test::MessagePool;

namespace {

constexpr std::size_t calls_of_one_id = 20;  // then the stranger makes another key

std::uint64_t first_seed() {
  const int seed = qEnvironmentVariableIntValue("NS_FUZZ_SEED");
  return seed == 0 ? 1 : static_cast<std::uint64_t>(seed);
}

std::uint64_t times(std::uint64_t in_ci) {
  return qEnvironmentVariableIntValue("NS_LONG") != 0 ? 10 * in_ci : in_ci;
}

// Changes a node's own requests; empty: they leave as they are.
using Edit = std::function<void(net::Method method, Bytes* request)>;

// Records requests on their way out.
class RecordingCaller final : public net::PeerCaller {
 public:
  RecordingCaller(net::PeerCaller& out, MessagePool& pool, const Edit& edit)
      : out_(out), pool_(pool), edit_(edit) {}
  void call(const net::Contact& peer, net::Method method, Bytes request, Duration deadline,
            net::CallDone done) override {
    pool_.learn(method, request);
    if (edit_) edit_(method, &request);
    out_.call(peer, method, std::move(request), deadline, std::move(done));
  }

 private:
  net::PeerCaller& out_;
  MessagePool& pool_;
  const Edit& edit_;
};

// An attacker with a new key for every few calls, or with one that it keeps.
class Attacker {
 public:
  Attacker(const MessagePool& pool, const Clock& clock, std::uint64_t seed)
      : pool_(pool), clock_(clock), rng_(seed), mutator_(rng_) {
    take_key(random_key());
  }
  void take_key(crypto::KeyPair key, std::optional<std::uint32_t> member = std::nullopt) {
    key_.emplace(std::move(key));
    from_.id = crypto::node_id(key_->public_key());
    from_.endpoint = {platform::IpAddress::v4(static_cast<std::uint8_t>(50 + rng_.below(50)),
                                              static_cast<std::uint8_t>(rng_.below(256)),
                                              static_cast<std::uint8_t>(rng_.below(256)), 1),
                      9000};
    changes_.emplace(pool_, mutator_, *key_, clock_, member);
    source_.emplace(pool_, mutator_, *changes_);
    left_ = calls_of_one_id;
  }
  test::SignedChanges& changes() { return *changes_; }
  test::FuzzMessage next() {
    if (!keeps_key && left_-- == 0) take_key(random_key());
    return valid_only ? source_->next_valid() : source_->next();
  }
  std::vector<Message> own_messages() { return changes_->own_messages(); }
  const net::Caller& from() const { return from_; }
  Rng& rng() { return rng_; }

  bool keeps_key = false;
  bool valid_only = false;

 private:
  crypto::KeyPair random_key() {
    Hash256 seed{};
    for (std::uint8_t& byte : seed) byte = static_cast<std::uint8_t>(rng_.next());
    return crypto::KeyPair::from_seed(seed);
  }

  const MessagePool& pool_;
  const Clock& clock_;
  Rng rng_;
  test::Mutator mutator_;
  std::optional<crypto::KeyPair> key_;
  net::Caller from_;
  std::optional<test::SignedChanges> changes_;
  std::optional<test::MessageSource> source_;
  std::size_t left_ = 0;
};

std::string text_of(const FuzzTarget& target, std::uint64_t seed) {
  std::string text = fmt::format("seed {}, {} calls:", seed, target.calls());
  for (const auto& [kind, counts] : target.counts())
    text += fmt::format(" {} {} ({} answers, {} errors, {} faults);", to_string(kind), counts.calls,
                        counts.answers, counts.errors, counts.faults);
  for (const std::string& finding : target.findings()) text += "\n  FINDING: " + finding;
  return text;
}

// How the nodes are, where they don't go on.
std::string text_of(sim::ChainWorld& world) {
  std::string text = fmt::format("{} blocks, {} rounds, {} conflicts", world.seen().blocks,
                                 world.seen().rounds, world.seen().conflicts);
  for (std::size_t node = 0; node < world.size(); ++node) {
    const chain::ChainView view = world.chain(node).view();
    const rounds::TrainingView training = world.training(node).view();
    text += fmt::format(
        "\n  node {} {}: height {} round {} view {} members {} voters {} committee {} active {} heard {} due "
        "{} "
        "stalled {}; holds {} closing {} contributions {} complete {} vectors {}",
        node, chain::to_string(view.state), view.height, view.round, view.view, view.members, view.voters,
        view.committee, view.active_units, view.heard_units, view.block_due, view.stalled, training.holds,
        training.closing, training.contributions, training.complete, training.vectors);
  }
  return text;
}

// A world of chain nodes, all of whose messages are recorded, and a target among them.
struct AttackedWorld {
  AttackedWorld(sim::ChainWorldOptions options, std::uint64_t seed)
      : lab(with_seed(std::move(options), seed), pool, edits),
        target([this](const net::Caller& from, net::Method method, ByteSpan request,
                      const net::Reply& reply) { give(from, method, request, reply); }) {}
  static sim::ChainWorldOptions with_seed(sim::ChainWorldOptions options, std::uint64_t seed) {
    options.seed = seed;
    return options;
  }
  void give(const net::Caller& from, net::Method method, ByteSpan request, const net::Reply& reply) {
    sim::ChainWorld& world = lab.world;
    if (chain::ChainServer::handles(method)) return world.chain(victim).on_call(from, method, request, reply);
    if (method == net::Method::RoundPiece) return world.training(victim).on_call(from, request, reply);
    reply(make_error(ErrorCode::Unsupported, "no such method"));
  }

  struct RecordedLab {
    RecordedLab(sim::ChainWorldOptions options, std::optional<MessagePool>& pool,
                std::map<std::size_t, Edit>& edits)
        : world(options, test::lab_model, {},
                [this, &pool, &edits](std::size_t node, net::PeerCaller& out, const crypto::KeyPair&) {
                  if (!pool) pool.emplace(world.network_id());
                  return std::make_unique<RecordingCaller>(out, *pool, edits[node]);
                }) {
      world.start_all();
    }
    sim::ChainWorld world;
  };
  std::optional<MessagePool> pool;
  std::map<std::size_t, Edit> edits;  // by node
  RecordedLab lab;
  std::size_t victim = 0;
  FuzzTarget target;
};

class TestProtocolFuzz : public QObject {
  Q_OBJECT
 private Q_SLOTS:
  void chain_and_rounds_hold_data();
  void chain_and_rounds_hold();
  void leaders_with_changed_blocks();
  void members_hold();
  void planted_bugs_are_found_data();
  void planted_bugs_are_found();
};

void TestProtocolFuzz::chain_and_rounds_hold_data() {
  QTest::addColumn<int>("nodes");
  QTest::addColumn<bool>("is_member");
  QTest::addColumn<bool>("open_start");
  QTest::addColumn<int>("calls");
  QTest::newRow("a stranger, four members") << 4 << false << false << 15'000;
  QTest::newRow("one of five members") << 5 << true << false << 15'000;
  QTest::newRow("a stranger at an open start") << 4 << false << true << 6000;
  QTest::newRow("one of twenty members, who relay") << 20 << true << false << 3000;
}

void TestProtocolFuzz::chain_and_rounds_hold() {
  QFETCH(int, nodes);
  QFETCH(bool, is_member);
  QFETCH(bool, open_start);
  QFETCH(int, calls);
  const auto all = static_cast<std::size_t>(nodes);
  const std::uint64_t seed = first_seed();
  auto options = test::lab_options(seed, all);
  options.open_start = open_start;
  AttackedWorld attacked(std::move(options), seed);
  sim::ChainWorld& world = attacked.lab.world;
  const std::size_t honest = is_member ? all - 1 : all;
  if (is_member) world.set_honest(all - 1, false);
  QVERIFY(open_start || world.run_to_round(1, 20 * test::lab_round));
  Attacker attacker(*attacked.pool, world.world().clock(), seed);
  if (is_member) {
    const chain::MemberRecord* member = world.chain(0).history()->tip().registry->find(world.id(all - 1));
    QVERIFY(member != nullptr);
    attacker.take_key(sim::key_of_node(seed, all - 1), member->number);
    attacker.keeps_key = true;
  }
  std::uint64_t learned = 0;
  const auto limit = times(static_cast<std::uint64_t>(calls));
  while (attacked.target.calls() < limit && attacked.target.findings().empty()) {
    world.world().run_for(std::chrono::milliseconds(50));
    const chain::History* history = world.chain(0).history();
    for (; history != nullptr && learned <= history->tip().height(); ++learned)
      if (const chain::CertifiedBlock* block = history->find(learned)) attacked.pool->learn_block(*block);
    for (const Message& message : attacker.own_messages())
      if (message.method == net::Method::RoundPiece || chain::ChainServer::handles(message.method))
        attacked.pool->learn(message.method, message.request);
    for (int i = 0; i < 30; ++i) {
      attacked.victim = attacker.rng().below(honest);
      attacked.target.call(attacker.from(), attacker.next().message);
    }
  }
  const std::uint64_t round = world.round(0);
  const Duration patience = std::chrono::minutes(open_start ? 5 : 2);  // silent keys cost an attempt to begin
  const MonotonicTime ended = world.world().now();
  const bool goes_on = world.run_to_round(round + 2, patience);
  qInfo("two rounds later after %.0f s", to_seconds(world.world().now() - ended));
  attacked.target.expect_answers();
  qInfo("%s", text_of(attacked.target, seed).c_str());
  QVERIFY2(attacked.target.findings().empty(), text_of(attacked.target, seed).c_str());
  QVERIFY2(goes_on, text_of(world).c_str());
  QCOMPARE(world.seen().conflicts, 0u);
  QCOMPARE(world.seen().wrong_anchors, 0u);
}

// A member whose blocks are changed on their way out where it leads: those that it leads are judged whole,
// because place, root and leader are right.
void TestProtocolFuzz::leaders_with_changed_blocks() {
  constexpr std::size_t all = 4, liar = 3;
  const std::uint64_t seed = first_seed();
  auto options = test::lab_options(seed, all);
  options.trainer.step_time = test::lab_second / test::lab_inner_steps;
  options.training.clock.first_deadline = 3 * test::lab_second;
  options.chain.agreement = {test::lab_second, 4 * test::lab_second};
  AttackedWorld attacked(std::move(options), seed);
  sim::ChainWorld& world = attacked.lab.world;
  world.set_honest(liar, false);
  QVERIFY(world.run_to_round(1, 20 * test::lab_round));
  Attacker attacker(*attacked.pool, world.world().clock(), seed);
  const chain::MemberRecord* member = world.chain(0).history()->tip().registry->find(world.id(liar));
  QVERIFY(member != nullptr);
  attacker.take_key(sim::key_of_node(seed, liar), member->number);
  std::uint64_t changed = 0;
  attacked.edits[liar] = [&](net::Method method, Bytes* request) {
    if (method != net::Method::ChainPost || attacker.rng().below(8) == 0) return;
    auto other = attacker.changes().change_body(*request);
    if (!other) return;
    *request = std::move(*other);
    ++changed;
  };
  const std::uint64_t rounds = times(200);
  const bool there = world.run_to_round(rounds, static_cast<std::int64_t>(rounds) * 20 * test::lab_round);
  qInfo("seed %llu: %llu changed blocks, %llu rounds", (unsigned long long)seed, (unsigned long long)changed,
        (unsigned long long)world.round(0));
  QVERIFY2(there, text_of(world).c_str());
  QVERIFY2(changed >= 50, qPrintable(QString::number(changed)));
  QCOMPARE(world.seen().conflicts, 0u);
  QCOMPARE(world.seen().wrong_anchors, 0u);
  attacked.edits[liar] = nullptr;
}

// No limit keeps a changed message from its handler.
net::MethodLimits wide() {
  return net::MethodLimits(
      std::make_shared<net::RequestLimiter>(net::RequestLimits{1e6, 1e6, 16, 4}, true, 1));
}

// The methods of a member beside the chain, as a node registers them.
struct Services {
  explicit Services(test::Host& host, test::Village& village)
      : gossip({*host.key, host.member->caller(), host.executor, village.world.clock(),
                [&host](std::size_t most) { return host.member->some(most); }},
               test::network_id(), std::nullopt, false, {}, 1),
        content({host.executor, host.executor, village.world.clock(), files, logger}, {}, false, 1) {
    auto& methods = host.member->methods();
    registrations.push_back(
        methods.add({net::Method::StatusPull}, wide(),
                    [this](const net::Caller& from, net::Method, ByteSpan request, const net::Reply& reply) {
                      gossip.on_call(from, request, reply);
                    }));
    registrations.push_back(methods.add(
        {net::Method::ContentNamed, net::Method::ContentPieces, net::Method::ContentPiece}, wide(),
        [this](const net::Caller& from, net::Method method, ByteSpan request, const net::Reply& reply) {
          content.on_call(from, method, request, reply);
        }));
    gossip.set_own({});
    gossip.start();
  }
  NullLogger logger;
  testing::MemoryFileEnv files;
  status::StatusGossip gossip;
  exchange::ContentServer content;
  std::vector<net::MethodTable::Registration> registrations;
};

// Records what a node is asked, and passes it on.
class RecordingService final : public net::PeerService {
 public:
  RecordingService(net::PeerService& node, MessagePool& pool) : node_(node), pool_(pool) {}
  void on_call(const net::Caller& from, net::Method method, Bytes request, net::Respond respond) override {
    pool_.learn(method, request);
    node_.on_call(from, method, std::move(request), std::move(respond));
  }
  void on_stream(const net::Caller& from, net::Method method,
                 std::shared_ptr<net::PeerStream> stream) override {
    node_.on_stream(from, method, std::move(stream));
  }

 private:
  net::PeerService& node_;
  MessagePool& pool_;
};

void TestProtocolFuzz::members_hold() {
  const std::uint64_t seed = first_seed();
  MessagePool pool(test::network_id());
  test::Village village;
  test::Host& tracker = village.add({}, true);
  test::Host& first = village.add({&tracker});
  test::Host& second = village.add({&tracker});
  const std::vector<test::Host*> hosts = {&tracker, &first, &second};
  std::deque<Services> services;
  std::deque<RecordingService> recorders;
  for (test::Host* host : hosts) {
    services.emplace_back(*host, village);
    recorders.emplace_back(*host->member, pool);
    host->transport->serve(&recorders.back());
  }
  const Bytes file(600'000, 7);
  const exchange::ContentRef content{crypto::sha256(file), file.size()};
  QVERIFY(storage::write_file_atomic(services[1].files, "/file", file).ok());
  QVERIFY(services[1].content.offer(content, "/file"));
  services[1].content.set_name("manifest", {1, content, Bytes(64, 1)});
  pool.learn_hash(content.hash);
  village.world.run_for(std::chrono::seconds(60));

  Attacker attacker(pool, village.world.clock(), seed);
  test::Host* victim = &first;
  FuzzTarget target(
      [&](const net::Caller& from, net::Method method, ByteSpan request, const net::Reply& reply) {
        victim->member->on_call(from, method, Bytes(request.begin(), request.end()),
                                [reply](Expected<Bytes> answer) { reply(std::move(answer)); });
      });
  const auto limit = times(20'000);
  while (target.calls() < limit && target.findings().empty()) {
    for (const Message& message : attacker.own_messages())
      if (!chain::ChainServer::handles(message.method) && message.method != net::Method::RoundPiece)
        pool.learn(message.method, message.request);
    for (int i = 0; i < 40; ++i) {
      victim = hosts[attacker.rng().below(hosts.size())];
      village.meant_to_be_banned.insert(attacker.from().id);
      const Message message = attacker.next().message;
      village.meant_to_be_banned.insert(attacker.from().id);
      target.call(attacker.from(), message);
    }
    village.world.run_for(std::chrono::milliseconds(200));
  }
  village.world.run_for(std::chrono::seconds(60));
  target.expect_answers();
  qInfo("%s", text_of(target, seed).c_str());
  QVERIFY2(target.findings().empty(), text_of(target, seed).c_str());
  // Honest members still hear each other.
  std::optional<Expected<Bytes>> answer;
  second.member->caller().call({first.id, first.endpoint}, net::Method::Ping, Bytes(4, 1),
                               std::chrono::seconds(5),
                               [&](Expected<Bytes> got) { answer = std::move(got); });
  QVERIFY(village.run_until([&] { return answer.has_value(); }, std::chrono::seconds(10)));
  QVERIFY2(answer->ok(), answer->ok() ? "" : answer->error().describe().c_str());
  for (Services& one : services) one.registrations.clear();
  for (test::Host* host : hosts) host->transport->serve(host->member.get());
}

// ---- The fuzzer itself

// A reader with a bug: whether these bytes would make it go wrong.
using Bug = bool (*)(net::Method method, ByteSpan request, const Hash256& network);

bool reads_beyond_the_end(net::Method method, ByteSpan request, const Hash256&) {
  if (method != net::Method::ChainPost || request.size() < 5 || request[0] != rounds::contribution_kind)
    return false;
  return load_le<std::uint32_t>(request.data() + 1) > request.size() - 5;  // that no reader checks
}

bool believes_a_count(net::Method method, ByteSpan request, const Hash256&) {
  if (method != net::Method::ChainPost || request.size() < 4 || request[0] != 14) return false;
  return load_le<std::uint16_t>(request.data() + 2) > chain::max_relayed_items;
}

bool adds_up_to_nothing(net::Method method, ByteSpan request, const Hash256&) {
  if (method != net::Method::RoundPiece) return false;
  const auto piece = rounds::decode_piece_request(request);
  return piece.ok() && piece->place + (256u << 10) < piece->place;
}

bool trusts_a_signed_height(net::Method method, ByteSpan request, const Hash256& network) {
  if (method != net::Method::ChainPost || request.empty() || request[0] != 8) return false;
  const auto beat = chain::decode_heartbeat(request.subspan(1));
  return beat.ok() && chain::heartbeat_holds(*beat, network) && beat->tip.height > (1u << 20);
}

bool trusts_a_body(net::Method method, ByteSpan request, const Hash256& network) {
  if (method != net::Method::ChainPost || request.empty() || request[0] != 1) return false;
  const auto read = chain::decode_item(request, network);
  if (!read.ok()) return false;
  const auto& close = std::get<chain::Proposal>(*read).block->body.close;
  return close && std::any_of(close->contributions.begin(), close->contributions.end(),
                              [](const chain::ContributionEntry& entry) { return entry.member > 1000; });
}

struct Planted {
  const char* name;
  Bug strikes;
};
constexpr Planted planted[] = {
    {"a length is believed", reads_beyond_the_end},
    {"a count is believed", believes_a_count},
    {"a place overflows", adds_up_to_nothing},
    {"a signature is taken for the truth", trusts_a_signed_height},
    {"a proposal with the right root names a member that is none", trusts_a_body},
};

void TestProtocolFuzz::planted_bugs_are_found_data() {
  QTest::addColumn<int>("number");
  int number = 0;
  for (const Planted& one : planted) QTest::newRow(one.name) << number++;
}

void TestProtocolFuzz::planted_bugs_are_found() {
  QFETCH(int, number);
  const Bug bug = planted[number].strikes;
  const std::uint64_t seed = first_seed();
  AttackedWorld attacked(test::lab_options(seed, 4), seed);
  sim::ChainWorld& world = attacked.lab.world;
  QVERIFY(world.run_to_round(2, 20 * test::lab_round));
  for (std::uint64_t height = 0; height <= world.chain(0).history()->tip().height(); ++height)
    attacked.pool->learn_block(*world.chain(0).history()->find(height));
  constexpr std::uint64_t most = 500'000, most_valid = 30'000;  // the last bug takes some 50,000
  const auto calls_until_found = [&](bool valid_only) {
    const std::uint64_t limit = valid_only ? most_valid : most;
    Attacker attacker(*attacked.pool, world.world().clock(), seed);
    attacker.valid_only = valid_only;
    for (const Message& message : attacker.own_messages())
      attacked.pool->learn(message.method, message.request);
    // Where the bug strikes, nobody answers.
    FuzzTarget target([&](const net::Caller&, net::Method method, ByteSpan request, const net::Reply& reply) {
      if (!bug(method, request, world.network_id())) reply(Bytes());
    });
    while (target.calls() < limit && target.findings().empty())
      target.call(attacker.from(), attacker.next().message);
    return target.findings().empty() ? limit : target.calls();
  };
  const std::uint64_t found = calls_until_found(false);
  qInfo("found after %llu calls", (unsigned long long)found);
  QVERIFY(found < most);
  QCOMPARE(calls_until_found(true), most_valid);
}

}  // namespace

NS_TEST(TestProtocolFuzz)
#include "test_protocol_fuzz.moc"
