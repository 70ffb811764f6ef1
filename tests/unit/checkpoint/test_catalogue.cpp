// A person's operations: list, find, pin, delete, go back to an earlier checkpoint and undo that.
#include <QtTest>

#include "core/checkpoint/retention.h"
#include "core/checkpoint/writer.h"
#include "tests/support/checkpoint_sample.h"
#include "tests/support/memory_file_env.h"
#include "tests/support/test_main.h"

using namespace neuroshard;
using namespace neuroshard::checkpoint;
using namespace neuroshard::testing;

namespace {
std::vector<std::string> names_of(const std::vector<Entry>& entries) {
  std::vector<std::string> names;
  for (const Entry& entry : entries) names.push_back(entry.name);
  return names;
}
}  // namespace

class TestCatalogue : public QObject {
  Q_OBJECT

  std::string save(std::uint64_t step, double held_out = 3.0) {
    Manifest manifest = tiny_manifest(step);
    manifest.losses.held_out = held_out;
    return writer_->save(manifest, state_.view())->name;
  }
  std::string current() { return catalogue_.current().value().value().name; }

 private Q_SLOTS:
  void init() {
    disk_ = MemoryFileEnv();
    catalogue_ = Catalogue(disk_, "/c");
    writer_.emplace(Writer::open(disk_, key_, "/c").value());
  }

  void lists_newest_first() {
    QVERIFY(Catalogue(disk_, "/none").list()->empty());
    QVERIFY(!catalogue_.current()->has_value());
    const auto a = save(10), b = save(20), c = save(30);
    const auto entries = catalogue_.list().value();
    QCOMPARE(names_of(entries), (std::vector<std::string>{c, b, a}));
    QCOMPARE(entries[0].manifest.parent, b);
    QCOMPARE(entries[0].manifest.sequence, std::uint64_t{3});
    QVERIFY(entries[0].bytes > 1000);
    QCOMPARE(current(), c);
  }

  void finds_by_name_beginning_step_and_latest() {
    const auto a = save(10), b = save(20);
    QCOMPARE(catalogue_.find(a)->name, a);
    QCOMPARE(catalogue_.find("10")->name, a);
    QCOMPARE(catalogue_.find("0000000020-")->name, b);
    QCOMPARE(catalogue_.find("latest")->name, b);
    QCOMPARE(catalogue_.find("15").error().code, ErrorCode::NotFound);
    QCOMPARE(catalogue_.find("").error().code, ErrorCode::NotFound);
    QCOMPARE(catalogue_.find("../c").error().code, ErrorCode::NotFound);
    const auto again = save(10);
    const auto several = catalogue_.find("10");
    QCOMPARE(several.error().code, ErrorCode::InvalidArgument);
    QVERIFY(several.error().message.find(again) != std::string::npos);
  }

  void going_back_and_undoing_it() {
    const auto a = save(10), b = save(20), c = save(30);
    QVERIFY(catalogue_.choose(a).ok());
    QCOMPARE(current(), a);
    QVERIFY(catalogue_.find(a)->chosen);
    QVERIFY(catalogue_.choose(c).ok());  // undo
    QCOMPARE(current(), c);
    QVERIFY(catalogue_.choose(a).ok());
    // The next save continues from there, though its step is lower than the newest one's.
    writer_->set_parent(a);
    const auto d = save(20);
    QCOMPARE(current(), d);
    QCOMPARE(names_of(catalogue_.candidates().value()), (std::vector<std::string>{d, a, c, b}));
    // Should the new one be damaged, training goes on from its own past, not from the abandoned one.
    disk_.truncate("/c/" + d + "/weights.safetensors", 5);
    QCOMPARE(current(), a);
  }

  void a_choice_survives_a_restart_and_dies_with_the_next_save() {
    const auto a = save(10), b = save(20);
    QVERIFY(catalogue_.choose(a).ok());
    QVERIFY(catalogue_.remove(b).ok());
    writer_.emplace(Writer::open(disk_, key_, "/c").value());
    QCOMPARE(current(), a);
    const auto c = save(15);
    QCOMPARE(current(), c);
  }

