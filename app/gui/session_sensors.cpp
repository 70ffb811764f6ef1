#include "app/gui/session_sensors.h"

namespace neuroshard::gui {

SessionSensorList make_session_sensors() {
  SessionSensorList sensors;
  sensors.push_back(make_x11_sensor());
  sensors.push_back(make_desktop_sensor());
  sensors.push_back(make_metered_sensor());
  return sensors;
}

SessionReporter::SessionReporter(SessionSensorList sensors, Report report, QObject* parent)
    : QObject(parent),
      sensors_(std::make_shared<SessionSensorList>(std::move(sensors))),
      report_(std::move(report)),
      background_("ns-sensors") {
  connect(&timer_, &QTimer::timeout, this, &SessionReporter::read_now);
  timer_.setInterval(period);
}

SessionReporter::~SessionReporter() {
  // Connections to servers end on the thread that made them.
  background_.run([sensors = std::move(sensors_)] { sensors->clear(); });
}

void SessionReporter::start() {
  timer_.start();
  read_now();
}

void SessionReporter::stop() {
  timer_.stop();
}

void SessionReporter::read_now() {
  if (reading_) return;
  reading_ = true;
  background_.run(
      this,
      [sensors = sensors_] {
        node::SessionSensors values;
        for (const auto& sensor : *sensors) sensor->read(&values);
        return values;
      },
      [this](const node::SessionSensors& values) {
        reading_ = false;
        if (timer_.isActive()) report_(values);
      });
}

}  // namespace neuroshard::gui
