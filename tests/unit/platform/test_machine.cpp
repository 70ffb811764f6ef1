// Facts about the machine: paths, memory, processors. The rules are tested on made-up /proc and /sys trees,
// and the real machine for plausibility.
#include <QDir>
#include <QFile>
#include <QTemporaryDir>
#include <QtTest>
#include <map>

#include "core/platform/file/paths.h"
#include "core/platform/process/process_memory.h"
#include "core/platform/process/terminal.h"
#include "core/platform/sensor/cpu.h"
#include "tests/support/test_main.h"

using namespace neuroshard;
using namespace neuroshard::platform;

class TestMachine : public QObject {
  Q_OBJECT
 private Q_SLOTS:
  void data_directory_follows_xdg();
  void executable_is_this_program();
  void memory_of_this_process_grows_with_use();
  void machine_memory_without_groups();
  void control_group_v2_limits_memory();
  void control_group_v1_limits_memory();
  void unlimited_groups_do_not_limit();
  void control_groups_limit_processors();
  void processor_name_and_flags();
  void this_machine_is_plausible();
  void no_terminal_no_prompt();
};

namespace {

Environment fake_environment(std::map<std::string, std::string> values) {
  return [values = std::move(values)](const char* name) {
    const auto found = values.find(name);
    return found == values.end() ? std::string() : found->second;
  };
}

// A root directory with the files that a test names.
class FakeRoot {
 public:
  void write(const QString& path, const QByteArray& text) {
    const QString full = directory_.filePath(path);
    QDir().mkpath(QFileInfo(full).path());
    QFile file(full);
    QVERIFY(file.open(QIODevice::WriteOnly));
    file.write(text);
  }
  std::string path() const { return directory_.path().toStdString(); }

 private:
  QTemporaryDir directory_;
};

constexpr std::uint64_t gib = 1u << 30;
const QByteArray meminfo =
    "MemTotal:       16777216 kB\nMemFree:          524288 kB\nMemAvailable:    8388608 kB\n";

}  // namespace

void TestMachine::data_directory_follows_xdg() {
  QCOMPARE(
      default_data_directory(fake_environment({{"XDG_DATA_HOME", "/x/data"}, {"HOME", "/people/a"}})).value(),
      std::string("/x/data/neuroshard"));
  QCOMPARE(default_data_directory(fake_environment({{"HOME", "/people/a"}})).value(),
           std::string("/people/a/.local/share/neuroshard"));
  // A relative path is not valid there and is ignored.
  QCOMPARE(
      default_data_directory(fake_environment({{"XDG_DATA_HOME", "data"}, {"HOME", "/people/a"}})).value(),
      std::string("/people/a/.local/share/neuroshard"));
  QCOMPARE(runtime_directory(fake_environment({{"XDG_RUNTIME_DIR", "/run/user/7"}})),
           std::string("/run/user/7/neuroshard"));
  QVERIFY(runtime_directory(fake_environment({})).rfind("/tmp/neuroshard-", 0) == 0);
}

void TestMachine::executable_is_this_program() {
  const auto path = executable_path();
  QVERIFY(path.ok());
  QCOMPARE(QFileInfo(QString::fromStdString(*path)).canonicalFilePath(),
           QFileInfo(QCoreApplication::applicationFilePath()).canonicalFilePath());
}

void TestMachine::memory_of_this_process_grows_with_use() {
  const ProcessMemory before = process_memory();
  QVERIFY(before.resident && before.peak_resident);
  constexpr std::size_t block = 64u << 20;
  std::vector<char> used(block, 1);
  const ProcessMemory after = process_memory();
  QVERIFY(*after.resident >= *before.resident + block * 9 / 10);
  QVERIFY(*after.peak_resident >= *after.resident);
  QCOMPARE(used[block / 2], char{1});
}

void TestMachine::machine_memory_without_groups() {
  FakeRoot root;
  root.write("proc/meminfo", meminfo);
  const AvailableMemory memory = available_memory(root.path());
  QCOMPARE(memory.total, 16 * gib);
  QCOMPARE(memory.available, 8 * gib);
  QCOMPARE(std::string(memory.limited_by), std::string("machine"));
  QCOMPARE(available_memory("/nonexistent").total, std::uint64_t{0});
}

void TestMachine::control_group_v2_limits_memory() {
  FakeRoot root;
  root.write("proc/meminfo", meminfo);
  root.write("proc/self/cgroup", "0::/user.slice/job\n");
  root.write("sys/fs/cgroup/user.slice/job/memory.max", "max\n");
  root.write("sys/fs/cgroup/user.slice/job/memory.current", "1073741824\n");
  // The limit stands on the parent: 4 GiB, 3 used, of which 1 is page cache.
  root.write("sys/fs/cgroup/user.slice/memory.max", "4294967296\n");
  root.write("sys/fs/cgroup/user.slice/memory.current", "3221225472\n");
  root.write("sys/fs/cgroup/user.slice/memory.stat",
             "anon 2147483648\nfile 1073741824\ninactive_file 1073741824\n");
  const AvailableMemory memory = available_memory(root.path());
  QCOMPARE(memory.total, 4 * gib);
  QCOMPARE(memory.available, 2 * gib);
  QCOMPARE(std::string(memory.limited_by), std::string("control group"));
}

