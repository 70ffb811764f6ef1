#include "tests/bench/plain_product.h"

#include <oneapi/dnnl/dnnl.hpp>
#include <string>

namespace neuroshard::bench {

Expected<double> plain_bf16_products(std::uint32_t side, std::uint32_t repeats) try {
  const dnnl::engine engine(dnnl::engine::kind::cpu, 0);
  dnnl::stream stream(engine);
  using Memory = dnnl::memory;
  const Memory::desc matrix({side, side}, Memory::data_type::bf16, Memory::format_tag::ab);
  const Memory a(matrix, engine);
  const Memory b(matrix, engine);
  const Memory c(matrix, engine);
  const dnnl::matmul product(dnnl::matmul::primitive_desc({matrix, matrix, matrix}, engine));
  for (const Memory* operand : {&a, &b}) {
    auto* const values = static_cast<std::uint16_t*>(operand->get_data_handle());
    for (std::size_t i = 0; i < std::size_t{side} * side; ++i) values[i] = 0x3f00;  // 0.5
  }
  for (std::uint32_t i = 0; i < repeats; ++i) {
    product.execute(stream, {{DNNL_ARG_SRC, a}, {DNNL_ARG_WEIGHTS, b}, {DNNL_ARG_DST, c}});
  }
  stream.wait();
  return 2.0 * repeats * side * side * side;
} catch (const dnnl::error& failed) {
  return make_error(ErrorCode::Unsupported, std::string("oneDNN: ") + failed.what());
}

}  // namespace neuroshard::bench
