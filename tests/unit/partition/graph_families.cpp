#include "tests/unit/partition/graph_families.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "core/base/rng.h"

namespace neuroshard::test {
namespace {

using partition::ComputationGraph;
using partition::GraphNode;

class Builder {
 public:
  Builder(double sigma, double io_ratio, std::uint64_t seed)
      : sigma_(sigma), io_ratio_(io_ratio), rng_(seed) {}

  std::uint32_t add(const char* op, std::vector<std::uint32_t> inputs, double scale = 1) {
    GraphNode node;
    node.id = fmt::format("{}.{}", op, graph_.nodes.size());
    node.op = op;
    node.work = scale * std::exp(sigma_ * static_cast<double>(rng_.normal()) - sigma_ * sigma_ / 2);
    node.output_bytes =
        io_ratio_ * std::exp(sigma_ * static_cast<double>(rng_.normal()) - sigma_ * sigma_ / 2);
    std::sort(inputs.begin(), inputs.end());
    inputs.erase(std::unique(inputs.begin(), inputs.end()), inputs.end());
    node.inputs = std::move(inputs);
    graph_.nodes.push_back(std::move(node));
    return static_cast<std::uint32_t>(graph_.nodes.size() - 1);
  }
  Rng& rng() { return rng_; }
  ComputationGraph take() { return std::move(graph_); }

