// Hosts on a virtual clock and a seeded network that hold files and fetch them from each other; any of them
// can be made Byzantine. Header only; no Qt.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "core/crypto/hash.h"
#include "core/exchange/fetch.h"
#include "core/exchange/server.h"
#include "core/sim/network.h"
#include "tests/support/memory_file_env.h"

namespace neuroshard::test {

inline Bytes made_up_bytes(std::size_t size, std::uint64_t seed) {
  Rng rng(seed);
  Bytes bytes(size);
  for (std::uint8_t& byte : bytes) byte = static_cast<std::uint8_t>(rng.next());
  return bytes;
}

struct ExchangeHost {
  explicit ExchangeHost(sim::World& world) : executor(world) {}
  sim::HostExecutor executor;
  testing::MemoryFileEnv files;
  net::Contact contact;
  sim::Host number = 0;
  std::unique_ptr<exchange::ContentServer> server;
  std::unique_ptr<net::MethodTable> methods;
  net::MethodTable::Registration serving;
  std::vector<Hash256> gone;
};

class ExchangeHosts {
 public:
  explicit ExchangeHosts(std::size_t count, sim::NetworkOptions options = {})
      : network(world, options, 3), bans(world.clock()), conduct(bans, world.clock(), true) {
    for (std::size_t i = 0; i < count; ++i) {
      auto host = std::make_unique<ExchangeHost>(world);
      host->contact.id.fill(static_cast<std::uint8_t>(i + 1));
      host->contact.endpoint = {platform::IpAddress::v4(10, 0, 0, static_cast<std::uint8_t>(i + 1)), 9000};
      host->server = std::make_unique<exchange::ContentServer>(
          exchange::ServerServices{host->executor, host->executor, world.clock(), host->files, logger},
          exchange::ServerLimits{}, [raw = host.get()](const Hash256& hash) { raw->gone.push_back(hash); });
      host->methods = std::make_unique<net::MethodTable>(world.clock(), &conduct);
      host->serving = host->methods->add(
          {net::Method::ContentNamed, net::Method::ContentPieces, net::Method::ContentPiece},
          net::MethodLimits(std::make_shared<net::RequestLimiter>(
              net::RequestLimits{
                  .per_second = 400, .burst = 800, .bytes_per_second = 1e12, .bytes_burst = 1e12},
              true, 1)),
          [server = host->server.get()](const net::Caller& from, net::Method method, ByteSpan request,
                                        const net::Reply& reply) {
            server->on_call(from, method, request, reply);
          });
      host->number = network.add(host->contact.id, host->contact.endpoint, sim::Nat::None, honest(*host));
      hosts.push_back(std::move(host));
    }
  }
  ~ExchangeHosts() {
    for (const auto& host : hosts) host->executor.stop();
  }
  sim::Handler honest(ExchangeHost& host) {
    return [methods = host.methods.get()](const net::Caller& from, net::Method method, ByteSpan request,
                                          const net::Respond& respond) {
      methods->on_call(from, method, Bytes(request.begin(), request.end()), respond);
    };
  }
  ExchangeHost& host(std::size_t i) { return *hosts[i]; }
  // Host i has the file on its disk and offers it.
  exchange::ContentRef give(std::size_t i, const Bytes& bytes) {
    const exchange::ContentRef content{crypto::sha256(bytes), bytes.size()};
    const std::string path = "/file" + std::to_string(i);
    if (!storage::write_file_atomic(host(i).files, path, bytes).ok()) std::abort();
    host(i).server->offer(content, path);
    return content;
  }
  exchange::FetchRequest request(const exchange::ContentRef& content) const {
    exchange::FetchRequest request;
    request.hash = content.hash;
    request.size = content.size;
    request.path = "/fetched";
    return request;
  }
  // Host `by` begins to fetch; whom it knows: all others.
  std::unique_ptr<exchange::ContentFetch> fetch(std::size_t by, exchange::FetchRequest what,
                                                exchange::FetchOptions options = {}) {
    outcome.reset();
    std::vector<net::Contact> others;
    for (std::size_t i = 0; i < hosts.size(); ++i)
      if (i != by) others.push_back(host(i).contact);
    exchange::FetchServices services{network.caller(host(by).number),
                                     host(by).executor,
                                     host(by).executor,
                                     world.clock(),
                                     host(by).files,
                                     logger,
                                     &conduct,
                                     [others](auto found) { found(others); }};
    return std::make_unique<exchange::ContentFetch>(
        std::move(services), std::move(what), options,
        [this](Expected<exchange::FetchReport> done) { outcome = std::move(done); });
  }
  bool ended_within(Duration limit) {
    return world.run_until([this] { return outcome.has_value(); }, world.now() + limit);
  }
  Bytes content_of(std::size_t i, const std::string& path) {
    auto bytes = storage::read_file(host(i).files, path, 1u << 30);
    return bytes.ok() ? std::move(*bytes) : Bytes();
  }

  sim::World world;
  sim::Network network;
  NullLogger logger;
  net::BanList bans;
  net::Conduct conduct;
  std::vector<std::unique_ptr<ExchangeHost>> hosts;
  std::optional<Expected<exchange::FetchReport>> outcome;
};

}  // namespace neuroshard::test
