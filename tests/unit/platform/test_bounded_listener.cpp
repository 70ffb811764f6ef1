// The listener of the control service: how many connections it holds open, from all and from one address group.
#include <QTcpSocket>
#include <QtTest>
#include <thread>

#include <unistd.h>

#include "core/platform/socket/bounded_listener.h"
#include "tests/support/test_main.h"
#include "tests/support/until.h"

using namespace neuroshard;
using namespace neuroshard::platform;
using testing::until;

namespace {

// Takes connections until its end, and keeps them.
class Serving {
 public:
  explicit Serving(ConnectionBounds bounds) {
    auto opened = BoundedListener::open({IpAddress::v4(127, 0, 0, 1), 0}, bounds);
    if (!opened.ok()) qFatal("%s", opened.error().describe().c_str());
    listener_ = std::move(*opened);
    thread_ = std::thread([this] {
      listener_->serve([this](int descriptor) {
        taken_.push_back(descriptor);
        ++count_;
      });
    });
  }
  ~Serving() {
    listener_->stop();
    thread_.join();
    for (const int descriptor : taken_) close(descriptor);
  }
  // From this address of loopback. A group is a /24.
  std::unique_ptr<QTcpSocket> connect(const QString& from) const {
    auto socket = std::make_unique<QTcpSocket>();
    if (!socket->bind(QHostAddress(from))) qFatal("no such address");
    socket->connectToHost(QHostAddress::LocalHost, listener_->endpoint().port);
    if (!socket->waitForConnected(10'000)) qFatal("not connected");
    return socket;
  }
  std::size_t taken() const { return count_; }
  std::size_t refused() const { return listener_->refused(); }

 private:
  std::unique_ptr<BoundedListener> listener_;
  std::vector<int> taken_;  // of the thread
  std::atomic<std::size_t> count_{0};
  std::thread thread_;
};

}  // namespace

class TestBoundedListener : public QObject {
  Q_OBJECT
 private Q_SLOTS:
  void one_address_leaves_places_to_others();
  void an_ended_connection_gives_its_place_back();
};

void TestBoundedListener::one_address_leaves_places_to_others() {
  const Serving serving({4, 2});
  std::vector<std::unique_ptr<QTcpSocket>> sockets;
  for (int i = 0; i < 4; ++i) sockets.push_back(serving.connect("127.0.0.1"));
  QVERIFY(until([&] { return serving.taken() + serving.refused() == 4; }));
  QCOMPARE(serving.taken(), std::size_t{2});
  for (int i = 0; i < 2; ++i) sockets.push_back(serving.connect("127.0.1.1"));
  QVERIFY(until([&] { return serving.taken() == 4; }));
  sockets.push_back(serving.connect("127.0.2.1"));
  QVERIFY(until([&] { return serving.refused() == 3; }));
}

void TestBoundedListener::an_ended_connection_gives_its_place_back() {
  const Serving serving({4, 1});
  auto first = serving.connect("127.0.0.1");
  QVERIFY(until([&] { return serving.taken() == 1; }));
  first->disconnectFromHost();
  std::vector<std::unique_ptr<QTcpSocket>> sockets;
  QVERIFY(until([&] {
    sockets.push_back(serving.connect("127.0.0.1"));
    return serving.taken() == 2;
  }));
}

NS_TEST(TestBoundedListener)
#include "test_bounded_listener.moc"
