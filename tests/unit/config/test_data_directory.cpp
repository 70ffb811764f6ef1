// The data directory: gets what it needs without questions, keeps its identity, refuses what would harm it.
#include <QtTest>

#include <array>
#include <filesystem>

#include "core/config/data_directory.h"
#include "core/config/detail/directory_format.h"
#include "tests/support/fault_file_env.h"
#include "tests/support/test_main.h"
#include "tests/unit/crypto/counting_entropy.h"
#include "tests/unit/engine/no_sync_file_env.h"

using namespace neuroshard;          // NOLINT
using namespace neuroshard::config;  // NOLINT

class TestDataDirectory : public QObject {
  Q_OBJECT
 private Q_SLOTS:
  void init();
  void fresh_directory_gets_everything();
  void reopened_directory_keeps_its_identity();
  void only_one_owner();
  void leftovers_of_a_crash_are_removed();
  void other_network_is_refused_and_both_are_named();
  void a_directory_that_was_only_set_up_joins_another_network();
  void what_a_node_has_used_joins_no_other_network();
  void newer_addresses_are_taken_over();
  void newer_format_is_left_alone();
  void older_format_is_brought_forward_after_a_backup();
  void foreign_folder_is_refused();
  void missing_directory_is_not_made_for_readers();
  void settings_survive_and_keep_a_backup();
  void settings_are_given_as_a_copy();
  void a_flag_can_be_kept();
  void damaged_files_are_named_data();
  void damaged_files_are_named();
  void what_cannot_be_reached_is_not_made_anew_data();
  void what_cannot_be_reached_is_not_made_anew();
  void read_only_disk_is_said();
  void full_disk_is_said();
  void a_disk_that_goes_away_is_not_replaced();
  void any_failed_write_can_be_repeated();

 private:
  Expected<std::unique_ptr<DataDirectory>> open(const std::string& profile = {}) {
    options_.profile = profile;
    return DataDirectory::open(options_, {files_, entropy_, clock_, logger_});
  }
  std::string read(const std::string& name) {
    const auto bytes = storage::read_file(files_, options_.path + "/" + name, 1 << 20);
    return bytes.ok() ? std::string(as_text(*bytes)) : std::string();
  }
  void write(const std::string& name, const std::string& text) {
    QVERIFY(storage::write_file_atomic(files_, options_.path + "/" + name, as_bytes(text)).ok());
  }

  std::unique_ptr<QTemporaryDir> folder_;
  testing::NoSyncFileEnv files_;
  test::CountingEntropy entropy_;
  SystemClock clock_;
  NullLogger logger_;
  DataDirectoryOptions options_;
  std::vector<std::string> words_;
};

namespace {

int ran = 0;
Expected<void> add_a_file(storage::FileEnv& files, const std::string& directory) {
  ++ran;
  return storage::write_file_atomic(files, directory + "/migrated", as_bytes("yes"));
}

class SmallDisk : public storage::FileEnv {
 public:
  explicit SmallDisk(storage::FileEnv& inner) : inner_(inner) {}
  Expected<std::unique_ptr<storage::ReadableFile>> open_read(const std::string& p) override {
    return inner_.open_read(p);
  }
  Expected<std::unique_ptr<storage::WritableFile>> open_write(const std::string& p, bool w) override {
    return inner_.open_write(p, w);
  }
  Expected<std::unique_ptr<storage::WritableFile>> open_append(const std::string& p) override {
    return inner_.open_append(p);
  }
  Expected<void> rename(const std::string& a, const std::string& b) override { return inner_.rename(a, b); }
  Expected<void> remove_file(const std::string& p) override { return inner_.remove_file(p); }
  Expected<void> remove_tree(const std::string& p) override { return inner_.remove_tree(p); }
  Expected<void> create_directories(const std::string& p) override { return inner_.create_directories(p); }
  Expected<void> sync_directory(const std::string& p) override { return inner_.sync_directory(p); }
  Expected<std::vector<storage::DirectoryEntry>> list(const std::string& p) override {
    return inner_.list(p);
  }
  bool exists(const std::string& p) override { return inner_.exists(p); }
  Expected<bool> has_name(const std::string& p) override { return inner_.has_name(p); }
  Expected<std::uint64_t> free_bytes(const std::string&) override { return std::uint64_t{12} << 20; }

