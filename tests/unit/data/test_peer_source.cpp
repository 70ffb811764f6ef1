// A published dataset whose publisher is away, from nodes that cached it: what opens it is the publisher's
// signature and the hashes that it covers, whoever gives the bytes; a peer that offers something else is
// reported. Files held here are offered to others.
#include <httplib.h>

#include <QTemporaryDir>
#include <QtTest>
#include <algorithm>
#include <atomic>
#include <map>
#include <thread>

#include "core/crypto/hash.h"
#include "core/data/manifest_store.h"
#include "core/data/publisher.h"
#include "core/data/remote_dataset.h"
#include "core/storage/file_env.h"
#include "tests/support/memory_file_env.h"
#include "tests/support/test_main.h"
#include "tests/support/until.h"
#include "tests/unit/data/static_server.h"

using namespace neuroshard;        // NOLINT
using namespace neuroshard::data;  // NOLINT
using neuroshard::data::testing::StaticServer;
using neuroshard::testing::MemoryFileEnv;

namespace {

// Nobody listens there.
constexpr const char* nowhere = "http://127.0.0.1:1/manifest.json";

// Nodes that hold these contents and say these things, without a network.
class Others final : public PeerSource {
 public:
  explicit Others(storage::FileEnv& env) : env_(env) {}
  void hold(const Bytes& bytes) { contents[crypto::sha256(bytes)] = bytes; }
  ManifestClaim claim(const Bytes& manifest, const Bytes& signature, std::int64_t updated) {
    hold(manifest);
    return {crypto::sha256(manifest), manifest.size(), updated, signature};
  }

  Expected<std::vector<ManifestClaim>> manifests(Duration, const CancelToken&) override { return claims; }
  void refuted(const ManifestClaim& claim) override {
    lies.push_back(claim.sha256);
    refuted_claims.push_back(claim);
  }
  Expected<void> fetch(const PeerFile& file, const CancelToken&) override {
    const auto found = contents.find(file.sha256);
    if (found == contents.end()) return make_error(ErrorCode::Unavailable, "nobody gives it");
    const std::uint64_t size = found->second.size();
    if (file.size ? *file.size != size : size > file.max_bytes)
      return make_error(ErrorCode::Unavailable, "nobody gives it in that size");
    fetched.push_back(file.sha256);
    return storage::write_file_atomic(env_, file.path, found->second);
  }
  void offer(const PeerFile& file) override { offered[file.sha256] = file.path; }
  void withdraw(const Hash256& sha256) override { offered.erase(sha256); }
  void offer_manifest(const ManifestClaim& claim, const std::string& path) override {
    offered[claim.sha256] = path;
    manifest = claim;
  }

  std::map<Hash256, Bytes> contents;
  std::vector<ManifestClaim> claims, refuted_claims;
  std::vector<Hash256> lies, fetched;
  std::map<Hash256, std::string> offered;
  std::optional<ManifestClaim> manifest;

 private:
  storage::FileEnv& env_;
};

crypto::KeyPair key(std::uint8_t number) {
  Hash256 seed{};
  seed[0] = number;
  return crypto::KeyPair::from_seed(seed);
}

class Warnings final : public Logger {
 public:
  void write(const LogRecord& record) override {
    if (record.level == LogLevel::Warning) text += record.message + "\n";
  }
  std::string text;
};

struct Published {
  Bytes manifest, signature, tokenizer;
  std::vector<Bytes> shards;
  Manifest content;
};

}  // namespace

class TestPeerSource : public QObject {
  Q_OBJECT

  std::unique_ptr<MemoryFileEnv> env_;
  SystemClock clock_;
  NullLogger logger_;

