#include "core/rendezvous/local_discovery.h"

#include "core/platform/socket/multicast_socket.h"
#include "core/rendezvous/mdns_message.h"

namespace neuroshard::rendezvous {
namespace {

constexpr std::uint16_t mdns_port = 5353;
constexpr std::uint32_t life = 120;  // seconds; RFC 6762 §10
constexpr std::size_t digits_of_id = 16;
constexpr int datagrams_a_look = 32;
constexpr Duration between_answers = std::chrono::seconds(1);  // §6: a record at most once a second
constexpr Duration interfaces_again = std::chrono::seconds(30);

class LocalDiscovery final : public Rendezvous {
 public:
  LocalDiscovery(Executor& executor, const Clock& clock, const LocalDiscoveryOptions& options,
                 platform::MulticastSocket socket)
      : executor_(executor), clock_(clock), options_(options), socket_(std::move(socket)) {
    own_.instance = to_hex(options.node_id).substr(0, digits_of_id);
    own_.network_id = options.network_id;
    poll();
  }
  ~LocalDiscovery() override { announce(std::nullopt); }

  std::string_view name() const override { return "the local network"; }

  void announce(std::optional<std::uint16_t> port) override {
    const bool gone = !port && own_.port != 0;
    if (gone) say(0);
    own_.port = port.value_or(0);
    if (own_.port != 0) say(life);
  }

  void look_up(Found found) override {
    found_ = std::move(found);
    refresh();
    socket_.send([](const platform::IpAddress&) { return encode_mdns_question(); });
  }

 private:
  void say(std::uint32_t ttl) {
    refresh();
    socket_.send([this, ttl](const platform::IpAddress& own) {
      MdnsService service = own_;
      service.address = own;
      return encode_mdns_answer(service, ttl);
    });
    said_ = clock_.monotonic_now();
    owed_ = false;
  }

  void refresh() {
    const MonotonicTime now = clock_.monotonic_now();
    if (refreshed_ && now - *refreshed_ < interfaces_again) return;
    refreshed_ = now;
    socket_.join();
  }

  void poll() {
    refresh();
    bool asked = false;
    for (int i = 0; i < datagrams_a_look; ++i) {
      const auto received = socket_.receive({buffer_.data(), buffer_.size()});
      if (!received) break;
      const auto message = decode_mdns(ByteSpan(buffer_.data(), received->size));
      if (!message.ok()) continue;
      asked |= message->question;
      for (const MdnsService& service : message->services) hear(service, received->from.ip);
    }
    // A question that comes too early is answered later.
    owed_ = (owed_ || asked) && own_.port != 0;
    if (owed_ && (!said_ || clock_.monotonic_now() - *said_ >= between_answers)) say(life);
    timer_ = executor_.post_after(options_.poll, [this] { poll(); });
  }

  void hear(const MdnsService& service, const platform::IpAddress& from) {
    if (service.network_id != own_.network_id || service.instance == own_.instance || !found_) return;
    const Found found = found_;
    found({{from, service.port}});
  }

  Executor& executor_;
  const Clock& clock_;
  const LocalDiscoveryOptions options_;
  platform::MulticastSocket socket_;
  MdnsService own_;
  Found found_;
  std::optional<MonotonicTime> said_, refreshed_;
  bool owed_ = false;                        // an answer
  std::array<std::uint8_t, 9000> buffer_{};  // RFC 6762 §17
  std::unique_ptr<TimerHandle> timer_;
};

}  // namespace

Expected<std::unique_ptr<Rendezvous>> make_local_discovery(Executor& executor, const Clock& clock,
                                                           LocalDiscoveryOptions options) {
  NS_ASSIGN_OR_RETURN(platform::MulticastSocket socket,
                      platform::MulticastSocket::open({platform::IpAddress::v4(224, 0, 0, 251), mdns_port}));
  return std::unique_ptr<Rendezvous>(
      std::make_unique<LocalDiscovery>(executor, clock, options, std::move(socket)));
}

}  // namespace neuroshard::rendezvous
