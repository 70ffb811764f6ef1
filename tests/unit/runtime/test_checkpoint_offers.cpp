// Checkpoints of a node that saves every few seconds, on a virtual clock and a seeded network: what it offers
// stays while others fetch it, slot by slot too, from whoever else has it, and no peer keeps it for ever.
#include <QtTest>
#include <algorithm>

#include "core/checkpoint/retention.h"
#include "core/checkpoint/slot_tensors.h"
#include "core/checkpoint/writer.h"
#include "core/exchange/names.h"
#include "core/runtime/checkpoint_fetch.h"
#include "core/runtime/checkpoint_offers.h"
#include "tests/support/checkpoint_sample.h"
#include "tests/support/exchange_hosts.h"
#include "tests/support/memory_file_env.h"
#include "tests/support/test_main.h"
#include "tests/support/time.h"

using namespace neuroshard;            // NOLINT
using namespace neuroshard::exchange;  // NOLINT
using checkpoint::Entry;
using neuroshard::test::ExchangeHosts;
using neuroshard::testing::tiny_key;
using neuroshard::testing::tiny_manifest;
using neuroshard::testing::TinyState;

namespace {

using neuroshard::test::second;

// 2.5 MB of weights, twice as much of moments; an expert has 5 pieces, its moments 9.
compute::ModelShape some_pieces() {
  compute::ModelShape shape = neuroshard::testing::tiny_shape();
  shape.hidden = 64;
  shape.head_dim = 32;
  shape.ffn = 1536;
  return shape;
}

void change(TinyState& state, std::uint64_t step) {
  state.slots[0].parameters[0] = static_cast<float>(step);
}

// A node with checkpoints on its disk.
class Trainer {
 public:
  Trainer(ExchangeHosts& hosts, std::size_t number, checkpoint::OfferRules rules = {})
      : hosts_(hosts), number_(number) {
    writer_.emplace(checkpoint::Writer::open(files(), key_, "/c").value());
    save();
    offers_ = std::make_unique<runtime::CheckpointOffers>(
        runtime::CheckpointOffers::Services{host().executor, host().executor, hosts.world.clock(), files(),
                                            *host().server},
        "/c", holds_, rules);
    hosts.world.run_for(second);
  }
  void save() {
    change(state_, ++step_);
    if (!writer_->save(tiny_manifest(step_, state_.shape), state_.view()).ok()) std::abort();
    checkpoint::RetentionPolicy policy;
    policy.keep_last = 1;
    policy.keep_best = false;
    if (holds_count_) policy.held = holds_->names();
    checkpoint::Catalogue catalogue(files(), "/c");
    if (!checkpoint::apply_retention(catalogue, policy).ok()) std::abort();
  }
  void save_every(Duration period) {
    hosts_.world.after(period, [this, period] {
      save();
      save_every(period);
    });
  }
  std::vector<Entry> entries() { return checkpoint::Catalogue(files(), "/c").list().value(); }
  bool has(const std::string& name) {
    for (const Entry& entry : entries())
      if (entry.name == name) return true;
    return false;
  }
  void ignore_holds() { holds_count_ = false; }
  const std::set<std::string>& ids() const { return offers_->ids(); }
  storage::FileEnv& files() { return host().files; }
  checkpoint::Writer& writer() { return *writer_; }

 private:
  test::ExchangeHost& host() { return hosts_.host(number_); }

