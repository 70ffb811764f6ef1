// The main function of every test program: runs the class that the first argument names. Exit status: Qt
// Test's (the number of failures), or 64 for a wrong name.
#include <cstdio>
#include <cstring>
#include <map>
#include <string>
#include <vector>

#include "tests/support/test_main.h"

namespace neuroshard::test {
namespace {

std::map<std::string, RunClass>& registry() {
  static std::map<std::string, RunClass> classes;
  return classes;
}

}  // namespace

Registration::Registration(const char* name, RunClass run) {
  if (registry().emplace(name, run).second) return;
  std::fprintf(stderr, "two test classes of this program are called %s\n", name);
  std::abort();
}

}  // namespace neuroshard::test

int main(int argc, char** argv) {
  auto& classes = neuroshard::test::registry();
  const auto named = argc > 1 ? classes.find(argv[1]) : classes.end();
  if (named == classes.end()) {
    std::fprintf(stderr, "usage: %s CLASS [arguments of Qt Test]; the classes are:\n", argv[0]);
    for (const auto& [name, run] : classes) std::fprintf(stderr, "  %s\n", name.c_str());
    return 64;
  }
  std::vector<char*> arguments{argv[0]};
  arguments.insert(arguments.end(), argv + 2, argv + argc);
  arguments.push_back(nullptr);
  return named->second(static_cast<int>(arguments.size()) - 1, arguments.data());
}
