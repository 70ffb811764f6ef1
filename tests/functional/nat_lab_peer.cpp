// One machine of the NAT laboratory (test_nat_lab.cpp), run inside a network namespace:
//   nat_lab_peer services RELAY_ENDPOINT HELP_ENDPOINT    a relay, and what a tracker does for nodes:
//   dial-back, tickets nat_lab_peer node NAME PORT RELAY HELP STUN1 STUN2    a node that does what standard
//   input says, a line at a time
// A node greets whoever connects with its name. It answers each command by one line "= …"; events are "! …".
#include <atomic>
#include <cstdio>
#include <functional>
#include <iostream>
#include <map>
#include <mutex>
#include <sstream>
#include <thread>

#include "core/crypto/hash.h"
#include "core/nat/hole_punch.h"
#include "core/nat/mapping_keeper.h"
#include "core/nat/nat_pmp_mapper.h"
#include "core/nat/reachability_test.h"
#include "core/nat/relay_hold.h"
#include "core/nat/relay_server.h"
#include "core/nat/turn_client.h"
#include "core/nat/upnp_mapper.h"
#include "core/platform/socket/default_gateway.h"

using namespace neuroshard;
using namespace neuroshard::nat;
using platform::Endpoint;
using platform::IpAddress;
using platform::TcpSocket;

namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;

SystemClock the_clock;
crypto::SystemEntropy the_entropy;
const Io io{the_clock, the_entropy, {}};
constexpr Duration limit = seconds(5);
const IpAddress any = IpAddress::v4(0, 0, 0, 0);

void print(const std::string& line) {
  static std::mutex mutex;
  const std::lock_guard lock(mutex);
  std::cout << line << std::endl;
}

Expected<std::string> read_line(TcpSocket& socket, Duration time = limit) {
  std::string line;
  while (line.size() < 200) {
    std::array<std::uint8_t, 1> byte{};
    NS_RETURN_IF_ERROR(read_all_until(io, socket, byte, io.now() + time));
    if (byte[0] == '\n') return line;
    line.push_back(static_cast<char>(byte[0]));
  }
  return make_error(ErrorCode::Corrupt, "a line without an end");
}

Expected<void> write_line(TcpSocket& socket, const std::string& line) {
  return write_until(io, socket, as_bytes(line + "\n"), io.now() + limit);
}

void listen_for_ever(const Endpoint& local, const std::function<void(TcpSocket, Endpoint)>& take) {
  auto listener = platform::TcpListener::open(local);
  if (!listener.ok()) {
    print("= error " + listener.error().message);
    return;
  }
  while (true) {
    platform::SocketWait wait{listener->descriptor(), true, false, false};
    (void)platform::wait_for(Span<platform::SocketWait>(&wait, 1), seconds(1));
    auto accepted = listener->accept();
    if (accepted.ok() && accepted->has_value())
      std::thread(take, std::move((*accepted)->socket), (*accepted)->from).detach();
  }
}

// ---- services
// --------------------------------------------------------------------------------------------------

int run_services(const Endpoint& relay_endpoint, const Endpoint& help_endpoint) {
  auto relay = RelayServer::open(relay_endpoint, {}, the_clock, the_entropy);
  if (!relay.ok()) {
    print("= error " + relay.error().message);
    return 1;
  }
  std::thread help([&] {
    listen_for_ever(help_endpoint, [&](TcpSocket socket, const Endpoint& from) {
      const auto line = read_line(socket);
      if (!line.ok()) return;
      std::istringstream words(*line);
      std::string what, argument;
      words >> what >> argument;
      if (what == "RESERVE") {
        const auto ticket = (*relay)->reserve(hash_from_hex(argument).value(), from.ip);
        (void)write_line(socket, ticket.ok() ? to_hex(*ticket) : ticket.error().message);
      } else if (what == "DIAL") {
        const auto endpoint = platform::parse_endpoint(argument);
        auto dialled = dial_until(io, *endpoint, {}, io.now() + seconds(2));
        const auto greeting = dialled.ok() ? read_line(*dialled) : std::move(dialled).error();
        (void)write_line(socket, greeting.ok() ? *greeting : "nobody");
      }
    });
  });
  print("= ready");
  while (true) {
    (void)(*relay)->step(milliseconds(10));
  }
}

// ---- a node
// ----------------------------------------------------------------------------------------------------

