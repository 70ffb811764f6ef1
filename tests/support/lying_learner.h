// A learner that trains as it should and contributes something else: one of the attacks of core/outer.
//
// The attackers' knowledge: each trains honestly for itself, and all attackers of a network share what they
// would have sent, in a folder. Honest nodes' deltas they do not see (they sign and send before the others'
// are here), so they take their own for a sample: the tuned attacks (ALIE, inner product) rehearse the round
// with as many imagined honest deltas as there are honest nodes, of the sample's mean and deviation by
// coordinate. One attacker alone takes its delta's magnitude for the deviation, which is near the truth where
// honest deltas are nearly orthogonal. The strongest form, which knows all, is a matter of one process:
// core/outer/attack.h.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "core/base/executor.h"
#include "core/outer/attack.h"
#include "core/rounds/learner.h"
#include "core/storage/file_env.h"
#include "core/storage/file_spool.h"

namespace neuroshard::test {

struct LiarOptions {
  outer::Attack attack = outer::Attack::SignFlip;
  std::string folder;                           // of all attackers of the network; there already
  std::string name;                             // of this one, unique, a plain file name
  std::size_t liars = 1;                        // in the network, this one counted
  std::size_t honest = 4;                       // nodes of it
  Duration patience = std::chrono::seconds(2);  // for the other attackers' deltas
};

// The honest nodes' deltas, as far as the attackers can estimate them: `honest` deltas drawn around the
// sample's mean with its deviation by coordinate. sample: at least one delta, all of one size. The same
// sample and seed give the same deltas.
std::vector<std::vector<float>> imagine_honest(const std::vector<std::vector<float>>& sample,
                                               std::size_t honest, std::uint64_t seed);

// training and node outlive it; files too. One line of JSON on standard error for each lie: {"lied": round,
// "attack": …, "knows": deltas of the sample}.  Threads: the node's executor; lies are made on a thread of
// its own.
std::unique_ptr<rounds::RoundLearner> make_lying_learner(rounds::RoundLearner& training, Executor& node,
                                                         storage::FileEnv& files, const LiarOptions& options);

}  // namespace neuroshard::test
