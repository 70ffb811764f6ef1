#include "app/node/commands/core_client.h"

#include <fmt/format.h>

#include "app/node/commands/open_directory.h"
#include "app/node/output/progress.h"
#include "core/control/control_file.h"
#include "core/control/service.h"
#include "core/network_module/network_module.h"
#include "core/platform/file/paths.h"

namespace neuroshard::app {
namespace {

constexpr Duration poll = std::chrono::milliseconds(50);
constexpr Duration connect_limit = std::chrono::seconds(10);

// Explains why no core can be reached, and what to do.
Error no_core(const std::string& path, const Error& reason, CommandContext& context) {
  if (const auto in_use = directory_in_use(path, context.clock)) return without_control_file(*in_use);
  std::string text = fmt::format("no neuroshardd runs on {}", path);
  if (reason.code == ErrorCode::Unavailable) text += fmt::format(" ({})", reason.message);
  return make_error(ErrorCode::Unavailable,
                    fmt::format("{}; start one: neuroshardd run --data-dir {}", text, path));
}

}  // namespace

Expected<std::unique_ptr<CoreClient>> CoreClient::attach(CommandContext& context) {
  Error reason = make_error(ErrorCode::NotFound, "");
  NS_ASSIGN_OR_RETURN(auto client, look_for(context, &reason));
  if (client) return client;
  NS_ASSIGN_OR_RETURN(const std::string path, data_directory_path(context));
  return no_core(path, reason, context);
}

Expected<std::unique_ptr<CoreClient>> CoreClient::find(CommandContext& context) {
  Error reason = make_error(ErrorCode::NotFound, "");
  return look_for(context, &reason);
}

Expected<std::unique_ptr<CoreClient>> CoreClient::look_for(CommandContext& context, Error* reason) {
  control::ConnectOptions options;
  NS_ASSIGN_OR_RETURN(options.data_directory, data_directory_path(context));
  options.runtime_directory = platform::runtime_directory(platform::process_environment());
  options.program = "neuroshardd";
  options.build = program_version();
  options.control_file = context.control_file;
  const auto file = context.control_file.empty()
                        ? control::find_core(options.runtime_directory, options.data_directory)
                        : control::read_control_file(context.control_file);
  if (!file.ok()) {
    const ErrorCode code = file.error().code;
    if (!context.control_file.empty()) return file.error();
    if (code != ErrorCode::NotFound && code != ErrorCode::Unavailable) return file.error();
    *reason = file.error();
    return std::unique_ptr<CoreClient>();
  }
  NS_ASSIGN_OR_RETURN(const auto network, network_module::load_network_module());
  auto node = network.connect(std::move(options));
  NS_RETURN_IF_ERROR(node->wait_connected(connect_limit, context.stop));
  return std::unique_ptr<CoreClient>(new CoreClient(context, file->process, std::move(node)));
}

Expected<void> CoreClient::command(const Send& send) {
  NS_ASSIGN_OR_RETURN(const node::CommandId id, send(*node_));
  while (!context_.stop.cancelled()) {
    const auto event = events_.next(poll);
    if (!event) continue;
    const auto* done = std::get_if<node::CommandDone>(&*event);
    if (done == nullptr || done->id != id) continue;
    if (done->error) return *done->error;
    return {};
  }
  return make_error(ErrorCode::Cancelled, "stopped waiting; the core continues the command");
}

Expected<node::CommandResult> CoreClient::run(const Send& send, const std::string& label,
                                              const std::function<void()>& show) {
  ProgressLine line(context_.output, context_.clock, label);
  NS_ASSIGN_OR_RETURN(const node::CommandId id, send(*node_));
  bool cancelled = false;
  while (true) {
    if (context_.stop.cancelled() && !std::exchange(cancelled, true)) NS_RETURN_IF_ERROR(node_->cancel(id));
    const auto event = events_.next(poll);
    if (show) show();
    if (!event) continue;
    if (const auto* progress = std::get_if<node::CommandProgress>(&*event); progress && progress->id == id) {
      if (!show) line.update(progress->done, progress->total);
      continue;
    }
    const auto* done = std::get_if<node::CommandDone>(&*event);
    if (done == nullptr || done->id != id) continue;
    if (show) show();
    if (done->error) return *done->error;
    return done->result;
  }
}

bool CoreClient::pause() {
  static_cast<void>(events_.next(poll));
  return !context_.stop.cancelled();
}

Expected<void> CoreClient::wait(StopFlag& flag) {
  while (!flag.wait(poll)) {
    if (context_.stop.cancelled()) return make_error(ErrorCode::Cancelled, "stopped before the answer came");
  }
  return {};
}

}  // namespace neuroshard::app