class Node {
 public:
  explicit Node(char** arguments)
      : name_(arguments[0]),
        port_(static_cast<std::uint16_t>(std::stoi(arguments[1]))),
        relay_(platform::parse_endpoint(arguments[2]).value()),
        help_(platform::parse_endpoint(arguments[3]).value()),
        stun_{platform::parse_endpoint(arguments[4]).value(), platform::parse_endpoint(arguments[5]).value()},
        upnp_(make_upnp_mapper()) {
    if (const auto gateway = platform::default_gateway(); gateway.ok()) {
      gateway_ = *gateway;
      // A gateway of the laboratory answers in milliseconds or never.
      nat_pmp_ = std::make_unique<NatPmpMapper>(Endpoint{*gateway, nat_pmp::port},
                                                RetransmissionRule{milliseconds(250), 3, {}});
    }
  }

  int run() {
    std::thread([this] {
      listen_for_ever({any, port_}, [this](TcpSocket socket, Endpoint) { greet(socket); });
    }).detach();
    print("= ready");
    for (std::string line; std::getline(std::cin, line);) {
      std::istringstream words(line);
      std::string command, a, b;
      words >> command >> a >> b;
      const auto answer = answer_to(command, a, b);
      print("= " + (answer.ok() ? *answer : "error " + answer.error().message));
    }
    if (keeper_) {
      stop_ = true;
      keeper_thread_.join();
      (void)keeper_->release(io);
    }
    std::_Exit(0);  // threads wait for connections
  }

 private:
  static Hash256 id_of(const std::string& name) { return crypto::sha256(as_bytes(name)); }
  void greet(TcpSocket& socket) {
    (void)write_line(socket, name_);
    (void)read_line(socket);  // keeps it open until the other side is done
  }

  Expected<std::string> answer_to(const std::string& command, const std::string& a, const std::string& b) {
    if (command == "reach") return reach();
    if (command == "join") return join();
    if (command == "dial") return dial(a);
    if (command == "relay") return relay(a);
    if (command == "turn") return turn(a);
    if (command == "mapping") return mapping();
    if (command == "punch") return punch(a, b);
    if (command == "keep") return keep(a);
    return make_error(ErrorCode::InvalidArgument, "unknown command");
  }

  Expected<std::string> ask_help(const std::string& request) {
    NS_ASSIGN_OR_RETURN(TcpSocket socket, dial_until(io, help_, {}, io.now() + limit));
    NS_RETURN_IF_ERROR(write_line(socket, request));
    return read_line(socket, seconds(10));
  }

  Expected<std::string> reach() {
    ReachabilityOptions options;
    options.port = port_;
    options.stun_servers = stun_;
    options.gateway = gateway_;
    options.stun_rule = {milliseconds(300), 3, seconds(1)};
    options.tcp_limit = seconds(2);
    options.mappers.push_back(upnp_.get());
    if (nat_pmp_) options.mappers.push_back(nat_pmp_.get());
    options.dial_back = [this](const Io&, const Endpoint& endpoint) -> Expected<bool> {
      NS_ASSIGN_OR_RETURN(const std::string who, ask_help("DIAL " + to_text(endpoint)));
      return who == name_;
    };
    NS_ASSIGN_OR_RETURN(const ReachabilityReport report, test_reachability(io, options));
    for (const std::string& found : report.verdict.found) print("! " + found);
    print("! " + report.verdict.summary + " " + report.verdict.advice);
    const auto& verdict = report.verdict;
    return std::string(to_text(verdict.reach)) + "|" + verdict.through + "|" +
           (verdict.advertise ? to_text(*verdict.advertise) : "");
  }

  // Stays at the relay, also when it goes and comes back.
  Expected<std::string> join() {
    auto hold = std::make_shared<RelayHold>(
        std::vector<Endpoint>{relay_}, [this](const Io&, const Endpoint&) -> Expected<RelayTicket> {
          NS_ASSIGN_OR_RETURN(const std::string text, ask_help("RESERVE " + to_hex(id_of(name_))));
          return parse_relay_ticket(text);
        });
    NS_RETURN_IF_ERROR(hold->next(io, io.now()));
    if (!hold->relay()) return make_error(ErrorCode::Unavailable, hold->trouble());
    std::thread([this, hold] {
      while (true) {
        auto call = hold->next(io, io.now() + seconds(1));
        if (!call.ok()) return;
        if (call->has_value()) {
          std::thread([this, socket = std::make_shared<TcpSocket>(std::move((*call)->socket))] {
            greet(*socket);
          }).detach();
        }
      }
    }).detach();
    return std::string("joined");
  }