  ExchangeHosts& hosts_;
  const std::size_t number_;
  const crypto::KeyPair key_ = tiny_key(static_cast<std::uint8_t>(number_));
  std::optional<checkpoint::Writer> writer_;
  const std::shared_ptr<checkpoint::Holds> holds_ = std::make_shared<checkpoint::Holds>();
  bool holds_count_ = true;
  TinyState state_{1, some_pieces()};
  std::uint64_t step_ = 0;
  std::unique_ptr<runtime::CheckpointOffers> offers_;
};

// The checkpoint that host 1 announces as the newest.
NamedContent newest(ExchangeHosts& hosts) {
  std::optional<std::vector<Claim>> claims;
  ask_names(hosts.network.caller(hosts.host(0).number), {hosts.host(1).contact},
            runtime::newest_checkpoint_name, 5 * second, nullptr,
            [&](std::vector<Claim> found) { claims = std::move(found); });
  hosts.world.run_until([&] { return claims.has_value(); }, hosts.world.now() + 10 * second);
  return claims && claims->size() == 1 ? claims->front().named : NamedContent{};
}

// Host 0 fetches one content into "/got/<name>"; whether it came.
bool fetched(ExchangeHosts& hosts, const ContentRef& content, const std::string& name, Duration limit) {
  if (!hosts.host(0).files.create_directories("/got").ok()) return false;
  FetchRequest request = hosts.request(content);
  request.path = "/got/" + name;
  const auto fetch = hosts.fetch(0, request);
  if (hosts.ended_within(limit) && hosts.outcome->ok()) return true;
  qInfo("%s: %s", name.c_str(), hosts.outcome ? hosts.outcome->error().describe().c_str() : "not in time");
  return false;
}

// Manifest, then everything that it names.
bool fetch_checkpoint(ExchangeHosts& hosts, const ContentRef& manifest, Duration limit) {
  if (!fetched(hosts, manifest, "manifest.json", limit)) return false;
  const auto read = checkpoint::parse_manifest(hosts.content_of(0, "/got/manifest.json"));
  if (!read.ok()) return false;
  for (const checkpoint::FileRecord& file : read->files)
    if (!fetched(hosts, {file.sha256, file.bytes}, file.name, limit)) return false;
  return true;
}

// Offers that end after twenty seconds without a question.
checkpoint::OfferRules short_rules() {
  checkpoint::OfferRules rules;
  rules.told = rules.unused = 20 * second;
  return rules;
}

sim::NetworkOptions line(double bytes_per_second) {
  sim::NetworkOptions options;
  options.bytes_per_second = bytes_per_second;
  return options;
}

}  // namespace

class TestCheckpointOffers : public QObject {
  Q_OBJECT
 private Q_SLOTS:
  void a_checkpoint_stays_while_it_is_fetched();
  void without_holds_it_would_be_gone();
  void who_asks_for_ever_holds_it_for_a_while();
  void imported_ones_are_offered_under_the_id_that_they_came_with();
  void what_is_damaged_is_not_offered_again();
  void single_slots_come_from_several_nodes();
  void offers_that_can_not_be_true_are_refused();
  void a_fetch_requires_room_for_what_is_missing();
};

