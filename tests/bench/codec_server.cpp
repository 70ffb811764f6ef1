// Our side of tests/bench/compare_codecs.py: encodes and decodes on request. One JSON object a line on
// standard input, one on standard output for each.
//
// hello                     → name, details
// prepare count seed path   → makes values and writes them there as fp32, for the peer
// turn what [codec k]       → seconds of one; what: "memcpy" (the values into another buffer, both warm),
// "encode",
//                             "decode"; bytes: of the payload
#include <cstring>
#include <fstream>
#include <iostream>
#include <nlohmann/json.hpp>

#include "core/base/clock.h"
#include "core/base/rng.h"
#include "core/outer/codec.h"
#include "core/outer/detail/codec_bodies.h"

namespace neuroshard::bench {
namespace {

using nlohmann::json;

class Server {
 public:
  json answer(const json& request) {
    const std::string what = request.at("do");
    if (what == "hello") return {{"name", "ours"}, {"details", outer::detail::best_codec_kernels().name}};
    if (what == "prepare") return prepare(request);
    if (what == "turn") return turn(request);
    return {{"error", "unknown request " + what}};
  }

 private:
  json prepare(const json& request) {
    values_.resize(request.at("count"));
    copy_.assign(values_.size(), 1.0f);
    Rng rng(request.at("seed").get<std::uint64_t>());
    for (float& value : values_) value = rng.normal() * 1e-3f;
    const std::string path = request.at("path");
    std::ofstream file(path, std::ios::binary);
    file.write(reinterpret_cast<const char*>(values_.data()),
               static_cast<std::streamsize>(4 * values_.size()));
    file.close();
    if (!file) return {{"error", path + " can't be written"}};
    return json::object();
  }

  json turn(const json& request) {
    const std::string what = request.at("what");
    if (what == "memcpy") {
      const MonotonicTime start = clock_.monotonic_now();
      std::memcpy(copy_.data(), values_.data(), 4 * values_.size());
      return {{"seconds", seconds_since(start)}, {"bytes", 4 * values_.size()}};
    }
    const auto codec = outer::codec_from_name(request.at("codec").get<std::string>());
    if (!codec.ok()) return {{"error", codec.error().message}};
    const outer::CodecOptions options{*codec, request.value<std::uint16_t>("k", 64)};
    const MonotonicTime start = clock_.monotonic_now();
    auto payload = outer::encode(options, values_);
    const double encoding = seconds_since(start);
    if (!payload.ok()) return {{"error", payload.error().describe()}};
    if (what == "encode") return {{"seconds", encoding}, {"bytes", payload->size()}};
    const MonotonicTime middle = clock_.monotonic_now();
    const auto decoded = outer::decode(*payload, copy_);
    if (!decoded.ok()) return {{"error", decoded.error().describe()}};
    return {{"seconds", seconds_since(middle)}, {"bytes", payload->size()}};
  }

  double seconds_since(MonotonicTime start) const {
    return std::chrono::duration<double>(clock_.monotonic_now() - start).count();
  }

  SystemClock clock_;
  std::vector<float> values_, copy_;
};

}  // namespace
}  // namespace neuroshard::bench

int main() {
  neuroshard::bench::Server server;
  std::string line;
  while (std::getline(std::cin, line)) {
    const auto request = nlohmann::json::parse(line, nullptr, false);
    nlohmann::json answer = {{"error", "not JSON"}};
    if (!request.is_discarded()) answer = server.answer(request);
    std::cout << answer.dump() << std::endl;
  }
}