  Expected<std::string> dial(const std::string& endpoint) {
    NS_ASSIGN_OR_RETURN(const Endpoint remote, platform::parse_endpoint(endpoint));
    NS_ASSIGN_OR_RETURN(TcpSocket socket, dial_until(io, remote, {}, io.now() + limit));
    return read_line(socket);
  }

  Expected<std::string> relay(const std::string& name) {
    NS_ASSIGN_OR_RETURN(TcpSocket socket, call_through_relay(io, relay_, id_of(name), io.now() + limit));
    return read_line(socket);
  }

  // Reachable at a TURN server for one address; says where.
  Expected<std::string> turn(const std::string& peer) {
    NS_ASSIGN_OR_RETURN(const IpAddress permitted, platform::parse_ip(peer));
    NS_ASSIGN_OR_RETURN(TurnClient allocated,
                        TurnClient::allocate(io, {stun_.front(), "nsd", "secret"}, io.now() + limit));
    NS_RETURN_IF_ERROR(allocated.permit(io, {&permitted, 1}, io.now() + limit));
    const std::string relayed = to_text(allocated.relayed());
    std::thread([this, client = std::make_shared<TurnClient>(std::move(allocated))] {
      while (true) {
        auto call = client->next(io, io.now() + seconds(1));
        if (!call.ok()) return;
        if (call->has_value()) {
          std::thread([this, socket = std::make_shared<TcpSocket>(std::move((*call)->socket))] {
            greet(*socket);
          }).detach();
        }
      }
    }).detach();
    return relayed;
  }

  // A fresh local port and how the world sees it; the connection keeps the NAT's mapping.
  Expected<std::string> mapping() {
    NS_ASSIGN_OR_RETURN(mapped_,
                        outside_endpoint_tcp(io, stun_.front(), {Endpoint{any, 0}, true}, io.now() + limit));
    return to_text(mapped_.outside);
  }

  Expected<std::string> punch(const std::string& endpoint, const std::string& milliseconds_text) {
    NS_ASSIGN_OR_RETURN(const Endpoint remote, platform::parse_endpoint(endpoint));
    NS_ASSIGN_OR_RETURN(const Endpoint local, mapped_.connection.local());
    const MonotonicTime now = io.now();
    NS_ASSIGN_OR_RETURN(TcpSocket socket, punch_hole(io, {local.port, remote, now,
                                                          now + milliseconds(std::stoi(milliseconds_text))}));
    NS_RETURN_IF_ERROR(write_line(socket, name_));
    return read_line(socket);
  }

  // Keeps a mapping with a keeper that looks every second, and tells its events.
  Expected<std::string> keep(const std::string& way) {
    PortMapper* mapper = way == "UPnP" ? upnp_.get() : nat_pmp_.get();
    keeper_ = std::make_unique<MappingKeeper>(*mapper, port_, port_, io.now(),
                                              KeeperTimes{seconds(1), milliseconds(500), seconds(2)});
    keeper_thread_ = std::thread([this] {
      static constexpr const char* kinds[] = {"mapped", "changed", "lost", "failed"};
      while (!stop_) {
        for (const MappingEvent& event : keeper_->step(io))
          print("! " + std::string(kinds[static_cast<int>(event.kind)]) + " " + to_text(event.outside) + " " +
                event.words);
        (void)wait_until(io, {}, std::min(keeper_->next(), io.now() + milliseconds(200)));
      }
    });
    return std::string("keeping");
  }

  std::string name_;
  std::uint16_t port_;
  Endpoint relay_, help_;
  std::vector<Endpoint> stun_;
  std::optional<IpAddress> gateway_;
  std::unique_ptr<PortMapper> upnp_;
  std::unique_ptr<NatPmpMapper> nat_pmp_;
  OutsideTcp mapped_;
  std::unique_ptr<MappingKeeper> keeper_;
  std::thread keeper_thread_;
  std::atomic<bool> stop_{false};
};

}  // namespace

int main(int argc, char** argv) {
  const std::string mode = argc > 1 ? argv[1] : "";
  if (mode == "services" && argc == 4)
    return run_services(platform::parse_endpoint(argv[2]).value(), platform::parse_endpoint(argv[3]).value());
  if (mode == "node" && argc == 8) return Node(argv + 2).run();
  std::cerr << "usage: see the head of tests/functional/nat_lab_peer.cpp\n";
  return 64;
}
