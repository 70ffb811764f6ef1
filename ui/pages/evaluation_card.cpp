#include "ui/pages/evaluation_card.h"

#include <QLabel>
#include <QVBoxLayout>
#include <map>

#include "ui/text/format.h"
#include "ui/widgets/plot_panel.h"

namespace neuroshard::ui {
namespace {

constexpr int chart_height = 240;
constexpr int longest_name = 40;  // characters of a file's name

PlotSeries make_series(const QString& name, int colour) {
  PlotSeries series;
  series.name = name;
  series.colour = colour;
  series.markers = true;
  return series;
}

void add_point(PlotSeries& series, std::uint64_t step, double value) {
  series.points.push_back({static_cast<double>(step), value, value, value, 1});
}

// "Cloze: 61 %, n-grams 42 %, chance 25 %"
QString cloze_text(const node::EvaluationEntry& entry) {
  if (entry.cloze_questions == 0 || entry.cloze_choices == 0) return {};
  const auto share = [&](std::uint32_t right) {
    return Format::percent(static_cast<double>(right) / entry.cloze_questions);
  };
  return EvaluationCard::tr("Newest cloze: model %1, n-grams %2, chance %3.")
      .arg(share(entry.model.cloze_right), share(entry.baseline.cloze_right),
           Format::percent(1.0 / entry.cloze_choices));
}

}  // namespace

EvaluationCard::EvaluationCard(const Theme& theme, QWidget* parent)
    : QWidget(parent),
      panel_(new PlotPanel(theme, tr("Evaluations"), QStringLiteral("evaluations"), this)),
      about_(make_paragraph({}, "muted")) {
  auto* column = new QVBoxLayout(this);
  column->setContentsMargins(0, 0, 0, 0);
  column->addWidget(panel_);
  panel_->setObjectName(QStringLiteral("evaluations"));
  panel_->setMinimumHeight(chart_height);
  panel_->set_caption(tr("bits per byte by step; less is better"));
  panel_->body()->addWidget(about_);
  panel_->set_options({.format_y = [](double value) { return Format::significant(value, 4); }});
  hide();
}

void EvaluationCard::show_entries(const std::vector<node::EvaluationEntry>& newest_first) {
  setVisible(!newest_first.empty());
  if (newest_first.empty()) return;
  const node::EvaluationEntry& newest = newest_first.front();
  std::map<std::uint64_t, const node::EvaluationEntry*> by_step;
  for (const node::EvaluationEntry& entry : newest_first)
    if (entry.text_hash == newest.text_hash) by_step.emplace(entry.step, &entry);
  PlotSeries model = make_series(tr("Model"), 0), baseline = make_series(tr("n-grams"), 1);
  for (const auto& [step, entry] : by_step) {
    add_point(model, step, entry->model.bits_per_byte);
    add_point(baseline, step, entry->baseline.bits_per_byte);
  }
  about_->setText(
      tr("Text: %1. %2")
          .arg(Format::middle_elided(QString::fromStdString(newest.text), longest_name), cloze_text(newest)));
  const double last = static_cast<double>(by_step.rbegin()->first);
  panel_->plot()->view()->set_full({0, std::max(last, 1.0)});
  panel_->plot()->set_series({model, baseline});
}

}  // namespace neuroshard::ui
