// The file environment: whole or old content only, clear errors, and the fault injectors that other tests
// stand on.
#include <fcntl.h>
#include <signal.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <QTemporaryDir>
#include <QtTest>

#include "core/storage/file_env.h"
#include "tests/support/fault_file_env.h"
#include "tests/support/memory_file_env.h"
#include "tests/support/test_main.h"

using namespace neuroshard;
using namespace neuroshard::storage;
using neuroshard::testing::FaultFileEnv;
using neuroshard::testing::Faults;
using neuroshard::testing::MemoryFileEnv;
using neuroshard::testing::PowerCut;

namespace {
std::string text_of(FileEnv& env, const std::string& path) {
  auto bytes = read_file(env, path, 1000);
  return bytes.ok() ? std::string(as_text(*bytes)) : "error: " + bytes.error().message;
}
}  // namespace

class TestFileEnv : public QObject {
  Q_OBJECT

 private Q_SLOTS:
  void init() {
    folder_ = std::make_unique<QTemporaryDir>();
    root_ = folder_->path().toStdString();
    env_ = make_posix_file_env();
  }

  void writes_and_reads_back() {
    const std::string path = root_ + "/a/b/file";
    QVERIFY(env_->create_directories(root_ + "/a/b").ok());
    QVERIFY(env_->create_directories(root_ + "/a/b").ok());
    QVERIFY(write_file_atomic(*env_, path, as_bytes("first")).ok());
    QVERIFY(write_file_atomic(*env_, path, as_bytes("second")).ok());
    QCOMPARE(text_of(*env_, path), std::string("second"));
    auto file = env_->open_append(path).value();
    QVERIFY(file->append(as_bytes(" half")).ok());
    QVERIFY(file->close().ok());
    QCOMPARE(text_of(*env_, path), std::string("second half"));
    const auto entries = env_->list(root_ + "/a/b").value();
    QCOMPARE(entries.size(), std::size_t{1});  // no temporary file is left
    QCOMPARE(entries[0].size, std::uint64_t{11});
  }

  // Past the page cache or through it, in pieces that fit no block: the same bytes and the same length, also
  // when the size was said wrong.
  void large_files_hold_what_was_appended() {
    Bytes content((std::size_t{3} << 20) + 1234);
    std::uint32_t value = 1;
    for (auto& byte : content)
      byte = static_cast<std::uint8_t>((value = value * 1664525u + 1013904223u) >> 24);
    for (const bool read_soon : {false, true}) {
      for (const std::uint64_t said :
           {std::uint64_t{0}, std::uint64_t{content.size()}, std::uint64_t{8} << 20}) {
        const std::string path = root_ + "/large";
        auto file = env_->open_write_large(path, {.bytes = said, .read_soon = read_soon}).value();
        std::size_t piece = 1;
        for (std::size_t at = 0; at < content.size(); piece = piece * 3 + 1) {
          const std::size_t now = std::min(piece, content.size() - at);
          QVERIFY(file->append(ByteSpan(content.data() + at, now)).ok());
          at += now;
          if (at > content.size() / 2 && piece % 2 == 0) QVERIFY(file->sync().ok());
        }
        QVERIFY(file->sync().ok());
        QVERIFY(file->close().ok());
        const auto read = read_file(*env_, path, 16u << 20);
        QVERIFY(read.ok() && *read == content);
        struct stat info {};
        QCOMPARE(::stat(path.c_str(), &info), 0);
        QCOMPARE(info.st_mode & 0777u, mode_t{0600});
      }
    }
  }

  void a_large_file_without_room_is_refused_at_once() {
    const auto file = env_->open_write_large(root_ + "/huge", {.bytes = std::uint64_t{1} << 50});
    // A file system that cannot take room in advance opens it, and the first write tells.
    if (file.ok()) QSKIP("this file system takes no room in advance");
    QCOMPARE(file.error().code, ErrorCode::Exhausted);
  }

  void private_by_default() {
    struct stat info {};
    QVERIFY(env_->create_directories(root_ + "/data").ok());
    QVERIFY(write_file_atomic(*env_, root_ + "/data/secret", as_bytes("x")).ok());
    QCOMPARE(::stat((root_ + "/data").c_str(), &info), 0);
    QCOMPARE(info.st_mode & 0777u, mode_t{0700});
    QCOMPARE(::stat((root_ + "/data/secret").c_str(), &info), 0);
    QCOMPARE(info.st_mode & 0777u, mode_t{0600});
  }

