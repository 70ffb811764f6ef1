// Nodes with stages of one small model, in one process on a virtual clock: streams with a delay, deaths without a word,
// and the compute module underneath. Header only; needs the compute module.
#pragma once

#include <algorithm>
#include <functional>
#include <list>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "core/net/local_stream.h"
#include "core/pipeline/driver.h"
#include "core/pipeline/stage_worker.h"
#include "core/pipeline/text_driver.h"
#include "core/pipeline/text_stage.h"
#include "core/sim/world.h"
#include "tests/support/keys.h"
#include "tests/unit/model/model_test.h"

namespace neuroshard::test {

// A stream whose messages arrive later.
class DelayedStream final : public net::PeerStream {
 public:
  DelayedStream(std::shared_ptr<net::PeerStream> inner, Executor& executor, Duration delay)
      : inner_(std::move(inner)), executor_(executor), delay_(delay) {}
  ~DelayedStream() override { *alive_ = false; }
  void write(Bytes message, Written done) override { inner_->write(std::move(message), std::move(done)); }
  void finish() override { inner_->finish(); }
  void read(Read done) override {
    inner_->read([this, alive = alive_, done = std::move(done)](Expected<std::optional<ByteChain>> read) {
      if (!*alive) return;
      timer_ = executor_.post_after(delay_, [done, read = std::move(read)] { done(read); });
    });
  }
  void break_off(Error reason) override { inner_->break_off(std::move(reason)); }

 private:
  std::shared_ptr<net::PeerStream> inner_;
  Executor& executor_;
  const Duration delay_;
  std::unique_ptr<TimerHandle> timer_;
  std::shared_ptr<bool> alive_ = std::make_shared<bool>(true);
};

// A hop that takes everything, or nothing, says that it is there, and ready or not, and never answers.
class SilentHop {
 public:
  explicit SilentHop(Executor& executor, bool ready = true, bool reads = true)
      : executor_(executor), ready_(ready), reads_(reads) {}
  void take(std::shared_ptr<net::PeerStream> stream) {
    Line& line = lines_.emplace_back();
    line.stream = std::move(stream);
    if (reads_) read(line);
    if (ready_) write_frame(*line.stream, pipeline::Ready{0});
    beat();
  }
  // payload: of one chunk at most.
  void say(const pipeline::Message& message, const Bytes& payload = {}) {
    for (const Line& line : lines_) write_frame(*line.stream, message, payload);
  }
  std::size_t works() const { return works_; }  // micro-batches and pieces that arrived

 private:
  struct Line {
    std::shared_ptr<net::PeerStream> stream;
    std::size_t rest = 0;  // of the payload that arrives
  };
  void read(Line& line) {
    line.stream->read([this, &line](const Expected<std::optional<ByteChain>>& message) {
      if (!message.ok() || !message->has_value()) return;
      take_frame(line, (*message)->bytes());
      read(line);
    });
  }
  void take_frame(Line& line, const Bytes& bytes) {
    if (line.rest > 0) {
      line.rest -= bytes.size();
      return;
    }
    line.rest = load_le<std::uint32_t>(bytes.data());
    const auto header = pipeline::decode_message(ByteSpan(bytes).subspan(4));
    if (header.ok() && std::holds_alternative<pipeline::Work>(*header)) ++works_;
  }
  static void write_frame(net::PeerStream& stream, const pipeline::Message& message,
                          const Bytes& payload = {}) {
    Bytes frame;
    append_le(frame, static_cast<std::uint32_t>(payload.size()));
    const Bytes header = pipeline::encode_message(message);
    frame.insert(frame.end(), header.begin(), header.end());
    stream.write(std::move(frame), [](const auto&) {});
    if (!payload.empty()) stream.write(payload, [](const auto&) {});
  }
  void beat() {
    say(pipeline::Alive{});
    timer_ = executor_.post_after(std::chrono::seconds(1), [this] { beat(); });
  }
  Executor& executor_;
  const bool ready_, reads_;
  std::list<Line> lines_;
  std::size_t works_ = 0;
  std::unique_ptr<TimerHandle> timer_;
};

// A thread of the stages: at once, or busy for ever, or with a full queue.
class LabCompute final : public Executor {
 public:
  explicit LabCompute(Executor& inner) : inner_(inner) {}
  bool post(Task task) override {
    if (refused > 0) {
      --refused;
      return false;
    }
    if (!busy) return inner_.post(std::move(task));
    waiting.push_back(std::move(task));
    return true;
  }
  std::unique_ptr<TimerHandle> post_after(Duration delay, Task task) override {
    return inner_.post_after(delay, std::move(task));
  }
  bool on_thread() const override { return inner_.on_thread(); }

