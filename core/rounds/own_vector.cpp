#include "core/rounds/own_vector.h"

#include <algorithm>
#include <utility>

namespace neuroshard::rounds {
namespace {

constexpr std::uint64_t longest_vector = std::uint64_t{8} << 20;
constexpr Duration retry_pause = std::chrono::seconds(5);

}  // namespace

OwnVector::OwnVector(Services services, const chain::ChainRules& rules, Saved saved, Failed failed)
    : services_(services), rules_(rules), saved_(std::move(saved)), failed_(std::move(failed)) {}

void OwnVector::load() {
  const auto record = services_.store.load(RoundStore::Record::Vector);
  const auto bytes = record.ok() && (*record)->size() <= longest_vector ? read_all(**record) : Bytes();
  if (!bytes.ok()) return;
  // Of a round that is not known yet: rounds have as many rows as round 0, or one less.
  for (std::size_t rows = rules_.rows_of(0).size(), least = std::max<std::size_t>(rows, 2) - 1; rows >= least;
       --rows)
    if (auto vector = chain::decode_vector(*bytes, chain::max_members, rows); vector.ok())
      kept_ = std::move(*vector);
}

void OwnVector::open(const Hash256& opening) {
  opening_ = opening;
  signed_ = false;
  next_try_ = {};
}

const chain::Vector* OwnVector::kept() const {
  return kept_ && kept_->opening == opening_ ? &*kept_ : nullptr;
}

void OwnVector::sign(chain::Vector made) {
  signed_ = true;
  if (kept() == nullptr) {
    chain::sign_vector(made, services_.key, rules_.network);
    kept_ = std::move(made);
  }
  services_.store.save(RoundStore::Record::Vector, in_memory(chain::encode_vector(*kept_)),
                       [this, life = lifetime_.token(), vector = *kept_](const Expected<void>& saved) {
                         if (!life.alive() || vector.opening != opening_) return;
                         if (saved.ok()) return saved_(vector);
                         signed_ = false;  // nobody has seen it, and the round may need it
                         next_try_ = services_.clock.monotonic_now() + retry_pause;
                         failed_(saved.error());
                       });
}

}  // namespace neuroshard::rounds
