// A process with a stage, or a driver, of a model that is trained through a pipeline: for tests and measurements; not
// part of the product. All but the words on its standard input and output is the product's.
//
//   pipeline_node CONFIG        a file or "-" for the first line of standard input
//     {"key": n, "host": "127.0.0.1", "shape": {...}, "text": FILE, "threads": n, "precision": "fp32",
//      "stage": {"first": n, "count": n, "embed": b, "head": b},  without it: only a driver
//      "batch_tokens": n, "most_held": n, "most_due": n, "learning_rate": x, "init_seed": n,
//      "warmup_steps": n, "decay_steps": n}  without the last one the rate is constant
// The first line that it prints says {"ready": true, "id": ID, "address": "HOST:PORT"}. Then each line of input is one of
//   {"do": "meet", "peers": [{"id": ID, "address": A, "stage": {...}}]}
//   {"do": "drive", "route": [ID], "sequences": n, "window": n, "wire": "int8", "micro_batches": n, "seed": n}
//   {"do": "compute", "sequences": n, "wire": "bf16", "micro_batches": n}   this stage alone, nothing beside it
//   {"do": "pause"}, {"do": "resume"}, {"do": "stop"}, {"do": "report"}
// and it prints {"finished": index, "loss": x, "at": s}, {"lost": position, "what": s, "at": s}, {"stepped": n, "at": s},
// {"trouble": s}, {"computed": s}, {"report": {...}}. A text is a file of bytes; a token is one of them.
#include <fmt/format.h>

#include <cstdio>
#include <fstream>
#include <iostream>
#include <iterator>
#include <nlohmann/json.hpp>

#include "core/compute/module.h"
#include "core/crypto/hash.h"
#include "core/pipeline/driver.h"
#include "core/pipeline/peer_lines.h"
#include "core/pipeline/stage_worker.h"
#include "core/platform/process/process_memory.h"
#include "core/runtime/guest.h"
#include "core/train/schedule.h"
#include "tests/support/keys.h"

using namespace neuroshard;
using nlohmann::json;

namespace {

const Bytes network_name = {'p', 'i', 'p', 'e'};

void say(const json& line) {
  std::cout << line.dump() << '\n' << std::flush;
}

[[noreturn]] void fail(const std::string& what) {
  std::fprintf(stderr, "pipeline_node: %s\n", what.c_str());
  std::exit(1);
}
template <class T>
T or_fail(Expected<T> value) {
  if (!value.ok()) fail(value.error().describe());
  return std::move(value).value();
}

compute::ModelShape shape_of(const json& from) {
  compute::ModelShape shape;
  shape.layers = from.at("layers");
  shape.hidden = from.at("hidden");
  shape.head_dim = from.at("head_dim");
  shape.heads = shape.hidden / shape.head_dim;
  shape.kv_heads = from.value("kv_heads", shape.heads);
  shape.ffn = from.at("ffn");
  shape.experts = from.value("experts", 1u);
  shape.experts_per_token = shape.experts > 1 ? 2 : 1;
  shape.vocab = 256;
  shape.sequence = from.at("sequence");
  return shape;
}

pipeline::StageRange range_of(const json& from) {
  return {from.at("first"), from.at("count"), from.value("embed", false), from.value("head", false)};
}

pipeline::WireFormat wire_of(const std::string& name) {
  for (std::uint8_t i = 0; i < pipeline::wire_formats; ++i)
    if (pipeline::to_text(static_cast<pipeline::WireFormat>(i)) == name)
      return static_cast<pipeline::WireFormat>(i);
  fail("no wire format is called " + name);
}

// Micro-batches of a text, in an order that a seed gives.
class Texts {
 public:
  Texts(std::string text, std::uint32_t length) : text_(std::move(text)), length_(length) {
    if (text_.size() < length + 2) fail("the text is too short");
  }
  pipeline::MicroBatchText make(std::uint64_t seed, std::uint64_t index, std::uint32_t sequences) const {
    Rng rng(seed * 1000003 + index);
    pipeline::MicroBatchText batch{sequences, {}, {}};
    for (std::uint32_t s = 0; s < sequences; ++s) {
      const std::size_t at = rng.below(text_.size() - length_ - 1);
      for (std::uint32_t i = 0; i < length_; ++i) {
        batch.tokens.push_back(static_cast<unsigned char>(text_[at + i]));
        batch.targets.push_back(static_cast<unsigned char>(text_[at + i + 1]));
      }
    }
    return batch;
  }

