// Sensors of the machine, read from a file tree as the kernel lays it out: power, heat, programs, local time.
#include <QDir>
#include <QFile>
#include <QTemporaryDir>
#include <QtTest>
#include <ctime>

#include "core/platform/process/local_time.h"
#include "core/platform/sensor/power_supply.h"
#include "core/platform/sensor/running_programs.h"
#include "core/platform/sensor/temperature.h"
#include "tests/support/test_main.h"

using namespace neuroshard;            // NOLINT
using namespace neuroshard::platform;  // NOLINT

namespace {

// A root directory that stands for "/".
class Root {
 public:
  void write(const QString& path, const QByteArray& text) {
    const QString full = directory_.filePath(path);
    QDir().mkpath(full.section('/', 0, -2));
    QFile file(full);
    if (!file.open(QIODevice::WriteOnly)) qFatal("can't write %s", qPrintable(full));
    file.write(text);
  }
  void supply(const char* name, std::initializer_list<std::pair<const char*, const char*>> attributes) {
    for (const auto& [attribute, value] : attributes)
      write(QString("sys/class/power_supply/%1/%2").arg(name, attribute), QByteArray(value) + "\n");
  }
  void process(int pid, const QByteArray& name, const QByteArray& command) {
    write(QString("proc/%1/comm").arg(pid), name + "\n");
    write(QString("proc/%1/cmdline").arg(pid), command);
  }
  void mkdir(const char* path) { QDir(directory_.path()).mkpath(path); }
  std::string path() const { return directory_.path().toStdString(); }

 private:
  QTemporaryDir directory_;
};

}  // namespace

class TestSensors : public QObject {
  Q_OBJECT
 private Q_SLOTS:
  void no_folder_is_unknown();
  void no_battery_is_mains();
  void laptop_unplugged_and_plugged();
  void usb_charger_counts_as_mains();
  void battery_without_mains_entry_tells_by_itself();
  void two_batteries_are_one_charge();
  void batteries_of_a_mouse_do_not_count();
  void nonsense_of_a_battery_is_unknown();
  void hottest_sensor_of_the_processor();
  void offset_of_an_amd_sensor_is_left_out();
  void zones_where_there_is_no_driver();
  void programs_by_their_names_data();
  void programs_by_their_names();
  void programs_unknown_without_processes();
  void this_machine_can_be_read();
  void local_time_follows_the_zone();
};

void TestSensors::no_folder_is_unknown() {
  const Root root;
  QVERIFY(!power_supply(root.path()));
  QVERIFY(!processor_temperature(root.path()));
}

void TestSensors::no_battery_is_mains() {
  Root root;
  root.mkdir("sys/class/power_supply");
  const auto supply = power_supply(root.path());
  QVERIFY(supply);
  QVERIFY(!supply->on_battery);
  QVERIFY(!supply->charge_percent);
}

void TestSensors::laptop_unplugged_and_plugged() {
  Root root;
  root.supply("AC", {{"type", "Mains"}, {"online", "0"}});
  root.supply("BAT0", {{"type", "Battery"}, {"present", "1"}, {"status", "Discharging"}, {"capacity", "63"}});
  auto supply = power_supply(root.path());
  QVERIFY(supply && supply->on_battery);
  QCOMPARE(supply->charge_percent.value_or(0), 63u);
  // Plugged in and full: some firmware goes on saying "Discharging" for a while.
  root.supply("AC", {{"online", "1"}});
  supply = power_supply(root.path());
  QVERIFY(supply && !supply->on_battery);
}

void TestSensors::usb_charger_counts_as_mains() {
  Root root;
  root.supply("AC", {{"type", "Mains"}, {"online", "0"}});
  root.supply("ucsi-source-psy-1", {{"type", "USB"}, {"online", "1"}});
  root.supply("BAT0", {{"type", "Battery"}, {"status", "Charging"}, {"capacity", "40"}});
  const auto supply = power_supply(root.path());
  QVERIFY(supply && !supply->on_battery);
}

