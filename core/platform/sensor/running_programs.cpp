#include "core/platform/sensor/running_programs.h"

#include <algorithm>
#include <cctype>
#include <filesystem>
#include <string_view>

#include "core/platform/sensor/detail/small_file.h"

namespace neuroshard::platform {
namespace {

constexpr std::size_t max_processes = 65'536;
constexpr std::size_t kernel_name_length = 15;  // the kernel cuts process names to this

// "Z:\games\Doom.EXE" and "/opt/games/doom" are both "doom".
std::string plain_name(std::string_view text) {
  if (const std::size_t at = text.find_last_of("/\\"); at != std::string_view::npos)
    text.remove_prefix(at + 1);
  std::string name(text);
  std::transform(name.begin(), name.end(), name.begin(), [](unsigned char c) { return std::tolower(c); });
  if (name.size() > 4 && name.compare(name.size() - 4, 4, ".exe") == 0) name.resize(name.size() - 4);
  return name;
}

bool all_digits(const std::string& text) {
  return !text.empty() &&
         std::all_of(text.begin(), text.end(), [](unsigned char c) { return std::isdigit(c); });
}

struct Names {
  std::string process;   // as the kernel keeps it, cut
  std::string argument;  // of the command line's first word
};

Names names_of(const std::filesystem::path& folder) {
  std::string process = detail::read_small_file((folder / "comm").string());
  process = process.substr(0, process.find('\n'));
  const std::string command = detail::read_small_file((folder / "cmdline").string());
  return {plain_name(process), plain_name(std::string_view(command).substr(0, command.find('\0')))};
}

bool fits(const std::string& wanted, const Names& names) {
  return wanted == names.argument || wanted == names.process ||
         (names.process.size() == kernel_name_length && wanted.size() > kernel_name_length &&
          wanted.compare(0, kernel_name_length, names.process) == 0);
}

}  // namespace

std::optional<std::vector<std::string>> running_programs(const std::vector<std::string>& listed,
                                                         const std::string& root) {
  std::error_code failed;
  std::filesystem::directory_iterator folder(root + "/proc", failed);
  if (failed) return std::nullopt;
  std::vector<bool> runs(listed.size());
  std::size_t processes = 0;
  for (; !failed && folder != std::filesystem::directory_iterator(); folder.increment(failed)) {
    if (!all_digits(folder->path().filename().string())) continue;
    if (++processes > max_processes) break;
    const Names names = names_of(folder->path());
    for (std::size_t i = 0; i < listed.size(); ++i) {
      if (!runs[i] && fits(plain_name(listed[i]), names)) runs[i] = true;
    }
  }
  if (processes == 0) return std::nullopt;  // mounted so that other processes are hidden, or not at all
  std::vector<std::string> running;
  for (std::size_t i = 0; i < listed.size(); ++i) {
    if (runs[i]) running.push_back(listed[i]);
  }
  return running;
}

}  // namespace neuroshard::platform
