// The pipeline service of a real node on a real host. The test is the compute thread and plays the other members, whose streams
// reach the node without a connection. Header only.
#pragma once

#include <QtTest>

#include <algorithm>
#include <atomic>
#include <future>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "core/config/network_profile.h"
#include "core/net/local_stream.h"
#include "core/pipeline/messages.h"
#include "core/runtime/pipeline_service.h"
#include "tests/support/memory_file_env.h"
#include "tests/support/until.h"
#include "tests/unit/chain/chain_fixture.h"
#include "tests/unit/engine/toy_module.h"

namespace neuroshard::test {

inline config::ConsensusPart two_parts() {
  config::ConsensusPart consensus = config::builtin_profile("devnet")->consensus;
  consensus.layers = 2;
  consensus.hidden = consensus.head_dim = 32;
  consensus.experts = consensus.experts_per_token = 1;
  consensus.vocab = 300;
  consensus.sequence = 8;
  consensus.sync = "parts=2";
  return consensus;
}

// Three founders and a node that joined and for which nobody has vouched.
struct PipelineMembers : chain::testing::ChainFixture {
  enum Who : std::size_t { self, first, second, stranger };
  // parts: of the founders, from 0 on.
  explicit PipelineMembers(std::initializer_list<std::uint32_t> parts)
      : ChainFixture(chain::testing::small_rules(chain::VotersMode::Invited, 2)) {
    const std::vector<std::size_t> founders = add_nodes(3);
    add_node();
    for (const std::size_t founder : founders)
      set_rows(founder, chain::RowSet::of({std::data(parts)[founder]}));
    set_rows(stranger, chain::RowSet::of({1}));
    if (!begin(founders).ok() || !join(stranger)) qFatal("no chain");
  }
  net::NodeId id(std::size_t node) const { return crypto::node_id(key(node).public_key()); }
  // The same key once more, for a host.
  static crypto::KeyPair own_key(std::size_t node) {
    return test::key_numbered(static_cast<std::uint16_t>(2 * node + 2));
  }
};

// Goes on only when the test says so: a slow machine is not an idle node.
class StandingClock final : public Clock {
 public:
  MonotonicTime monotonic_now() const override { return MonotonicTime(Duration(elapsed_.load())); }
  WallTime wall_now() const override {
    return WallTime(std::chrono::milliseconds(1'700'000'000'000)) +
           std::chrono::duration_cast<std::chrono::milliseconds>(Duration(elapsed_.load()));
  }
  void advance(Duration by) { elapsed_ += by.count(); }

 private:
  std::atomic<Duration::rep> elapsed_{0};
};

class KeptLog final : public Logger {
 public:
  void write(const LogRecord& record) override {
    std::lock_guard lock(mutex_);
    messages_.push_back(record.message);
  }
  std::ptrdiff_t count(const std::string& part) const {
    std::lock_guard lock(mutex_);
    return std::count_if(messages_.begin(), messages_.end(),
                         [&](const std::string& message) { return message.find(part) != std::string::npos; });
  }

 private:
  mutable std::mutex mutex_;
  std::vector<std::string> messages_;
};

struct PipelineServiceBench {
  using Members = PipelineMembers;
  static constexpr std::uint32_t sequences = 2;

  explicit PipelineServiceBench(std::size_t own = Members::self) {
    runtime::PeerHostOptions options;
    options.open_port = options.relay = false;
    options.swarm.network_id = network;
    options.swarm.one_lan = true;
    auto started = runtime::PeerHost::start(Members::own_key(own), {files, entropy, clock, logger, "test"},
                                            std::move(options));
    if (!started.ok()) qFatal("host: %s", started.error().message.c_str());
    host = std::move(*started);
    if (host->id() != members.id(own)) qFatal("another key");
    service.emplace(
        runtime::PipelineService::Services{*host, clock, logger, entropy}, consensus, network, 0,
        [this] { return registry; }, [] { return std::nullopt; });
    show(members);
    on_host([this] { service->open(1, true); });
    compute::StageSpec spec;
    spec.shape = shape;
    spec.layer_count = shape.layers;
    spec.embed = spec.head = true;
    stage = compute::make_stage(module, spec).value();
  }
  ~PipelineServiceBench() {
    detach();
    on_host([this] {
      streams.clear();
      service->close();
      service.reset();
    });
    host.reset();
  }
  void on_host(const std::function<void()>& task) const { host->run(task); }
  // The newest block says so.
  void show(const Members& now) {
    on_host([&] { registry = now.registry_ptr(); });
  }

