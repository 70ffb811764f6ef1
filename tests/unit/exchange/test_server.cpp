// The files that a node serves, and its refusals: within its bounds, never a file that is no longer what
// it was offered as, and with a word to Conduct on who asks for nonsense. And names, with what others claim.
#include <QtTest>
#include <deque>

#include "core/exchange/names.h"
#include "tests/support/exchange_hosts.h"
#include "tests/support/fault_file_env.h"
#include "tests/support/test_main.h"
#include "tests/support/time.h"

using namespace neuroshard;            // NOLINT
using namespace neuroshard::exchange;  // NOLINT
using neuroshard::test::ExchangeHosts;
using neuroshard::test::made_up_bytes;

namespace {

using neuroshard::test::second;
constexpr std::size_t size = 40 * piece_bytes;

Expected<Bytes> ask(ExchangeHosts& hosts, net::Method method, Bytes request) {
  std::optional<Expected<Bytes>> answer;
  hosts.network.caller(hosts.host(0).number)
      .call(hosts.host(1).contact, method, std::move(request), 10 * second,
            [&answer](Expected<Bytes> got) { answer = std::move(got); });
  hosts.world.run_until([&] { return answer.has_value(); }, hosts.world.now() + 11 * second);
  return answer.value_or(make_error(ErrorCode::Internal, "no answer"));
}

// Runs its tasks and timers when the test says so.
class HeldExecutor final : public Executor {
 public:
  bool post(Task task) override {
    if (!full) tasks_.push_back(std::move(task));
    return !full;
  }
  std::unique_ptr<TimerHandle> post_after(Duration, Task task) override {
    timers_.push_back(std::move(task));
    return std::make_unique<TimerHandle>();
  }
  bool on_thread() const override { return true; }
  void run() {
    while (!tasks_.empty()) {
      const Task task = std::move(tasks_.front());
      tasks_.pop_front();
      task();
    }
  }
  void run_timers() {
    for (const Task& task : std::exchange(timers_, {})) task();
  }
  bool full = false;

 private:
  std::deque<Task> tasks_, timers_;
};

class CountedWarnings final : public Logger {
 public:
  void write(const LogRecord& record) override { warnings += record.level == LogLevel::Warning; }
  int warnings = 0;
};

// Asks a server; the answer comes later.
void ask_later(ContentServer& server, net::Method method, const PieceRequest& request,
               std::vector<Expected<Bytes>>& answers) {
  server.on_call({}, method, encode_piece_request(request),
                 [&answers](net::Answer answer) { answers.push_back(std::move(answer.with)); });
}

}  // namespace

class TestExchangeServer : public QObject {
  Q_OBJECT
 private Q_SLOTS:
  void gives_what_it_holds();
  void nonsense_is_refused_and_counted();
  void one_caller_gets_so_much_at_a_time();
  void strangers_leave_places_for_members();
  void pieces_leave_while_a_large_file_is_hashed();
  void who_asks_too_often_is_refused();
  void a_file_that_changed_is_not_given();
  void a_file_that_is_gone_is_not_offered();
  void too_many_files_are_refused_with_one_line_in_the_log();
  void a_file_that_can_not_be_opened_now_is_kept();
  void a_full_queue_loses_no_result();
  void a_list_is_only_given_for_the_bytes_that_were_read();
  void a_part_of_a_file_is_given_like_a_file();
  void when_it_was_asked_for_is_known();
  void names_are_told_and_lies_in_them_seen();
  void a_false_claim_takes_no_honest_one_along();
};

