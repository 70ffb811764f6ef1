// Training sessions of a tiny NeuroLLM with the real compute module. Header only.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "core/base/check.h"
#include "core/engine/training_session.h"
#include "tests/unit/engine/training_fixture.h"

namespace neuroshard::testing {

using engine::PrepareOptions;
using engine::SessionInfo;
using engine::SessionMode;
using engine::TrainingServices;
using engine::TrainingSession;

// Of two layers. gamma: of the router's balancing, in units of 1e-9.
inline TinyNetwork tiny_network(std::uint64_t experts, std::uint64_t gamma) {
  TinyNetwork tiny;
  tiny.layers = 2;
  tiny.hidden = 32;
  tiny.head_dim = 8;
  tiny.experts = experts;
  tiny.router_bias_gamma_nano = gamma;
  return tiny;
}

// A session with the real compute module in a data directory of the fixture.
struct ModelRun {
  std::unique_ptr<config::DataDirectory> directory;
  std::unique_ptr<TrainingSession> session;
  Expected<SessionInfo> info = make_error(ErrorCode::Internal, "not prepared");

  ModelRun(TrainingFixture& fixture, const std::string& name, bool text,
           SessionMode mode = SessionMode::Train) {
    auto opened = fixture.open(name);
    NS_CHECK(opened.ok());
    directory = std::move(*opened);
    auto created = TrainingSession::create(
        *directory, TrainingServices{fixture.files(), fixture.clock(), fixture.logger()});
    NS_CHECK(created.ok());
    session = std::move(*created);
    PrepareOptions options;
    options.mode = mode;
    if (text) options.text = fixture.path("text.txt");
    info = session->prepare(options);
  }
  ~ModelRun() { session.reset(); }

  std::vector<double> steps(int count) {
    std::vector<double> losses;
    for (int i = 0; i < count; ++i) {
      const auto report = session->step(CancelToken());
      NS_CHECK(report.ok());
      losses.push_back(report->loss);
    }
    return losses;
  }
};

}  // namespace neuroshard::testing
