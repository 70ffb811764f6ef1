#include "app/node/commands/wallet/wallet_secrets.h"

#include <fmt/format.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <memory>
#include <vector>

#include "core/crypto/keys.h"
#include "core/crypto/mnemonic.h"
#include "core/platform/file/paths.h"
#include "core/platform/process/terminal.h"

namespace neuroshard::app {
namespace {

constexpr int checked_words = 3;
constexpr int tries_per_word = 3;

void wipe_text(std::string& text) {
  crypto::wipe({reinterpret_cast<std::uint8_t*>(text.data()), text.size()});
}

std::string_view without_line_end(std::string_view text) {
  if (!text.empty() && text.back() == '\n') text.remove_suffix(1);
  if (!text.empty() && text.back() == '\r') text.remove_suffix(1);
  return text;
}

std::string passphrase_file(const std::string& flag) {
  return flag.empty() ? platform::process_environment()(passphrase_file_variable) : flag;
}

struct CloseFile {
  void operator()(std::FILE* file) const {
    if (file != stdin) std::fclose(file);
  }
};

Error read_failed(const std::string& path, int reason) {
  const ErrorCode code = reason == ENOENT   ? ErrorCode::NotFound
                         : reason == EACCES ? ErrorCode::Denied
                                            : ErrorCode::Io;
  return make_error(code, fmt::format("can't read {}: {}", path, std::strerror(reason)));
}

// Asks for one word, with a limited number of tries.
bool ask_word(CommandContext& context, std::size_t position, std::string_view expected) {
  for (int i = 0; i < tries_per_word; ++i) {
    auto answer = platform::prompt(fmt::format("Word {}: ", position), false);
    if (!answer.ok()) return false;
    std::string_view typed = without_line_end(*answer);
    while (!typed.empty() && typed.back() == ' ') typed.remove_suffix(1);
    const bool right = typed == expected;
    wipe_text(*answer);
    if (right) return true;
    context.output.note("This word does not match. Check what you wrote down.");
  }
  return false;
}

}  // namespace

bool can_ask(const CommandContext& context) {
  return !context.json && platform::is_terminal(platform::Stream::In);
}

Expected<crypto::Secret> read_secret_file(const std::string& path) {
  const std::unique_ptr<std::FILE, CloseFile> file(path == "-" ? stdin : std::fopen(path.c_str(), "rb"));
  if (!file) return read_failed(path, errno);
  std::setvbuf(file.get(), nullptr, _IONBF, 0);  // no copy of the secret in a buffer of the C library
  crypto::Secret buffer(max_secret_file_bytes + 1);
  const std::size_t size = std::fread(buffer.bytes().data(), 1, buffer.size(), file.get());
  if (std::ferror(file.get()) != 0) return read_failed(path, errno);
  if (size > max_secret_file_bytes) {
    return make_error(ErrorCode::InvalidArgument,
                      fmt::format("{} is too large to be a passphrase, words, a token or a "
                                  "wallet backup",
                                  path));
  }
  return crypto::Secret::copy_of(ByteSpan(buffer.bytes()).first(size));
}

Expected<crypto::Secret> ask_secret(const CommandContext& context, const std::string& question, bool again) {
  if (!can_ask(context)) return make_error(ErrorCode::Unavailable, "there is no terminal to ask on");
  NS_ASSIGN_OR_RETURN(std::string first, platform::prompt(question + ": ", true));
  crypto::Secret secret = crypto::Secret::copy_of(std::string_view(first));
  wipe_text(first);
  if (!again) return secret;
  NS_ASSIGN_OR_RETURN(std::string second, platform::prompt(question + ", again: ", true));
  const bool same = secret.text() == second;
  wipe_text(second);
  if (!same)
    return make_error(ErrorCode::InvalidArgument, "the two answers differ: nothing was changed, try again");
  return secret;
}

bool passphrase_is_given(const std::string& file) {
  return !passphrase_file(file).empty();
}

Expected<crypto::Secret> get_passphrase(const CommandContext& context, const std::string& file,
                                        const std::string& what, bool again) {
  const std::string path = passphrase_file(file);
  if (path.empty()) {
    if (can_ask(context)) return ask_secret(context, what, again);
    return make_error(
        ErrorCode::Denied,
        fmt::format(
            "{} is required, but there is no terminal to ask on: set a file with --passphrase-file or {}",
            what, passphrase_file_variable));
  }
  NS_ASSIGN_OR_RETURN(const crypto::Secret bytes, read_secret_file(path));
  const std::string_view passphrase = without_line_end(bytes.text());
  if (passphrase.empty()) return make_error(ErrorCode::InvalidArgument, fmt::format("{} is empty", path));
  return crypto::Secret::copy_of(passphrase);
}

void show_secret(const CommandContext& context, std::string_view text) {
  if (can_ask(context) && platform::show_on_terminal(text).ok()) return;
  std::setvbuf(stderr, nullptr, _IONBF, 0);
  std::fwrite(text.data(), 1, text.size(), stderr);
}

bool check_words(CommandContext& context, std::string_view words) {
  std::vector<std::string_view> list;
  while (!words.empty()) {
    const std::size_t end = std::min(words.find(' '), words.size());
    list.push_back(words.substr(0, end));
    words.remove_prefix(std::min(end + 1, words.size()));
  }
  NS_CHECK(list.size() == crypto::mnemonic_word_count);
  // Chooses distinct positions in rising order. Each byte of entropy selects within a third of the phrase.
  std::array<std::uint8_t, checked_words> random{};
  context.entropy.fill(random);
  const std::size_t stride = list.size() / checked_words;
  for (std::size_t i = 0; i < random.size(); ++i) {
    const std::size_t position = i * stride + random[i] % stride;
    if (!ask_word(context, position + 1, list[position])) return false;
  }
  return true;
}

}  // namespace neuroshard::app
