// The tray of the app with a fake core, as a program of its own: the tests of the tray run it under an X
// server and a tray, or a session bus and a watcher. Says each change as a line of JSON; does what a line on
// its standard input says:
//   state training|idle|paused|syncing|warning|error      quit
#include <QApplication>
#include <QFile>
#include <QJsonArray>
#include <QJsonDocument>
#include <QJsonObject>
#include <QMenu>
#include <QSocketNotifier>
#include <QSystemTrayIcon>
#include <QTextStream>
#include <QTimer>

#include "app/gui/desktop_tray_host.h"
#include "tests/support/fake_node.h"
#include "ui/bridge/bridge.h"
#include "ui/theme/theme.h"
#include "ui/tray/tray.h"

using namespace neuroshard;  // NOLINT

namespace {

void become(testing::FakeNode& node, const QString& state) {
  node.publish([&state](node::Snapshot& next) {
    next.alerts.clear();
    next.pause_reasons.clear();
    next.contributing = true;
    next.training.smoothed_loss = 3.21;
    next.state = node::RunState::Training;
    if (state == "idle") next.state = node::RunState::Idle;
    if (state == "syncing") next.state = node::RunState::Starting;
    if (state == "paused") {
      next.state = node::RunState::Paused;
      next.contributing = false;
      next.pause_reasons.push_back({"user", "you switched contributing off", std::nullopt, false});
    }
    if (state == "warning")
      next.alerts.push_back({"disk_low", node::Severity::Warning, "the disk is nearly full", {}});
    if (state == "error") next.state = node::RunState::Failed;
  });
}

}  // namespace

int main(int argc, char** argv) {
  QApplication application(argc, argv);
  QApplication::setQuitOnLastWindowClosed(false);
  const SystemClock clock;
  ui::Theme theme(std::make_unique<ui::DesktopSchemeSource>());
  theme.apply(application);
  ui::Bridge bridge;
  const auto node = std::make_shared<testing::FakeNode>();
  become(*node, "training");
  bridge.attach(node);
  ui::Tray tray(bridge, theme, clock, std::make_unique<gui::DesktopTrayHost>());
  int opened = 0, toggled = 0;
  QObject::connect(&tray, &ui::Tray::open_requested, [&opened] { ++opened; });
  QObject::connect(&tray, &ui::Tray::toggle_requested, [&toggled] { ++toggled; });
  QObject::connect(&tray, &ui::Tray::quit_requested, &application, &QApplication::quit);

  QTextStream out(stdout);
  QByteArray said;
  QTimer watch;
  QObject::connect(&watch, &QTimer::timeout, [&] {
    QJsonArray commands;
    for (const std::string& command : node->commands()) commands.append(QString::fromStdString(command));
    const QRect place = tray.icon() == nullptr ? QRect() : tray.icon()->geometry();
    const QByteArray line =
        QJsonDocument(QJsonObject{{"available", tray.available()},
                                  {"place", QJsonArray{place.x(), place.y(), place.width(), place.height()}},
                                  {"menu", tray.menu()->isVisible()},
                                  {"icon", ui::tray_icon_name(tray.view().display)},
                                  {"tooltip", tray.view().tooltip},
                                  {"commands", commands},
                                  {"opened", opened},
                                  {"toggled", toggled}})
            .toJson(QJsonDocument::Compact);
    if (line == said) return;
    said = line;
    out << line << Qt::endl;
  });
  watch.start(50);

  QFile input;
  if (!input.open(stdin, QIODevice::ReadOnly)) return 1;
  QSocketNotifier ready(0, QSocketNotifier::Read);
  QObject::connect(&ready, &QSocketNotifier::activated, [&] {
    const QString line = QString::fromUtf8(input.readLine()).trimmed();
    if (line.isEmpty() || line == "quit") return QApplication::quit();
    if (line.startsWith("state ")) become(*node, line.mid(6));
  });
  return QApplication::exec();
}
