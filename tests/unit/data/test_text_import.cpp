// A person's text becomes shards: what is used, what is held out, what happens the second time, and after a
// stop.
#include <QtTest>

#include "core/data/dataset.h"
#include "core/data/detail/corpus.h"
#include "core/data/detail/shard_encoder.h"
#include "core/data/detail/utf8_check.h"
#include "core/data/encoder.h"
#include "core/data/loader.h"
#include "core/data/shard_file.h"
#include "core/data/text_import.h"
#include "tests/support/fault_file_env.h"
#include "tests/support/test_main.h"
#include "tests/unit/data/dataset_support.h"

using namespace neuroshard;
using namespace neuroshard::data;
using namespace neuroshard::data::testing;
using neuroshard::testing::MemoryFileEnv;

namespace {

ImportOptions options_for(const std::string& path) {
  ImportOptions options;
  options.path = path;
  options.data_directory = "/node/data";
  options.sequence = 32;
  options.vocabulary = 300;
  options.shard_tokens = 5000;
  options.threads = 2;
  return options;
}

Expected<ImportResult> import(storage::FileEnv& env, const ImportOptions& options) {
  const ManualClock clock;
  return import_text(env, clock, key_of(1), options);
}

Expected<data::detail::Corpus> scan(storage::FileEnv& env, const std::string& path) {
  return data::detail::scan_corpus(env, path, {}, {});
}

std::unique_ptr<Dataset> open(storage::FileEnv& env) {
  auto dataset = open_local_dataset(env, "/node/data", {key_of(1).public_key(), {}});
  if (!dataset.ok()) qFatal("%s", dataset.error().describe().c_str());
  return std::move(dataset).value();
}

// The text behind all shards of a split, with '|' for the ends of documents.
std::string text_of(Dataset& dataset, Split split) {
  Bytes text;
  for (const ShardEntry& entry : dataset.shards(split)) {
    for (const std::int32_t token : dataset.load(entry.id, {}).value()->tokens) {
      if (token == static_cast<std::int32_t>(eos_token)) {
        text.push_back('|');
      } else {
        const ByteSpan bytes = dataset.tokenizer().token_bytes(static_cast<TokenId>(token));
        text.insert(text.end(), bytes.begin(), bytes.end());
      }
    }
  }
  return std::string(text.begin(), text.end());
}

}  // namespace

class TestTextImport : public QObject {
  Q_OBJECT

 private Q_SLOTS:
  void summary_says_what_is_used_and_what_not() {
    MemoryFileEnv env;
    put_file(env, "/text/a.txt", "Hello, caf\xc3\xa9.\n");
    put_file(env, "/text/deep/er/b.md", std::string(3000, 'b'));
    put_file(env, "/text/photo.jpg", std::string("\xff\xd8\xff\0\0JFIF", 9));
    put_file(env, "/text/latin1.txt",
             "caf\xe9 cr\xe8me br\xfbl\xe9"
             "e");
    put_file(env, "/text/empty.txt", "");
    put_file(env, "/text/.git/config", "hidden");
    const TextSummary summary = scan(env, "/text").value().summary;
    QCOMPARE(summary.files, std::uint64_t{2});
    QCOMPARE(summary.bytes, std::uint64_t{3014});
    QCOMPARE(summary.skipped_binary, std::uint64_t{2});
    QCOMPARE(summary.skipped_empty, std::uint64_t{1});
    QCOMPARE(summary.sample, std::string("Hello, caf\xc3\xa9.\n"));
    QCOMPARE(summary.skipped_examples.size(), std::size_t{3});
    QCOMPARE(scan(env, "/text/a.txt").value().summary.files, std::uint64_t{1});
    QVERIFY(scan(env, "/nowhere").error().code == ErrorCode::NotFound);
    const auto no_text = scan(env, "/text/photo.jpg");
    QVERIFY(no_text.error().code == ErrorCode::InvalidArgument);
  }

