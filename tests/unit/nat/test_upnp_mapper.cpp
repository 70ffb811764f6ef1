// A mapping by UPnP, with a router of the test on this computer: when it says that it has lost the mapping.
#include <httplib.h>

#include <QtTest>
#include <atomic>
#include <string>
#include <thread>

#include "core/nat/upnp_mapper.h"
#include "tests/support/test_main.h"

using namespace neuroshard;
using namespace neuroshard::nat;

namespace {

constexpr const char* description =
    "<?xml version=\"1.0\"?><root><device><serviceList><service>"
    "<serviceType>urn:schemas-upnp-org:service:WANIPConnection:1</serviceType>"
    "<controlURL>/control</controlURL><eventSubURL>/event</eventSubURL><SCPDURL>/scpd.xml</SCPDURL>"
    "</service></serviceList></device></root>";

std::string in_envelope(const std::string& body) {
  return "<?xml version=\"1.0\"?><s:Envelope><s:Body>" + body + "</s:Body></s:Envelope>";
}

// Maps every port. Of a mapping it gives the client, or an error.
class Router {
 public:
  Router() {
    server_.Get("/description.xml", [](const httplib::Request&, httplib::Response& response) {
      response.set_content(description, "text/xml");
    });
    server_.Post("/control", [this](const httplib::Request& request, httplib::Response& response) {
      answer(request, response);
    });
    port_ = server_.bind_to_any_port("127.0.0.1");
    thread_ = std::thread([this] { server_.listen_after_bind(); });
    while (!server_.is_running()) std::this_thread::yield();
  }
  ~Router() {
    server_.stop();
    thread_.join();
  }
  std::string url() const { return "http://127.0.0.1:" + std::to_string(port_) + "/description.xml"; }

  std::atomic<int> error = 0;  // of the question for the mapping; 0: none
  std::atomic<bool> is_ours = true;
  std::atomic<int> questions = 0;

 private:
  void answer(const httplib::Request& request, httplib::Response& response) {
    const std::string action = request.get_header_value("SOAPAction");
    const auto is = [&](const char* name) { return action.find(name) != std::string::npos; };
    std::string body;
    if (is("GetExternalIPAddress")) {
      body = "<NewExternalIPAddress>11.22.33.44</NewExternalIPAddress>";
    } else if (is("GetSpecificPortMappingEntry")) {
      ++questions;
      const std::string client = is_ours ? "127.0.0.1" : "127.0.0.9";
      body = "<NewInternalPort>9000</NewInternalPort><NewInternalClient>" + client +
             "</NewInternalClient><NewEnabled>1</NewEnabled><NewLeaseDuration>3600</NewLeaseDuration>";
      if (error != 0) {
        response.status = 500;
        body = "<errorCode>" + std::to_string(error) + "</errorCode>";
      }
    }
    response.set_content(in_envelope(body), "text/xml");
  }

  httplib::Server server_;
  int port_ = 0;
  std::thread thread_;
};

}  // namespace

class TestUpnpMapper : public QObject {
  Q_OBJECT
 private Q_SLOTS:
  void only_a_clear_answer_says_that_a_mapping_is_lost_data();
  void only_a_clear_answer_says_that_a_mapping_is_lost();
};

void TestUpnpMapper::only_a_clear_answer_says_that_a_mapping_is_lost_data() {
  QTest::addColumn<int>("error");
  QTest::addColumn<bool>("is_ours");
  QTest::addColumn<bool>("lost");
  QTest::newRow("it is there") << 0 << true << false;
  QTest::newRow("another computer has the port") << 0 << false << true;
  QTest::newRow("no such entry") << 714 << true << true;
  QTest::newRow("the router knows no such question") << 401 << true << false;
  QTest::newRow("the router fails") << 501 << true << false;
}

void TestUpnpMapper::only_a_clear_answer_says_that_a_mapping_is_lost() {
  QFETCH(int, error);
  QFETCH(bool, is_ours);
  QFETCH(bool, lost);
  Router router;
  router.error = error;
  router.is_ours = is_ours;
  UpnpOptions options;
  options.description_url = router.url();
  const auto mapper = make_upnp_mapper(options);
  SystemClock clock;
  crypto::SystemEntropy entropy;
  const Io io{clock, entropy, {}};
  const auto mapped = mapper->map(io, 9000, 9000, mapping_lease);
  QVERIFY2(mapped.ok(), mapped.ok() ? "" : mapped.error().describe().c_str());
  const auto state = mapper->check(io, *mapped);
  QVERIFY2(state.ok(), state.ok() ? "" : state.error().describe().c_str());
  QCOMPARE(int(router.questions), 1);
  QVERIFY(state->outside == platform::IpAddress::v4(11, 22, 33, 44));
  QCOMPARE(state->lost, lost);
}

NS_TEST(TestUpnpMapper)
#include "test_upnp_mapper.moc"
