#include "ui/models/log_feed.h"

#include "ui/bridge/bridge.h"
#include "ui/models/log_model.h"

namespace neuroshard::ui {

LogFeed::LogFeed(Bridge& bridge, LogModel& model, QObject* parent)
    : QObject(parent), bridge_(bridge), model_(model) {
  timer_.setInterval(period);
  connect(&timer_, &QTimer::timeout, this, &LogFeed::tick);
  waiting_.reserve(max_waiting);
}

void LogFeed::start() {
  timer_.start();
  tick();
}

void LogFeed::stop() {
  timer_.stop();
}

void LogFeed::tick() {
  if (!waiting_.empty() || dropped_ > 0) {
    model_.append(waiting_, dropped_);
    waiting_.clear();
    dropped_ = 0;
  }
  ask();
}

void LogFeed::ask() {
  if (asking_ || !bridge_.attached()) return;
  // Another core numbers its lines on its own: a cursor of the one before means nothing there.
  if (const auto snapshot = bridge_.snapshot(); snapshot && snapshot->identity.instance_id != core_) {
    core_ = snapshot->identity.instance_id;
    start_over();
  }
  asking_ = true;
  node::LogQuery query;
  query.after = after_;
  query.limit = node::max_page;
  query.least = LogLevel::Debug;
  bridge_.query<node::LogPage>(
      this,
      [query](node::Node& node, node::Reply<node::LogPage> reply) {
        return node.query_logs(query, std::move(reply));
      },
      [this](const Expected<node::LogPage>& page) { take(page); });
}

void LogFeed::start_over() {
  waiting_.clear();
  dropped_ = 0;
  after_ = 0;
  model_.clear();
}

void LogFeed::take(const Expected<node::LogPage>& page) {
  asking_ = false;
  if (!page.ok()) {
    Q_EMIT failed(QString::fromStdString(page.error().describe()));
    return;
  }
  if (page->next < after_) {
    start_over();  // the core's history was set back
    return;
  }
  // A gap stands before the lines of its page; one of lines that wait is handed over first.
  if (page->dropped > 0 && !waiting_.empty()) {
    model_.append(waiting_, dropped_);
    waiting_.clear();
    dropped_ = 0;
  }
  dropped_ += page->dropped;
  waiting_.insert(waiting_.end(), page->entries.begin(), page->entries.end());
  after_ = page->next;
  if (!page->more)
    Q_EMIT caught_up();
  else if (timer_.isActive() && waiting_.size() + node::max_page <= max_waiting)
    ask();
}

}  // namespace neuroshard::ui
