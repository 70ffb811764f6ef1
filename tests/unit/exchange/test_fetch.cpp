// A file from several holders at once, on a virtual clock and a seeded network: who lies about it in which
// way is found out and nobody else is blamed; who is slow, busy or away costs little; what is here already
// is not fetched again.
#include <QtTest>

#include "core/exchange/pieces.h"
#include "tests/support/exchange_hosts.h"
#include "tests/support/test_main.h"
#include "tests/support/time.h"

using namespace neuroshard;            // NOLINT
using namespace neuroshard::exchange;  // NOLINT
using neuroshard::test::ExchangeHosts;
using neuroshard::test::made_up_bytes;

namespace {

using neuroshard::test::second;
constexpr std::size_t some_pieces = 20;
constexpr std::size_t size = some_pieces * piece_bytes - 1000;

PieceList list_of(const Bytes& bytes) {
  PieceList list;
  list.size = bytes.size();
  for (std::uint32_t piece = 0; piece < piece_count(bytes.size()); ++piece)
    list.hashes.push_back(
        crypto::sha256(ByteSpan(bytes).subspan(piece * piece_bytes, piece_length(bytes.size(), piece))));
  return list;
}

// Gives these bytes whatever is asked for, and says so: a lie that agrees with itself.
sim::Handler gives(const Bytes& bytes) {
  return [bytes, list = list_of(bytes)](const net::Caller&, net::Method method, ByteSpan request,
                                        const net::Respond& respond) {
    const PieceRequest asked = *decode_piece_request(request);
    if (method == net::Method::ContentPieces) return respond(encode_piece_list(list.size, list.hashes));
    const ByteSpan piece =
        ByteSpan(bytes).subspan(asked.piece * piece_bytes, piece_length(bytes.size(), asked.piece));
    respond(Bytes(piece.begin(), piece.end()));
  };
}

// Lists the pieces of these bytes, and never gives one.
sim::Handler only_lists(const Bytes& bytes) {
  return
      [list = list_of(bytes)](const net::Caller&, net::Method method, ByteSpan, const net::Respond& respond) {
        if (method == net::Method::ContentPieces) respond(encode_piece_list(list.size, list.hashes));
      };
}

// Answers a second later.
sim::Handler late(ExchangeHosts& hosts, sim::Handler handler) {
  return [&hosts, handler = std::move(handler)](const net::Caller& from, net::Method method, ByteSpan request,
                                                const net::Respond& respond) {
    const Bytes kept(request.begin(), request.end());
    hosts.world.after(second, [=] { handler(from, method, kept, respond); });
  };
}

// Lists other pieces each time, and has none of them.
sim::Handler makes_up_lists() {
  return [made = std::make_shared<std::uint64_t>(0)](const net::Caller&, net::Method method, ByteSpan,
                                                     const net::Respond& respond) {
    if (method != net::Method::ContentPieces) return respond(make_error(ErrorCode::NotFound, "not here"));
    const PieceList list = list_of(made_up_bytes(size, 100 + ++*made));
    respond(encode_piece_list(list.size, list.hashes));
  };
}

// Says where its calls go.
class PathCaller final : public net::PeerCaller {
 public:
  PathCaller(net::PeerCaller& inner, net::CallPath path) : inner_(inner), path_(path) {}
  void call(const net::Contact& peer, net::Method method, Bytes request, Duration deadline,
            net::CallDone done) override {
    inner_.call(peer, method, std::move(request), deadline, std::move(done));
  }
  net::CallPath path_to(const net::Contact&) const override { return path_; }

 private:
  net::PeerCaller& inner_;
  const net::CallPath path_;
};

// Has no room for every second task.
class CrowdedExecutor final : public Executor {
 public:
  explicit CrowdedExecutor(Executor& inner) : inner_(inner) {}
  bool post(Task task) override { return ++posts_ % 2 == 0 && inner_.post(std::move(task)); }
  std::unique_ptr<TimerHandle> post_after(Duration delay, Task task) override {
    return inner_.post_after(delay, std::move(task));
  }
  bool on_thread() const override { return inner_.on_thread(); }

