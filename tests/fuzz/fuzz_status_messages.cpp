// Reports of the training's status, requests for them and answers: what is read writes itself back, and
// whatever a report says, the table keeps its bounds. The first byte chooses the reader.
#include <cmath>

#include "core/status/gossip.h"
#include "tests/fuzz/chosen_reader.h"

using namespace neuroshard;          // NOLINT
using namespace neuroshard::status;  // NOLINT

namespace {

void read_message(std::uint8_t choice, ByteSpan input) {
  switch (choice % 3) {
    case 0:
      if (const auto report = decode_report(input); report.ok()) {
        NS_CHECK(fuzz::same(encode_report(*report), input));
        NS_CHECK(!report->status.loss || (std::isfinite(*report->status.loss) && *report->status.loss > 0));
        StatusTable table(Hash256{});
        NS_CHECK(table.take(*report, WallTime(std::chrono::milliseconds(1'700'000'000'000))) != Taken::New);
      }
      break;
    case 1:
      if (const auto request = decode_pull(input); request.ok()) {
        NS_CHECK(fuzz::same(encode_pull(*request), input));
        NS_CHECK(request->known.size() <= max_listed);
      }
      break;
    default:
      if (const auto reports = decode_reports(input); reports.ok()) {
        NS_CHECK(reports->size() <= max_pulled);
        std::vector<const StatusReport*> all;
        for (const StatusReport& report : *reports) all.push_back(&report);
        NS_CHECK(fuzz::same(encode_reports(all), input));
      }
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  return fuzz::read_chosen(data, size, read_message);
}