  int refused = 0;  // so many of the next tasks
  bool busy = false;
  std::vector<Task> waiting;

 private:
  Executor& inner_;
};

// The time of a world, and the time that stages of tests spend computing: it passes for everybody.
class LabClock final : public Clock {
 public:
  explicit LabClock(const Clock& world) : world_(world) {}
  MonotonicTime monotonic_now() const override { return world_.monotonic_now() + spent_; }
  WallTime wall_now() const override { return world_.wall_now(); }
  void spend(Duration time) { spent_ += time; }

 private:
  const Clock& world_;
  Duration spent_{0};
};

class PipelineLab {
 public:
  struct Node {
    explicit Node(crypto::KeyPair own) : key(std::move(own)) {}
    const crypto::KeyPair key;
    net::NodeId id{};
    pipeline::StageRange range;
    compute::StagePtr stage;
    pipeline::ExchangeLog exchanges;
    std::unique_ptr<pipeline::Lines> lines;
    std::unique_ptr<pipeline::SessionTable> sessions;
    std::unique_ptr<pipeline::StageWorker> worker;  // null: dead, a stage of texts, or only a driver
    std::unique_ptr<pipeline::TextStage> texts;     // null: likewise
    std::unique_ptr<SilentHop> silent;              // null: likewise
    std::vector<std::uint64_t> steps;               // tokens that counted in each
    std::vector<std::string> troubles;
    bool alive = true;
  };

  PipelineLab(compute::Module& module, const compute::ModelShape& shape, Duration delay = Duration(0))
      : module_(&module), shape_(shape), delay_(delay) {}
  // For stages that a test brings along.
  PipelineLab(const compute::ModelShape& shape, Duration delay) : shape_(shape), delay_(delay) {}
  ~PipelineLab() {
    for (auto& node : nodes_) {
      node->worker.reset();
      node->texts.reset();
      node->sessions.reset();
      node->silent.reset();
    }
  }

