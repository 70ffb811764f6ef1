// genesis build: the same dataset whatever the interruptions, and a verification that finds every damage.
#include <QtTest>

#include "core/data/encoder.h"
#include "core/data/manifest_store.h"
#include "core/data/publisher.h"
#include "tests/support/fault_file_env.h"
#include "tests/support/test_main.h"
#include "tests/unit/data/dataset_support.h"

using namespace neuroshard;
using namespace neuroshard::data;
using namespace neuroshard::data::testing;
using neuroshard::testing::FaultFileEnv;
using neuroshard::testing::Faults;
using neuroshard::testing::MemoryFileEnv;

namespace {

void put_texts(storage::FileEnv& env) {
  for (int i = 0; i < 6; ++i) put_file(env, fmt::format("/books/{}.txt", i), prose(i, 4000));
  put_file(env, "/books/cover.png", std::string("\x89PNG\0\0", 6));
  put_file(env, "/news/today.txt", prose(50, 9000));
}

PublishOptions options_for(const std::string& out) {
  PublishOptions options;
  options.inputs = {{"books", "/books"}, {"news", "/news"}};
  options.output_directory = out;
  options.vocabulary = 320;
  options.shard_tokens = 3000;
  options.threads = 2;
  return options;
}

Expected<PublishResult> build(storage::FileEnv& env, const PublishOptions& options) {
  const ManualClock clock;
  return build_dataset(env, clock, key_of(1), options);
}

// Every file with its content, in one string.
std::string everything(storage::FileEnv& env, const std::string& folder) {
  std::string all;
  const auto entries = env.list(folder).value();
  for (const auto& entry : entries) {
    all += entry.name + ":";
    if (entry.is_directory) continue;
    all += as_text(storage::read_file(env, folder + "/" + entry.name, 1 << 24).value());
  }
  return all;
}

VerifyReport verify(storage::FileEnv& env, const std::string& folder) {
  const auto dataset = open_local_dataset(env, folder, {key_of(1).public_key(), {}}).value();
  return verify_shards(*dataset, {}, {}).value();
}

}  // namespace

class TestPublisher : public QObject {
  Q_OBJECT

 private Q_SLOTS:
  void builds_sources_and_splits() {
    MemoryFileEnv env;
    put_texts(env);
    const auto result = build(env, options_for("/out"));
    QVERIFY2(result.ok(), result.ok() ? "" : result.error().describe().c_str());
    QCOMPARE(result->files, std::uint64_t{7});
    QCOMPARE(result->files_skipped, std::uint64_t{1});
    QCOMPARE(result->vocabulary, 320u);
    const VerifyReport report = verify(env, "/out");
    QCOMPARE(report.shards, result->shards);
    QCOMPARE(report.bad_shards, std::uint64_t{0});
    QCOMPARE(report.tokens, result->train_tokens + result->held_out_tokens);
    const auto dataset = open_local_dataset(env, "/out", {}).value();
    std::map<std::string, std::uint64_t> train, held_out;
    for (const ShardEntry& s : dataset->shards(Split::Train)) train[s.source] += s.tokens;
    for (const ShardEntry& s : dataset->shards(Split::HeldOut)) held_out[s.source] += s.tokens;
    QCOMPARE(train.size(), std::size_t{2});
    QCOMPARE(held_out.size(), std::size_t{2});
    for (const auto& [source, tokens] : train) {
      const double share =
          static_cast<double>(held_out[source]) / static_cast<double>(tokens + held_out[source]);
      QVERIFY2(share > 0.09 && share < 0.16, std::to_string(share).c_str());
    }
    QVERIFY(!env.exists("/out/.work"));
  }

  void an_older_copy_in_another_source_gives_nothing_twice() {
    MemoryFileEnv env;
    put_texts(env);
    const std::uint64_t before = build(env, options_for("/before")).value().bytes;
    put_file(env, "/books/today with more.txt", prose(50, 9000) + prose(51, 9000));
    const auto result = build(env, options_for("/out")).value();
    QCOMPARE(result.bytes, before + prose(51, 9000).size());
  }