// More than a minute for one, with a save every two seconds, of which retention keeps one.
void TestCheckpointOffers::a_checkpoint_stays_while_it_is_fetched() {
  ExchangeHosts hosts(2, line(100'000));
  Trainer trainer(hosts, 1, short_rules());
  trainer.save_every(2 * second);
  const NamedContent named = newest(hosts);
  const std::string name(as_text(named.note));
  const MonotonicTime begun = hosts.world.now();
  QVERIFY(fetch_checkpoint(hosts, named.content, 400 * second));
  QVERIFY(hosts.world.now() - begun > 60 * second);
  QVERIFY(trainer.has(name));
  QVERIFY(trainer.entries().size() <= 6);  // four offered, the newest and what it falls back to
  const auto entry = checkpoint::open_folder(hosts.host(0).files, "/got");
  QVERIFY2(entry.ok(), entry.ok() ? "" : entry.error().describe().c_str());
  QVERIFY(checkpoint::verify(hosts.host(0).files, *entry).ok());
  // Nobody fetches it any more.
  hosts.world.run_for(40 * second);
  QVERIFY(!trainer.has(name) && trainer.entries().size() <= 4);
}

void TestCheckpointOffers::without_holds_it_would_be_gone() {
  ExchangeHosts hosts(2, line(100'000));
  Trainer trainer(hosts, 1, short_rules());
  trainer.ignore_holds();
  trainer.save_every(2 * second);
  QVERIFY(!fetch_checkpoint(hosts, newest(hosts).content, 400 * second));
}

void TestCheckpointOffers::who_asks_for_ever_holds_it_for_a_while() {
  ExchangeHosts hosts(2);
  checkpoint::OfferRules rules;
  rules.longest = 240 * second;
  Trainer trainer(hosts, 1, rules);
  trainer.save_every(10 * second);
  const NamedContent named = newest(hosts);
  const std::string name(as_text(named.note));
  const net::Caller from{hosts.host(0).contact.id, hosts.host(0).contact.endpoint};
  const auto ask = [&] {
    hosts.host(1).methods->on_call(from, net::Method::ContentPiece,
                                   encode_piece_request({named.content.hash, 0}),
                                   [](const Expected<Bytes>&) {});
  };
  for (int i = 0; i < 9; ++i) {
    ask();
    hosts.world.run_for(30 * second);
    QVERIFY(trainer.has(name));
  }
  for (int i = 0; i < 4; ++i) {
    ask();
    hosts.world.run_for(30 * second);
  }
  QVERIFY(!trainer.has(name) && trainer.entries().size() <= 4);
}

void TestCheckpointOffers::imported_ones_are_offered_under_the_id_that_they_came_with() {
  ExchangeHosts hosts(3);
  Trainer first(hosts, 1), second_one(hosts, 2);
  const NamedContent named = newest(hosts);
  QVERIFY(fetch_checkpoint(hosts, named.content, 60 * second));
  // From the disk of host 0 to that of host 2.
  const auto files = hosts.host(0).files.list("/got").value();
  for (const auto& file : files) {
    QVERIFY(second_one.files().create_directories("/in").ok());
    QVERIFY(storage::write_file_atomic(second_one.files(), "/in/" + file.name,
                                       hosts.content_of(0, "/got/" + file.name))
                .ok());
  }
  QVERIFY(second_one.writer().adopt(checkpoint::open_folder(second_one.files(), "/in").value()).ok());
  hosts.world.run_for(15 * second);
  QCOMPARE(second_one.ids().count(to_hex(named.content.hash)), std::size_t{1});
  // The node that made it goes: the other one has all of it.
  hosts.network.set_online(hosts.host(1).number, false);
  QVERIFY(hosts.host(0).files.remove_tree("/got").ok());
  QVERIFY(fetch_checkpoint(hosts, named.content, 60 * second));
}

void TestCheckpointOffers::what_is_damaged_is_not_offered_again() {
  ExchangeHosts hosts(2);
  Trainer trainer(hosts, 1, short_rules());
  test::ExchangeHost& host = hosts.host(1);
  const NamedContent named = newest(hosts);
  const std::string id = to_hex(named.content.hash);
  QCOMPARE(trainer.ids().count(id), std::size_t{1});
  const Entry entry = trainer.entries().front();
  const checkpoint::FileRecord* weights = entry.manifest.file("weights.safetensors");
  QVERIFY(weights != nullptr);
  host.files.flip(entry.path + "/weights.safetensors", weights->bytes - 1);
  QVERIFY(!fetched(hosts, {weights->sha256, weights->bytes}, weights->name, 30 * second));
  hosts.world.run_for(30 * second);
  QCOMPARE(std::count(host.gone.begin(), host.gone.end(), weights->sha256), std::ptrdiff_t{1});
  QVERIFY(!host.server->holds(weights->sha256));
  QVERIFY(host.server->holds(named.content.hash));
  QCOMPARE(trainer.ids().count(id), std::size_t{0});
  // The next one is whole.
  trainer.save();
  hosts.world.run_for(10 * second);
  const auto entries = trainer.entries();
  QVERIFY(host.server->holds(entries.front().manifest.file("weights.safetensors")->sha256));
  // The verdict of a verification counts, too.
  const std::string found = entries.front().name;
  QVERIFY(checkpoint::Catalogue(trainer.files(), "/c").note_verdict(found, {WallTime{}, false}).ok());
  hosts.world.run_for(10 * second);
  QVERIFY(!host.server->holds(entries.front().manifest.file("weights.safetensors")->sha256));
}

// The first one goes away in the middle, the third lies.
void TestCheckpointOffers::single_slots_come_from_several_nodes() {
  ExchangeHosts hosts(4, line(200'000));
  Trainer first(hosts, 1), second_one(hosts, 2), liar(hosts, 3);
  hosts.network.set_handler(hosts.host(3).number, [honest = hosts.honest(hosts.host(3))](
                                                      const net::Caller& from, net::Method method,
                                                      ByteSpan request, const net::Respond& respond) {
    honest(from, method, request, [method, respond](Expected<Bytes> answer) {
      if (method == net::Method::ContentPiece && answer.ok()) answer->front() ^= 1;
      respond(std::move(answer));
    });
  });
  // The same weights at the same step: the files are the same, whoever signed the manifest.
  const Entry entry = first.entries().front();
  const auto bytes =
      storage::read_file(first.files(), entry.path + "/" + checkpoint::slot_index_file, 1 << 20);
  const auto index = checkpoint::decode_slot_index(*bytes, entry.manifest);
  QVERIFY2(index.ok(), index.ok() ? "" : index.error().describe().c_str());
  const compute::SlotId expert{compute::SlotKind::Expert, 0, 1};
  const auto runs = checkpoint::runs_of_slots(*index, {expert});
  QVERIFY(runs.ok());
  std::uint64_t sum = 0;
  std::size_t liars = 0;
  bool gone = false;
  for (const checkpoint::SlotRun& run : *runs) {
    FetchRequest request = hosts.request({run.sha256, run.bytes});
    request.path = "/" + checkpoint::run_file_name(run);
    const auto fetch = hosts.fetch(0, request);
    if (run.bytes > 6 * piece_bytes) {
      QVERIFY(hosts.world.run_until([&] { return fetch->bytes_here() > 3 * piece_bytes; },
                                    hosts.world.now() + 60 * second));
      hosts.network.set_online(hosts.host(1).number, false);
      gone = true;
    }
    QVERIFY(hosts.ended_within(120 * second));
    QVERIFY2(hosts.outcome->ok(), hosts.outcome->ok() ? "" : hosts.outcome->error().describe().c_str());
    sum += (*hosts.outcome)->received_bytes;
    liars += (*hosts.outcome)->liars;
    if (gone && run.bytes > 6 * piece_bytes) QVERIFY((*hosts.outcome)->holders >= 2);
  }
  QVERIFY(gone && liars >= 1);
  std::uint64_t wanted = 0;
  for (const checkpoint::SlotRun& run : *runs) wanted += run.bytes;
  QVERIFY(sum < 2 * wanted);
  QVERIFY(wanted < entry.manifest.file_bytes() / 2 + (1 << 20));
  const auto made =
      checkpoint::make_part(hosts.host(0).files, tiny_key(0), entry.manifest, entry.name, *runs, "", "/part");
  QVERIFY2(made.ok(), made.ok() ? "" : made.error().describe().c_str());
  QVERIFY(checkpoint::verify(hosts.host(0).files,
                             checkpoint::open_folder(hosts.host(0).files, "/part/" + made->name).value())
              .ok());
}

// Otherwise a false offer could name any step, and have others fetch any number of bytes.
void TestCheckpointOffers::offers_that_can_not_be_true_are_refused() {
  config::ConsensusPart consensus = config::builtin_profile("solo").value().consensus;
  consensus.sizes.push_back({consensus.layers, 2 * consensus.hidden, 1, 1});
  const compute::ModelShape shape = config::model_shape(consensus);
  checkpoint::Manifest honest = tiny_manifest(120, shape);
  honest.slots = compute::model_slots(shape);
  const std::uint64_t weights = compute::model_parameter_count(shape) * sizeof(float);
  honest.files = {{"weights.safetensors", weights + 4096, {}},
                  {"optimizer.safetensors", 2 * weights + 4096, {}},
                  {checkpoint::slot_index_file, 4096, {}}};
  const auto refused = [&](const std::function<void(checkpoint::Manifest&)>& change) {
    checkpoint::Manifest manifest = honest;
    change(manifest);
    return !runtime::check_offer(manifest, consensus, 120).ok();
  };
  QVERIFY(!refused([](checkpoint::Manifest&) {}));
  QVERIFY(runtime::check_offer(honest, consensus, std::nullopt).ok());
  QVERIFY(!runtime::check_offer(honest, consensus, 121).ok());
  QVERIFY(!refused([&](auto& m) { m.architecture = config::model_shape(config::at_size(consensus, 1)); }));
  QVERIFY(refused([](auto& m) { ++m.architecture.layers; }));
  QVERIFY(refused([](auto& m) { m.architecture.sequence *= 2; }));
  QVERIFY(refused([](auto& m) { m.files[0].name = "more.safetensors"; }));
  QVERIFY(refused([](auto& m) { m.files[0].bytes *= 100; }));
  QVERIFY(refused([](auto& m) {
    for (checkpoint::FileRecord& file : m.files) file.bytes = std::uint64_t{1} << 60;
  }));
}

void TestCheckpointOffers::a_fetch_requires_room_for_what_is_missing() {
  constexpr std::uint64_t mib = 1u << 20;
  testing::MemoryFileEnv files;
  QVERIFY(files.create_directories("/got").ok());
  files.set_capacity(100 * mib);
  QVERIFY(runtime::check_fetch_room(files, "/got", 36 * mib).ok());  // and 64 to spare
  const auto refused = runtime::check_fetch_room(files, "/got", 36 * mib + 1);
  QVERIFY(!refused.ok());
  QCOMPARE(refused.error().code, ErrorCode::Exhausted);
  QVERIFY2(refused.error().message.find("at /got") != std::string::npos, refused.error().message.c_str());
  // An interrupted fetch goes on with the bytes that are here.
  QVERIFY(storage::write_file_atomic(files, "/got/optimizer.safetensors.part", Bytes(10 * mib)).ok());
  QVERIFY(runtime::check_fetch_room(files, "/got", 36 * mib).ok());
  QVERIFY(!runtime::check_fetch_room(files, "/got", 36 * mib + 1).ok());
}

NS_TEST(TestCheckpointOffers)
#include "test_checkpoint_offers.moc"
