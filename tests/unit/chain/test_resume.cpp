// A start goes on from the saved state of a recent block, with the same history as from the log's first block
// and without applying those before. A state that does not fit the log changes nothing.
#include <QtTest>

#include <algorithm>
#include <chrono>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "core/base/byte_reader.h"
#include "core/chain/durable_state.h"
#include "core/chain/resume.h"
#include "tests/support/test_main.h"
#include "tests/unit/chain/chain_fixture.h"
#include "tests/unit/chain/small_chain.h"

using namespace neuroshard;
using namespace neuroshard::chain;
using small::Chain;
using Record = ChainStore::Record;

namespace {

Error no_such_block() {
  return make_error(ErrorCode::NotFound, "no such block");
}

class Disk final : public ChainStore {
 public:
  using Done = std::function<void(Expected<void>)>;
  Expected<Bytes> load(Record record) override {
    const auto at = records.find(record);
    if (at == records.end()) return make_error(ErrorCode::NotFound, "nothing kept");
    return at->second;
  }
  void save(Record record, Bytes bytes, Done done) override {
    records[record] = std::move(bytes);
    done({});
  }
  std::uint64_t first_block() const override { return first; }
  std::uint64_t block_count() const override { return blocks.size(); }
  Expected<Bytes> load_block(std::uint64_t height) override {
    if (height < first || height - first >= blocks.size()) return no_such_block();
    ++loaded;
    return *blocks[static_cast<std::size_t>(height - first)];
  }
  Expected<Bytes> load_beginning(std::uint64_t height, std::size_t most) override {
    if (height < first || height - first >= blocks.size()) return no_such_block();
    ++beginnings;
    const Bytes& block = *blocks[static_cast<std::size_t>(height - first)];
    const ByteSpan beginning = ByteSpan(block).first(std::min(most, block.size()));
    return Bytes(beginning.begin(), beginning.end());
  }
  void append_block(std::uint64_t, BlockBytes block, Done done) override {
    blocks.push_back(std::move(block));
    if (holds)
      waiting.push_back(std::move(done));
    else
      done({});
  }
  void begin_log(std::uint64_t first_height, Done done) override {
    blocks.clear();
    first = first_height;
    done({});
  }
  void drop_last(Done done) override {
    blocks.pop_back();
    done({});
  }
  bool has_state() const { return records.count(Record::Resume) != 0; }
  ResumePoint state() const { return *decode_resume_point(records.at(Record::Resume)); }

  std::map<Record, Bytes> records;
  std::vector<BlockBytes> blocks;
  std::uint64_t first = 0;
  std::size_t loaded = 0, beginnings = 0;
  bool holds = false;  // what is appended stays on its way
  std::vector<Done> waiting;
};

class Lines final : public Logger {
 public:
  void write(const LogRecord& record) override { lines.push_back(record.message); }
  std::vector<std::string> lines;
};

// Asked once for each block whose state is made.
struct CountingCache final : RegistryCache {
  std::optional<ChainTip> find(const Hash256&) override {
    ++asked;
    return std::nullopt;
  }
  void put(const ChainTip&) override {}
  int asked = 0;
};

std::optional<History> load(Disk& disk, Chain& chain, Logger& log, RegistryCache* cache = nullptr) {
  DurableState durable(disk, log, small::network, [] {});
  return durable.load_history({chain.rules, chain.checks, cache});
}
std::optional<History> load(Disk& disk, Chain& chain) {
  NullLogger log;
  return load(disk, chain, log);
}

bool same_block(const CertifiedBlock* a, const CertifiedBlock* b) {
  if (a == nullptr || b == nullptr) return a == b;
  return a->block->hash == b->block->hash && *a->bytes == *b->bytes;
}

// All that a history tells.
bool same(const History& a, const History& b) {
  const ChainTip &one = a.tip(), &other = b.tip();
  if (a.genesis() != b.genesis() || a.first_height() != b.first_height() || one.height() != other.height() ||
      one.registry->root() != other.registry->root() || one.opening != other.opening ||
      one.committee->units() != other.committee->units() || !(one.times == other.times) ||
      a.is_partial() != b.is_partial())
    return false;
  for (std::uint64_t height = 0; height <= one.height() + 1; ++height) {
    const auto hash = a.hash_at(height);
    if (hash != b.hash_at(height) || !same_block(a.find(height), b.find(height))) return false;
    if (hash && !b.contains({height, *hash})) return false;
  }
  return true;
}

// A network and the log of a node that followed it.
struct Grown {
  Grown(std::uint64_t height, const std::function<bool(std::uint64_t)>& is_of_round) {
    DurableState durable(disk, log, small::network, [] {});
    History history = chain.begin();
    durable.begin_log(history);
    while (history.tip().height() < height) {
      const ChainTip tip = history.tip();
      const CertifiedBlock block =
          is_of_round(tip.height() + 1) ? chain.certified(tip, chain.round_step(tip)) : chain.flip(tip);
      if (!history.append(block).ok()) qFatal("no block");
      durable.append(history);
      if (disk.has_state()) states[disk.state().height] = disk.records.at(Record::Resume);
    }
  }
  // As it was at this height, with the state that was the newest then.
  Disk disk_at(std::uint64_t height) const {
    Disk past;
    past.blocks.assign(disk.blocks.begin(), disk.blocks.begin() + static_cast<std::ptrdiff_t>(height + 1));
    for (const auto& [of, state] : states)
      if (of <= height) past.records[Record::Resume] = state;
    return past;
  }
  CertifiedBlock block(std::uint64_t height) const {
    return *decode_certified(*disk.blocks[static_cast<std::size_t>(height)], small::network);
  }