void TestSensors::battery_without_mains_entry_tells_by_itself() {
  Root root;
  root.supply("battery", {{"type", "Battery"}, {"status", "Discharging"}, {"capacity", "5"}});
  QVERIFY(power_supply(root.path())->on_battery);
  root.supply("battery", {{"status", "Full"}});
  QVERIFY(!power_supply(root.path())->on_battery);
}

void TestSensors::two_batteries_are_one_charge() {
  Root root;
  root.supply("AC", {{"type", "Mains"}, {"online", "0"}});
  root.supply("BAT0", {{"type", "Battery"}, {"capacity", "100"}, {"energy_full", "10000000"}});
  root.supply("BAT1", {{"type", "Battery"}, {"capacity", "20"}, {"energy_full", "30000000"}});
  root.supply("BAT2", {{"type", "Battery"}, {"present", "0"}, {"capacity", "0"}});
  QCOMPARE(power_supply(root.path())->charge_percent.value_or(0), 40u);
}

void TestSensors::batteries_of_a_mouse_do_not_count() {
  Root root;
  root.supply("hidpp_battery_0",
              {{"type", "Battery"}, {"scope", "Device"}, {"status", "Discharging"}, {"capacity", "7"}});
  const auto supply = power_supply(root.path());
  QVERIFY(supply && !supply->on_battery && !supply->charge_percent);
}

void TestSensors::nonsense_of_a_battery_is_unknown() {
  Root root;
  root.supply("AC", {{"type", "Mains"}, {"online", "0"}});
  root.supply("BAT0", {{"type", "Battery"}, {"status", "Unknown"}, {"capacity", "4294967295"}});
  const auto supply = power_supply(root.path());
  QVERIFY(supply && supply->on_battery);
  QVERIFY(!supply->charge_percent);
}

void TestSensors::hottest_sensor_of_the_processor() {
  Root root;
  root.write("sys/class/hwmon/hwmon0/name", "nvme\n");
  root.write("sys/class/hwmon/hwmon0/temp1_input", "99000\n");
  root.write("sys/class/hwmon/hwmon1/name", "coretemp\n");
  root.write("sys/class/hwmon/hwmon1/temp1_input", "61500\n");
  root.write("sys/class/hwmon/hwmon1/temp1_label", "Package id 0\n");
  root.write("sys/class/hwmon/hwmon1/temp2_input", "58000\n");
  root.write("sys/class/hwmon/hwmon1/temp3_input", "-128000\n");
  root.write("sys/class/hwmon/hwmon1/temp4_input", "255000\n");
  const auto heat = processor_temperature(root.path());
  QVERIFY(heat);
  QCOMPARE(heat->celsius, 61.5);
  QCOMPARE(heat->sensor, std::string("coretemp: Package id 0"));
}

void TestSensors::offset_of_an_amd_sensor_is_left_out() {
  Root root;
  root.write("sys/class/hwmon/hwmon0/name", "k10temp\n");
  root.write("sys/class/hwmon/hwmon0/temp1_input", "87000\n");
  root.write("sys/class/hwmon/hwmon0/temp1_label", "Tctl\n");
  QCOMPARE(processor_temperature(root.path())->celsius, 87.0);
  root.write("sys/class/hwmon/hwmon0/temp2_input", "60000\n");
  root.write("sys/class/hwmon/hwmon0/temp2_label", "Tdie\n");
  QCOMPARE(processor_temperature(root.path())->celsius, 60.0);
}

void TestSensors::zones_where_there_is_no_driver() {
  Root root;
  root.write("sys/class/thermal/thermal_zone0/type", "acpitz\n");
  root.write("sys/class/thermal/thermal_zone0/temp", "90000\n");
  QVERIFY(!processor_temperature(root.path()));
  root.write("sys/class/thermal/thermal_zone1/type", "cpu-thermal\n");
  root.write("sys/class/thermal/thermal_zone1/temp", "48312\n");
  const auto heat = processor_temperature(root.path());
  QVERIFY(heat);
  QCOMPARE(heat->celsius, 48.312);
  QCOMPARE(heat->sensor, std::string("cpu-thermal"));
}

