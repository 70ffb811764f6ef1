// Saving and loading: bit for bit, by slot, and with clear words when something does not fit.
#include <QDir>
#include <QFile>
#include <QJsonArray>
#include <QJsonDocument>
#include <QJsonObject>
#include <QProcess>
#include <QTemporaryDir>
#include <QtTest>

#include "core/checkpoint/writer.h"
#include "tests/support/checkpoint_sample.h"
#include "tests/support/memory_file_env.h"
#include "tests/support/test_main.h"

using namespace neuroshard;
using namespace neuroshard::checkpoint;
using namespace neuroshard::testing;

namespace {

Expected<void> copy_all(const TensorView& live, Snapshot& into) {
  NS_RETURN_IF_ERROR(into.begin(live, Snapshot::Where::Memory));
  while (into.copy_part()) {
  }
  into.wait_copied();
  return {};
}

}  // namespace

class TestSaveLoad : public QObject {
  Q_OBJECT

 private Q_SLOTS:
  void init() {
    disk_ = std::make_unique<MemoryFileEnv>();
    writer_.emplace(Writer::open(*disk_, key_, "/checkpoints").value());
  }

  void restores_every_bit() {
    const TinyState saved(1);
    const auto result = writer_->save(tiny_manifest(10), saved.view());
    QVERIFY2(result.ok(), result.ok() ? "" : result.error().describe().c_str());
    const Entry entry = Catalogue(*disk_, "/checkpoints").current().value().value();
    QCOMPARE(entry.name, result->name);
    QVERIFY(result->bytes <= Writer::estimate_bytes(tiny_shape(), entry.manifest.slots));
    TinyState loaded(2);
    QVERIFY(!loaded.same_bits(saved));
    const auto outcome = load(*disk_, entry, loaded.request());
    QVERIFY2(outcome.ok(), outcome.ok() ? "" : outcome.error().describe().c_str());
    QVERIFY(loaded.same_bits(saved));
    QVERIFY(verify(*disk_, entry).ok());
  }

  void a_snapshot_is_a_copy() {
    TinyState live(1);
    Snapshot snapshot;
    QVERIFY(copy_all(live.view(), snapshot).ok());
    const auto slots = compute::model_slots(live.shape);
    QCOMPARE(snapshot.capacity_bytes(), Snapshot::bytes_for(live.shape, slots) + 2 * sizeof(float));
    const std::uint64_t before = snapshot.capacity_bytes();
    live = TinyState(5);
    QVERIFY(writer_->save(tiny_manifest(10), snapshot.view().value()).ok());
    TinyState loaded(2);
    QVERIFY(load_current(*disk_, Catalogue(*disk_, "/checkpoints"), loaded.request()).ok());
    QVERIFY(loaded.same_bits(TinyState(1)));
    QVERIFY(copy_all(live.view(), snapshot).ok());
    QCOMPARE(snapshot.capacity_bytes(), before);  // reused
  }

  void generation_loads_weights_only() {
    const TinyState saved(1);
    QVERIFY(writer_->save(tiny_manifest(10), saved.view()).ok());
    const Entry entry = Catalogue(*disk_, "/checkpoints").current().value().value();
    QVERIFY(disk_->remove_file(entry.path + "/optimizer.safetensors").ok());
    TinyState loaded(2);
    LoadRequest request = loaded.request();
    request.optimizer = false;
    QVERIFY(load(*disk_, entry, request).ok());
    QVERIFY(loaded.slots[0].parameters == saved.slots[0].parameters ||
            std::memcmp(loaded.slots[0].parameters.data(), saved.slots[0].parameters.data(),
                        saved.slots[0].parameters.size() * sizeof(float)) == 0);
  }

