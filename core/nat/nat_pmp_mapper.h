// Port mappings by NAT-PMP (RFC 6886).
#pragma once

#include <optional>

#include "core/nat/nat_pmp_message.h"
#include "core/nat/port_mapper.h"
#include "core/nat/retransmission.h"

namespace neuroshard::nat {

class NatPmpMapper final : public PortMapper {
 public:
  // gateway: its address and nat_pmp::port. Answers from other addresses are ignored.
  explicit NatPmpMapper(const platform::Endpoint& gateway, const RetransmissionRule& rule = nat_pmp_rule)
      : gateway_(gateway), rule_(rule) {}

  std::string_view name() const override { return "NAT-PMP"; }
  Expected<PortMapping> map(const Io& io, std::uint16_t inside_port, std::uint16_t wanted_outside,
                            std::chrono::seconds lease) override;
  Expected<MappingState> check(const Io& io, const PortMapping& mapping) override;
  Expected<void> unmap(const Io& io, const PortMapping& mapping) override;

 private:
  struct Epoch {
    std::uint32_t seconds;
    MonotonicTime heard;
  };
  Expected<nat_pmp::Answer> ask(const Io& io, const Bytes& request, nat_pmp::Operation operation,
                                std::uint16_t inside_port);

  platform::Endpoint gateway_;
  RetransmissionRule rule_;
  std::optional<Epoch> epoch_;
  bool lost_ = false;  // perhaps, since the last map()
};

}  // namespace neuroshard::nat
