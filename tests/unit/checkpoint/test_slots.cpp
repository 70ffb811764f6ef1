// Single slots of a checkpoint: an index that says where they lie, parts made of what was fetched by it, and
// what such a part may be used for.
#include <QtTest>

#include "core/checkpoint/detail/layout.h"
#include "core/checkpoint/slot_tensors.h"
#include "core/crypto/hash.h"
#include "tests/support/checkpoint_sample.h"
#include "tests/support/memory_file_env.h"
#include "tests/support/test_main.h"

using namespace neuroshard;
using namespace neuroshard::checkpoint;
using namespace neuroshard::testing;
using compute::SlotId;
using compute::SlotKind;

class TestSlots : public QObject {
  Q_OBJECT

  Entry saved() {
    auto writer = Writer::open(disk_, key_, "/c").value();
    return Catalogue(disk_, "/c").find(writer.save(tiny_manifest(120), state_.view()).value().name).value();
  }
  Bytes index_of(const Entry& entry) {
    return storage::read_file(disk_, entry.path + "/" + slot_index_file, max_slot_index_bytes).value();
  }
  // As `checkpoint fetch --slot` does, with a disk in place of the network.
  Expected<Entry> part_of(const Entry& entry, const std::vector<SlotId>& slots) {
    NS_ASSIGN_OR_RETURN(const auto index, decode_slot_index(index_of(entry), entry.manifest));
    NS_ASSIGN_OR_RETURN(const auto runs, runs_of_slots(index, slots));
    NS_RETURN_IF_ERROR(disk_.create_directories("/fetched"));
    for (const SlotRun& run : runs) {
      NS_ASSIGN_OR_RETURN(const auto file, disk_.open_read(entry.path + "/" + file_of(run)));
      Bytes bytes(run.bytes);
      NS_RETURN_IF_ERROR(file->read_at(run.offset, bytes));
      NS_RETURN_IF_ERROR(storage::write_file_atomic(disk_, "/fetched/" + run_file_name(run), bytes));
    }
    NS_ASSIGN_OR_RETURN(const SaveResult made, make_part(disk_, tiny_key(9), entry.manifest, entry.name, runs,
                                                         "/fetched", "/fetched/part"));
    return open_folder(disk_, "/fetched/part/" + made.name);
  }

  MemoryFileEnv disk_;
  const crypto::KeyPair key_ = tiny_key();
  TinyState state_{1};

 private Q_SLOTS:
  void init() { disk_ = MemoryFileEnv(); }

  void the_index_says_where_each_slot_lies() {
    const Entry entry = saved();
    const auto index = decode_slot_index(index_of(entry), entry.manifest);
    QVERIFY2(index.ok(), index.ok() ? "" : index.error().describe().c_str());
    for (const SlotRun& run : *index) {
      const auto file = disk_.open_read(entry.path + "/" + file_of(run)).value();
      Bytes bytes(run.bytes);
      QVERIFY(file->read_at(run.offset, bytes).ok());
      QVERIFY(crypto::sha256(bytes) == run.sha256);
      if (run.of != RunOf::Slot || run.file != RunFile::Weights) continue;
      for (const auto& slot : state_.slots)
        if (slot.id == run.slot)
          QVERIFY(bytes.size() == slot.parameters.size() * sizeof(float) &&
                  std::memcmp(bytes.data(), slot.parameters.data(), bytes.size()) == 0);
    }
    QCOMPARE(encode_slot_index(*index), index_of(entry));
  }

  // Nothing of it is believed that does not fit the manifest.
  void a_changed_index_is_refused() {
    const Entry entry = saved();
    const Bytes good = index_of(entry);
    for (std::size_t at = 0; at < good.size(); ++at) {
      if (at >= 12 && (at - 12) % slot_run_bytes >= 30) continue;  // a hash may be anything
      Bytes bad = good;
      bad[at] ^= 1;
      QVERIFY2(!decode_slot_index(bad, entry.manifest).ok(), QByteArray::number(qint64(at)).constData());
    }
    for (std::size_t length = 0; length < good.size(); ++length)
      QVERIFY(!decode_slot_index(ByteSpan(good).first(length), entry.manifest).ok());
    Bytes longer = good;
    longer.push_back(0);
    QVERIFY(!decode_slot_index(longer, entry.manifest).ok());
    // On the disk: the manifest has its hash.
    disk_.flip(entry.path + "/" + slot_index_file, good.size() - 1);
    QCOMPARE(verify(disk_, entry).error().code, ErrorCode::Corrupt);
  }