 private:
  Executor& inner_;
  std::size_t posts_ = 0;
};

}  // namespace

class TestExchangeFetch : public QObject {
  Q_OBJECT
 private Q_SLOTS:
  void several_holders_give_one_file();
  void a_loss_here_and_there_costs_time_only();
  void a_slow_line_is_no_failure();
  void who_gives_another_piece_than_it_listed_is_found_out();
  void a_majority_of_liars_is_found_out_and_its_good_beginning_kept();
  void a_silent_majority_holds_up_a_fetch_for_seconds_only();
  void a_majority_that_trickles_holds_up_a_fetch_for_seconds_only();
  void a_slow_line_is_no_slow_group();
  void a_line_that_gets_slow_loses_nothing();
  void a_slow_line_outlasts_many_false_lists();
  void new_lists_without_end_are_found_out();
  void many_false_lists_do_not_keep_a_fetch_alive();
  void silent_holders_do_not_keep_all_places();
  void claims_of_another_size_are_refused();
  void a_fault_counts_for_an_address_only_if_calls_go_there();
  void an_answer_of_any_length_is_refused();
  void holders_that_vanish_leave_their_work_to_others();
  void nobody_left_is_an_error_and_what_came_is_kept();
  void a_damaged_part_is_cut_off();
  void a_slow_holder_loses_its_pieces_and_is_not_blamed();
  void a_busy_holder_is_left_alone_for_a_while();
  void a_holder_that_comes_later_is_found();
  void a_fetch_that_waits_for_nobody_ends_when_nobody_holds_it();
  void a_size_that_nobody_knows_is_bounded();
  void a_full_queue_loses_no_result_of_the_disk();
};

void TestExchangeFetch::several_holders_give_one_file() {
  ExchangeHosts hosts(5);
  const Bytes bytes = made_up_bytes(size, 1);
  ContentRef content;
  for (std::size_t i = 1; i < 5; ++i) content = hosts.give(i, bytes);
  const auto fetch = hosts.fetch(0, hosts.request(content));
  QVERIFY(hosts.ended_within(30 * second));
  QVERIFY2(hosts.outcome->ok(), hosts.outcome->ok() ? "" : hosts.outcome->error().message.c_str());
  QCOMPARE((*hosts.outcome)->holders, std::size_t{4});
  QCOMPARE((*hosts.outcome)->received_bytes, std::uint64_t{size});
  QCOMPARE((*hosts.outcome)->resumed_bytes, std::uint64_t{0});
  QVERIFY(hosts.content_of(0, "/fetched") == bytes);
  QVERIFY(!hosts.host(0).files.exists("/fetched.part"));
  for (std::size_t i = 1; i < 5; ++i) QVERIFY(hosts.host(i).server->counts().pieces >= 2);
}

void TestExchangeFetch::a_loss_here_and_there_costs_time_only() {
  ExchangeHosts hosts(4, {0.1});
  const Bytes bytes = made_up_bytes(size, 1);
  ContentRef content;
  for (std::size_t i = 1; i < 4; ++i) content = hosts.give(i, bytes);
  const auto fetch = hosts.fetch(0, hosts.request(content));
  QVERIFY(hosts.ended_within(120 * second));
  QVERIFY(hosts.outcome->ok());
  QVERIFY(hosts.content_of(0, "/fetched") == bytes);
  QCOMPARE(hosts.conduct.faults(net::Fault::WrongContent), std::uint64_t{0});
}

// 1.2 Mbit/s: a piece needs two seconds, and four under way nearly eight.
void TestExchangeFetch::a_slow_line_is_no_failure() {
  sim::NetworkOptions line;
  line.bytes_per_second = 150'000;
  ExchangeHosts hosts(2, line);
  const ContentRef content = hosts.give(1, made_up_bytes(size, 1));
  const auto fetch = hosts.fetch(0, hosts.request(content));
  QVERIFY(hosts.ended_within(60 * second));
  QVERIFY(hosts.outcome->ok());
  QCOMPARE((*hosts.outcome)->received_bytes, std::uint64_t{size});  // nothing came twice
}