  void a_broken_choice_is_no_choice() {
    const auto a = save(10), b = save(20);
    QVERIFY(catalogue_.choose(a).ok());
    for (std::uint64_t at = 0; at < disk_.open_read("/c/chosen.json").value()->size(); ++at) {
      disk_.flip("/c/chosen.json", at, 0x80);
      const std::string now = current();
      QVERIFY(now == b || now == a);
      disk_.flip("/c/chosen.json", at, 0x80);
    }
    QVERIFY(storage::write_file_atomic(disk_, "/c/chosen.json", as_bytes("{\"name\": 3}")).ok());
    QCOMPARE(current(), b);
  }

  void the_programs_pins_end_and_a_persons_stay() {
    using By = checkpoint::Catalogue::PinnedBy;
    std::vector<std::string> names;
    for (int step = 1; step <= 5; ++step) names.push_back(save(10 * step));
    QVERIFY(catalogue_.pin(names[0]).ok());
    for (const std::string& name : names) QVERIFY(catalogue_.pin(name, By::Program).ok());
    QVERIFY(!catalogue_.find(names[0])->pinned_by_program);  // the person's stands
    QVERIFY(catalogue_.find(names[1])->pinned_by_program);
    QVERIFY(catalogue_.pin(names[1]).ok());  // now it is a person's
    QVERIFY(catalogue_.unpin_older(2).ok());
    const bool pinned[] = {true, true, false, true, true};
    for (std::size_t i = 0; i < names.size(); ++i) QCOMPARE(catalogue_.find(names[i])->pinned, pinned[i]);
    QVERIFY(catalogue_.unpin(names[4]).ok());
    QVERIFY(!catalogue_.find(names[4])->pinned);
  }

  void pinned_and_chosen_ones_are_not_deleted() {
    const auto a = save(10), b = save(20);
    QVERIFY(catalogue_.pin(a).ok());
    QVERIFY(catalogue_.pin(a).ok());
    QVERIFY(catalogue_.find(a)->pinned);
    QCOMPARE(catalogue_.remove(a).error().code, ErrorCode::Denied);
    QVERIFY(catalogue_.unpin(a).ok());
    QVERIFY(catalogue_.choose(a).ok());
    QCOMPARE(catalogue_.remove(a).error().code, ErrorCode::Denied);
    QVERIFY(catalogue_.choose(b).ok());
    QVERIFY(catalogue_.remove(a).ok());
    QCOMPARE(catalogue_.find(a).error().code, ErrorCode::NotFound);
    QCOMPARE(catalogue_.remove("../../etc").error().code, ErrorCode::NotFound);
    QCOMPARE(disk_.list("/c")->size(), std::size_t{2});  // b and the choice
  }

  void damaged_ones_are_shown_not_hidden() {
    const auto a = save(10), b = save(20);
    disk_.flip("/c/" + b + "/manifest.json", 50);
    QVERIFY(disk_.create_directories("/c/0000000099-00000000").ok());
    const auto entries = catalogue_.list().value();
    QCOMPARE(entries.size(), std::size_t{3});
    QCOMPARE(entries[0].name, a);
    QVERIFY(!entries[1].complete() && !entries[2].complete());
    QCOMPARE(current(), a);
    QCOMPARE(catalogue_.choose(b).error().code, ErrorCode::Corrupt);
    QVERIFY(catalogue_.remove(b).ok());
  }

  void a_renamed_folder_is_noticed() {
    const auto a = save(10);
    QVERIFY(disk_.rename("/c/" + a, "/c/0000000099-12345678").ok());
    QVERIFY(!catalogue_.list().value()[0].complete());
  }

  void retention_is_applied() {
    std::vector<std::string> names;
    for (std::uint64_t step = 10; step <= 80; step += 10) names.push_back(save(step, step == 20 ? 1.0 : 2.0));
    QVERIFY(catalogue_.pin(names[2]).ok());
    QVERIFY(catalogue_.choose(names[3]).ok());
    RetentionPolicy policy;
    policy.keep_last = 2;
    const auto removed = apply_retention(catalogue_, policy);
    QVERIFY(removed.ok());
    QCOMPARE(*removed, (std::vector<std::string>{names[0], names[4], names[5]}));
    QCOMPARE(names_of(catalogue_.list().value()),
             (std::vector<std::string>{names[7], names[6], names[3], names[2], names[1]}));
  }

 private:
  crypto::KeyPair key_ = tiny_key();
  TinyState state_{1};
  MemoryFileEnv disk_;
  Catalogue catalogue_{disk_, "/c"};
  std::optional<Writer> writer_;
};

NS_TEST(TestCatalogue)
#include "test_catalogue.moc"
