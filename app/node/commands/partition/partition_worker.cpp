// neuroshardd partition-worker: one block of a cut model. `partition --run` (partition_pipeline.h) starts it
// and connects it with itself and its neighbours. It is for programs and in no --help.
//
// Its connections are the descriptors from first_inherited_descriptor on: the driver's, the incoming links,
// the outgoing links, each in the order of the Setup frame.
#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <atomic>
#include <future>
#include <nlohmann/json.hpp>

#include "app/node/command.h"
#include "app/node/commands/partition/partition_frames.h"
#include "app/node/commands/partition/script_host.h"
#include "core/base/check.h"
#include "core/base/executor.h"
#include "core/compute/module.h"
#include "core/platform/process/child_process.h"
#include "core/platform/process/heap.h"

namespace neuroshard::app {
namespace {

constexpr std::size_t max_links = 4096;
constexpr Duration look_at_stop = std::chrono::seconds(1);

struct Link {
  std::size_t channel = 0;  // 0: the driver's
  std::uint32_t values = 0;
  std::uint64_t limit = 0;  // bytes of a message
};

Expected<void> checked(const compute::Status& status) {
  if (status.ok()) return {};
  return compute::to_error(status);
}

class Worker {
 public:
  explicit Worker(CommandContext& context) : context_(context) {}

  Expected<void> run() {
    NS_ASSIGN_OR_RETURN(platform::StreamSocket socket,
                        platform::StreamSocket::adopt(platform::first_inherited_descriptor));
    channels_.emplace_back(std::move(socket), max_text_frame);
    const auto served = serve();
    if (served.ok()) return {};
    // The driver prints the error, because it knows which worker this is.
    std::string text = served.error().describe();
    if (text.size() > max_text_frame) text.resize(max_text_frame);
    const auto code = static_cast<std::uint64_t>(served.error().code);
    if (!channels_[0].sending()) channels_[0].put(FrameKind::Failed, code, as_bytes(text));
    static_cast<void>(send_all(0));
    return served;
  }

 private:
  Expected<void> serve() {
    NS_RETURN_IF_ERROR(setup());
    while (true) {
      NS_RETURN_IF_ERROR(receive(0));
      const FrameKind kind = channels_[0].frame().kind;
      if (kind == FrameKind::Finish) return {};
      if (kind == FrameKind::Block) {
        NS_RETURN_IF_ERROR(load());
        return work();
      }
      if (kind == FrameKind::Ready) NS_RETURN_IF_ERROR(answer());
      channels_[0].drop_frame();  // Flood
    }
  }

  Expected<void> answer() {
    channels_[0].put(FrameKind::Ready, 0, {});
    return send_all(0);
  }

  Expected<void> setup() {
    NS_RETURN_IF_ERROR(receive(0));
    const auto document = nlohmann::json::parse(channels_[0].frame().payload, nullptr, false);
    const auto read_links = [&](const char* name, std::vector<Link>* links) {
      if (!document.is_object() || !document.contains(name) || !document[name].is_array() ||
          document[name].size() > max_links)
        return false;
      for (const auto& entry : document[name]) {
        Link link;
        if (!entry.is_object() || !entry.value("values", nlohmann::json()).is_number_unsigned() ||
            !entry.value("limit", nlohmann::json()).is_number_unsigned())
          return false;
        link.values = entry["values"].get<std::uint32_t>();
        link.limit = entry["limit"].get<std::uint64_t>();
        if (!entry.value("driver", false)) link.channel = ++neighbours_;
        links->push_back(link);
      }
      return true;
    };
    if (!read_links("in", &in_) || !read_links("out", &out_) ||
        !document.value("limit", nlohmann::json()).is_number_unsigned())
      return make_error(ErrorCode::Corrupt, "the driver sent an invalid setup");
    for (std::size_t i = 1; i <= neighbours_; ++i) {
      NS_ASSIGN_OR_RETURN(
          platform::StreamSocket socket,
          platform::StreamSocket::adopt(platform::first_inherited_descriptor + static_cast<int>(i)));
      channels_.emplace_back(std::move(socket), 0);
    }
    channels_[0].set_limit(document["limit"].get<std::uint64_t>());
    for (const Link& link : in_) {
      if (link.channel != 0) channels_[link.channel].set_limit(link.limit);
    }
    channels_[0].drop_frame();
    return answer();
  }

  Expected<void> load() {
    compute::ModuleOptions options;
    options.threads = 1;
    NS_ASSIGN_OR_RETURN(const compute::LoadedModule loaded,
                        compute::load_module("cpu", options, context_.logger));
    const Bytes file = channels_[0].take_payload();
    const BytesScriptHost host(file, context_.clock);
    NS_ASSIGN_OR_RETURN(block_, compute::open_script_block(*loaded.module, host));
    std::uint64_t limit = max_text_frame;
    for (const Link& link : in_) {
      if (link.channel == 0) limit = std::max(limit, link.limit);
    }
    channels_[0].set_limit(limit);
    return answer();
  }

