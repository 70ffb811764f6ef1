#include "core/partition/search/genetic_orders.h"

#include <algorithm>
#include <numeric>

#include "core/partition/search/orders.h"

namespace neuroshard::partition {
namespace {

struct Individual {
  std::vector<double> keys;  // nodes, then devices
  double fitness = unlimited;
};

class Evolution {
 public:
  Evolution(const TensorGraph& graph, const std::vector<Device>& devices, const GeneticPlan& plan, Rng* rng)
      : graph_(graph),
        devices_(devices),
        plan_(plan),
        rng_(rng),
        slicer_(graph, devices, plan.stop),
        equal_(
            std::all_of(devices.begin(), devices.end(), [&](const Device& d) { return d == devices[0]; })) {}

  SlicedOrder run(const std::vector<std::vector<NodeIndex>>& seeds);

 private:
  std::size_t key_count() const { return graph_.size() + (equal_ ? 0 : devices_.size()); }
  Individual newcomer() {
    Individual individual;
    for (std::size_t i = 0; i < key_count(); ++i) individual.keys.push_back(rng_->uniform());
    return individual;
  }
  // A seed's order with a little noise, so that the population is not all copies.
  Individual like(const std::vector<NodeIndex>& order, double noise) {
    Individual individual;
    individual.keys = keys_of_order(order);
    for (double& key : individual.keys) key += noise * (rng_->uniform() - 0.5);
    for (std::size_t i = graph_.size(); i < key_count(); ++i) individual.keys.push_back(rng_->uniform());
    return individual;
  }
  Individual child(const Individual& elite, const Individual& other) {
    Individual individual;
    for (std::size_t i = 0; i < key_count(); ++i) {
      individual.keys.push_back(rng_->uniform() < plan_.bias ? elite.keys[i] : other.keys[i]);
    }
    return individual;
  }
  void decode(Individual* individual);

  const TensorGraph& graph_;
  const std::vector<Device>& devices_;
  const GeneticPlan& plan_;
  Rng* rng_;
  Slicer slicer_;
  const bool equal_;
  SlicedOrder best_;
};

void Evolution::decode(Individual* individual) {
  SlicedOrder decoded;
  decoded.order = order_by_keys(graph_, individual->keys);
  if (equal_) {
    decoded.slicing = slicer_.slice(decoded.order, plan_.cap);
  } else {
    std::vector<std::uint32_t> pipeline(devices_.size());
    std::iota(pipeline.begin(), pipeline.end(), 0);
    const double* keys = individual->keys.data() + graph_.size();
    std::sort(pipeline.begin(), pipeline.end(), [&](std::uint32_t a, std::uint32_t b) {
      return keys[a] != keys[b] ? keys[a] < keys[b] : a < b;
    });
    decoded.slicing = slicer_.slice(decoded.order, pipeline, plan_.cap);
  }
  individual->fitness = decoded.slicing.bottleneck;
  if (decoded.slicing.bottleneck < best_.slicing.bottleneck) best_ = std::move(decoded);
}

SlicedOrder Evolution::run(const std::vector<std::vector<NodeIndex>>& seeds) {
  std::vector<Individual> population;
  for (const auto& seed : seeds) population.push_back(like(seed, 0));
  while (population.size() < plan_.population) {
    // Half near a seed, half anywhere.
    if (!seeds.empty() && rng_->below(2) == 0) {
      population.push_back(like(seeds[rng_->below(seeds.size())], 0.1));
    } else {
      population.push_back(newcomer());
    }
  }
  const auto share = [&](double part) {
    return std::max<std::size_t>(1, static_cast<std::size_t>(part * static_cast<double>(population.size())));
  };
  for (std::uint32_t generation = 0; generation <= plan_.generations; ++generation) {
    for (Individual& individual : population) {
      if (plan_.stop && plan_.stop()) return std::move(best_);
      if (individual.fitness == unlimited) decode(&individual);
    }
    std::stable_sort(population.begin(), population.end(),
                     [](const Individual& a, const Individual& b) { return a.fitness < b.fitness; });
    const std::size_t elite = share(plan_.elite), mutants = share(plan_.mutants);
    std::vector<Individual> next(population.begin(), population.begin() + static_cast<std::ptrdiff_t>(elite));
    for (std::size_t i = 0; i < mutants; ++i) next.push_back(newcomer());
    while (next.size() < population.size()) {
      next.push_back(child(population[rng_->below(elite)], population[rng_->below(population.size())]));
    }
    population = std::move(next);
  }
  return std::move(best_);
}

}  // namespace

SlicedOrder evolve_orders(const TensorGraph& graph, const std::vector<Device>& devices,
                          const std::vector<std::vector<NodeIndex>>& seeds, const GeneticPlan& plan,
                          Rng* rng) {
  return Evolution(graph, devices, plan, rng).run(seeds);
}

SlicedOrder best_slicing(const TensorGraph& graph, const std::vector<Device>& devices,
                         const std::vector<std::vector<NodeIndex>>& orders, double cap,
                         const std::function<bool()>& stop) {
  std::vector<std::vector<std::uint32_t>> pipelines(1, std::vector<std::uint32_t>(devices.size()));
  std::iota(pipelines[0].begin(), pipelines[0].end(), 0);
  if (std::any_of(devices.begin(), devices.end(), [&](const Device& d) { return !(d == devices[0]); })) {
    for (const bool fast_first : {true, false}) {
      std::vector<std::uint32_t> pipeline = pipelines[0];
      std::stable_sort(pipeline.begin(), pipeline.end(), [&](std::uint32_t a, std::uint32_t b) {
        const double x = devices[a].work_factor, y = devices[b].work_factor;
        return fast_first ? x < y : x > y;
      });
      pipelines.push_back(pipeline);
    }
  }
  Slicer slicer(graph, devices, stop);
  SlicedOrder best;
  for (const auto& order : orders) {
    for (const auto& pipeline : pipelines) {
      if (best.found() && stop && stop()) return best;
      Slicing slicing = slicer.slice(order, pipeline, std::min(cap, best.slicing.bottleneck));
      if (slicing.bottleneck < best.slicing.bottleneck) best = {order, std::move(slicing)};
    }
  }
  return best;
}

}  // namespace neuroshard::partition