  Bytes read(const std::string& path) { return *storage::read_file(*env_, path, 1u << 30); }
  Published publish(const std::string& folder, const crypto::KeyPair& publisher, int lines) {
    if (!env_->create_directories("/text" + folder).ok()) qFatal("no folder");
    std::string prose;
    for (int i = 0; i < lines; ++i) prose += "line " + std::to_string(i * i) + " of a long text\n";
    if (!storage::write_file_atomic(*env_, "/text" + folder + "/a.txt", as_bytes(std::string_view(prose)))
             .ok())
      qFatal("no text");
    PublishOptions options;
    options.inputs = {{"lines", "/text" + folder}};
    options.output_directory = folder;
    options.vocabulary = 300;
    options.shard_tokens = 4000;
    options.threads = 1;
    const auto built = build_dataset(*env_, clock_, publisher, options);
    if (!built.ok()) qFatal("%s", built.error().message.c_str());
    Published published;
    published.manifest = read(folder + "/manifest.json");
    published.signature = read(folder + "/manifest.json.sig");
    published.tokenizer = read(folder + "/tokenizer.json");
    published.content = *parse_manifest(published.manifest);
    for (const ShardEntry& shard : published.content.shards)
      published.shards.push_back(read(folder + "/" + shard.url));
    return published;
  }
  // The same data, said to be of another time.
  Published again(const Published& from, const crypto::KeyPair& by, std::int64_t updated) {
    Published other = from;
    other.content.updated_ms = updated;
    other.manifest = encode_manifest(other.content);
    other.signature = encode_manifest_signature(sign_manifest(by, other.content, other.manifest));
    return other;
  }
  std::map<std::string, StaticServer::File> files_of(const Published& published) {
    std::map<std::string, StaticServer::File> files;
    const auto add = [&files](const std::string& name, const Bytes& bytes) {
      files["/" + name].content = std::string(as_text(bytes));
    };
    add(manifest_file_name, published.manifest);
    add(manifest_signature_file_name, published.signature);
    add(tokenizer_file_name, published.tokenizer);
    for (std::size_t i = 0; i < published.shards.size(); ++i)
      add(published.content.shards[i].url, published.shards[i]);
    return files;
  }
  void hold_all(Others& others, const Published& published) {
    others.hold(published.tokenizer);
    for (const Bytes& shard : published.shards) others.hold(shard);
  }
  RemoteDatasetOptions options(Others* others) {
    RemoteDatasetOptions options;
    options.manifest_url = nowhere;
    options.cache_directory = "/cache";
    options.trust.publisher = key(1).public_key();
    options.download.max_attempts = 1;
    options.peers = others;
    return options;
  }

 private Q_SLOTS:
  void initTestCase() {
    for (const char* name : {"http_proxy", "HTTP_PROXY", "all_proxy", "ALL_PROXY"}) qunsetenv(name);
  }
  void init() { env_ = std::make_unique<MemoryFileEnv>(); }

  void everything_comes_from_others_and_is_offered() {
    const Published data = publish("/out", key(1), 3000);
    QVERIFY(data.shards.size() >= 3);
    Others others(*env_);
    hold_all(others, data);
    others.claims = {others.claim(data.manifest, data.signature, data.content.updated_ms)};
    {
      const auto dataset = open_remote_dataset(*env_, clock_, logger_, options(&others), {});
      QVERIFY2(dataset.ok(), dataset.ok() ? "" : dataset.error().describe().c_str());
      QVERIFY(!(*dataset)->trouble().empty());
      QVERIFY(others.lies.empty());
      QCOMPARE(others.manifest->sha256, crypto::sha256(data.manifest));
      QCOMPARE(others.manifest->signature, data.signature);
      QVERIFY(others.offered.count(crypto::sha256(data.tokenizer)) == 1);
      const ShardEntry& shard = data.content.shards.front();
      QVERIFY(others.offered.count(shard.sha256) == 0);
      QVERIFY(!(*dataset)->is_here(shard.id));
      const auto loaded = (*dataset)->load(shard.id, {});
      QVERIFY2(loaded.ok(), loaded.ok() ? "" : loaded.error().describe().c_str());
      QVERIFY((*dataset)->is_here(shard.id));
      QCOMPARE((*loaded)->tokens.size(), static_cast<std::size_t>(shard.tokens));
      QCOMPARE(read(others.offered.at(shard.sha256)), data.shards.front());
    }
    // The next start offers what is still here, and fetches nothing twice.
    Others later(*env_);
    later.claims = others.claims;
    const auto dataset = open_remote_dataset(*env_, clock_, logger_, options(&later), {});
    QVERIFY(dataset.ok());
    QVERIFY(later.fetched.empty());
    QVERIFY(later.offered.count(data.content.shards.front().sha256) == 1);
    QVERIFY((*dataset)->load(data.content.shards.front().id, {}).ok());
    const auto missing = (*dataset)->load(data.content.shards.back().id, {});
    QVERIFY(missing.error().code == ErrorCode::Unavailable);
    QVERIFY(missing.error().message.find("other nodes: ") != std::string::npos);
  }

