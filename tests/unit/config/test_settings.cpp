// Settings: one table, bounds that hold, precedence, and a settings.toml that is read strictly.
#include <QtTest>

#include "core/config/settings.h"
#include "tests/support/test_main.h"

using namespace neuroshard;          // NOLINT
using namespace neuroshard::config;  // NOLINT

class TestSettings : public QObject {
  Q_OBJECT
 private Q_SLOTS:
  void defaults_are_what_the_table_says();
  void later_sources_win();
  void people_write_units_data();
  void people_write_units();
  void bad_values_are_refused_data();
  void bad_values_are_refused();
  void values_come_back_as_written();
  void hours_and_programs_are_kept_in_regular_form();
  void texts_are_one_plain_line();
  void file_round_trip();
  void bad_files_are_refused_data();
  void bad_files_are_refused();
  void every_truncation_is_harmless();
  void locked_values_stay();
  void unknown_names_get_a_hint();
  void names_of_flags_and_variables();
  void former_names_are_still_read();
};

namespace {

std::optional<std::string> test_environment(const std::string& name) {
  if (name == "NEUROSHARD_MAX_MICRO_BATCH") return "4";
  if (name == "NEUROSHARD_CPU_THREADS") return "3";
  return std::nullopt;
}
std::optional<std::string> bad_environment(const std::string& name) {
  if (name == "NEUROSHARD_CPU_THREADS") return "many";
  return std::nullopt;
}

}  // namespace

void TestSettings::defaults_are_what_the_table_says() {
  const Settings settings;
  for (const SettingInfo& info : settings_table()) {
    QCOMPARE(format_setting(info.id, settings.value(info.id)), std::string(info.default_text));
    QCOMPARE(settings.origin(info.id), SettingOrigin::BuiltIn);
    QVERIFY(std::string(info.help).size() > 5);
  }
  QCOMPARE(settings.number(Setting::CheckpointEverySteps), std::uint64_t{10});
  QCOMPARE(settings.number(Setting::CheckpointDailyWriteBudget), std::uint64_t{50} << 30);
  QCOMPARE(settings.number(Setting::MaxMicroBatch), std::uint64_t{8});
  QCOMPARE(settings.number(Setting::CheckpointMinInterval), std::uint64_t{600});
}

void TestSettings::later_sources_win() {
  const NetworkProfile solo = *builtin_profile("solo");
  const SettingsFile file{{Setting::CheckpointMinInterval, {90, {}}},
                          {Setting::MaxMicroBatch, {2, {}}},
                          {Setting::EvalTokens, {77, {}}},
                          {Setting::CpuThreads, {2, {}}}};
  const auto settings = Settings::resolve({&solo, &file, test_environment, {{Setting::CpuThreads, "5"}}});
  QVERIFY(settings.ok());
  QCOMPARE(settings->number(Setting::CpuThreads), std::uint64_t{5});
  QCOMPARE(settings->origin(Setting::CpuThreads), SettingOrigin::Flag);
  QVERIFY(settings->locked(Setting::CpuThreads));
  QCOMPARE(settings->number(Setting::MaxMicroBatch), std::uint64_t{4});
  QCOMPARE(settings->origin(Setting::MaxMicroBatch), SettingOrigin::Environment);
  QVERIFY(settings->locked(Setting::MaxMicroBatch));
  QCOMPARE(settings->number(Setting::EvalTokens), std::uint64_t{77});
  QCOMPARE(settings->origin(Setting::EvalTokens), SettingOrigin::File);
  QVERIFY(!settings->locked(Setting::EvalTokens));
  QCOMPARE(settings->number(Setting::CheckpointMinInterval), std::uint64_t{90});
  // Without the file the profile's 30 s of solo count, not the built-in 10 min.
  const auto fresh = Settings::resolve({&solo, nullptr, nullptr, {}});
  QCOMPARE(fresh->number(Setting::CheckpointMinInterval), std::uint64_t{30});
  QCOMPARE(fresh->origin(Setting::CheckpointMinInterval), SettingOrigin::Profile);

  const auto bad = Settings::resolve({&solo, nullptr, bad_environment, {}});
  QCOMPARE(bad.error().code, ErrorCode::InvalidArgument);
  QVERIFY(bad.error().describe().find("NEUROSHARD_CPU_THREADS") != std::string::npos);
  const auto bad_flag = Settings::resolve({&solo, nullptr, nullptr, {{Setting::MemoryLimit, "big"}}});
  QVERIFY(bad_flag.error().describe().find("--memory-limit") != std::string::npos);
}