void TestExchangeServer::gives_what_it_holds() {
  ExchangeHosts hosts(2);
  const Bytes bytes = made_up_bytes(size, 1);
  const ContentRef content = hosts.give(1, bytes);
  const auto list = ask(hosts, net::Method::ContentPieces, encode_piece_request({content.hash, 0}));
  QVERIFY(list.ok());
  QCOMPARE(decode_piece_list(*list, 0)->hashes.size(), std::size_t{40});
  const auto rest = ask(hosts, net::Method::ContentPieces, encode_piece_request({content.hash, 39}));
  QCOMPARE(decode_piece_list(*rest, 39)->hashes.at(0), decode_piece_list(*list, 0)->hashes.at(39));
  const auto piece = ask(hosts, net::Method::ContentPiece, encode_piece_request({content.hash, 7}));
  QVERIFY(piece.ok() && std::equal(piece->begin(), piece->end(), bytes.begin() + 7 * piece_bytes));
  hosts.host(1).server->withdraw(content.hash);
  const auto gone = ask(hosts, net::Method::ContentPiece, encode_piece_request({content.hash, 7}));
  QVERIFY(gone.error().code == ErrorCode::NotFound);
}

void TestExchangeServer::nonsense_is_refused_and_counted() {
  ExchangeHosts hosts(2);
  const ContentRef content = hosts.give(1, made_up_bytes(size, 1));
  QVERIFY(!ask(hosts, net::Method::ContentPiece, {}).ok());
  QVERIFY(!ask(hosts, net::Method::ContentPieces, Bytes(37)).ok());
  QVERIFY(!ask(hosts, net::Method::ContentNamed, Bytes(1, 0)).ok());
  QVERIFY(!ask(hosts, net::Method::ContentPiece, encode_piece_request({content.hash, 40})).ok());
  QVERIFY(!ask(hosts, net::Method::ContentPieces, encode_piece_request({content.hash, ~0u})).ok());
  QCOMPARE(hosts.conduct.faults(net::Fault::Malformed), std::uint64_t{5});
  // A request for a missing file is no fault of the caller.
  QVERIFY(!ask(hosts, net::Method::ContentPiece, encode_piece_request({Hash256{}, 0})).ok());
  QCOMPARE(hosts.conduct.faults(net::Fault::Malformed), std::uint64_t{5});
}

void TestExchangeServer::one_caller_gets_so_much_at_a_time() {
  ExchangeHosts hosts(2);
  const ContentRef content = hosts.give(1, made_up_bytes(size, 1));
  const net::Caller from{hosts.host(0).contact.id, hosts.host(0).contact.endpoint};
  int given = 0, refused = 0;
  for (std::uint32_t i = 0; i < 20; ++i)
    hosts.host(1).methods->on_call(from, net::Method::ContentPiece, encode_piece_request({content.hash, i}),
                                   [&](const Expected<Bytes>& answer) {
                                     if (answer.ok())
                                       ++given;
                                     else if (answer.error().code == ErrorCode::Exhausted)
                                       ++refused;
                                   });
  hosts.world.run_for(second);
  QCOMPARE(given, 8);
  QCOMPARE(refused, 12);
  // Waiting is no fault, and its place is free again.
  QCOMPARE(hosts.conduct.points(from.id), 0.0);
  QVERIFY(ask(hosts, net::Method::ContentPiece, encode_piece_request({content.hash, 0})).ok());
}

// The disk does nothing, so every request that is taken waits.
void TestExchangeServer::strangers_leave_places_for_members() {
  HeldExecutor executor;
  ManualClock clock;
  neuroshard::testing::MemoryFileEnv files;
  NullLogger logger;
  net::PeerRanks ranks;
  std::size_t refused = 0;
  const ContentRef content{Hash256{1}, 10};
  ContentServer server({executor, executor, clock, files, logger, &ranks}, {});
  QVERIFY(server.offer(content, "/file"));
  // Eight requests of one key; the number of those that are refused.
  const auto ask_eight = [&](std::uint8_t key, std::uint8_t network) {
    net::Caller from;
    from.id.fill(key);
    from.endpoint = {platform::IpAddress::v4(11, 22, network, key), 9000};
    refused = 0;
    for (int i = 0; i < 8; ++i)
      server.on_call(from, net::Method::ContentPieces, encode_piece_request({content.hash, 0}),
                     [&refused](const net::Answer& answer) {
                       refused += !answer.with.ok() && answer.with.error().code == ErrorCode::Exhausted;
                     });
    return refused;
  };
  // Of one group of addresses: 16.
  for (const std::uint8_t key : {1, 2}) QCOMPARE(ask_eight(key, 1), std::size_t{0});
  QCOMPARE(ask_eight(3, 1), std::size_t{8});
  // Of all strangers: 43.
  for (const std::uint8_t key : {4, 5, 6}) QCOMPARE(ask_eight(key, key), std::size_t{0});
  QCOMPARE(ask_eight(7, 7), std::size_t{5});
  QCOMPARE(ask_eight(8, 8), std::size_t{8});
  net::NodeId member{};
  member.fill(9);
  ranks.set_members({{member, net::PeerRank::Known}});
  QCOMPARE(ask_eight(9, 1), std::size_t{0});
}