  Chain chain{3};
  NullLogger log;
  Disk disk;
  std::map<std::uint64_t, Bytes> states;  // by height, as they were saved
};

// Rounds up to height 256, and again from 513 on.
bool has_rounds_apart(std::uint64_t height) {
  return (height <= 256 || height > 512) && height % 5 >= 3;
}
bool has_no_round(std::uint64_t) {
  return false;
}

}  // namespace

class TestResume : public QObject {
  Q_OBJECT
 private Q_SLOTS:
  void both_ways_give_the_same_history();
  void a_start_applies_only_the_blocks_after_the_state();
  void a_state_that_does_not_fit_changes_nothing();
  void a_log_with_a_damaged_block_ends_before_it();
  void a_state_is_saved_after_its_block();
  void a_start_that_took_long_saves_a_state();
  void a_log_from_a_snapshot_goes_on_too();
  void a_succession_can_be_replaced_after_a_start();
  void the_times_of_rounds_are_kept();
  void its_bytes_survive_and_no_others();
};

// Planted: blocks of the last three rounds that resume() leaves out.
void TestResume::both_ways_give_the_same_history() {
  Grown grown(530, has_rounds_apart);
  QCOMPARE(grown.states.size(), std::size_t{2});
  QVERIFY(grown.states.count(256) == 1 && grown.states.count(512) == 1);
  for (const std::uint64_t height : {256u, 257u, 511u, 512u, 513u, 530u}) {
    Disk disk = grown.disk_at(height), whole = disk;
    whole.records.clear();
    auto resumed = load(disk, grown.chain), replayed = load(whole, grown.chain);
    QVERIFY(resumed && replayed);
    QCOMPARE(resumed->tip().height(), height);
    QVERIFY(disk.beginnings > 0 && whole.beginnings == 0);
    QVERIFY2(same(*resumed, *replayed), qPrintable(QString::number(height)));
    // They forget the same blocks later.
    for (std::uint64_t next = height + 1; next <= 530; ++next) {
      QVERIFY(resumed->append(grown.block(next)).ok());
      QVERIFY(replayed->append(grown.block(next), History::Origin::OwnDisk).ok());
      if (next % 16 == 0 || next == 530)
        QVERIFY2(same(*resumed, *replayed), qPrintable(QString::number(next)));
    }
  }
  // Fewer rounds than a history keeps: it has all blocks.
  Grown quiet(260, has_no_round);
  Disk disk = quiet.disk_at(260), whole = disk;
  whole.records.clear();
  const auto resumed = load(disk, quiet.chain), replayed = load(whole, quiet.chain);
  QVERIFY(resumed && replayed && same(*resumed, *replayed));
  QVERIFY(resumed->find(0) != nullptr);
}

