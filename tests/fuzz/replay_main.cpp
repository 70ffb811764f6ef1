// Runs a fuzz entry without libFuzzer:  PROGRAM CORPUS_FOLDER [MUTATIONS [ONLY]]
// First every seed of the corpus as it is, then MUTATIONS seeded mutations of them. The stream is fixed, so a
// failure names the number of the input and `PROGRAM CORPUS MUTATIONS NUMBER` runs that one alone.
#include <signal.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>
#include <vector>

#include "core/base/rng.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size);
// A target that has it demands more of a seed than of any other input.
extern "C" __attribute__((weak)) void check_seed(const std::uint8_t* data, std::size_t size);

namespace {

using Input = std::vector<std::uint8_t>;

constexpr std::size_t max_input_bytes = 1 << 16;
constexpr long default_mutations = 3000;

volatile sig_atomic_t current_input = 0;

// Async-signal-safe: digits by hand, write(2), default action.
void on_crash(int signal_number) {
  char text[] = "crashed on input          0\n";
  long number = current_input;
  for (char* digit = text + sizeof text - 3; number > 0; number /= 10)
    *digit-- = static_cast<char>('0' + number % 10);
  if (write(2, text, sizeof text - 1) < 0) _exit(1);
  signal(signal_number, SIG_DFL);
  raise(signal_number);
}

std::vector<Input> read_corpus(const char* folder) {
  std::vector<std::filesystem::path> paths;
  for (const auto& entry : std::filesystem::directory_iterator(folder)) paths.push_back(entry.path());
  std::sort(paths.begin(), paths.end());
  std::vector<Input> seeds;
  for (const auto& path : paths) {
    std::ifstream file(path, std::ios::binary);
    seeds.emplace_back(std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>());
  }
  return seeds;
}

class Mutator {
 public:
  explicit Mutator(const std::vector<Input>& seeds) : seeds_(seeds) {}

  Input next(neuroshard::Rng& rng) const {
    Input input = seeds_[rng.below(seeds_.size())];
    for (std::uint64_t rounds = 1 + rng.below(4); rounds > 0; --rounds) mutate(input, rng);
    if (input.size() > max_input_bytes) input.resize(max_input_bytes);
    return input;
  }

 private:
  static std::size_t position(const Input& input, neuroshard::Rng& rng) { return rng.below(input.size()); }

  void mutate(Input& input, neuroshard::Rng& rng) const {
    if (input.empty()) {
      input.push_back(static_cast<std::uint8_t>(rng.below(256)));
      return;
    }
    switch (rng.below(8)) {
      case 0: input[position(input, rng)] ^= static_cast<std::uint8_t>(1u << rng.below(8)); break;
      case 1: input[position(input, rng)] = static_cast<std::uint8_t>(rng.below(256)); break;
      case 2: input.resize(position(input, rng)); break;
      case 3: erase(input, rng); break;
      case 4: splice(input, rng); break;
      case 5: overwrite_integer(input, rng); break;
      case 6: replace_digit(input, rng); break;
      default:
        input.insert(input.begin() + static_cast<long>(position(input, rng)), 1 + rng.below(32),
                     interesting_byte(rng));
    }
  }

  static void erase(Input& input, neuroshard::Rng& rng) {
    const std::size_t from = position(input, rng);
    const std::size_t count = std::min<std::size_t>(input.size() - from, 1 + rng.below(64));
    input.erase(input.begin() + static_cast<long>(from), input.begin() + static_cast<long>(from + count));
  }

  // A piece of some seed, over or into this input.
  void splice(Input& input, neuroshard::Rng& rng) const {
    const Input& other = seeds_[rng.below(seeds_.size())];
    if (other.empty()) return;
    const std::size_t from = position(other, rng);
    const std::size_t count = std::min<std::size_t>(other.size() - from, 1 + rng.below(256));
    const Input piece(other.begin() + static_cast<long>(from),
                      other.begin() + static_cast<long>(from + count));
    input.insert(input.begin() + static_cast<long>(position(input, rng)), piece.begin(), piece.end());
  }

  static void overwrite_integer(Input& input, neuroshard::Rng& rng) {
    static constexpr std::array<std::uint64_t, 10> values = {
        0,          1, 0x7f, 0xff, 0x7fffffff, 0xffffffff, 0x80000000, 0x7fffffffffffffff, 0xffffffffffffffff,
        0x100000000};
    const std::uint64_t value = values[rng.below(values.size())];
    const std::size_t width = std::size_t{1} << rng.below(4);
    const std::size_t at = position(input, rng);
    for (std::size_t i = 0; i < width && at + i < input.size(); ++i)
      input[at + i] = static_cast<std::uint8_t>(value >> (8 * i));
  }

  // Numbers in text: sizes, ids and offsets of JSON and TOML.
  static void replace_digit(Input& input, neuroshard::Rng& rng) {
    static constexpr std::array<const char*, 8> numbers = {
        "-1", "0", "99999999999999999999", "1e400", "0.5", "null", "4294967296", "9223372036854775807"};
    const std::size_t start = position(input, rng);
    for (std::size_t i = 0; i < input.size(); ++i) {
      const std::size_t at = (start + i) % input.size();
      if (input[at] < '0' || input[at] > '9') continue;
      const char* number = numbers[rng.below(numbers.size())];
      input.erase(input.begin() + static_cast<long>(at));
      input.insert(input.begin() + static_cast<long>(at), number, number + std::strlen(number));
      return;
    }
  }

  static std::uint8_t interesting_byte(neuroshard::Rng& rng) {
    static constexpr std::array<std::uint8_t, 12> bytes = {0,    1,   0x7f, 0x80, 0xff, '"',
                                                           '\\', '{', '[',  '\n', '0',  '='};
    return bytes[rng.below(bytes.size())];
  }

  const std::vector<Input>& seeds_;
};

}  // namespace

int main(int argc, char** argv) {
  if (argc < 2) {
    std::fprintf(stderr, "usage: %s CORPUS_FOLDER [MUTATIONS [ONLY]]\n", argv[0]);
    return 64;
  }
  const long mutations = argc > 2 ? std::atol(argv[2]) : default_mutations;
  const long only = argc > 3 ? std::atol(argv[3]) : -1;
  for (const int signal_number : {SIGSEGV, SIGABRT, SIGBUS, SIGFPE, SIGILL}) signal(signal_number, on_crash);

  const std::vector<Input> seeds = read_corpus(argv[1]);
  if (seeds.empty()) {
    std::fprintf(stderr, "no seeds in %s\n", argv[1]);
    return 1;
  }
  const Mutator mutator(seeds);
  neuroshard::Rng rng(std::uint64_t{1});
  const long seed_count = static_cast<long>(seeds.size());
  for (long number = 0; number < seed_count + mutations; ++number) {
    const Input input = number < seed_count ? seeds[static_cast<std::size_t>(number)] : mutator.next(rng);
    if (only >= 0 && number != only) continue;
    current_input = static_cast<sig_atomic_t>(number);
    LLVMFuzzerTestOneInput(input.data(), input.size());
    if (number < seed_count && check_seed != nullptr) check_seed(input.data(), input.size());
  }
  std::printf("%ld seeds and %ld mutations, no crash\n", seed_count, mutations);
  return 0;
}
