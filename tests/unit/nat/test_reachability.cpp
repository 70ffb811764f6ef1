// The verdict of the reachability test: classes, words, and what it leaves behind at the router.
#include <QtTest>

#include "core/nat/reachability_test.h"
#include "tests/support/test_main.h"

using namespace neuroshard;
using namespace neuroshard::nat;
using platform::Endpoint;
using platform::IpAddress;

namespace {

const IpAddress home = IpAddress::v4(192, 168, 1, 20), router = IpAddress::v4(192, 168, 1, 1);
const Endpoint world = platform::parse_endpoint("11.22.33.4:40000").value();
constexpr std::uint16_t port = 9000;

ReachabilityFindings behind(Mapping udp, Mapping tcp) {
  ReachabilityFindings findings;
  findings.port = port;
  findings.local = home;
  findings.gateway = router;
  findings.stun_asked = true;
  findings.udp.mapping = udp;
  findings.tcp.mapping = tcp;
  if (udp != Mapping::NoAnswer) findings.udp.outside = world;
  if (tcp != Mapping::NoAnswer) findings.tcp.outside = world;
  findings.direct = Endpoint{world.ip, port};
  findings.direct_dialled = Dialled::NotReached;
  return findings;
}

MapperFinding opened(const char* name, const char* outside, Dialled dialled) {
  return {name, {}, platform::parse_endpoint(outside).value(), dialled};
}

bool has(const std::string& text, const char* words) {
  return text.find(words) != std::string::npos;
}

// A router that opens ports, and counts what is open.
class Router final : public PortMapper {
 public:
  std::string_view name() const override { return "UPnP"; }
  Expected<PortMapping> map(const Io&, std::uint16_t inside, std::uint16_t wanted,
                            std::chrono::seconds lease) override {
    ++open;
    return PortMapping{inside, wanted, lease};
  }
  Expected<MappingState> check(const Io&, const PortMapping&) override {
    return MappingState{outside, false};
  }
  Expected<void> unmap(const Io&, const PortMapping&) override {
    --open;
    return {};
  }
  int open = 0;
  IpAddress outside = world.ip;
};

}  // namespace

class TestReachability : public QObject {
  Q_OBJECT
 private Q_SLOTS:
  void who_is_dialled_is_public();
  void a_mapping_counts_when_it_was_dialled();
  void an_ordinary_router_can_be_punched();
  void a_symmetric_one_needs_a_relay();
  void a_second_router_is_found_and_named();
  void a_vpn_is_not_taken_for_a_second_router();
  void a_router_that_opens_no_port_is_not_a_second_one_data();
  void a_router_that_opens_no_port_is_not_a_second_one();
  void addresses_of_two_families_are_not_compared();
  void nobody_to_ask_is_no_proof();
  void a_mapping_that_is_not_reached_is_taken_back();
  void a_mapping_that_is_reached_is_left_for_its_keeper();
  void how_two_classes_connect();
};

void TestReachability::who_is_dialled_is_public() {
  ReachabilityFindings findings = behind(Mapping::EndpointDependent, Mapping::EndpointDependent);
  findings.direct_dialled = Dialled::Reached;  // a port forwarded by hand
  const auto verdict = judge(findings);
  QVERIFY(verdict.reach == Reach::Public && verdict.advertise == findings.direct && verdict.advice.empty());
  QVERIFY(has(verdict.summary, "11.22.33.4:9000"));
}

void TestReachability::a_mapping_counts_when_it_was_dialled() {
  ReachabilityFindings findings = behind(Mapping::EndpointDependent, Mapping::EndpointDependent);
  findings.mappers = {
      {"UPnP", make_error(ErrorCode::NotFound, "no UPnP router answered"), {}, Dialled::NotTried},
      opened("NAT-PMP", "11.22.33.4:9001", Dialled::Reached)};
  const auto verdict = judge(findings);
  QVERIFY(verdict.reach == Reach::Mapped && verdict.through == "NAT-PMP");
  QCOMPARE(to_text(*verdict.advertise), std::string("11.22.33.4:9001"));
  findings.mappers[1].dialled = Dialled::NotReached;
  const auto vain = judge(findings);
  QVERIFY(vain.reach == Reach::RelayedOnly && !vain.advertise);
  QVERIFY2(has(vain.advice, "allow TCP port 9000 in this computer's firewall"), vain.advice.c_str());
}