void TestResume::a_start_applies_only_the_blocks_after_the_state() {
  Grown grown(530, has_rounds_apart);
  CountingCache cache, all;
  NullLogger log;
  Disk disk = grown.disk_at(530), whole = disk;
  whole.records.clear();
  QVERIFY(load(disk, grown.chain, log, &cache));
  QVERIFY(load(whole, grown.chain, log, &all));
  QCOMPARE(all.asked, 531);
  QCOMPARE(cache.asked, 1 + 18);
  // The last three rounds before 512 begin with the result at 244. Of earlier blocks it reads the headers.
  QCOMPARE(disk.loaded, std::size_t{530 - 244 + 1});
  QCOMPARE(disk.beginnings, std::size_t{244});
}

void TestResume::a_state_that_does_not_fit_changes_nothing() {
  Grown grown(262, has_rounds_apart);
  const Bytes good = grown.states.at(256);
  const auto changed = [&](const std::function<void(ResumePoint*)>& change) {
    ResumePoint point = *decode_resume_point(good);
    change(&point);
    return encode_resume_point(point);
  };
  const Bytes other_registry = load(grown.disk, grown.chain)->tip().registry->encode();
  std::vector<Bytes> states = {
      Bytes{},
      Bytes(good.begin(), good.end() - 1),
      Bytes(good.begin(), good.begin() + 40),
      changed([](ResumePoint* point) { point->height = 255; }),
      changed([](ResumePoint* point) { point->height = 263; }),
      changed([](ResumePoint* point) { point->height = ~std::uint64_t{0}; }),
      changed([](ResumePoint* point) { point->first_height = 1; }),
      changed([](ResumePoint* point) { point->genesis[0] ^= 1; }),
      changed([](ResumePoint* point) { point->block[0] ^= 1; }),
      changed([](ResumePoint* point) { point->registry.clear(); }),
      changed([&](ResumePoint* point) { point->registry = other_registry; }),
  };
  for (const std::size_t at : {std::size_t{0}, std::size_t{5}, good.size() / 2, good.size() - 1}) {
    states.push_back(good);
    states.back()[at] ^= 1;
  }
  Disk whole = grown.disk_at(262);
  whole.records.clear();
  const auto replayed = load(whole, grown.chain);
  for (const Bytes& state : states) {
    Disk disk = grown.disk_at(262);
    disk.records[Record::Resume] = state;
    Lines log;
    CountingCache cache;
    const auto history = load(disk, grown.chain, log, &cache);
    QVERIFY(history && same(*history, *replayed));
    QVERIFY(cache.asked >= 263);
    QCOMPARE(log.lines.size(), std::size_t{1});
    QVERIFY(log.lines[0].find("all 263 blocks") != std::string::npos);
  }
  // It is missing; a log that can't have one says nothing.
  Lines log;
  Disk missing = grown.disk_at(262), young = grown.disk_at(255);
  missing.records.clear();
  QVERIFY(same(*load(missing, grown.chain, log), *replayed));
  QCOMPARE(log.lines.size(), std::size_t{1});
  QVERIFY(!young.has_state() && load(young, grown.chain, log));
  QCOMPARE(log.lines.size(), std::size_t{1});
}

// Older images of the log, logs that go another way, and damage.
void TestResume::a_log_with_a_damaged_block_ends_before_it() {
  Grown grown(262, has_rounds_apart);
  const auto height_of = [&](Disk disk) -> std::uint64_t {
    const auto history = load(disk, grown.chain);
    return history ? history->tip().height() : 9999;
  };
  const Bytes state = grown.states.at(256);
  Disk older = grown.disk_at(200);
  older.records[Record::Resume] = state;
  QCOMPARE(height_of(older), std::uint64_t{200});

  // Another block of that height.
  Disk taken_back = grown.disk_at(255);
  const ChainTip before = load(taken_back, grown.chain)->tip();
  const std::uint64_t later = before.block->header.time_ms + 5000;
  const CertifiedBlock other = grown.chain.certified(before, grown.chain.flip(before).block->body, {}, later);
  taken_back.blocks.push_back(other.bytes);
  taken_back.records[Record::Resume] = state;
  const auto history = load(taken_back, grown.chain);
  QVERIFY(history && history->tip().block->hash == other.block->hash);

  // Header, body; in memory, older.
  Disk damaged = grown.disk_at(262);
  const auto change = [&](std::size_t height, std::size_t at) {
    Bytes bytes = *grown.disk.blocks[height];
    bytes[at] ^= 1;
    damaged.blocks[height] = std::make_shared<const Bytes>(std::move(bytes));
  };
  change(0, 20);
  QVERIFY(!load(damaged, grown.chain));
  damaged = grown.disk_at(262);
  change(100, certified_header_bytes + 40);
  QCOMPARE(height_of(damaged), std::uint64_t{99});
  damaged = grown.disk_at(262);
  change(258, certified_header_bytes + 40);
  QCOMPARE(height_of(damaged), std::uint64_t{257});
  damaged = grown.disk_at(262);
  damaged.blocks[0] = grown.disk.blocks[1];
  QVERIFY(!load(damaged, grown.chain));
}

