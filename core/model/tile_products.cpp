#include "core/model/tile_products.h"

#include <dnnl.h>
#include <omp.h>

#include <algorithm>
#include <atomic>
#include <cstring>
#include <new>

#include "core/model/tensors.h"

namespace neuroshard::model {
namespace {

// Rows of a tile: higher tiles read the packed operand less often, lower ones share out better. A remainder
// is cut into halves, so that few sizes exist.
constexpr std::int64_t tile_heights[] = {256, 128, 64};
constexpr std::int64_t tiles_per_thread = 4;
std::int64_t round_up(std::int64_t value, std::int64_t unit) {
  return (value + unit - 1) / unit * unit;
}

void check(dnnl_status_t status) {
  if (status != dnnl_success) throw std::bad_alloc();
}

// Frees a handle of oneDNN at the end of a scope.
template <class Handle, dnnl_status_t (*Destroy)(Handle)>
struct Guard {
  Handle handle = nullptr;
  Guard() = default;
  Guard(const Guard&) = delete;
  Guard& operator=(const Guard&) = delete;
  ~Guard() {
    if (handle != nullptr) Destroy(handle);
  }
};
using Attributes = Guard<dnnl_primitive_attr_t, dnnl_primitive_attr_destroy>;
using PostOps = Guard<dnnl_post_ops_t, dnnl_post_ops_destroy>;
using Description = Guard<dnnl_primitive_desc_t, dnnl_primitive_desc_destroy>;
using Stream = Guard<dnnl_stream_t, dnnl_stream_destroy>;
using Memory = Guard<dnnl_memory_t, dnnl_memory_destroy>;

// oneDNN compiles for the number of threads that OpenMP would use at that moment.
class OneThread {
 public:
  OneThread() : before_(omp_get_max_threads()) { omp_set_num_threads(1); }
  OneThread(const OneThread&) = delete;
  OneThread& operator=(const OneThread&) = delete;
  ~OneThread() { omp_set_num_threads(before_); }

 private:
  int before_;
};

}  // namespace

struct TileProducts::Tile {
  dnnl_primitive_t primitive = nullptr;
  dnnl_memory_desc_t a{};
  dnnl_memory_desc_t b{};
  dnnl_memory_desc_t c{};
  dnnl_memory_desc_t scratch{};
  std::size_t scratch_bytes = 0;
  bool compiled = false;  // by oneDNN for this processor
  Tile() = default;
  Tile(const Tile&) = delete;
  Tile& operator=(const Tile&) = delete;
  ~Tile() {
    if (primitive != nullptr) dnnl_primitive_destroy(primitive);
  }

