// A real node of a chain on a real host, with the presence of its rounds; the test plays the other founders. Header only.
#pragma once

#include <QtTest>

#include <atomic>
#include <memory>
#include <utility>
#include <vector>

#include "core/runtime/rounds_presence.h"
#include "tests/support/memory_file_env.h"
#include "tests/support/stranger_host.h"
#include "tests/support/until.h"
#include "tests/unit/chain/small_chain.h"
#include "tests/unit/crypto/counting_entropy.h"

namespace neuroshard::test {

// Other threads read it while the test sets it.
class SharedClock final : public Clock {
 public:
  MonotonicTime monotonic_now() const override { return MonotonicTime(Duration(elapsed_.load())); }
  WallTime wall_now() const override {
    return WallTime(std::chrono::milliseconds(chain::small::first_ms) +
                    std::chrono::duration_cast<std::chrono::milliseconds>(Duration(elapsed_.load())));
  }
  void advance(Duration by) { elapsed_ += by.count(); }

 private:
  std::atomic<Duration::rep> elapsed_{0};
};

// The other founders, whose keys the test has: silent, or they certify each statement that the node sends them.
class OtherFounders final : public net::PeerCaller, public chain::Peers {
 public:
  using Give = std::function<void(const chain::CertifiedBlock&)>;
  OtherFounders(chain::small::Chain& chain, Give give)
      : history(chain.begin()), chain_(chain), give_(std::move(give)) {}
  void call(const net::Contact&, net::Method method, Bytes bytes, Duration, net::CallDone done) override {
    if (silent || method != net::Method::ChainPost) return;
    const auto item = chain::decode_item(bytes, chain::small::network);
    if (!item.ok()) qFatal("item: %s", item.error().message.c_str());
    if (const auto* post = std::get_if<chain::StatementPost>(&*item)) certify(post->statement);
    tasks->post([done = std::move(done), height = history.tip().height()] {
      done(chain::encode_answer({chain::Verdict::Taken, height}));
    });
  }
  std::optional<net::Contact> find(const net::NodeId& id) override { return net::Contact{id, {}}; }
  std::vector<net::Contact> some() override { return {}; }

  chain::History history;
  Executor* tasks = nullptr;
  std::atomic<bool> silent = true;

 private:
  void certify(const chain::Statement& statement) {
    if (std::exchange(last_, statement) == statement) return;
    chain::BlockBody body;
    body.statements = {statement};
    const chain::CertifiedBlock block = chain_.certified(history.tip(), body);
    if (!history.append(block).ok()) qFatal("no block");
    tasks->post([this, block] { give_(block); });
  }
  chain::small::Chain& chain_;
  const Give give_;
  chain::Statement last_;
};

class NoRounds final : public chain::BlockContent {
 public:
  bool is_due(const chain::ChainTip&) override { return false; }
  void make(const chain::ChainTip&, std::function<void(chain::Sections)> done) override { done({}); }
  void judge(const chain::ChainTip&, const chain::BlockPtr&, bool, std::function<void(bool)> done) override {
    done(true);
  }
  void on_block(const chain::ChainTip&, const chain::CertifiedBlock&, bool) override {}
  void on_history(const chain::ChainTip&) override {}
  chain::Verdict on_post(const net::NodeId&, const chain::RoundsPost&, const chain::ChainTip&) override {
    return chain::Verdict::Inadmissible;
  }
  chain::Verdict on_accusation(const net::NodeId&, const chain::Evidence&, const chain::ChainTip&) override {
    return chain::Verdict::Inadmissible;
  }
  chain::SignedByMember signed_by(const net::NodeId&) const override { return {}; }
  Duration deadline() const override { return std::chrono::hours(1); }
};

// A disk with the blocks of a chain.
class BlockDisk final : public chain::ChainStore {
 public:
  Expected<Bytes> load(Record) override { return make_error(ErrorCode::NotFound, "nothing kept"); }
  void save(Record, Bytes, std::function<void(Expected<void>)> done) override { done({}); }
  std::uint64_t first_block() const override { return 0; }
  std::uint64_t block_count() const override { return blocks.size(); }
  Expected<Bytes> load_block(std::uint64_t height) override { return *blocks.at(height); }
  void append_block(std::uint64_t, chain::BlockBytes block,
                    std::function<void(Expected<void>)> done) override {
    blocks.push_back(std::move(block));
    done({});
  }
  void begin_log(std::uint64_t, std::function<void(Expected<void>)> done) override { done({}); }
  void drop_last(std::function<void(Expected<void>)> done) override { done({}); }

