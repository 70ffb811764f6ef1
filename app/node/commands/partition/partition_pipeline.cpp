#include "app/node/commands/partition/partition_pipeline.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <nlohmann/json.hpp>
#include <optional>
#include <utility>

#include "app/node/commands/partition/partition_frames.h"
#include "core/platform/process/child_process.h"

namespace neuroshard::app {
namespace {

using compute::script_driver;
using platform::ChildProcess;
using platform::StreamSocket;

constexpr char worker_command[] = "partition-worker";
// Micro-batches in flight beyond one per block, so that the first block never waits for the driver.
constexpr std::uint32_t spare_in_flight = 2;
// A process that moves nothing for this long, or for this many times the whole model's time, is stuck.
constexpr double stall_seconds = 60, stall_factor = 50;
constexpr double slowest_load = 20e6;  // bytes of a block's file per second
constexpr Duration explanation_time = std::chrono::seconds(5),
                   explanation_step = std::chrono::milliseconds(10);
constexpr Duration look_at_stop = std::chrono::milliseconds(200);
// A message may be larger than with the sample values, because sizes may depend on values.
constexpr double message_slack = 4;
constexpr std::uint64_t message_extra = 1u << 20;

constexpr std::size_t flood_bytes = 1u << 20;
constexpr int flood_warm_up = 16, flood_frames = 96;

std::uint64_t message_limit(const compute::ScriptLink& link) {
  return static_cast<std::uint64_t>(message_slack * link.bytes) + message_extra +
         std::uint64_t{256} * link.values;
}

// A worker and this process's end of its connection.
struct Worker {
  ChildProcess process;
  FrameChannel channel;
};

Expected<std::unique_ptr<Worker>> start_worker(std::vector<int> neighbours) {
  NS_ASSIGN_OR_RETURN(auto ends, StreamSocket::pair());
  neighbours.insert(neighbours.begin(), ends.second.descriptor());
  NS_ASSIGN_OR_RETURN(ChildProcess process,
                      ChildProcess::start_self({worker_command, "--quiet"}, neighbours));
  return std::unique_ptr<Worker>(new Worker{std::move(process), {std::move(ends.first), max_text_frame}});
}

class Pipeline {
 public:
  Pipeline(compute::ScriptModel& model, CommandContext& context) : model_(model), context_(context) {
    for (std::uint32_t i = 0; i < model.link_count(); ++i) links_.push_back(model.link(i));
  }

  Expected<void> start(std::uint32_t blocks, double stall, PipelineReport* report);
  Expected<void> run(std::uint64_t batches, std::uint32_t distinct, PipelineReport* report);
  void finish();

 private:
  Expected<void> spawn(std::uint32_t blocks);
  Expected<void> send(std::uint32_t worker, FrameKind kind, ByteSpan payload);
  Expected<void> await_ready(std::uint32_t worker);
  Expected<void> read_all();
  Expected<void> wait();
  Expected<void> feed(std::uint64_t batches, std::uint32_t distinct);
  Expected<void> collect(std::uint32_t distinct, PipelineReport* report);
  static std::optional<std::string> cause(Worker& worker);
  Error explain(std::uint32_t worker, const Error& error);
  std::string setup_of(std::uint32_t block) const;

  compute::ScriptModel& model_;
  CommandContext& context_;
  std::vector<compute::ScriptLink> links_;
  std::vector<std::unique_ptr<Worker>> workers_;
  double stall_ = stall_seconds;
  MonotonicTime moved_{};

