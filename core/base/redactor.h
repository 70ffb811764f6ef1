// Removes from a text everything that must not leave this computer. One redactor serves the log files
// (secrets only) and the diagnostics bundle (secrets and what is personal).
//
//   secrets   named values; wallet words (six or more words of the list in a row); private key blocks;
//             hexadecimal of 32 digits or more and long base64 (tokens, cookies, keys, and with them public
//             ids: they become "<id 1>", the same value the same number); the text after a name such as
//             token, cookie, passphrase; credentials in a web address
//   personal  the home folder (becomes "~"), names of the user and the computer, network addresses, e-mail
//
// When in doubt it redacts: a redacted hash costs a question, a leaked one costs a wallet.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <string>
#include <string_view>
#include <vector>

namespace neuroshard {

// A value type. Threads: one.
class Redactor {
 public:
  struct Options {
    // Is this lower-case word one that wallet phrases are made of? None: phrases are not recognised.
    std::function<bool(std::string_view)> is_wallet_word;
    bool personal = true;
    std::string home, user, host;  // empty: unknown
  };
  static constexpr std::size_t shortest_secret = 4;  // bytes

  explicit Redactor(Options options);

  // A value that must not appear, whatever it looks like. Shorter ones than shortest_secret are ignored: they
  // would take half of the text away.
  void add_secret(std::string value);

  // Any bytes are safe.  Cost: a few passes over the text.
  std::string apply(std::string_view text);

  // How often each kind was taken out so far: "address" → 3.
  const std::map<std::string, std::uint64_t>& counts() const { return counts_; }

 private:
  std::string number(const char* kind, std::string_view value);  // "<id 2>"
  std::string without_named_secrets(std::string_view text);
  std::string without_private_keys(std::string_view text);
  std::string without_assignments(std::string_view text);
  std::string without_credentials(std::string_view text);
  std::string without_wallet_words(std::string_view text);
  std::string without_people(std::string_view text);
  std::string without_long_keys(std::string_view text);
  std::string without_addresses(std::string_view text);

  Options options_;
  std::vector<std::string> secrets_;  // longest first
  std::map<std::string, std::uint64_t> counts_;
  std::map<std::string, std::map<std::string, std::size_t, std::less<>>> numbers_;
};

}  // namespace neuroshard
