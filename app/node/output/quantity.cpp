#include "app/node/output/quantity.h"

#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <cmath>
#include <initializer_list>
#include <utility>

namespace neuroshard::app {
namespace {

using Units = std::initializer_list<std::pair<std::string_view, double>>;

// Parses a number with or without a unit at its end; negative if invalid.
double parse(const std::string& text, const Units& units) {
  std::string number = text;
  double unit = 1;
  for (const auto& [name, factor] : units) {
    if (number.size() <= name.size() || number.substr(number.size() - name.size()) != name) continue;
    number.resize(number.size() - name.size());
    unit = factor;
    break;
  }
  double value = 0;
  if (!CLI::detail::lexical_cast(number, value) || !std::isfinite(value) || !(value > 0)) return -1;
  return value * unit;
}

}  // namespace

Expected<double> parse_bytes(const std::string& flag, const std::string& text) {
  const double value = parse(text, {{"KiB", 1024.},
                                    {"MiB", 1048576.},
                                    {"GiB", 1073741824.},
                                    {"TiB", 1099511627776.},
                                    {"KB", 1e3},
                                    {"MB", 1e6},
                                    {"GB", 1e9},
                                    {"TB", 1e12},
                                    {"B", 1}});
  if (value > 0 && value <= 1e18) return value;
  return make_error(
      ErrorCode::InvalidArgument,
      fmt::format("{} is \"{}\"; give a positive number of bytes like 8e9 or 512MiB", flag, text));
}

Expected<double> parse_operations(const std::string& flag, const std::string& text) {
  const double value = parse(text, {{"M", 1e6}, {"G", 1e9}, {"T", 1e12}, {"P", 1e15}});
  if (value > 0 && value <= 1e24) return value;
  return make_error(ErrorCode::InvalidArgument,
                    fmt::format("{} is \"{}\"; give a positive number like 4e11 or 400G", flag, text));
}

std::string gigabytes(std::uint64_t bytes) {
  std::string text = fmt::format("{:.2f}", static_cast<double>(bytes) / 1e9);
  while (text.back() == '0') text.pop_back();
  if (text.back() == '.') text.pop_back();
  return text + " GB";
}

std::string mebibytes(std::uint64_t bytes) {
  return bytes == 0 ? "—" : fmt::format("{} MiB", bytes >> 20);
}

}  // namespace neuroshard::app