 private:
  storage::FileEnv& inner_;
};

// Taken away as soon as the first folder is made: what is left is its place, which takes files.
class UnpluggedDisk final : public SmallDisk {
 public:
  using SmallDisk::SmallDisk;
  Expected<void> create_directories(const std::string& p) override {
    const auto made = SmallDisk::create_directories(p);
    const std::filesystem::path path(p);
    if (path.filename() != "data") return made;
    for (const auto& entry : std::filesystem::directory_iterator(path.parent_path()))
      std::filesystem::remove_all(entry.path());
    return made;
  }
  Expected<std::uint64_t> free_bytes(const std::string&) override { return std::uint64_t{1} << 40; }
};

// Does not say whether it has one of its files, and denies it to those who take a yes or a no.
class SilentDisk final : public SmallDisk {
 public:
  SilentDisk(storage::FileEnv& inner, std::string name) : SmallDisk(inner), name_(std::move(name)) {}
  bool exists(const std::string& p) override { return !p.ends_with(name_) && SmallDisk::exists(p); }
  Expected<bool> has_name(const std::string& p) override {
    if (p.ends_with(name_)) return make_error(ErrorCode::Io, "cannot examine " + p);
    return SmallDisk::has_name(p);
  }
  Expected<std::uint64_t> free_bytes(const std::string&) override { return std::uint64_t{1} << 40; }

 private:
  const std::string name_;
};

}  // namespace

void TestDataDirectory::init() {
  folder_ = std::make_unique<QTemporaryDir>();
  QVERIFY(folder_->isValid());
  words_.clear();
  options_ = {};
  options_.path = folder_->filePath("d").toStdString();
  options_.environment = nullptr;
  options_.on_new_wallet = [this](std::string_view words) { words_.emplace_back(words); };
}

void TestDataDirectory::fresh_directory_gets_everything() {
  const auto directory = open();
  QVERIFY2(directory.ok(), directory.ok() ? "" : directory.error().describe().c_str());
  QVERIFY((*directory)->created_now());
  QCOMPARE((*directory)->profile().consensus.name, std::string("solo"));
  QCOMPARE((*directory)->wallet_id().size(), std::size_t{16});
  QVERIFY(!(*directory)->wallet_protected());
  QCOMPARE(read("FORMAT"), std::string("1\n"));
  QCOMPARE((*directory)->settings().number(Setting::CheckpointMinInterval), std::uint64_t{30});
  for (const char* name : {"lock", "instance", "profile.json", "wallet.keystore", "node.key"}) {
    const QFileInfo info(folder_->filePath(QString("d/") + name));
    QVERIFY2(info.exists(), name);
    QVERIFY2(!(info.permissions() & (QFile::ReadGroup | QFile::ReadOther)), name);
  }
  for (const char* name : {"data", "checkpoints", "logs", "crash"}) {
    QVERIFY2(QFileInfo(folder_->filePath(QString("d/") + name)).isDir(), name);
  }
  QVERIFY(!(QFileInfo(folder_->filePath("d")).permissions() & (QFile::ReadGroup | QFile::ReadOther)));
  QCOMPARE(words_.size(), std::size_t{1});
  QCOMPARE(QString::fromStdString(words_[0]).split(' ').size(), 12);
}

void TestDataDirectory::reopened_directory_keeps_its_identity() {
  std::string instance, wallet;
  crypto::PublicKey key{};
  {
    const auto directory = open("devnet");
    QVERIFY(directory.ok());
    instance = (*directory)->instance_id();
    wallet = (*directory)->wallet_id();
    key = (*directory)->node_key().public_key();
  }
  words_.clear();
  const auto again = open();
  QVERIFY(again.ok());
  QVERIFY(!(*again)->created_now());
  QCOMPARE((*again)->instance_id(), instance);
  QCOMPARE((*again)->wallet_id(), wallet);
  QVERIFY((*again)->node_key().public_key() == key);
  QCOMPARE((*again)->profile().consensus.name, std::string("devnet"));
  QVERIFY2(words_.empty(), "words are shown once");
}

