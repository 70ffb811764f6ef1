// Every contribute rule over every kind of value, how reasons add up, and that nothing flaps.
#include <QtTest>

#include "tests/support/test_main.h"
#include "tests/unit/contribute/world.h"

using namespace neuroshard;              // NOLINT
using namespace neuroshard::contribute;  // NOLINT
using neuroshard::testing::World;

Q_DECLARE_METATYPE(std::function<void(World&)>)

using Set = std::function<void(World&)>;

class TestRules : public QObject {
  Q_OBJECT
 private Q_SLOTS:
  void each_rule_over_each_value_data();
  void each_rule_over_each_value();
  void nothing_in_the_way_trains();
  void defaults_are_courteous_and_quiet();
  void every_active_reason_is_listed();
  void own_decisions_are_told_apart();
  void a_reason_begins_at_once_and_ends_after_settling();
  void flapping_power_pauses_once();
  void charge_has_a_band();
  void temperature_has_a_band();
  void free_space_has_a_band();
  void a_report_ends_with_its_lease();
  void a_hanging_sensor_becomes_unknown();
  void run_anyway_ignores_rules_but_not_the_person();
  void a_rule_switched_off_lets_go_at_once();
  void limits_follow_idleness();
  void programs_are_parsed();
};

void TestRules::each_rule_over_each_value_data() {
  QTest::addColumn<Set>("set");
  QTest::addColumn<QString>("reasons");
  QTest::addColumn<QString>("says");  // in the reason's text, or, without a reason, in the sensor's note
  const auto row = [](const char* name, const Set& set, const char* reasons, const char* says) {
    QTest::newRow(name) << set << QString(reasons) << QString(says);
  };
  using Power = MachineReadings::Power;
  row(
      "battery, on mains",
      [](World& w) {
        w.machine.power = Power{false, 40};
      },
      "", "battery:allows");
  row(
      "battery, on battery",
      [](World& w) {
        w.machine.power = Power{true, 63};
      },
      "battery", "63 %");
  row(
      "battery, charge unknown",
      [](World& w) {
        w.machine.power = Power{true, {}};
      },
      "battery", "on battery");
  row(
      "battery, unknown", [](World& w) { w.machine.power.reset(); }, "", "battery:unknown");
  row(
      "battery off",
      [](World& w) {
        w.rules.battery = BatteryRule::Ignore;
        w.machine.power = Power{true, 1};
      },
      "", "battery:off");
  row(
      "low battery, enough",
      [](World& w) {
        w.rules.battery = BatteryRule::WhenLow;
        w.machine.power = Power{true, 50};
      },
      "", "battery:allows");
  row(
      "low battery, low",
      [](World& w) {
        w.rules.battery = BatteryRule::WhenLow;
        w.machine.power = Power{true, 49};
      },
      "battery", "below your 50 %");
  row(
      "low battery, low but on mains",
      [](World& w) {
        w.rules.battery = BatteryRule::WhenLow;
        w.machine.power = Power{false, 3};
      },
      "", "battery:allows");
  row(
      "low battery, charge unknown",
      [](World& w) {
        w.rules.battery = BatteryRule::WhenLow;
        w.machine.power = Power{true, {}};
      },
      "battery", "charge unknown");
  row(
      "metered", [](World& w) { w.session.metered = true; }, "metered", "metered");
  row(
      "metered, not", [](World& w) { w.session.metered = false; }, "", "metered:allows");
  row(
      "metered, unknown", [](World& w) { w.session.metered.reset(); }, "", "metered:unknown");
  row(
      "metered off",
      [](World& w) {
        w.rules.metered = false;
        w.session.metered = true;
      },
      "", "metered:off");
  row(
      "idle, in use",
      [](World& w) {
        w.rules.only_idle = true;
        w.session.input_idle = std::chrono::seconds(179);
      },
      "idle", "after 3 min");
  row(
      "idle, idle",
      [](World& w) {
        w.rules.only_idle = true;
        w.session.input_idle = std::chrono::seconds(180);
      },
      "", "idle:allows");
  row(
      "idle, unknown",
      [](World& w) {
        w.rules.only_idle = true;
        w.session.input_idle.reset();
      },
      "idle", "unknown");
  row(
      "idle off", [](World& w) { w.session.input_idle = std::chrono::seconds(0); }, "", "idle:off");
  row(
      "program runs",
      [](World& w) {
        w.rules.programs = {"doom", "vlc"};
        w.machine.running = {{"vlc"}};
      },
      "program", "vlc runs");
  row(
      "programs run",
      [](World& w) {
        w.rules.programs = {"doom", "vlc"};
        w.machine.running = {{"doom", "vlc"}};
      },
      "program", "doom, vlc run,");
  row(
      "program, none runs", [](World& w) { w.rules.programs = {"doom"}; }, "", "program:allows");
  row(
      "program, unknown",
      [](World& w) {
        w.rules.programs = {"doom"};
        w.machine.running.reset();
      },
      "", "program:unknown");
  row(
      "program, none listed", [](World&) {}, "", "program:listed");
  row(
      "full screen",
      [](World& w) {
        w.session.full_screen = true;
        w.session.full_screen_program = "vlc";
      },
      "full_screen", "vlc is in full screen");
  row(
      "full screen, nameless", [](World& w) { w.session.full_screen = true; }, "full_screen", "a program");
  row(
      "full screen, not", [](World&) {}, "", "full_screen:allows");
  row(
      "full screen, unknown", [](World& w) { w.session.full_screen.reset(); }, "", "full_screen:unknown");
  row(
      "full screen off",
      [](World& w) {
        w.rules.full_screen = false;
        w.session.full_screen = true;
      },
      "", "full_screen:off");
  row(
      "hot",
      [](World& w) {
        w.rules.hottest_celsius = 80;
        w.machine.celsius = 80;
      },
      "hot", "80 °C, your limit is 80 °C; resumes below 70 °C");
  row(
      "hot, cool",
      [](World& w) {
        w.rules.hottest_celsius = 80;
        w.machine.celsius = 79.9;
      },
      "", "temperature:allows");
  row(
      "hot, unknown",
      [](World& w) {
        w.rules.hottest_celsius = 80;
        w.machine.celsius.reset();
      },
      "", "temperature:unknown");
  row(
      "hot off", [](World& w) { w.machine.celsius = 120; }, "", "temperature:off");
  row(
      "disk full",
      [](World& w) {
        w.rules.least_free_bytes = 64u << 20;
        w.machine.free_bytes = 63u << 20;
      },
      "disk", "63 MiB");
  row(
      "disk, room",
      [](World& w) {
        w.rules.least_free_bytes = 64u << 20;
        w.machine.free_bytes = 64u << 20;
      },
      "", "");
  row(
      "disk, unknown",
      [](World& w) {
        w.rules.least_free_bytes = 64u << 20;
        w.machine.free_bytes.reset();
      },
      "", "");
}