  void refuses_before_allocating() {
    QVERIFY(write_file_atomic(*env_, root_ + "/big", as_bytes("0123456789")).ok());
    const auto refused = read_file(*env_, root_ + "/big", 9);
    QVERIFY(!refused.ok());
    QCOMPARE(refused.error().code, ErrorCode::Exhausted);
    QVERIFY(read_file(*env_, root_ + "/big", 10).ok());
  }

  void errors_say_what_is_wrong() {
    const auto absent = read_file(*env_, root_ + "/none", 10);
    QCOMPARE(absent.error().code, ErrorCode::NotFound);
    QVERIFY(absent.error().message.find(root_ + "/none") != std::string::npos);
    QCOMPARE(env_->open_read(root_).error().code, ErrorCode::InvalidArgument);
    QCOMPARE(env_->remove_file(root_ + "/none").error().code, ErrorCode::NotFound);
    QVERIFY(env_->remove_tree(root_ + "/none").ok());
    QVERIFY(write_file_atomic(*env_, root_ + "/file", as_bytes("x")).ok());
    QCOMPARE(env_->create_directories(root_ + "/file/below").error().code, ErrorCode::AlreadyExists);
    auto file = env_->open_read(root_ + "/file").value();
    std::uint8_t target[2];
    QCOMPARE(file->read_at(0, target).error().code, ErrorCode::Corrupt);
    QCOMPARE(file->read_at(~std::uint64_t{0}, target).error().code, ErrorCode::Corrupt);
  }

  // A link to nothing has its name, and nobody knows about a path that can't be examined.
  void a_name_is_free_only_where_nothing_has_it() {
    QVERIFY(!env_->has_name(root_ + "/none").value());
    QVERIFY(!env_->has_name(root_ + "/none/below").value());
    QVERIFY(write_file_atomic(*env_, root_ + "/file", as_bytes("x")).ok());
    QVERIFY(env_->has_name(root_ + "/file").value());
    QVERIFY(!env_->has_name(root_ + "/file/below").value());
    QCOMPARE(::symlink("nothing", (root_ + "/link").c_str()), 0);
    QVERIFY(env_->has_name(root_ + "/link").value());
    QVERIFY(!env_->exists(root_ + "/link"));
    QCOMPARE(env_->has_name(root_ + "/" + std::string(300, 'n')).error().code, ErrorCode::InvalidArgument);
  }

  void a_pipe_does_not_hang() {
    const std::string path = root_ + "/pipe";
    QCOMPARE(::mkfifo(path.c_str(), 0600), 0);
    QCOMPARE(env_->open_read(path).error().code, ErrorCode::InvalidArgument);
  }

  void full_disk_is_exhausted() {
    if (::access("/dev/full", W_OK) != 0) QSKIP("no /dev/full on this system");
    auto file = env_->open_append("/dev/full");
    QVERIFY(file.ok());
    QCOMPARE((*file)->append(as_bytes("x")).error().code, ErrorCode::Exhausted);
  }

  void a_link_to_itself_does_not_hide_its_folder() {
    QVERIFY(env_->create_directories(root_ + "/linked").ok());
    QVERIFY(write_file_atomic(*env_, root_ + "/linked/text", as_bytes(std::string_view("x"))).ok());
    QCOMPARE(::symlink("loop", (root_ + "/linked/loop").c_str()), 0);
    const auto entries = env_->list(root_ + "/linked");
    QVERIFY2(entries.ok(), "one bad link must not make the rest unreadable");
    QCOMPARE(entries->size(), std::size_t{2});
    QVERIFY(!entries->front().is_directory && !env_->open_read(root_ + "/linked/loop").ok());
  }

  void removing_a_tree_spares_what_links_point_to() {
    QVERIFY(env_->create_directories(root_ + "/kept").ok());
    QVERIFY(write_file_atomic(*env_, root_ + "/kept/file", as_bytes("x")).ok());
    QVERIFY(env_->create_directories(root_ + "/gone/deep").ok());
    QCOMPARE(::symlink((root_ + "/kept").c_str(), (root_ + "/gone/deep/link").c_str()), 0);
    QVERIFY(env_->remove_tree(root_ + "/gone").ok());
    QVERIFY(!env_->exists(root_ + "/gone"));
    QCOMPARE(text_of(*env_, root_ + "/kept/file"), std::string("x"));
  }

