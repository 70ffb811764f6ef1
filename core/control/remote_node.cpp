#include "core/control/detail/call_rules.h"
#include "core/control/detail/remote_node_impl.h"

namespace neuroshard::control {
namespace detail {
namespace {

constexpr std::chrono::seconds hello_limit{5};

bool is_final(ErrorCode code) {
  return code == ErrorCode::Denied || code == ErrorCode::Unsupported || code == ErrorCode::Corrupt;
}

}  // namespace

RemoteNodeImpl::RemoteNodeImpl(ConnectOptions options)
    : options_(std::move(options)),
      published_(std::make_shared<const node::Snapshot>()),
      worker_(make_thread_executor("ns-remote", 1)) {
  prepare_grpc();
  const bool posted = worker_->post([this] { run(); });
  NS_CHECK(posted);
}

RemoteNodeImpl::~RemoteNodeImpl() {
  {
    std::lock_guard lock(mutex_);
    stopping_ = true;
    for (const auto& [context, call] : contexts_) context->TryCancel();
  }
  changed_.notify_all();
  worker_.reset();
  std::unique_lock lock(mutex_);
  changed_.wait(lock, [this] { return calls_ == 0; });
}

std::shared_ptr<const node::Snapshot> RemoteNodeImpl::snapshot() const {
  std::lock_guard lock(mutex_);
  return published_;
}

std::unique_ptr<node::Subscription> RemoteNodeImpl::subscribe(node::EventHandler on_event) {
  return subscribers_->add(std::move(on_event));
}

LinkView RemoteNodeImpl::link() const {
  std::lock_guard lock(mutex_);
  return view_;
}

std::unique_ptr<node::Subscription> RemoteNodeImpl::watch_link(std::function<void()> on_change) {
  return link_watchers_->add([on_change = std::move(on_change)](const node::Event&) { on_change(); });
}

Expected<void> RemoteNodeImpl::wait_connected(Duration limit, const CancelToken& stop) {
  constexpr Duration look = std::chrono::milliseconds(50);
  std::unique_lock lock(mutex_);
  for (Duration waited{0};; waited += look) {
    const bool settled = changed_.wait_for(lock, look, [this] {
      return view_.state == LinkState::Connected || view_.state == LinkState::Refused;
    });
    if (settled && view_.state == LinkState::Connected) return {};
    if (settled) return *view_.error;
    if (stop.cancelled()) return make_error(ErrorCode::Cancelled, "stopped while connecting to the core");
    if (waited < limit) continue;
    return view_.error ? *view_.error : make_error(ErrorCode::Timeout, "the core does not answer");
  }
}

bool RemoteNodeImpl::enter(Context* context, std::shared_ptr<void> call) {
  std::vector<std::shared_ptr<void>> spent;  // released outside the lock
  std::lock_guard lock(mutex_);
  if (stopping_) return false;
  spent.swap(spent_);
  contexts_[context] = std::move(call);
  ++calls_;
  return true;
}

void RemoteNodeImpl::leave(Context* context) {
  std::lock_guard lock(mutex_);
  const auto at = contexts_.find(context);
  if (at->second) spent_.push_back(std::move(at->second));
  contexts_.erase(at);
  --calls_;
  changed_.notify_all();  // under the lock: the destructor may be waiting to take everything away
}

Expected<std::shared_ptr<const RemoteLink>> RemoteNodeImpl::current_link() const {
  std::lock_guard lock(mutex_);
  if (link_) return link_;
  return make_error(ErrorCode::Unavailable,
                    view_.error ? view_.error->describe() : "the connection to the core is not there yet");
}

void RemoteNodeImpl::run() {
  Duration retry = options_.first_retry;
  while (true) {
    const Expected<void> ended = follow();
    std::unique_lock lock(mutex_);
    if (stopping_) return;
    if (view_.state == LinkState::Connected) retry = options_.first_retry;
    lock.unlock();
    const Error error =
        ended.ok() ? make_error(ErrorCode::Unavailable, "the core has stopped") : ended.error();
    set_link(is_final(error.code) ? LinkState::Refused : LinkState::Lost, error);
    lock.lock();
    if (changed_.wait_for(lock, retry, [this] { return stopping_; })) return;
    retry = std::min(retry * 2, options_.last_retry);
  }
}

Expected<void> RemoteNodeImpl::follow() {
  auto file = options_.control_file.empty() ? find_core(options_.runtime_directory, options_.data_directory)
                                            : read_control_file(options_.control_file);
  if (!file.ok()) {
    if (file.error().code != ErrorCode::NotFound) return std::move(file).error();
    return make_error(ErrorCode::Unavailable, "no core runs on " + options_.data_directory);
  }
  const auto link = open_link(std::move(*file), options_.speaks);
  NS_RETURN_IF_ERROR(greet(*link));
  return watch(link);
}

Expected<void> RemoteNodeImpl::greet(const RemoteLink& link) {
  Context context;
  link.sign(&context);
  context.set_deadline(after(hello_limit));
  v1::HelloRequest request;
  request.mutable_control()->set_major(options_.speaks.major);
  request.mutable_control()->set_minor(options_.speaks.minor);
  request.set_build(options_.build);
  request.set_program(options_.program);
  v1::HelloReply reply;
  if (!enter(&context)) return make_error(ErrorCode::Cancelled, "the connection is being closed");
  const grpc::Status status = link.stub->Hello(&context, request, &reply);
  leave(&context);
  if (!status.ok()) return connect_error(status, link.file);
  const Version core{reply.control().major(), reply.control().minor()};
  if (core.major != options_.speaks.major) return wrong_version(core, options_.speaks);
  std::lock_guard lock(mutex_);
  view_.control = core;
  view_.build = reply.build();
  view_.format = reply.format();
  view_.pid = reply.pid();
  view_.capabilities.assign(reply.capabilities().begin(), reply.capabilities().end());
  return {};
}

Expected<void> RemoteNodeImpl::watch(const std::shared_ptr<const RemoteLink>& link) {
  Context context;
  link->sign(&context);
  v1::WatchRequest request;
  request.set_events(true);
  if (!enter(&context)) return make_error(ErrorCode::Cancelled, "the connection is being closed");
  whole_.Clear();
  const auto reader = link->stub->Watch(&context, request);
  v1::Update update;
  while (reader->Read(&update)) on_update(&update, link);
  const grpc::Status status = reader->Finish();
  leave(&context);
  if (status.ok()) return {};
  return connect_error(status, link->file);
}

void RemoteNodeImpl::on_update(v1::Update* update, const std::shared_ptr<const RemoteLink>& link) {
  if (update->has_event()) {
    if (const auto event = decode(update->event())) subscribers_->emit(*event);
    return;
  }
  if (!update->has_snapshot()) return;
  if (update->snapshot().full()) whole_.Clear();
  const bool first = !whole_.has_training();
  merge(std::move(*update->mutable_snapshot()), &whole_);
  if (!first) return publish(decode(whole_));
  auto snapshot = std::make_shared<const node::Snapshot>(decode(whole_));
  {
    // Whatever its version: another core's count from the beginning.
    std::lock_guard lock(mutex_);
    published_ = std::move(snapshot);
    link_ = link;
  }
  set_link(LinkState::Connected, std::nullopt);
}

// The newest wins: an answer's snapshot may be ahead of the stream.
void RemoteNodeImpl::publish(node::Snapshot snapshot) {
  auto next = std::make_shared<const node::Snapshot>(std::move(snapshot));
  std::lock_guard lock(mutex_);
  if (next->version >= published_->version) published_ = std::move(next);
}

void RemoteNodeImpl::set_link(LinkState state, std::optional<Error> error) {
  {
    std::lock_guard lock(mutex_);
    view_.state = state;
    view_.error = std::move(error);
    if (state != LinkState::Connected) link_.reset();
  }
  changed_.notify_all();
  link_watchers_->emit(node::StateChanged{});
}

}  // namespace detail

std::unique_ptr<RemoteNode> connect(ConnectOptions options) {
  return std::make_unique<detail::RemoteNodeImpl>(std::move(options));
}

}  // namespace neuroshard::control
