#include "ui/pages/series_feed.h"

#include <algorithm>
#include <cmath>

namespace neuroshard::ui {

SeriesFeed::SeriesFeed(Bridge& bridge, PlotWidget* plot, std::vector<Wanted> wanted, QObject* parent)
    : QObject(parent), bridge_(bridge), plot_(plot), wanted_(std::move(wanted)) {
  pause_.setSingleShot(true);
  pause_.setInterval(period);
  connect(&pause_, &QTimer::timeout, this, [this] {
    if (stale_ || step_ != asked_step_) ask();
  });
  const auto ask_anew = [this] {
    stale_ = true;
    ask();
  };
  connect(plot_->view(), &PlotView::range_changed, this, ask_anew);
  connect(plot_, &PlotWidget::buckets_changed, this, ask_anew);
  // A core that is gone answers no open query; another core has another history.
  connect(&bridge_, &Bridge::attached_changed, this, [this](bool attached) {
    missing_ = 0;
    stale_ = true;
    if (attached) ask();
  });
}

void SeriesFeed::update(std::uint64_t step) {
  if (step < step_) stale_ = true;  // restored: the past is another one
  step_ = step;
  plot_->view()->set_full({0, static_cast<double>(std::max<std::uint64_t>(step, 1))});
  if ((stale_ || step_ != asked_step_) && !pause_.isActive()) ask();
}

void SeriesFeed::start() {
  running_ = true;
  stale_ = true;
  ask();
}

void SeriesFeed::stop() {
  running_ = false;
  pause_.stop();
}

void SeriesFeed::start_over() {
  ++round_;  // an answer on the way is not shown
  missing_ = 0;
  step_ = 0;
  stale_ = true;
  plot_->set_series({});
  plot_->view()->show_all();  // asks if the chart was zoomed
  if (stale_) ask();
}

void SeriesFeed::ask() {
  if (!running_ || missing_ > 0 || !bridge_.attached()) return;
  stale_ = false;
  asked_step_ = step_;
  missing_ = wanted_.size();
  collected_.clear();
  for (const Wanted& one : wanted_) collected_.push_back(one.look);
  ++round_;
  const PlotRange range = plot_->view()->range();
  for (std::size_t i = 0; i < wanted_.size(); ++i) {
    node::SeriesQuery query;
    query.name = wanted_[i].name;
    query.from_step = static_cast<std::uint64_t>(std::max(0.0, std::floor(range.from)));
    query.to_step = plot_->view()->zoomed() ? static_cast<std::uint64_t>(std::ceil(range.to)) + 1 : 0;
    query.buckets = plot_->buckets_wanted();
    bridge_.query<node::Series>(
        this,
        [query](node::Node& node, node::Reply<node::Series> reply) {
          return node.query_series(query, std::move(reply));
        },
        [this, i, round = round_](const Expected<node::Series>& answer) { answered(i, round, answer); });
  }
}

void SeriesFeed::answered(std::size_t series, quint64 round, const Expected<node::Series>& answer) {
  if (round != round_ || missing_ == 0) return;
  // A series that the core does not know yet stays empty; its place in the chart says so.
  if (answer.ok()) collected_[series].points = to_points(*answer);
  if (--missing_ > 0) return;
  plot_->set_series(std::move(collected_));
  collected_.clear();
  if (!running_) return;
  if (stale_)
    ask();  // the range moved on meanwhile
  else
    pause_.start();
}

}  // namespace neuroshard::ui