  // ---- The compute thread
  void attach(std::uint32_t part = 0) {
    engine::PipelineTrainer::Model model{*stage, parts[part], shape};
    model.batch_tokens = consensus.batch_tokens;
    model.sequences = sequences;
    model.most_held = 4;
    model.rule = [](compute::SlotId, std::uint64_t) { return compute::StepOptions(); };
    model.read_text = [](const CancelToken&) -> Expected<std::vector<pipeline::MicroBatchText>> {
      return make_error(ErrorCode::NotFound, "no text");
    };
    model.make_text_stage = []() -> Expected<compute::StagePtr> {
      return make_error(ErrorCode::Exhausted, "no memory");
    };
    service->trainer()->attach(std::move(model));
  }
  // Until its driver has a route. Of part 1 the route has a session here; the chain says that the node holds that part.
  void attach_and_wait(std::uint32_t part = 0) {
    attach(part);
    QVERIFY(
        testing::until([&] { return view().path.size() == 2 && view().sessions == (part == 0 ? 1 : 0); }));
  }
  void detach() { service->trainer()->detach(); }
  // It is ready for jobs of the training, and then has no text to go on with.
  void compute() { QCOMPARE(service->trainer()->step({}).error().code, ErrorCode::NotFound); }
  // A tenth of a second, in which it computes.
  void go_on() {
    clock.advance(std::chrono::milliseconds(100));
    compute();
    QTest::qWait(100);
  }
  void rest() { service->trainer()->rest(); }

  // ---- What it reports
  node::PartView view() const {
    node::PartView now;
    on_host([&] { now = service->view(); });
    return now;
  }
  std::string trouble() const {
    std::string now;
    on_host([&] { now = service->trouble(); });
    return now;
  }
  bool troubled_by(const std::string& part) const {
    return testing::until([&] { return trouble().find(part) != std::string::npos; });
  }
  std::string holder_of_part_2() const {
    const auto path = view().path;
    return path.size() == 2 ? path[1].node : std::string();
  }

  // ---- Other nodes
  pipeline::Route route(const crypto::KeyPair& driver, std::vector<std::size_t> hops) const {
    pipeline::Route route;
    entropy.fill({route.session.data(), route.session.size()});
    route.sequences = sequences;
    route.length = shape.sequence;
    route.window = 2;
    for (std::size_t i = 0; i < hops.size(); ++i) route.hops.push_back({members.id(hops[i]), parts[i]});
    route.driver = driver.public_key();
    return route;
  }
  // The node's answer to a stream that this node opens, and that begins with the route.
  Expected<pipeline::Message> answer(const net::NodeId& from, pipeline::Route route,
                                     const crypto::KeyPair& driver) {
    pipeline::sign_route(route, driver, network);
    return answer(from, pipeline::Follow{route});
  }
  Expected<pipeline::Message> answer(const net::NodeId& from, const pipeline::Message& message) {
    const auto told = std::make_shared<std::promise<Expected<pipeline::Message>>>();
    on_host([&] {
      auto [here, there] = net::make_local_stream(host->executor());
      host->member().methods().on_stream({from, {}}, net::Method::PipelineSession, there);
      Bytes frame(4);  // no payload
      const Bytes header = pipeline::encode_message(message);
      frame.insert(frame.end(), header.begin(), header.end());
      here->write(std::move(frame), [](const auto&) {});
      listen(*here, told);
      streams.push_back(std::move(here));
    });
    auto answered = told->get_future();
    if (answered.wait_for(std::chrono::seconds(20)) != std::future_status::ready)
      return make_error(ErrorCode::Timeout, "no answer");
    return answered.get();
  }
  // A founder that holds part 1 drives through this node.
  Expected<pipeline::Message> drive(std::uint32_t of_sequences = sequences) {
    pipeline::Route asked = route(members.key(Members::first), {Members::self, Members::second});
    asked.sequences = of_sequences;
    return answer(members.id(Members::first), asked, members.key(Members::first));
  }

  const config::ConsensusPart consensus = two_parts();
  const compute::ModelShape shape = config::model_shape(consensus);
  const std::vector<compute::StageRange> parts = config::model_parts(consensus);
  const Hash256 network{7};
  const Members members{0, 0, 1};
  testing::MemoryFileEnv files;
  mutable crypto::SystemEntropy entropy;
  StandingClock clock;
  KeptLog logger;
  testing::ToyModule module;
  compute::StagePtr stage;
  chain::RegistryPtr registry;  // the executor's, as the next
  std::vector<std::shared_ptr<net::PeerStream>> streams;
  std::unique_ptr<runtime::PeerHost> host;
  std::optional<runtime::PipelineService> service;

 private:
  using Told = std::shared_ptr<std::promise<Expected<pipeline::Message>>>;
  static void listen(net::PeerStream& stream, const Told& told) {
    stream.read([&stream, told](const Expected<std::optional<ByteChain>>& read) {
      if (!read.ok()) return told->set_value(read.error());
      if (!*read) return told->set_value(make_error(ErrorCode::Unavailable, "finished"));
      const Bytes frame = (*read)->bytes();
      auto message = pipeline::decode_message(ByteSpan(frame).subspan(4));
      if (message.ok() && std::holds_alternative<pipeline::Alive>(*message)) return listen(stream, told);
      told->set_value(std::move(message));
    });
  }
};

}  // namespace neuroshard::test
