// A session over a toy compute module, for the tests of core/engine. Header only.
#pragma once

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "core/checkpoint/catalogue.h"
#include "core/engine/training_session.h"
#include "tests/unit/engine/toy_module.h"
#include "tests/unit/engine/training_fixture.h"

namespace neuroshard::testing {

// One start of the program: data directory, module, session. Destroying it is a kill, as far as the disk can
// tell.
struct Run {
  std::unique_ptr<config::DataDirectory> directory;
  std::unique_ptr<ToyModule> module = std::make_unique<ToyModule>();
  std::unique_ptr<engine::TrainingSession> session;
  Expected<engine::SessionInfo> info = make_error(ErrorCode::Internal, "not prepared");

  Run(TrainingFixture& fixture, const std::string& name, const std::string& text = "text.txt",
      engine::SessionMode mode = engine::SessionMode::Train, storage::FileEnv* files = nullptr,
      std::shared_ptr<storage::DiskBudget> disk = nullptr) {
    auto opened = fixture.open(name);
    NS_CHECK(opened.ok());
    directory = std::move(*opened);
    engine::TrainingServices services{files != nullptr ? *files : fixture.files(), fixture.clock(),
                                      fixture.logger()};
    services.disk = std::move(disk);
    services.load_module = [this](const std::string&, const compute::ModuleOptions& options, Logger&) {
      module->controls.threads = options.threads;
      return Expected<compute::LoadedModule>(compute::LoadedModule{module.get(), {}});
    };
    auto created = engine::TrainingSession::create(*directory, services);
    NS_CHECK(created.ok());
    session = std::move(*created);
    engine::PrepareOptions options;
    options.mode = mode;
    if (!text.empty()) options.text = fixture.path(text);
    info = session->prepare(options);
  }
  ~Run() { session.reset(); }

  engine::StepReport step() {
    auto report = session->step(CancelToken());
    // In a network, a busy machine may be late with its own text.
    while (!report.ok() && report.error().code == ErrorCode::Busy) report = session->step(CancelToken());
    NS_CHECK(report.ok());
    return std::move(*report);
  }
  std::vector<double> steps(int count) {
    std::vector<double> losses;
    for (int i = 0; i < count; ++i) losses.push_back(step().loss);
    return losses;
  }
};

inline std::size_t checkpoints_of(TrainingFixture& fixture, const std::string& name) {
  return checkpoint::Catalogue(fixture.files(), fixture.path(name) + "/checkpoints").list()->size();
}

}  // namespace neuroshard::testing
