// While it lives: round to nearest, no flushing of subnormals, whatever a library left in this thread.
#pragma once

#include <cfenv>

namespace neuroshard::outer::detail {

class DefaultArithmetic {
 public:
  DefaultArithmetic() {
    std::fegetenv(&before_);
    std::fesetenv(FE_DFL_ENV);
  }
  ~DefaultArithmetic() { std::fesetenv(&before_); }
  DefaultArithmetic(const DefaultArithmetic&) = delete;
  DefaultArithmetic& operator=(const DefaultArithmetic&) = delete;

 private:
  std::fenv_t before_;
};

}  // namespace neuroshard::outer::detail
