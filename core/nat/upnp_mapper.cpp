#include "core/nat/upnp_mapper.h"

#include <fmt/format.h>
#include <miniupnpc/miniupnpc.h>
#include <miniupnpc/upnpcommands.h>
#include <miniupnpc/upnperrors.h>

#include <array>
#include <charconv>
#include <optional>

#include "core/platform/process/open_files.h"

namespace neuroshard::nat {
namespace {

// UPnP error codes (IGD WANIPConnection:1 §2.4.16).
constexpr int no_such_entry = 714, conflict = 718, permanent_only = 725, not_authorised = 606;
constexpr int other_ports_tried = 8;

Error upnp_error(int code, const char* doing) {
  // miniupnpc's own codes are negative: the router has refused nothing.
  if (code < 0)
    return make_error(ErrorCode::Corrupt,
                      fmt::format("{} by UPnP failed: the router did not answer as expected (code {}); "
                                  "restart it if this stays so",
                                  doing, code));
  const char* text = strupnperror(code);
  const std::string reason =
      fmt::format("{} by UPnP failed: {} (code {})", doing, text ? text : "unknown", code);
  if (code == not_authorised)
    return make_error(ErrorCode::Denied,
                      reason + "; allow this computer to open ports in the router's settings");
  return make_error(ErrorCode::Denied, reason);
}

Error no_internet_address() {
  return make_error(ErrorCode::Unavailable,
                    "the router has no public address: its line is down, or there is another router "
                    "in front of it");
}

// miniupnpc ends the process when select() can't take the number of its socket.
Expected<void> can_ask() {
  if (platform::next_file_suits_select()) return {};
  return make_error(ErrorCode::Exhausted, "too many connections are open to ask the router by UPnP now");
}

// Holds the result of the search; frees miniupnpc's memory.
class Gateway {
 public:
  static Expected<std::unique_ptr<Gateway>> find(const UpnpOptions& options) {
    auto gateway = std::make_unique<Gateway>();
    if (!options.description_url.empty()) {
      if (UPNP_GetIGDFromUrl(options.description_url.c_str(), &gateway->urls_, &gateway->data_,
                             gateway->lan_.data(), static_cast<int>(gateway->lan_.size())) != 1) {
        return make_error(ErrorCode::NotFound,
                          fmt::format("no UPnP router describes itself at {}", options.description_url));
      }
      gateway->found_ = gateway->connected_ = true;
      return gateway;
    }
    int error = 0;
    UPNPDev* const devices = upnpDiscover(static_cast<int>(options.search.count()), nullptr, nullptr,
                                          UPNP_LOCAL_PORT_ANY, 0, 2, &error);
    if (devices == nullptr)
      return make_error(ErrorCode::NotFound,
                        "no UPnP router answered: it does not know UPnP, or it is switched off");
    const int kind = UPNP_GetValidIGD(devices, &gateway->urls_, &gateway->data_, gateway->lan_.data(),
                                      static_cast<int>(gateway->lan_.size()));
    freeUPNPDevlist(devices);
    gateway->found_ = kind != 0;
    gateway->connected_ = kind == 1;
    // 1: connected; 2: reports that it is not connected, or its outside address is reserved (it stands behind
    // another router).
    if (kind != 1 && kind != 2)
      return make_error(ErrorCode::NotFound, "UPnP devices answered, but none of them is a router");
    return gateway;
  }
  Gateway() = default;
  Gateway(const Gateway&) = delete;
  Gateway& operator=(const Gateway&) = delete;
  ~Gateway() {
    if (found_) FreeUPNPUrls(&urls_);
  }
  const char* url() const { return urls_.controlURL; }
  const char* service() const { return data_.first.servicetype; }
  const char* lan() const { return lan_.data(); }
  bool connected() const { return connected_; }

 private:
  UPNPUrls urls_{};
  IGDdatas data_{};
  std::array<char, 64> lan_{};
  bool found_ = false, connected_ = false;
};

class UpnpMapper final : public PortMapper {
 public:
  explicit UpnpMapper(UpnpOptions options) : options_(std::move(options)) {}
  std::string_view name() const override { return "UPnP"; }

