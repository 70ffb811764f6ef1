// Peer channels on the simulated network: the protocols that run over gRPC run here unchanged, on virtual
// time, with loss, delay, churn and partitions. A lost message is a connection that stands still: a call ends
// at its deadline, a stream when nothing has moved for its patience.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <set>
#include <vector>

#include "core/net/ban_list.h"
#include "core/net/line_speed.h"
#include "core/net/peer_channel.h"
#include "core/net/refusals.h"
#include "core/sim/network.h"

namespace neuroshard::sim {

class SimTransport;

// The transports by node id, from which each learns the hello that its peer sends.
using Population = std::map<net::NodeId, SimTransport*>;

struct TransportServices {  // all outlive the transport
  World& world;
  Network& network;
  Population& population;
  net::BanList& bans;
  net::RefusalCounts& refusals;
  net::LineSpeed* line = nullptr;  // told how large answers leave; null: nobody measures
};

class SimTransport final : public net::PeerTransport {
 public:
  // Adds itself to the network as `id` at `endpoint`. `executor`: the host's.
  SimTransport(TransportServices services, Executor& executor, const net::NodeId& id,
               const platform::Endpoint& endpoint, Nat nat, net::Hello hello);
  ~SimTransport() override;

  void connect(const net::Dial& to, Duration deadline, Connected done) override;
  void set_hello(net::Hello hello) override { hello_ = std::move(hello); }
  const net::Hello& hello() const override { return hello_; }
  void serve(net::PeerService* service) { service_ = service; }
  Host host() const { return host_; }
  std::size_t max_calls = 32;  // of one peer at the same time

 private:
  friend class SimChannel;
  friend class SimStream;

  void handle(const net::Caller& from, net::Method method, ByteSpan request, const net::Respond& respond);
  void answer(const net::Respond& respond, Expected<Bytes> result);
  void greet(const net::Caller& from, const net::Respond& respond);
  void take_chunk(const net::Caller& from, ByteSpan request, const net::Respond& respond);
  void serve_call(const net::Caller& from, net::Method method, ByteSpan request, const net::Respond& respond);
  void post(Executor::Task task);

  TransportServices services_;
  Executor& executor_;
  const net::NodeId id_;
  net::Hello hello_;
  Host host_;
  net::PeerService* service_ = nullptr;
  std::set<net::NodeId> greeted_;
  std::map<net::NodeId, std::size_t> calls_;
  struct StreamKey {
    net::NodeId peer;
    std::uint64_t number;
    bool ours;  // we opened it
    auto operator<=>(const StreamKey&) const = default;
  };
  std::map<StreamKey, std::weak_ptr<class SimStream>> streams_;
  std::uint64_t next_stream_ = 1;
  using Calls = std::map<std::uint64_t, std::shared_ptr<net::CallDone>>;
  std::vector<std::weak_ptr<Calls>> channels_;  // what each waits for
  std::shared_ptr<bool> alive_ = std::make_shared<bool>(true);
};

}  // namespace neuroshard::sim