  // At every instant and after every kind of power cut, readers find the old or the new content.
  void atomic_write_survives_power_cuts() {
    for (const PowerCut kind :
         {PowerCut::OnlySynced, PowerCut::NamesWithoutData, PowerCut::TornData, PowerCut::Everything}) {
      bool finished = false;
      for (std::uint64_t stop = 0; !finished; ++stop) {
        MemoryFileEnv disk;
        QVERIFY(disk.create_directories("/d").ok());
        QVERIFY(disk.sync_directory("/").ok());
        QVERIFY(write_file_atomic(disk, "/d/file", as_bytes("old")).ok());
        FaultFileEnv faults(disk, {.stop_at = stop, .tear_at_stop = stop % 2 == 1});
        finished = write_file_atomic(faults, "/d/file", as_bytes("newer")).ok();
        disk.power_cut(kind);
        const std::string found = text_of(disk, "/d/file");
        QVERIFY2(found == "newer" || (!finished && found == "old"), found.c_str());
        QVERIFY(stop < 20);
      }
    }
  }

  // The injector itself: without fsync, the same walk must find a broken file.
  void the_disk_model_punishes_a_missing_sync() {
    MemoryFileEnv disk;
    auto file = disk.open_write("/file.tmp", false).value();
    QVERIFY(file->append(as_bytes("content")).ok());
    QVERIFY(disk.rename("/file.tmp", "/file").ok());
    QVERIFY(disk.sync_directory("/").ok());
    disk.power_cut(PowerCut::OnlySynced);
    QCOMPARE(text_of(disk, "/file"), std::string());
  }

  // Another user who may write into the folder lays a link where a program is expected to write.
  void planted_links_and_files_are_left_alone() {
    const std::string victim = root_ + "/victim", target = root_ + "/target";
    QVERIFY(write_file_atomic(*env_, victim, as_bytes("mine")).ok());
    QCOMPARE(::symlink(victim.c_str(), (target + ".tmp").c_str()), 0);
    QVERIFY(write_file_atomic(*env_, target, as_bytes("new")).ok());
    QCOMPARE(text_of(*env_, victim), std::string("mine"));
    QCOMPARE(text_of(*env_, target), std::string("new"));
    // A link under the final name is replaced, not followed.
    QVERIFY(env_->remove_file(target).ok());
    QCOMPARE(::symlink(victim.c_str(), target.c_str()), 0);
    for (const auto& refused :
         {env_->open_write(target).error(), env_->open_append(target).error(),
          env_->open_write_large(target, {.bytes = 9}).error(), env_->open_existing(target).error()}) {
      QCOMPARE(refused.code, ErrorCode::Denied);
      QVERIFY2(refused.message.find("symbolic link") != std::string::npos, refused.message.c_str());
    }
    QVERIFY(write_file_atomic(*env_, target, as_bytes("whole")).ok());
    QCOMPARE(text_of(*env_, target), std::string("whole"));
    QCOMPARE(text_of(*env_, victim), std::string("mine"));
  }

  void temporary_files_are_new_and_private() {
    const auto first = env_->open_temporary(root_ + "/f", {.bytes = 10}).value();
    const auto second = env_->open_temporary(root_ + "/f", {.bytes = 10}).value();
    QVERIFY(first.path != second.path);
    struct stat info {};
    QCOMPARE(::lstat(first.path.c_str(), &info), 0);
    QCOMPARE(info.st_mode & 0777u, 0600u);
  }

  void a_new_folder_is_nobody_elses() {
    const std::string folder = root_ + "/above/new";
    QVERIFY(env_->create_new_directory(folder).ok());
    struct stat info {};
    QCOMPARE(::lstat(folder.c_str(), &info), 0);
    QCOMPARE(info.st_mode & 07777u, static_cast<mode_t>(0700));
    QCOMPARE(env_->create_new_directory(folder).error().code, ErrorCode::AlreadyExists);
    // A link to a folder of somebody else is no new folder either.
    QCOMPARE(::symlink(folder.c_str(), (root_ + "/link").c_str()), 0);
    QCOMPARE(env_->create_new_directory(root_ + "/link").error().code, ErrorCode::AlreadyExists);
  }

  void leftovers_go_once_their_writer_is_dead() {
    QVERIFY(env_->create_directories(root_ + "/below").ok());
    int ready[2];
    QCOMPARE(::pipe(ready), 0);
    const pid_t writer = ::fork();
    if (writer == 0) {  // killed with its files open
      const auto here = env_->open_temporary(root_ + "/a", {.bytes = 4});
      const auto there = env_->open_temporary(root_ + "/below/b", {.bytes = 4});
      const bool written = here.ok() && there.ok() && here->file->append(as_bytes("half")).ok();
      static_cast<void>(::write(ready[1], written ? "1" : "0", 1));
      ::pause();
    }
    char made = '0';
    QCOMPARE(::read(ready[0], &made, 1), ssize_t{1});
    QCOMPARE(made, '1');
    QCOMPARE(env_->remove_leftovers(root_, LeftoverScope::Tree), std::size_t{0});  // it lives
    ::kill(writer, SIGKILL);
    QCOMPARE(::waitpid(writer, nullptr, 0), writer);
    ::close(ready[0]);
    ::close(ready[1]);
    QCOMPARE(env_->list(root_).value().size(), std::size_t{2});
    QCOMPARE(env_->remove_leftovers(root_, LeftoverScope::Folder), std::size_t{1});
    QCOMPARE(env_->list(root_ + "/below").value().size(), std::size_t{1});
    QCOMPARE(env_->remove_leftovers(root_, LeftoverScope::Tree), std::size_t{1});
    QCOMPARE(env_->list(root_ + "/below").value().size(), std::size_t{0});
  }