  Expected<PortMapping> map(const Io& io, std::uint16_t inside_port, std::uint16_t wanted_outside,
                            std::chrono::seconds lease) override {
    if (io.cancel.cancelled()) return make_error(ErrorCode::Cancelled, "stopped");
    NS_RETURN_IF_ERROR(can_ask());
    if (!gateway_) {
      NS_ASSIGN_OR_RETURN(gateway_, Gateway::find(options_));
    }
    std::uint16_t outside = wanted_outside != 0 ? wanted_outside : inside_port;
    for (int tried = 0; tried < other_ports_tried; ++tried) {
      auto mapped = add(inside_port, outside, lease);
      if (mapped.ok()) return mapped;
      if (last_code_ != conflict) {
        const bool connected = gateway_->connected();
        gateway_.reset();  // it may be another router by now
        return connected ? std::move(mapped).error() : no_internet_address();
      }
      // Another program has that port: any other above the system's.
      std::array<std::uint8_t, 2> random{};
      io.entropy.fill(random);
      outside = static_cast<std::uint16_t>(1024 + (random[0] << 8 | random[1]) % (65536 - 1024));
    }
    return make_error(ErrorCode::Exhausted,
                      fmt::format("the router had none of {} ports free", other_ports_tried));
  }

  Expected<MappingState> check(const Io& io, const PortMapping& mapping) override {
    if (io.cancel.cancelled()) return make_error(ErrorCode::Cancelled, "stopped");
    if (!gateway_) return make_error(ErrorCode::NotFound, "no UPnP router was found yet");
    NS_RETURN_IF_ERROR(can_ask());
    std::array<char, 64> address{};
    const int code = UPNP_GetExternalIPAddress(gateway_->url(), gateway_->service(), address.data());
    if (code != UPNPCOMMAND_SUCCESS) {
      // Its description may have moved with a restart: the next map() searches again.
      gateway_.reset();
      return upnp_error(code, "asking the router for its outside address");
    }
    address.back() = '\0';
    MappingState state;
    const auto outside = platform::parse_ip(address.data());
    if (!outside.ok()) return no_internet_address();
    state.outside = *outside;
    state.lost = says_lost(mapping);
    return state;
  }

  Expected<void> unmap(const Io&, const PortMapping& mapping) override {
    if (!gateway_) return make_error(ErrorCode::NotFound, "no UPnP router was found yet");
    NS_RETURN_IF_ERROR(can_ask());
    const int code = UPNP_DeletePortMapping(gateway_->url(), gateway_->service(),
                                            fmt::format("{}", mapping.outside_port).c_str(), "TCP", nullptr);
    if (code != UPNPCOMMAND_SUCCESS && code != no_such_entry) return upnp_error(code, "closing the port");
    return {};
  }

 private:
  Expected<PortMapping> add(std::uint16_t inside_port, std::uint16_t outside, std::chrono::seconds lease) {
    if (permanent_only_) lease = std::chrono::seconds(0);
    const std::string outside_text = fmt::format("{}", outside), inside_text = fmt::format("{}", inside_port),
                      lease_text = fmt::format("{}", lease.count());
    last_code_ = UPNP_AddPortMapping(gateway_->url(), gateway_->service(), outside_text.c_str(),
                                     inside_text.c_str(), gateway_->lan(), options_.description.c_str(),
                                     "TCP", nullptr, lease_text.c_str());
    if (last_code_ == permanent_only && !permanent_only_) {
      permanent_only_ = true;
      return add(inside_port, outside, lease);
    }
    if (last_code_ != UPNPCOMMAND_SUCCESS) return upnp_error(last_code_, "opening the port");
    return PortMapping{inside_port, outside, lease};
  }

  // Some routers can't answer this question. Their mapping counts as held until it is renewed.
  bool says_lost(const PortMapping& mapping) {
    // Sizes as upnpcommands.h asks for: 16, 6, 80, 4, 16 bytes.
    std::array<char, 64> client{};
    std::array<char, 16> port{}, enabled{}, lease{};
    std::array<char, 128> description{};
    const int code = UPNP_GetSpecificPortMappingEntry(
        gateway_->url(), gateway_->service(), fmt::format("{}", mapping.outside_port).c_str(), "TCP", nullptr,
        client.data(), port.data(), description.data(), enabled.data(), lease.data());
    if (code != UPNPCOMMAND_SUCCESS) return code == no_such_entry;
    client.back() = port.back() = '\0';
    return std::string_view(client.data()) != gateway_->lan() ||
           std::string_view(port.data()) != fmt::format("{}", mapping.inside_port);
  }

  UpnpOptions options_;
  std::unique_ptr<Gateway> gateway_;
  bool permanent_only_ = false;
  int last_code_ = 0;
};

}  // namespace

std::unique_ptr<PortMapper> make_upnp_mapper(UpnpOptions options) {
  return std::make_unique<UpnpMapper>(std::move(options));
}

}  // namespace neuroshard::nat
