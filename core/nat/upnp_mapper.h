// Port mappings by UPnP (Internet Gateway Device), through miniupnpc.
#pragma once

#include <memory>

#include "core/nat/port_mapper.h"

namespace neuroshard::nat {

struct UpnpOptions {
  // The first search waits this long for routers to answer.
  std::chrono::milliseconds search{2000};
  // The router's description, if known: no search then.
  std::string description_url;
  std::string description = "NeuroShard";  // shown in the router's list of mappings
};

// miniupnpc blocks for some seconds per exchange and checks no token: use a thread that may block. The first
// map() finds the router, and again after a failure.
std::unique_ptr<PortMapper> make_upnp_mapper(UpnpOptions options = {});

}  // namespace neuroshard::nat
