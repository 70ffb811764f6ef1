// The one module with gRPC and libtorrent: what it offers, and to which build.
#include <QtTest>

#include "core/network_module/network_module.h"
#include "core/platform/process/own_library.h"
#include "tests/support/test_main.h"

using namespace neuroshard;  // NOLINT

class TestNetworkModule : public QObject {
  Q_OBJECT
 private Q_SLOTS:
  void it_offers_all_functions();
  void a_second_load_gives_the_same();
  void another_build_gets_nothing();
};

void TestNetworkModule::it_offers_all_functions() {
  const auto module = network_module::load_network_module();
  QVERIFY2(module.ok(), module.ok() ? "" : module.error().message.c_str());
  QVERIFY(module->start_server != nullptr);
  QVERIFY(module->connect != nullptr);
  QVERIFY(module->make_transport != nullptr);
  QVERIFY(module->make_mainline != nullptr);
}

void TestNetworkModule::a_second_load_gives_the_same() {
  const auto first = network_module::load_network_module();
  const auto second = network_module::load_network_module();
  QVERIFY(first.ok() && second.ok());
  QVERIFY(first->connect == second->connect);
}

void TestNetworkModule::another_build_gets_nothing() {
  const auto module = platform::load_own_library<network_module::NetworkModule>(
      "network.so", network_module::network_module_entry_name, "another build", "the network module");
  QVERIFY(!module.ok());
  QCOMPARE(module.error().code, ErrorCode::Unavailable);
  QVERIFY(QString::fromStdString(module.error().message).contains("another build"));
}

NS_TEST(TestNetworkModule)
#include "test_network_module.moc"
