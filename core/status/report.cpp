#include "core/status/report.h"

#include <algorithm>
#include <cmath>

namespace neuroshard::status {
namespace {

constexpr std::string_view magic = "NSSR";
constexpr std::uint16_t format_version = 1;
constexpr std::size_t head_bytes = 8, fixed_bytes = 148;
constexpr std::uint64_t training_bit = std::uint64_t{1} << 63;
constexpr std::uint32_t no_shard = 0xffffffff;
constexpr double micro = 1e6;

Error corrupt(const char* what) {
  return make_error(ErrorCode::Corrupt, what);
}

template <class Array>
void append_array(Bytes& bytes, const Array& array) {
  bytes.insert(bytes.end(), array.begin(), array.end());
}

// 0 means unknown, so a loss of zero becomes the least value.
std::uint32_t micronats(const std::optional<double>& loss) {
  if (!loss || !std::isfinite(*loss) || *loss < 0) return 0;
  const double rounded = std::round(*loss * micro);
  return static_cast<std::uint32_t>(std::clamp(rounded, 1.0, 4294967295.0));
}

Bytes signed_part(const StatusReport& report) {
  const OwnStatus& status = report.status;
  Bytes bytes(magic.begin(), magic.end());
  bytes.reserve(max_report_bytes);
  append_le(bytes, format_version);
  append_le(bytes, static_cast<std::uint16_t>(report.delegation ? max_report_bytes : plain_report_bytes));
  append_array(bytes, report.key);
  append_le(bytes, to_unix_ms(report.made));
  append_le(bytes, status.round);
  append_array(bytes, status.anchor);
  append_array(bytes, status.previous_anchor);
  append_le(bytes, status.steps | (status.training ? training_bit : 0));
  append_le(bytes, micronats(status.loss));
  append_le(bytes, status.tokens_per_second);
  append_le(bytes, status.contributed);
  append_le(bytes, status.synced);
  append_le(bytes, status.missed);
  append_le(bytes, status.shard.value_or(no_shard));
  if (report.delegation) append_array(bytes, crypto::encode_delegation(*report.delegation));
  return bytes;
}

}  // namespace

StatusReport sign_report(const OwnStatus& status, WallTime made,
                         const std::optional<crypto::Delegation>& delegation, const crypto::KeyPair& node,
                         const Hash256& network) {
  StatusReport report{node.public_key(), made, status, delegation, {}};
  report.status.steps &= ~training_bit;
  const std::uint32_t loss = micronats(status.loss);
  report.status.loss = loss == 0 ? std::nullopt : std::optional<double>(loss / micro);
  if (report.status.shard == no_shard) report.status.shard.reset();
  report.signature = node.sign(crypto::Purpose::StatusReport, network, signed_part(report));
  return report;
}

Bytes encode_report(const StatusReport& report) {
  Bytes bytes = signed_part(report);
  append_array(bytes, report.signature);
  return bytes;
}

Expected<std::size_t> report_length(ByteSpan bytes) {
  if (bytes.size() < head_bytes || as_text(bytes.first(magic.size())) != magic)
    return corrupt("this is not a report of the training's status");
  if (load_le<std::uint16_t>(bytes.data() + 4) > format_version)
    return make_error(ErrorCode::Unsupported, "the report has a newer version; update this program");
  const std::size_t length = load_le<std::uint16_t>(bytes.data() + 6);
  if (load_le<std::uint16_t>(bytes.data() + 4) != format_version ||
      (length != plain_report_bytes && length != max_report_bytes))
    return corrupt("the report has an unknown length or version");
  return length;
}

Expected<StatusReport> decode_report(ByteSpan bytes) {
  NS_ASSIGN_OR_RETURN(const std::size_t length, report_length(bytes));
  if (length != bytes.size()) return corrupt("the report has a wrong length");
  StatusReport report;
  OwnStatus& status = report.status;
  const std::uint8_t* const at = bytes.data();
  std::copy_n(at + 8, report.key.size(), report.key.begin());
  report.made = WallTime(std::chrono::milliseconds(load_le<std::int64_t>(at + 40)));
  status.round = load_le<std::uint64_t>(at + 48);
  std::copy_n(at + 56, status.anchor.size(), status.anchor.begin());
  std::copy_n(at + 88, status.previous_anchor.size(), status.previous_anchor.begin());
  const auto steps = load_le<std::uint64_t>(at + 120);
  status.training = (steps & training_bit) != 0;
  status.steps = steps & ~training_bit;
  if (const auto loss = load_le<std::uint32_t>(at + 128); loss != 0) status.loss = loss / micro;
  status.tokens_per_second = load_le<std::uint32_t>(at + 132);
  status.contributed = load_le<std::uint32_t>(at + 136);
  status.synced = load_le<std::uint16_t>(at + 140);
  status.missed = load_le<std::uint16_t>(at + 142);
  if (status.synced + status.missed > rounds_remembered)
    return corrupt("the report counts more rounds than a node remembers");
  if (const auto shard = load_le<std::uint32_t>(at + 144); shard != no_shard) status.shard = shard;
  std::size_t next = fixed_bytes;
  if (length == max_report_bytes) {
    NS_ASSIGN_OR_RETURN(report.delegation,
                        crypto::decode_delegation(bytes.subspan(next, crypto::delegation_bytes)));
    next += crypto::delegation_bytes;
  }
  std::copy_n(at + next, report.signature.size(), report.signature.begin());
  return report;
}

bool delegation_lasts(const std::optional<crypto::Delegation>& delegation, WallTime now) {
  return !delegation || now < delegation->expires;
}

Expected<void> check_report(const StatusReport& report, const Hash256& network, WallTime now) {
  // Compared with bounds from `now`: an invented date must not overflow.
  if (report.made > now + clock_skew)
    return make_error(ErrorCode::Denied, "the report is from the future; check the clocks");
  if (report.made < now - report_life) return make_error(ErrorCode::Timeout, "the report is too old");
  if (!crypto::verify(report.key, crypto::Purpose::StatusReport, network, signed_part(report),
                      report.signature))
    return make_error(ErrorCode::Denied, "the report is not signed by its node for this network");
  if (!report.delegation) return {};
  // The end of the delegation is looked at apart: a report that was right when it was made is no fault.
  NS_RETURN_IF_ERROR(crypto::check_delegation(*report.delegation, report.key, network, WallTime::min()));
  if (!delegation_lasts(report.delegation, now))
    return make_error(ErrorCode::Timeout, "the report's delegation has expired");
  return {};
}

}  // namespace neuroshard::status
