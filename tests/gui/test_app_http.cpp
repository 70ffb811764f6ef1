// The local HTTP server, switched and moved in the settings of the real window: programs reach a real core at the
// address that the window shows, with the key that it shows, without a restart.
#include <QClipboard>
#include <QDoubleSpinBox>
#include <QGuiApplication>
#include <QLabel>
#include <QLineEdit>
#include <QPushButton>
#include <QTcpServer>
#include <QTcpSocket>

#include "tests/gui/support/app_test.h"
#include "tests/support/test_main.h"
#include "ui/pages/setting_editor.h"
#include "ui/pages/setting_row.h"
#include "ui/widgets/toggle_switch.h"

using namespace neuroshard;        // NOLINT
using namespace neuroshard::test;  // NOLINT

class TestAppHttp : public AppTest {
  Q_OBJECT
 private Q_SLOTS:
  void initTestCase() { prepare(); }
  void init() { begin(); }
  void cleanup() { end(); }
  void the_window_switches_moves_and_locks_the_server();

 private:
  ui::SettingRow* row(const char* name) { return fixture_->find<ui::SettingRow>(name); }
  QString state() {
    const auto* label = fixture_->find<QLabel>("http_state");
    return label == nullptr ? QString() : label->text();
  }
  // Status of GET /v1/models; empty: nothing listens.
  QByteArray ask(int port, const QString& key) {
    QTcpSocket socket;
    socket.connectToHost(QHostAddress::LocalHost, static_cast<quint16>(port));
    if (!socket.waitForConnected(patience_.left_ms())) return {};
    socket.write(
        QString("GET /v1/models HTTP/1.1\r\nHost: 127.0.0.1:%1\r\nAuthorization: Bearer %2\r\nConnection: "
                "close\r\n\r\n")
            .arg(port)
            .arg(key)
            .toUtf8());
    QByteArray answer;
    while (socket.waitForReadyRead(patience_.left_ms())) answer += socket.readAll();
    return answer.mid(9, 3);
  }
  void set_port(int port) {
    auto* field = row("setting_http_port")->editor()->findChild<QDoubleSpinBox*>();
    field->setFocus();
    field->selectAll();
    QTest::keyClicks(field, QString::number(port));
    QTest::keyClick(field, Qt::Key_Return);
  }
};

void TestAppHttp::the_window_switches_moves_and_locks_the_server() {
  QTcpServer taken, probe;
  QVERIFY(taken.listen(QHostAddress::LocalHost) && probe.listen(QHostAddress::LocalHost));
  const int free_port = probe.serverPort(), taken_port = taken.serverPort();
  probe.close();
  QVERIFY(start_running());
  const std::int64_t core = fixture_->core_pid();
  fixture_->app().window().open_page("settings");
  NS_WAIT_FOR(patience_, row("setting_http") != nullptr && fixture_->find<QLabel>("http_state") != nullptr);
  NS_WAIT_FOR(patience_, state() == "Off");

  set_port(taken_port);
  NS_WAIT_FOR(patience_, row("setting_http_port")->is_changed());
  QTest::mouseClick(row("setting_http")->editor()->findChild<ui::ToggleSwitch*>(), Qt::LeftButton);
  // Another program has the port: said in the panel and as an alert, and the node runs on.
  NS_WAIT_FOR(patience_,
              fixture_->find<QLabel>("http_trouble")->text().contains(QString::number(taken_port)));
  NS_WAIT_FOR(patience_, !fixture_->snapshot()->alerts.empty());
  set_port(free_port);
  NS_WAIT_FOR(patience_, state().contains(QString(":%1").arg(free_port)));
  QVERIFY(fixture_->find<QLabel>("http_trouble")->isHidden());

  QTest::mouseClick(fixture_->find<QPushButton>("http_copy_key"), Qt::LeftButton);
  NS_WAIT_FOR(patience_, QGuiApplication::clipboard()->text().startsWith("ns-"));
  const QString key = QGuiApplication::clipboard()->text();
  QCOMPARE(ask(free_port, key), QByteArray("200"));
  QCOMPARE(ask(free_port, "ns-wrong"), QByteArray("401"));
  QTest::mouseClick(fixture_->find<QPushButton>("http_new_key"), Qt::LeftButton);
  NS_WAIT_FOR(patience_, fixture_->find<QPushButton>("confirm_action") != nullptr);
  QTest::mouseClick(fixture_->find<QPushButton>("confirm_action"), Qt::LeftButton);
  auto* shown = fixture_->find<QLineEdit>("http_key");
  NS_WAIT_FOR(patience_, !shown->text().isEmpty() && shown->text() != key);
  QCOMPARE(ask(free_port, key), QByteArray("401"));
  QCOMPARE(ask(free_port, shown->text()), QByteArray("200"));
  QCOMPARE(fixture_->core({"status"})["http"].toObject()["address"].toString(),
           QString("http://127.0.0.1:%1").arg(free_port));

  QTest::mouseClick(row("setting_http")->editor()->findChild<ui::ToggleSwitch*>(), Qt::LeftButton);
  NS_WAIT_FOR(patience_, state() == "Off");
  QCOMPARE(ask(free_port, shown->text()), QByteArray());
  QCOMPARE(fixture_->core_pid(), core);  // no restart
}

NS_UI_TEST(TestAppHttp)
#include "test_app_http.moc"