  // Per link: micro-batches sent on it (from the driver) or received from it (to the driver).
  std::vector<std::uint64_t> fed_, collected_;
  std::map<std::pair<std::size_t, std::uint32_t>, Bytes> compared_;  // by link and distinct micro-batch
  std::vector<MonotonicTime> left_;  // when all results of micro-batch i had arrived
};

// Starts all workers. This process makes the streams between them first and closes its ends afterwards.
Expected<void> Pipeline::spawn(std::uint32_t blocks) {
  std::vector<std::pair<StreamSocket, StreamSocket>> streams(links_.size());
  for (std::size_t i = 0; i < links_.size(); ++i) {
    if (links_[i].from == script_driver || links_[i].to == script_driver) continue;
    NS_ASSIGN_OR_RETURN(streams[i], StreamSocket::pair());
  }
  for (std::uint32_t b = 0; b < blocks; ++b) {
    std::vector<int> in, out;
    for (std::size_t i = 0; i < links_.size(); ++i) {
      if (links_[i].to == b && links_[i].from != script_driver) in.push_back(streams[i].second.descriptor());
      if (links_[i].from == b && links_[i].to != script_driver) out.push_back(streams[i].first.descriptor());
    }
    in.insert(in.end(), out.begin(), out.end());
    NS_ASSIGN_OR_RETURN(auto worker, start_worker(std::move(in)));
    workers_.push_back(std::move(worker));
  }
  return {};
}

std::string Pipeline::setup_of(std::uint32_t block) const {
  const auto list = [&](bool incoming) {
    nlohmann::json entries = nlohmann::json::array();
    for (const compute::ScriptLink& link : links_) {
      if ((incoming ? link.to : link.from) != block) continue;
      const std::uint32_t other = incoming ? link.from : link.to;
      entries.push_back(
          {{"driver", other == script_driver}, {"values", link.values}, {"limit", message_limit(link)}});
    }
    return entries;
  };
  return nlohmann::json{{"in", list(true)}, {"out", list(false)}, {"limit", compute::max_script_file_bytes}}
      .dump();
}

Expected<void> Pipeline::start(std::uint32_t blocks, double stall, PipelineReport* report) {
  NS_RETURN_IF_ERROR(spawn(blocks));
  for (std::uint32_t b = 0; b < blocks; ++b) {
    const std::string setup = setup_of(b);
    NS_RETURN_IF_ERROR(send(b, FrameKind::Setup, as_bytes(setup)));
    report->workers.push_back(workers_[b]->process.pid());
  }
  for (std::uint32_t b = 0; b < blocks; ++b) NS_RETURN_IF_ERROR(await_ready(b));
  // They load at the same time.
  double bytes = 0;
  for (std::uint32_t b = 0; b < blocks; ++b) {
    Span<const std::uint8_t> file;
    const compute::Status status = model_.block_file(b, &file);
    if (!status.ok()) return compute::to_error(status);
    report->block_bytes.push_back(file.size());
    bytes += static_cast<double>(file.size());
    NS_RETURN_IF_ERROR(send(b, FrameKind::Block, file));
  }
  stall_ = stall_seconds + bytes / slowest_load;
  for (std::uint32_t b = 0; b < blocks; ++b) {
    NS_RETURN_IF_ERROR(await_ready(b));
    std::uint64_t limit = max_text_frame;
    for (const compute::ScriptLink& link : links_) {
      if (link.from == b && link.to == script_driver) limit = std::max(limit, message_limit(link));
    }
    workers_[b]->channel.set_limit(limit);
  }
  stall_ = stall;
  return {};
}

Expected<void> Pipeline::send(std::uint32_t worker, FrameKind kind, ByteSpan payload) {
  FrameChannel& channel = workers_[worker]->channel;
  moved_ = context_.clock.monotonic_now();
  channel.put(kind, 0, payload);
  while (true) {
    if (const auto written = channel.write(); !written.ok()) return explain(worker, written.error());
    if (!channel.sending()) return {};
    NS_RETURN_IF_ERROR(read_all());
    NS_RETURN_IF_ERROR(wait());
  }
}

Expected<void> Pipeline::await_ready(std::uint32_t worker) {
  FrameChannel& channel = workers_[worker]->channel;
  while (true) {
    NS_RETURN_IF_ERROR(read_all());
    if (channel.has_frame()) break;
    NS_RETURN_IF_ERROR(wait());
  }
  if (channel.frame().kind != FrameKind::Ready)
    return explain(worker, make_error(ErrorCode::Corrupt, "it sent an unexpected answer"));
  channel.drop_frame();
  return {};
}

Expected<void> Pipeline::read_all() {
  for (std::uint32_t b = 0; b < workers_.size(); ++b) {
    if (const auto read = workers_[b]->channel.read(); !read.ok()) return explain(b, read.error());
  }
  return {};
}

// Waits until a worker can be read from or written to.
Expected<void> Pipeline::wait() {
  std::vector<platform::SocketEvent> events;
  for (const auto& worker : workers_) {
    const FrameChannel& channel = worker->channel;
    events.push_back({&channel.socket(), !channel.has_frame(), channel.sending()});
  }
  NS_ASSIGN_OR_RETURN(const bool ready, platform::wait_for_sockets(events, look_at_stop));
  if (context_.stop.cancelled()) return make_error(ErrorCode::Cancelled, "stopped");
  const MonotonicTime now = context_.clock.monotonic_now();
  if (ready) moved_ = now;
  if (to_seconds(now - moved_) <= stall_) return {};
  return make_error(ErrorCode::Timeout,
                    fmt::format("the pipeline made no progress for {:.0f} s and was stopped", stall_));
}

// Returns the worker's own report of its end; empty if it only lost a neighbour or has not reported yet.
std::optional<std::string> Pipeline::cause(Worker& worker) {
  FrameChannel& channel = worker.channel;
  static_cast<void>(channel.read());
  const bool spoke = channel.has_frame() && channel.frame().kind == FrameKind::Failed;
  if (spoke && channel.frame().batch != static_cast<std::uint64_t>(ErrorCode::Unavailable))
    return std::string(as_text(channel.frame().payload));
  const auto end = worker.process.poll_end();
  if (end && (end->signal != 0 || (!spoke && end->exit_code != 0))) return end->describe();
  return {};
}

// Explains why a worker's connection ended. A worker that dies ends its neighbours too, so this asks all of
// them. The system closes the connections of a killed process a moment before it reports its end.
Error Pipeline::explain(std::uint32_t worker, const Error& error) {
  const MonotonicTime until = context_.clock.monotonic_now() + explanation_time;
  while (true) {
    for (std::uint32_t b = 0; b < workers_.size(); ++b) {
      if (const auto why = cause(*workers_[b])) {
        return make_error(ErrorCode::Unavailable,
                          fmt::format("worker {} of {} (process {}): {}; the run was stopped", b + 1,
                                      workers_.size(), workers_[b]->process.pid(), *why));
      }
    }
    if (context_.clock.monotonic_now() >= until) break;
    std::vector<platform::SocketEvent> none;
    static_cast<void>(platform::wait_for_sockets(none, explanation_step));
  }
  return make_error(ErrorCode::Unavailable,
                    fmt::format("worker {} of {} (process {}): {}; the run was stopped", worker + 1,
                                workers_.size(), workers_[worker]->process.pid(), error.message));
}

// Sends the next micro-batch on every link from the driver whose worker can take one.
Expected<void> Pipeline::feed(std::uint64_t batches, std::uint32_t distinct) {
  const std::uint64_t window = left_.size() + workers_.size() + spare_in_flight;
  for (std::uint32_t i = 0; i < links_.size(); ++i) {
    if (links_[i].from != script_driver || links_[i].to == script_driver) continue;
    Worker& worker = *workers_[links_[i].to];
    while (!worker.channel.sending() && fed_[i] < std::min(batches, window)) {
      Span<const std::uint8_t> message;
      const auto batch = static_cast<std::uint32_t>(fed_[i] % distinct);
      const compute::Status status = model_.driver_message(batch, i, &message);
      if (!status.ok()) return compute::to_error(status);
      worker.channel.put(FrameKind::Data, fed_[i]++, message);
      if (const auto written = worker.channel.write(); !written.ok())
        return explain(links_[i].to, written.error());
    }
    if (const auto written = worker.channel.write(); !written.ok())
      return explain(links_[i].to, written.error());
  }
  return {};
}

// Receives results and compares them.
Expected<void> Pipeline::collect(std::uint32_t distinct, PipelineReport* report) {
  for (std::uint32_t b = 0; b < workers_.size(); ++b) {
    FrameChannel& channel = workers_[b]->channel;
    const auto read = channel.read();
    if (!read.ok()) return explain(b, read.error());
    if (!*read) continue;
    const auto link = std::find_if(links_.begin(), links_.end(), [&](const compute::ScriptLink& l) {
      return l.from == b && l.to == script_driver;
    });
    const auto i = static_cast<std::size_t>(link - links_.begin());
    const Frame& frame = channel.frame();
    if (frame.kind != FrameKind::Data || link == links_.end() || frame.batch != collected_[i])
      return explain(b, make_error(ErrorCode::Corrupt, "it sent a message out of order"));
    const auto batch = static_cast<std::uint32_t>(collected_[i]++ % distinct);
    // A comparison value by value uses a processor that a block may need. Bytes that are equal to earlier
    // results of the same micro-batch have been compared already.
    Bytes& before = compared_[{i, batch}];
    const ByteSpan payload = frame.payload;
    if (!std::equal(payload.begin(), payload.end(), before.begin(), before.end())) {
      const compute::Status status =
          model_.compare(batch, static_cast<std::uint32_t>(i), payload, &report->deviation);
      if (!status.ok()) return compute::to_error(status);
      before.assign(payload.begin(), payload.end());
    }
    channel.drop_frame();
  }
  std::uint64_t complete = UINT64_MAX;
  for (std::size_t i = 0; i < links_.size(); ++i) {
    if (links_[i].to == script_driver) complete = std::min(complete, collected_[i]);
  }
  while (left_.size() < complete) left_.push_back(context_.clock.monotonic_now());
  return {};
}

Expected<void> Pipeline::run(std::uint64_t batches, std::uint32_t distinct, PipelineReport* report) {
  fed_.assign(links_.size(), 0);
  collected_.assign(links_.size(), 0);
  const bool results = std::any_of(links_.begin(), links_.end(), [](const compute::ScriptLink& link) {
    return link.to == script_driver && link.from != script_driver;
  });
  if (!results)
    return make_error(ErrorCode::Unsupported, "the model has no outputs, so there is nothing to run");
  const MonotonicTime start = moved_ = context_.clock.monotonic_now();
  while (true) {
    NS_RETURN_IF_ERROR(feed(batches, distinct));
    NS_RETURN_IF_ERROR(collect(distinct, report));
    if (left_.size() >= batches) break;
    NS_RETURN_IF_ERROR(wait());
  }
  report->seconds = to_seconds(left_.back() - start);
  report->compared = batches;
  // Until the pipeline is full, micro-batches already come at the pace of the slowest block, but the first
  // one
  // meets an empty pipeline.
  const std::size_t first = std::min<std::size_t>(workers_.size(), batches - 1);
  const double steady = to_seconds(left_.back() - left_[first]);
  const double count = static_cast<double>(batches - 1 - first);
  report->per_second = steady > 0 && count > 0
                           ? count / steady
                           : static_cast<double>(batches) / std::max(report->seconds, 1e-9);
  return {};
}

void Pipeline::finish() {
  // A block without results may still be taking a micro-batch: it gets the end after that.
  std::vector<bool> told(workers_.size());
  const auto tell = [&] {
    for (std::size_t b = 0; b < workers_.size(); ++b) {
      FrameChannel& channel = workers_[b]->channel;
      static_cast<void>(channel.write());  // closing the connection has the same effect
      if (told[b] || channel.sending()) continue;
      channel.put(FrameKind::Finish, 0, {});
      static_cast<void>(channel.write());
      told[b] = true;
    }
  };
  tell();
  // All results have arrived and are right. A process that does not end is killed with its worker object.
  const MonotonicTime until = context_.clock.monotonic_now() + explanation_time;
  for (const auto& worker : workers_) {
    while (!worker->process.poll_end() && context_.clock.monotonic_now() < until) {
      std::vector<platform::SocketEvent> none;
      static_cast<void>(platform::wait_for_sockets(none, explanation_step));
      tell();
    }
  }
}

}  // namespace

Expected<double> measure_stream_bandwidth(CommandContext& context) {
  NS_ASSIGN_OR_RETURN(const auto worker, start_worker({}));
  FrameChannel& channel = worker->channel;
  const Bytes source(flood_bytes, 1);
  Bytes packed;
  const MonotonicTime begin = context.clock.monotonic_now();
  const auto send = [&](FrameKind kind, ByteSpan payload, bool answer) -> Expected<void> {
    channel.put(kind, 0, payload);
    while (channel.sending() || (answer && !channel.has_frame())) {
      NS_RETURN_IF_ERROR(channel.write());
      if (!channel.sending()) {
        if (!answer) break;
        NS_ASSIGN_OR_RETURN(const bool whole, channel.read());
        if (whole) break;
      }
      std::vector<platform::SocketEvent> events{{&channel.socket(), answer, channel.sending()}};
      NS_ASSIGN_OR_RETURN(const bool ready, platform::wait_for_sockets(events, look_at_stop));
      if (context.stop.cancelled()) return make_error(ErrorCode::Cancelled, "stopped");
      if (!ready && to_seconds(context.clock.monotonic_now() - begin) > stall_seconds)
        return make_error(ErrorCode::Timeout, "the connection between two processes could not be measured");
    }
    if (answer) channel.drop_frame();
    return {};
  };
  const std::string setup = nlohmann::json{
      {"in", nlohmann::json::array()},
      {"out", nlohmann::json::array()},
      {"limit", flood_bytes}}.dump();
  NS_RETURN_IF_ERROR(send(FrameKind::Setup, as_bytes(setup), true));
  MonotonicTime start{};
  for (int i = 0; i < flood_warm_up + flood_frames; ++i) {
    if (i == flood_warm_up) {
      NS_RETURN_IF_ERROR(send(FrameKind::Ready, {}, true));
      start = context.clock.monotonic_now();
    }
    packed.assign(source.begin(), source.end());  // as a tensor is packed
    NS_RETURN_IF_ERROR(send(FrameKind::Flood, packed, false));
  }
  NS_RETURN_IF_ERROR(send(FrameKind::Ready, {}, true));
  const double seconds = to_seconds(context.clock.monotonic_now() - start);
  NS_RETURN_IF_ERROR(send(FrameKind::Finish, {}, false));
  return double{flood_bytes} * flood_frames / std::max(seconds, 1e-9);
}

Expected<PipelineReport> run_pipeline(compute::ScriptModel& model, std::uint32_t blocks,
                                      std::uint32_t distinct, const PipelineOptions& options,
                                      CommandContext& context) {
  PipelineReport report;
  Pipeline pipeline(model, context);
  NS_RETURN_IF_ERROR(
      pipeline.start(blocks, std::max(stall_seconds, stall_factor * options.batch_seconds), &report));
  context.output.note(fmt::format("started {} processes for the pipeline", blocks));
  NS_RETURN_IF_ERROR(pipeline.run(options.batches, distinct, &report));
  pipeline.finish();
  return report;
}

}  // namespace neuroshard::app
