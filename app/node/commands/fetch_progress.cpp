#include "app/node/commands/fetch_progress.h"

#include <fmt/format.h>

#include <nlohmann/json.hpp>

#include "app/node/commands/guest_flags.h"

namespace neuroshard::app {

FetchProgress::FetchProgress(CommandContext& context) : context_(context) {
  observer_.note = guest_notes(context);
  observer_.progress = [this](const std::string& name, std::uint64_t here, std::uint64_t total) {
    if (!line_) line_.emplace(context_.output, context_.clock, name);
    line_->update(here, total);
  };
  observer_.ended = [this](const std::string&) { line_.reset(); };
  observer_.fetched = [this](const runtime::FetchObserver::File& file) { show(file); };
}

void FetchProgress::show(const runtime::FetchObserver::File& file) {
  const exchange::FetchReport& report = file.report;
  context_.output.json_line({{"fetched", file.name},
                             {"bytes", report.received_bytes},
                             {"nodes", report.holders},
                             {"relayed", file.relayed},
                             {"resumed", report.resumed_bytes},
                             {"liars", report.liars}});
  context_.output.note(
      fmt::format("{}: {} bytes from {} node(s), {} were here already; {} node(s) sent wrong data", file.name,
                  report.received_bytes, report.holders, report.resumed_bytes, report.liars));
}

}  // namespace neuroshard::app