void TestReachability::an_ordinary_router_can_be_punched() {
  const auto verdict = judge(behind(Mapping::EndpointIndependent, Mapping::EndpointIndependent));
  QVERIFY(verdict.reach == Reach::Punchable && !verdict.advertise);
  QVERIFY2(has(verdict.advice, "forward TCP port 9000 to 192.168.1.20"), verdict.advice.c_str());
  QVERIFY2(has(verdict.advice, "http://192.168.1.1"), verdict.advice.c_str());
  // UDP being blocked is said, and changes nothing where TCP is fine.
  const auto tcp_only = judge(behind(Mapping::NoAnswer, Mapping::EndpointIndependent));
  QVERIFY(tcp_only.reach == Reach::Punchable && has(tcp_only.advice, "block UDP"));
  // One answer is no proof.
  QVERIFY(judge(behind(Mapping::OneServer, Mapping::OneServer)).reach == Reach::RelayedOnly);
}

void TestReachability::a_symmetric_one_needs_a_relay() {
  const auto verdict = judge(behind(Mapping::EndpointIndependent, Mapping::EndpointDependent));
  QVERIFY(verdict.reach == Reach::RelayedOnly);
  QVERIFY(has(verdict.summary, "relay"));
}

void TestReachability::a_second_router_is_found_and_named() {
  const MapperFinding none = {
      "NAT-PMP", make_error(ErrorCode::Unavailable, "no public address"), {}, Dialled::NotTried};
  for (const MapperFinding& mapper : {opened("UPnP", "100.64.5.2:9000", Dialled::NotTried), none}) {
    ReachabilityFindings findings = behind(Mapping::EndpointIndependent, Mapping::EndpointDependent);
    findings.mappers = {mapper};
    const auto verdict = judge(findings);
    QVERIFY(verdict.second_router && verdict.reach == Reach::RelayedOnly && !verdict.unverified);
    QVERIFY(!verdict.other_way);
    QVERIFY2(has(verdict.advice, "public IPv4 address"), verdict.advice.c_str());
    if (mapper.outside)
      QVERIFY2(has(verdict.found.back(), "another router in front"), verdict.found.back().c_str());
  }
}

// The router has a public address, so the internet provider is not the cause.
void TestReachability::a_vpn_is_not_taken_for_a_second_router() {
  ReachabilityFindings findings = behind(Mapping::EndpointIndependent, Mapping::EndpointDependent);
  findings.mappers = {opened("UPnP", "11.22.33.99:9000", Dialled::NotTried)};
  const auto verdict = judge(findings);
  QVERIFY(verdict.other_way && !verdict.second_router && !verdict.unverified);
  QVERIFY2(has(verdict.found.back(), "a VPN"), verdict.found.back().c_str());
  QVERIFY2(has(verdict.advice, "have the VPN forward TCP port 9000"), verdict.advice.c_str());
  QVERIFY2(!has(verdict.advice, "public IPv4 address"), verdict.advice.c_str());
}

void TestReachability::a_router_that_opens_no_port_is_not_a_second_one_data() {
  QTest::addColumn<int>("code");
  QTest::addColumn<QString>("advice");
  QTest::newRow("refuses") << static_cast<int>(ErrorCode::Denied) << "allow this computer to open ports";
  QTest::newRow("full") << static_cast<int>(ErrorCode::Exhausted) << "directly, in the settings of";
  QTest::newRow("answers wrongly") << static_cast<int>(ErrorCode::Corrupt) << "restart your router";
  QTest::newRow("silent") << static_cast<int>(ErrorCode::Timeout) << "switch on UPnP";
  QTest::newRow("none") << static_cast<int>(ErrorCode::NotFound) << "switch on UPnP";
}

void TestReachability::a_router_that_opens_no_port_is_not_a_second_one() {
  QFETCH(int, code);
  QFETCH(QString, advice);
  ReachabilityFindings findings = behind(Mapping::EndpointIndependent, Mapping::EndpointDependent);
  findings.mappers = {{"UPnP", make_error(static_cast<ErrorCode>(code), "no port"), {}, Dialled::NotTried}};
  const auto verdict = judge(findings);
  QVERIFY(!verdict.second_router && !verdict.other_way);
  QVERIFY2(has(verdict.advice, advice.toUtf8().constData()), verdict.advice.c_str());
  QVERIFY2(has(verdict.advice, "forward TCP port 9000 to 192.168.1.20"), verdict.advice.c_str());
}