// Planted: a state that is saved before its block is on the disk.
void TestResume::a_state_is_saved_after_its_block() {
  Grown grown(255, has_no_round);
  const History history = *load(grown.disk, grown.chain);
  QVERIFY(!grown.disk.has_state());
  NullLogger log;
  for (const bool fails : {true, false}) {
    Disk disk = grown.disk;
    disk.holds = true;
    DurableState durable(disk, log, small::network, [] {});
    History next = history;
    QVERIFY(next.append(grown.chain.flip(next.tip())).ok());
    durable.append(next);
    QVERIFY(!disk.has_state());
    QCOMPARE(disk.waiting.size(), std::size_t{1});
    disk.waiting[0](fails ? Expected<void>(make_error(ErrorCode::Io, "the disk did not write"))
                          : Expected<void>());
    QCOMPARE(disk.has_state(), !fails);
    if (!fails) QVERIFY(disk.state().block == next.tip().block->hash);
  }
}

void TestResume::a_start_that_took_long_saves_a_state() {
  Grown grown(262, has_rounds_apart);
  Disk few = grown.disk_at(255), many = grown.disk_at(262);
  many.records.clear();
  NullLogger log;
  QVERIFY(load(few, grown.chain) && !few.has_state());
  QVERIFY(load(many, grown.chain) && many.has_state());
  CountingCache cache;
  QVERIFY(load(many, grown.chain, log, &cache));
  QCOMPARE(cache.asked, 1);
}

void TestResume::a_log_from_a_snapshot_goes_on_too() {
  Grown grown(20, has_rounds_apart);
  const auto tip_at = [&](std::uint64_t height) {
    Disk disk = grown.disk_at(height);
    return load(disk, grown.chain)->tip();
  };
  Disk disk = grown.disk;
  disk.blocks.erase(disk.blocks.begin(), disk.blocks.begin() + 9);
  disk.first = 9;
  const Hash256 genesis = grown.block(0).block->hash;
  Bytes snapshot(genesis.begin(), genesis.end());
  append_array(snapshot, tip_at(9).registry->encode());
  disk.records[Record::Snapshot] = snapshot;
  const auto replayed = load(disk, grown.chain);
  QVERIFY(replayed);
  QCOMPARE(replayed->first_height(), std::uint64_t{9});
  // It knows no round that closed before the snapshot.
  Disk past = disk;
  past.blocks.resize(15 - 9 + 1);
  disk.records[Record::Resume] =
      encode_resume_point(resume_point(genesis, 9, load(past, grown.chain)->tip()));
  NullLogger log;
  CountingCache cache;
  const auto resumed = load(disk, grown.chain, log, &cache);
  QVERIFY(resumed && same(*resumed, *replayed));
  QCOMPARE(cache.asked, 1 + 5);
  // Of the log that begins at the genesis.
  disk.records[Record::Resume] = encode_resume_point(resume_point(genesis, 0, tip_at(15)));
  const auto other = load(disk, grown.chain);
  QVERIFY(other && same(*other, *replayed));
}