 private:
  const std::string text_;
  const std::uint32_t length_;
};

class PipelineNode {
 public:
  explicit PipelineNode(const json& config)
      : shape_(shape_of(config.at("shape"))),
        began_(clock_.monotonic_now()),
        texts_(config.contains("text") ? std::make_unique<Texts>(read(config["text"]), shape_.sequence)
                                       : nullptr) {
    runtime::PeerHostOptions options;
    options.listen = platform::Endpoint{or_fail(platform::parse_ip(config.value("host", "127.0.0.1"))), 0};
    options.open_port = options.relay = false;
    options.swarm.one_lan = true;
    options.swarm.network_id = crypto::sha256(network_name);
    host_ = or_fail(
        runtime::PeerHost::start(test::key_numbered(config.at("key")), services_, std::move(options)));
    compute_ = make_thread_executor("compute", 4096);
    host_->run([&] {
      lines_ = std::make_unique<pipeline::PeerLines>(
          host_->member().pool(), host_->executor(), clock_, host_->id(),
          [this](const net::NodeId& id) { return contact_of(id); });
      if (config.contains("stage")) open_stage(config);
    });
    say({{"ready", true}, {"id", to_hex(host_->id())}, {"address", platform::to_text(host_->endpoint())}});
  }
  ~PipelineNode() {
    host_->run([this] {
      driver_.reset();
      served_.end();
      lines_->set_own_sessions(nullptr);
      worker_.reset();
      sessions_.reset();
    });
    compute_.reset();
    host_->run([this] { lines_.reset(); });
    host_.reset();
  }

  // False: the end.
  bool obey(const json& words) {
    const std::string what = words.at("do");
    if (what == "stop") return false;
    host_->run([&] {
      if (what == "meet") meet(words.at("peers"));
      if (what == "drive") drive(words);
      if (what == "pause")
        sessions_->pause(pipeline::SessionKind::Training,
                         make_error(ErrorCode::Unavailable, "the owner needs the computer"));
      if (what == "resume") sessions_->resume(pipeline::SessionKind::Training);
      if (what == "report") report();
      if (what == "compute") compute(words);
    });
    return true;
  }

 private:
  static std::string read(const std::string& path) {
    std::ifstream file(path, std::ios::binary);
    return {std::istreambuf_iterator<char>(file), {}};
  }
  double seconds() const { return to_seconds(clock_.monotonic_now() - began_); }
  pipeline::Surroundings around() {
    return {*lines_, host_->executor(), host_->clock(), exchanges_, host_->id(), shape_, {}};
  }
  std::optional<net::Contact> contact_of(const net::NodeId& id) const {
    const auto found = peers_.find(id);
    if (found == peers_.end()) return std::nullopt;
    return net::Contact{id, found->second.endpoint};
  }