  void only_leftovers_are_removed() {
    const std::string tail = ".tmp-0123456789abcdef";
    const std::vector<std::string> kept{"notes.tmp", "notes.tmp-0123", "notes.tmp-0123456789ABCDEF",
                                        "notes" + tail + ".txt", tail};
    for (const std::string& name : kept) QVERIFY(env_->open_write(root_ + "/" + name).ok());
    QVERIFY(env_->create_directories(root_ + "/folder" + tail).ok());
    QCOMPARE(::symlink((root_ + "/notes.tmp").c_str(), (root_ + "/link" + tail).c_str()), 0);
    QVERIFY(env_->open_write(root_ + "/file" + tail).ok());
    QCOMPARE(env_->remove_leftovers(root_, LeftoverScope::Tree), std::size_t{1});
    QVERIFY(!env_->exists(root_ + "/file" + tail));
    QCOMPARE(env_->list(root_).value().size(), kept.size() + 2);
    QCOMPARE(env_->remove_leftovers(root_ + "/nowhere", LeftoverScope::Tree), std::size_t{0});
  }

  void replaced_secret_is_overwritten() {
    const std::string path = root_ + "/secret";
    QVERIFY(write_file_atomic(*env_, path, as_bytes("the old secret")).ok());
    const auto former = env_->open_read(path).value();
    const auto done = replace_secret_file(*env_, path, as_bytes("sealed"));
    QVERIFY(done.ok() && done->ok());
    Bytes now(14, 'x');
    QVERIFY(former->read_at(0, now).ok());
    QCOMPARE(now, Bytes(14, 0));
    QCOMPARE(text_of(*env_, path), std::string("sealed"));
    // A second name is somebody's choice: the file is replaced, its content stays.
    QCOMPARE(::link(path.c_str(), (root_ + "/other").c_str()), 0);
    const auto linked = replace_secret_file(*env_, path, as_bytes("third"));
    QVERIFY(linked.ok() && !linked->ok());
    QCOMPARE(linked->error().code, ErrorCode::Denied);
    QCOMPARE(text_of(*env_, path), std::string("third"));
    QCOMPARE(text_of(*env_, root_ + "/other"), std::string("sealed"));
  }

  // The new content is on the disk before the old one is touched.
  void failed_replacement_keeps_the_old_secret() {
    const std::string path = root_ + "/d/secret";
    QVERIFY(env_->create_directories(root_ + "/d").ok());
    QVERIFY(write_file_atomic(*env_, path, as_bytes("old")).ok());
    FaultFileEnv full(*env_, {.room_bytes = 3});
    QCOMPARE(replace_secret_file(full, path, as_bytes("12345")).error().code, ErrorCode::Exhausted);
    QCOMPARE(text_of(*env_, path), std::string("old"));
  }

  void fault_injection() {
    MemoryFileEnv disk;
    FaultFileEnv full(disk, {.room_bytes = 3});
    QCOMPARE(write_file_atomic(full, "/f", as_bytes("12345")).error().code, ErrorCode::Exhausted);
    QVERIFY(!disk.exists("/f"));
    QVERIFY(disk.list("/").value().empty());
    FaultFileEnv read_only(disk, {.read_only = true});
    QCOMPARE(write_file_atomic(read_only, "/f", as_bytes("1")).error().code, ErrorCode::Denied);
    FaultFileEnv once(disk, {.fail_at = 1});
    QCOMPARE(write_file_atomic(once, "/f", as_bytes("1")).error().code, ErrorCode::Io);
    QVERIFY(write_file_atomic(once, "/f", as_bytes("1")).ok());
  }

 private:
  std::unique_ptr<QTemporaryDir> folder_;
  std::string root_;
  std::unique_ptr<FileEnv> env_;
};

NS_TEST(TestFileEnv)
#include "test_file_env.moc"
