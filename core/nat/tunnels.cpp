#include "core/nat/tunnels.h"

#include <future>

#include "core/base/check.h"

namespace neuroshard::nat {
namespace {

constexpr Duration look = std::chrono::milliseconds(500);
constexpr Duration busy = std::chrono::milliseconds(10);  // before the executor is tried again
constexpr Duration reserve_limit = std::chrono::seconds(6);

std::unique_ptr<Executor> thread_for(const char* name, Executor::Task work) {
  auto thread = make_thread_executor(name, 1);
  const bool posted = thread->post(std::move(work));
  NS_CHECK(posted);
  return thread;
}

}  // namespace

Expected<std::unique_ptr<Tunnels>> Tunnels::start(const Clock& clock, crypto::Entropy& entropy,
                                                  Executor& executor, TunnelOptions options) {
  NS_ASSIGN_OR_RETURN(platform::Wake wake, platform::Wake::make());
  return std::unique_ptr<Tunnels>(new Tunnels(clock, entropy, executor, std::move(options), std::move(wake)));
}

Tunnels::Tunnels(const Clock& clock, crypto::Entropy& entropy, Executor& executor, TunnelOptions options,
                 platform::Wake wake)
    : clock_(clock),
      executor_(executor),
      options_(std::move(options)),
      io_{clock_, entropy, cancel_.token()},
      wake_(std::move(wake)),
      events_(std::make_shared<Events>()) {}

Tunnels::~Tunnels() {
  cancel_.cancel();
  {
    const std::lock_guard lock(mutex_);
    stop_ = true;
  }
  changed_.notify_all();
  wake_.set();
  dial_threads_.clear();
  hold_thread_.reset();
  pump_thread_.reset();
}

// Nothing is lost when the executor is busy: this thread has time.
void Tunnels::tell(Executor::Task task) {
  while (!executor_.post(task)) {
    std::unique_lock lock(mutex_);
    if (changed_.wait_for(lock, busy, [this] { return stop_; })) return;
  }
}

void Tunnels::set_events(Events events) {
  *events_ = std::move(events);
}

void Tunnels::on_pump(std::function<void(LoopbackPump&)> task) {
  {
    const std::lock_guard lock(mutex_);
    pump_tasks_.push_back(std::move(task));
    if (!pump_thread_) pump_thread_ = thread_for("ns-pump", [this] { pump(); });
  }
  wake_.set();
}

void Tunnels::pump() {
  LoopbackPump pump(options_.pump, clock_);
  constexpr Duration longest = std::chrono::minutes(10);  // limits of connections end the wait by themselves
  while (true) {
    std::deque<std::function<void(LoopbackPump&)>> tasks;
    {
      const std::lock_guard lock(mutex_);
      if (stop_) return;
      tasks.swap(pump_tasks_);
    }
    for (const auto& task : tasks) task(pump);
    (void)pump.step(longest, wake_.descriptor());
    wake_.clear();
  }
}

void Tunnels::dial(const platform::Endpoint& relay, const Hash256& callee, Duration limit, Dialled done) {
  std::unique_lock lock(mutex_);
  if (dials_.size() >= options_.waiting) {
    lock.unlock();
    static_cast<void>(executor_.post([done = std::move(done)] {
      done(make_error(ErrorCode::Exhausted, "too many calls through relays wait for their turn"));
    }));
    return;
  }
  dials_.push_back({relay, callee, clock_.monotonic_now() + limit, std::move(done)});
  if (idle_ < dials_.size() && dial_threads_.size() < options_.dialling)
    dial_threads_.push_back(thread_for("ns-dial", [this] { dial_in_turn(); }));
  lock.unlock();
  changed_.notify_all();
}

void Tunnels::dial_in_turn() {
  std::unique_lock lock(mutex_);
  while (true) {
    ++idle_;
    changed_.wait(lock, [this] { return stop_ || !dials_.empty(); });
    --idle_;
    if (stop_) return;
    Dial next = std::move(dials_.front());
    dials_.pop_front();
    lock.unlock();
    auto socket = call_through_relay(io_, next.relay, next.callee, next.deadline);
    if (!socket.ok()) {
      tell([done = std::move(next.done), error = socket.error()] { done(error); });
    } else {
      on_pump([this, done = std::move(next.done),
               held = std::make_shared<platform::TcpSocket>(std::move(*socket))](LoopbackPump& pump) {
        const auto port = pump.outbound(std::move(*held));
        tell([done, port] { done(port); });
      });
    }
    lock.lock();
  }
}

void Tunnels::hold(std::vector<platform::Endpoint> relays) {
  {
    const std::lock_guard lock(mutex_);
    if (relays_ == relays) return;
    relays_ = std::move(relays);
    if (!hold_thread_) hold_thread_ = thread_for("ns-hold", [this] { keep_place(); });
  }
  changed_.notify_all();
}

Expected<RelayTicket> Tunnels::reserve(const platform::Endpoint& relay) {
  auto promise = std::make_shared<std::promise<Expected<RelayTicket>>>();
  auto future = promise->get_future();
  tell([events = events_, relay, promise] {
    const Ticket answer = [promise](Expected<RelayTicket> ticket) { promise->set_value(std::move(ticket)); };
    if (!events->reserve) return answer(make_error(ErrorCode::Cancelled, "stopped"));
    events->reserve(relay, answer);
  });
  const MonotonicTime until = io_.now() + reserve_limit;
  while (future.wait_for(std::chrono::milliseconds(50)) != std::future_status::ready) {
    if (io_.cancel.cancelled()) return make_error(ErrorCode::Cancelled, "stopped");
    if (io_.now() >= until) return make_error(ErrorCode::Timeout, "the relay did not answer in time");
  }
  return future.get();
}

void Tunnels::keep_place() {
  RelayHold hold(
      {}, [this](const Io&, const platform::Endpoint& relay) { return reserve(relay); }, options_.hold);
  std::optional<platform::Endpoint> told;
  std::string trouble;
  const auto tell_place = [&](const std::optional<platform::Endpoint>& now) {
    if (now == told && (now || hold.trouble() == trouble)) return;
    told = now;
    trouble = hold.trouble();
    tell([events = events_, now, trouble] {
      if (events->held) events->held(now, trouble);
    });
  };
  while (true) {
    {
      std::unique_lock lock(mutex_);
      if (relays_.empty() && told) {
        hold.set_relays({});
        lock.unlock();
        tell_place(std::nullopt);
        lock.lock();
      }
      changed_.wait(lock, [this] { return stop_ || !relays_.empty(); });
      if (stop_) return;
      hold.set_relays(relays_);
    }
    auto call = hold.next(io_, io_.now() + look);
    if (!call.ok() && call.error().code == ErrorCode::Cancelled) return;
    tell_place(hold.relay());
    if (!call.ok() || !call->has_value()) continue;
    on_pump([this, held = std::make_shared<platform::TcpSocket>(std::move((*call)->socket))](
                LoopbackPump& pump) { (void)pump.inbound(std::move(*held), options_.own); });
  }
}

}  // namespace neuroshard::nat
