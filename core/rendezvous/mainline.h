// The BitTorrent mainline DHT (BEP 5) as a rendezvous of last resort, by libtorrent-rasterbar: nodes announce
// and look up a key that is made from the network id, as if it were a torrent. No torrent exists, and no
// BitTorrent connection is made or accepted. Everybody who knows the network id can read the list and write
// to it: an address from there is worth one try.
//
// libtorrent is behind this header. Programs call make_mainline() through core/network_module.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "core/base/bytes.h"
#include "core/base/executor.h"
#include "core/base/rng.h"
#include "core/rendezvous/rendezvous.h"

namespace neuroshard::rendezvous {

struct MainlineOptions {
  Hash256 network_id{};
  platform::Endpoint listen;           // UDP; all zeros and port 0: any
  std::vector<std::string> bootstrap;  // "host:port" of nodes of that DHT; empty: the well-known ones
  std::uint64_t seed = 0;              // of the choice among what is found
  bool one_lan = false;  // a private DHT with many nodes of one address: its limits against that are off
};

// The key: the first 20 bytes of SHA-256("neuroshard mainline 1" and the network id).
std::array<std::uint8_t, 20> mainline_key(const Hash256& network_id);

// MainlineOptions::listen in libtorrent's words, in which each IP version has an address of its own for "any".
std::string listen_interfaces(const platform::Endpoint& at);

// A few addresses of an answer, chosen at random: the nodes of that DHT name what they like, and none of them
// alone may fill a search. `told` holds those of earlier answers and takes in the new ones.
std::vector<platform::Endpoint> draw(std::vector<platform::Endpoint> answer,
                                     std::vector<platform::Endpoint>* told, Rng& rng);
inline constexpr std::size_t most_of_answer = 4, most_of_search = 512;

// The executor outlives it. Errors: Internal.  Threads: the executor's. Its destruction waits for the
// library's thread.
Expected<std::unique_ptr<Rendezvous>> make_mainline(Executor& executor, MainlineOptions options);

}  // namespace neuroshard::rendezvous
