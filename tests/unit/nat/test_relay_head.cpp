// Heads and control lines of the relay's port: what is understood, what is refused, and how early.
#include <QtTest>

#include "core/nat/relay_head.h"
#include "tests/support/test_main.h"

using namespace neuroshard;
using namespace neuroshard::nat;

namespace {

const std::string id(64, 'a');

ErrorCode code_of(const std::string& bytes) {
  const auto head = parse_request_head(as_bytes(bytes));
  return head.ok() ? ErrorCode::Internal : head.error().code;
}

}  // namespace

class TestRelayHead : public QObject {
  Q_OBJECT
 private Q_SLOTS:
  void a_head_is_understood_when_it_is_whole();
  void what_is_no_head_is_refused_early();
  void a_head_is_bounded();
  void answers();
  void targets();
  void control_lines();
};

void TestRelayHead::a_head_is_understood_when_it_is_whole() {
  // As gRPC sends it.
  const std::string head = "CONNECT " + id + ".nsd:443 HTTP/1.1\r\nHost: " + id +
                           ".nsd:443\r\nUser-Agent: grpc-httpcli/0.0\r\n\r\n";
  for (std::size_t size = 0; size < head.size(); ++size) {
    const auto part = parse_request_head(as_bytes(std::string_view(head).substr(0, size)));
    QVERIFY2(part.ok() && !part->has_value(), qPrintable(QString::number(size)));
  }
  const std::string more = head + "\x16\x03\x01 bytes of the peer";
  const auto whole = parse_request_head(as_bytes(more));
  QVERIFY(whole.ok() && whole->has_value());
  QVERIFY((*whole)->method == "CONNECT");
  QVERIFY((*whole)->target == id + ".nsd:443");
  QCOMPARE((*whole)->size, head.size());
}

void TestRelayHead::what_is_no_head_is_refused_early() {
  for (const std::string& bytes :
       {std::string("\x16\x03\x01"), std::string("get / HTTP/1.1\r\n"), std::string("ABCDEFGHIJKLMNOPQ"),
        std::string("CONNECT a:1 HTTP/1.0\r\n\r\n"), std::string("CONNECT  HTTP/1.1\r\n\r\n"),
        std::string("CONNECT a b HTTP/1.1\r\n\r\n"), std::string("CONNECT a:1 HTTP/1.1\n\n"),
        std::string("CONNECT a:1\0 HTTP/1.1\r\n\r\n", 26),
        std::string("CONNECT a:1 HTTP/1.1\r\nno colon\r\n\r\n"),
        std::string("CONNECT a:1 HTTP/1.1\r\n folded: x\r\n\r\n"),
        std::string("CONNECT a:1 HTTP/1.1\r\n: x\r\n\r\n")})
    QVERIFY2(code_of(bytes) == ErrorCode::Corrupt, bytes.c_str());
}

void TestRelayHead::a_head_is_bounded() {
  const std::string start = "CONNECT a:1 HTTP/1.1\r\n";
  QCOMPARE(code_of(start + "A: " + std::string(max_head_bytes, 'x')), ErrorCode::Exhausted);
  std::string many = start;
  for (std::size_t i = 0; i < max_head_lines; ++i) many += "A: b\r\n";
  QCOMPARE(code_of(many + "\r\n"), ErrorCode::Exhausted);
  const auto fits = parse_request_head(as_bytes(start + "A: " + std::string(4000, 'x') + "\r\n\r\n"));
  QVERIFY(fits.ok() && fits->has_value());
}

void TestRelayHead::answers() {
  const auto answer = parse_response_head(as_bytes("HTTP/1.1 404 Not here\r\nContent-Length: 0\r\n\r\n"));
  QVERIFY(answer.ok() && answer->has_value());
  QCOMPARE((*answer)->status, 404);
  QVERIFY((*answer)->reason == "Not here");
  QVERIFY(parse_response_head(as_bytes("HTTP/1.0 200\r\n\r\n")).ok());
  for (const char* wrong : {"HTTP/2 200 OK\r\n\r\n", "HTTP/1.1 2x0 OK\r\n\r\n", "hello\r\n\r\n"})
    QVERIFY2(!parse_response_head(as_bytes(wrong)).ok(), wrong);
}

void TestRelayHead::targets() {
  for (const std::string& target : {id + ":443", id + ".nsd:443", id})
    QCOMPARE(to_hex(callee_in_target(target).value()), id);
  for (const std::string& target : {std::string(), std::string(":443"), id.substr(1) + ":443", id + "a:443",
                                    std::string(64, 'g') + ":443", std::string("example.org:443")})
    QVERIFY2(!callee_in_target(target).ok(), target.c_str());
}

void TestRelayHead::control_lines() {
  RelayTicket session{};
  session[0] = 7;
  const auto caller = platform::parse_endpoint("[2001:db8::1]:9000").value();
  const std::string line = format_invitation(session, caller);
  for (std::size_t size = 0; size < line.size(); ++size)
    QVERIFY(!parse_control_line(as_bytes(std::string_view(line).substr(0, size)))->has_value());
  const auto invitation = parse_control_line(as_bytes(line + "PING\r\n"));
  QVERIFY(invitation.ok() && invitation->has_value());
  QVERIFY((*invitation)->kind == ControlLine::Kind::Invite && (*invitation)->session == session);
  QVERIFY((*invitation)->caller == caller && (*invitation)->size == line.size());
  QVERIFY((*parse_control_line(as_bytes("PONG\r\n")))->kind == ControlLine::Kind::Pong);
  for (const std::string& wrong : {std::string("INVITE \r\n"), std::string("INVITE 00 1.2.3.4:5\r\n"),
                                   std::string("INVITE " + std::string(32, '0') + " nowhere\r\n"),
                                   std::string("HELLO\r\n"), std::string(max_control_line, 'A')})
    QVERIFY2(!parse_control_line(as_bytes(wrong)).ok(), wrong.c_str());
}

NS_TEST(TestRelayHead)
#include "test_relay_head.moc"
