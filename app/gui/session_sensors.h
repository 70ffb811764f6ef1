// Sensors of the desktop session: how long keyboard and mouse have been idle, whether a program fills the
// screen, whether the network costs money. Each sensor says "unknown" where it cannot tell. The app keeps no
// values; the core gets a report that is valid for ten seconds.
#pragma once

#include <QObject>
#include <QTimer>
#include <functional>
#include <memory>
#include <vector>

#include "app/gui/background.h"
#include "core/node/node.h"

namespace neuroshard::gui {

// One sensor: fills in what it knows and leaves the rest. May block: called on a thread of its own.
class SessionSensor {
 public:
  virtual ~SessionSensor() = default;
  virtual void read(node::SessionSensors* into) = 0;
};
using SessionSensorList = std::vector<std::unique_ptr<SessionSensor>>;

// X11: input and the active window. Reads nothing where there is no X server (a Wayland session without one).
std::unique_ptr<SessionSensor> make_x11_sensor();
// Reads the session's bus: idle input, for Wayland sessions. Fills in only values that are still unknown.
std::unique_ptr<SessionSensor> make_desktop_sensor();
// NetworkManager over the system's bus.
std::unique_ptr<SessionSensor> make_metered_sensor();
// Those of this desktop.
SessionSensorList make_session_sensors();

// Reads them every few seconds and hands the report on. Threads: ui; the reading is done elsewhere.
class SessionReporter final : public QObject {
  Q_OBJECT
 public:
  static constexpr std::chrono::seconds period{4};  // half of the lease and a bit

  using Report = std::function<void(const node::SessionSensors&)>;
  SessionReporter(SessionSensorList sensors, Report report, QObject* parent = nullptr);
  ~SessionReporter() override;

  void start();
  void stop();
  void read_now();

 private:
  std::shared_ptr<SessionSensorList> sensors_;
  Report report_;
  QTimer timer_;
  bool reading_ = false;  // a slow sensor does not pile up work
  Background background_;
};

}  // namespace neuroshard::gui