  void only_what_the_publisher_signed_is_taken() {
    const Published data = publish("/out", key(1), 2000);
    const std::int64_t now = data.content.updated_ms;
    Others others(*env_);
    hold_all(others, data);
    const Published strangers = again(data, key(2), now + 4000);
    Published altered = again(data, key(1), now + 3000);
    altered.manifest = again(data, key(1), now + 2500).manifest;  // under the signature of another one
    const Bytes rubbish(5000, 'x');
    others.claims = {others.claim(strangers.manifest, strangers.signature, now + 4000),
                     others.claim(altered.manifest, altered.signature, now + 3000),
                     others.claim(rubbish, data.signature, now + 2000),
                     others.claim(data.manifest, data.signature, now)};
    const auto dataset = open_remote_dataset(*env_, clock_, logger_, options(&others), {});
    QVERIFY2(dataset.ok(), dataset.ok() ? "" : dataset.error().describe().c_str());
    QCOMPARE((*dataset)->manifest().updated_ms, now);
    QCOMPARE(others.lies.size(), std::size_t{3});
    for (std::size_t i = 0; i < 3; ++i) QCOMPARE(others.lies[i], others.claims[i].sha256);
    // Somebody else's signature is seen before anything of it is fetched.
    QVERIFY(std::find(others.fetched.begin(), others.fetched.end(), others.claims[0].sha256) ==
            others.fetched.end());
  }

  void an_older_manifest_takes_nothing_away() {
    const Published old = publish("/out", key(1), 2000);
    const Published newer = again(old, key(1), old.content.updated_ms + 1000);
    Others others(*env_);
    hold_all(others, old);
    others.claims = {others.claim(newer.manifest, newer.signature, newer.content.updated_ms)};
    QVERIFY(open_remote_dataset(*env_, clock_, logger_, options(&others), {}).ok());
    Others yesterday(*env_);
    yesterday.claims = {yesterday.claim(old.manifest, old.signature, old.content.updated_ms)};
    const auto dataset = open_remote_dataset(*env_, clock_, logger_, options(&yesterday), {});
    QVERIFY(dataset.ok());
    QCOMPARE((*dataset)->manifest().updated_ms, newer.content.updated_ms);
    QVERIFY(yesterday.lies.empty());  // it is signed, and so no lie
  }

  void a_false_date_of_the_held_manifest_hides_no_newer_one() {
    const Published old = publish("/out", key(1), 2000);
    const Published newer = again(old, key(1), old.content.updated_ms + 1000);
    Others others(*env_);
    hold_all(others, old);
    others.claims = {others.claim(old.manifest, old.signature, old.content.updated_ms)};
    QVERIFY(open_remote_dataset(*env_, clock_, logger_, options(&others), {}).ok());
    others.claims = {others.claim(old.manifest, old.signature, newer.content.updated_ms + 1),
                     others.claim(newer.manifest, newer.signature, newer.content.updated_ms)};
    const auto dataset = open_remote_dataset(*env_, clock_, logger_, options(&others), {});
    QVERIFY2(dataset.ok(), dataset.ok() ? "" : dataset.error().describe().c_str());
    QCOMPARE((*dataset)->manifest().updated_ms, newer.content.updated_ms);
  }

  void a_manifest_that_nobody_gives_is_passed_over() {
    const Published data = publish("/out", key(1), 2000);
    Others others(*env_);
    hold_all(others, data);
    others.claims = {{Hash256{1}, 100, data.content.updated_ms + 1000, data.signature},
                     {Hash256{2}, max_manifest_bytes + 1, data.content.updated_ms + 900, data.signature},
                     others.claim(data.manifest, data.signature, data.content.updated_ms)};
    QVERIFY(open_remote_dataset(*env_, clock_, logger_, options(&others), {}).ok());
    QCOMPARE(others.lies, std::vector<Hash256>{Hash256{2}});  // beyond any bound
  }