void TestDataDirectory::only_one_owner() {
  const auto first = open();
  QVERIFY(first.ok());
  const auto second = open();
  QVERIFY(!second.ok());
  QCOMPARE(second.error().code, ErrorCode::Busy);
  const std::string pid = std::to_string(QCoreApplication::applicationPid());
  QVERIFY2(second.error().message.find(pid) != std::string::npos, second.error().message.c_str());
}

void TestDataDirectory::leftovers_of_a_crash_are_removed() {
  QVERIFY(open().ok());
  const std::string left = "/wallet.keystore.tmp-0123456789abcdef";
  for (const char* folder : {"", "/data", "/checkpoints"})
    QVERIFY(files_.open_write(options_.path + folder + left, false).ok());
  QVERIFY(open().ok());
  for (const char* folder : {"", "/data", "/checkpoints"})
    QVERIFY(!files_.exists(options_.path + folder + left));
}

void TestDataDirectory::other_network_is_refused_and_both_are_named() {
  QVERIFY(open("solo").ok());
  QVERIFY(open("solo").ok());
  const auto other = open("devnet");
  QCOMPARE(other.error().code, ErrorCode::InvalidArgument);
  QVERIFY(other.error().message.find("'solo'") != std::string::npos);
  QVERIFY(other.error().message.find("'devnet'") != std::string::npos);
}

void TestDataDirectory::a_directory_that_was_only_set_up_joins_another_network() {
  std::string wallet;
  {
    const auto set_up = open();
    QVERIFY(set_up.ok());
    wallet = (*set_up)->wallet_id();
    QVERIFY((*set_up)->set_setting(Setting::CpuThreads, {2, {}}).ok());
  }
  options_.joins = true;
  QVERIFY(open("devnet").ok());
  options_.joins = false;
  {
    const auto joined = open();
    QVERIFY(joined.ok());
    QCOMPARE((*joined)->profile().consensus.name, std::string("devnet"));
    QCOMPARE((*joined)->wallet_id(), wallet);
    QCOMPARE((*joined)->settings().number(Setting::CpuThreads), std::uint64_t{2});
  }
  QCOMPARE(words_.size(), std::size_t{1});
  options_.joins = true;  // once: a network has it now
  QCOMPARE(open("testnet").error().code, ErrorCode::InvalidArgument);
}

void TestDataDirectory::what_a_node_has_used_joins_no_other_network() {
  options_.joins = true;
  for (const char* file : {"data/shard", "checkpoints/model"}) {
    QVERIFY(open("solo").ok());
    write(file, "of this network");
    QCOMPARE(open("devnet").error().code, ErrorCode::InvalidArgument);
    QVERIFY(files_.remove_file(options_.path + "/" + file).ok());
  }
}

void TestDataDirectory::newer_addresses_are_taken_over() {
  QVERIFY(open("solo").ok());
  NetworkProfile newer = *builtin_profile("solo");
  newer.directory.sequence = 3;
  newer.directory.http_port = 8123;
  const std::string file = folder_->filePath("newer.json").toStdString();
  QVERIFY(storage::write_file_atomic(files_, file, as_bytes(format_network_profile(newer))).ok());
  QVERIFY(open(file).ok());
  const auto later = open();
  QCOMPARE((*later)->profile().directory.http_port, std::uint64_t{8123});
}

void TestDataDirectory::newer_format_is_left_alone() {
  QVERIFY(open().ok());
  write("FORMAT", "2\n");
  const std::string before = read("profile.json");
  const auto newer = open();
  QCOMPARE(newer.error().code, ErrorCode::Unsupported);
  QVERIFY(newer.error().message.find("newer") != std::string::npos);
  QCOMPARE(read("FORMAT"), std::string("2\n"));
  QCOMPARE(read("profile.json"), before);
  write("FORMAT", "one\n");
  QCOMPARE(open().error().code, ErrorCode::Corrupt);
}

