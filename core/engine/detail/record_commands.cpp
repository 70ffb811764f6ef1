#include "core/engine/detail/record_commands.h"

#include <algorithm>
#include <utility>

#include "core/engine/detail/checkpoint_commands.h"
#include "core/engine/detail/history_queries.h"
#include "core/evaluation/record.h"
#include "core/history/export.h"

namespace neuroshard::engine::detail {
namespace {

node::EvaluationEntry entry_of(const evaluation::Record& from) {
  const auto score = [](const evaluation::Side& side) {
    return node::EvaluationScore{side.loss, side.bits_per_byte, side.cloze_right};
  };
  return {from.at,           from.checkpoint,      from.checkpoint_hash, from.step,
          from.text,         from.text_hash,       from.text_bytes,      from.text_tokens,
          score(from.model), score(from.baseline), from.baseline_text,   from.cloze_questions,
          from.cloze_choices};
}

}  // namespace

Expected<node::CommandId> RecordCommands::export_history(const std::string& format, const std::string& path) {
  NS_ASSIGN_OR_RETURN(const history::ExportFormat parsed, history::parse_export_format(format));
  NS_RETURN_IF_ERROR(check_path(path));
  return files_.accept(
      "exporting the history",
      [this, parsed, path](const FileJobs::Tools& tools) -> Expected<node::CommandResult> {
        TrainingHistory& history = *context_.history;
        history::SeriesSource source;
        source.names = history.series_names();
        source.query = [&history](const std::string& name, std::int64_t from, std::int64_t to) {
          return history.series(name, from, to, history::max_query_buckets);
        };
        NS_RETURN_IF_ERROR(history::export_history(context_.services.files, source, parsed, path,
                                                   context_.services.clock.wall_now(), tools.cancel));
        return node::CommandResult();
      });
}

Expected<void> RecordCommands::query_evaluations(const node::EvaluationQuery& query,
                                                 node::Reply<node::EvaluationPage> reply) {
  NS_RETURN_IF_ERROR(check_limit(query.limit, node::max_page));
  return reader_.ask([this, limit = query.limit, reply = std::move(reply)] {
    reader_.answer(reply, read_evaluations(limit));
  });
}

Expected<node::EvaluationPage> RecordCommands::read_evaluations(std::size_t limit) {
  NS_ASSIGN_OR_RETURN(const evaluation::Records records,
                      evaluation::read_records(context_.services.files, context_.directory.path()));
  node::EvaluationPage page;
  page.more = records.newest.size() > limit;
  for (std::size_t i = 0; i < std::min(limit, records.newest.size()); ++i)
    page.entries.push_back(entry_of(records.newest[i]));
  return page;
}

}  // namespace neuroshard::engine::detail