void TestRules::each_rule_over_each_value() {
  QFETCH(Set, set);
  QFETCH(QString, reasons);
  QFETCH(QString, says);
  World world;
  set(world);
  QCOMPARE(QString::fromStdString(world.keys()), reasons);
  if (!reasons.isEmpty()) {
    const std::string text = world.reason(reasons.toStdString()).text;
    QVERIFY2(QString::fromStdString(text).contains(says), text.c_str());
  } else if (!says.isEmpty()) {
    const node::SensorView view = world.sensor(says.section(':', 0, 0).toStdString());
    QVERIFY2(QString::fromStdString(view.note).contains(says.section(':', 1)), view.note.c_str());
    QCOMPARE(view.value.empty(), says.endsWith("unknown") || says.endsWith("listed"));  // unknown is empty
  }
  // Settling changes nothing of a world that stands still.
  QCOMPARE(QString::fromStdString(world.settled()), reasons);
}

void TestRules::nothing_in_the_way_trains() {
  World world;
  QVERIFY(world.look().reasons.empty());
  QStringList keys;
  for (const node::SensorView& view : world.look().sensors) keys += QString::fromStdString(view.key);
  QCOMPARE(keys, QStringList({"battery", "metered", "idle", "program", "full_screen", "temperature"}));
}

void TestRules::defaults_are_courteous_and_quiet() {
  World world;
  world.machine = {};
  world.session = {};
  world.machine_read = world.session_reported = false;  // a server without a desktop
  QVERIFY(world.look().reasons.empty());
  for (const node::SensorView& view : world.look().sensors) QVERIFY(view.value.empty() && !view.note.empty());
}