  // A node that holds nothing: a driver's.
  Node& add_node() {
    nodes_.push_back(std::make_unique<Node>(key_numbered(static_cast<std::uint16_t>(nodes_.size() + 1))));
    Node& node = *nodes_.back();
    node.id = crypto::node_id(node.key.public_key());
    node.lines = std::make_unique<LabLines>(*this, node);
    return node;
  }
  Node& add_stage(const pipeline::StageRange& range, const pipeline::StageSchedule::Limits& limits,
                  compute::StagePtr stage = nullptr) {
    Node& node = add_node();
    node.range = range;
    node.stage = stage != nullptr ? std::move(stage) : model_test::stage_of(*module_, spec_of(range));
    const auto rule = [this](compute::SlotId, std::uint64_t) {
      compute::StepOptions options;
      options.learning_rate = learning_rate;
      return options;
    };
    node.sessions = sessions_of(node);
    pipeline::StageOptions options;
    options.schedule = limits;
    options.stepped = [&node](const auto&, const pipeline::StageSchedule::Counted& counted) {
      node.steps.push_back(counted.tokens);
    };
    options.trouble = [&node](const Error& error) { node.troubles.push_back(error.message); };
    node.worker = std::make_unique<pipeline::StageWorker>(
        around(node), *node.sessions, compute_,
        std::make_shared<pipeline::StageLane>(*node.stage, range, shape_, rule), options);
    return node;
  }
  Node& add_text_stage(const pipeline::StageRange& range, compute::StagePtr stage = nullptr) {
    Node& node = add_node();
    node.range = range;
    compute::StageSpec spec = spec_of(range);
    spec.trainable = false;
    node.stage = stage != nullptr ? std::move(stage) : model_test::stage_of(*module_, spec);
    node.sessions = sessions_of(node);
    node.texts = texts_at(node);
    return node;
  }
  // At the node's table, with the weights of its stage.
  std::unique_ptr<pipeline::TextStage> texts_at(Node& node) {
    const auto find_stage = [&node]() -> Expected<compute::Stage*> { return node.stage.get(); };
    return std::make_unique<pipeline::TextStage>(
        around(node), *node.sessions, compute_,
        std::make_shared<pipeline::TextLane>(find_stage, node.range, shape_), pipeline::TextStageOptions());
  }
  // A node that says it holds the range, and never answers.
  Node& add_silent(const pipeline::StageRange& range, bool ready = true, bool reads = true) {
    Node& node = add_node();
    node.range = range;
    node.silent = std::make_unique<SilentHop>(executor_, ready, reads);
    return node;
  }
  // Layers from each of `cuts` to the next; embedding first, head last.
  std::vector<Node*> add_stages(const std::vector<std::uint32_t>& cuts,
                                const pipeline::StageSchedule::Limits& limits) {
    std::vector<Node*> stages;
    for (std::size_t i = 0; i + 1 < cuts.size(); ++i)
      stages.push_back(&add_stage({cuts[i], cuts[i + 1] - cuts[i], i == 0, i + 2 == cuts.size()}, limits));
    return stages;
  }
  // As by kill -9: nothing of it is heard any more, and streams to it break at once.
  void kill(Node& node) {
    node.alive = false;
    node.worker.reset();  // the stage stays: a job may be queued
    node.texts.reset();
    node.sessions.reset();
    for (const auto& weak : streams_[node.id])
      if (const auto stream = weak.lock())
        stream->break_off(make_error(ErrorCode::Unavailable, "connection reset"));
  }

  // All that ever held it, as a node would know them.
  std::vector<net::NodeId> holders(const pipeline::StageRange& range) const {
    std::vector<net::NodeId> ids;
    for (const auto& node : nodes_)
      if (node->stage != nullptr && node->range == range) ids.push_back(node->id);
    return ids;
  }

  pipeline::Surroundings around(Node& node) {
    return {*node.lines, swarm_, clock_, node.exchanges, node.id, shape_, {}};
  }
  pipeline::Route route(const std::vector<Node*>& stages, std::uint32_t sequences, std::uint32_t window,
                        pipeline::WireFormat wire = pipeline::WireFormat::Fp32) {
    pipeline::Route route;
    store_le(route.session.data(), ++sessions_);
    route.sequences = sequences;
    route.length = shape_.sequence;
    route.window = window;
    route.wire = wire;
    for (const Node* stage : stages) route.hops.push_back({stage->id, stage->range});
    return route;
  }
  bool run_until(const std::function<bool()>& condition, Duration limit = std::chrono::minutes(10)) {
    return world_.run_until(condition, world_.now() + limit);
  }
  void run_for(Duration duration) { world_.run_for(duration); }
  sim::World& world() { return world_; }
  LabClock& clock() { return clock_; }
  Executor& executor() { return executor_; }
  LabCompute& compute() { return compute_; }
  LabCompute& swarm() { return swarm_; }  // what the stages and drivers post to
  const std::vector<std::unique_ptr<Node>>& nodes() const { return nodes_; }

  double learning_rate = 1e-3;

