// bf16 products with fp32 sums, cut into tiles that the OpenMP pool shares out.
//
// Each tile is one single-threaded product of oneDNN (JIT code for vdpbf16ps or AMX) over operands that are
// already in its blocked layout. Cutting them here instead of inside oneDNN lets all experts of a layer be
// one parallel loop, and keeps the number of different products, each of which oneDNN compiles once, small:
// tiles have few different sizes however many rows an expert got.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <tuple>
#include <vector>

#include "core/model/kernels.h"

struct dnnl_engine;  // oneDNN's

namespace neuroshard::model {

// c [rows,N] = a [rows,K] · B, B packed (packed_weight.h). c: bf16 or fp32; AddFp32 adds to it.
struct TileProduct {
  const Bf16* a = nullptr;
  const Bf16* b = nullptr;
  void* c = nullptr;
  std::int64_t rows = 0;
  std::int64_t n = 0;
  std::int64_t k = 0;
};

// c [m,n] += Σ over the parts of a [m,k] · B [k,n], in the parts' order; m at most the height of a tile.
// fp32.
struct TileSum {
  struct Part {
    const Bf16* a = nullptr;
    const Bf16* b = nullptr;
    std::int64_t k = 0;
  };
  std::vector<Part> parts;
  float* c = nullptr;
  std::int64_t m = 0;
  std::int64_t n = 0;
};

class TileProducts {
 public:
  TileProducts();
  ~TileProducts();
  TileProducts(const TileProducts&) = delete;
  TileProducts& operator=(const TileProducts&) = delete;

  // True when oneDNN has compiled code for such products on this processor, rather than its slow reference.
  bool fast();

  // The members of a list are independent of each other. Both throw OutOfMemory.  Threads: one call at a
  // time.
  void multiply(const std::vector<TileProduct>& products, ProductOutput output);
  void add(const std::vector<TileSum>& sums);

 private:
  struct Tile;  // compiled for one size
  struct Task;
  using TileKey = std::tuple<std::int64_t, std::int64_t, std::int64_t, ProductOutput>;

  const Tile& tile(std::int64_t m, std::int64_t n, std::int64_t k, ProductOutput output);
  void add_tasks(const TileProduct& product, ProductOutput output, std::int64_t height,
                 std::vector<Task>& tasks);
  void run(const std::vector<Task>& tasks);

  dnnl_engine* engine_ = nullptr;
  std::map<TileKey, std::unique_ptr<Tile>> tiles_;
};

}  // namespace neuroshard::model
