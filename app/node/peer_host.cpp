#include "app/node/peer_host.h"

#include <future>

#include "core/base/check.h"
#include "core/platform/resolve.h"
#include "core/rpc/rpc_module.h"

namespace neuroshard::app {
namespace {

constexpr std::size_t queue = 8192;

}  // namespace

PeerHost::PeerHost(crypto::KeyPair key, const Clock& clock, Logger& logger)
    : key_(std::move(key)),
      id_(crypto::node_id(key_.public_key())),
      clock_(clock),
      logger_(logger),
      bans_(clock),
      executor_(make_thread_executor("ns-swarm", queue)),
      names_(std::make_unique<NameLookup>(*executor_)) {}

PeerHost::~PeerHost() {
  run([this] {
    if (transport_) transport_->serve(nullptr);
    member_.reset();
    transport_.reset();
  });
}

void PeerHost::run(const std::function<void()>& task) {
  auto done = std::make_shared<std::promise<void>>();
  const bool posted = executor_->post([&task, done] {
    task();
    done->set_value();
  });
  NS_CHECK(posted);
  done->get_future().wait();
}

Expected<std::unique_ptr<PeerHost>> PeerHost::start(crypto::KeyPair key, const Clock& clock,
                                                    crypto::Entropy& entropy, Logger& logger,
                                                    PeerHostOptions options) {
  std::unique_ptr<PeerHost> host(new PeerHost(std::move(key), clock, logger));
  std::array<std::uint8_t, 8> seed{};
  entropy.fill({seed.data(), seed.size()});
  Expected<void> opened;
  host->run([&] { opened = host->open(options, load_le<std::uint64_t>(seed.data())); });
  NS_RETURN_IF_ERROR(std::move(opened));
  return host;
}

Expected<void> PeerHost::open(const PeerHostOptions& options, std::uint64_t seed) {
  NS_ASSIGN_OR_RETURN(const rpc::Module module, rpc::load_module());
  rpc::RpcOptions transport;
  transport.listen = options.listen;
  transport.hello.network_id = options.swarm.network_id;
  transport.hello.program = options.swarm.program;
  if (options.swarm.one_lan) transport.limits.listener.per_address = 0;
  NS_ASSIGN_OR_RETURN(transport_,
                      module.make_transport({key_, *executor_, clock_, bans_, refusals_}, transport));
  endpoint_ = transport_->endpoint();
  if (!options.member) return {};
  swarm::MemberOptions member = options.swarm;
  member.port = endpoint_.port;
  member_ = std::make_unique<swarm::Member>(
      swarm::MemberServices{key_, *transport_, *executor_, clock_, logger_, names_.get()}, std::move(member),
      seed);
  transport_->serve(member_.get());
  member_->start();
  return {};
}

Expected<net::Dial> parse_dial(const std::string& text) {
  net::Dial dial;
  const std::size_t at = text.find('@');
  if (at != std::string::npos) {
    NS_ASSIGN_OR_RETURN(dial.id, hash_from_hex(text.substr(0, at)));
  }
  NS_ASSIGN_OR_RETURN(const auto endpoints,
                      platform::resolve(at == std::string::npos ? text : text.substr(at + 1)));
  dial.endpoint = endpoints.front();
  return dial;
}

Expected<std::vector<net::Dial>> parse_dials(const std::vector<std::string>& texts) {
  std::vector<net::Dial> dials;
  for (const std::string& text : texts) {
    NS_ASSIGN_OR_RETURN(net::Dial dial, parse_dial(text));
    dials.push_back(dial);
  }
  return dials;
}

Expected<swarm::FirstPeer> parse_first_peer(const std::string& text) {
  swarm::FirstPeer peer;
  const std::size_t at = text.find('@');
  if (at != std::string::npos) {
    NS_ASSIGN_OR_RETURN(peer.id, hash_from_hex(text.substr(0, at)));
  }
  const std::string place = at == std::string::npos ? text : text.substr(at + 1);
  if (const auto endpoint = platform::parse_endpoint(place); endpoint.ok()) {
    peer.endpoint = *endpoint;
  } else {
    NS_RETURN_IF_ERROR(platform::check_place(place));
    peer.name = place;
  }
  return peer;
}

}  // namespace neuroshard::app
