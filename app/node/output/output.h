// The output of a command: results on standard output, everything else (progress, notes, errors) on standard
// error.
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <string_view>

#include "core/base/error.h"

namespace neuroshard::app {

// Threads: one at a time.
class Output {
 public:
  // Looks at the terminal once: is standard output or error one, how wide, are colours wanted (NO_COLOR).
  Output();

  // --json: results are objects, one a line; people's lines are dropped.
  void set_json(bool on) { json_ = on; }
  // --quiet: no notes and no progress; results and errors stay.
  void set_quiet(bool on) { quiet_ = on; }
  bool json() const { return json_; }
  // True where a live progress line makes sense: standard error is a terminal, neither --json nor --quiet.
  bool live() const { return stderr_is_terminal_ && !json_ && !quiet_; }
  bool colour() const { return colour_; }
  int width() const { return width_; }  // columns of the terminal; 80 when unknown

  // A result for people: one line on standard output; nothing with --json.
  void line(std::string_view text);
  // A result for machines: one object on one line, flushed; nothing without --json. Bytes that are not UTF-8
  // come out as U+FFFD.
  void json_line(const nlohmann::ordered_json& object);
  // Raw text on standard output, flushed, in both modes: generated tokens, file contents.
  void raw(std::string_view text);
  // A note for people on standard error; nothing with --json or --quiet.
  void note(std::string_view text);
  // The same for programs: one object on standard error with --json, nothing without.
  void json_note(const nlohmann::ordered_json& object);
  // Text that a person must get whatever the flags say, such as the words of a new wallet: standard error, as
  // it is.
  void once(std::string_view text);
  // "neuroshardd: message", or with --json {"error":{"code","message","context"}}; on standard error in both,
  // so that standard output holds results only.
  void error(const Error& error);
  // False once standard output can't be written (the reader went away): long commands stop then.
  bool writable() const { return writable_; }

 private:
  bool json_ = false;
  bool quiet_ = false;
  bool stderr_is_terminal_ = false;
  bool colour_ = false;
  bool writable_ = true;
  int width_ = 80;
};

}  // namespace neuroshard::app