void TestSensors::programs_by_their_names_data() {
  QTest::addColumn<QString>("listed");
  QTest::addColumn<bool>("runs");
  QTest::newRow("process name") << "vlc" << true;
  QTest::newRow("any case") << "VLC" << true;
  QTest::newRow("program file") << "blender" << true;
  QTest::newRow("longer than the kernel's name") << "a-game-with-a-long-name" << true;
  QTest::newRow("windows program") << "Doom.exe" << true;
  QTest::newRow("windows program without exe") << "doom" << true;
  QTest::newRow("not running") << "quake" << false;
  QTest::newRow("part of a name") << "blend" << false;
  QTest::newRow("an argument") << "film.mkv" << false;
  QTest::newRow("not a process") << "version" << false;
}

void TestSensors::programs_by_their_names() {
  QFETCH(QString, listed);
  QFETCH(bool, runs);
  Root root;
  root.process(1, "systemd", QByteArray("/sbin/init\0splash", 17));
  root.process(20, "vlc", QByteArray("/usr/bin/vlc\0film.mkv", 21));
  root.process(21, "python3", QByteArray("/opt/blender/blender\0-b", 23));
  root.process(22, "a-game-with-a-l", "");
  root.process(23, "wine64-preload", "Z:\\games\\DOOM.EXE");
  root.process(24, "kthreadd", "");
  root.write("proc/version", "Linux\n");
  const auto running = running_programs({listed.toStdString(), "never-there"}, root.path());
  QVERIFY(running);
  QCOMPARE(running->size(), runs ? std::size_t{1} : std::size_t{0});
  if (runs) QCOMPARE(QString::fromStdString(running->front()), listed);
}

void TestSensors::programs_unknown_without_processes() {
  Root root;
  QVERIFY(!running_programs({"vlc"}, root.path()));
  root.mkdir("proc");
  QVERIFY(!running_programs({"vlc"}, root.path()));
}

void TestSensors::this_machine_can_be_read() {
  const std::string self = QFileInfo(QCoreApplication::applicationFilePath()).fileName().toStdString();
  const auto running = running_programs({self, "surely-not-a-program"});
  QVERIFY(running);
  QCOMPARE(*running, std::vector<std::string>{self});
  if (const auto heat = processor_temperature()) QVERIFY(heat->celsius > 0 && heat->celsius <= 150);
  if (const auto supply = power_supply(); supply && supply->charge_percent)
    QVERIFY(*supply->charge_percent <= 100);
}

void TestSensors::local_time_follows_the_zone() {
  qputenv("TZ", "UTC0");
  QCOMPARE(local_time(WallTime(std::chrono::seconds(1'783'117'800))).hour, 22);
  qputenv("TZ", "CET-1CEST,M3.5.0,M10.5.0/3");  // while the process runs
  // 2026-07-03 22:30 UTC is the 4th, a Saturday, in summer time; 2026-01-02 23:59:59 UTC the 3rd, a Saturday.
  const LocalTime summer = local_time(WallTime(std::chrono::seconds(1'783'117'800)));
  QCOMPARE(summer.year, 2026);
  QCOMPARE(summer.weekday, 5);
  QCOMPARE(summer.hour, 0);
  QCOMPARE(summer.minute, 30);
  QCOMPARE(summer.day_of_year, 184);
  const LocalTime winter = local_time(WallTime(std::chrono::seconds(1'767'398'399)));
  QCOMPARE(winter.weekday, 5);
  QCOMPARE(winter.hour, 0);
  QCOMPARE(winter.minute, 59);
}

NS_TEST(TestSensors)
#include "test_sensors.moc"
