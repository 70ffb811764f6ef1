#include "core/runtime/http_service.h"

#include <utility>

#include "core/runtime/http_key_file.h"

namespace neuroshard::runtime {
namespace {

constexpr std::size_t most_key_requests = 16;  // that wait

}  // namespace

HttpService::HttpService(std::string directory, const config::Settings& settings,
                         const RuntimeServices& services)
    : directory_(std::move(directory)),
      services_(services),
      wanted_(wanted_by(settings)),
      thread_(make_thread_executor("ns-http-keys", most_key_requests)) {
  const std::lock_guard lock(mutex_);
  open();
  show();
}

HttpService::~HttpService() {
  stop();
  thread_.reset();
}

HttpService::Wanted HttpService::wanted_by(const config::Settings& settings) const {
  Wanted wanted;
  wanted.on = settings.word(config::Setting::Http) == "on";
  wanted.port = static_cast<std::uint16_t>(settings.number(config::Setting::HttpPort));
  const std::string& name = settings.word(config::Setting::HttpKeyFile);
  if (!name.empty()) wanted.key_file = name.front() == '/' ? name : directory_ + '/' + name;
  return wanted;
}

void HttpService::start(node::Node& node) {
  const std::lock_guard lock(mutex_);
  node_ = &node;
  if (server_) server_->start(node);
}

void HttpService::apply(const config::Settings& settings) {
  Wanted wanted = wanted_by(settings);
  const std::lock_guard lock(mutex_);
  if (wanted == wanted_ && trouble_.empty()) return;
  wanted_ = std::move(wanted);
  open();
  show();
}

void HttpService::stop() {
  const std::lock_guard lock(mutex_);
  stopped_ = true;
  server_.reset();
}

void HttpService::open() {
  server_.reset();  // first: the port may be the same
  const std::string before = std::exchange(trouble_, {});
  if (!wanted_.on || stopped_) return;
  auto server = listen();
  if (!server.ok()) {
    trouble_ = "The local HTTP server does not listen: " + server.error().describe();
    if (trouble_ != before) services_.logger.warning("http", trouble_);
    next_try_ = services_.clock.monotonic_now() + retry_period;
    return;
  }
  server_ = std::move(*server);
  services_.logger.info("http", "the local HTTP server listens at " + server_->url());
  if (node_ != nullptr) server_->start(*node_);
}

Expected<std::unique_ptr<serve::ApiServer>> HttpService::listen() const {
  if (wanted_.key_file.empty())
    return make_error(ErrorCode::InvalidArgument,
                      "the setting http_key_file is empty; set it to the name of a file");
  serve::ApiOptions options;
  options.port = wanted_.port;
  NS_ASSIGN_OR_RETURN(options.key, read_or_make_http_key(wanted_.key_file, services_));
  return serve::ApiServer::listen(options, services_.clock, services_.logger);
}

void HttpService::poll() {
  const std::lock_guard lock(mutex_);
  if (trouble_.empty() || services_.clock.monotonic_now() < next_try_) return;
  open();
  show();
}

// The core's thread reads the copy, so it never waits for a server that closes.
void HttpService::show() {
  const std::lock_guard lock(view_mutex_);
  view_ = {server_ ? server_->url() : std::string(), trouble_};
}

node::HttpView HttpService::view() const {
  const std::lock_guard lock(view_mutex_);
  return view_;
}

void HttpService::key(node::HttpKeyAction action, node::Reply<node::HttpKey> reply) {
  auto shared = std::make_shared<node::Reply<node::HttpKey>>(std::move(reply));
  const bool posted = thread_->post([this, action, shared] {
    auto key = [&] {
      const std::lock_guard lock(mutex_);
      return change_key(action);
    }();
    (*shared)(std::move(key));
  });
  if (!posted) (*shared)(make_error(ErrorCode::Busy, "too many requests for the key wait already"));
}

Expected<node::HttpKey> HttpService::change_key(node::HttpKeyAction action) {
  node::HttpKey result{{}, wanted_.key_file};
  if (result.file.empty())
    return make_error(ErrorCode::InvalidArgument,
                      "the setting http_key_file is empty; set it to the name of a file");
  if (action == node::HttpKeyAction::Show) {
    if (!services_.files.exists(result.file)) return result;
    NS_ASSIGN_OR_RETURN(result.key, read_or_make_http_key(result.file, services_));
    return result;
  }
  if (action == node::HttpKeyAction::Renew) {
    NS_RETURN_IF_ERROR(has_made_http_key(result.file, services_));
    NS_ASSIGN_OR_RETURN(result.key, make_http_key(result.file, services_));
    if (server_) server_->set_key(result.key);
    if (!trouble_.empty()) open();  // an unusable key may have been the trouble
    show();
    return result;
  }
  if (wanted_.on)
    return make_error(ErrorCode::Denied,
                      "the local HTTP server needs its key: switch it off first, or make a new key");
  NS_ASSIGN_OR_RETURN(const bool present, has_made_http_key(result.file, services_));
  if (present) NS_RETURN_IF_ERROR(services_.files.remove_file(result.file));
  return result;
}

}  // namespace neuroshard::runtime
