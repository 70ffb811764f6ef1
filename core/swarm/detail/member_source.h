// A first peer or tracker as its member keeps it.
#pragma once

#include "core/swarm/member.h"

namespace neuroshard::swarm {

struct Member::Source {
  FirstPeer peer;
  net::Dial dial;  // of this try
  bool cached = false;
  bool found = false;     // suggested by a rendezvous: given up after two tries
  bool given_up = false;  // its place is free
  std::size_t tries = 0;
  std::shared_ptr<net::PeerChannel> channel;
  std::string state = "not tried yet";
  Duration pause{0};
  bool tracker = false, busy = false;
  std::uint64_t beats = 0;
  std::uint64_t told = 0;  // sequence of the record that it was given
  std::unique_ptr<TimerHandle> timer;

  std::string where() const { return peer.name.empty() ? platform::to_text(peer.endpoint) : peer.name; }
};

}  // namespace neuroshard::swarm