void TestRules::every_active_reason_is_listed() {
  World world;
  world.rules.only_idle = true;
  world.rules.programs = {"doom"};
  world.rules.hottest_celsius = 70;
  world.rules.least_free_bytes = 1 << 20;
  world.rules.schedule = WeekHours::never();
  world.wishes = {false, world.wall + std::chrono::hours(1), std::nullopt, true};
  world.machine = {MachineReadings::Power{true, 20}, 90, "k10temp", {{"doom"}}, 5};
  world.session = {std::chrono::seconds(1), true, "doom", true};
  QCOMPARE(world.keys(),
           std::string("safe_mode user snooze schedule battery metered idle program full_screen hot disk"));
  QVERIFY(world.look().reasons.size() <= node::max_reasons);
  QVERIFY(world.look().sensors.size() <= node::max_sensors);
  // One goes, the others stay.
  world.session.metered = false;
  QCOMPARE(world.settled(),
           std::string("safe_mode user snooze schedule battery idle program full_screen hot disk"));
}

void TestRules::own_decisions_are_told_apart() {
  World world;
  world.wishes.contributing = false;
  QVERIFY(!world.reason("user").until);
  QVERIFY(!world.reason("user").can_override);
  world.wishes = {};
  world.wishes.snoozed_until = world.wall + std::chrono::minutes(90);
  const node::PauseReason snooze = world.reason("snooze");
  QCOMPARE(snooze.text, std::string("snoozed until 01:30"));
  QVERIFY(snooze.until == world.wishes.snoozed_until);
  world.wishes.snoozed_until = world.wall + std::chrono::hours(26);
  QCOMPARE(world.reason("snooze").text, std::string("snoozed until Sat 02:00"));
}

void TestRules::a_reason_begins_at_once_and_ends_after_settling() {
  World world;
  world.session.metered = true;
  QCOMPARE(world.keys(), std::string("metered"));
  world.session.metered = false;
  QCOMPARE(world.keys(), std::string("metered"));
  QVERIFY(QString::fromStdString(world.reason("metered").text).contains("until a moment ago"));
  QVERIFY(QString::fromStdString(world.sensor("metered").note).contains("a few more seconds"));
  world.pass(settle_time - std::chrono::milliseconds(1));
  QCOMPARE(world.keys(), std::string("metered"));
  world.pass(std::chrono::milliseconds(1));
  QCOMPARE(world.keys(), std::string());
}

void TestRules::flapping_power_pauses_once() {
  World world;
  int changes = 0;
  std::string last;
  for (int second = 0; second < 600; second += 3) {
    world.machine.power->on_battery = second % 2 == 0;  // a loose plug
    if (const std::string now = world.keys(); now != last) {
      last = now;
      ++changes;
    }
    world.pass(std::chrono::seconds(3));
  }
  QCOMPARE(changes, 1);
  QCOMPARE(last, std::string("battery"));
}

void TestRules::charge_has_a_band() {
  World world;
  world.rules.battery = BatteryRule::WhenLow;
  world.rules.battery_percent = 30;
  world.machine.power = MachineReadings::Power{true, 30};
  QCOMPARE(world.settled(), std::string());
  world.machine.power->charge_percent = 29;
  QCOMPARE(world.settled(), std::string("battery"));
  world.machine.power->charge_percent = 34;
  QCOMPARE(world.settled(), std::string("battery"));
  world.machine.power->charge_percent = 35;
  QCOMPARE(world.settled(), std::string());
  world.machine.power->charge_percent = 31;
  QCOMPARE(world.settled(), std::string());
  // Mains power ends it whatever the charge.
  world.machine.power = MachineReadings::Power{true, 5};
  QCOMPARE(world.settled(), std::string("battery"));
  world.machine.power->on_battery = false;
  QCOMPARE(world.settled(), std::string());
}

void TestRules::temperature_has_a_band() {
  World world;
  world.rules.hottest_celsius = 80;
  for (const auto& [celsius, reasons] : std::initializer_list<std::pair<double, const char*>>{{79.9, ""},
                                                                                              {80, "hot"},
                                                                                              {75, "hot"},
                                                                                              {70, "hot"},
                                                                                              {69.9, ""},
                                                                                              {75, ""},
                                                                                              {79.9, ""},
                                                                                              {81, "hot"}}) {
    world.machine.celsius = celsius;
    QCOMPARE(world.settled(), std::string(reasons));
  }
}

