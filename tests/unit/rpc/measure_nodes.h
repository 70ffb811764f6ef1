// Two nodes that measurements of peers use, each with an executor of its own, over gRPC on the loopback
// interface.
#pragma once

#include <algorithm>
#include <functional>
#include <future>
#include <memory>
#include <optional>
#include <vector>

#include "core/crypto/keys.h"
#include "core/net/ban_list.h"
#include "core/net/peer_ranks.h"
#include "core/net/refusals.h"
#include "core/rpc/grpc_transport.h"
#include "tests/support/keys.h"

namespace neuroshard::testing {

constexpr auto method = static_cast<net::Method>(60'000);
constexpr std::size_t small = 64;

using neuroshard::test::key_of;

struct Sink final : net::PeerService {
  void on_call(const net::Caller&, net::Method, Bytes request, net::Respond respond) override {
    respond(std::move(request));
  }
  void on_stream(const net::Caller&, net::Method, std::shared_ptr<net::PeerStream> stream) override {
    swallow(std::move(stream));
  }
  void swallow(std::shared_ptr<net::PeerStream> stream) {
    auto* const raw = stream.get();
    raw->read([this, stream = std::move(stream)](Expected<std::optional<ByteChain>> piece) mutable {
      if (!piece.ok()) return;
      if (!*piece) return stream->finish();
      if (copies) (*piece)->copy_to(place.data());
      swallow(std::move(stream));
    });
  }
  bool copies = false;  // each message of a stream to where it belongs, as a tensor's would be
  Bytes place = Bytes(net::chunk_bytes);
};

struct Nodes {
  Nodes() {
    run(*b_executor, [&] {
      rpc::RpcOptions options;
      options.listen = platform::Endpoint{platform::IpAddress::v4(127, 0, 0, 1), 0};
      options.limits.listener.per_address = 0;
      rpc::RpcServices services{key_b, *b_executor, clock, bans, refusals};
      services.ranks = &ranks;
      b = rpc::make_grpc_transport(services, options).value();
      b->serve(&sink);
    });
    run(*a_executor, [&] {
      a = rpc::make_grpc_transport({key_a, *a_executor, clock, bans, refusals}, {}).value();
    });
    channel = connect();
  }
  ~Nodes() {
    run(*a_executor, [&] {
      channel.reset();
      a.reset();
    });
    run(*b_executor, [&] { b.reset(); });
  }
  static void run(Executor& executor, const std::function<void()>& task) {
    std::promise<void> done;
    static_cast<void>(executor.post([&] {
      task();
      done.set_value();
    }));
    done.get_future().wait();
  }
  std::shared_ptr<net::PeerChannel> connect() {
    std::promise<std::shared_ptr<net::PeerChannel>> result;
    run(*a_executor, [&] {
      a->connect({b->endpoint(), crypto::node_id(key_b.public_key())}, net::connect_deadline,
                 [&](auto connected) { result.set_value(connected.value()); });
    });
    return result.get_future().get();
  }
  // One who comes now and goes again.
  bool can_connect() {
    std::promise<bool> result;
    run(*a_executor, [&] {
      a->connect({b->endpoint(), crypto::node_id(key_b.public_key())}, net::connect_deadline,
                 [&](auto connected) { result.set_value(connected.ok()); });
    });
    return result.get_future().get();
  }
  bool echo() {
    std::promise<bool> done;
    static_cast<void>(a_executor->post([&] {
      channel->call(method, Bytes(small), std::chrono::seconds(10),
                    [&](const Expected<Bytes>& answer) { done.set_value(answer.ok()); });
    }));
    return done.get_future().get();
  }
  // Between a call on the executor and its answer there.
  std::vector<double> round_trips(double seconds) {
    const MonotonicTime end = clock.monotonic_now() + Duration(static_cast<std::int64_t>(seconds * 1e9));
    std::vector<double> times;
    std::promise<void> done;
    std::function<void()> next = [&] {
      const MonotonicTime began = clock.monotonic_now();
      if (began >= end) return done.set_value();
      channel->call(method, Bytes(small), std::chrono::seconds(10), [&, began](const Expected<Bytes>&) {
        times.push_back(to_seconds(clock.monotonic_now() - began) * 1e6);
        next();
      });
    };
    run(*a_executor, [&] { next(); });
    done.get_future().wait();
    run(*a_executor, [] {});
    std::sort(times.begin(), times.end());
    return times;
  }
  double bulk(std::size_t pieces) {
    std::promise<void> done;
    const MonotonicTime began = clock.monotonic_now();
    std::shared_ptr<net::PeerStream> stream;
    std::function<void()> next = [&, left = pieces]() mutable {
      if (left-- == 0) {
        stream->finish();
        return stream->read([&](const Expected<std::optional<ByteChain>>&) { done.set_value(); });
      }
      stream->write(Bytes(net::chunk_bytes, 'x'), [&](const Expected<void>& written) {
        if (written.ok()) return next();
        fmt::print("the stream ended: {}\n", written.error().describe());
        done.set_value();
      });
    };
    run(*a_executor, [&] {
      stream = channel->open(method, net::stream_patience);
      next();
    });
    done.get_future().wait();
    run(*a_executor, [&] { stream.reset(); });
    return to_seconds(clock.monotonic_now() - began);
  }

  SystemClock clock;
  net::BanList bans{clock};
  net::RefusalCounts refusals;
  net::PeerRanks ranks;  // b's
  Sink sink;
  crypto::KeyPair key_a = key_of(1), key_b = key_of(2);
  std::unique_ptr<Executor> a_executor = make_thread_executor("a", 1024);
  std::unique_ptr<Executor> b_executor = make_thread_executor("b", 1024);
  std::unique_ptr<rpc::GrpcTransport> a, b;
  std::shared_ptr<net::PeerChannel> channel;
};

template <class Call>
std::vector<double> microseconds(double seconds, const Call& call) {
  const SystemClock clock;
  std::vector<double> times;
  const MonotonicTime end = clock.monotonic_now() + Duration(static_cast<std::int64_t>(seconds * 1e9));
  while (clock.monotonic_now() < end) {
    const MonotonicTime began = clock.monotonic_now();
    call();
    times.push_back(to_seconds(clock.monotonic_now() - began) * 1e6);
  }
  std::sort(times.begin(), times.end());
  return times;
}

inline double at(const std::vector<double>& sorted, double share) {
  return sorted[static_cast<std::size_t>(share * double(sorted.size() - 1))];
}

}  // namespace neuroshard::testing