  // Stopped at every single change of the disk, the same command ends with the same bytes and keeps what was
  // finished.
  void a_stop_at_any_moment_changes_nothing() {
    MemoryFileEnv calm;
    put_texts(calm);
    QVERIFY(build(calm, options_for("/out")).ok());
    const std::string expected = everything(calm, "/out");
    bool done = false;
    std::uint64_t most_kept = 0;
    for (std::uint64_t stop = 0; !done; stop += 3) {
      QVERIFY(stop < 2000);
      MemoryFileEnv memory;
      put_texts(memory);
      for (const char* folder : {"/", "/books", "/news"}) QVERIFY(memory.sync_directory(folder).ok());
      Faults faults;
      faults.stop_at = stop;
      faults.tear_at_stop = true;
      FaultFileEnv env(memory, faults);
      done = build(env, options_for("/out")).ok();
      memory.power_cut(stop % 2 == 0 ? neuroshard::testing::PowerCut::Everything
                                     : neuroshard::testing::PowerCut::TornData);
      const auto again = build(memory, options_for("/out"));
      QVERIFY2(again.ok(), again.ok() ? "" : again.error().describe().c_str());
      QCOMPARE(again->already_complete, done || again->already_complete);
      most_kept = std::max(most_kept, again->shards_kept);
      QVERIFY(everything(memory, "/out") == expected);
    }
    QVERIFY2(most_kept >= 4, "finished shards must not be written again");
  }

  void finished_builds_are_recognised() {
    MemoryFileEnv env;
    put_texts(env);
    QVERIFY(build(env, options_for("/out")).ok());
    const std::string before = everything(env, "/out");
    const auto again = build(env, options_for("/out"));
    QVERIFY(again.ok() && again->already_complete);
    QVERIFY(everything(env, "/out") == before);
    PublishOptions other = options_for("/out");
    other.vocabulary = 300;
    QVERIFY(build(env, other).error().code == ErrorCode::AlreadyExists);
    QVERIFY(everything(env, "/out") == before);
  }

  void other_text_or_settings_do_not_continue_a_build() {
    MemoryFileEnv memory;
    put_texts(memory);
    Faults faults;
    faults.stop_at = 60;
    FaultFileEnv env(memory, faults);
    QVERIFY(!build(env, options_for("/out")).ok());
    PublishOptions other = options_for("/out");
    other.shard_tokens = 2000;
    QVERIFY(build(memory, other).error().code == ErrorCode::InvalidArgument);
    put_file(memory, "/books/new.txt", prose(99, 4000));
    const auto changed = build(memory, options_for("/out"));
    QVERIFY(changed.error().code == ErrorCode::InvalidArgument);
    QVERIFY(changed.error().message.find(".work") != std::string::npos);
  }

  void verification_names_what_is_damaged() {
    MemoryFileEnv env;
    put_texts(env);
    QVERIFY(build(env, options_for("/out")).ok());
    env.flip("/out/shard_1.pt", 5000);
    env.truncate("/out/shard_3.pt", 100);
    QVERIFY(env.remove_file("/out/shard_4.pt").ok());
    const VerifyReport report = verify(env, "/out");
    QCOMPARE(report.bad_shards, std::uint64_t{3});
    QVERIFY(report.problems[0].find("shard_1.pt") != std::string::npos);
    env.flip("/out/tokenizer.json", 30);
    QVERIFY(open_local_dataset(env, "/out", {}).error().code == ErrorCode::Corrupt);
    env.flip("/out/manifest.json", 30);
    QVERIFY(!open_local_dataset(env, "/out", {}).ok());
  }

  void full_disks_are_said_so() {
    MemoryFileEnv memory;
    put_texts(memory);
    Faults faults;
    faults.room_bytes = 60'000;
    FaultFileEnv env(memory, faults);
    QVERIFY(build(env, options_for("/out")).error().code == ErrorCode::Exhausted);
    QVERIFY(build(memory, options_for("/out")).ok());
  }
};

NS_TEST(TestPublisher)
#include "test_publisher.moc"