void TestRules::free_space_has_a_band() {
  World world;
  world.rules.least_free_bytes = 100;
  for (const auto& [bytes, reasons] : std::initializer_list<std::pair<std::uint64_t, const char*>>{
           {100, ""}, {99, "disk"}, {150, "disk"}, {199, "disk"}, {200, ""}, {101, ""}}) {
    world.machine.free_bytes = bytes;
    QCOMPARE(world.settled(), std::string(reasons));
  }
  world.machine.free_bytes = 50;
  QVERIFY(!world.reason("disk").can_override);
}

void TestRules::a_report_ends_with_its_lease() {
  World world;
  world.rules.only_idle = true;
  world.session.full_screen = true;
  QCOMPARE(world.keys(), std::string("full_screen"));  // nobody uses it, a film runs
  world.session_reported = false;                      // the app has gone
  world.pass(node::sensor_lease);
  QCOMPARE(world.keys(), std::string("full_screen"));
  world.pass(std::chrono::milliseconds(1));
  // Unknown: in use; full screen is let go, after settling.
  QCOMPARE(world.keys(), std::string("idle full_screen"));
  QCOMPARE(world.settled(), std::string("idle"));
  QVERIFY(QString::fromStdString(world.sensor("full_screen").note).contains("has stopped reporting"));
  world.session_reported = true;
  world.session.full_screen = false;
  QCOMPARE(world.settled(), std::string());
}

void TestRules::a_hanging_sensor_becomes_unknown() {
  World world;
  world.machine.power->on_battery = true;
  QCOMPARE(world.keys(), std::string("battery"));
  world.machine_read = false;
  world.pass(machine_lease);
  QCOMPARE(world.keys(), std::string("battery"));
  world.pass(std::chrono::milliseconds(1));
  QCOMPARE(world.settled(), std::string());
  QVERIFY(world.sensor("battery").value.empty());
}

void TestRules::run_anyway_ignores_rules_but_not_the_person() {
  World world;
  world.rules.least_free_bytes = 100;
  world.rules.schedule = WeekHours::never();
  world.machine.power->on_battery = true;
  world.session.metered = true;
  world.wishes.overridden_until = world.wall + std::chrono::hours(2);
  QCOMPARE(world.keys(), std::string());
  QVERIFY(QString::fromStdString(world.sensor("battery").note).contains("run anyway"));
  QVERIFY(QString::fromStdString(world.sensor("schedule").note).contains("run anyway"));
  world.wishes.contributing = false;
  world.machine.free_bytes = 1;
  QCOMPARE(world.keys(), std::string("user disk"));
  world.wishes.contributing = true;
  world.machine.free_bytes = 1000;
  world.pass(std::chrono::hours(2));  // its end
  QCOMPARE(world.settled(), std::string("schedule battery metered"));
}

void TestRules::a_rule_switched_off_lets_go_at_once() {
  World world;
  world.session.metered = true;
  QCOMPARE(world.keys(), std::string("metered"));
  world.rules.metered = false;
  QCOMPARE(world.keys(), std::string());
}

void TestRules::limits_follow_idleness() {
  World world;
  world.rules.threads = 2;
  QVERIFY((world.look().limits == Limits{2, false}));  // idle, but with no limits of its own
  world.rules.idle_threads = 8;
  QVERIFY((world.look().limits == Limits{8, true}));
  world.session.input_idle = std::chrono::seconds(10);
  QVERIFY((world.look().limits == Limits{2, false}));
  world.session.input_idle.reset();  // unknown: in use
  QVERIFY((world.look().limits == Limits{2, false}));
}

void TestRules::programs_are_parsed() {
  QCOMPARE(*parse_programs(" blender , Doom.exe,blender,, "),
           (std::vector<std::string>{"blender", "Doom.exe"}));
  QVERIFY(parse_programs("")->empty());
  QVERIFY(parse_programs("Microsoft Teams")->size() == 1);
  for (const std::string& wrong :
       {std::string("/usr/bin/vlc"), std::string("a\nb"), std::string(65, 'x'), std::string("C:\\doom.exe"),
        std::string("a\0b", 3), std::string("a\"b"), std::string("\xc3\x9c")}) {
    QVERIFY(!parse_programs(wrong).ok());
    QCOMPARE(parse_programs(wrong).error().code, ErrorCode::InvalidArgument);
  }
  std::string many;
  for (int i = 0; i < 33; ++i) many += "p" + std::to_string(i) + ",";
  QVERIFY(!parse_programs(many).ok());
}

NS_TEST(TestRules)
#include "test_rules.moc"