void TestSettings::people_write_units_data() {
  QTest::addColumn<int>("id");
  QTest::addColumn<QString>("text");
  QTest::addColumn<qulonglong>("value");
  const auto row = [](Setting id, const char* text, qulonglong value) {
    QTest::newRow(text) << static_cast<int>(id) << text << value;
  };
  row(Setting::MemoryLimit, "1048576", 1ULL << 20);
  row(Setting::MemoryLimit, "512MiB", 512ULL << 20);
  row(Setting::MemoryLimit, "2g", 2ULL << 30);
  row(Setting::MemoryLimit, " 3 GiB ", 3ULL << 30);
  row(Setting::MemoryLimit, "1TiB", 1ULL << 40);
  row(Setting::CheckpointMinInterval, "45", 45);
  row(Setting::CheckpointMinInterval, "10min", 600);
  row(Setting::CheckpointMinInterval, "2h", 7200);
}

void TestSettings::people_write_units() {
  QFETCH(int, id);
  QFETCH(QString, text);
  QFETCH(qulonglong, value);
  const auto parsed = parse_setting(static_cast<Setting>(id), text.toStdString());
  QVERIFY2(parsed.ok(), parsed.ok() ? "" : parsed.error().message.c_str());
  QCOMPARE(parsed->number, static_cast<std::uint64_t>(value));
}

void TestSettings::bad_values_are_refused_data() {
  QTest::addColumn<int>("id");
  QTest::addColumn<QString>("text");
  const auto row = [](Setting id, const char* text) {
    QTest::addRow("%s=%s", setting_info(id).name, text) << static_cast<int>(id) << text;
  };
  row(Setting::CpuThreads, "-1");
  row(Setting::CpuThreads, "1025");
  row(Setting::CpuThreads, "two");
  row(Setting::CpuThreads, "");
  row(Setting::CpuThreads, "2 threads");
  row(Setting::MemoryLimit, "99999999999999999999");
  row(Setting::MemoryLimit, "18446744073709551615TiB");
  row(Setting::MemoryLimit, "5 parsecs");
  row(Setting::MemoryLimit, "1.5GiB");
  row(Setting::CheckpointMinInterval, "2d");
  row(Setting::Precision, "fp8");
  row(Setting::Precision, "fp32|bf16");
}

void TestSettings::bad_values_are_refused() {
  QFETCH(int, id);
  QFETCH(QString, text);
  const auto parsed = parse_setting(static_cast<Setting>(id), text.toStdString());
  QVERIFY(!parsed.ok());
  QCOMPARE(parsed.error().code, ErrorCode::InvalidArgument);
  QVERIFY(parsed.error().message.find(setting_info(static_cast<Setting>(id)).name) != std::string::npos);
}

void TestSettings::values_come_back_as_written() {
  for (const SettingInfo& info : settings_table()) {
    if (!is_number(info.type)) continue;
    for (const std::uint64_t number : {info.least, info.most, (info.least + info.most) / 2}) {
      const std::string text = format_setting(info.id, {number, {}});
      const auto parsed = parse_setting(info.id, text);
      QVERIFY2(parsed.ok(), text.c_str());
      QCOMPARE(parsed->number, number);
    }
  }
}

void TestSettings::hours_and_programs_are_kept_in_regular_form() {
  const auto hours = parse_setting(Setting::Schedule, " Mon-Fri 18-8; SAT ");
  QVERIFY(hours.ok());
  const auto programs = parse_setting(Setting::PauseForPrograms, "vlc ,Doom.exe,, vlc");
  QVERIFY(programs.ok());
  QCOMPARE(programs->word, std::string("vlc, Doom.exe"));
  const SettingsFile file{{Setting::Schedule, *hours}, {Setting::PauseForPrograms, *programs}};
  const std::string text = format_settings(file);
  const auto parsed = parse_settings(as_bytes(text));
  QVERIFY2(parsed.ok(), text.c_str());
  QCOMPARE(*parsed, file);
  QVERIFY(parse_setting(Setting::PauseForPrograms, "")->word.empty());
  for (const auto& [id, wrong] : {std::pair{Setting::Schedule, "mon 8-25"},
                                  {Setting::Schedule, ""},
                                  {Setting::PauseForPrograms, "a/b"},
                                  {Setting::PauseForPrograms, "a\"b"},
                                  {Setting::PauseForPrograms, "Übung"}}) {
    const auto refused = parse_setting(id, wrong);
    QVERIFY2(!refused.ok(), wrong);
    QCOMPARE(refused.error().code, ErrorCode::InvalidArgument);
    QVERIFY(refused.error().message.find(setting_info(id).name) != std::string::npos);
  }
}