  void a_part_of_the_slots_can_be_saved_and_loaded() {
    const TinyState saved(1);
    TensorView part = saved.view();
    part.slots.resize(2);  // embed, layer 0
    QVERIFY(writer_->save(tiny_manifest(10), part).ok());
    const Entry entry = Catalogue(*disk_, "/checkpoints").current().value().value();
    QCOMPARE(entry.manifest.slots.size(), std::size_t{2});
    TinyState loaded(2);
    LoadRequest request = loaded.request();
    const auto missing = load(*disk_, entry, request);
    QCOMPARE(missing.error().code, ErrorCode::InvalidArgument);
    QVERIFY(missing.error().message.find("expert 0.0") != std::string::npos);
    request.slots = {compute::SlotId{compute::SlotKind::Layer, 0, 0}};
    QVERIFY(load(*disk_, entry, request).ok());
  }

  void another_model_is_refused() {
    const TinyState saved(1);
    QVERIFY(writer_->save(tiny_manifest(10), saved.view()).ok());
    compute::ModelShape other = tiny_shape();
    other.vocab = 13;
    TinyState loaded(2, other);
    const auto refused = load_current(*disk_, Catalogue(*disk_, "/checkpoints"), loaded.request());
    QCOMPARE(refused.error().code, ErrorCode::InvalidArgument);
    QVERIFY(refused.error().message.find("a different model") != std::string::npos);
  }

  void wrong_sizes_are_refused_before_writing() {
    const TinyState state(1);
    TensorView view = state.view();
    view.slots[1].moment2 = view.slots[1].moment2.memory().first(3);
    QCOMPARE(writer_->save(tiny_manifest(10), view).error().code, ErrorCode::InvalidArgument);
    QVERIFY(disk_->list("/checkpoints")->empty());
  }

  // A flip anywhere in the tensors' files is found by verify, and loading goes back to the one before.
  void damage_is_found_and_passed_over() {
    const TinyState older(1), newer(2);
    const std::string first = writer_->save(tiny_manifest(10), older.view())->name;
    const std::string second = writer_->save(tiny_manifest(20), newer.view())->name;
    Catalogue catalogue(*disk_, "/checkpoints");
    for (const char* file : {"weights.safetensors", "optimizer.safetensors"}) {
      const std::string path = "/checkpoints/" + second + "/" + file;
      const std::uint64_t size = disk_->open_read(path).value()->size();
      for (std::uint64_t at = 0; at < size; at += 37) {
        disk_->flip(path, at);
        const Entry entry = catalogue.find(second).value();
        QVERIFY(!verify(*disk_, entry).ok());
        TinyState loaded(3);
        const auto outcome = load_current(*disk_, catalogue, loaded.request());
        QVERIFY(outcome.ok());
        QCOMPARE(outcome->entry.name, first);
        QCOMPARE(outcome->passed_over.size(), std::size_t{1});
        QVERIFY(outcome->passed_over[0].find(second) == 0);
        QVERIFY(loaded.same_bits(older));
        disk_->flip(path, at);
      }
    }
    TinyState loaded(3);
    QCOMPARE(load_current(*disk_, catalogue, loaded.request())->entry.name, second);
  }

  void nothing_and_nothing_good_are_told_apart() {
    TinyState loaded(3);
    Catalogue catalogue(*disk_, "/checkpoints");
    QCOMPARE(load_current(*disk_, catalogue, loaded.request()).error().code, ErrorCode::NotFound);
    QCOMPARE(load_current(*disk_, Catalogue(*disk_, "/none"), loaded.request()).error().code,
             ErrorCode::NotFound);
    const std::string name = writer_->save(tiny_manifest(10), TinyState(1).view())->name;
    disk_->flip("/checkpoints/" + name + "/manifest.json", 100);
    QCOMPARE(load_current(*disk_, catalogue, loaded.request()).error().code, ErrorCode::Corrupt);
  }

  void progress_reaches_the_end() {
    QVERIFY(writer_->save(tiny_manifest(10), TinyState(1).view()).ok());
    const Entry entry = Catalogue(*disk_, "/checkpoints").current().value().value();
    std::uint64_t last_done = 0, last_total = 1;
    QVERIFY(verify(*disk_, entry, [&](std::uint64_t done, std::uint64_t total) {
              last_done = done;
              last_total = total;
            }).ok());
    QCOMPARE(last_done, last_total);
  }