void TestExchangeServer::pieces_leave_while_a_large_file_is_hashed() {
  HeldExecutor executor;
  ManualClock clock;
  neuroshard::testing::MemoryFileEnv files;
  NullLogger logger;
  std::vector<Expected<Bytes>> answers;
  ServerLimits limits;
  limits.hashed_at_once = 1;
  ContentServer server({executor, executor, clock, files, logger}, limits);
  const Bytes bytes = made_up_bytes(3 * piece_bytes, 1);
  QVERIFY(storage::write_file_atomic(files, "/file", bytes).ok());
  const ContentRef content{crypto::sha256(bytes), bytes.size()};
  QVERIFY(server.offer(content, "/file"));
  const Bytes other = made_up_bytes(piece_bytes, 2);
  QVERIFY(storage::write_file_atomic(files, "/other", other).ok());
  const ContentRef read{crypto::sha256(other), other.size()};
  QVERIFY(server.offer(read, "/other"));
  ask_later(server, net::Method::ContentPieces, {read.hash, 0}, answers);
  executor.run();
  answers.clear();
  ask_later(server, net::Method::ContentPieces, {content.hash, 0}, answers);
  ask_later(server, net::Method::ContentPiece, {content.hash, 1}, answers);
  ask_later(server, net::Method::ContentPiece, {read.hash, 0}, answers);
  executor.run();
  QCOMPARE(answers.size(), std::size_t{3});
  // A piece of the large one would come too late for its caller, who asks again.
  QVERIFY(!answers[0].ok() && answers[0].error().code == ErrorCode::Exhausted);
  QVERIFY(answers[1].ok() && *answers[1] == other);
  QVERIFY(answers[2].ok());
  QCOMPARE(decode_piece_list(*answers[2], 0)->hashes.size(), std::size_t{3});
  ask_later(server, net::Method::ContentPiece, {content.hash, 1}, answers);
  executor.run();
  QVERIFY(answers[3].ok() && answers[3]->size() == piece_bytes);
}

void TestExchangeServer::who_asks_too_often_is_refused() {
  ExchangeHosts hosts(2);
  const net::Caller from{hosts.host(0).contact.id, hosts.host(0).contact.endpoint};
  int refused = 0;
  for (int i = 0; i < 1000; ++i)
    hosts.host(1).methods->on_call(from, net::Method::ContentNamed, encode_name("manifest"),
                                   [&](const Expected<Bytes>& answer) {
                                     refused += !answer.ok() && answer.error().code == ErrorCode::Exhausted;
                                   });
  QVERIFY(refused >= 190);
  QCOMPARE(hosts.conduct.faults(net::Fault::Flood), static_cast<std::uint64_t>(refused));
}