  // Byzantine peers claim the hash of the true manifest with a false note or size.
  void a_false_word_about_the_true_manifest_changes_nothing() {
    const Published data = publish("/out", key(1), 2000);
    const std::int64_t now = data.content.updated_ms;
    Others others(*env_);
    hold_all(others, data);
    const ManifestClaim honest = others.claim(data.manifest, data.signature, now);
    ManifestClaim false_size = honest, false_note = honest;
    false_note.updated_ms = now + 2;
    false_note.signature = again(data, key(1), now + 1).signature;
    false_size.size = honest.size - 1;
    false_size.updated_ms = now + 1;
    others.claims = {false_note, honest};
    QVERIFY(open_remote_dataset(*env_, clock_, logger_, options(&others), {}).ok());
    QVERIFY(others.refuted_claims == std::vector<ManifestClaim>{false_note});
    // The false note costs a check of its signature, and no second fetch of the manifest.
    QCOMPARE(std::count(others.fetched.begin(), others.fetched.end(), honest.sha256), std::ptrdiff_t{1});
    // A false size is not believed, so the hash is enough.
    env_ = std::make_unique<MemoryFileEnv>();
    Others more(*env_);
    hold_all(more, data);
    more.hold(data.manifest);
    more.claims = {false_size};
    const auto dataset = open_remote_dataset(*env_, clock_, logger_, options(&more), {});
    QVERIFY2(dataset.ok(), dataset.ok() ? "" : dataset.error().describe().c_str());
    QVERIFY(more.refuted_claims.empty());
  }

  void a_publisher_without_a_manifest_takes_nothing_away_data() {
    QTest::addColumn<int>("status");
    QTest::addColumn<bool>("empty_signature");
    QTest::newRow("no such file") << 404 << false;
    QTest::newRow("gone") << 410 << false;
    QTest::newRow("not allowed") << 403 << false;
    QTest::newRow("another page") << 200 << false;
    QTest::newRow("no signature") << 200 << true;
  }
  void a_publisher_without_a_manifest_takes_nothing_away() {
    QFETCH(const int, status);
    QFETCH(const bool, empty_signature);
    const Published data = publish("/out", key(1), 2000);
    std::map<std::string, StaticServer::File> files;
    files["/manifest.json"] = {empty_signature ? std::string(as_text(data.manifest)) : "<html>", status,
                               false};
    files["/manifest.json.sig"] = {empty_signature ? "" : "<html>", status, false};
    StaticServer server(files);
    RemoteDatasetOptions remote = options(nullptr);
    remote.manifest_url = server.url("/manifest.json");
    // With nothing held, and nobody who gives it, the publisher's answer is the error.
    const auto nothing = open_remote_dataset(*env_, clock_, logger_, remote, {});
    QVERIFY(!nothing.ok());
    QVERIFY(nothing.error().code != ErrorCode::Unavailable);
    Others others(*env_);
    hold_all(others, data);
    others.claims = {others.claim(data.manifest, data.signature, data.content.updated_ms)};
    remote.peers = &others;
    Warnings warnings;
    const auto given = open_remote_dataset(*env_, clock_, warnings, remote, {});
    QVERIFY2(given.ok(), given.ok() ? "" : given.error().describe().c_str());
    QVERIFY2(warnings.text.find("gave no usable manifest") != std::string::npos, warnings.text.c_str());
    remote.peers = nullptr;
    const auto held = open_remote_dataset(*env_, clock_, logger_, remote, {});
    QVERIFY2(held.ok(), held.ok() ? "" : held.error().describe().c_str());
  }