void TestReachability::addresses_of_two_families_are_not_compared() {
  ReachabilityFindings findings;
  findings.port = port;
  findings.local = home;
  findings.gateway = router;
  findings.udp_asked = false;
  findings.seen_by_peers = platform::parse_endpoint("[2a00:1450::5]:40000").value();
  findings.direct = Endpoint{findings.seen_by_peers->ip, port};
  findings.direct_dialled = Dialled::NotReached;
  findings.mappers = {opened("UPnP", "11.22.33.4:9000", Dialled::NotTried)};
  const auto verdict = judge(findings);
  QVERIFY(!verdict.second_router);
  QVERIFY2(!has(verdict.found.back(), "another router"), verdict.found.back().c_str());
  QVERIFY2(has(verdict.advice, "port 9000 of this computer's IPv6 address 2a00:1450::5"),
           verdict.advice.c_str());
  QVERIFY2(!has(verdict.advice, "IPv4"), verdict.advice.c_str());
  // A router without a public IPv4 address is said to have none; the way by IPv6 is the same.
  findings.mappers = {opened("UPnP", "100.64.5.2:9000", Dialled::NotTried)};
  const auto shared = judge(findings);
  QVERIFY(shared.second_router);
  QVERIFY2(has(shared.found.back(), "not a public address"), shared.found.back().c_str());
  QVERIFY2(has(shared.advice, "IPv6 address 2a00:1450::5"), shared.advice.c_str());
}

void TestReachability::nobody_to_ask_is_no_proof() {
  ReachabilityFindings findings = behind(Mapping::EndpointIndependent, Mapping::EndpointIndependent);
  findings.direct_dialled = Dialled::NotTried;
  findings.mappers = {opened("UPnP", "11.22.33.4:9000", Dialled::NotTried)};
  const auto verdict = judge(findings);
  QVERIFY(verdict.unverified && verdict.reach == Reach::Punchable && !verdict.advertise);
  QVERIFY2(has(verdict.summary, "seems to be open"), verdict.summary.c_str());
  // Nobody was asked anything.
  ReachabilityFindings unasked;
  unasked.port = port;
  unasked.local = home;
  QVERIFY(has(judge(unasked).summary, "Nothing shows") && judge(unasked).reach == Reach::RelayedOnly);
  // No connection at all.
  ReachabilityFindings none;
  none.port = port;
  QVERIFY(has(judge(none).advice, "Check the network connection"));
}

void TestReachability::a_mapping_that_is_not_reached_is_taken_back() {
  SystemClock clock;
  crypto::SystemEntropy entropy;
  const Io io{clock, entropy, {}};
  Router upnp;
  ReachabilityOptions options;
  options.port = port;
  options.mappers = {&upnp};
  std::vector<Endpoint> asked;
  options.dial_back = [&](const Io&, const Endpoint& endpoint) -> Expected<bool> {
    asked.push_back(endpoint);
    return false;
  };
  auto report = test_reachability(io, options);
  QVERIFY(report.ok() && !report->mapping && upnp.open == 0);
  if (!report->findings.local) QSKIP("this machine has no network");
  QVERIFY(!asked.empty() && asked.back() == (Endpoint{world.ip, port}));
  // A router whose own address is private is not worth a stranger's dial.
  upnp.outside = router;
  const std::size_t before = asked.size();
  report = test_reachability(io, options);
  QVERIFY(report.ok() && upnp.open == 0 && report->verdict.second_router);
  QVERIFY(asked.size() == before || asked.back().ip != router);
}

void TestReachability::a_mapping_that_is_reached_is_left_for_its_keeper() {
  SystemClock clock;
  crypto::SystemEntropy entropy;
  const Io io{clock, entropy, {}};
  Router upnp;
  ReachabilityOptions options;
  options.port = port;
  options.mappers = {&upnp};
  options.dial_back = [&](const Io&, const Endpoint& endpoint) -> Expected<bool> {
    return endpoint == Endpoint{world.ip, port};
  };
  const auto report = test_reachability(io, options);
  QVERIFY(report.ok());
  if (!report->findings.local) QSKIP("this machine has no network");
  QVERIFY(report->verdict.reach == Reach::Mapped && report->mapper == &upnp && report->mapping &&
          upnp.open == 1);
  options.keep_mapping = false;
  QVERIFY(test_reachability(io, options)->verdict.reach == Reach::Mapped && upnp.open == 1);
}

void TestReachability::how_two_classes_connect() {
  using enum Reach;
  QVERIFY(path_between(Public, RelayedOnly) == Path::Direct &&
          path_between(RelayedOnly, Mapped) == Path::Direct);
  QVERIFY(path_between(Punchable, Punchable) == Path::Punched);
  QVERIFY(path_between(Punchable, RelayedOnly) == Path::Relayed);
  QVERIFY(path_between(RelayedOnly, RelayedOnly) == Path::Relayed);
}

NS_TEST(TestReachability)
#include "test_reachability.moc"