  void text_comes_back_whole_with_its_end_held_out() {
    MemoryFileEnv env;
    const std::string one = prose(1, 60'000);
    const std::string two = prose(2, 7'000);
    put_file(env, "/text/one.txt", one);
    put_file(env, "/text/sub/two.txt", two);
    put_file(env, "/text/copy of two.txt", two);
    const auto result = import(env, options_for("/text"));
    QVERIFY2(result.ok(), result.ok() ? "" : result.error().describe().c_str());
    QCOMPARE(result->files_added, std::uint64_t{2});  // a copy teaches nothing new
    QCOMPARE(result->bytes_added, static_cast<std::uint64_t>(one.size() + two.size()));
    QVERIFY(result->tokenizer_learned);
    QCOMPARE(result->vocabulary, 300u);
    QVERIFY(result->shards_added > 3);

    const auto dataset = open(env);
    const std::string train = text_of(*dataset, Split::Train);
    const std::string held_out = text_of(*dataset, Split::HeldOut);
    for (const std::string& text : {one, two}) {
      // Some cut with at most 15 % behind it, at the end of a line.
      bool found = false;
      for (std::size_t cut = text.size() * 85 / 100; cut <= text.size() * 9 / 10 && !found; ++cut) {
        found = text[cut - 1] == '\n' && train.find(text.substr(0, cut) + "|") != std::string::npos &&
                held_out.find(text.substr(cut) + "|") != std::string::npos;
      }
      QVERIFY(found);
    }
    QCOMPARE(train.size() + held_out.size(), one.size() + two.size() + 4);  // four ends
    for (const ShardEntry& entry : dataset->shards(Split::Train)) {
      QCOMPARE(entry.source, std::string("user"));
      if (&entry != &dataset->shards(Split::Train).back()) QCOMPARE(entry.tokens, std::uint64_t{5000});
    }
    QCOMPARE(result->train_tokens_added + result->held_out_tokens_added, dataset->manifest().total_tokens());
  }

  void result_does_not_depend_on_threads_or_places() {
    MemoryFileEnv env;
    for (int i = 0; i < 40; ++i) put_file(env, fmt::format("/a/{}.txt", i), prose(100 + i, 900));
    put_file(env, "/a/long.txt", prose(7, 900'000));
    for (int i = 0; i < 40; ++i) put_file(env, fmt::format("/b/{}/x", 40 - i), prose(100 + i, 900));
    put_file(env, "/b/0", prose(7, 900'000));
    ImportOptions first = options_for("/a");
    first.shard_tokens = 40'000;
    ImportOptions second = options_for("/b");
    second.data_directory = "/other/data";
    second.threads = 1;
    second.shard_tokens = 40'000;
    QVERIFY(import(env, first).ok());
    QVERIFY(import(env, second).ok());
    QVERIFY(storage::read_file(env, "/node/data/manifest.json", 1 << 20).value() ==
            storage::read_file(env, "/other/data/manifest.json", 1 << 20).value());
  }

  // The oracle is the encoder's result for the whole text at once.
  void pieces_are_encoded_as_the_whole() {
    MemoryFileEnv env;
    const std::string text = prose(4, 1'500'000);
    put_file(env, "/text.txt", text);
    ImportOptions options = options_for("/text.txt");
    options.shard_tokens = 2'500'000;
    QVERIFY(import(env, options).ok());
    const auto dataset = open(env);
    QCOMPARE(dataset->shards(Split::Train).size(), std::size_t{1});
    const auto shard = dataset->load(dataset->shards(Split::Train)[0].id, {}).value();
    Bytes decoded;
    for (std::size_t i = 0; i + 1 < shard->tokens.size(); ++i) {
      const ByteSpan bytes = dataset->tokenizer().token_bytes(static_cast<TokenId>(shard->tokens[i]));
      decoded.insert(decoded.end(), bytes.begin(), bytes.end());
    }
    Encoder encoder(std::make_shared<Tokenizer>(dataset->tokenizer()));
    const auto whole = encoder.encode(as_bytes(std::string_view(text).substr(0, decoded.size())));
    QCOMPARE(whole.size() + 1, shard->tokens.size());
    for (std::size_t i = 0; i < whole.size(); ++i)
      QVERIFY(whole[i] == static_cast<TokenId>(shard->tokens[i]));
  }

  void the_same_text_again_does_nothing() {
    MemoryFileEnv env;
    put_file(env, "/text/one.txt", prose(1, 30'000));
    QVERIFY(import(env, options_for("/text")).value().changed());
    const Bytes manifest = storage::read_file(env, "/node/data/manifest.json", 1 << 20).value();
    const auto again = import(env, options_for("/text")).value();
    QVERIFY(!again.changed());
    QCOMPARE(again.files_known, std::uint64_t{1});
    QVERIFY(manifest == storage::read_file(env, "/node/data/manifest.json", 1 << 20).value());

    put_file(env, "/text/two.txt", prose(2, 30'000));
    const auto more = import(env, options_for("/text")).value();
    QVERIFY(more.changed() && !more.tokenizer_learned);
    QCOMPARE(more.files_added, std::uint64_t{1});
    QCOMPARE(more.files_known, std::uint64_t{1});
    const auto dataset = open(env);
    QVERIFY(text_of(*dataset, Split::Train).size() > 50'000);
  }

  // The held-out part of the shorter file must not become text to train on, now or ever.
  void a_file_that_grew_adds_only_what_is_new() {
    MemoryFileEnv env;
    const std::string before = prose(1, 30'000);
    const std::string added = prose(2, 20'000);
    put_file(env, "/text/diary", before);
    QVERIFY(import(env, options_for("/text")).value().changed());
    const std::string held_out = text_of(*open(env), Split::HeldOut);
    const std::string tail = held_out.substr(0, held_out.find('|'));
    QVERIFY(tail.size() > 2'500);

    put_file(env, "/text/diary", before + added);
    const auto more = import(env, options_for("/text")).value();
    QCOMPARE(more.files_added, std::uint64_t{1});
    QCOMPARE(more.bytes_added, static_cast<std::uint64_t>(added.size()));
    const auto dataset = open(env);
    const std::string train = text_of(*dataset, Split::Train);
    QVERIFY(train.find(tail) == std::string::npos);
    QVERIFY(train.find(added.substr(0, added.size() * 85 / 100)) != std::string::npos);
    QVERIFY(text_of(*dataset, Split::HeldOut).find(tail) != std::string::npos);
    QVERIFY(!import(env, options_for("/text")).value().changed());
  }

  void an_older_copy_beside_a_file_is_not_trained_on_twice() {
    const std::string before = prose(1, 30'000);
    const std::string added = prose(2, 20'000);
    std::string first;
    for (const bool older_first : {true, false}) {
      MemoryFileEnv env;
      put_file(env, older_first ? "/text/a" : "/text/b", before);
      put_file(env, older_first ? "/text/b" : "/text/a", before + added);
      const auto result = import(env, options_for("/text")).value();
      QCOMPARE(result.bytes_added, static_cast<std::uint64_t>(before.size() + added.size()));
      const auto dataset = open(env);
      const std::string train = text_of(*dataset, Split::Train);
      QVERIFY(train.find(before) == std::string::npos);
      if (older_first) first = train;
      QVERIFY(train == first);
    }
  }

  void too_small_text_says_how_much_is_needed() {
    MemoryFileEnv env;
    put_file(env, "/note.txt", "short");
    const auto result = import(env, options_for("/note.txt"));
    QVERIFY(result.error().code == ErrorCode::InvalidArgument);
    QVERIFY2(result.error().message.find("33") != std::string::npos, result.error().message.c_str());
    QVERIFY(!env.exists("/node/data/manifest.json"));
    // Beside other text it waits until there is more.
    put_file(env, "/more/long.txt", prose(1, 20'000));
    QVERIFY(import(env, options_for("/more")).ok());
    const auto waiting = import(env, options_for("/note.txt")).value();
    QVERIFY(!waiting.changed());
    QCOMPARE(waiting.train_tokens_added, std::uint64_t{0});
    put_file(env, "/more/note.txt", "short");
    put_file(env, "/more/longer.txt", prose(2, 20'000));
    QCOMPARE(import(env, options_for("/more")).value().files_added, std::uint64_t{2});
  }

  void odd_files() {
    MemoryFileEnv env;
    put_file(env, "/text/one line", std::string(300'000, 'x'));
    put_file(env, "/text/spaces", std::string(300'000, ' '));
    put_file(env, "/text/accents", [] {
      std::string text;
      for (int i = 0; i < 150'000; ++i) text += "\xc3\xa9";
      return text;
    }());
    put_file(env, "/text/slip", prose(1, 30'000) + "\xff" + prose(2, 30'000));
    put_file(env, "/text/a", "a");
    const auto result = import(env, options_for("/text"));
    QVERIFY2(result.ok(), result.ok() ? "" : result.error().describe().c_str());
    QCOMPARE(result->files_added, std::uint64_t{5});
    const auto dataset = open(env);
    const std::string held_out = text_of(*dataset, Split::HeldOut);
    data::detail::Utf8Check check;
    check.add(as_bytes(std::string_view(held_out)));
    check.finish();
    QCOMPARE(check.errors(), std::uint64_t{0});  // no character was cut in two
  }

  void another_nodes_data_is_not_touched() {
    MemoryFileEnv env;
    put_file(env, "/text/one.txt", prose(1, 30'000));
    QVERIFY(import(env, options_for("/text")).ok());
    const ManualClock clock;
    const auto result = import_text(env, clock, key_of(2), options_for("/text"));
    QVERIFY(result.error().code == ErrorCode::Denied);
  }

  void a_damaged_shard_is_named_and_not_used() {
    MemoryFileEnv env;
    put_file(env, "/text/one.txt", prose(1, 30'000));
    QVERIFY(import(env, options_for("/text")).ok());
    env.flip("/node/data/shard_0.pt", 2000);
    const auto dataset = open(env);
    const auto shard = dataset->load(0, {});
    QVERIFY(shard.error().code == ErrorCode::Corrupt);
    QVERIFY(shard.error().message.find("shard_0.pt") != std::string::npos);
    QVERIFY(dataset->load(1, {}).ok());
    QVERIFY(dataset->load(999, {}).error().code == ErrorCode::NotFound);
  }

  void a_lost_shard_says_how_to_get_it_again() {
    MemoryFileEnv env;
    put_file(env, "/text/one.txt", prose(1, 30'000));
    QVERIFY(import(env, options_for("/text")).ok());
    const std::string before = text_of(*open(env), Split::Train);
    const Bytes tokenizer = storage::read_file(env, "/node/data/tokenizer.json", 1 << 20).value();
    QVERIFY(env.remove_file("/node/data/shard_0.pt").ok());
    const auto lost = open(env)->load(0, {});
    QVERIFY(!lost.ok());
    for (const char* said : {"Put shard_0.pt back", "in /node/data,", "--text"})
      QVERIFY2(lost.error().message.find(said) != std::string::npos, lost.error().message.c_str());
    // As it says.
    for (const char* name : {"/node/data/manifest.json", "/node/data/manifest.json.sig"})
      QVERIFY(env.remove_file(name).ok());
    QVERIFY(import(env, options_for("/text")).ok());
    QVERIFY(text_of(*open(env), Split::Train) == before);
    QVERIFY(storage::read_file(env, "/node/data/tokenizer.json", 1 << 20).value() == tokenizer);
  }

  void files_that_change_meanwhile_cost_no_other_text() {
    MemoryFileEnv env;
    const std::string grows = prose(1, 20'000), goes = prose(2, 20'000), stays = prose(3, 20'000);
    put_file(env, "/text/grows", grows);
    put_file(env, "/text/goes", goes);
    put_file(env, "/text/stays", stays);
    ImportOptions options = options_for("/text");
    options.on_progress = [&](const ImportProgress& progress) {
      if (progress.phase != ImportProgress::Phase::LearningMerges) return;
      put_file(env, "/text/grows", grows + prose(4, 5'000));
      if (env.exists("/text/goes")) QVERIFY(env.remove_file("/text/goes").ok());
    };
    const auto result = import(env, options);
    QVERIFY2(result.ok(), result.ok() ? "" : result.error().describe().c_str());
    QCOMPARE(result->files_added, std::uint64_t{2});
    QCOMPARE(result->bytes_added, static_cast<std::uint64_t>(grows.size() + stays.size()));
    QCOMPARE(result->summary.files, std::uint64_t{2});
    QCOMPARE(result->summary.skipped_unreadable, std::uint64_t{1});
    QVERIFY(result->summary.skipped_examples == std::vector<std::string>{"/text/goes"});
    const std::string train = text_of(*open(env), Split::Train);
    for (const std::string& text : {grows, stays})
      QVERIFY(train.find(text.substr(0, text.size() * 85 / 100)) != std::string::npos);
    put_file(env, "/text/goes", goes);
    QCOMPARE(import(env, options_for("/text")).value().files_added, std::uint64_t{2});
    QVERIFY(text_of(*open(env), Split::Train).find(goes.substr(0, 17'000)) != std::string::npos);
  }

  // The disk answers again a moment later, so what was left out would be left out in silence.
  void a_disk_that_is_away_for_a_moment_ends_the_import() {
    using Phase = ImportProgress::Phase;
    MemoryFileEnv memory;
    for (int i = 0; i < 6; ++i) put_file(memory, fmt::format("/text/{}.txt", i), prose(100 + i, 9'000));
    for (const Phase phase : {Phase::LearningMerges, Phase::Encoding}) {
      neuroshard::testing::FaultFileEnv env(memory);
      ImportOptions options = options_for("/text");
      options.on_progress = [&env, phase](const ImportProgress& progress) {
        // Learning has no total while it reads the text.
        const bool reads = progress.phase != Phase::LearningMerges || progress.total == 0;
        env.take_away(progress.phase == phase && reads ? ".txt" : "", ErrorCode::Io);
      };
      const auto failed = import(env, options);
      QVERIFY(!failed.ok());
      QCOMPARE(failed.error().code, ErrorCode::Io);
    }
    ImportOptions options = options_for("/text");
    options.on_progress = [&memory](const ImportProgress& progress) {
      const bool reads = progress.phase == Phase::LearningMerges && progress.total == 0;
      if (reads == memory.exists("/text"))
        NS_CHECK(memory.rename(reads ? "/text" : "/unplugged", reads ? "/unplugged" : "/text").ok());
    };
    const auto failed = import(memory, options);
    QVERIFY(!failed.ok());
    QCOMPARE(failed.error().code, ErrorCode::NotFound);
    QVERIFY(!memory.exists("/node/data/tokenizer.json"));
    QVERIFY(memory.rename("/unplugged", "/text").ok());
    QCOMPARE(import(memory, options_for("/text")).value().files_added, std::uint64_t{6});
  }

  // Of a folder with very many files, each listing takes long.
  void many_lost_files_need_few_looks_at_their_folder() {
    MemoryFileEnv memory;
    neuroshard::testing::FaultFileEnv env(memory);
    constexpr int files = 1000;
    for (int i = 0; i < files; ++i) put_file(memory, fmt::format("/text/{}", i), prose(100 + i, 600));
    std::uint64_t listed = 0;
    ImportOptions options = options_for("/text");
    options.shard_tokens = 1'000'000;
    options.on_progress = [&](const ImportProgress& progress) {
      if (progress.phase != ImportProgress::Phase::LearningMerges || listed > 0) return;
      listed = env.lists();
      for (int i = 0; i < files; i += 2) QVERIFY(memory.remove_file(fmt::format("/text/{}", i)).ok());
    };
    const auto result = import(env, options);
    QVERIFY2(result.ok(), result.ok() ? "" : result.error().describe().c_str());
    QCOMPARE(result->files_added, std::uint64_t{files / 2});
    QCOMPARE(result->summary.skipped_unreadable, std::uint64_t{files / 2});
    QVERIFY(listed > 0 && env.lists() - listed < 10);
  }

  void a_stop_is_noticed_while_files_are_lost() {
    MemoryFileEnv memory;
    neuroshard::testing::FaultFileEnv env(memory);
    for (int i = 0; i < 50; ++i) put_file(memory, fmt::format("/text/{}", i), prose(100 + i, 600));
    const auto corpus = scan(memory, "/text").value();
    QVERIFY(memory.remove_tree("/text").ok());
    CancelSource source;
    int opened = 0;
    env.before_read([&](const std::string&) {
      if (++opened == 10) source.cancel();
    });
    Bytes piece;
    data::detail::CorpusText text(env, "user", corpus, 1u << 20, source.token());
    QCOMPARE(text.next(&piece).error().code, ErrorCode::Cancelled);
    QCOMPARE(opened, 10);
    source = CancelSource();
    opened = 0;
    std::set<std::uint64_t> lost;
    data::detail::ShardEncoder encoder(env, std::make_shared<const Tokenizer>(), 1, &lost);
    data::detail::CorpusPosition position;
    const auto tokens = encoder.next(corpus, Split::Train, 100, &position, source.token());
    QCOMPARE(tokens.error().code, ErrorCode::Cancelled);
    QCOMPARE(opened, 10);
  }

  void a_file_that_goes_before_it_is_compared_is_left_out() {
    MemoryFileEnv env;
    put_file(env, "/text/goes", prose(1, 20'000));
    put_file(env, "/text/stays", prose(2, 20'000));
    auto corpus = scan(env, "/text").value();
    data::detail::KnownTexts known;
    for (const data::detail::Document& document : corpus.documents)
      known.lengths[document.head].insert(2'000);
    QVERIFY(env.remove_file("/text/goes").ok());
    QVERIFY(data::detail::leave_out_known_beginnings(env, known, &corpus, {}).ok());
    QCOMPARE(corpus.documents.size(), std::size_t{1});
    QCOMPARE(corpus.documents[0].path, std::string("/text/stays"));
    QCOMPARE(corpus.summary.skipped_unreadable, std::uint64_t{1});
  }

  void data_directories_are_no_text() {
    MemoryFileEnv env;
    put_file(env, "/all/letters/one.txt", prose(1, 20'000));
    put_file(env, "/all/letters/FORMAT", "a letter of a person");
    put_file(env, "/all/node/FORMAT", "1\n");
    put_file(env, "/all/node/node.key", "a secret");
    put_file(env, "/all/node/logs/log.txt", prose(2, 20'000));
    QCOMPARE(scan(env, "/all").value().summary.files, std::uint64_t{2});
    QCOMPARE(scan(env, "/all/node").error().code, ErrorCode::InvalidArgument);
  }

  void too_many_files_are_refused_before_they_are_encoded() {
    MemoryFileEnv env;
    for (int i = 0; i < 40; ++i) put_file(env, fmt::format("/text/{}.txt", i), prose(100 + i, 1'500));
    ImportOptions options = options_for("/text");
    options.manifest_bytes = 3'000;
    bool began = false;
    options.on_progress = [&began](const ImportProgress& progress) {
      began = began || progress.phase != ImportProgress::Phase::Scanning;
    };
    const auto result = import(env, options);
    QVERIFY(!result.ok());
    QCOMPARE(result.error().code, ErrorCode::Exhausted);
    QVERIFY(!began);
    options.manifest_bytes = 40'000;
    QVERIFY(import(env, options).ok());
  }

  // Whatever the moment of a power cut, the earlier text is still there, and the command given again
  // completes.
  void a_stop_at_any_moment_loses_nothing() {
    using neuroshard::testing::PowerCut;
    bool done = false;
    for (std::uint64_t stop = 0; !done; ++stop) {
      QVERIFY(stop < 500);
      MemoryFileEnv memory;
      put_file(memory, "/text/one.txt", prose(1, 9'000));
      QVERIFY(import(memory, options_for("/text")).ok());
      put_file(memory, "/text/two.txt", prose(2, 9'000));
      for (const char* folder : {"/", "/text", "/node"}) QVERIFY(memory.sync_directory(folder).ok());
      neuroshard::testing::Faults faults;
      faults.stop_at = stop;
      faults.tear_at_stop = true;
      neuroshard::testing::FaultFileEnv env(memory, faults);
      done = import(env, options_for("/text")).ok();
      memory.power_cut(stop % 2 == 0 ? PowerCut::OnlySynced : PowerCut::TornData);
      QVERIFY(text_of(*open(memory), Split::Train).size() > 7'000);
      QVERIFY(import(memory, options_for("/text")).ok());
      QVERIFY(text_of(*open(memory), Split::Train).size() > 15'000);
    }
  }

  // The first stop leaves the newest manifest under its pending name alone.
  void two_stops_in_a_row_lose_nothing() {
    using neuroshard::testing::PowerCut;
    const auto begin = [](MemoryFileEnv& memory) {
      put_file(memory, "/text/one.txt", prose(1, 9'000));
      NS_CHECK(import(memory, options_for("/text")).ok());
      for (const char* folder : {"/", "/text", "/node"}) NS_CHECK(memory.sync_directory(folder).ok());
    };
    const auto stopped = [](MemoryFileEnv& memory, const char* path, std::uint64_t seed, std::uint64_t stop) {
      put_file(memory, path, prose(seed, 9'000));
      NS_CHECK(memory.sync_directory("/text").ok());
      neuroshard::testing::Faults faults;
      faults.stop_at = stop;
      neuroshard::testing::FaultFileEnv env(memory, faults);
      const bool done = import(env, options_for("/text")).ok();
      memory.power_cut(PowerCut::OnlySynced);
      return !done;
    };
    const auto is_pending = [](MemoryFileEnv& memory) {
      const auto bytes = storage::read_file(memory, "/node/data/manifest.json.new", 1 << 20);
      const auto signature = storage::read_file(memory, "/node/data/manifest.json.sig", 1 << 20);
      return bytes.ok() && signature.ok() && open_manifest(*bytes, *signature, {}).ok();
    };
    int pending = 0;
    bool stops = true;
    for (std::uint64_t first = 0; stops; ++first) {
      QVERIFY(first < 500);
      MemoryFileEnv trial;
      begin(trial);
      stops = stopped(trial, "/text/two.txt", 2, first);
      if (!stops || !is_pending(trial)) continue;
      ++pending;
      bool stops_again = true;
      for (std::uint64_t second = 0; stops_again; ++second) {
        QVERIFY(second < 500);
        MemoryFileEnv memory;
        begin(memory);
        QVERIFY(stopped(memory, "/text/two.txt", 2, first));
        stops_again = stopped(memory, "/text/three.txt", 3, second);
        QVERIFY(text_of(*open(memory), Split::Train).size() > 15'000);
      }
    }
    QVERIFY(pending > 0);
  }

  void no_shards_are_left_by_an_import_that_fails() {
    MemoryFileEnv memory;
    put_file(memory, "/text/one.txt", prose(1, 9'000));
    QVERIFY(import(memory, options_for("/text")).ok());
    put_file(memory, "/text/two.txt", prose(2, 200'000));
    // Room for two shards.
    neuroshard::testing::FaultFileEnv full(memory, {.room_bytes = 100'000});
    const auto failed = import(full, options_for("/text"));
    QVERIFY(!failed.ok());
    QVERIFY(failed.error().code == ErrorCode::Exhausted);
    QVERIFY(has_listed_shards_only(memory, "/node/data"));
    CancelSource source;
    ImportOptions options = options_for("/text");
    options.cancel = source.token();
    options.on_progress = [&](const ImportProgress& progress) {
      if (progress.phase == ImportProgress::Phase::Encoding) source.cancel();  // before the first is written
    };
    const auto stopped = import(memory, options);
    QVERIFY(!stopped.ok());
    QVERIFY(stopped.error().code == ErrorCode::Cancelled);
    QVERIFY(has_listed_shards_only(memory, "/node/data"));
    // Of a program that was killed; and of a person.
    put_file(memory, "/node/data/shard_77.pt", "half of an import");
    put_file(memory, "/node/data/shard_mine.pt", "something else");
    QVERIFY(import(memory, options_for("/text")).ok());
    QVERIFY(has_listed_shards_only(memory, "/node/data"));
    QVERIFY(memory.exists("/node/data/shard_mine.pt"));
    QVERIFY(text_of(*open(memory), Split::Train).size() > 150'000);
  }

  // Without its manifest or its signature, a folder can still be repaired.
  void shards_of_a_lost_manifest_stay() {
    for (const char* lost : {"/node/data/manifest.json", "/node/data/manifest.json.sig"}) {
      MemoryFileEnv env;
      put_file(env, "/text/one.txt", prose(1, 30'000));
      QVERIFY(import(env, options_for("/text")).ok());
      QVERIFY(env.remove_file(lost).ok());
      QVERIFY(!import(env, options_for("/nowhere")).ok());
      QVERIFY(env.exists("/node/data/shard_0.pt"));
    }
  }

  void stops_when_told() {
    MemoryFileEnv env;
    put_file(env, "/text/one.txt", prose(1, 30'000));
    CancelSource source;
    ImportOptions options = options_for("/text");
    options.cancel = source.token();
    options.on_progress = [&](const ImportProgress& progress) {
      if (progress.phase == ImportProgress::Phase::LearningMerges) source.cancel();
    };
    QVERIFY(import(env, options).error().code == ErrorCode::Cancelled);
  }
};

NS_TEST(TestTextImport)
#include "test_text_import.moc"