void TestMachine::control_group_v1_limits_memory() {
  FakeRoot root;
  root.write("proc/meminfo", meminfo);
  root.write("proc/self/cgroup", "9:memory:/docker/abc\n5:cpu,cpuacct:/docker/abc\n");
  // Inside a container the named folder is missing; the mount is the container's own group.
  root.write("sys/fs/cgroup/memory/memory.limit_in_bytes", "2147483648\n");
  root.write("sys/fs/cgroup/memory/memory.usage_in_bytes", "3221225472\n");
  root.write("sys/fs/cgroup/memory/memory.stat", "total_inactive_file 0\n");
  const AvailableMemory memory = available_memory(root.path());
  QCOMPARE(memory.total, 2 * gib);
  QCOMPARE(memory.available, std::uint64_t{0});
}

void TestMachine::unlimited_groups_do_not_limit() {
  FakeRoot root;
  root.write("proc/meminfo", meminfo);
  root.write("proc/self/cgroup", "9:memory:/\n0::/\n");
  root.write("sys/fs/cgroup/memory.max", "max\n");
  root.write("sys/fs/cgroup/memory.current", "5\n");
  root.write("sys/fs/cgroup/memory/memory.limit_in_bytes", "9223372036854771712\n");
  root.write("sys/fs/cgroup/memory/memory.usage_in_bytes", "5\n");
  QCOMPARE(available_memory(root.path()).available, 8 * gib);
}

void TestMachine::control_groups_limit_processors() {
  const int all = cpu_info("/nonexistent").usable_cpus;
  FakeRoot v2;
  v2.write("proc/self/cgroup", "0::/a/b\n");
  v2.write("sys/fs/cgroup/a/b/cpu.max", "max 100000\n");
  QCOMPARE(cpu_info(v2.path()).usable_cpus, all);
  v2.write("sys/fs/cgroup/a/cpu.max", "50000 100000\n");
  QCOMPARE(cpu_info(v2.path()).usable_cpus, 1);
  v2.write("sys/fs/cgroup/a/cpu.max", "150000 100000\n");
  QCOMPARE(cpu_info(v2.path()).usable_cpus, std::min(2, all));
  FakeRoot v1;
  v1.write("proc/self/cgroup", "4:cpu,cpuacct:/x\n");
  v1.write("sys/fs/cgroup/cpu,cpuacct/x/cpu.cfs_quota_us", "-1\n");
  v1.write("sys/fs/cgroup/cpu,cpuacct/x/cpu.cfs_period_us", "100000\n");
  QCOMPARE(cpu_info(v1.path()).usable_cpus, all);
  v1.write("sys/fs/cgroup/cpu,cpuacct/x/cpu.cfs_quota_us", "100000\n");
  QCOMPARE(cpu_info(v1.path()).usable_cpus, 1);
}

void TestMachine::processor_name_and_flags() {
  FakeRoot root;
  root.write("proc/cpuinfo",
             "processor\t: 0\nmodel name\t: Test CPU 9000\nflags\t\t: fpu avx2 avx512f avx512_bf16\n");
  const CpuInfo cpu = cpu_info(root.path());
  QCOMPARE(cpu.model, std::string("Test CPU 9000"));
  QVERIFY(cpu.isa.avx2 && cpu.isa.avx512f && cpu.isa.avx512_bf16 && !cpu.isa.amx_bf16);
  QCOMPARE(cpu.isa_name(), std::string("AVX-512 (bf16)"));
  // "avx" or "avx2x" is not "avx2".
  root.write("proc/cpuinfo", "model name\t: Old\nflags\t\t: fpu avx avx2x\n");
  QCOMPARE(cpu_info(root.path()).isa_name(), std::string("baseline"));
}

void TestMachine::this_machine_is_plausible() {
  const AvailableMemory memory = available_memory();
  QVERIFY(memory.total > (64u << 20));
  QVERIFY(memory.available <= memory.total);
  QVERIFY(cpu_info().usable_cpus >= 1);
}

void TestMachine::no_terminal_no_prompt() {
  QCOMPARE(terminal_width(80) > 0, true);
  if (QFile::exists("/dev/tty")) {
    QFile terminal("/dev/tty");
    if (terminal.open(QIODevice::ReadWrite)) QSKIP("this test program has a controlling terminal");
  }
  const auto answer = prompt("question? ", true);
  QVERIFY(!answer.ok());
  QCOMPARE(answer.error().code, ErrorCode::Unavailable);
  QVERIFY(!show_on_terminal("words").ok());
}

NS_TEST(TestMachine)
#include "test_machine.moc"