  void a_part_holds_what_was_wanted_bit_for_bit() {
    const std::vector<SlotId> wanted{{SlotKind::Layer, 0, 0}, {SlotKind::Expert, 0, 1}};
    const Expected<Entry> part = part_of(saved(), wanted);
    QVERIFY2(part.ok(), part.ok() ? "" : part.error().describe().c_str());
    QVERIFY(part->manifest.slots == wanted);
    QVERIFY(verify(disk_, *part).ok());
    TinyState loaded(2);
    LoadRequest request = loaded.request();
    request.slots = wanted;
    QVERIFY(load(disk_, *part, request).ok());
    for (std::size_t i = 0; i < state_.slots.size(); ++i) {
      const bool here = std::find(wanted.begin(), wanted.end(), state_.slots[i].id) != wanted.end();
      const auto same = [](const std::vector<float>& a, const std::vector<float>& b) {
        return std::memcmp(a.data(), b.data(), a.size() * sizeof(float)) == 0;
      };
      QCOMPARE(same(loaded.slots[i].parameters, state_.slots[i].parameters), here);
      QCOMPARE(same(loaded.slots[i].moment1, state_.slots[i].moment1), here);
      QCOMPARE(same(loaded.slots[i].moment2, state_.slots[i].moment2), here);
    }
    QVERIFY(std::memcmp(loaded.extra.data(), state_.extra.data(), 2 * sizeof(float)) == 0);
    QCOMPARE(load(disk_, *part, loaded.request()).error().code, ErrorCode::InvalidArgument);
    QCOMPARE(part_of(saved(), {{SlotKind::Expert, 0, 7}}).error().code, ErrorCode::InvalidArgument);
  }

  void a_part_is_imported_and_training_does_not_continue_from_it() {
    const Entry whole = saved();
    const Expected<Entry> part = part_of(whole, {{SlotKind::Head, 0, 0}});
    QVERIFY(part.ok());
    auto writer = Writer::open(disk_, key_, "/d").value();
    const auto imported = writer.adopt(*part);
    QVERIFY2(imported.ok(), imported.ok() ? "" : imported.error().describe().c_str());
    Catalogue catalogue(disk_, "/d");
    const Entry entry = catalogue.find(imported->name).value();
    QVERIFY(entry.complete() && entry.is_part());
    QVERIFY(entry.manifest.origin.find(whole.name) == 0);
    QVERIFY(!catalogue.current().value().has_value());
    QCOMPARE(catalogue.choose(entry.name).error().code, ErrorCode::InvalidArgument);
    // A whole one beside it is what counts.
    QVERIFY(writer.save(tiny_manifest(7), state_.view()).ok());
    QCOMPARE(catalogue.current().value()->manifest.step, std::uint64_t{7});
  }

  void an_import_keeps_the_manifest_that_it_came_with() {
    const Entry whole = saved();
    const crypto::KeyPair other_key = tiny_key(9);
    auto writer = Writer::open(disk_, other_key, "/d").value();
    const auto imported = writer.adopt(whole);
    QVERIFY(imported.ok());
    const auto original =
        storage::read_file(disk_, "/d/" + imported->name + "/" + original_manifest_file, max_manifest_bytes);
    QVERIFY(original.ok());
    QCOMPARE(crypto::sha256(*original), whole.manifest_hash);
    QVERIFY(!Catalogue(disk_, "/d").find(imported->name)->is_part());
  }
};

NS_TEST(TestSlots)
#include "test_slots.moc"