void TestSettings::texts_are_one_plain_line() {
  SettingsFile file;
  for (const auto& [id, text] : {std::pair{Setting::TurnServer, "turn.example.org:3478"},
                                 {Setting::TurnUser, "007"},
                                 {Setting::TurnPasswordFile, "/etc/turn password's file"}}) {
    const auto value = parse_setting(id, text);
    QVERIFY2(value.ok(), text);
    QCOMPARE(value->word, std::string(text));
    file.emplace_back(id, *value);
  }
  const std::string written = format_settings(file);
  const auto parsed = parse_settings(as_bytes(written));
  QVERIFY2(parsed.ok(), written.c_str());
  QCOMPARE(*parsed, file);
  QVERIFY(parse_setting(Setting::TurnServer, " ")->word.empty());
  const std::string long_name(600, 'n');
  for (const auto& [id, wrong] : {std::pair{Setting::TurnServer, "turn.example.org"},
                                  {Setting::TurnServer, "turn:turn.example.org:3478"},
                                  {Setting::TurnServer, "a b:3478"},
                                  {Setting::TurnUser, "a\"b"},
                                  {Setting::TurnUser, "a\\b"},
                                  {Setting::TurnUser, "a\nb"},
                                  {Setting::TurnUser, "Jürgen"},
                                  {Setting::TurnPasswordFile, long_name.c_str()}}) {
    const auto refused = parse_setting(id, wrong);
    QVERIFY2(!refused.ok(), wrong);
    QCOMPARE(refused.error().code, ErrorCode::InvalidArgument);
    QVERIFY(refused.error().message.find(setting_info(id).name) != std::string::npos);
  }
}

void TestSettings::file_round_trip() {
  const SettingsFile file{{Setting::CpuThreads, {2, {}}},
                          {Setting::MemoryLimit, {3ULL << 30, {}}},
                          {Setting::Precision, {0, "fp32"}}};
  const std::string text = format_settings(file);
  const auto parsed = parse_settings(as_bytes(text));
  QVERIFY2(parsed.ok(), parsed.ok() ? "" : parsed.error().describe().c_str());
  QCOMPARE(*parsed, file);
  QCOMPARE(parse_settings(as_bytes(""))->size(), std::size_t{0});
}

void TestSettings::bad_files_are_refused_data() {
  QTest::addColumn<QString>("text");
  QTest::addColumn<QString>("says");
  QTest::newRow("not toml") << "cpu_threads = = 2"
                            << "line 1";
  QTest::newRow("line number") << "cpu_threads = 2\n\nmemory_limit = \"soon\"\n"
                               << "line 3";
  QTest::newRow("unknown") << "cpu_thread = 2"
                           << "cpu_threads";
  QTest::newRow("table") << "[cpu_threads]\nx = 1"
                         << "single value";
  QTest::newRow("list") << "cpu_threads = [1, 2]"
                        << "single value";
  QTest::newRow("fraction") << "cpu_threads = 1.5"
                            << "single value";
  QTest::newRow("twice") << "cpu_threads = 1\ncpu_threads = 2"
                         << "line 2";
  QTest::newRow("out of bounds") << "cpu_threads = 70000"
                                 << "1024";
  QTest::newRow("negative") << "cpu_threads = -2"
                            << "cpu_threads";
  QTest::newRow("deep") << "cpu_threads = " + QString("[").repeated(5000) << "TOML";
}

void TestSettings::bad_files_are_refused() {
  QFETCH(QString, text);
  QFETCH(QString, says);
  const QByteArray bytes = text.toUtf8();
  const auto parsed = parse_settings(as_bytes(std::string_view(bytes.constData(), bytes.size())));
  QVERIFY(!parsed.ok());
  QVERIFY2(QString::fromStdString(parsed.error().message).contains(says), parsed.error().message.c_str());
}