  void a_damaged_shard_is_fetched_again() {
    const Published data = publish("/out", key(1), 2000);
    Others others(*env_);
    hold_all(others, data);
    others.claims = {others.claim(data.manifest, data.signature, data.content.updated_ms)};
    const ShardEntry& shard = data.content.shards.front();
    {
      const auto dataset = open_remote_dataset(*env_, clock_, logger_, options(&others), {});
      QVERIFY(dataset.ok() && (*dataset)->prefetch(shard.id, {}).ok());
    }
    const std::string path = others.offered.at(shard.sha256);
    env_->flip(path, 2000);
    const auto dataset = open_remote_dataset(*env_, clock_, logger_, options(&others), {});
    QVERIFY(dataset.ok());
    // The thread that loads it does not wait for the download.
    const auto damaged = (*dataset)->load(shard.id, {});
    QVERIFY(!damaged.ok());
    QCOMPARE(damaged.error().code, ErrorCode::Unavailable);
    QVERIFY(!env_->exists(path) && !(*dataset)->is_here(shard.id));
    QCOMPARE(std::count(others.fetched.begin(), others.fetched.end(), shard.sha256), std::ptrdiff_t{1});
    const auto loaded = (*dataset)->load(shard.id, {});
    QVERIFY2(loaded.ok(), loaded.ok() ? "" : loaded.error().describe().c_str());
    QCOMPARE(std::count(others.fetched.begin(), others.fetched.end(), shard.sha256), std::ptrdiff_t{2});
    QCOMPARE(read(others.offered.at(shard.sha256)), data.shards.front());
  }

  void a_shard_that_was_signed_wrong_is_not_fetched_for_ever() {
    Published data = publish("/out", key(1), 2000);
    ++data.content.shards.front().tokens;
    data = again(data, key(1), data.content.updated_ms);
    Others others(*env_);
    hold_all(others, data);
    others.claims = {others.claim(data.manifest, data.signature, data.content.updated_ms)};
    const auto dataset = open_remote_dataset(*env_, clock_, logger_, options(&others), {});
    QVERIFY2(dataset.ok(), dataset.ok() ? "" : dataset.error().describe().c_str());
    for (const ErrorCode code : {ErrorCode::Unavailable, ErrorCode::Corrupt, ErrorCode::Corrupt}) {
      const auto loaded = (*dataset)->load(data.content.shards.front().id, {});
      QVERIFY(!loaded.ok());
      QCOMPARE(loaded.error().code, code);
    }
    QCOMPARE(others.fetched.size(), std::size_t{4});  // manifest, tokenizer, and the shard twice
  }

  void a_shard_that_the_publisher_does_not_give_now_is_waited_for_data() {
    QTest::addColumn<int>("status");
    QTest::newRow("no such file") << 404;
    QTest::newRow("not allowed") << 403;
    QTest::newRow("bad request") << 400;
    QTest::newRow("another page") << 200;
  }
  void a_shard_that_the_publisher_does_not_give_now_is_waited_for() {
    QFETCH(const int, status);
    const Published data = publish("/out", key(1), 2000);
    const ShardEntry& shard = data.content.shards.front();
    std::map<std::string, StaticServer::File> files = files_of(data);
    files["/" + shard.url] = {"<html>", status, false};
    StaticServer server(files);
    Others nobody(*env_);
    for (Others* others : {static_cast<Others*>(nullptr), &nobody}) {
      RemoteDatasetOptions remote = options(others);
      remote.manifest_url = server.url("/manifest.json");
      remote.download.max_corrupt = 1;
      const auto dataset = open_remote_dataset(*env_, clock_, logger_, remote, {});
      QVERIFY2(dataset.ok(), dataset.ok() ? "" : dataset.error().describe().c_str());
      const auto loaded = (*dataset)->load(shard.id, {});
      QVERIFY(!loaded.ok());
      QCOMPARE(loaded.error().code, ErrorCode::Unavailable);
      QVERIFY2(loaded.error().message.find(shard.url) != std::string::npos, loaded.error().message.c_str());
    }
  }

