// Hole punching on the loopback interface; with real NATs in tests/functional/test_nat_lab.cpp.
#include <QtTest>
#include <array>
#include <thread>

#include "core/nat/hole_punch.h"
#include "tests/support/test_main.h"

using namespace neuroshard;
using namespace neuroshard::nat;
using platform::Endpoint;
using platform::IpAddress;
using platform::TcpSocket;

namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;

const IpAddress loopback = IpAddress::v4(127, 0, 0, 1);
constexpr Duration generous = seconds(20);

}  // namespace

class TestHolePunch : public QObject {
  Q_OBJECT
 private Q_SLOTS:
  void a_port_that_nobody_answers_is_not_punched();
  void a_victim_gets_few_dials();
  void a_punch_comes_from_the_announced_port();
  void two_that_dial_each_other_meet();

 private:
  SystemClock clock_;
  crypto::SystemEntropy entropy_;
  Io io_{clock_, entropy_, {}};
};

void TestHolePunch::a_port_that_nobody_answers_is_not_punched() {
  const Endpoint nobody = platform::TcpListener::open({loopback, 0})->local().value();
  const MonotonicTime now = io_.now();
  const auto punched = punch_hole(io_, {0, nobody, now, now + milliseconds(300)});
  QVERIFY(!punched.ok());
  QCOMPARE(punched.error().code, ErrorCode::Timeout);
}

// It refuses each dial at once, so nothing but the number bounds them.
void TestHolePunch::a_victim_gets_few_dials() {
  QVERIFY(dials_of_punch <= 12);
  const Endpoint victim = platform::TcpListener::open({loopback, 0})->local().value();
  const MonotonicTime now = io_.now();
  PunchPlan plan{0, victim, now, now + seconds(2)};
  plan.dials = 5;
  const auto punched = punch_hole(io_, plan);
  QVERIFY(!punched.ok());
  QVERIFY2(punched.error().message.find("after 5 dials") != std::string::npos,
           punched.error().message.c_str());
  QVERIFY(io_.now() - now >= seconds(2));  // the other side's dial may still have come
}

void TestHolePunch::a_punch_comes_from_the_announced_port() {
  // Two that dial each other need NATs that drop the early dials: tests/functional/test_nat_lab.cpp. Here one
  // side appears late.
  auto free_port = platform::TcpListener::open({loopback, 0}),
       late = platform::TcpListener::open({loopback, 0});
  const Endpoint here = free_port->local().value(), there = late->local().value();
  free_port = platform::TcpListener();
  late = platform::TcpListener();
  const MonotonicTime now = io_.now();
  Expected<TcpSocket> punched = make_error(ErrorCode::Internal, "");
  std::thread other([&] {
    punched = punch_hole(io_, {here.port, there, now + milliseconds(20), now + generous});
  });
  (void)wait_until(io_, {}, now + milliseconds(200));
  late = platform::TcpListener::open(there);
  other.join();
  QVERIFY2(punched.ok(), punched.ok() ? "" : punched.error().message.c_str());
  const auto accepted = late->accept();
  QVERIFY(accepted.ok() && accepted->has_value());
  QCOMPARE((*accepted)->from.port, here.port);
}

void TestHolePunch::two_that_dial_each_other_meet() {
  auto first = platform::TcpListener::open({loopback, 0}),
       second = platform::TcpListener::open({loopback, 0});
  const Endpoint here = first->local().value(), there = second->local().value();
  first = platform::TcpListener();
  second = platform::TcpListener();
  const MonotonicTime now = io_.now();
  Expected<TcpSocket> far = make_error(ErrorCode::Internal, "");
  std::thread other([&] { far = punch_hole(io_, {there.port, here, now, now + generous}); });
  auto near = punch_hole(io_, {here.port, there, now, now + generous});
  other.join();
  QVERIFY2(near.ok(), near.ok() ? "" : near.error().message.c_str());
  QVERIFY2(far.ok(), far.ok() ? "" : far.error().message.c_str());
  QVERIFY(write_until(io_, *near, as_bytes(std::string("one")), io_.now() + generous).ok());
  std::array<std::uint8_t, 3> heard{};
  QVERIFY(read_all_until(io_, *far, heard, io_.now() + generous).ok());  // it is one connection
  QCOMPARE(far->remote().value(), here);
}

NS_TEST(TestHolePunch)
#include "test_hole_punch.moc"
