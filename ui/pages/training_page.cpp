#include "ui/pages/training_page.h"

#include <QFileDialog>
#include <QHBoxLayout>
#include <QLabel>
#include <QLineEdit>
#include <QProgressBar>
#include <QPushButton>
#include <QScrollArea>
#include <QSpinBox>
#include <QVBoxLayout>
#include <algorithm>
#include <map>

#include "ui/pages/rounds_cards.h"
#include "ui/pages/series_feed.h"
#include "ui/text/format.h"
#include "ui/theme/theme.h"
#include "ui/widgets/card.h"
#include "ui/widgets/card_grid.h"
#include "ui/widgets/chart_style.h"
#include "ui/widgets/export_button.h"
#include "ui/widgets/plot_panel.h"
#include "ui/widgets/share_bar.h"

namespace neuroshard::ui {
namespace {

constexpr int page_margin = 16, column_width = 330, loss_height = 340, small_height = 240;
constexpr int most_steps = 100'000'000;
constexpr int rounds_ms = 3000;

QString no_parts() {
  return TrainingPage::tr("Shown from the first step on.");
}

}  // namespace

TrainingPage::TrainingPage(const Context& context, QWidget* parent) : Page(context, parent) {
  auto* column = new QVBoxLayout(this);
  column->setContentsMargins(page_margin, 12, page_margin, page_margin);
  column->setSpacing(12);
  sections().add([this, column] { column->addWidget(make_controls()); });
  sections().add([this, column] {
    loss_ = make_panel(tr("Loss"), QStringLiteral("loss"),
                       {{"loss", tr("Training")}, {"val_loss", tr("Held-out text")}});
    loss_->setMinimumHeight(loss_height);
    column->addWidget(loss_);
  });
  sections().add([this, column] {
    rounds_ = new RoundsCards(theme(), bridge(), sections(), this);
    connect(rounds_, &RoundsCards::continuation_decided, this, &TrainingPage::continue_network);
    column->addWidget(rounds_);
    auto* grid = new CardGrid(column_width, this);
    column->addWidget(grid);
    column->addStretch(1);
    sections().add([this, grid] { grid->add(make_breakdown()); });
    plan_small_panels(grid);
  });
  rounds_timer_.setInterval(rounds_ms);
  connect(&rounds_timer_, &QTimer::timeout, this, &TrainingPage::ask_rounds);
  connect(&bridge(), &Bridge::event_received, this, [this](const node::Event& event) {
    if (sections().done() && std::holds_alternative<node::CheckpointsChanged>(event)) ask_checkpoints();
  });
}

void TrainingPage::plan_small_panels(CardGrid* grid) {
  const auto plan = [this, grid](const QString& title, const char* file, const char* series,
                                 const QString& name, QString (*format)(double)) {
    sections().add([=, this] {
      PlotPanel* panel = make_panel(title, QString::fromLatin1(file), {{series, name}});
      panel->set_options({.format_y = format});
      panel->setMinimumHeight(small_height);
      grid->add(panel);
    });
  };
  const auto digits = [](double value) { return Format::significant(value, 3); };
  plan(tr("Learning rate"), "learning-rate", "lr", tr("Learning rate"), digits);
  plan(tr("Gradient norm"), "gradient-norm", "grad_norm", tr("Norm before clipping"), digits);
  plan(tr("Throughput"), "throughput", "tokens_per_s", tr("Tokens per second"),
       [](double value) { return Format::si(value); });
  plan(tr("Time of a step"), "step-time", "step_seconds", tr("Seconds"),
       [](double value) { return Format::seconds(value); });
}

PlotPanel* TrainingPage::make_panel(const QString& title, const QString& file,
                                    const std::vector<std::pair<std::string, QString>>& names) {
  auto* panel = new PlotPanel(theme(), title, file, this);
  panel->plot()->set_empty_text(tr("The curve begins with the first step."));
  std::vector<SeriesFeed::Wanted> wanted;
  for (const auto& [name, text] : names) {
    PlotSeries look;
    look.name = text;
    look.colour = static_cast<int>(feeds_.size() + wanted.size());
    look.band = name != "val_loss" && name != "lr";
    look.smoothed = name == "loss" || name == "tokens_per_s" || name == "grad_norm" || name == "step_seconds";
    look.markers = name == "val_loss";
    wanted.push_back({name, look});
  }
  feeds_.push_back(new SeriesFeed(bridge(), panel->plot(), std::move(wanted), this));
  return panel;
}

Card* TrainingPage::make_controls() {
  auto* card = new Card(tr("Training run"), this);
  auto* row = new QHBoxLayout;
  source_ = new QLineEdit(card);
  source_->setObjectName(QStringLiteral("training_source"));
  source_->setPlaceholderText(tr("Training text: a folder or a file (empty: the data that is here)"));
  source_->setAccessibleName(tr("Folder or file of training text"));
  source_->setMinimumWidth(120);
  folder_ = new QPushButton(theme().icon(QStringLiteral("folder")), tr("Folder …"), card);
  file_ = new QPushButton(theme().icon(QStringLiteral("file")), tr("File …"), card);
  connect(folder_, &QPushButton::clicked, this, &TrainingPage::choose_folder);
  connect(file_, &QPushButton::clicked, this, &TrainingPage::choose_file);
  row->addWidget(source_, 1);
  row->addWidget(folder_);
  row->addWidget(file_);
  card->body()->addLayout(row);
  auto* second = new QHBoxLayout;
  QLabel* caption = make_label(tr("Further steps"), nullptr, card);
  steps_ = new QSpinBox(card);
  steps_->setObjectName(QStringLiteral("training_steps"));
  steps_->setRange(0, most_steps);
  steps_->setSingleStep(100);
  steps_->setSpecialValueText(tr("no end"));
  steps_->setGroupSeparatorShown(true);
  steps_->setMinimumWidth(130);
  steps_->setAccessibleName(tr("Further steps; 0 means no end"));
  caption->setBuddy(steps_);
  start_ = new QPushButton(tr("Start"), card);
  start_->setObjectName(QStringLiteral("training_start"));
  start_->setProperty("role", QStringLiteral("primary"));
  connect(start_, &QPushButton::clicked, this, &TrainingPage::start);
  connect(source_, &QLineEdit::returnPressed, this, [this] {
    if (start_->isEnabled()) start();
  });
  stop_ = new QPushButton(tr("Stop"), card);
  stop_->setObjectName(QStringLiteral("training_stop"));
  stop_->setToolTip(tr("Stops within one step and writes a checkpoint"));
  connect(stop_, &QPushButton::clicked, this, &TrainingPage::stop);
  second->addWidget(caption);
  second->addWidget(steps_);
  second->addStretch(1);
  second->addWidget(start_);
  second->addWidget(stop_);
  card->body()->addLayout(second);
  message_ = make_paragraph({}, "muted", card);
  message_->hide();
  card->body()->addWidget(message_);
  progress_text_ = make_paragraph(tr("No step yet."), "caption", card);
  progress_ = new QProgressBar(card);
  progress_->setObjectName(QStringLiteral("training_progress"));
  progress_->setAccessibleName(tr("Progress to the target"));
  progress_->setTextVisible(false);
  progress_->setRange(0, 1000);
  card->body()->addWidget(progress_text_);
  card->body()->addWidget(progress_);
  return card;
}

Card* TrainingPage::make_breakdown() {
  auto* card = new Card(tr("Where a step's time goes"), this);
  breakdown_ = new ShareBar(theme(), tr("Where a step's time goes"), card);
  breakdown_note_ = make_paragraph(no_parts(), "caption", card);
  card->add_control(new ExportButton(
      theme(), tr("Where a step's time goes"), QStringLiteral("step-time-parts"),
      [this] { return csv_of(breakdown_->parts()); }, [this] { return picture_of(*breakdown_, theme()); },
      card));
  card->body()->addWidget(breakdown_);
  card->body()->addWidget(breakdown_note_);
  card->body()->addStretch(1);
  return card;
}

void TrainingPage::choose_folder() {
  const QString path = QFileDialog::getExistingDirectory(this, tr("Folder of text"), source_->text());
  if (!path.isEmpty()) source_->setText(path);
}

void TrainingPage::choose_file() {
  const QString path = QFileDialog::getOpenFileName(this, tr("File of text"), source_->text(),
                                                    tr("Text (*.txt *.md *.text);;All files (*)"));
  if (!path.isEmpty()) source_->setText(path);
}

void TrainingPage::say(const QString& text, bool bad) {
  set_role(message_, "role", bad ? QStringLiteral("danger") : QStringLiteral("muted"));
  message_->setText(text);
  message_->setVisible(!text.isEmpty());
}

void TrainingPage::start() {
  node::TrainingPlan plan;
  plan.text_path = source_->text().trimmed().toStdString();
  plan.steps = static_cast<std::uint64_t>(steps_->value());
  asking_ = true;
  start_->setEnabled(false);
  say({}, false);
  bridge().run(
      this, [plan](node::Node& node) { return node.start_training(plan); },
      [this](const Expected<node::CommandResult>& outcome) {
        asking_ = false;
        if (!outcome.ok())
          say(tr("Training did not start: %1").arg(QString::fromStdString(outcome.error().message)), true);
        if (bridge().snapshot()) show_controls(*bridge().snapshot());
      });
}

void TrainingPage::stop() {
  asking_ = true;
  stop_->setEnabled(false);
  say(tr("Stopping after this step …"), false);
  bridge().run(
      this, [](node::Node& node) { return node.stop_training(); },
      [this](const Expected<node::CommandResult>& outcome) {
        asking_ = false;
        say(outcome.ok()
                ? QString()
                : tr("Training did not stop: %1").arg(QString::fromStdString(outcome.error().message)),
            !outcome.ok());
        if (bridge().snapshot()) show_controls(*bridge().snapshot());
      });
}

void TrainingPage::shown() {
  shown_ = true;
  for (SeriesFeed* feed : feeds_) feed->start();
  ask_checkpoints();
  ask_rounds();
  rounds_timer_.start();
}

void TrainingPage::hidden() {
  shown_ = false;
  rounds_timer_.stop();
  for (SeriesFeed* feed : feeds_) feed->stop();
}

void TrainingPage::open_detail(const QString& detail) {
  if (detail == QLatin1String("start")) source_->setFocus();
  if (detail == QLatin1String("rounds")) show_rounds();
}

// Brings the rounds into view, in whatever the page is scrolled in.
void TrainingPage::show_rounds() {
  for (QWidget* up = parentWidget(); up != nullptr; up = up->parentWidget()) {
    if (auto* area = qobject_cast<QScrollArea*>(up)) {
      area->ensureVisible(0, rounds_->y() + area->viewport()->height(), 0, 0);
      return;
    }
  }
}

void TrainingPage::ask_checkpoints() {
  if (!shown_ || !bridge().attached()) return;
  node::CheckpointQuery query;
  query.limit = node::max_page;
  bridge().query<node::CheckpointPage>(
      this,
      [query](node::Node& node, node::Reply<node::CheckpointPage> reply) {
        return node.query_checkpoints(query, std::move(reply));
      },
      [this](const Expected<node::CheckpointPage>& page) {
        if (!page.ok()) return;
        checkpoint_marks_ = checkpoint_marks(page->entries);
        show_marks();
      });
}

// Only of a node that takes part: a core that trains for itself has nothing to tell.
void TrainingPage::ask_rounds() {
  const auto snapshot = bridge().snapshot();
  if (asking_rounds_ || !shown_ || !bridge().attached() || !snapshot || !snapshot->rounds.taking_part) return;
  asking_rounds_ = true;
  bridge().query<node::RoundsReport>(
      this,
      [](node::Node& node, node::Reply<node::RoundsReport> reply) {
        return node.query_rounds(std::move(reply));
      },
      [this](const Expected<node::RoundsReport>& report) {
        asking_rounds_ = false;
        if (!report.ok()) return rounds_->show_problem(QString::fromStdString(report.error().message));
        rounds_->show_report(*report, clock().wall_now());
        round_marks_ = round_marks(report->rounds);
        show_marks();
      });
}

void TrainingPage::continue_network(const QStringList& without, const QString& agree) {
  node::ContinuationRequest request;
  for (const QString& id : without) request.without.push_back(id.toStdString());
  request.agree = agree.toStdString();
  bridge().query<node::ContinuationReply>(
      this,
      [request](node::Node& node, node::Reply<node::ContinuationReply> reply) {
        return node.decisions().continue_network(request, std::move(reply));
      },
      [this](const Expected<node::ContinuationReply>& reply) {
        rounds_->show_continuation(reply.ok()
                                       ? tr("The decision is on its way. This node goes on with the others, "
                                            "once all that are left have agreed.")
                                       : QString::fromStdString(reply.error().message));
      });
}

void TrainingPage::show_marks() {
  std::vector<PlotMark> all = checkpoint_marks_;
  all.insert(all.end(), round_marks_.begin(), round_marks_.end());
  loss_->plot()->set_marks(std::move(all));
}

void TrainingPage::start_over() {
  checkpoint_marks_.clear();
  round_marks_.clear();
  show_marks();
  say({}, false);
  breakdown_->set_parts({});
  breakdown_note_->setText(no_parts());
  rounds_->show_report({}, clock().wall_now());
  for (SeriesFeed* feed : feeds_) feed->start_over();
  ask_checkpoints();
  ask_rounds();
}

void TrainingPage::refresh(const node::Snapshot& snapshot) {
  if (is_another_core(snapshot)) start_over();
  show_controls(snapshot);
  const bool first = rounds_->isHidden();
  rounds_->show_snapshot(snapshot, bridge().may_steer());
  if (first) ask_rounds();
  for (SeriesFeed* feed : feeds_) feed->update(snapshot.training.step);
  if (!snapshot.training.last_step) return;
  const node::StepView& step = *snapshot.training.last_step;
  const auto part = [](const QString& name, double seconds) {
    return SharePart{name, seconds, Format::seconds(seconds)};
  };
  breakdown_->set_parts(
      {part(tr("Computing"), step.compute_seconds), part(tr("Optimiser"), step.optimizer_seconds),
       part(tr("Reading data"), step.data_seconds), part(tr("Waiting"), step.waiting_seconds)});
  breakdown_note_->setText(
      tr("Step %1: %2")
          .arg(Format::integer(step.step), Format::seconds(step.compute_seconds + step.optimizer_seconds +
                                                           step.data_seconds + step.waiting_seconds)));
}

void TrainingPage::show_controls(const node::Snapshot& snapshot) {
  const bool may_steer = bridge().may_steer(), can_start = may_steer && can_start_training(snapshot);
  const bool running = snapshot.state == node::RunState::Training || snapshot.state == node::RunState::Paused;
  for (QWidget* widget : {static_cast<QWidget*>(source_), static_cast<QWidget*>(folder_),
                          static_cast<QWidget*>(file_), static_cast<QWidget*>(steps_)})
    widget->setEnabled(can_start);
  start_->setEnabled(can_start && !asking_);
  // A start may read a huge folder, or wait for a publisher that is away.
  const bool starting = snapshot.state == node::RunState::Starting;
  stop_->setEnabled(may_steer && (running || starting) && !asking_);
  const node::TrainingView& training = snapshot.training;
  QString text;
  double share = 0;
  if (snapshot.safe_mode) {
    text = tr("Safe mode: training is off until the core starts normally.");
  } else if (starting) {
    text = training.activity.empty() ? tr("Starting") : QString::fromStdString(training.activity);
    share = training.activity_share;
  } else if (training.target_step > 0) {
    text = tr("Step %1 of %2").arg(Format::integer(training.step), Format::integer(training.target_step));
    share = static_cast<double>(training.step) / static_cast<double>(training.target_step);
    if (training.last_step && training.last_step->step == training.step &&
        snapshot.state == node::RunState::Training && training.target_step > training.step) {
      const double each = training.last_step->compute_seconds + training.last_step->optimizer_seconds +
                          training.last_step->data_seconds + training.last_step->waiting_seconds;
      const auto left = std::chrono::seconds(
          static_cast<std::int64_t>(each * static_cast<double>(training.target_step - training.step)));
      text = tr("%1, about %2 left").arg(text, Format::duration(left));
    }
  } else if (training.step > 0) {
    text = running ? tr("Step %1, no end set").arg(Format::integer(training.step))
                   : tr("%1 step(s) done", nullptr, static_cast<int>(training.step))
                         .arg(Format::integer(training.step));
  } else {
    text = tr("No step yet. Choose a folder or file of text and press Start.");
  }
  if (!training.data_source.empty() && running)
    text = tr("%1, from %2").arg(text, QString::fromStdString(training.data_source));
  progress_text_->setText(text);
  progress_->setVisible(share > 0);
  progress_->setValue(static_cast<int>(std::min(1.0, share) * 1000));
}

}  // namespace neuroshard::ui
