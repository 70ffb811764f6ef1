#include "core/model/script_companions.h"

#include <utility>

#include "core/base/check.h"

namespace neuroshard::model {

ScriptProgram whole_program(const ScriptStructure& structure) {
  const auto inputs = structure.graph()->inputs();
  return ScriptProgram(structure.extract(structure.operations(), ScriptValues(inputs.begin(), inputs.end()),
                                         structure.results()));
}

std::vector<c10::IValue> copy_arguments(const std::vector<c10::IValue>& arguments) {
  std::vector<c10::IValue> copies;
  for (const c10::IValue& argument : arguments)
    copies.push_back(argument.isTensor() ? c10::IValue(argument.toTensor().clone()) : argument);
  return copies;
}

ScriptCompanions::ScriptCompanions(const ScriptStructure& structure,
                                   const std::vector<c10::IValue>& arguments, std::uint32_t count) {
  for (std::uint32_t i = 0; i < count; ++i) {
    programs_.push_back(whole_program(structure));
    arguments_.push_back(copy_arguments(arguments));
    threads_.push_back(make_thread_executor("companion", 1));
  }
  for (std::uint32_t i = 0; i < count; ++i)
    NS_CHECK(threads_[i]->post([this, i] { work(programs_[i], arguments_[i]); }));
  std::unique_lock<std::mutex> lock(mutex_);
  ran_.wait(lock, [&] { return warm_ == count; });
}

ScriptCompanions::~ScriptCompanions() {
  stop_ = true;
  threads_.clear();  // joins each
}

void ScriptCompanions::work(const ScriptProgram& program, const std::vector<c10::IValue>& arguments) {
  bool first = true;
  const auto warm = [&] {
    if (!std::exchange(first, false)) return;
    const std::lock_guard<std::mutex> lock(mutex_);
    ++warm_;
    ran_.notify_all();
  };
  static_cast<void>(guarded_script("running the model", [&] {
    while (!stop_) {
      std::vector<c10::IValue> stack = copy_arguments(arguments);
      program.run(stack);
      warm();
    }
  }));
  warm();
}

}  // namespace neuroshard::model
