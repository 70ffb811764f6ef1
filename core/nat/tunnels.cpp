#include "core/nat/tunnels.h"

#include <future>

#include "core/base/check.h"
#include "core/nat/hole_punch.h"

namespace neuroshard::nat {
namespace {

constexpr Duration check_period = std::chrono::milliseconds(500);
constexpr Duration busy = std::chrono::milliseconds(10);  // until the next try to post to the executor
constexpr Duration owner_limit = std::chrono::seconds(6);

Error crowded() {
  return make_error(ErrorCode::Exhausted, "too many calls through relays wait for their turn");
}

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
      events_(std::make_shared<Events>()),
      dials_{"ns-dial", options_.dialling, {}, 0, {}},
      punches_{"ns-punch", options_.punching, {}, 0, {}} {}

Tunnels::~Tunnels() {
  cancel_.cancel();
  {
    const std::lock_guard lock(mutex_);
    stop_ = true;
  }
  changed_.notify_all();
  wake_.set();
  for (Lane* lane : {&dials_, &punches_}) lane->threads.clear();
  hold_thread_.reset();
  turn_thread_.reset();
  pump_thread_.reset();
}

// Loses no task while the executor is busy: this thread can wait.
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
  constexpr Duration longest = std::chrono::minutes(10);  // deadlines of connections end the wait earlier
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

bool Tunnels::in_turn(Lane& lane, Executor::Task task) {
  {
    const std::lock_guard lock(mutex_);
    if (lane.tasks.size() >= options_.waiting) return false;
    lane.tasks.push_back(std::move(task));
    if (lane.idle < lane.tasks.size() && lane.threads.size() < lane.most)
      lane.threads.push_back(thread_for(lane.name, [this, &lane] { work(lane); }));
  }
  changed_.notify_all();
  return true;
}

void Tunnels::work(Lane& lane) {
  std::unique_lock lock(mutex_);
  while (true) {
    ++lane.idle;
    changed_.wait(lock, [&] { return stop_ || !lane.tasks.empty(); });
    --lane.idle;
    if (stop_) return;
    const Executor::Task next = std::move(lane.tasks.front());
    lane.tasks.pop_front();
    lock.unlock();
    next();
    lock.lock();
  }
}

void Tunnels::join(platform::TcpSocket socket, std::function<void(LoopbackPump&, platform::TcpSocket)> use) {
  on_pump([use = std::move(use), held = std::make_shared<platform::TcpSocket>(std::move(socket))](
              LoopbackPump& pump) { use(pump, std::move(*held)); });
}

void Tunnels::lead_to(Expected<platform::TcpSocket> socket, const Dialled& done) {
  if (!socket.ok()) return tell([done, error = socket.error()] { done(error); });
  join(std::move(*socket), [this, done](LoopbackPump& pump, platform::TcpSocket open) {
    const auto port = pump.outbound(std::move(open));
    tell([done, port] { done(port); });
  });
}

void Tunnels::dial(const platform::Endpoint& relay, const Hash256& callee, Duration limit, Dialled done) {
  const MonotonicTime deadline = clock_.monotonic_now() + limit;
  const auto task = [this, relay, callee, deadline, done] {
    lead_to(call_through_relay(io_, relay, callee, deadline), done);
  };
  if (!in_turn(dials_, task)) static_cast<void>(executor_.post([done] { done(crowded()); }));
}

void Tunnels::probe_nat(std::vector<platform::Endpoint> stun_servers, Duration limit_per_server,
                        NatProbed done) {
  const auto task = [this, servers = std::move(stun_servers), limit_per_server, done] {
    auto finding = find_mapping_tcp(io_, servers, 0, limit_per_server);
    tell([done, finding = std::move(finding)] { done(finding); });
  };
  if (!in_turn(punches_, task)) static_cast<void>(executor_.post([done] { done(crowded()); }));
}

void Tunnels::open_hole(std::vector<platform::Endpoint> stun_servers, Duration limit_per_server,
                        HoleOpened done) {
  const auto task = [this, servers = std::move(stun_servers), limit_per_server, done] {
    Expected<Hole> hole =
        make_error(ErrorCode::Unavailable, "no known node reports the address at which it sees this one");
    for (const platform::Endpoint& server : servers) {
      const auto any = server.ip.is_v4() ? platform::IpAddress::v4(0, 0, 0, 0) : platform::IpAddress{};
      auto outside =
          outside_endpoint_tcp(io_, server, {platform::Endpoint{any, 0}, true}, io_.now() + limit_per_server);
      hole = outside.ok() ? Expected<Hole>(std::make_shared<OutsideTcp>(std::move(*outside)))
                          : Expected<Hole>(outside.error());
      if (hole.ok() || io_.cancel.cancelled()) break;
    }
    tell([done, hole = std::move(hole)] { done(hole); });
  };
  if (!in_turn(punches_, task)) static_cast<void>(executor_.post([done] { done(crowded()); }));
}

Expected<platform::TcpSocket> Tunnels::punch_now(const OutsideTcp& hole, const platform::Endpoint& remote,
                                                 Duration limit) {
  NS_ASSIGN_OR_RETURN(const platform::Endpoint local, hole.connection.local());
  const MonotonicTime now = io_.now();
  return punch_hole(io_, {local.port, remote, now, now + limit});
}

void Tunnels::punch(Hole hole, const platform::Endpoint& remote, Duration limit, Dialled done) {
  const auto task = [this, hole = std::move(hole), remote, limit, done] {
    lead_to(punch_now(*hole, remote, limit), done);
  };
  if (!in_turn(punches_, task)) static_cast<void>(executor_.post([done] { done(crowded()); }));
}

void Tunnels::punch_inbound(Hole hole, const platform::Endpoint& remote, Duration limit, Joined done) {
  const auto task = [this, hole = std::move(hole), remote, limit, done] {
    auto socket = punch_now(*hole, remote, limit);
    if (!socket.ok()) return tell([done, error = socket.error()] { done(error); });
    join(std::move(*socket), [this, done](LoopbackPump& pump, platform::TcpSocket open) {
      const auto joined = pump.inbound(std::move(open), options_.own);
      tell([done, joined] { done(joined.ok() ? Expected<void>() : Expected<void>(joined.error())); });
    });
  };
  if (!in_turn(punches_, task)) static_cast<void>(executor_.post([done] { done(crowded()); }));
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

template <class Answer>
Expected<Answer> Tunnels::ask_owner(
    std::function<void(Events&, std::function<void(Expected<Answer>)>)> question, const char* in_vain) {
  auto promise = std::make_shared<std::promise<Expected<Answer>>>();
  auto future = promise->get_future();
  tell([events = events_, question = std::move(question), promise] {
    question(*events, [promise](Expected<Answer> answer) { promise->set_value(std::move(answer)); });
  });
  const MonotonicTime until = io_.now() + owner_limit;
  while (future.wait_for(std::chrono::milliseconds(50)) != std::future_status::ready) {
    if (io_.cancel.cancelled()) return make_error(ErrorCode::Cancelled, "stopped");
    if (io_.now() >= until) return make_error(ErrorCode::Timeout, in_vain);
  }
  return future.get();
}

Expected<RelayTicket> Tunnels::reserve(const platform::Endpoint& relay) {
  return ask_owner<RelayTicket>(
      [relay](Events& events, const Ticket& answer) {
        if (!events.reserve) return answer(make_error(ErrorCode::Cancelled, "stopped"));
        events.reserve(relay, answer);
      },
      "the relay did not answer in time");
}

Expected<platform::Endpoint> Tunnels::find_turn() {
  return ask_owner<platform::Endpoint>(
      [](Events& events, const Found& answer) {
        if (!events.find_turn) return answer(make_error(ErrorCode::Cancelled, "stopped"));
        events.find_turn(answer);
      },
      "its name was not found in time");
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
    auto call = hold.next(io_, io_.now() + check_period);
    if (!call.ok() && call.error().code == ErrorCode::Cancelled) return;
    tell_place(hold.relay());
    if (!call.ok() || !call->has_value()) continue;
    join(std::move((*call)->socket),
         [this, caller = (*call)->caller.ip](LoopbackPump& pump, platform::TcpSocket socket) {
           const auto from = pump.inbound(std::move(socket), options_.own);
           if (from.ok()) remember_caller(*from, caller);
         });
  }
}

// The pump's next step passes the call's first bytes on, so this node's port hears of it later.
void Tunnels::remember_caller(const platform::Endpoint& at, const platform::IpAddress& caller) {
  const std::lock_guard lock(mutex_);
  relayed_callers_.emplace_front(at, caller);
  if (relayed_callers_.size() > 4 * options_.pump.connections) relayed_callers_.pop_back();
}

std::optional<platform::IpAddress> Tunnels::relayed_caller(const platform::Endpoint& at) const {
  const std::lock_guard lock(mutex_);
  for (const auto& [seen, caller] : relayed_callers_)
    if (seen == at) return caller;
  return std::nullopt;
}

}  // namespace neuroshard::nat