void TestExchangeFetch::who_gives_another_piece_than_it_listed_is_found_out() {
  ExchangeHosts hosts(4);
  const Bytes bytes = made_up_bytes(size, 1);
  ContentRef content;
  for (std::size_t i = 1; i < 4; ++i) content = hosts.give(i, bytes);
  auto& liar = hosts.host(2);
  hosts.network.set_handler(liar.number,
                            [honest = hosts.honest(liar)](const net::Caller& from, net::Method method,
                                                          ByteSpan request, const net::Respond& respond) {
                              honest(from, method, request, [method, respond](Expected<Bytes> answer) {
                                if (method == net::Method::ContentPiece && answer.ok()) answer->back() ^= 1;
                                respond(std::move(answer));
                              });
                            });
  const auto fetch = hosts.fetch(0, hosts.request(content));
  QVERIFY(hosts.ended_within(30 * second));
  QVERIFY(hosts.outcome->ok());
  QVERIFY(hosts.content_of(0, "/fetched") == bytes);
  QCOMPARE(fetch->liars(), std::vector<net::NodeId>{liar.contact.id});
  QCOMPARE(hosts.conduct.faults(net::Fault::WrongContent), std::uint64_t{1});
  QVERIFY(hosts.conduct.points(liar.contact.id) > 45);
  QCOMPARE(hosts.conduct.points(hosts.host(1).contact.id), 0.0);
  QVERIFY((*hosts.outcome)->received_bytes < size + 5 * piece_bytes);  // little came for nothing
}

void TestExchangeFetch::a_majority_of_liars_is_found_out_and_its_good_beginning_kept() {
  ExchangeHosts hosts(4);
  const Bytes bytes = made_up_bytes(size, 1);
  const ContentRef content = hosts.give(3, bytes);
  Bytes other = bytes;
  other[12 * piece_bytes + 5] ^= 1;
  for (const std::size_t liar : {1, 2}) hosts.network.set_handler(hosts.host(liar).number, gives(other));
  const auto fetch = hosts.fetch(0, hosts.request(content));
  QVERIFY(hosts.ended_within(60 * second));
  QVERIFY(hosts.outcome->ok());
  QVERIFY(hosts.content_of(0, "/fetched") == bytes);
  QCOMPARE((*hosts.outcome)->liars, std::size_t{2});
  for (const std::size_t liar : {1, 2}) QVERIFY(hosts.conduct.points(hosts.host(liar).contact.id) > 45);
  QCOMPARE(hosts.conduct.points(hosts.host(3).contact.id), 0.0);
  QCOMPARE(hosts.host(3).server->counts().pieces, std::uint64_t{some_pieces - 12});
}

void TestExchangeFetch::a_silent_majority_holds_up_a_fetch_for_seconds_only() {
  ExchangeHosts hosts(4);
  const Bytes bytes = made_up_bytes(size, 1);
  const ContentRef content = hosts.give(3, bytes);
  for (const std::size_t silent : {1, 2})
    hosts.network.set_handler(hosts.host(silent).number, only_lists(made_up_bytes(size, 2)));
  const auto fetch = hosts.fetch(0, hosts.request(content));
  QVERIFY(hosts.ended_within(30 * second));
  QVERIFY2(hosts.outcome->ok(), hosts.outcome->ok() ? "" : hosts.outcome->error().message.c_str());
  QVERIFY(hosts.content_of(0, "/fetched") == bytes);
  QCOMPARE((*hosts.outcome)->liars, std::size_t{0});  // their lines may be broken
}

