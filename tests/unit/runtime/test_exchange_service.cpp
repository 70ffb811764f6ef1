// The exchange of files between real nodes on the loopback interface: which faults of another node are
// counted, and that a fetch goes on with the next one.
#include <QtTest>
#include <atomic>
#include <future>

#include "core/base/rng.h"
#include "core/crypto/hash.h"
#include "core/exchange/messages.h"
#include "core/runtime/exchange_service.h"
#include "tests/support/keys.h"
#include "tests/support/memory_file_env.h"
#include "tests/support/test_main.h"
#include "tests/support/until.h"

using namespace neuroshard;           // NOLINT
using namespace neuroshard::runtime;  // NOLINT

namespace {

using OtherContent = std::function<Expected<Bytes>(net::Method, Expected<Bytes>)>;

constexpr const char* held_path = "/file";
constexpr Duration exchange_patience = std::chrono::seconds(20);

Bytes six_pieces() {
  Rng rng(1);
  Bytes bytes(6 * exchange::piece_bytes - 100);
  for (std::uint8_t& byte : bytes) byte = static_cast<std::uint8_t>(rng.next());
  return bytes;
}

data::PeerFile peer_file(const Bytes& bytes) {
  data::PeerFile file;
  file.sha256 = crypto::sha256(bytes);
  file.size = bytes.size();
  file.max_bytes = bytes.size();
  file.path = held_path;
  file.patience = exchange_patience;
  return file;
}

data::ManifestClaim manifest_claim(const Bytes& bytes, std::int64_t updated_ms) {
  return {crypto::sha256(bytes), bytes.size(), updated_ms, Bytes(64)};
}

// A node that exchanges files.
class Exchanger {
 public:
  // held: it has this file; null: it has none. other: in place of its answers.
  Exchanger(std::uint16_t number, const Bytes* held, OtherContent other,
            std::vector<swarm::FirstPeer> sources = {}) {
    if (held != nullptr && !storage::write_file_atomic(files_, held_path, *held).ok()) qFatal("no file");
    PeerHostOptions options;
    options.listen = platform::Endpoint{platform::IpAddress::v4(127, 0, 0, 1), 0};
    options.open_port = options.relay = false;
    options.swarm.one_lan = true;
    options.swarm.network_id = Hash256{7};
    options.swarm.sources = std::move(sources);
    auto started = PeerHost::start(test::key_numbered(number), services(), std::move(options));
    if (!started.ok()) qFatal("host: %s", started.error().message.c_str());
    host_ = std::move(*started);
    ExchangeService::Options how;
    how.checkpoints = "/checkpoints";
    how.one_lan = true;
    how.serve = held != nullptr;
    how.interpositions.other_content = std::move(other);
    service_ = std::make_unique<ExchangeService>(*host_, services(), std::move(how));
    if (held != nullptr) service_->offer(peer_file(*held));
  }
  ExchangeService& service() { return *service_; }
  net::NodeId id() const { return host_->id(); }
  swarm::FirstPeer place() const { return {host_->endpoint(), host_->id()}; }
  bool knows(std::size_t others) {
    return testing::until([&] {
      std::size_t known = 0;
      host_->run([&] { known = host_->member().some(32).size(); });
      return known >= others;
    });
  }
  Bytes content() {
    auto bytes = storage::read_file(files_, held_path, 1u << 30);
    return bytes.ok() ? std::move(*bytes) : Bytes();
  }
  // Of others, as this node counts them.
  std::uint64_t faults(net::Fault fault) { return host_->conduct().faults(fault); }
  double points(const net::NodeId& of) { return host_->conduct().points(of); }

 private:
  RuntimeServices services() { return {files_, entropy_, clock_, logger_, "test"}; }

  testing::MemoryFileEnv files_;
  crypto::SystemEntropy entropy_;
  SystemClock clock_;
  NullLogger logger_;
  std::unique_ptr<PeerHost> host_;
  std::unique_ptr<ExchangeService> service_;
};

// Two nodes with the same file, of which one is at fault, and one that fetches it.
struct ThreeExchangers {
  explicit ThreeExchangers(OtherContent of_bad, OtherContent of_good = {})
      : good(1, &bytes, std::move(of_good)),
        bad(std::make_unique<Exchanger>(2, &bytes, std::move(of_bad))),
        bad_id(bad->id()),
        own(3, nullptr, {}, {bad->place(), good.place()}) {
    if (!own.knows(2)) qFatal("the nodes do not find each other");
  }
  Expected<void> fetch() { return own.service().fetch(peer_file(bytes), {}); }

  const Bytes bytes = six_pieces();
  Exchanger good;
  std::unique_ptr<Exchanger> bad;
  const net::NodeId bad_id;
  Exchanger own;
};

}  // namespace

class TestExchangeService : public QObject {
  Q_OBJECT
 private Q_SLOTS:
  void who_sends_wrong_bytes_is_blamed_alone();
  void who_stops_in_the_middle_is_not_blamed();
  void who_lists_another_size_is_blamed_where_the_size_is_known_data();
  void who_lists_another_size_is_blamed_where_the_size_is_known();
  void who_names_its_manifest_in_nonsense_is_blamed();
  void who_claims_a_false_manifest_is_blamed_once();
};