void TestExchangeServer::a_file_that_changed_is_not_given() {
  ExchangeHosts hosts(2);
  const ContentRef content = hosts.give(1, made_up_bytes(size, 1));
  // After its list was sent: the piece shows it.
  QVERIFY(ask(hosts, net::Method::ContentPieces, encode_piece_request({content.hash, 0})).ok());
  hosts.host(1).files.flip("/file1", 3 * piece_bytes);
  QVERIFY(ask(hosts, net::Method::ContentPiece, encode_piece_request({content.hash, 2})).ok());
  QVERIFY(ask(hosts, net::Method::ContentPiece, encode_piece_request({content.hash, 3})).error().code ==
          ErrorCode::NotFound);
  QCOMPARE(hosts.host(1).gone, std::vector<Hash256>{content.hash});
  QVERIFY(!hosts.host(1).server->holds(content.hash));
  // Before: nobody receives a list of it.
  hosts.host(1).server->offer(content, "/file1");
  QVERIFY(ask(hosts, net::Method::ContentPieces, encode_piece_request({content.hash, 0})).error().code ==
          ErrorCode::NotFound);
  QVERIFY(!hosts.host(1).server->holds(content.hash));
  // Nor a piece, whose list the caller has from before this node's start.
  hosts.host(1).server->offer(content, "/file1");
  QVERIFY(ask(hosts, net::Method::ContentPiece, encode_piece_request({content.hash, 3})).error().code ==
          ErrorCode::NotFound);
  QVERIFY(!hosts.host(1).server->holds(content.hash));
}

void TestExchangeServer::a_file_that_is_gone_is_not_offered() {
  ExchangeHosts hosts(2);
  const ContentRef content = hosts.give(1, made_up_bytes(size, 1));
  QVERIFY(hosts.host(1).files.remove_file("/file1").ok());
  QVERIFY(!ask(hosts, net::Method::ContentPiece, encode_piece_request({content.hash, 0})).ok());
  QVERIFY(!hosts.host(1).server->holds(content.hash));
}

void TestExchangeServer::too_many_files_are_refused_with_one_line_in_the_log() {
  HeldExecutor executor;
  ManualClock clock;
  neuroshard::testing::MemoryFileEnv files;
  CountedWarnings logger;
  ServerLimits limits;
  limits.files = 1;
  ContentServer server({executor, executor, clock, files, logger}, limits);
  QVERIFY(server.offer({Hash256{1}, 10}, "/one"));
  QVERIFY(server.offer({Hash256{1}, 10}, "/one"));
  QCOMPARE(logger.warnings, 0);
  for (int i = 0; i < 3; ++i) QVERIFY(!server.offer({Hash256{2}, 10}, "/two"));
  QCOMPARE(logger.warnings, 1);
  server.withdraw(Hash256{1});
  QVERIFY(server.offer({Hash256{2}, 10}, "/two"));
}

// Too many files are open, and soon fewer are.
void TestExchangeServer::a_file_that_can_not_be_opened_now_is_kept() {
  HeldExecutor executor;
  ManualClock clock;
  neuroshard::testing::MemoryFileEnv memory;
  neuroshard::testing::FaultFileEnv files(memory, {.busy_opens = 2});
  NullLogger logger;
  std::vector<Expected<Bytes>> answers;
  int gone = 0;
  ContentServer server({executor, executor, clock, files, logger}, {}, [&gone](const Hash256&) { ++gone; });
  const Bytes bytes = made_up_bytes(2 * piece_bytes, 1);
  QVERIFY(storage::write_file_atomic(memory, "/file", bytes).ok());
  const ContentRef content{crypto::sha256(bytes), bytes.size()};
  QVERIFY(server.offer(content, "/file"));
  const auto ask_both = [&] {
    answers.clear();
    for (const net::Method method : {net::Method::ContentPiece, net::Method::ContentPieces})
      ask_later(server, method, {content.hash, 1}, answers);
    executor.run();
  };
  for (int time = 0; time < 2; ++time) {
    ask_both();
    QCOMPARE(answers.size(), std::size_t{2});
    for (const auto& answer : answers) QVERIFY(!answer.ok() && answer.error().code == ErrorCode::Exhausted);
    QVERIFY(server.holds(content.hash) && gone == 0);
  }
  ask_both();
  QCOMPARE(answers.size(), std::size_t{2});
  QVERIFY(answers[0].ok() && answers[1].ok());
}

