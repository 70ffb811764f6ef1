// Attacks a running node with valid connections and changed messages; not part of the product.
//
//   protocol_fuzzer fuzz|records|punch|joins --profile FILE --at ID@HOST:PORT [--seconds N] [--seed N]
//                   [--clients N] [--record FILE] [--key FILE] [--trace FILE] [--victim HOST:PORT]
//   protocol_fuzzer replay --profile FILE --at ID@HOST:PORT --trace FILE
//   protocol_fuzzer sink --profile FILE --at HOST:PORT …      the same messages to a socket that swallows them
//
// fuzz: changed messages of every method. The others send valid ones: records that name --victim, requests to
// dial and to punch, and what a stranger that wants to join says. --record: what a node says that runs as
// lying_node record FILE; its key (--key) signs half of the messages. --trace keeps what was sent, for replay.
// The last line is a JSON object with the counts; exit status 1: an honest peer was not answered.
#include <fmt/format.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <unistd.h>

#include <charconv>
#include <cstdio>
#include <cstdlib>
#include <map>
#include <string>

#include "core/chain/messages.h"
#include "core/config/network_profile.h"
#include "core/crypto/node_key.h"
#include "core/platform/process/heap.h"
#include "tests/support/honest_peer.h"

namespace {

using namespace neuroshard;        // NOLINT
using namespace neuroshard::test;  // NOLINT

constexpr Duration between_pings = std::chrono::milliseconds(250);
constexpr Duration longest_wait = std::chrono::milliseconds(20);
constexpr int pings_between_blocks = 4;

struct Options {
  std::string attack;
  std::map<std::string, std::string> words;
  std::string word(const char* name) const {
    const auto at = words.find(name);
    return at == words.end() ? std::string() : at->second;
  }
  Expected<std::uint64_t> number(const char* name, std::uint64_t otherwise) const {
    const std::string text = word(name);
    if (text.empty()) return otherwise;
    std::uint64_t value = 0;
    const auto [at, error] = std::from_chars(text.data(), text.data() + text.size(), value);
    if (error != std::errc() || at != text.data() + text.size())
      return make_error(ErrorCode::InvalidArgument,
                        fmt::format("--{} takes a number, not \"{}\"", name, text));
    return value;
  }
};

Expected<Options> read_options(int argc, char** argv) {
  Options options;
  if (argc < 2)
    return make_error(ErrorCode::InvalidArgument, "protocol_fuzzer fuzz --profile FILE --at NODE …");
  options.attack = argv[1];
  for (int i = 2; i + 1 < argc; i += 2) {
    if (std::string_view(argv[i]).substr(0, 2) != "--")
      return make_error(ErrorCode::InvalidArgument, fmt::format("\"{}\" is no option", argv[i]));
    options.words[argv[i] + 2] = argv[i + 1];
  }
  return options;
}

// The methods of which an attack sends valid messages; empty: it sends changed ones of all.
Expected<std::vector<net::Method>> methods_of(const std::string& attack) {
  using net::Method;
  if (attack == "records") return std::vector{Method::Peers, Method::DhtStore, Method::TrackerRegister};
  if (attack == "punch")
    return std::vector{Method::Punch, Method::LetIn, Method::DialBack, Method::RelayReserve};
  if (attack == "joins") return std::vector{Method::ChainPost, Method::ChainStatus};
  if (attack == "fuzz" || attack == "sink" || attack == "replay") return std::vector<Method>{};
  return make_error(ErrorCode::InvalidArgument, fmt::format("there is no attack \"{}\"", attack));
}

void learn_recorded(FuzzRun& run, MessageFileReader& reader) {
  const std::lock_guard lock(run.mutex);
  for (const Message& message : reader.read()) {
    run.pool.learn(message.method, message.request);
    if (!run.member || run.member_number || message.method != net::Method::ChainPost) continue;
    const auto item = chain::decode_item(message.request, run.pool.network());
    const auto* vote = item.ok() ? std::get_if<chain::SignedVote>(&*item) : nullptr;
    if (vote != nullptr && chain::vote_holds(*vote, run.member->public_key(), run.pool.network()))
      run.member_number = vote->voter;
  }
}

int connect_to(const platform::Endpoint& at) {
  const int socket = ::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  if (socket < 0) return -1;
  timeval limit{1, 0};
  ::setsockopt(socket, SOL_SOCKET, SO_SNDTIMEO, &limit, sizeof limit);
  ::setsockopt(socket, SOL_SOCKET, SO_RCVTIMEO, &limit, sizeof limit);
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_port = htons(at.port);
  std::memcpy(&address.sin_addr, at.ip.bytes.data() + 12, 4);
  if (::connect(socket, reinterpret_cast<const sockaddr*>(&address), sizeof address) == 0) return socket;
  ::close(socket);
  return -1;
}

// The heads of a relay and of STUN, which come before TLS, changed.
void speak_plain(FuzzRun& run, const net::Dial& to) {
  Bytes said;
  {
    const std::lock_guard lock(run.mutex);
    const std::string id = to_hex(run.rng.below(2) == 0 && to.id ? *to.id : run.pool.any_hash(run.rng));
    const std::string heads[] = {fmt::format("CONNECT {}.relay:443 HTTP/1.1\r\n\r\n", id),
                                 fmt::format("JOIN {} HTTP/1.1\r\n\r\n", id.substr(0, 32)),
                                 fmt::format("ACCEPT {} HTTP/1.1\r\n\r\n", id.substr(0, 32)),
                                 std::string("\0\1\0\0\x21\x12\xa4\x42tttttttttttt", 20)};
    const std::string& head = heads[run.rng.below(std::size(heads))];
    const char first = head.front();
    said = run.mutator.mutate(Bytes(head.begin(), head.end()), {});
    if (said.empty() || run.mutator.one_in(2)) said.insert(said.begin(), static_cast<std::uint8_t>(first));
  }
  const int socket = connect_to(to.endpoint);
  if (socket < 0) return;
  static_cast<void>(::send(socket, said.data(), said.size(), MSG_NOSIGNAL));
  char answer[256];
  static_cast<void>(::recv(socket, answer, sizeof answer, MSG_DONTWAIT));
  ::close(socket);
}

void print_counts(const FuzzRun& run, const Options& options, const HonestPeer* honest, double seconds) {
  std::uint64_t calls = 0, answers = 0;
  std::string kinds, errors;
  for (const auto& [kind, counts] : run.counts) {
    calls += counts.calls;
    answers += counts.answers;
    kinds += fmt::format("{}\"{}\": [{}, {}, {}]", kinds.empty() ? "" : ", ", to_string(kind), counts.calls,
                         counts.answers, counts.errors);
  }
  for (const auto& [code, count] : run.errors)
    errors += fmt::format("{}\"{}\": {}", errors.empty() ? "" : ", ", code, count);
  const HonestCounts none, &peer = honest == nullptr ? none : honest->counts();
  fmt::print(
      "{{\"attack\": \"{}\", \"seed\": {}, \"seconds\": {:.1f}, \"calls\": {}, \"answers\": {}, \"streams\": "
      "{}, "
      "\"identities\": {}, \"refused_connections\": {}, \"banned\": {}, \"member\": {}, \"honest_calls\": "
      "{}, "
      "\"honest_failed\": {}, \"honest_worst_ms\": {:.0f}, \"honest_error\": \"{}\", \"height\": {}, "
      "\"errors\": {{{}}}, \"kinds\": {{{}}}}}\n",
      options.attack, *options.number("seed", 1), seconds, calls, answers, run.streams, run.identities,
      run.refused_connections, run.denied, run.member_number ? static_cast<int>(*run.member_number) : -1,
      peer.calls, peer.failed, peer.worst_ms, peer.last_error, honest == nullptr ? 0 : honest->height(),
      errors, kinds);
}

Expected<void> add_member(FuzzRun& run, const Options& options, storage::FileEnv& files) {
  if (options.word("key").empty()) return {};
  NS_ASSIGN_OR_RETURN(const Bytes bytes, storage::read_file(files, options.word("key"), 4096));
  NS_ASSIGN_OR_RETURN(auto key, crypto::decode_node_key(bytes));
  run.member.emplace(std::move(key));
  return {};
}

// The work of an attack without packets to a node: its messages go into a socket that nobody looks at.
Expected<int> write_to_sink(FuzzRun& run, const Options& options, const runtime::RuntimeServices& services,
                            const net::Dial& to, MonotonicTime end) {
  const int socket = connect_to(to.endpoint);
  if (socket < 0) return make_error(ErrorCode::Unavailable, "nobody listens at --at");
  while (services.clock.monotonic_now() < end) {
    const crypto::KeyPair key = crypto::KeyPair::generate(services.entropy);
    SignedChanges changes(run.pool, run.mutator, key, services.clock);
    for (const Message& message : changes.own_messages()) run.pool.learn(message.method, message.request);
    for (int i = 0; i < 200 && services.clock.monotonic_now() < end; ++i) {
      const Message message = MessageSource(run.pool, run.mutator, changes).next().message;
      ++run.counts[kind_of(message.method, message.request)].calls;
      static_cast<void>(::send(socket, message.request.data(), message.request.size(), MSG_NOSIGNAL));
    }
  }
  ::close(socket);
  print_counts(run, options, nullptr, static_cast<double>(*options.number("seconds", 60)));
  return 0;
}

Expected<int> attack(const Options& options) {
  const SystemClock clock;
  crypto::SystemEntropy entropy;
  NullLogger logger;
  const auto files = storage::make_posix_file_env();
  const runtime::RuntimeServices services{*files, entropy, clock, logger, "fuzz"};
  NS_ASSIGN_OR_RETURN(const auto methods, methods_of(options.attack));
  NS_ASSIGN_OR_RETURN(const auto network,
                      runtime::guest_network({options.word("profile"), {options.word("at")}, true}, *files));
  NS_ASSIGN_OR_RETURN(const std::uint64_t seconds, options.number("seconds", 60));
  NS_ASSIGN_OR_RETURN(const std::uint64_t seed, options.number("seed", 1));
  NS_ASSIGN_OR_RETURN(const std::uint64_t clients, options.number("clients", 4));
  FuzzRun run(network.id, seed);
  NS_RETURN_IF_ERROR(add_member(run, options, *files));
  const net::Dial& to = network.sources.front();
  const MonotonicTime began = clock.monotonic_now(), end = began + std::chrono::seconds(seconds);
  if (options.attack == "sink") return write_to_sink(run, options, services, to, end);

  FuzzClient::Options client;
  client.to = to;
  client.valid_only = !methods.empty();
  client.methods = methods;
  if (client.valid_only) client.calls = 12;
  if (!options.word("victim").empty()) {
    NS_ASSIGN_OR_RETURN(const net::Dial victim, runtime::parse_dial(options.word("victim")));
    client.own_endpoint = victim.endpoint;
  }
  if (options.attack == "replay") {
    client.replay = MessageFileReader(options.word("trace")).read();
    client.calls = client.replay.size();
  } else if (!options.word("trace").empty()) {
    run.trace = std::make_unique<MessageFileWriter>(options.word("trace"));
  }
  MessageFileReader recorded(options.word("record"));
  NS_ASSIGN_OR_RETURN(const auto honest, HonestPeer::start(run, services, to));
  honest->learn_blocks();
  std::vector<std::unique_ptr<FuzzClient>> at_work(options.attack == "replay" ? 1 : clients);
  MonotonicTime next_ping = began;
  for (int pings = 0; clock.monotonic_now() < end;) {
    for (auto& one : at_work) {
      if (one && !one->has_ended()) continue;
      if (one && options.attack == "replay") return 0;
      NS_ASSIGN_OR_RETURN(one, FuzzClient::start(run, services, client));
    }
    {
      std::unique_lock lock(run.mutex);
      run.identity_ended.wait_for(lock, longest_wait);
    }
    if (clock.monotonic_now() < next_ping) continue;
    next_ping = clock.monotonic_now() + between_pings;
    honest->ping();
    if (!client.valid_only) speak_plain(run, to);
    if (++pings % pings_between_blocks != 0) continue;
    honest->learn_blocks();
    if (!options.word("record").empty()) learn_recorded(run, recorded);
  }
  at_work.clear();
  const std::lock_guard lock(run.mutex);
  print_counts(run, options, honest.get(), to_seconds(clock.monotonic_now() - began));
  return honest->counts().failed > 0 ? 1 : 0;
}

}  // namespace

int main(int argc, char** argv) {
  platform::keep_heap_small();
  std::setvbuf(stdout, nullptr, _IOLBF, 0);
  const auto options = read_options(argc, argv);
  const auto status = options.ok() ? attack(*options) : Expected<int>(options.error());
  if (status.ok()) return *status;
  std::fputs((status.error().describe() + "\n").c_str(), stderr);
  return 2;
}
