// A node's own text under the network's tokenizer, and beside published text.
#include <QtTest>

#include "core/crypto/hash.h"
#include "core/data/own_text.h"
#include "core/data/shard_file.h"
#include "core/data/text_import.h"
#include "tests/support/fault_file_env.h"
#include "tests/support/test_main.h"
#include "tests/unit/data/dataset_support.h"

using namespace neuroshard;
using namespace neuroshard::data;
using namespace neuroshard::data::testing;
using neuroshard::testing::MemoryFileEnv;
using neuroshard::testing::PowerCut;

namespace {

const OwnTextPlace place{"/node/data", {}, 4000};

ImportResult import(storage::FileEnv& env, const std::string& directory = place.directory) {
  ImportOptions options;
  options.path = "/text";
  options.data_directory = directory;
  options.sequence = 32;
  options.vocabulary = 320;
  options.shard_tokens = place.shard_tokens;
  auto result = import_text(env, ManualClock(), key_of(1), options);
  if (!result.ok()) qFatal("%s", result.error().describe().c_str());
  return *result;
}

Expected<bool> use(storage::FileEnv& env, const Bytes& tokenizer,
                   const std::string& directory = place.directory) {
  OwnTextPlace there = place;
  there.directory = directory;
  return use_tokenizer(env, ManualClock(), key_of(1), there, tokenizer, {}, {});
}

std::unique_ptr<Dataset> open(storage::FileEnv& env, const std::string& directory = place.directory) {
  auto dataset = open_local_dataset(env, directory, {key_of(1).public_key(), {}});
  if (!dataset.ok()) qFatal("%s", dataset.error().describe().c_str());
  return std::move(*dataset);
}

std::vector<std::int32_t> tokens_of(Dataset& dataset, Split split) {
  std::vector<std::int32_t> tokens;
  for (const ShardEntry& entry : dataset.shards(split)) {
    const auto shard = dataset.load(entry.id, {});
    if (!shard.ok()) qFatal("%s", shard.error().describe().c_str());
    tokens.insert(tokens.end(), (*shard)->tokens.begin(), (*shard)->tokens.end());
  }
  return tokens;
}

// With '|' for the ends of texts.
std::string text_of(Dataset& dataset, Split split) {
  std::string text;
  for (const std::int32_t token : tokens_of(dataset, split)) {
    if (token == static_cast<std::int32_t>(eos_token))
      text += '|';
    else
      text += as_text(dataset.tokenizer().token_bytes(static_cast<TokenId>(token)));
  }
  return text;
}

// Of other words than prose() has.
Bytes network_tokenizer() {
  MemoryFileEnv env;
  put_file(env, "/text/network.txt", prose(77, 20'000) + std::string(5'000, 'x'));
  import(env);
  return open(env)->tokenizer().to_json();
}

void put_texts(storage::FileEnv& env) {
  put_file(env, "/text/one.txt", prose(1, 30'000));
  put_file(env, "/text/two.txt", prose(2, 9'000));
  put_file(env, "/text/no-spaces.txt", std::string(700'000, 'y'));  // longer than a piece
}

}  // namespace

class TestOwnText : public QObject {
  Q_OBJECT
 private Q_SLOTS:
  // The oracle: the same text, imported where that tokenizer was from the beginning.
  void encodes_again_what_it_has() {
    MemoryFileEnv env;
    put_texts(env);
    import(env);
    const auto before = open(env);
    const std::string train = text_of(*before, Split::Train), held_out = text_of(*before, Split::HeldOut);
    QVERIFY(train.size() > 100'000 && held_out.size() > 1'000);
    const Bytes tokenizer = network_tokenizer();
    QVERIFY(use(env, tokenizer).value());
    const auto after = open(env);
    QCOMPARE(after->manifest().tokenizer_hash, crypto::sha256(tokenizer));
    QCOMPARE(text_of(*after, Split::Train), train);
    QCOMPARE(text_of(*after, Split::HeldOut), held_out);
    QVERIFY(use(env, tokenizer, "/fresh").value());
    QVERIFY(!import(env, "/fresh").tokenizer_learned);
    const auto oracle = open(env, "/fresh");
    for (const Split split : {Split::Train, Split::HeldOut})
      QVERIFY(tokens_of(*after, split) == tokens_of(*oracle, split));
    for (const ShardEntry& shard : before->manifest().shards)
      QVERIFY2(!env.exists(place.directory + "/" + shard.url), "old shards are removed");
    // The texts are still known.
    const ImportResult again = import(env);
    QVERIFY(!again.changed());
    QCOMPARE(again.files_known, std::uint64_t{3});
    QVERIFY(!use(env, tokenizer).value());
  }

  void a_stop_at_any_moment_loses_nothing() {
    const Bytes tokenizer = network_tokenizer();
    bool done = false;
    std::uint64_t stop = 0;
    for (; !done; ++stop) {
      QVERIFY(stop < 500);
      MemoryFileEnv memory;
      put_file(memory, "/text/one.txt", prose(1, 30'000));
      import(memory);
      const std::string train = text_of(*open(memory), Split::Train);
      for (const char* folder : {"/", "/node", "/node/data"}) QVERIFY(memory.sync_directory(folder).ok());
      neuroshard::testing::Faults faults;
      faults.stop_at = stop;
      faults.tear_at_stop = true;
      neuroshard::testing::FaultFileEnv env(memory, faults);
      done = use(env, tokenizer).ok() && env.changes() <= stop;
      memory.power_cut(stop % 2 == 0 ? PowerCut::OnlySynced : PowerCut::TornData);
      QCOMPARE(text_of(*open(memory), Split::Train), train);
      QVERIFY(use(memory, tokenizer).ok());
      const auto after = open(memory);
      QCOMPARE(after->manifest().tokenizer_hash, crypto::sha256(tokenizer));
      QCOMPARE(text_of(*after, Split::Train), train);
      // A third tokenizer, in case the second was not yet in its place.
      QVERIFY(use(memory, Tokenizer().to_json()).value());
      QCOMPARE(text_of(*open(memory), Split::Train), train);
    }
    QVERIFY(stop > 10);
  }

  void no_shards_are_left_by_a_call_that_fails() {
    const Bytes tokenizer = network_tokenizer();
    MemoryFileEnv memory;
    put_file(memory, "/text/one.txt", prose(1, 100'000));
    import(memory);
    // Room for the tokenizer and three shards.
    neuroshard::testing::FaultFileEnv full(memory, {.room_bytes = tokenizer.size() + 100'000});
    const auto failed = use(full, tokenizer);
    QVERIFY(!failed.ok());
    QVERIFY(failed.error().code == ErrorCode::Exhausted);
    QVERIFY(has_listed_shards_only(memory, place.directory));
    std::uint64_t train = 0;
    const auto before = open(memory);
    for (const ShardEntry& shard : before->shards(Split::Train)) train += shard.tokens;
    CancelSource stop;
    const auto stopped = use_tokenizer(
        memory, ManualClock(), key_of(1), place, tokenizer,
        [&](std::uint64_t done, std::uint64_t) {
          if (done == train) stop.cancel();  // the shards to train on are written next
        },
        stop.token());
    QVERIFY(!stopped.ok());
    QVERIFY(stopped.error().code == ErrorCode::Cancelled);
    QVERIFY(has_listed_shards_only(memory, place.directory));
    // Of a program that was killed.
    put_file(memory, place.directory + "/shard_99.pt", "half of the work");
    QVERIFY(use(memory, tokenizer).value());
    QVERIFY(has_listed_shards_only(memory, place.directory));
    put_file(memory, place.directory + "/shard_99.pt", "the set before");
    QVERIFY(!use(memory, tokenizer).value());
    QVERIFY(has_listed_shards_only(memory, place.directory));
  }

  void without_text_the_tokenizer_waits_for_it() {
    MemoryFileEnv env;
    const Bytes tokenizer = network_tokenizer();
    QVERIFY(use(env, tokenizer).value());
    QVERIFY(!use(env, tokenizer).value());
    QVERIFY(use(env, Tokenizer().to_json()).value());
    QVERIFY(use(env, tokenizer).value());
    put_texts(env);
    QVERIFY(!import(env).tokenizer_learned);
    QCOMPARE(open(env)->manifest().tokenizer_hash, crypto::sha256(tokenizer));
  }

  void a_damaged_tokenizer_changes_nothing() {
    MemoryFileEnv env;
    put_texts(env);
    import(env);
    const Hash256 before = open(env)->manifest().tokenizer_hash;
    Bytes damaged = network_tokenizer();
    damaged.resize(damaged.size() / 2);
    QVERIFY(use(env, damaged).error().code == ErrorCode::Corrupt);
    QCOMPARE(open(env)->manifest().tokenizer_hash, before);
    CancelSource stop;
    stop.cancel();
    const auto cancelled =
        use_tokenizer(env, ManualClock(), key_of(1), place, network_tokenizer(), {}, stop.token());
    QVERIFY(cancelled.error().code == ErrorCode::Cancelled);
    QCOMPARE(open(env)->manifest().tokenizer_hash, before);
  }

  void published_and_own_shards_are_one_dataset() {
    MemoryFileEnv env;
    put_texts(env);
    import(env);
    const auto local = open(env);
    const ManifestTrust trust{key_of(1).public_key(), {}};
    Manifest manifest;
    manifest.tokenizer_hash = local->manifest().tokenizer_hash;
    manifest.shards = {shard_of(0, 100), shard_of(1, 50, Split::HeldOut), shard_of(7, 200)};
    auto own = open_own_text(env, place.directory, trust);
    QVERIFY(own.ok());
    for (const ShardEntry& shard : (*own)->manifest().shards) QVERIFY(is_own_shard(shard.id));
    auto joined = join_datasets(std::make_unique<NumberDataset>(env, manifest), std::move(*own));
    QVERIFY(joined.ok());
    Dataset& all = **joined;
    QCOMPARE(all.shards(Split::Train).size(), 2 + local->shards(Split::Train).size());
    QCOMPARE(all.shards(Split::HeldOut).size(), 1 + local->shards(Split::HeldOut).size());
    QCOMPARE(all.manifest().total_tokens(), 350 + local->manifest().total_tokens());
    QCOMPARE((*all.load(7, {}))->tokens.size(), std::size_t{200});
    for (const ShardEntry& shard : local->manifest().shards) {
      const auto loaded = all.load(shard.id | first_own_shard, {});
      QVERIFY(loaded.ok());
      QCOMPARE((*loaded)->entry.id, shard.id | first_own_shard);
      QVERIFY((*loaded)->tokens == (*local->load(shard.id, {}))->tokens);
    }
    QVERIFY(!all.load(first_own_shard + 99'999, {}).ok());

    manifest.tokenizer_hash[0] ^= 1;
    auto other = join_datasets(std::make_unique<NumberDataset>(env, manifest),
                               std::move(*open_own_text(env, place.directory, trust)));
    QVERIFY(other.error().code == ErrorCode::InvalidArgument);
    manifest.tokenizer_hash[0] ^= 1;
    manifest.shards.push_back(shard_of(first_own_shard, 10));
    other = join_datasets(std::make_unique<NumberDataset>(env, manifest),
                          std::move(*open_own_text(env, place.directory, trust)));
    QVERIFY(other.error().code == ErrorCode::InvalidArgument);
  }

  // Others get the tokenizer, so rare words are not in it.
  void a_shared_tokenizer_has_frequent_words_only() {
    MemoryFileEnv env;
    std::string text = prose(5, 30'000);
    for (int i = 0; i < 8; ++i)
      text.insert(text.find(' ', 3'000 * static_cast<std::size_t>(i)), " hunterkilo");
    put_file(env, "/text/own.txt", text);
    const auto has_secret = [](const Tokenizer& tokenizer) {
      for (TokenId id = first_merge_token; id < tokenizer.vocab_size(); ++id)
        if (as_text(tokenizer.token_bytes(id)).find("hunter") != std::string::npos) return true;
      return false;
    };
    ImportOptions options;
    options.path = "/text";
    options.data_directory = "/alone";
    options.sequence = 32;
    options.vocabulary = 2000;  // more than the text has words for
    QVERIFY(import_text(env, ManualClock(), key_of(1), options).ok());
    QVERIFY(has_secret(open(env, "/alone")->tokenizer()));
    options.data_directory = "/shared";
    options.least_frequency = shared_tokenizer_frequency;
    QVERIFY(import_text(env, ManualClock(), key_of(1), options).ok());
    QVERIFY(!has_secret(open(env, "/shared")->tokenizer()));
  }
};

NS_TEST(TestOwnText)
#include "test_own_text.moc"