// The disk's results wait until the peers' executor has room for them.
void TestExchangeServer::a_full_queue_loses_no_result() {
  HeldExecutor executor, disk;
  ManualClock clock;
  neuroshard::testing::MemoryFileEnv files;
  NullLogger logger;
  std::vector<Expected<Bytes>> answers;
  ContentServer server({executor, disk, clock, files, logger}, {});
  const Bytes bytes = made_up_bytes(2 * piece_bytes, 1);
  QVERIFY(storage::write_file_atomic(files, "/file", bytes).ok());
  const ContentRef content{crypto::sha256(bytes), bytes.size()};
  QVERIFY(server.offer(content, "/file"));
  for (const net::Method method : {net::Method::ContentPiece, net::Method::ContentPieces})
    ask_later(server, method, {content.hash, 1}, answers);
  for (int result = 0; result < 2; ++result) {  // the list's, then the piece's
    executor.full = true;
    disk.run();
    executor.full = false;
    executor.run_timers();
    executor.run();
  }
  QCOMPARE(answers.size(), std::size_t{2});
  QVERIFY(answers[0].ok() && answers[1].ok());
}

void TestExchangeServer::a_list_is_only_given_for_the_bytes_that_were_read() {
  HeldExecutor executor;
  ManualClock clock;
  neuroshard::testing::MemoryFileEnv files;
  NullLogger logger;
  ContentServer server({executor, executor, clock, files, logger}, {});
  const Bytes two = made_up_bytes(2 * piece_bytes, 1), many = made_up_bytes(size, 2);
  QVERIFY(storage::write_file_atomic(files, "/two", two).ok());
  QVERIFY(storage::write_file_atomic(files, "/copy", two).ok());
  QVERIFY(storage::write_file_atomic(files, "/many", many).ok());
  const ContentRef content{crypto::sha256(two), two.size()};
  std::vector<Expected<Bytes>> answers;
  const auto ask_list = [&](std::uint32_t first) {
    server.on_call({}, net::Method::ContentPieces, encode_piece_request({content.hash, first}),
                   [&answers](net::Answer answer) { answers.push_back(std::move(answer.with)); });
  };
  // While its list is read, the hash is offered with the bytes of another file, which has more pieces.
  QVERIFY(server.offer(content, "/two"));
  ask_list(0);
  QVERIFY(server.offer({content.hash, many.size()}, "/many"));
  ask_list(39);
  executor.run();
  QCOMPARE(answers.size(), std::size_t{2});
  for (const auto& answer : answers) QVERIFY(!answer.ok() && answer.error().code == ErrorCode::NotFound);
  QVERIFY(!server.holds(content.hash));
  // The same bytes at another place: read there.
  QVERIFY(server.offer(content, "/two"));
  ask_list(0);
  QVERIFY(server.offer(content, "/copy"));
  executor.run();
  QCOMPARE(answers.size(), std::size_t{3});
  QVERIFY(answers[2].ok());
  QCOMPARE(decode_piece_list(*answers[2], 0)->hashes.size(), std::size_t{2});
}

void TestExchangeServer::a_part_of_a_file_is_given_like_a_file() {
  ExchangeHosts hosts(2);
  const Bytes bytes = made_up_bytes(size, 1);
  hosts.give(1, bytes);
  const ByteSpan part = ByteSpan(bytes).subspan(1000, 2 * piece_bytes + 5);
  const ContentRef content{crypto::sha256(part), part.size()};
  hosts.host(1).server->offer(content, "/file1", 1000);
  const auto fetch = hosts.fetch(0, hosts.request(content));
  QVERIFY(hosts.ended_within(30 * second) && hosts.outcome->ok());
  QVERIFY(hosts.content_of(0, "/fetched") == Bytes(part.begin(), part.end()));
  // One that the file is too short for is no longer offered when somebody asks.
  const ContentRef beyond{Hash256{1}, 10};
  hosts.host(1).server->offer(beyond, "/file1", size - 9);
  QVERIFY(!ask(hosts, net::Method::ContentPieces, encode_piece_request({beyond.hash, 0})).ok());
  QVERIFY(!hosts.host(1).server->holds(beyond.hash) && hosts.host(1).server->holds(content.hash));
}