 private:
  double sigma_, io_ratio_;
  Rng rng_;
  ComputationGraph graph_;
};

}  // namespace

ComputationGraph chain(std::uint32_t n, double sigma, double io_ratio, std::uint64_t seed) {
  Builder b(sigma, io_ratio, seed);
  std::uint32_t last = b.add("layer", {});
  for (std::uint32_t i = 1; i < n; ++i) last = b.add("layer", {last});
  return b.take();
}

ComputationGraph diamond_ladder(std::uint32_t steps, double sigma, double io_ratio, std::uint64_t seed) {
  Builder b(sigma, io_ratio, seed);
  std::uint32_t last = b.add("joint", {});
  for (std::uint32_t i = 0; i < steps; ++i) {
    const std::uint32_t left = b.add("left", {last});
    const std::uint32_t right = b.add("right", {last});
    last = b.add("joint", {left, right});
  }
  return b.take();
}

ComputationGraph transformer_layers(std::uint32_t layers, double sigma, double io_ratio, std::uint64_t seed) {
  Builder b(sigma, io_ratio, seed);
  std::uint32_t x = b.add("embed", {});
  for (std::uint32_t i = 0; i < layers; ++i) {
    const std::uint32_t attention = b.add("attention", {x}, 1);
    x = b.add("sum", {x, attention}, 0.01);
    const std::uint32_t ffn = b.add("ffn", {x}, 2);
    x = b.add("sum", {x, ffn}, 0.01);
  }
  b.add("head", {x}, 2);
  return b.take();
}

ComputationGraph transformer_operators(std::uint32_t layers, double sigma, double io_ratio,
                                       std::uint64_t seed) {
  Builder b(sigma, io_ratio, seed);
  std::uint32_t x = b.add("embed", {});
  for (std::uint32_t i = 0; i < layers; ++i) {
    const std::uint32_t norm = b.add("norm", {x}, 0.05);
    const std::uint32_t q = b.add("rope", {b.add("query", {norm})}, 0.05);
    const std::uint32_t k = b.add("rope", {b.add("key", {norm}, 0.3)}, 0.05);
    const std::uint32_t v = b.add("value", {norm}, 0.3);
    const std::uint32_t p = b.add("softmax", {b.add("scores", {q, k}, 0.5)}, 0.1);
    x = b.add("sum", {x, b.add("output", {b.add("mix", {p, v}, 0.5)})}, 0.02);
    const std::uint32_t norm2 = b.add("norm", {x}, 0.05);
    const std::uint32_t gate = b.add("silu", {b.add("gate", {norm2}, 2)}, 0.05);
    const std::uint32_t product = b.add("product", {gate, b.add("up", {norm2}, 2)}, 0.05);
    x = b.add("sum", {x, b.add("down", {product}, 2)}, 0.02);
  }
  b.add("head", {x}, 4);
  return b.take();
}

ComputationGraph mixture_layers(std::uint32_t layers, double sigma, double io_ratio, std::uint64_t seed) {
  Builder b(sigma, io_ratio, seed);
  std::uint32_t x = b.add("embed", {});
  for (std::uint32_t i = 0; i < layers; ++i) {
    const std::uint32_t attention = b.add("attention", {x}, 2);
    const std::uint32_t router = b.add("router", {attention}, 0.05);
    std::vector<std::uint32_t> parts{attention};
    for (int e = 0; e < 8; ++e) parts.push_back(b.add("expert", {attention, router}, 0.5));
    x = b.add("sum", parts, 0.02);
  }
  b.add("head", {x}, 2);
  return b.take();
}

ComputationGraph inception(std::uint32_t modules, double sigma, double io_ratio, std::uint64_t seed) {
  Builder b(sigma, io_ratio, seed);
  std::uint32_t x = b.add("stem", {});
  for (std::uint32_t i = 0; i < modules; ++i) {
    std::vector<std::uint32_t> ends;
    for (std::uint32_t branch = 0; branch < 4; ++branch) {
      std::uint32_t at = b.add("conv", {x});
      for (std::uint32_t j = 0; j < branch; ++j) at = b.add("conv", {at});
      ends.push_back(at);
    }
    x = b.add("concat", ends, 0.02);
  }
  return b.take();
}

ComputationGraph u_net(std::uint32_t levels, double sigma, double io_ratio, std::uint64_t seed) {
  Builder b(sigma, io_ratio, seed);
  std::vector<std::uint32_t> skips;
  std::uint32_t x = b.add("stem", {});
  for (std::uint32_t i = 0; i < levels; ++i) {
    x = b.add("conv", {b.add("conv", {x})});
    skips.push_back(x);
    x = b.add("down", {x}, 0.1);
  }
  x = b.add("conv", {b.add("conv", {x})});
  for (std::uint32_t i = levels; i-- > 0;) {
    x = b.add("concat", {b.add("up", {x}, 0.3), skips[i]}, 0.02);
    x = b.add("conv", {b.add("conv", {x})});
  }
  return b.take();
}

ComputationGraph layered_random(std::uint32_t n, double sigma, double io_ratio, std::uint64_t seed) {
  Builder b(sigma, io_ratio, seed);
  const auto width = std::max<std::uint32_t>(2, static_cast<std::uint32_t>(std::sqrt(n) / 2));
  for (std::uint32_t v = 0; v < n; ++v) {
    const std::uint32_t layer = v / width;
    std::vector<std::uint32_t> inputs;
    for (std::uint64_t i = layer == 0 ? 0 : 1 + b.rng().below(3); i > 0; --i) {
      const bool near = b.rng().below(5) != 0;
      const std::uint32_t from = near ? layer - 1 : static_cast<std::uint32_t>(b.rng().below(layer));
      inputs.push_back(from * width + static_cast<std::uint32_t>(b.rng().below(width)));
    }
    b.add("op", std::move(inputs));
  }
  return b.take();
}

ComputationGraph random_graph(std::uint32_t n, double density, double io_ratio, std::uint64_t seed) {
  Builder b(0.7, io_ratio, seed);
  for (std::uint32_t v = 0; v < n; ++v) {
    std::vector<std::uint32_t> inputs;
    for (std::uint32_t u = 0; u < v; ++u) {
      if (b.rng().uniform() < density) inputs.push_back(u);
    }
    // Some nodes without work, as reshapes are.
    b.add("op", std::move(inputs), b.rng().below(4) == 0 ? 0 : 1);
  }
  return b.take();
}

std::vector<Family> all_families() {
  std::vector<Family> families;
  std::uint64_t seed = 1;
  const auto add = [&](const char* name, auto make, std::uint32_t size, bool layered) {
    for (const double sigma : {0.0, 0.5, 1.0}) {
      for (const double ratio : {0.01, 0.1, 1.0, 10.0}) {
        families.push_back({fmt::format("{}-{} sigma {} io {}", name, size, sigma, ratio),
                            make(size, sigma, ratio, seed++), layered});
      }
    }
  };
  for (const std::uint32_t n : {64u, 256u, 1024u}) add("chain", chain, n, true);
  add("diamond", diamond_ladder, 40, false);
  for (const std::uint32_t n : {8u, 24u, 64u}) add("transformer", transformer_layers, n, true);
  for (const std::uint32_t n : {8u, 24u}) add("operators", transformer_operators, n, false);
  for (const std::uint32_t n : {8u, 24u}) add("mixture", mixture_layers, n, true);
  add("inception", inception, 12, false);
  add("u-net", u_net, 8, false);
  for (const std::uint32_t n : {50u, 200u}) add("layered", layered_random, n, false);
  return families;
}

}  // namespace neuroshard::test