void TestExchangeService::who_sends_wrong_bytes_is_blamed_alone() {
  ThreeExchangers three([](net::Method method, Expected<Bytes> answer) -> Expected<Bytes> {
    if (method == net::Method::ContentPiece && answer.ok()) answer->back() ^= 1;
    return answer;
  });
  const auto fetched = three.fetch();
  QVERIFY2(fetched.ok(), fetched.ok() ? "" : fetched.error().message.c_str());
  QVERIFY(three.own.content() == three.bytes);
  QCOMPARE(three.own.faults(net::Fault::WrongContent), std::uint64_t{1});
  QVERIFY(three.own.points(three.bad_id) > 45);
  QCOMPARE(three.own.points(three.good.id()), 0.0);
}

// One piece comes from it, then errors, then nothing. The other node waits for that.
void TestExchangeService::who_stops_in_the_middle_is_not_blamed() {
  std::atomic<int> asked{0};
  std::atomic<bool> leaves{false}, gone{false};
  ThreeExchangers three(
      [&](net::Method method, Expected<Bytes> answer) -> Expected<Bytes> {
        if (method != net::Method::ContentPiece || ++asked == 1) return answer;
        testing::until([&] { return leaves.load(); });
        return make_error(ErrorCode::Unavailable, "the node is ending");
      },
      [&](net::Method method, Expected<Bytes> answer) -> Expected<Bytes> {
        if (method == net::Method::ContentPiece) testing::until([&] { return gone.load(); });
        return answer;
      });
  auto fetched = std::async(std::launch::async, [&] { return three.fetch(); });
  const bool in_the_middle = testing::until([&] { return asked >= 2; });
  leaves = true;
  three.bad.reset();
  gone = true;
  const auto outcome = fetched.get();
  QVERIFY(in_the_middle);
  QVERIFY2(outcome.ok(), outcome.ok() ? "" : outcome.error().message.c_str());
  QVERIFY(three.own.content() == three.bytes);
  QCOMPARE(three.own.faults(net::Fault::WrongContent), std::uint64_t{0});
  QCOMPARE(three.own.points(three.bad_id), 0.0);
}

void TestExchangeService::who_lists_another_size_is_blamed_where_the_size_is_known_data() {
  QTest::addColumn<bool>("known");
  QTest::newRow("a signed source has named the size") << true;
  QTest::newRow("only a bound is known") << false;
}

void TestExchangeService::who_lists_another_size_is_blamed_where_the_size_is_known() {
  QFETCH(bool, known);
  ThreeExchangers three([](net::Method method, Expected<Bytes> answer) -> Expected<Bytes> {
    if (method != net::Method::ContentPieces || !answer.ok()) return answer;
    const auto list = exchange::decode_piece_list(*answer, 0);
    if (!list.ok()) return list.error();
    return exchange::encode_piece_list(list->size + 1, list->hashes);
  });
  data::PeerFile file = peer_file(three.bytes);
  if (!known) file.size.reset();
  const auto fetched = three.own.service().fetch(file, {});
  QVERIFY2(fetched.ok(), fetched.ok() ? "" : fetched.error().message.c_str());
  QVERIFY(three.own.content() == three.bytes);
  QCOMPARE(three.own.faults(net::Fault::WrongContent), std::uint64_t{known ? 1u : 0u});
  QCOMPARE(three.own.points(three.bad_id) > 0, known);
  QCOMPARE(three.own.points(three.good.id()), 0.0);
}

void TestExchangeService::who_names_its_manifest_in_nonsense_is_blamed() {
  ThreeExchangers three([](net::Method method, Expected<Bytes> answer) -> Expected<Bytes> {
    if (method == net::Method::ContentNamed) return Bytes(3);
    return answer;
  });
  const data::ManifestClaim claim = manifest_claim(three.bytes, 5);
  three.good.service().offer_manifest(claim, held_path);
  const auto found = three.own.service().manifests(exchange_patience, {});
  QVERIFY2(found.ok(), found.ok() ? "" : found.error().message.c_str());
  QVERIFY(*found == std::vector<data::ManifestClaim>{claim});
  QCOMPARE(three.own.faults(net::Fault::Malformed), std::uint64_t{1});
  QVERIFY(three.own.points(three.bad_id) > 0);
  QCOMPARE(three.own.points(three.good.id()), 0.0);
}

void TestExchangeService::who_claims_a_false_manifest_is_blamed_once() {
  ThreeExchangers three(OtherContent{});
  const data::ManifestClaim true_one = manifest_claim(three.bytes, 5), newer = manifest_claim(Bytes(9), 6);
  three.good.service().offer_manifest(true_one, held_path);
  three.bad->service().offer_manifest(newer, held_path);
  const auto found = three.own.service().manifests(exchange_patience, {});
  QVERIFY2(found.ok(), found.ok() ? "" : found.error().message.c_str());
  QVERIFY((*found == std::vector<data::ManifestClaim>{newer, true_one}));
  for (int i = 0; i < 2; ++i) three.own.service().refuted(newer);
  QCOMPARE(three.own.faults(net::Fault::BadSignature), std::uint64_t{1});
  QVERIFY(three.own.points(three.bad_id) > 0);
  QCOMPARE(three.own.points(three.good.id()), 0.0);
}

NS_TEST(TestExchangeService)
#include "test_exchange_service.moc"