  void open_stage(const json& config) {
    compute::ModuleOptions module;
    module.threads = config.value("threads", 1u);
    config.value("precision", std::string("fp32")).copy(module.precision, sizeof module.precision - 1);
    const pipeline::StageRange range = range_ = range_of(config["stage"]);
    compute::StageSpec spec;
    spec.shape = shape_;
    spec.first_layer = range.first_layer;
    spec.layer_count = range.layer_count;
    spec.embed = range.embed;
    spec.head = range.head;
    stage_ =
        or_fail(compute::make_stage(*or_fail(compute::load_module("cpu", module, logger_)).module, spec));
    Hash256 seed{};
    seed[0] = config.value("init_seed", std::uint8_t{0});
    for (std::uint32_t i = 0; i < stage_->slot_count(); ++i) {
      const compute::SlotBuffers slot = stage_->slot(i);
      compute::initialise_slot(shape_, slot.id, seed, {slot.parameters, slot.count});
    }
    stage_->parameters_changed();
    sessions_ =
        std::make_unique<pipeline::SessionTable>(around(), pipeline::TableOptions{range, network_name});
    pipeline::StageOptions options;
    options.schedule.batch_tokens = config.at("batch_tokens");
    options.schedule.most_held = config.value("most_held", 64u);
    options.schedule.most_due = config.value("most_due", 8u);
    options.stepped = [this](const auto& step, const auto&) {
      say({{"stepped", step.step}, {"at", seconds()}});
    };
    options.trouble = [](const Error& error) { say({{"trouble", error.describe()}}); };
    train::Schedule rates;
    rates.peak = config.value("learning_rate", 1e-3);
    rates.warmup_steps = config.value("warmup_steps", std::uint64_t{0});
    rates.decay_steps = config.value("decay_steps", std::uint64_t{0});
    const auto rule = [rates](compute::SlotId, std::uint64_t number) {
      compute::StepOptions step;
      step.learning_rate = rates.decay_steps == 0 ? rates.peak : train::learning_rate(rates, number);
      return step;
    };
    lane_ = std::make_shared<pipeline::StageLane>(*stage_, range, shape_, rule);
    worker_ =
        std::make_unique<pipeline::StageWorker>(around(), *sessions_, *compute_, lane_, std::move(options));
    lines_->set_own_sessions(sessions_.get());
    served_ = host_->member().methods().add_stream(
        net::Method::PipelineSession,
        net::MethodLimits(std::make_shared<net::RequestLimiter>(net::RequestLimits{50, 1e9, 64, 4}, true, 1)),
        [this](const net::Caller& from, std::shared_ptr<net::PeerStream> stream) {
          sessions_->take(from.id, std::move(stream));
        });
  }

  void meet(const json& peers) {
    std::vector<net::NodeId> ids;
    std::vector<net::KnownNode> nodes;
    for (const json& peer : peers) {
      const net::NodeId id = or_fail(hash_from_hex(peer.at("id").get<std::string>()));
      const auto endpoint = or_fail(platform::parse_endpoint(peer.at("address").get<std::string>()));
      peers_[id] = {endpoint, peer.contains("stage") ? std::optional(range_of(peer["stage"])) : std::nullopt};
    }
    for (const auto& [id, peer] : peers_) {
      ids.push_back(id);
      nodes.push_back({id, {peer.endpoint.ip}});
    }
    host_->ranks().know(ids);
    host_->conduct().set_known(nodes);
  }

  std::vector<net::NodeId> holders(const pipeline::StageRange& range) const {
    std::vector<net::NodeId> ids;
    for (const auto& [id, peer] : peers_)
      if (peer.range == range) ids.push_back(id);
    return ids;
  }

  void drive(const json& words) {
    pipeline::Route route;
    crypto::SystemEntropy().fill({route.session.data(), route.session.size()});
    route.sequences = words.at("sequences");
    route.length = shape_.sequence;
    route.window = words.at("window");
    route.wire = wire_of(words.value("wire", "fp32"));
    for (const json& id : words.at("route")) {
      const net::NodeId node = or_fail(hash_from_hex(id.get<std::string>()));
      if (!peers_.contains(node) || !peers_[node].range) fail("a hop of the route is no stage that was met");
      route.hops.push_back({node, *peers_[node].range});
    }
    if (const auto checked = pipeline::check_route(route, shape_); !checked.ok())
      fail(checked.error().describe());
    pipeline::DriverEvents events;
    events.next = [this, left = words.at("micro_batches").get<std::uint64_t>(), index = std::uint64_t{0},
                   seed = words.value("seed", std::uint64_t{1}),
                   sequences = route.sequences]() mutable -> std::optional<pipeline::MicroBatchText> {
      if (index == left) return std::nullopt;
      return texts_->make(seed, index++, sequences);
    };
    events.finished = [this](std::uint64_t index, const pipeline::Sums& sums) {
      say({{"finished", index},
           {"loss", sums.loss / static_cast<double>(sums.target_tokens)},
           {"at", seconds()}});
    };
    events.lead.holders = [this](const auto& range) { return holders(range); };
    events.lead.lost = [this](const pipeline::Lost& lost) {
      say({{"lost", lost.position}, {"what", lost.what}, {"at", seconds()}});
    };
    driver_ =
        std::make_unique<pipeline::Driver>(around(), host_->key(), network_name, route, std::move(events));
    driver_->start();
  }