// Planted: a state after a succession, which leaves nothing to replace it by.
void TestResume::a_succession_can_be_replaced_after_a_start() {
  Chain chain(2);
  Disk disk;
  NullLogger log;
  DurableState durable(disk, log, small::network, [] {});
  History history = chain.begin();
  durable.begin_log(history);
  const auto take = [&](const CertifiedBlock& block) {
    QVERIFY(history.append(block).ok());
    durable.append(history);
  };
  for (std::uint64_t height = 1; height < resume_interval; ++height) take(chain.flip(history.tip()));
  const ChainTip before = history.tip();  // one is dormant
  take(chain.succession(before, {1}));
  QCOMPARE(history.tip().height(), resume_interval);
  QVERIFY(!disk.has_state());

  const CertifiedBlock certified = chain.flip(before);
  const Hash256 genesis = history.genesis();
  // The state of the block before, and one of the succession.
  for (const ChainTip& tip : {before, history.tip()}) {
    Disk copy = disk;
    copy.records[Record::Resume] = encode_resume_point(resume_point(genesis, 0, tip));
    auto started = load(copy, chain);
    QVERIFY(started && same(*started, history));
    QVERIFY(started->replace_succession(certified).ok());
  }
  QVERIFY(history.replace_succession(certified).ok());
  durable.replace_last(history);
  QVERIFY(disk.has_state() && disk.state().block == certified.block->hash);
  const auto started = load(disk, chain);
  QVERIFY(started && same(*started, history));
}

void TestResume::the_times_of_rounds_are_kept() {
  testing::ChainFixture chain;
  const auto nodes = chain.add_nodes(4);
  QVERIFY(chain.begin(nodes).ok());
  SignatureChecks checks;
  const History::Services services{chain.rules(), checks, nullptr};
  const CertifiedBlock genesis = chain.certified_genesis();
  auto begun = History::begin(services, genesis);
  QVERIFY2(begun.ok(), begun.ok() ? "" : begun.error().message.c_str());
  History& history = *begun;
  Disk disk;
  disk.blocks = {genesis.bytes};
  std::vector<testing::Work> works;
  for (const std::size_t node : nodes) works.push_back({node});
  for (std::uint64_t step = 1; step <= 10; ++step) {
    BlockBody body;
    if (step % 2 == 1)
      body.close = chain.close(works);
    else
      body.result = chain.result();
    const auto block = chain.propose(body, 1000 * step);
    QVERIFY(block.ok());
    const CertifiedBlock certified = chain.certify(*block);
    const auto appended = history.append(certified);
    QVERIFY2(appended.ok(), appended.ok() ? "" : appended.error().message.c_str());
    QVERIFY(chain.append(*block).ok());
    disk.blocks.push_back(certified.bytes);
    if (step == 7)
      disk.records[Record::Resume] = encode_resume_point(resume_point(history.genesis(), 0, history.tip()));
  }
  const auto resumed = resume_history(disk, services);
  QVERIFY(resumed.ok());
  using std::chrono::seconds;
  QCOMPARE(resumed->tip().height(), std::uint64_t{7});
  QVERIFY(resumed->tip().times.durations == (std::deque<Duration>{seconds(3), seconds(5), seconds(7)}));
  NullLogger log;
  DurableState durable(disk, log, chain.rules().network, [] {});
  const auto started = durable.load_history(services);
  QVERIFY(started && same(*started, history));
  QVERIFY(started->tip().times.durations == (std::deque<Duration>{seconds(5), seconds(7), seconds(9)}));
}

void TestResume::its_bytes_survive_and_no_others() {
  ResumePoint point;
  point.genesis = Hash256{1};
  point.first_height = 3;
  point.height = 512;
  point.block = Hash256{2};
  point.times.opened_ms = small::first_ms;
  point.times.durations = {std::chrono::milliseconds(1), std::chrono::hours(24)};
  point.registry = {4, 5, 6};
  const Bytes bytes = encode_resume_point(point);
  const auto read = decode_resume_point(bytes);
  QVERIFY(read.ok() && read->genesis == point.genesis && read->block == point.block);
  QVERIFY(read->first_height == 3 && read->height == 512);
  QVERIFY(read->times == point.times && read->registry == point.registry);
  for (std::size_t size = 0; size < bytes.size(); ++size)
    QVERIFY(!decode_resume_point(ByteSpan(bytes).first(size)).ok());
  for (std::size_t at = 0; at < bytes.size(); ++at) {
    Bytes changed = bytes;
    changed[at] ^= 1;
    QVERIFY(!decode_resume_point(changed).ok());
  }
  Bytes version = bytes;
  version[4] = 2;
  QCOMPARE(decode_resume_point(version).error().code, ErrorCode::Unsupported);
}

NS_TEST(TestResume)
#include "test_resume.moc"