  std::vector<chain::BlockBytes> blocks;
};

// The node of the first of so many founders.
struct PresenceBench {
  static constexpr int some_looks_ms = 200;  // the presence looks every 50 ms

  explicit PresenceBench(std::size_t founders = 2)
      : chain(founders), others(chain, [this](const auto& block) { give(block); }) {
    disk.blocks.push_back(chain.genesis().bytes);
    auto started = start_stranger_host(chain::small::network, {files, entropy, clock, logger, "test"});
    if (!started.ok()) qFatal("host: %s", started.error().message.c_str());
    host = std::move(*started);
    others.tasks = &host->executor();
    presence = std::make_unique<runtime::RoundsPresence>(*host, [this] { return node.get(); });
  }
  ~PresenceBench() {
    on_host([this] {
      presence->close();
      node.reset();
    });
    host.reset();
  }
  PresenceBench(const PresenceBench&) = delete;
  PresenceBench& operator=(const PresenceBench&) = delete;

  // The others went on without it while it did not run.
  void make_dormant() {
    const auto& tip = others.history.tip();
    disk.blocks.push_back(chain.certified(tip, chain.away(tip, 0)).bytes);
  }
  void start() {
    on_host([this] {
      chain::ChainOptions options;
      options.rules = chain.rules;
      options.delegation = chain::small::registration_of(chain.parties[0]).delegation;
      options.tick = std::chrono::milliseconds(5);
      node = std::make_unique<chain::ChainNode>(
          chain::ChainServices{chain.parties[0].node, others, others, host->executor(), clock, disk, checks,
                               nullptr, content, logger},
          std::move(options), Hash256{9}, 1);
      node->start();
      node->set_ready(true);
    });
  }
  // With others that answer.
  void start_in_company() {
    others.silent = false;
    start();
  }
  void end() {
    on_host([this] { node.reset(); });
  }
  void on_host(const std::function<void()>& task) { host->run(task); }
  // As the owner has said.
  bool is_leaving() {
    bool leaving = false;
    on_host([&] { leaving = presence->is_away(); });
    return leaving;
  }
  bool has_no_room() {
    bool no_room = false;
    on_host([&] { no_room = presence->has_no_room(); });
    return no_room;
  }
  // As the chain knows it.
  bool is_away() {
    bool away = false;
    on_host([&] { away = node->is_away(); });
    return away;
  }
  std::size_t missing() {
    std::size_t missing = 0;
    on_host([&] { missing = node->view().missing.size(); });
    return missing;
  }
  bool leaves() {
    return testing::until([this] { return is_away(); });
  }
  bool returns() {
    return testing::until([this] { return !is_away(); });
  }
  bool stays(bool away) {
    QTest::qWait(some_looks_ms);
    return is_away() == away;
  }
  void set_no_room(bool no_room) {
    on_host([&] { presence->set_no_room(no_room); });
  }
  // Counts the calls of done.
  void announce_away(Duration limit, std::atomic<int>& done) {
    presence->announce_away(clock.monotonic_now() + limit, [&done] { ++done; });
  }

  void give(const chain::CertifiedBlock& block) {
    if (node == nullptr) return;
    const chain::CertifiedPost post{block.block->header.height, block.block->hash, block};
    node->on_call({chain.parties[1].id, {}}, net::Method::ChainPost, chain::encode_item(post),
                  [](const net::Answer&) {});
  }

  SharedClock clock;
  testing::MemoryFileEnv files;
  CountingEntropy entropy;
  NullLogger logger;
  neuroshard::chain::small::Chain chain;
  chain::SignatureChecks checks;
  NoRounds content;
  BlockDisk disk;
  OtherFounders others;
  std::unique_ptr<runtime::PeerHost> host;
  std::unique_ptr<runtime::RoundsPresence> presence;
  std::unique_ptr<chain::ChainNode> node;
};

}  // namespace neuroshard::test
