#include "core/control/detail/convert.h"
#include "core/control/detail/convert_parts.h"

namespace neuroshard::control::detail {

void encode(const node::Series& from, wire::SeriesReply* to) {
  to->set_name(from.name);
  for (const node::SeriesBucket& bucket : from.buckets) {
    wire::SeriesBucket* sent = to->add_bucket();
    sent->set_first_step(bucket.first_step);
    sent->set_width(bucket.width);
    sent->set_count(bucket.count);
    sent->set_least(bucket.least);
    sent->set_most(bucket.most);
    sent->set_mean(bucket.mean);
  }
}

node::Series decode(const wire::SeriesReply& from) {
  node::Series to{from.name(), {}};
  for (const wire::SeriesBucket& bucket : from.bucket()) {
    to.buckets.push_back(
        {bucket.first_step(), bucket.width(), bucket.count(), bucket.least(), bucket.most(), bucket.mean()});
  }
  return to;
}

void encode(const node::LogPage& from, wire::LogPage* to) {
  for (const node::LogEntry& entry : from.entries) {
    wire::LogEntry* sent = to->add_entry();
    sent->set_sequence(entry.sequence);
    sent->set_at(to_unix_ms(entry.at));
    sent->set_level(static_cast<std::uint32_t>(entry.record.level));
    sent->set_category(entry.record.category);
    sent->set_message(entry.record.message);
  }
  to->set_next(from.next);
  to->set_more(from.more);
  to->set_dropped(from.dropped);
}

node::LogPage decode(const wire::LogPage& from) {
  node::LogPage to;
  for (const wire::LogEntry& entry : from.entry()) {
    to.entries.push_back({entry.sequence(),
                          wall_time(entry.at()),
                          {small_enum<LogLevel>(entry.level()), entry.category(), entry.message()}});
  }
  to.next = from.next();
  to.more = from.more();
  to.dropped = from.dropped();
  return to;
}

void encode(const node::CheckpointPage& from, wire::CheckpointPage* to) {
  for (const node::CheckpointEntry& entry : from.entries) {
    wire::CheckpointEntry* sent = to->add_entry();
    sent->set_name(entry.name);
    sent->set_step(entry.step);
    sent->set_at(to_unix_ms(entry.at));
    sent->set_bytes(entry.bytes);
    if (entry.loss) sent->set_loss(*entry.loss);
    if (entry.held_out_loss) sent->set_held_out_loss(*entry.held_out_loss);
    sent->set_pinned(entry.pinned);
    sent->set_complete(entry.complete);
  }
  to->set_more(from.more);
}

node::CheckpointPage decode(const wire::CheckpointPage& from) {
  node::CheckpointPage to;
  for (const wire::CheckpointEntry& sent : from.entry()) {
    node::CheckpointEntry entry;
    entry.name = sent.name();
    entry.step = sent.step();
    entry.at = wall_time(sent.at());
    entry.bytes = sent.bytes();
    if (sent.has_loss()) entry.loss = sent.loss();
    if (sent.has_held_out_loss()) entry.held_out_loss = sent.held_out_loss();
    entry.pinned = sent.pinned();
    entry.complete = sent.complete();
    to.entries.push_back(std::move(entry));
  }
  to.more = from.more();
  return to;
}

void encode(const std::vector<node::SettingEntry>& from, wire::SettingList* to) {
  for (const node::SettingEntry& entry : from) {
    wire::Setting* sent = to->add_setting();
    sent->set_name(entry.name);
    sent->set_value(entry.value);
    sent->set_default_value(entry.default_value);
    sent->set_type(entry.type);
    sent->set_help(entry.help);
    sent->set_choices(entry.choices);
    sent->set_origin(entry.origin);
    sent->set_least(entry.least);
    sent->set_most(entry.most);
    sent->set_locked(entry.locked);
  }
}

std::vector<node::SettingEntry> decode(const wire::SettingList& from) {
  std::vector<node::SettingEntry> to;
  for (const wire::Setting& entry : from.setting()) {
    to.push_back({entry.name(), entry.value(), entry.default_value(), entry.type(), entry.help(),
                  entry.choices(), entry.origin(), entry.least(), entry.most(), entry.locked()});
  }
  return to;
}

}  // namespace neuroshard::control::detail
