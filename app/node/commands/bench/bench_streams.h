// Streams over memory with several threads: the upper bound for reading weights and updating parameters.
#pragma once

#include "app/node/commands/bench/bench_row.h"

namespace neuroshard::app {

// a += s·c over arrays of 96 MiB, in bytes read and written: STREAM's triad (McCalpin 1995) in place, as an
// optimizer works, so that no line is fetched only to be overwritten.
Contender update_contender(unsigned threads);
// The sum of an array of 256 MiB, in bytes read.
Contender read_contender(unsigned threads);

}  // namespace neuroshard::app
