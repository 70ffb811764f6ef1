// The read-only pages of the local HTTP server, from a node's snapshot and the answers of its queries. A value that this
// node does not know is null, never a made-up value. Pure.
#pragma once

#include <string>
#include <vector>

#include "core/node/network_view.h"
#include "core/node/queries.h"
#include "core/node/snapshot.h"

namespace neuroshard::serve {

// The id under which /v1/models lists the model; empty: there is none yet.
std::string model_id(const node::Snapshot& view);
// The newest checkpoint by step and hash, and how far the training has gone on: "00000100-1a2b3c4d+3".
std::string model_fingerprint(const node::Snapshot& view);

std::string models_page(const node::Snapshot& view);
std::string health_page(const node::Snapshot& view);
std::string stats_page(const node::Snapshot& view);
std::string training_page(const node::Snapshot& view);
std::string history_page(const node::Snapshot& view, const node::Series& loss, const node::Series& held_out);
std::string network_page(const node::NetworkView& network);
std::string layers_page(const std::vector<node::SlotEntry>& slots);
std::string experts_page(const std::vector<node::ExpertLoad>& experts);
std::string checkpoints_page(const node::CheckpointPage& page);

// Text exposition format 0.0.4 of Prometheus.
struct ServerFigures {
  std::uint64_t requests = 0, refused = 0, texts = 0, tokens = 0;
  std::size_t connections = 0, texts_running = 0, texts_waiting = 0;
};
std::string metrics_page(const node::Snapshot& view, const ServerFigures& server);

}  // namespace neuroshard::serve
