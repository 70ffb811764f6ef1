#include "ui/pages/overview_page.h"

#include <QHBoxLayout>
#include <QLabel>
#include <QProgressBar>
#include <QPushButton>
#include <QVBoxLayout>
#include <algorithm>

#include "ui/pages/alert_action.h"
#include "ui/pages/series_feed.h"
#include "ui/pages/together_card.h"
#include "ui/text/format.h"
#include "ui/text/state_text.h"
#include "ui/theme/theme.h"
#include "ui/widgets/card.h"
#include "ui/widgets/card_grid.h"
#include "ui/widgets/gauge.h"
#include "ui/widgets/tone.h"

namespace neuroshard::ui {
namespace {

constexpr int column_width = 300, page_margin = 16, state_icon_side = 40, spark_height = 72,
              alert_icon_side = 20;

QString text_of(const std::string& text) {
  return QString::fromStdString(text);
}

}  // namespace

OverviewPage::OverviewPage(const Context& context, QWidget* parent) : Page(context, parent) {
  auto* column = new QVBoxLayout(this);
  column->setContentsMargins(page_margin, 12, page_margin, page_margin);
  grid_ = new CardGrid(column_width, this);
  grid_->add(make_state_card(), 2);
  grid_->add(make_alerts_card());
  grid_->add(make_loss_card());
  grid_->add(make_speed_card());
  grid_->add(make_resources_card());
  grid_->add(make_model_card());
  grid_->add(make_earned_card());
  together_ = new TogetherCard(theme());
  connect(together_, &TogetherCard::rounds_wanted, this,
          [this] { navigate(QStringLiteral("training"), QStringLiteral("rounds")); });
  grid_->add(together_);
  column->addWidget(grid_);
  column->addStretch(1);
  connect(&theme(), &Theme::changed, this, [this] {
    shown_state_.clear();
    shown_alerts_ = QStringLiteral("?");
    if (bridge().snapshot()) refresh(*bridge().snapshot());
  });
}

Card* OverviewPage::make_state_card() {
  auto* card = new Card(tr("This node"));
  auto* row = new QHBoxLayout;
  row->setSpacing(12);
  state_icon_ = new QLabel(card);
  state_icon_->setFixedSize(state_icon_side, state_icon_side);
  row->addWidget(state_icon_, 0, Qt::AlignTop);
  auto* words = new QVBoxLayout;
  words->setSpacing(4);
  state_word_ = make_label(Format::dash(), "page-title", card);
  state_reason_ = make_paragraph(tr("Waiting for the core's first report."), "muted", card);
  state_reason_->setObjectName(QStringLiteral("overview_reason"));
  words->addWidget(state_word_);
  words->addWidget(state_reason_);
  row->addLayout(words, 1);
  start_ = new QPushButton(tr("Start training …"), card);
  start_->setObjectName(QStringLiteral("overview_start"));
  start_->setProperty("role", QStringLiteral("primary"));
  start_->hide();
  connect(start_, &QPushButton::clicked, this,
          [this] { navigate(QStringLiteral("training"), QStringLiteral("start")); });
  row->addWidget(start_, 0, Qt::AlignTop);
  card->body()->addLayout(row);
  activity_ = make_paragraph({}, "caption", card);
  progress_ = new QProgressBar(card);
  progress_->setTextVisible(false);
  progress_->setRange(0, 1000);
  progress_->setAccessibleName(tr("Progress"));
  card->body()->addWidget(activity_);
  card->body()->addWidget(progress_);
  card->body()->addStretch(1);  // the alerts beside it may be long
  return card;
}

Card* OverviewPage::make_loss_card() {
  auto* card = new Card(tr("Loss"));
  auto* facts = new QHBoxLayout;
  loss_ = new Fact(theme(), tr("Training, smoothed"), card);
  held_out_ = new Fact(theme(), tr("Held-out text"), card);
  facts->addWidget(loss_);
  facts->addWidget(held_out_);
  card->body()->addLayout(facts);
  loss_spark_ = new PlotWidget(theme(), tr("Loss so far"), card);
  loss_spark_->set_options({.axes_shown = false});
  loss_spark_->setMinimumHeight(spark_height);
  loss_spark_->set_empty_text(tr("The curve begins with the first step."));
  PlotSeries look;
  look.name = tr("Loss");
  look.smoothed = true;
  loss_feed_ = new SeriesFeed(bridge(), loss_spark_, {{"loss", look}}, this);
  card->body()->addWidget(loss_spark_, 1);
  return card;
}

Card* OverviewPage::make_speed_card() {
  auto* card = new Card(tr("Speed"));
  auto* facts = new QHBoxLayout;
  speed_ = new Fact(theme(), tr("Tokens per second"), card);
  tokens_ = new Fact(theme(), tr("Trained on"), card);
  facts->addWidget(speed_);
  facts->addWidget(tokens_);
  card->body()->addLayout(facts);
  speed_spark_ = new PlotWidget(theme(), tr("Speed so far"), card);
  speed_spark_->set_options({.axes_shown = false});
  speed_spark_->setMinimumHeight(spark_height);
  speed_spark_->set_empty_text(tr("The curve begins with the first step."));
  PlotSeries look;
  look.name = tr("Tokens per second");
  look.colour = 2;
  look.smoothed = true;
  speed_feed_ = new SeriesFeed(bridge(), speed_spark_, {{"tokens_per_s", look}}, this);
  card->body()->addWidget(speed_spark_, 1);
  return card;
}

Card* OverviewPage::make_model_card() {
  auto* card = new Card(tr("My part of the model"));
  parameters_ = new Fact(theme(), tr("Parameters"), card);
  card->body()->addWidget(parameters_);
  slots_ = make_paragraph({}, "muted", card);
  slots_->setObjectName(QStringLiteral("overview_part"));
  card->body()->addWidget(slots_);
  card->body()->addStretch(1);
  auto* more = new QPushButton(tr("Layer map"), card);
  more->setProperty("role", QStringLiteral("link"));
  connect(more, &QPushButton::clicked, this, [this] { navigate(QStringLiteral("network")); });
  card->body()->addWidget(more, 0, Qt::AlignLeft);
  return card;
}

Card* OverviewPage::make_resources_card() {
  auto* card = new Card(tr("Resources"));
  memory_ = new Gauge(theme(), tr("Memory"), card);
  disk_ = new Gauge(theme(), tr("Disk"), card);
  cpu_ = new Gauge(theme(), tr("Processor"), card);
  cpu_->set_warns(false);
  card->body()->addWidget(memory_);
  card->body()->addWidget(disk_);
  card->body()->addWidget(cpu_);
  return card;
}

Card* OverviewPage::make_alerts_card() {
  auto* card = new Card(tr("Alerts"));
  card->setObjectName(QStringLiteral("overview_alerts"));
  alerts_ = new QVBoxLayout;
  alerts_->setSpacing(8);
  card->body()->addLayout(alerts_);
  card->body()->addStretch(1);
  shown_alerts_ = QStringLiteral("?");
  return card;
}

Card* OverviewPage::make_earned_card() {
  auto* card = new Card(tr("Earned"));
  auto* earned = new Fact(theme(), tr("NEURO, today"), card);
  earned->set(Format::dash(), tr("Nothing is paid yet: this version keeps no ledger of work for a network."));
  card->body()->addWidget(earned);
  card->body()->addStretch(1);
  return card;
}

void OverviewPage::shown() {
  loss_feed_->start();
  speed_feed_->start();
}

void OverviewPage::hidden() {
  loss_feed_->stop();
  speed_feed_->stop();
}

void OverviewPage::refresh(const node::Snapshot& snapshot) {
  show_state(snapshot);
  show_learning(snapshot);
  show_model(snapshot);
  together_->show_network(snapshot);
  show_resources(snapshot);
  show_alerts(snapshot);
}

void OverviewPage::show_state(const node::Snapshot& snapshot) {
  const StateText state =
      StateWords::describe(&snapshot, bridge().attached(), context().core_life(), clock().wall_now());
  if (shown_state_ != state.icon) {
    shown_state_ = state.icon;
    state_icon_->setPixmap(
        theme().icon(state.icon, token_of(state.tone)).pixmap(state_icon_side, state_icon_side));
  }
  state_word_->setText(state.word);
  QString reason = state.reasons.isEmpty() ? state.reason : state.reasons.join(QLatin1Char('\n'));
  if (reason.isEmpty() && snapshot.state == node::RunState::Training &&
      !snapshot.training.data_source.empty())
    reason = tr("on %1").arg(text_of(snapshot.training.data_source));
  state_reason_->setText(reason);
  state_reason_->setVisible(!reason.isEmpty());
  start_->setVisible(can_start_training(snapshot) && bridge().may_steer());
  const node::TrainingView& training = snapshot.training;
  QString activity;
  double share = -1;
  if (snapshot.state == node::RunState::Starting && training.activity_share > 0) {
    activity = text_of(training.activity);
    share = training.activity_share;
  } else if (training.target_step > 0) {
    activity = tr("Step %1 of %2").arg(Format::integer(training.step), Format::integer(training.target_step));
    share = static_cast<double>(training.step) / static_cast<double>(training.target_step);
  } else if (training.step > 0) {
    activity = tr("Step %1, no end set").arg(Format::integer(training.step));
  }
  activity_->setText(activity);
  activity_->setVisible(!activity.isEmpty());
  progress_->setVisible(share >= 0);
  if (share >= 0) progress_->setValue(static_cast<int>(std::min(1.0, share) * 1000));
}

void OverviewPage::show_learning(const node::Snapshot& snapshot) {
  const node::TrainingView& training = snapshot.training;
  loss_->set(Format::loss(training.smoothed_loss), tr("nats per token"));
  const QString best = training.best_evaluation_loss
                           ? tr("best %1").arg(Format::loss(training.best_evaluation_loss))
                           : tr("not evaluated yet");
  held_out_->set(training.last_evaluation ? Format::loss(training.last_evaluation->loss) : Format::dash(),
                 best);
  const bool now = snapshot.state == node::RunState::Training && training.last_step.has_value();
  speed_->set(now ? Format::integer(static_cast<std::uint64_t>(training.last_step->tokens_per_second))
                  : Format::dash(),
              now                                          ? QString()
              : snapshot.state == node::RunState::Training ? tr("from the first step on")
                                                           : tr("not training now"));
  tokens_->set(
      training.last_step ? Format::si(static_cast<double>(training.last_step->tokens)) : Format::dash(),
      tr("tokens"));
  loss_feed_->update(training.step);
  speed_feed_->update(training.step);
}

void OverviewPage::show_model(const node::Snapshot& snapshot) {
  const node::ModelView& model = snapshot.model;
  const std::optional<node::PartView>& part = snapshot.rounds.part;
  QString note;
  if (part)
    note = tr("in the whole model");
  else if (model.active_parameters > 0 && model.active_parameters != model.parameters)
    note = tr("%1 work on each token").arg(Format::si(static_cast<double>(model.active_parameters)));
  parameters_->set(model.parameters > 0 ? Format::si(static_cast<double>(model.parameters)) : Format::dash(),
                   note);
  slots_->setText(part ? tr("Part %1 of %2: %3")
                             .arg(part->number)
                             .arg(part->count)
                             .arg(QString::fromStdString(part->holds))
                       : whole_model_text(model));
}

QString OverviewPage::whole_model_text(const node::ModelView& model) {
  if (model.layers == 0) return tr("The map fills once a model is loaded.");
  const QString layers = tr("%n layer(s)", nullptr, static_cast<int>(model.layers));
  const int experts = static_cast<int>(model.layers * model.experts);
  if (experts == 0) return tr("All of it: embedding, %1, and the head").arg(layers);
  return tr("All of it: embedding, %1, %2, and the head").arg(layers, tr("%n expert(s)", nullptr, experts));
}

void OverviewPage::show_resources(const node::Snapshot& snapshot) {
  const node::ResourceView& resources = snapshot.resources;
  const auto share = [](std::uint64_t part, std::uint64_t whole) -> std::optional<double> {
    if (whole == 0) return std::nullopt;
    return static_cast<double>(part) / static_cast<double>(whole);
  };
  const std::uint64_t limit =
      resources.memory_limit_bytes != 0 ? resources.memory_limit_bytes : resources.memory_total_bytes;
  memory_->set(resources.resident_bytes > 0 ? Format::bytes(resources.resident_bytes) : Format::dash(),
               share(resources.resident_bytes, limit),
               limit == 0                          ? tr("no limit")
               : resources.memory_limit_bytes != 0 ? tr("of %1 that you allow").arg(Format::bytes(limit))
                                                   : tr("of %1 in this machine").arg(Format::bytes(limit)));
  disk_->set(resources.directory_bytes > 0 ? Format::bytes(resources.directory_bytes) : Format::dash(),
             resources.directory_bytes > 0
                 ? share(resources.directory_bytes, resources.directory_bytes + resources.disk_free_bytes)
                 : std::nullopt,
             resources.disk_free_bytes > 0 ? tr("%1 free").arg(Format::bytes(resources.disk_free_bytes))
                                           : QString());
  cpu_->set(resources.cpu_share ? Format::percent(*resources.cpu_share) : Format::dash(), resources.cpu_share,
            snapshot.compute.threads > 0
                ? tr("%n thread(s) allowed", nullptr, static_cast<int>(snapshot.compute.threads))
                : QString());
}

void OverviewPage::show_alerts(const node::Snapshot& snapshot) {
  QString now;
  for (const node::Alert& alert : snapshot.alerts)
    now += text_of(alert.key) + QLatin1Char('\n') + text_of(alert.message) + QLatin1Char('\n');
  if (now != shown_alerts_) {
    shown_alerts_ = now;
    make_alerts(snapshot.alerts);
  }
  // An alert that stays becomes older.
  for (std::size_t i = 0; i < std::min(alert_ages_.size(), snapshot.alerts.size()); ++i) {
    const WallTime since = snapshot.alerts[i].since;
    alert_ages_[i]->setText(Format::ago(since, clock().wall_now()));
    alert_ages_[i]->setToolTip(Format::date_time(since));
    alert_ages_[i]->setVisible(to_unix_ms(since) > 0);
  }
}

void OverviewPage::make_alerts(const std::vector<node::Alert>& alerts) {
  alert_ages_.clear();
  while (QLayoutItem* item = alerts_->takeAt(0)) {
    delete item->widget();
    delete item;
  }
  if (alerts.empty()) alerts_->addWidget(make_paragraph(tr("Nothing needs attention."), "muted"));
  for (const node::Alert& alert : alerts) alerts_->addWidget(make_alert(alert));
}

QWidget* OverviewPage::make_alert(const node::Alert& alert) {
  auto* line = new QWidget;
  auto* row = new QHBoxLayout(line);
  row->setContentsMargins(0, 0, 0, 0);
  auto* icon = new QLabel(line);
  const Tone tone = StateWords::tone(alert.severity);
  icon->setPixmap(theme().icon(icon_of(tone), token_of(tone)).pixmap(alert_icon_side, alert_icon_side));
  icon->setToolTip(StateWords::severity(alert.severity));
  row->addWidget(icon, 0, Qt::AlignTop);
  auto* words = new QVBoxLayout;
  words->setSpacing(2);
  words->addWidget(make_paragraph(
      tr("%1: %2").arg(StateWords::severity(alert.severity), text_of(alert.message)), nullptr, line));
  auto* foot = new QHBoxLayout;
  const AlertAction action = alert_action(text_of(alert.key));
  if (!action.page.isEmpty()) {
    auto* button = new QPushButton(action.text, line);
    button->setProperty("role", QStringLiteral("link"));
    button->setAccessibleDescription(text_of(alert.message));
    connect(button, &QPushButton::clicked, this, [this, action] { navigate(action.page, action.detail); });
    foot->addWidget(button);
  }
  alert_ages_.push_back(make_label({}, "caption", line));
  alert_ages_.back()->setObjectName(QStringLiteral("alert_age"));
  foot->addWidget(alert_ages_.back());
  foot->addStretch(1);
  words->addLayout(foot);
  row->addLayout(words, 1);
  return line;
}

}  // namespace neuroshard::ui
