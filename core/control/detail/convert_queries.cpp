#include "core/base/utf8.h"
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
    // Peers' words and names of files are among them: one of them must not make the page unreadable.
    sent->set_category(valid_utf8(entry.record.category));
    sent->set_message(valid_utf8(entry.record.message));
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

void encode(const node::CheckpointEntry& from, wire::CheckpointEntry* to) {
  to->set_name(from.name);
  to->set_step(from.step);
  to->set_at(to_unix_ms(from.at));
  to->set_bytes(from.bytes);
  if (from.loss) to->set_loss(*from.loss);
  if (from.held_out_loss) to->set_held_out_loss(*from.held_out_loss);
  to->set_pinned(from.pinned);
  to->set_complete(from.complete);
  to->set_hash(from.hash);
  if (from.verified_at) to->set_verified_at(to_unix_ms(*from.verified_at));
  if (from.intact) to->set_intact(*from.intact);
  to->set_parent(from.parent);
}

node::CheckpointEntry decode(const wire::CheckpointEntry& from) {
  node::CheckpointEntry to;
  to.name = from.name();
  to.step = from.step();
  to.at = wall_time(from.at());
  to.bytes = from.bytes();
  if (from.has_loss()) to.loss = from.loss();
  if (from.has_held_out_loss()) to.held_out_loss = from.held_out_loss();
  to.pinned = from.pinned();
  to.complete = from.complete();
  to.hash = from.hash();
  if (from.has_verified_at()) to.verified_at = wall_time(from.verified_at());
  if (from.has_intact()) to.intact = from.intact();
  to.parent = from.parent();
  return to;
}

void encode(const node::CheckpointPage& from, wire::CheckpointPage* to) {
  for (const node::CheckpointEntry& entry : from.entries) encode(entry, to->add_entry());
  to->set_more(from.more);
}

node::CheckpointPage decode(const wire::CheckpointPage& from) {
  node::CheckpointPage to;
  for (const wire::CheckpointEntry& entry : from.entry()) to.entries.push_back(decode(entry));
  to.more = from.more();
  return to;
}

namespace {

void encode_score(const node::EvaluationScore& from, wire::EvaluationScore* to) {
  to->set_loss(from.loss);
  to->set_bits_per_byte(from.bits_per_byte);
  to->set_cloze_right(from.cloze_right);
}

node::EvaluationScore decode_score(const wire::EvaluationScore& from) {
  return {from.loss(), from.bits_per_byte(), from.cloze_right()};
}

}  // namespace

void encode(const node::EvaluationPage& from, wire::EvaluationPage* to) {
  for (const node::EvaluationEntry& entry : from.entries) {
    wire::EvaluationEntry* sent = to->add_entry();
    sent->set_at(to_unix_ms(entry.at));
    sent->set_checkpoint(valid_utf8(entry.checkpoint));
    sent->set_checkpoint_hash(entry.checkpoint_hash);
    sent->set_step(entry.step);
    sent->set_text(valid_utf8(entry.text));  // names of files
    sent->set_text_hash(entry.text_hash);
    sent->set_text_bytes(entry.text_bytes);
    sent->set_text_tokens(entry.text_tokens);
    encode_score(entry.model, sent->mutable_model());
    encode_score(entry.baseline, sent->mutable_baseline());
    sent->set_baseline_text(valid_utf8(entry.baseline_text));
    sent->set_cloze_questions(entry.cloze_questions);
    sent->set_cloze_choices(entry.cloze_choices);
  }
  to->set_more(from.more);
}

node::EvaluationPage decode(const wire::EvaluationPage& from) {
  node::EvaluationPage to;
  for (const wire::EvaluationEntry& entry : from.entry()) {
    to.entries.push_back({wall_time(entry.at()), entry.checkpoint(), entry.checkpoint_hash(), entry.step(),
                          entry.text(), entry.text_hash(), entry.text_bytes(), entry.text_tokens(),
                          decode_score(entry.model()), decode_score(entry.baseline()), entry.baseline_text(),
                          entry.cloze_questions(), entry.cloze_choices()});
  }
  to.more = from.more();
  return to;
}

void encode(const node::PrunePreview& from, wire::PrunePreview* to) {
  for (const std::string& name : from.remove) to->add_remove(name);
  to->set_bytes(from.bytes);
  to->set_kept(from.kept);
}

node::PrunePreview decode(const wire::PrunePreview& from) {
  return {{from.remove().begin(), from.remove().end()}, from.bytes(), from.kept()};
}

void encode(const std::vector<node::SettingEntry>& from, wire::SettingList* to) {
  for (const node::SettingEntry& entry : from) {
    wire::Setting* sent = to->add_setting();
    sent->set_name(entry.name);
    sent->set_value(valid_utf8(entry.value));  // may be a folder
    sent->set_default_value(entry.default_value);
    sent->set_type(entry.type);
    sent->set_help(entry.help);
    sent->set_choices(entry.choices);
    sent->set_origin(entry.origin);
    sent->set_least(entry.least);
    sent->set_most(entry.most);
    sent->set_locked(entry.locked);
    sent->set_title(entry.title);
    sent->set_group(entry.group);
    sent->set_unit(entry.unit);
    sent->set_at_restart(entry.at_restart);
  }
}

std::vector<node::SettingEntry> decode(const wire::SettingList& from) {
  std::vector<node::SettingEntry> to;
  for (const wire::Setting& entry : from.setting()) {
    node::SettingEntry setting;
    setting.name = entry.name();
    setting.value = entry.value();
    setting.default_value = entry.default_value();
    setting.type = entry.type();
    setting.help = entry.help();
    setting.choices = entry.choices();
    setting.origin = entry.origin();
    setting.title = entry.title();
    setting.group = entry.group();
    setting.unit = entry.unit();
    setting.at_restart = entry.at_restart();
    setting.least = entry.least();
    setting.most = entry.most();
    setting.locked = entry.locked();
    to.push_back(std::move(setting));
  }
  return to;
}

}  // namespace neuroshard::control::detail