void TestSettings::every_truncation_is_harmless() {
  const std::string text =
      format_settings({{Setting::MemoryLimit, {3ULL << 30, {}}}, {Setting::LogLevel, {0, "debug"}}});
  for (std::size_t length = 0; length <= text.size(); ++length) {
    const auto parsed = parse_settings(as_bytes(std::string_view(text).substr(0, length)));
    if (parsed.ok()) QVERIFY(parsed->size() <= 2);
  }
  QCOMPARE(parse_settings(Bytes(max_settings_bytes + 1, '#')).error().code, ErrorCode::Exhausted);
}

void TestSettings::locked_values_stay() {
  auto settings = Settings::resolve({nullptr, nullptr, nullptr, {{Setting::CpuThreads, "5"}}});
  const auto refused = settings->set(Setting::CpuThreads, {2, {}});
  QCOMPARE(refused.error().code, ErrorCode::Denied);
  QVERIFY(refused.error().message.find("--cpu-threads") != std::string::npos);
  QCOMPARE(settings->number(Setting::CpuThreads), std::uint64_t{5});
  QVERIFY(settings->set(Setting::MaxMicroBatch, {2, {}}).ok());
  QCOMPARE(settings->number(Setting::MaxMicroBatch), std::uint64_t{2});
}

void TestSettings::unknown_names_get_a_hint() {
  const auto near = find_setting("memory_limits");
  QVERIFY(near.error().message.find("did you mean memory_limit?") != std::string::npos);
  const auto far = find_setting(std::string(100'000, 'z'));
  QCOMPARE(far.error().code, ErrorCode::NotFound);
  QVERIFY(far.error().message.size() < 300);
}

void TestSettings::names_of_flags_and_variables() {
  const SettingInfo& info = setting_info(Setting::CheckpointMinInterval);
  QCOMPARE(flag_name(info), std::string("--checkpoint-min-interval"));
  QCOMPARE(environment_name(info), std::string("NEUROSHARD_CHECKPOINT_MIN_INTERVAL"));
}

void TestSettings::former_names_are_still_read() {
  const auto id = find_setting("checkpoint_daily_write_budget");
  QVERIFY(id.ok() && *id == Setting::CheckpointDailyWriteBudget);
  QCOMPARE(std::string(setting_info(*id).name), std::string("daily_write_budget"));
  const auto file = parse_settings(as_bytes(std::string("checkpoint_daily_write_budget = \"3GiB\"\n")));
  QVERIFY(file.ok() && file->size() == 1);
  QVERIFY(format_settings(*file).find("\ndaily_write_budget = \"3GiB\"\n") != std::string::npos);
  // In either order of the lines.
  for (const char* text : {"checkpoint_daily_write_budget = \"1GiB\"\ndaily_write_budget = \"2GiB\"\n",
                           "daily_write_budget = \"2GiB\"\ncheckpoint_daily_write_budget = \"1GiB\"\n"}) {
    const auto twice = parse_settings(as_bytes(std::string(text)));
    QVERIFY(twice.ok() && twice->size() == 1);
    QCOMPARE(twice->front().second.number, std::uint64_t{2} << 30);
    const std::string written = format_settings(*twice);
    QVERIFY(parse_settings(as_bytes(written)).ok());
  }
  const auto both = [](const std::string& name) -> std::optional<std::string> {
    if (name == "NEUROSHARD_CHECKPOINT_DAILY_WRITE_BUDGET") return "1GiB";
    if (name == "NEUROSHARD_DAILY_WRITE_BUDGET") return "2GiB";
    return std::nullopt;
  };
  const auto former = [](const std::string& name) -> std::optional<std::string> {
    return name == "NEUROSHARD_CHECKPOINT_DAILY_WRITE_BUDGET" ? std::optional<std::string>("1GiB")
                                                              : std::nullopt;
  };
  QCOMPARE(Settings::resolve({nullptr, nullptr, former, {}})->number(*id), std::uint64_t{1} << 30);
  QCOMPARE(Settings::resolve({nullptr, nullptr, both, {}})->number(*id), std::uint64_t{2} << 30);
}

NS_TEST(TestSettings)
#include "test_settings.moc"