void TestDataDirectory::older_format_is_brought_forward_after_a_backup() {
  QVERIFY(open().ok());
  const std::array<config::detail::FormatMigration, 2> steps{{{1, add_a_file}, {2, add_a_file}}};
  ran = 0;
  QVERIFY(config::detail::open_format(files_, options_.path, 3, {steps.data(), steps.size()}).ok());
  QCOMPARE(ran, 2);
  QCOMPARE(read("FORMAT"), std::string("3\n"));
  QCOMPARE(read("backup-format-1/FORMAT"), std::string("1\n"));
  QCOMPARE(read("backup-format-1/profile.json"), read("profile.json"));
  // A format that nobody can bring forward is said, not guessed.
  QCOMPARE(config::detail::open_format(files_, options_.path, 5, {steps.data(), steps.size()}).error().code,
           ErrorCode::Unsupported);
}

void TestDataDirectory::foreign_folder_is_refused() {
  QVERIFY(QDir().mkpath(folder_->filePath("d")));
  write("holiday.jpg", "not ours");
  const auto refused = open();
  QCOMPARE(refused.error().code, ErrorCode::InvalidArgument);
  QVERIFY(refused.error().message.find("holiday.jpg") != std::string::npos);
  QVERIFY(read("node.key").empty());
}

void TestDataDirectory::missing_directory_is_not_made_for_readers() {
  options_.create = false;
  QCOMPARE(open().error().code, ErrorCode::NotFound);
  QVERIFY(!QFileInfo::exists(folder_->filePath("d")));
}

void TestDataDirectory::settings_survive_and_keep_a_backup() {
  {
    const auto directory = open();
    QVERIFY((*directory)->set_setting(Setting::CpuThreads, {2, {}}).ok());
    QVERIFY((*directory)->set_setting(Setting::MemoryLimit, {1ULL << 30, {}}).ok());
    QCOMPARE((*directory)->settings().number(Setting::CpuThreads), std::uint64_t{2});
    QVERIFY(!(*directory)->set_setting(Setting::CpuThreads, {4096, {}}).ok());
  }
  QVERIFY(read("settings.toml").find("memory_limit = \"1GiB\"") != std::string::npos);
  QVERIFY(read("settings.toml.bak").find("memory_limit") == std::string::npos);
  QVERIFY(read("settings.toml.bak").find("cpu_threads = 2") != std::string::npos);
  const auto again = open();
  QCOMPARE((*again)->settings().number(Setting::MemoryLimit), std::uint64_t{1} << 30);
  QVERIFY((*again)->clear_setting(Setting::MemoryLimit).ok());
  QCOMPARE((*again)->settings().number(Setting::MemoryLimit), std::uint64_t{0});
}

// Other threads read them while they change.
void TestDataDirectory::settings_are_given_as_a_copy() {
  const auto directory = open();
  const Settings& before = (*directory)->settings();
  QVERIFY((*directory)->set_setting(Setting::MemoryLimit, {1ULL << 30, {}}).ok());
  QCOMPARE(before.number(Setting::MemoryLimit), std::uint64_t{0});
  QCOMPARE((*directory)->settings().number(Setting::MemoryLimit), std::uint64_t{1} << 30);
}

void TestDataDirectory::a_flag_can_be_kept() {
  options_.setting_flags = {{Setting::Part, "2"}};
  {
    const auto directory = open();
    QVERIFY((*directory)->keep_setting(Setting::Part).ok());
  }
  options_.setting_flags = {{Setting::Part, "3"}};
  {
    const auto directory = open();
    QVERIFY((*directory)->keep_setting(Setting::Part).ok());  // the first one stays
    QCOMPARE((*directory)->settings().number(Setting::Part), std::uint64_t{3});
  }
  options_.setting_flags = {};
  QCOMPARE((*open())->settings().number(Setting::Part), std::uint64_t{2});
}

void TestDataDirectory::damaged_files_are_named_data() {
  QTest::addColumn<QString>("content");
  QTest::newRow("profile.json") << "{";
  QTest::newRow("settings.toml") << "cpu_threads = many";
  QTest::newRow("node.key") << "short";
  QTest::newRow("wallet.keystore") << "short";
  QTest::newRow("instance") << "no uuid";
}