// One piece each nine seconds of both together, and a word that they are busy in between.
void TestExchangeFetch::a_majority_that_trickles_holds_up_a_fetch_for_seconds_only() {
  ExchangeHosts hosts(4);
  const Bytes bytes = made_up_bytes(size, 1);
  const ContentRef content = hosts.give(3, bytes);
  const auto last = std::make_shared<MonotonicTime>();
  for (const std::size_t slow : {1, 2})
    hosts.network.set_handler(
        hosts.host(slow).number,
        [&hosts, last, false_file = gives(made_up_bytes(size, 2))](
            const net::Caller& from, net::Method method, ByteSpan request, const net::Respond& respond) {
          if (method == net::Method::ContentPiece) {
            if (hosts.world.now() - *last < 9 * second)
              return respond(make_error(ErrorCode::Exhausted, "too much to do"));
            *last = hosts.world.now();
          }
          false_file(from, method, request, respond);
        });
  const auto fetch = hosts.fetch(0, hosts.request(content));
  QVERIFY(hosts.ended_within(60 * second));
  QVERIFY2(hosts.outcome->ok(), hosts.outcome->ok() ? "" : hosts.outcome->error().message.c_str());
  QVERIFY(hosts.content_of(0, "/fetched") == bytes);
  QCOMPARE((*hosts.outcome)->liars, std::size_t{0});
}

// A false list beside it costs a part of the file once, not again and again.
void TestExchangeFetch::a_slow_line_is_no_slow_group() {
  sim::NetworkOptions line;
  line.bytes_per_second = 100'000;
  ExchangeHosts hosts(3, line);
  const Bytes bytes = made_up_bytes(size, 1);
  const ContentRef content = hosts.give(1, bytes);
  hosts.network.set_handler(hosts.host(2).number, only_lists(made_up_bytes(size, 2)));
  const auto fetch = hosts.fetch(0, hosts.request(content));
  QVERIFY(hosts.ended_within(300 * second));
  QVERIFY2(hosts.outcome->ok(), hosts.outcome->ok() ? "" : hosts.outcome->error().message.c_str());
  QVERIFY(hosts.content_of(0, "/fetched") == bytes);
  QVERIFY((*hosts.outcome)->received_bytes < 2 * size);
}