 private:
  class LabLines final : public pipeline::Lines {
   public:
    LabLines(PipelineLab& lab, Node& own) : lab_(lab), own_(own) {}
    std::unique_ptr<TimerHandle> open(const net::NodeId& peer, Opened done) override {
      timers_.push_back(
          lab_.executor_.post_after(lab_.delay_ * 2, [this, peer, done] { connect(peer, done); }));
      return nullptr;
    }

   private:
    void connect(const net::NodeId& peer, const Opened& done) {
      Node* const other = lab_.find(peer);
      if (!own_.alive || other == nullptr || (other->sessions == nullptr && other->silent == nullptr))
        return done(make_error(ErrorCode::Unavailable, "connection refused"));
      auto [here, there] = net::make_local_stream(lab_.executor_);
      const auto delayed = [this](std::shared_ptr<net::PeerStream> end) {
        return std::make_shared<DelayedStream>(std::move(end), lab_.executor_, lab_.delay_);
      };
      const auto ours = delayed(std::move(here)), theirs = delayed(std::move(there));
      lab_.streams_[own_.id].push_back(ours);
      lab_.streams_[peer].push_back(theirs);
      if (other->sessions != nullptr) other->sessions->take(own_.id, theirs);
      if (other->silent != nullptr) other->silent->take(theirs);
      done(std::shared_ptr<net::PeerStream>(ours));
    }
    PipelineLab& lab_;
    Node& own_;
    std::vector<std::unique_ptr<TimerHandle>> timers_;
  };

  std::unique_ptr<pipeline::SessionTable> sessions_of(Node& node) {
    pipeline::TableOptions options;
    options.range = node.range;
    return std::make_unique<pipeline::SessionTable>(around(node), options);
  }
  compute::StageSpec spec_of(const pipeline::StageRange& range) const {
    compute::StageSpec spec;
    spec.shape = shape_;
    spec.first_layer = range.first_layer;
    spec.layer_count = range.layer_count;
    spec.embed = range.embed;
    spec.head = range.head;
    return spec;
  }
  Node* find(const net::NodeId& id) {
    for (const auto& node : nodes_)
      if (node->id == id) return node.get();
    return nullptr;
  }

  compute::Module* const module_ = nullptr;
  const compute::ModelShape shape_;
  const Duration delay_;
  sim::World world_;
  LabClock clock_{world_.clock()};
  sim::HostExecutor executor_{world_};
  LabCompute compute_{executor_}, swarm_{executor_};
  std::vector<std::unique_ptr<Node>> nodes_;
  std::map<net::NodeId, std::vector<std::weak_ptr<net::PeerStream>>> streams_;
  std::uint64_t sessions_ = 0;
};

// The end of a stream to a hop of a route. It says what a test wants, and keeps no rule.
class RawEnd {
 public:
  // route: signed. later: the position of the hop.
  RawEnd(PipelineLab& lab, PipelineLab::Node& from, const pipeline::Route& route, std::size_t later)
      : around_(lab.around(from)), route_(route), later_(later) {
    around_.lines.open(route.hops[later].node,
                       [this, life = lifetime_.token()](Expected<std::shared_ptr<net::PeerStream>> stream) {
                         if (!life.alive()) return;
                         if (!stream.ok()) {
                           ended = stream.error().message;
                           return;
                         }
                         opened(std::move(stream).value());
                       });
    send(pipeline::Follow{route});
  }
  void send(const pipeline::Message& message, pipeline::SharedBytes payload = nullptr) {
    if (frames_ != nullptr)
      frames_->send(pipeline::encode_message(message), std::move(payload));
    else
      before_.emplace_back(message, std::move(payload));
  }
  // Zeros.
  void work(std::uint64_t index, std::uint64_t finished_below) {
    const pipeline::Work one{index, finished_below, route_.sequences};
    const auto size = pipeline::payload_bytes(one, route_, route_.hops[later_], around_.shape);
    send(one, std::make_shared<Bytes>(size.value()));
  }
  template <class T>
  std::size_t count() const {
    return static_cast<std::size_t>(
        std::count_if(received.begin(), received.end(),
                      [](const pipeline::Message& message) { return std::holds_alternative<T>(message); }));
  }
  bool is_ready() const { return count<pipeline::Ready>() > 0; }