  // A disk that was taken away is not replaced by a folder in the place where it was.
  void nothing_is_written_where_the_disk_was() {
    QTemporaryDir folder;
    const std::string data = folder.path().toStdString() + "/data";
    const auto env = storage::make_posix_file_env();
    QVERIFY(env->create_directories(data).ok());
    auto writer = Writer::open(*env, key_, data + "/checkpoints").value();
    QVERIFY(writer.save(tiny_manifest(10), TinyState(1).view()).ok());
    QVERIFY(QDir().rename(folder.path() + "/data", folder.path() + "/unplugged"));
    const auto lost = writer.save(tiny_manifest(11), TinyState(1).view());
    QVERIFY(!lost.ok());
    QCOMPARE(lost.error().code, ErrorCode::NotFound);
    QVERIFY2(lost.error().message.find("is its disk connected") != std::string::npos,
             lost.error().message.c_str());
    QVERIFY(!Writer::open(*env, key_, data + "/checkpoints").ok());
    QVERIFY(!env->exists(data));
    QVERIFY(QDir().rename(folder.path() + "/unplugged", folder.path() + "/data"));
    QVERIFY(writer.save(tiny_manifest(12), TinyState(1).view()).ok());
  }

  // The place of the disk may stay, as an empty folder that takes files: only a data directory gets one.
  void an_empty_mount_point_stays_empty() {
    QTemporaryDir folder;
    const std::string data = folder.path().toStdString();
    const std::string root = data + "/checkpoints", mark = data + "/FORMAT";
    const auto env = storage::make_posix_file_env();
    const auto away = Writer::open(*env, key_, root, mark);
    QVERIFY(!away.ok());
    QCOMPARE(away.error().code, ErrorCode::NotFound);
    QVERIFY2(away.error().message.find(data + " is missing; is its disk connected") != std::string::npos,
             away.error().message.c_str());
    QVERIFY(QDir(folder.path()).isEmpty());
    QVERIFY(storage::write_file_atomic(*env, mark, as_bytes(std::string_view("1\n"))).ok());
    QVERIFY(Writer::open(*env, key_, root, mark).ok());
    QVERIFY(env->exists(root));
  }

  // Anybody's safetensors reader sees the public names and shapes.
  void python_reads_the_weights() {
    if (!QFile::exists("/usr/bin/python3")) QSKIP("python3 is not installed");
    QTemporaryDir folder;
    const auto env = storage::make_posix_file_env();
    auto writer = Writer::open(*env, key_, folder.path().toStdString() + "/c").value();
    const std::string name = writer.save(tiny_manifest(10), TinyState(1).view())->name;
    for (const char* file : {"weights.safetensors", "optimizer.safetensors"}) {
      QProcess python;
      python.start("/usr/bin/python3",
                   {qEnvironmentVariable("NS_SOURCE_DIR") + "/tests/golden/check_safetensors.py",
                    folder.path() + "/c/" + QString::fromStdString(name) + "/" + file});
      QVERIFY(python.waitForFinished(20'000));
      QVERIFY2(python.exitCode() == 0, python.readAllStandardError().constData());
      const QJsonObject tensors =
          QJsonDocument::fromJson(python.readAllStandardOutput()).object()["tensors"].toObject();
      const bool weights = QString(file).startsWith("weights");
      const QString q = weights ? "model.layers.0.self_attn.q_proj.weight"
                                : "model.layers.0.self_attn.q_proj.weight.moment1";
      QVERIFY2(tensors.contains(q), qPrintable(q));
      QCOMPARE(tensors[q].toObject()["shape"].toArray(), QJsonArray({8, 8}));
    }
  }

 private:
  crypto::KeyPair key_ = tiny_key();
  std::unique_ptr<MemoryFileEnv> disk_;
  std::optional<Writer> writer_;
};

NS_TEST(TestSaveLoad)
#include "test_save_load.moc"