// The rest needs longer than the time after which a slow group is left that has given little before.
void TestExchangeFetch::a_line_that_gets_slow_loses_nothing() {
  constexpr std::size_t large = 50 * piece_bytes;
  ExchangeHosts hosts(3);
  const ContentRef content = hosts.give(1, made_up_bytes(large, 1));
  hosts.network.set_handler(hosts.host(2).number, late(hosts, only_lists(Bytes(large, 2))));
  const auto fetch = hosts.fetch(0, hosts.request(content));
  QVERIFY(hosts.world.run_until([&] { return fetch->bytes_here() >= 15 * piece_bytes; },
                                hosts.world.now() + 30 * second));
  hosts.network.set_line(hosts.host(0).number, 100'000);
  QVERIFY(hosts.ended_within(200 * second));
  QVERIFY2(hosts.outcome->ok(), hosts.outcome->ok() ? "" : hosts.outcome->error().message.c_str());
  QVERIFY((*hosts.outcome)->received_bytes < large * 13 / 10);
}

// The only holder is left once for giving little, and tried again before all others were silent in turn.
void TestExchangeFetch::a_slow_line_outlasts_many_false_lists() {
  sim::NetworkOptions line;
  line.bytes_per_second = 100'000;
  ExchangeHosts hosts(16, line);
  const Bytes bytes = made_up_bytes(size, 1);
  const ContentRef content = hosts.give(1, bytes);
  for (std::size_t i = 2; i < 16; ++i)
    hosts.network.set_handler(hosts.host(i).number,
                              late(hosts, only_lists(Bytes(size, static_cast<std::uint8_t>(i)))));
  const auto fetch = hosts.fetch(0, hosts.request(content));
  QVERIFY(hosts.ended_within(300 * second));
  QVERIFY2(hosts.outcome->ok(), hosts.outcome->ok() ? "" : hosts.outcome->error().message.c_str());
  QVERIFY(hosts.content_of(0, "/fetched") == bytes);
}

void TestExchangeFetch::new_lists_without_end_are_found_out() {
  ExchangeHosts hosts(2);
  hosts.network.set_handler(hosts.host(1).number, makes_up_lists());
  const auto fetch = hosts.fetch(0, hosts.request({Hash256{9}, size}));
  QVERIFY(hosts.ended_within(100 * second));
  QVERIFY(hosts.outcome->error().code == ErrorCode::Unavailable);
  QCOMPARE(fetch->liars(), std::vector<net::NodeId>{hosts.host(1).contact.id});
  QVERIFY(hosts.conduct.points(hosts.host(1).contact.id) > 0);
}

// Each name of a stranger has a list of its own.
void TestExchangeFetch::many_false_lists_do_not_keep_a_fetch_alive() {
  constexpr std::size_t small = 2 * piece_bytes;
  ExchangeHosts hosts(16);
  for (std::size_t i = 1; i < 16; ++i)
    hosts.network.set_handler(hosts.host(i).number, only_lists(made_up_bytes(small, i)));
  const auto fetch = hosts.fetch(0, hosts.request({Hash256{9}, small}));
  QVERIFY(hosts.ended_within(160 * second));
  QVERIFY(hosts.outcome->error().code == ErrorCode::Unavailable);
}

void TestExchangeFetch::silent_holders_do_not_keep_all_places() {
  ExchangeHosts hosts(22);
  const Bytes bytes = made_up_bytes(size, 1);
  const ContentRef content = hosts.give(21, bytes);
  for (std::size_t silent = 1; silent <= 20; ++silent)
    hosts.network.set_handler(hosts.host(silent).number, only_lists(made_up_bytes(size, 2)));
  const auto fetch = hosts.fetch(0, hosts.request(content));
  QVERIFY(hosts.ended_within(60 * second));
  QVERIFY2(hosts.outcome->ok(), hosts.outcome->ok() ? "" : hosts.outcome->error().message.c_str());
  QVERIFY(hosts.content_of(0, "/fetched") == bytes);
}

void TestExchangeFetch::claims_of_another_size_are_refused() {
  ExchangeHosts hosts(4);
  const Bytes bytes = made_up_bytes(size, 1);
  const ContentRef content = hosts.give(3, bytes);
  // As many pieces, but longer; and a size whose list would be long.
  Bytes longer = bytes;
  longer.resize(some_pieces * piece_bytes);
  hosts.network.set_handler(hosts.host(1).number, gives(longer));
  hosts.network.set_handler(
      hosts.host(2).number, [](const net::Caller&, net::Method, ByteSpan, const net::Respond& respond) {
        respond(encode_piece_list(max_content_bytes, std::vector<Hash256>(max_listed_pieces)));
      });
  const auto fetch = hosts.fetch(0, hosts.request(content));
  QVERIFY(hosts.ended_within(30 * second));
  QVERIFY(hosts.outcome->ok());
  QCOMPARE((*hosts.outcome)->liars, std::size_t{2});
  QVERIFY(hosts.content_of(0, "/fetched") == bytes);
}

// The contact may name the address of somebody else.
void TestExchangeFetch::a_fault_counts_for_an_address_only_if_calls_go_there() {
  net::ConductRules rules;
  rules.internet_only = false;
  for (const auto path : {net::CallPath::There, net::CallPath::Elsewhere, net::CallPath::None}) {
    ExchangeHosts hosts(2);
    hosts.network.set_handler(hosts.host(1).number, [](const net::Caller&, net::Method, ByteSpan,
                                                       const net::Respond& respond) { respond(Bytes(3)); });
    auto& own = hosts.host(0);
    net::Conduct conduct(hosts.bans, hosts.world.clock(), false, rules);
    PathCaller caller(hosts.network.caller(own.number), path);
    for (int i = 0; i < 10; ++i) {
      FetchServices services{caller,       own.executor,
                             own.executor, hosts.world.clock(),
                             own.files,    hosts.logger,
                             &conduct,     [&hosts](const auto& found) { found({hosts.host(1).contact}); }};
      ContentFetch fetch(std::move(services), hosts.request({Hash256{9}, size}), {},
                         [](const Expected<FetchReport>&) {});
      QVERIFY(hosts.world.run_until([&] { return !fetch.liars().empty(); }, hosts.world.now() + 10 * second));
    }
    QCOMPARE(conduct.faults(net::Fault::WrongContent), std::uint64_t{10});
    QCOMPARE(conduct.welcome(hosts.host(1).contact.endpoint.ip), path != net::CallPath::There);
  }
}

void TestExchangeFetch::an_answer_of_any_length_is_refused() {
  for (const std::size_t length : {std::size_t{0}, std::size_t{1}, piece_bytes - 1, piece_bytes + 1}) {
    ExchangeHosts hosts(3);
    const Bytes bytes = made_up_bytes(size, 1);
    hosts.give(1, bytes);
    const ContentRef content = hosts.give(2, bytes);
    hosts.network.set_handler(hosts.host(1).number, [honest = hosts.honest(hosts.host(1)), length](
                                                        const net::Caller& from, net::Method method,
                                                        ByteSpan request, const net::Respond& respond) {
      if (method == net::Method::ContentPiece) return respond(Bytes(length));
      honest(from, method, request, respond);
    });
    const auto fetch = hosts.fetch(0, hosts.request(content));
    QVERIFY(hosts.ended_within(30 * second));
    QVERIFY(hosts.outcome->ok());
    QCOMPARE((*hosts.outcome)->liars, std::size_t{1});
  }
}

void TestExchangeFetch::holders_that_vanish_leave_their_work_to_others() {
  sim::NetworkOptions line;
  line.bytes_per_second = 1e6;
  ExchangeHosts hosts(4, line);
  const Bytes bytes = made_up_bytes(size, 1);
  ContentRef content;
  for (std::size_t i = 1; i < 4; ++i) content = hosts.give(i, bytes);
  const auto fetch = hosts.fetch(0, hosts.request(content));
  QVERIFY(
      hosts.world.run_until([&] { return fetch->bytes_here() > size / 4; }, hosts.world.now() + 30 * second));
  hosts.network.set_online(hosts.host(1).number, false);
  hosts.network.set_online(hosts.host(2).number, false);
  QVERIFY(hosts.ended_within(40 * second));
  QVERIFY(hosts.outcome->ok());
  QVERIFY(hosts.content_of(0, "/fetched") == bytes);
  QCOMPARE((*hosts.outcome)->liars, std::size_t{0});
}

void TestExchangeFetch::nobody_left_is_an_error_and_what_came_is_kept() {
  sim::NetworkOptions line;
  line.bytes_per_second = 1e6;
  ExchangeHosts hosts(3, line);
  const Bytes bytes = made_up_bytes(size, 1);
  ContentRef content;
  for (std::size_t i = 1; i < 3; ++i) content = hosts.give(i, bytes);
  std::uint64_t here = 0;
  {
    const auto fetch = hosts.fetch(0, hosts.request(content));
    QVERIFY(hosts.world.run_until([&] { return fetch->bytes_here() > size / 2; },
                                  hosts.world.now() + 30 * second));
    for (std::size_t i = 1; i < 3; ++i) hosts.network.set_online(hosts.host(i).number, false);
    QVERIFY(hosts.ended_within(100 * second));
    QVERIFY(hosts.outcome->error().code == ErrorCode::Unavailable);
    here = fetch->bytes_here();
  }
  hosts.host(0).files.power_cut(testing::PowerCut::NamesWithoutData);  // what was said to be here is synced
  for (std::size_t i = 1; i < 3; ++i) hosts.network.set_online(hosts.host(i).number, true);
  const auto again = hosts.fetch(0, hosts.request(content));
  QVERIFY(hosts.ended_within(30 * second));
  QVERIFY(hosts.outcome->ok());
  QVERIFY(here > size / 2);
  QCOMPARE((*hosts.outcome)->resumed_bytes, here);
  QCOMPARE((*hosts.outcome)->received_bytes, size - here);
  QVERIFY(hosts.content_of(0, "/fetched") == bytes);
}

// Whatever a download or a crash has left: what is not as the list says is fetched again.
void TestExchangeFetch::a_damaged_part_is_cut_off() {
  const Bytes bytes = made_up_bytes(size, 1);
  Bytes torn(bytes.begin(), bytes.begin() + 9 * piece_bytes + 77);
  Bytes flipped = torn;
  flipped[4 * piece_bytes] ^= 1;
  Bytes longer = bytes;
  longer.resize(size + 3 * piece_bytes);
  for (const auto& [part, kept] :
       {std::pair(torn, 9u), std::pair(flipped, 4u), std::pair(longer, 20u), std::pair(bytes, 20u)}) {
    ExchangeHosts hosts(2);
    const ContentRef content = hosts.give(1, bytes);
    QVERIFY(storage::write_file_atomic(hosts.host(0).files, "/fetched.part", part).ok());
    const auto fetch = hosts.fetch(0, hosts.request(content));
    QVERIFY(hosts.ended_within(30 * second));
    QVERIFY(hosts.outcome->ok());
    QCOMPARE((*hosts.outcome)->resumed_bytes, std::min<std::uint64_t>(kept * piece_bytes, size));
    QVERIFY(hosts.content_of(0, "/fetched") == bytes);
    QVERIFY(!hosts.host(0).files.exists("/fetched.part"));
  }
}

void TestExchangeFetch::a_slow_holder_loses_its_pieces_and_is_not_blamed() {
  ExchangeHosts hosts(3);
  const Bytes bytes = made_up_bytes(size, 1);
  hosts.give(1, bytes);
  const ContentRef content = hosts.give(2, bytes);
  auto& slow = hosts.host(1);
  hosts.network.set_handler(
      slow.number, [&hosts, honest = hosts.honest(slow)](const net::Caller& from, net::Method method,
                                                         ByteSpan request, const net::Respond& respond) {
        if (method != net::Method::ContentPiece) return honest(from, method, request, respond);
        const Bytes kept(request.begin(), request.end());
        hosts.world.after(6 * second, [=] { honest(from, method, kept, respond); });
      });
  const auto fetch = hosts.fetch(0, hosts.request(content));
  QVERIFY(hosts.ended_within(6 * second));  // before the slow one has given anything
  QVERIFY(hosts.outcome->ok());
  QVERIFY((*hosts.outcome)->asked_twice >= 1);
  QCOMPARE((*hosts.outcome)->holders, std::size_t{1});
  QCOMPARE((*hosts.outcome)->liars, std::size_t{0});
  QVERIFY(hosts.content_of(0, "/fetched") == bytes);
}

void TestExchangeFetch::a_busy_holder_is_left_alone_for_a_while() {
  ExchangeHosts hosts(2);
  const Bytes bytes = made_up_bytes(size, 1);
  const ContentRef content = hosts.give(1, bytes);
  int refused = 0;
  auto& busy = hosts.host(1);
  const MonotonicTime free_at = hosts.world.now() + 20 * second;
  hosts.network.set_handler(busy.number,
                            [&, honest = hosts.honest(busy)](const net::Caller& from, net::Method method,
                                                             ByteSpan request, const net::Respond& respond) {
                              if (method != net::Method::ContentPiece || hosts.world.now() >= free_at)
                                return honest(from, method, request, respond);
                              ++refused;
                              respond(make_error(ErrorCode::Exhausted, "too much to do"));
                            });
  const auto fetch = hosts.fetch(0, hosts.request(content));
  QVERIFY(hosts.ended_within(60 * second));
  QVERIFY(hosts.outcome->ok());
  QVERIFY2(refused >= 5 && refused <= 25, QByteArray::number(refused).constData());  // one a second
}

void TestExchangeFetch::a_holder_that_comes_later_is_found() {
  ExchangeHosts hosts(3);
  const Bytes bytes = made_up_bytes(size, 1);
  const ContentRef content{crypto::sha256(bytes), bytes.size()};
  const auto fetch = hosts.fetch(0, hosts.request(content));
  hosts.world.run_for(20 * second);
  QVERIFY(!hosts.outcome);
  hosts.give(2, bytes);
  QVERIFY(hosts.ended_within(20 * second));
  QVERIFY(hosts.outcome->ok());
}

// A host that doesn't answer may hold it; hosts that say they don't are enough of an answer.
void TestExchangeFetch::a_fetch_that_waits_for_nobody_ends_when_nobody_holds_it() {
  ExchangeHosts hosts(3);
  const Bytes bytes = made_up_bytes(size, 1);
  const ContentRef content{crypto::sha256(bytes), bytes.size()};
  FetchOptions options;
  options.wait_for_holders = false;
  {
    const auto fetch = hosts.fetch(0, hosts.request(content), options);
    QVERIFY(hosts.ended_within(2 * second));
    QVERIFY(hosts.outcome->error().code == ErrorCode::Unavailable);
  }
  hosts.network.set_online(hosts.host(2).number, false);
  {
    const auto fetch = hosts.fetch(0, hosts.request(content), options);
    hosts.world.run_for(20 * second);
    QVERIFY(!hosts.outcome);
    hosts.network.set_online(hosts.host(2).number, true);
    hosts.give(2, bytes);
    QVERIFY(hosts.ended_within(20 * second));
    QVERIFY(hosts.outcome->ok());
  }
}

void TestExchangeFetch::a_size_that_nobody_knows_is_bounded() {
  ExchangeHosts hosts(2);
  const Bytes bytes = made_up_bytes(size, 1);
  const ContentRef content = hosts.give(1, bytes);
  FetchRequest request = hosts.request(content);
  request.size.reset();
  request.max_bytes = size;
  {
    const auto fetch = hosts.fetch(0, request);
    QVERIFY(hosts.ended_within(30 * second));
    QVERIFY(hosts.outcome->ok());
    QVERIFY(hosts.content_of(0, "/fetched") == bytes);
  }
  request.max_bytes = size - 1;
  request.path = "/other";
  const auto fetch = hosts.fetch(0, request);
  QVERIFY(hosts.ended_within(100 * second));
  QVERIFY(hosts.outcome->error().code == ErrorCode::Unavailable);
  QVERIFY(!hosts.host(0).files.exists("/other.part"));
  // The holder is honest: it is no fault of its own that the content is larger than somebody said.
  QVERIFY(fetch->liars().empty());
  QCOMPARE(hosts.conduct.points(hosts.host(1).contact.id), 0.0);
}

void TestExchangeFetch::a_full_queue_loses_no_result_of_the_disk() {
  ExchangeHosts hosts(2);
  const Bytes bytes = made_up_bytes(size, 1);
  const ContentRef content = hosts.give(1, bytes);
  auto& own = hosts.host(0);
  CrowdedExecutor executor(own.executor);
  FetchServices services{hosts.network.caller(own.number),
                         executor,
                         own.executor,
                         hosts.world.clock(),
                         own.files,
                         hosts.logger,
                         nullptr,
                         [&hosts](const auto& found) { found({hosts.host(1).contact}); }};
  ContentFetch fetch(std::move(services), hosts.request(content), {},
                     [&hosts](Expected<FetchReport> done) { hosts.outcome = std::move(done); });
  QVERIFY(hosts.ended_within(30 * second));
  QVERIFY2(hosts.outcome->ok(), hosts.outcome->ok() ? "" : hosts.outcome->error().message.c_str());
  QVERIFY(hosts.content_of(0, "/fetched") == bytes);
}

NS_TEST(TestExchangeFetch)
#include "test_fetch.moc"