  std::vector<pipeline::Message> received;
  std::string ended;  // why; empty: it is open

 private:
  void opened(std::shared_ptr<net::PeerStream> stream) {
    pipeline::FrameStream::Events events;
    events.admit = [this](ByteSpan header) -> Expected<std::size_t> {
      const auto message = pipeline::decode_message(header);
      if (!message.ok()) return message.error();
      return pipeline::payload_bytes(*message, route_, route_.hops[later_], around_.shape).value_or(0);
    };
    events.received = [this](const Bytes& header, const Bytes&) {
      received.push_back(pipeline::decode_message(header).value());
    };
    events.ended = [this](const Error& error) { ended = error.message; };
    frames_ = std::make_unique<pipeline::FrameStream>(
        std::move(stream), around_.executor, around_.clock, around_.times,
        pipeline::encode_message(pipeline::Alive{}), std::move(events));
    for (const auto& [message, payload] : std::exchange(before_, {})) send(message, payload);
  }

  const pipeline::Surroundings around_;
  const pipeline::Route route_;
  const std::size_t later_;
  std::vector<std::pair<pipeline::Message, pipeline::SharedBytes>> before_;  // it is open
  std::unique_ptr<pipeline::FrameStream> frames_;
  Lifetime lifetime_;
};

// A driver with a stock of micro-batches of random tokens; the same seed gives the same ones.
class LabDriver {
 public:
  LabDriver(PipelineLab& lab, PipelineLab::Node& node, const pipeline::Route& route,
            const compute::ModelShape& shape, std::uint64_t seed, std::uint64_t count)
      : shape_(shape), seed_(seed), count_(count), sequences_(route.sequences) {
    pipeline::DriverEvents events;
    events.next = [this] { return next(); };
    events.finished = [this](std::uint64_t index, const pipeline::Sums& sums) { done[index] = sums; };
    events.lead.holders = [this, &lab](const pipeline::StageRange& range) {
      return holders ? holders(range) : lab.holders(range);
    };
    events.lead.lost = [this](const pipeline::Lost& one) { lost.push_back(one); };
    driver_ =
        std::make_unique<pipeline::Driver>(lab.around(node), node.key, Bytes(), route, std::move(events));
  }
  static model_test::Batch batch(const compute::ModelShape& shape, std::uint64_t seed, std::uint64_t index,
                                 std::uint32_t sequences) {
    return {shape, sequences, shape.sequence, seed * 1000003 + index};
  }
  void start() { driver_->start(); }
  // The same key in the same session would be the same driver: its data and results go on.
  void die() { driver_.reset(); }
  bool finished() const { return done.size() == count_; }
  pipeline::Driver& driver() { return *driver_; }
  void add(std::uint64_t more) {
    count_ += more;
    driver_->wake();
  }

  std::function<std::vector<net::NodeId>(const pipeline::StageRange&)> holders;
  std::uint64_t different = UINT64_MAX;  // micro-batches, then the first one again
  std::map<std::uint64_t, pipeline::Sums> done;
  std::vector<pipeline::Lost> lost;

 private:
  std::optional<pipeline::MicroBatchText> next() {
    if (next_ == count_) return std::nullopt;
    const model_test::Batch made = batch(shape_, seed_, next_++ % different, sequences_);
    return pipeline::MicroBatchText{sequences_, made.tokens, made.targets};
  }
  const compute::ModelShape shape_;
  const std::uint64_t seed_;
  std::uint64_t count_, next_ = 0;
  const std::uint32_t sequences_;
  std::unique_ptr<pipeline::Driver> driver_;
};

}  // namespace neuroshard::test