  // False when oneDNN fails.
  bool run(dnnl_engine_t engine, dnnl_stream_t stream, const Bf16* a_data, const Bf16* b_data, void* c_data,
           void* scratch_data) const {
    Memory memory[4];
    const auto wrap = [&](Memory& target, const dnnl_memory_desc_t& layout, const void* data) {
      return dnnl_memory_create(&target.handle, &layout, engine, const_cast<void*>(data)) == dnnl_success;
    };
    if (!wrap(memory[0], a, a_data) || !wrap(memory[1], b, b_data) || !wrap(memory[2], c, c_data) ||
        !wrap(memory[3], scratch, scratch_data)) {
      return false;
    }
    const dnnl_exec_arg_t arguments[] = {{DNNL_ARG_SRC, memory[0].handle},
                                         {DNNL_ARG_WEIGHTS, memory[1].handle},
                                         {DNNL_ARG_DST, memory[2].handle},
                                         {DNNL_ARG_SCRATCHPAD, memory[3].handle}};
    return dnnl_primitive_execute(primitive, stream, 4, arguments) == dnnl_success;
  }
};

// A run of tiles that add to one result, in order.
struct TileProducts::Task {
  struct Part {
    const Tile* tile = nullptr;
    const Bf16* a = nullptr;
    const Bf16* b = nullptr;
  };
  std::vector<Part> parts;
  void* c = nullptr;
};

TileProducts::TileProducts() {
  check(dnnl_engine_create(&engine_, dnnl_cpu, 0));
}

TileProducts::~TileProducts() {
  tiles_.clear();
  dnnl_engine_destroy(engine_);
}

bool TileProducts::fast() {
  return tile(64, 64, 64, ProductOutput::Bf16).compiled && tile(64, 64, 64, ProductOutput::AddFp32).compiled;
}

const TileProducts::Tile& TileProducts::tile(std::int64_t m, std::int64_t n, std::int64_t k,
                                             ProductOutput output) {
  std::unique_ptr<Tile>& slot = tiles_[TileKey(m, n, k, output)];
  if (slot != nullptr) return *slot;
  const OneThread one;
  auto fresh = std::make_unique<Tile>();
  const auto describe = [](dnnl_memory_desc_t& target, std::int64_t rows, std::int64_t columns,
                           dnnl_data_type_t type, dnnl_format_tag_t tag) {
    const dnnl_dims_t dims = {rows, columns};
    check(dnnl_memory_desc_init_by_tag(&target, 2, dims, type, tag));
  };
  describe(fresh->a, m, k, dnnl_bf16, dnnl_ab);
  describe(fresh->b, k, n, dnnl_bf16, dnnl_BA16a64b2a);
  describe(fresh->c, m, n, output == ProductOutput::Bf16 ? dnnl_bf16 : dnnl_f32, dnnl_ab);
  Attributes attributes;
  check(dnnl_primitive_attr_create(&attributes.handle));
  check(dnnl_primitive_attr_set_scratchpad_mode(attributes.handle, dnnl_scratchpad_mode_user));
  PostOps sum;
  if (output == ProductOutput::AddFp32) {
    check(dnnl_post_ops_create(&sum.handle));
    check(dnnl_post_ops_append_sum(sum.handle, 1.0f));
    check(dnnl_primitive_attr_set_post_ops(attributes.handle, sum.handle));
  }
  dnnl_matmul_desc_t product{};
  check(dnnl_matmul_desc_init(&product, &fresh->a, &fresh->b, nullptr, &fresh->c));
  Description description;
  check(dnnl_primitive_desc_create(&description.handle, &product, attributes.handle, engine_, nullptr));
  const char* name = nullptr;
  check(dnnl_primitive_desc_query(description.handle, dnnl_query_impl_info_str, 0, &name));
  fresh->compiled = std::strncmp(name, "brg", 3) == 0;
  fresh->scratch = *dnnl_primitive_desc_query_md(description.handle, dnnl_query_scratchpad_md, 0);
  fresh->scratch_bytes = dnnl_memory_desc_get_size(&fresh->scratch);
  check(dnnl_primitive_create(&fresh->primitive, description.handle));
  slot = std::move(fresh);
  return *slot;
}

void TileProducts::add_tasks(const TileProduct& product, ProductOutput output, std::int64_t height,
                             std::vector<Task>& tasks) {
  const std::int64_t element = output == ProductOutput::Bf16 ? sizeof(Bf16) : sizeof(float);
  for (std::int64_t first = 0; first < product.rows;) {
    while (first + height > product.rows) height /= 2;
    tasks.push_back(
        {{{&tile(height, product.n, product.k, output), product.a + first * product.k, product.b}},
         static_cast<char*>(product.c) + first * product.n * element});
    first += height;
  }
}

void TileProducts::run(const std::vector<Task>& tasks) {
  std::size_t scratch_bytes = 0;
  for (const Task& task : tasks) {
    for (const Task::Part& part : task.parts)
      scratch_bytes = std::max(scratch_bytes, part.tile->scratch_bytes);
  }
  const auto stride = round_up(static_cast<std::int64_t>(scratch_bytes), 64);
  const at::Tensor scratch = make_bytes({omp_get_max_threads() * stride});
  char* const scratch_data = static_cast<char*>(scratch.data_ptr());
  const auto count = static_cast<std::int64_t>(tasks.size());
  std::atomic<bool> failed{false};
#pragma omp parallel if (count > 1)
  {
    Stream stream;
    if (dnnl_stream_create(&stream.handle, engine_, dnnl_stream_default_flags) != dnnl_success) failed = true;
    char* const own = scratch_data + omp_get_thread_num() * stride;
#pragma omp for schedule(dynamic)
    for (std::int64_t i = 0; i < count; ++i) {
      if (failed.load(std::memory_order_relaxed)) continue;
      const Task& task = tasks[static_cast<std::size_t>(i)];
      for (const Task::Part& part : task.parts) {
        if (!part.tile->run(engine_, stream.handle, part.a, part.b, task.c, own)) failed = true;
      }
    }
  }
  if (failed) throw std::bad_alloc();
}

void TileProducts::multiply(const std::vector<TileProduct>& products, ProductOutput output) {
  std::int64_t rows = 0;
  for (const TileProduct& product : products) rows += product.rows;
  std::int64_t height = 0;
  for (const std::int64_t candidate : tile_heights) {
    height = candidate;
    if (rows / candidate >= tiles_per_thread * omp_get_max_threads()) break;
  }
  std::vector<Task> tasks;
  for (const TileProduct& product : products) add_tasks(product, output, height, tasks);
  if (!tasks.empty()) run(tasks);
}

void TileProducts::add(const std::vector<TileSum>& sums) {
  std::vector<Task> tasks;
  tasks.reserve(sums.size());
  for (const TileSum& sum : sums) {
    Task task;
    task.c = sum.c;
    for (const TileSum::Part& part : sum.parts) {
      task.parts.push_back({&tile(sum.m, sum.n, part.k, ProductOutput::AddFp32), part.a, part.b});
    }
    tasks.push_back(std::move(task));
  }
  if (!tasks.empty()) run(tasks);
}

}  // namespace neuroshard::model
