// The services that a program lends to core/runtime. Everything here reaches time, randomness, files and the
// log through them, so a test can replace each.
#pragma once

#include <string>

#include "core/base/clock.h"
#include "core/base/log.h"
#include "core/crypto/entropy.h"
#include "core/storage/file_env.h"

namespace neuroshard::runtime {

// A value that is copied; the references outlive every object that gets it.
struct RuntimeServices {
  storage::FileEnv& files;
  crypto::Entropy& entropy;
  const Clock& clock;
  Logger& logger;
  std::string program_version;  // announced to other nodes
};

}  // namespace neuroshard::runtime