  // Passes of zeros: the same work as with any values.
  void compute(const json& words) {
    const std::uint32_t sequences = words.at("sequences");
    const pipeline::WireFormat wire = wire_of(words.value("wire", "fp32"));
    const std::size_t tokens = std::size_t{sequences} * shape_.sequence;
    const std::size_t rows = pipeline::encoded_bytes(wire, tokens, shape_.hidden);
    Bytes work(tokens * sizeof(std::int32_t) + (range_.embed ? tokens * sizeof(std::int32_t) : rows));
    (void)compute_->post([=, this, count = words.at("micro_batches").get<std::uint64_t>()] {
      const MonotonicTime began = clock_.monotonic_now();
      for (std::uint64_t i = 0; i < count; ++i) {
        const std::uint64_t id = (std::uint64_t{1} << 62) + i;
        or_fail(lane_->forward(id, sequences, shape_.sequence, wire, work));
        if (!range_.head) or_fail(lane_->backward(id, tokens, wire, Bytes(rows)));
        if (const auto added = lane_->weights(id); !added.ok()) fail(added.error().describe());
      }
      or_fail(lane_->step(count * tokens));
      say({{"computed", to_seconds(clock_.monotonic_now() - began)}});
    });
  }

  void report() {
    const pipeline::StageSchedule::Counted counted =
        worker_ ? worker_->schedule().counted() : decltype(counted){};
    say({{"report",
          {{"steps", worker_ ? worker_->steps() : 0},
           {"counted", counted.micro_batches},
           {"lost", worker_ ? worker_->lost_micro_batches() : 0},
           {"peak_bytes", platform::process_memory().peak_resident.value_or(0)}}}});
  }

  struct Peer {
    platform::Endpoint endpoint;
    std::optional<pipeline::StageRange> range;
  };
  const compute::ModelShape shape_;
  const SystemClock clock_;
  const MonotonicTime began_;
  crypto::SystemEntropy entropy_;
  NullLogger logger_;
  const std::unique_ptr<storage::FileEnv> files_ = storage::make_posix_file_env();
  const runtime::RuntimeServices services_{*files_, entropy_, clock_, logger_, "pipeline"};
  const std::unique_ptr<Texts> texts_;
  pipeline::ExchangeLog exchanges_;
  std::map<net::NodeId, Peer> peers_;
  pipeline::StageRange range_;
  compute::StagePtr stage_;
  std::shared_ptr<pipeline::StageLane> lane_;
  std::unique_ptr<runtime::PeerHost> host_;
  std::unique_ptr<Executor> compute_;
  std::unique_ptr<pipeline::PeerLines> lines_;
  std::unique_ptr<pipeline::SessionTable> sessions_;
  std::unique_ptr<pipeline::StageWorker> worker_;
  net::MethodTable::Registration served_;
  std::unique_ptr<pipeline::Driver> driver_;
};

}  // namespace

int main(int argc, char** argv) {
  if (argc != 2) fail("pipeline_node CONFIG");
  std::string line;
  try {
    json config;
    if (std::string_view(argv[1]) == "-") {
      std::getline(std::cin, line);
      config = json::parse(line);
    } else {
      config = json::parse(std::ifstream(argv[1]));
    }
    PipelineNode node(config);
    while (std::getline(std::cin, line))
      if (!node.obey(json::parse(line))) break;
  } catch (const json::exception& error) {
    fail(error.what());
  }
  return 0;
}