void TestDataDirectory::damaged_files_are_named() {
  QFETCH(QString, content);
  const char* name = QTest::currentDataTag();
  QVERIFY(open().ok());
  write(name, content.toStdString());
  const auto refused = open();
  QVERIFY(!refused.ok());
  QVERIFY2(refused.error().describe().find(name) != std::string::npos, refused.error().describe().c_str());
  QCOMPARE(read(name), content.toStdString());
}

void TestDataDirectory::what_cannot_be_reached_is_not_made_anew_data() {
  QTest::addColumn<int>("unused");
  for (const char* name :
       {"FORMAT", "profile.json", "settings.toml", "instance", "node.key", "wallet.keystore"})
    QTest::newRow(name) << 0;
}

// A disk that does not answer, and a link to a disk that is not mounted.
void TestDataDirectory::what_cannot_be_reached_is_not_made_anew() {
  const std::string name = QTest::currentDataTag();
  {
    const auto first = open();
    QVERIFY(first.ok());
    QVERIFY((*first)->set_setting(Setting::CpuThreads, {2, {}}).ok());
  }
  const std::string content = read(name);
  SilentDisk silent(files_, name);
  const auto refused = DataDirectory::open(options_, {silent, entropy_, clock_, logger_});
  QVERIFY(!refused.ok());
  QCOMPARE(refused.error().code, ErrorCode::Io);
  QCOMPARE(read(name), content);

  const std::filesystem::path path = options_.path + "/" + name, away = options_.path + "/../away";
  std::filesystem::rename(path, away);
  std::filesystem::create_symlink(away, path);
  QVERIFY(open().ok());
  std::filesystem::rename(away, away.string() + "-now");
  QVERIFY(!open().ok());
  QVERIFY(std::filesystem::is_symlink(path));
  std::filesystem::rename(away.string() + "-now", away);
  QCOMPARE(read(name), content);
}

void TestDataDirectory::read_only_disk_is_said() {
  testing::FaultFileEnv read_only(files_, {.read_only = true});
  const auto refused = DataDirectory::open(options_, {read_only, entropy_, clock_, logger_});
  QCOMPARE(refused.error().code, ErrorCode::Denied);
  QVERIFY(refused.error().message.find("read-only") != std::string::npos);
}

void TestDataDirectory::full_disk_is_said() {
  SmallDisk small(files_);
  const auto refused = DataDirectory::open(options_, {small, entropy_, clock_, logger_});
  QCOMPARE(refused.error().code, ErrorCode::Exhausted);
  QVERIFY2(refused.error().message.find("12 MiB") != std::string::npos, refused.error().message.c_str());
  QVERIFY(refused.error().message.find("64 MiB") != std::string::npos);
}

void TestDataDirectory::a_disk_that_goes_away_is_not_replaced() {
  UnpluggedDisk disk(files_);
  const auto gone = DataDirectory::open(options_, {disk, entropy_, clock_, logger_});
  QVERIFY(!gone.ok());
  QCOMPARE(gone.error().code, ErrorCode::NotFound);
  QVERIFY2(gone.error().message.find("is its disk connected") != std::string::npos,
           gone.error().message.c_str());
  QVERIFY(QDir(folder_->filePath("d")).isEmpty(QDir::AllEntries | QDir::Hidden | QDir::NoDotAndDotDot));
}

void TestDataDirectory::any_failed_write_can_be_repeated() {
  // Whichever change of the first start fails, the second start completes what is missing.
  for (std::uint64_t n = 0;; ++n) {
    options_.path = folder_->filePath(QString("d%1").arg(n)).toStdString();
    testing::FaultFileEnv faulty(files_, {.stop_at = n});
    const auto first = DataDirectory::open(options_, {faulty, entropy_, clock_, logger_});
    if (first.ok()) {
      QVERIFY(n > 10);
      return;
    }
    const auto second = open();
    QVERIFY2(second.ok(), second.ok() ? "" : second.error().describe().c_str());
  }
}

NS_TEST(TestDataDirectory)
#include "test_data_directory.moc"