  void on_a_full_disk_a_shard_is_waited_for_and_others_stay() {
    const Published data = publish("/out", key(1), 3000);
    QVERIFY(data.content.shards.size() >= 2);
    Others others(*env_);
    hold_all(others, data);
    others.claims = {others.claim(data.manifest, data.signature, data.content.updated_ms)};
    const auto dataset = open_remote_dataset(*env_, clock_, logger_, options(&others), {});
    QVERIFY(dataset.ok());
    const ShardEntry &first = data.content.shards[0], &second = data.content.shards[1];
    QVERIFY((*dataset)->load(first.id, {}).ok());
    env_->set_capacity(env_->used_bytes() + (10u << 20));
    const auto full = (*dataset)->load(second.id, {});
    QVERIFY(!full.ok());
    QCOMPARE(full.error().code, ErrorCode::Unavailable);
    QVERIFY2(full.error().message.find("nearly full") != std::string::npos, full.error().message.c_str());
    QVERIFY(others.offered.count(first.sha256) == 1);
    env_->set_capacity(env_->used_bytes() + (100u << 20));
    QVERIFY((*dataset)->load(second.id, {}).ok());
    // A shard that makes room is no longer offered.
    QVERIFY((*dataset)->limit_cache(second.size).ok());
    QVERIFY(others.offered.count(first.sha256) == 0 && others.offered.count(second.sha256) == 1);
  }

  void an_older_manifest_of_the_publisher_takes_nothing_away() {
    const Published old = publish("/out", key(1), 2000);
    const Published newer = again(old, key(1), old.content.updated_ms + 1000);
    Others others(*env_);
    hold_all(others, old);
    others.claims = {others.claim(newer.manifest, newer.signature, newer.content.updated_ms)};
    QVERIFY(open_remote_dataset(*env_, clock_, logger_, options(&others), {}).ok());
    StaticServer server(files_of(old));
    RemoteDatasetOptions remote = options(nullptr);
    remote.manifest_url = server.url("/manifest.json");
    Warnings warnings;
    const auto dataset = open_remote_dataset(*env_, clock_, warnings, remote, {});
    QVERIFY2(dataset.ok(), dataset.ok() ? "" : dataset.error().describe().c_str());
    QCOMPARE((*dataset)->manifest().updated_ms, newer.content.updated_ms);
    QVERIFY2(warnings.text.find("older than the local one") != std::string::npos, warnings.text.c_str());
  }

  void a_load_does_not_wait_for_another_shard() {
    const Published data = publish("/out", key(1), 3000);
    QVERIFY(data.shards.size() >= 2);
    const ShardEntry &quick = data.content.shards[0], &slow = data.content.shards[1];
    std::map<std::string, StaticServer::File> files = files_of(data);
    files["/" + slow.url].stalls = true;
    StaticServer server(files);
    const QTemporaryDir folder;
    const auto disk = storage::make_posix_file_env();
    RemoteDatasetOptions remote = options(nullptr);
    remote.manifest_url = server.url("/manifest.json");
    remote.cache_directory = folder.filePath("cache").toStdString();
    remote.download.no_progress_timeout = std::chrono::seconds(5);
    const auto dataset = open_remote_dataset(*disk, clock_, logger_, remote, {});
    QVERIFY2(dataset.ok(), dataset.ok() ? "" : dataset.error().describe().c_str());
    CancelSource stop, cancelled;
    cancelled.cancel();
    std::atomic<bool> over{false};
    std::thread ahead([&] {
      static_cast<void>((*dataset)->prefetch(slow.id, stop.token()).ok());
      over = true;
    });
    const bool stalled = neuroshard::testing::until([&] { return server.stalled(); });
    const auto loaded = (*dataset)->load(quick.id, {});
    const auto refused = (*dataset)->load(slow.id, cancelled.token());
    const bool waited = over;
    stop.cancel();
    ahead.join();
    QVERIFY(stalled);
    QVERIFY2(loaded.ok(), loaded.ok() ? "" : loaded.error().describe().c_str());
    QVERIFY(!refused.ok());
    QVERIFY(refused.error().code == ErrorCode::Cancelled);
    QVERIFY(!waited);
  }

  void with_nobody_the_error_says_so() {
    Others nobody(*env_);
    const auto dataset = open_remote_dataset(*env_, clock_, logger_, options(&nobody), {});
    QVERIFY(dataset.error().code == ErrorCode::Unavailable);
    QVERIFY(dataset.error().message.find("no other node has a manifest") != std::string::npos);
    QVERIFY(open_remote_dataset(*env_, clock_, logger_, options(nullptr), {}).error().code ==
            ErrorCode::Unavailable);
  }
};

NS_TEST(TestPeerSource)
#include "test_peer_source.moc"
