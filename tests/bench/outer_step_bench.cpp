// Time and memory of an aggregation of encoded deltas: payloads in memory or in files, read and decoded slice by
// slice, pass by pass (what a round's step does), beside all of them decoded first. bench_outer_step [CONTRIBUTORS [MILLIONS
// [ROUNDS [CODEC]]]]; tests/long.sh aggregation. One thread, processor time; Linux, for the memory's peak.
#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <ctime>
#include <functional>
#include <memory>
#include <string_view>
#include <vector>

#include "core/base/rng.h"
#include "core/outer/aggregate.h"
#include "core/outer/codec.h"

using namespace neuroshard;
using namespace neuroshard::outer;

namespace {

// KiB of "VmHWM" or "VmRSS" of this process.
std::uint64_t memory_now(const char* field) {
  std::FILE* const status = std::fopen("/proc/self/status", "r");
  char line[256];
  unsigned long long kib = 0;
  while (status != nullptr && std::fgets(line, sizeof line, status) != nullptr)
    if (std::string_view(line).rfind(field, 0) == 0)
      std::sscanf(line + std::string_view(field).size() + 1, "%llu", &kib);
  if (status != nullptr) std::fclose(status);
  return kib;
}
void forget_peak() {
  if (std::FILE* const refs = std::fopen("/proc/self/clear_refs", "w")) {
    std::fputs("5", refs);
    std::fclose(refs);
  }
}

// A file that is gone with the process.
class FileBytes final : public ByteSource {
 public:
  explicit FileBytes(const Bytes& bytes) : size_(bytes.size()), file_(std::tmpfile()) {
    good_ = file_ != nullptr && std::fwrite(bytes.data(), 1, bytes.size(), file_) == bytes.size() &&
            std::fflush(file_) == 0;
  }
  ~FileBytes() override {
    if (file_ != nullptr) std::fclose(file_);
  }
  bool good() const { return good_; }
  std::uint64_t size() const override { return size_; }
  Expected<void> read_at(std::uint64_t offset, MutableByteSpan target) const override {
    const auto read = ::pread(fileno(file_), target.data(), target.size(), static_cast<off_t>(offset));
    if (read != static_cast<ssize_t>(target.size())) return make_error(ErrorCode::Io, "a short read");
    return {};
  }

 private:
  std::uint64_t size_;
  std::FILE* file_;
  bool good_ = false;
};

struct Way {
  const char* name;
  std::function<bool()> run;
  std::vector<double> seconds{};
  std::uint64_t peak_kib = 0;  // above what stood before
};

}  // namespace

int main(int argc, char** argv) {
  const std::size_t n = argc > 1 ? std::strtoul(argv[1], nullptr, 10) : 8;
  const std::size_t values = 1'000'000 * (argc > 2 ? std::strtoul(argv[2], nullptr, 10) : 10);
  const int rounds = argc > 3 ? std::atoi(argv[3]) : 5;
  CodecOptions codec;
  if (argc > 4) {
    const auto named = codec_from_name(argv[4]);
    if (!named.ok()) return std::fputs((named.error().describe() + "\n").c_str(), stderr), 1;
    codec.codec = *named;
  }
  AggregationOptions options;
  options.sparse = codec.codec == Codec::TopK;

  std::vector<Bytes> payloads;
  std::vector<EncodedContribution> encoded(n), in_files(n);
  for (std::size_t i = 0; i < n; ++i) {
    Rng rng(i);
    std::vector<float> delta(values);
    for (float& value : delta) value = 1e-3f * (static_cast<float>(rng.next() >> 40) / 8388608.0f - 1.0f);
    auto payload = encode(codec, delta);
    if (!payload.ok()) return std::fputs((payload.error().describe() + "\n").c_str(), stderr), 1;
    const auto file = std::make_shared<FileBytes>(*payload);
    if (!file->good()) return std::fputs("a file can't be written\n", stderr), 1;
    for (auto* const contributions : {&encoded, &in_files}) {
      (*contributions)[i].id[0] = static_cast<std::uint8_t>(i);
      (*contributions)[i].tokens = 1000;
    }
    in_files[i].payload = file;
    payloads.push_back(std::move(*payload));
  }
  for (std::size_t i = 0; i < n; ++i) encoded[i].payload = std::make_shared<BytesView>(payloads[i]);
  std::vector<float> out(values, 0.0f), first;

  std::vector<Way> ways;
  ways.push_back({"all decoded first", [&] {
                    std::vector<std::vector<float>> deltas;
                    std::vector<Contribution> contributions(n);
                    for (std::size_t i = 0; i < n; ++i) {
                      deltas.emplace_back(values);
                      if (!decode(codec, payloads[i], deltas.back()).ok()) return false;
                      contributions[i].id[0] = static_cast<std::uint8_t>(i);
                      contributions[i].tokens = 1000;
                      contributions[i].delta = deltas.back();
                    }
                    return aggregate(options, contributions, 1000, out).ok();
                  }});
  // The aggregate goes where the caller keeps it: here, to compare it.
  const WriteValues write = [&](std::uint64_t at, Span<const float> part) -> Expected<void> {
    std::copy(part.begin(), part.end(), out.begin() + static_cast<std::ptrdiff_t>(at));
    return {};
  };
  ways.push_back({"slice by slice",
                  [&] { return aggregate_encoded(options, codec, encoded, 1000, values, write).ok(); }});
  ways.push_back({"slice by slice, files",
                  [&] { return aggregate_encoded(options, codec, in_files, 1000, values, write).ok(); }});
  for (int round = 0; round < rounds; ++round)
    for (Way& way : ways) {
      forget_peak();
      const std::uint64_t before = memory_now("VmRSS:");
      const std::clock_t begin = std::clock();
      if (!way.run()) return std::fputs("the aggregation failed\n", stderr), 1;
      way.seconds.push_back(static_cast<double>(std::clock() - begin) / CLOCKS_PER_SEC);
      const std::uint64_t peak = memory_now("VmHWM:");
      way.peak_kib = std::max(way.peak_kib, peak > before ? peak - before : 0);
      if (first.empty()) first = out;
      if (out != first) return std::fputs("the ways differ\n", stderr), 1;
    }
  fmt::print("{} payloads of {} values, {}, one thread, {} rounds, the same bits\n", n, values,
             to_string(codec.codec), rounds);
  fmt::print("| way | ms, median | best | memory above the payloads, MiB |\n|---|---|---|---|\n");
  for (Way& way : ways) {
    std::sort(way.seconds.begin(), way.seconds.end());
    fmt::print("| {} | {:.0f} | {:.0f} | {:.1f} |\n", way.name, 1e3 * way.seconds[way.seconds.size() / 2],
               1e3 * way.seconds[0], static_cast<double>(way.peak_kib) / 1024);
  }
  return 0;
}