void TestExchangeServer::when_it_was_asked_for_is_known() {
  ExchangeHosts hosts(2);
  const ContentRef content = hosts.give(1, made_up_bytes(size, 1));
  const auto& server = *hosts.host(1).server;
  QVERIFY(!server.asked(content.hash));
  hosts.world.run_for(10 * second);
  const MonotonicTime before = hosts.world.now();
  QVERIFY(ask(hosts, net::Method::ContentPiece, encode_piece_request({content.hash, 7})).ok());
  QVERIFY(server.asked(content.hash) >= before && server.asked(content.hash) <= hosts.world.now());
  QVERIFY(!server.asked(Hash256{}));
}

void TestExchangeServer::names_are_told_and_lies_in_them_seen() {
  ExchangeHosts hosts(5);
  const NamedContent named{7, {Hash256{1, 2, 3}, 99}, Bytes{4, 5}};
  hosts.host(1).server->set_name("manifest", named);
  hosts.host(2).server->set_name("manifest", {8, {Hash256{9}, 5}, {}});
  hosts.network.set_handler(hosts.host(3).number, [](const net::Caller&, net::Method, ByteSpan,
                                                     const net::Respond& respond) { respond(Bytes(3)); });
  std::vector<net::Contact> contacts;
  for (std::size_t i = 1; i < 5; ++i) contacts.push_back(hosts.host(i).contact);
  std::vector<net::NodeId> malformed;
  std::optional<std::vector<Claim>> claims;
  ask_names(
      hosts.network.caller(hosts.host(0).number), contacts, "manifest", second,
      [&](const net::Contact& by) { malformed.push_back(by.id); },
      [&](std::vector<Claim> found) { claims = std::move(found); });
  hosts.world.run_for(5 * second);
  QVERIFY(claims.has_value());
  QCOMPARE(claims->size(), std::size_t{2});
  for (const Claim& claim : *claims)
    if (claim.by.id == hosts.host(1).contact.id) QVERIFY(claim.named == named);
  QCOMPARE(malformed, std::vector<net::NodeId>{hosts.host(3).contact.id});
}

// One Byzantine peer claims the true hash with a false note, another one with a false size.
void TestExchangeServer::a_false_claim_takes_no_honest_one_along() {
  ExchangeHosts hosts(5);
  const NamedContent named{7, {Hash256{1, 2, 3}, 99}, Bytes{4, 5}};
  NamedContent false_note = named, false_size = named;
  false_note.note = Bytes{6};
  false_size.version = 8;
  false_size.content.size = 1000;
  for (const std::size_t honest : {1, 2}) hosts.host(honest).server->set_name("manifest", named);
  hosts.host(3).server->set_name("manifest", false_note);
  hosts.host(4).server->set_name("manifest", false_size);
  std::vector<net::Contact> contacts;
  for (std::size_t i = 1; i < 5; ++i) contacts.push_back(hosts.host(i).contact);
  std::vector<SharedClaim> merged;
  ask_names(hosts.network.caller(hosts.host(0).number), contacts, "manifest", second, nullptr,
            [&](const std::vector<Claim>& found) { merged = merge_claims(found); });
  hosts.world.run_for(5 * second);
  QCOMPARE(merged.size(), std::size_t{3});
  QVERIFY(merged[0].named == false_size);  // the newest, as it says
  QVERIFY(merged[1].named == named && merged[2].named == false_note);
  QVERIFY(merged[0].by == std::vector<net::Contact>{hosts.host(4).contact});
  QVERIFY(merged[2].by == std::vector<net::Contact>{hosts.host(3).contact});
  QCOMPARE(merged[1].by.size(), std::size_t{2});
  for (const net::Contact& by : merged[1].by)
    QVERIFY(by == hosts.host(1).contact || by == hosts.host(2).contact);
}

NS_TEST(TestExchangeServer)
#include "test_server.moc"