  // Computes micro-batches until the driver announces the end. The next one arrives during the computation:
  // the time of a block varies, so without this the blocks would wait for each other at every micro-batch.
  Expected<void> work() {
    const auto gatherer = make_thread_executor("gather", 1);
    const Ending ending(ended_);  // before the thread is joined
    const auto gather_later = [&](std::uint64_t batch) {
      const auto gathered = std::make_shared<std::promise<Expected<bool>>>();
      NS_CHECK(gatherer->post([this, batch, gathered] { gathered->set_value(gather(batch)); }));
      return gathered->get_future();
    };
    std::vector<Bytes> inputs(in_.size());
    auto next = gather_later(0);
    for (std::uint64_t batch = 0;; ++batch) {
      NS_ASSIGN_OR_RETURN(const bool more, next.get());
      if (!more) return {};
      for (std::size_t i = 0; i < in_.size(); ++i) channels_[in_[i].channel].swap_payload(inputs[i]);
      next = gather_later(batch + 1);
      std::uint32_t first = 0;
      for (std::size_t i = 0; i < in_.size(); ++i) {
        NS_RETURN_IF_ERROR(checked(block_->take(first, in_[i].values, inputs[i])));
        first += in_[i].values;
      }
      NS_RETURN_IF_ERROR(checked(block_->run()));
      first = 0;
      for (const Link& link : out_) {
        Span<const std::uint8_t> message;
        NS_RETURN_IF_ERROR(checked(block_->give(first, link.values, &message)));
        first += link.values;
        channels_[link.channel].put(FrameKind::Data, batch, message);
        NS_RETURN_IF_ERROR(send_all(link.channel));
      }
    }
  }

  // Gathers one frame of every incoming link, in any order. No worker can wait for ever: all links lead
  // forward, so the inputs of the last worker in progress are on the way, and its receivers are gathering.
  Expected<bool> gather(std::uint64_t batch) {
    while (true) {
      std::vector<platform::SocketEvent> events;
      std::vector<std::size_t> channels;
      const auto watch = [&](std::size_t channel) {
        if (channels_[channel].has_frame()) return;
        channels.push_back(channel);
        events.push_back({&channels_[channel].socket(), true, false});
      };
      bool complete = true, driver = false;
      for (const Link& link : in_) {
        complete = complete && channels_[link.channel].has_frame();
        driver = driver || link.channel == 0;
        watch(link.channel);
      }
      if (complete && !in_.empty()) break;
      if (!driver) watch(0);  // for the end, and to notice that the driver has ended
      NS_RETURN_IF_ERROR(wait(events));
      for (std::size_t i = 0; i < events.size(); ++i) {
        if (!events[i].read) continue;
        NS_ASSIGN_OR_RETURN(const bool whole, channels_[channels[i]].read());
        if (whole && channels[i] == 0 && channels_[0].frame().kind == FrameKind::Finish) return false;
      }
    }
    for (const Link& link : in_) {
      const Frame& frame = channels_[link.channel].frame();
      if (frame.kind != FrameKind::Data || frame.batch != batch)
        return make_error(ErrorCode::Corrupt, "a micro-batch arrived out of order");
    }
    return true;
  }

  Expected<void> receive(std::size_t channel) {
    while (true) {
      NS_ASSIGN_OR_RETURN(const bool whole, channels_[channel].read());
      if (whole) return {};
      std::vector<platform::SocketEvent> events{{&channels_[channel].socket(), true, false}};
      NS_RETURN_IF_ERROR(wait(events));
    }
  }

  Expected<void> send_all(std::size_t channel) {
    while (true) {
      NS_RETURN_IF_ERROR(channels_[channel].write());
      if (!channels_[channel].sending()) return {};
      std::vector<platform::SocketEvent> events{{&channels_[channel].socket(), false, true}};
      // When the driver has ended, all connections are released.
      if (channel != 0) events.push_back({&channels_[0].socket(), false, false});
      NS_RETURN_IF_ERROR(wait(events));
    }
  }

  Expected<void> wait(std::vector<platform::SocketEvent>& events) {
    const std::vector<platform::SocketEvent> wanted = events;
    while (true) {
      NS_ASSIGN_OR_RETURN(const bool ready, platform::wait_for_sockets(events, look_at_stop));
      if (context_.stop.cancelled() || ended_) return make_error(ErrorCode::Cancelled, "stopped");
      if (ready) return {};
      events = wanted;
    }
  }

  // Ends the gathering thread, however the work ends.
  struct Ending {
    explicit Ending(std::atomic<bool>& flag) : ended(flag) {}
    ~Ending() { ended = true; }
    std::atomic<bool>& ended;
  };

  CommandContext& context_;
  std::atomic<bool> ended_{false};
  std::vector<FrameChannel> channels_;
  std::size_t neighbours_ = 0;
  std::vector<Link> in_, out_;
  compute::ScriptBlockPtr block_;
};

}  // namespace

void add_partition_worker_command(CLI::App& root, CommandContext& context) {
  CLI::App& worker =
      add_command(root, "partition-worker", "One block of a cut model; started by partition --run");
  worker.group("");  // in no --help
  set_body(worker, context, [&context]() -> Expected<void> {
    platform::keep_freed_memory();
    auto result = Worker(context).run();
    if (result.ok()) return {};
    // The driver reports this error to the user, so it is not printed here as well.
    context.exit_code = exit_code_of(result.error().code);
    return {};
  });
}

}  // namespace neuroshard::app
