// Checkpoints that travel: export to other programs, import from another node, and a folder of format version
// 1 that must open for ever.
#include <QDir>
#include <QFile>
#include <QJsonDocument>
#include <QJsonObject>
#include <QProcess>
#include <QTemporaryDir>
#include <QtTest>

#include "core/checkpoint/export.h"
#include "core/checkpoint/writer.h"
#include "tests/support/checkpoint_sample.h"
#include "tests/support/fault_file_env.h"
#include "tests/support/memory_file_env.h"
#include "tests/support/test_main.h"

using namespace neuroshard;
using namespace neuroshard::checkpoint;
using namespace neuroshard::testing;

namespace {
const char* fixture_name = "checkpoint-v1";
}

class TestTransfer : public QObject {
  Q_OBJECT

  static std::string fixture_path() {
    return qEnvironmentVariable("NS_SOURCE_DIR").toStdString() + "/tests/golden/formats/" + fixture_name;
  }

 private Q_SLOTS:
  void init() { disk_ = MemoryFileEnv(); }

  void an_export_is_read_by_an_independent_reader() {
    if (!QFile::exists("/usr/bin/python3")) QSKIP("python3 is not installed");
    QTemporaryDir folder;
    const std::string root = folder.path().toStdString();
    const auto env = storage::make_posix_file_env();
    auto writer = Writer::open(*env, key_, root + "/c").value();
    QVERIFY(writer.save(tiny_manifest(120), TinyState(1).view()).ok());
    const Entry entry = Catalogue(*env, root + "/c").current().value().value();
    const std::string path = root + "/" + export_file_name(entry.manifest);
    QVERIFY(path.find("neuroshard-0123456789abcdef-") != std::string::npos);
    const auto bytes = export_weights(*env, entry, path);
    QVERIFY2(bytes.ok(), bytes.ok() ? "" : bytes.error().describe().c_str());
    QCOMPARE(static_cast<qint64>(*bytes), QFile(QString::fromStdString(path)).size());
    const QString script = qEnvironmentVariable("NS_SOURCE_DIR") + "/tests/golden/check_safetensors.py";
    QJsonObject seen[2];
    const std::string files[2] = {path, entry.path + "/weights.safetensors"};
    for (int i = 0; i < 2; ++i) {
      QProcess python;
      python.start("/usr/bin/python3", {script, QString::fromStdString(files[i])});
      QVERIFY(python.waitForFinished(20'000));
      QVERIFY2(python.exitCode() == 0, python.readAllStandardError().constData());
      seen[i] = QJsonDocument::fromJson(python.readAllStandardOutput()).object();
    }
    QVERIFY(seen[0]["tensors"] == seen[1]["tensors"]);  // names, shapes and the hash of every tensor
    const QJsonObject metadata = seen[0]["metadata"].toObject();
    QCOMPARE(metadata["format"].toString(), QString("pt"));
    QCOMPARE(metadata["neuroshard.step"].toString(), QString("120"));
    QCOMPARE(metadata["neuroshard.wallet"].toString(), QString("0123456789abcdef"));
    const auto shape =
        QJsonDocument::fromJson(metadata["neuroshard.architecture"].toString().toUtf8()).object();
    QCOMPARE(shape["hidden_size"].toInt(), 8);
    QVERIFY(export_weights(*env, entry, path).ok());  // again, over the earlier one
  }

  void an_exported_folder_is_new_and_touches_no_other() {
    auto writer = Writer::open(disk_, key_, "/c").value();
    QVERIFY(writer.save(tiny_manifest(120), TinyState(1).view()).ok());
    const Entry entry = Catalogue(disk_, "/c").current().value().value();
    QVERIFY(disk_.create_directories("/out.part").ok());
    QVERIFY(storage::write_file_atomic(disk_, "/out.part/mine", as_bytes("a person's file")).ok());
    FaultFileEnv full(disk_, {.room_bytes = 2000});
    QCOMPARE(export_folder(full, entry, "/out").error().code, ErrorCode::Exhausted);
    QVERIFY(!disk_.exists("/out"));
    QVERIFY(export_folder(disk_, entry, "/out").ok());
    QCOMPARE(open_folder(disk_, "/out").value().manifest.step, entry.manifest.step);
    QCOMPARE(export_folder(disk_, entry, "/out").error().code, ErrorCode::AlreadyExists);
    QVERIFY(disk_.exists("/out.part/mine"));
  }

  void damage_and_full_disks_leave_no_export() {
    auto writer = Writer::open(disk_, key_, "/c").value();
    QVERIFY(writer.save(tiny_manifest(120), TinyState(1).view()).ok());
    const Entry entry = Catalogue(disk_, "/c").current().value().value();
    FaultFileEnv full(disk_, {.room_bytes = 2000});
    QCOMPARE(export_weights(full, entry, "/out").error().code, ErrorCode::Exhausted);
    const std::string weights = entry.path + "/weights.safetensors";
    disk_.flip(weights, disk_.open_read(weights).value()->size() - 1);
    QCOMPARE(export_weights(disk_, entry, "/out").error().code, ErrorCode::Corrupt);
    QVERIFY(!disk_.exists("/out") && !disk_.exists("/out.tmp-0000000000000000"));
  }

  void a_hostile_wallet_names_no_other_folder() {
    Manifest manifest = tiny_manifest(1);
    manifest.wallet = "../../etc/Ü";
    QCOMPARE(export_file_name(manifest), std::string("neuroshard-etc-00000000-step1.safetensors"));
  }

  void an_import_is_ours_pinned_and_waits_to_be_chosen() {
    const crypto::KeyPair other = tiny_key(9);
    auto theirs = Writer::open(disk_, other, "/theirs").value();
    const auto sent = theirs.save(tiny_manifest(500), TinyState(5).view()).value();
    QVERIFY(disk_.rename("/theirs/" + sent.name, "/theirs/copy").ok());  // any name will do
    auto writer = Writer::open(disk_, key_, "/c").value();
    const auto own = writer.save(tiny_manifest(10), TinyState(1).view()).value();
    const auto imported = writer.adopt(open_folder(disk_, "/theirs/copy").value());
    QVERIFY2(imported.ok(), imported.ok() ? "" : imported.error().describe().c_str());
    Catalogue catalogue(disk_, "/c");
    QCOMPARE(catalogue.current().value()->name, own.name);
    const Entry entry = catalogue.find(imported->name).value();
    QVERIFY(entry.pinned && entry.complete());
    QVERIFY(entry.manifest.instance == crypto::node_id(key_.public_key()));
    QVERIFY(entry.manifest.origin.find(sent.name) == 0);
    QVERIFY(catalogue.choose(imported->name).ok());
    TinyState loaded(7);
    QCOMPARE(load_current(disk_, catalogue, loaded.request())->entry.name, imported->name);
    QVERIFY(loaded.same_bits(TinyState(5)));
  }

  void what_is_here_already_is_not_copied_again() {
    const crypto::KeyPair other = tiny_key(9);
    auto theirs = Writer::open(disk_, other, "/theirs").value();
    const auto sent = theirs.save(tiny_manifest(500), TinyState(5).view()).value();
    const Entry source = open_folder(disk_, "/theirs/" + sent.name).value();
    auto writer = Writer::open(disk_, key_, "/c").value();
    const std::string name = writer.adopt(source).value().name;
    Catalogue catalogue(disk_, "/c");
    QCOMPARE(catalogue.imported_from(source.manifest_hash).value()->name, name);
    QVERIFY(!catalogue.imported_from(Hash256{1}).value().has_value());
    FaultFileEnv full(disk_, {.room_bytes = 1});  // nothing is written
    auto again = Writer::open(full, key_, "/c").value();
    for (const Entry& entry : {source, open_folder(disk_, "/c/" + name).value()}) {
      const auto refused = again.adopt(entry);
      QVERIFY(!refused.ok());
      QCOMPARE(refused.error().code, ErrorCode::AlreadyExists);
      QVERIFY2(refused.error().message.ends_with(name), refused.error().message.c_str());
    }
    QVERIFY(catalogue.note_verdict(name, {WallTime{}, false}).ok());
    const auto damaged = again.adopt(source);
    QVERIFY(!damaged.ok());
    QVERIFY2(damaged.error().message.find("delete that one") != std::string::npos,
             damaged.error().message.c_str());
    QVERIFY(catalogue.unpin(name).ok() && catalogue.remove(name).ok());
    QCOMPARE(writer.adopt(source).value().name, name);
  }

  // Training that starts meanwhile opens a writer of its own.
  void a_writer_leaves_an_import_beside_it_alone() {
    const std::string file = "/c/.importing/weights.safetensors";
    auto first = Writer::open(disk_, key_, "/c").value();
    QVERIFY(disk_.create_directories("/c/.importing").ok());
    QVERIFY(storage::write_file_atomic(disk_, file, Bytes{1}).ok());
    QVERIFY(Writer::open(disk_, key_, "/c").ok());
    QVERIFY(disk_.exists(file));
    Writer::remove_unfinished_import(disk_, "/c");
    QVERIFY(!disk_.exists(file));
  }

  void a_damaged_import_is_refused() {
    auto theirs = Writer::open(disk_, key_, "/theirs").value();
    const auto sent = theirs.save(tiny_manifest(500), TinyState(5).view()).value();
    auto writer = Writer::open(disk_, key_, "/c").value();
    const Entry source = open_folder(disk_, "/theirs/" + sent.name).value();
    disk_.flip(source.path + "/optimizer.safetensors", 5000);
    QCOMPARE(writer.adopt(source).error().code, ErrorCode::Corrupt);
    QVERIFY(disk_.list("/c")->empty());
    disk_.flip(source.path + "/manifest.json", 500);
    QVERIFY(!open_folder(disk_, source.path).ok());
    QCOMPARE(open_folder(disk_, "/none").error().code, ErrorCode::NotFound);
  }

  // NS_WRITE_FIXTURE=1 writes it anew, for the day on which a format version is added beside this one.
  void format_1_opens_for_ever() {
    const auto env = storage::make_posix_file_env();
    if (qEnvironmentVariableIsSet("NS_WRITE_FIXTURE")) {
      auto writer = Writer::open(*env, key_, fixture_path() + ".new").value();
      const auto saved = writer.save(tiny_manifest(120), TinyState(1).view()).value();
      QVERIFY(env->rename(fixture_path() + ".new/" + saved.name, fixture_path()).ok());
      QVERIFY(env->remove_tree(fixture_path() + ".new").ok());
    }
    const auto entry = open_folder(*env, fixture_path());
    QVERIFY2(entry.ok(), entry.ok() ? "" : entry.error().describe().c_str());
    QVERIFY(verify(*env, *entry).ok());
    QCOMPARE(entry->manifest.step, std::uint64_t{120});
    TinyState loaded(2);
    QVERIFY(load(*env, *entry, loaded.request()).ok());
    QVERIFY(loaded.same_bits(TinyState(1)));
    // And this program still writes the same bytes, with an index of the slots beside them.
    auto writer = Writer::open(disk_, key_, "/c").value();
    const auto saved = writer.save(tiny_manifest(120), TinyState(1).view());
    QCOMPARE(entry->manifest.files.size(), std::size_t{2});
    QCOMPARE(saved->manifest.files.size(), std::size_t{3});
    for (const FileRecord& file : entry->manifest.files)
      QVERIFY(saved->manifest.file(file.name)->sha256 == file.sha256);
    QVERIFY(Writer::open(*env, key_, folder_.path().toStdString() + "/c")->adopt(*entry).ok());
  }

 private:
  crypto::KeyPair key_ = tiny_key();
  MemoryFileEnv disk_;
  QTemporaryDir folder_;
};

NS_TEST(TestTransfer)
#include "test_transfer.moc"
