#include "ui/pages/checkpoints_page.h"

#include <QHeaderView>
#include <QItemSelectionModel>
#include <QMenu>
#include <QPushButton>
#include <QShortcut>
#include <QSortFilterProxyModel>
#include <QStackedWidget>
#include <QToolButton>
#include <QVBoxLayout>
#include <algorithm>

#include "ui/bridge/bridge.h"
#include "ui/models/checkpoint_model.h"
#include "ui/pages/checkpoint_actions.h"
#include "ui/pages/checkpoint_timeline.h"
#include "ui/pages/evaluation_card.h"
#include "ui/pages/page_body.h"
#include "ui/pages/work_panel.h"
#include "ui/text/format.h"
#include "ui/theme/theme.h"
#include "ui/widgets/banner.h"
#include "ui/widgets/card.h"
#include "ui/widgets/empty_state.h"
#include "ui/widgets/table_view.h"

namespace neuroshard::ui {

CheckpointsPage::CheckpointsPage(const Context& context, QWidget* parent) : Page(context, parent) {
  QVBoxLayout* page_column = make_page_column(this);
  work_ = new WorkPanel(bridge(), theme(), this);
  actions_ = new CheckpointActions(bridge(), theme(), *work_, this);
  sections().add([this, page_column] {
    build_toolbar(page_column);
    undo_ = new Banner(theme(), this);
    undo_->setObjectName(QStringLiteral("undo_banner"));
    undo_->hide();
    page_column->addWidget(undo_);
    page_column->addWidget(work_);
  });
  sections().add([this, page_column] { build_stack(page_column); });
  sections().add([this] {
    build_table(content_);
    connect_signals();
    update_actions();
  });
}

void CheckpointsPage::build_stack(QVBoxLayout* page_column) {
  stack_ = new QStackedWidget(this);
  empty_ = new EmptyState(theme(), icon(), tr("No checkpoints yet"),
                          tr("A checkpoint is a saved state of the model. NeuroShard writes checkpoints "
                             "during training. Here you can restore, compare, check and export them."));
  empty_->set_action(tr("Go to Training"));
  connect(empty_, &EmptyState::action_clicked, this, [this] {
    if (has_model_)
      actions_->save();
    else
      navigate(QStringLiteral("training"), QStringLiteral("start"));
  });
  stack_->addWidget(empty_);
  auto* content = new QWidget;
  content_ = new QVBoxLayout(content);
  content_->setContentsMargins(0, 0, 0, 0);
  content_->setSpacing(2 * grid_step);
  auto* timeline_card = new Card(tr("Timeline"));
  timeline_card->set_caption(tr("by step; filled: the newest, pin: kept, tick: checked, cross: damaged"));
  timeline_ = new CheckpointTimeline(theme());
  timeline_card->body()->addWidget(timeline_);
  content_->addWidget(timeline_card);
  evaluations_ = new EvaluationCard(theme());
  content_->addWidget(evaluations_);
  stack_->addWidget(content);
  page_column->addWidget(stack_, 1);
}

void CheckpointsPage::connect_signals() {
  connect(timeline_, &CheckpointTimeline::selected, this, &CheckpointsPage::choose);
  connect(timeline_, &CheckpointTimeline::activated, this, [this](const QString& name) {
    const int row = model_->row_of(name);
    if (row >= 0 && bridge().may_steer()) actions_->restore(model_->entry(row));
  });
  connect(&bridge(), &Bridge::event_received, this, [this](const node::Event& event) {
    if (std::holds_alternative<node::CheckpointsChanged>(event) ||
        std::holds_alternative<node::CheckpointWritten>(event))
      ask();
  });
  connect(&bridge(), &Bridge::attached_changed, this, [this](bool attached) {
    if (attached && isVisible()) ask();
  });
  connect(work_, &WorkPanel::finished, this, &CheckpointsPage::ask);
  connect(work_, &WorkPanel::long_work_ended, this, [this](const QString& title, const QString& text) {
    if (context().work_ended) context().work_ended(title, text);
  });
  ageing_.setInterval(15'000);
  connect(&ageing_, &QTimer::timeout, this, [this] { model_->set_now(clock().wall_now()); });
}

void CheckpointsPage::build_toolbar(QVBoxLayout* column) {
  auto* bar = new QHBoxLayout;
  bar->setSpacing(grid_step);
  const auto button = [&](const char* object, const QString& text, const QString& tip, auto&& on_click) {
    auto* made = new QPushButton(text, this);
    made->setObjectName(QString::fromLatin1(object));
    made->setToolTip(tip);
    connect(made, &QPushButton::clicked, this, on_click);
    bar->addWidget(made);
    return made;
  };
  save_ = button("save", tr("Save now"), tr("Writes a checkpoint at once"), [this] { actions_->save(); });
  save_->setProperty("role", QStringLiteral("primary"));
  restore_ =
      button("restore", tr("Restore …"), tr("Continues training from the selected checkpoint"), [this] {
        const Entries entries = chosen();
        if (entries.size() == 1) actions_->restore(entries.front());
      });
  verify_ = button("verify", tr("Check"), tr("Reads the whole checkpoint and compares it with its hashes"),
                   [this] { actions_->verify(chosen()); });
  compare_ = button("compare", tr("Compare"), tr("Select two in the table with Ctrl"), [this] {
    const Entries entries = chosen();
    if (entries.size() == 2) actions_->compare(entries[0], entries[1]);
  });
  pin_ = button("pin", tr("Pin"), tr("NeuroShard never removes a pinned checkpoint by itself"), [this] {
    const Entries entries = chosen();
    const bool all = std::all_of(entries.begin(), entries.end(), [](const auto& e) { return e.pinned; });
    actions_->pin(entries, !all);
  });
  more_ = new QToolButton(this);
  more_->setObjectName(QStringLiteral("more"));
  more_->setText(tr("More"));
  more_->setAccessibleName(tr("More actions for checkpoints"));
  more_->setIcon(theme().icon(QStringLiteral("menu"), Token::Text));
  more_->setToolButtonStyle(Qt::ToolButtonTextBesideIcon);
  more_->setPopupMode(QToolButton::InstantPopup);
  more_->setMenu(more_menu());
  bar->addWidget(more_);
  bar->addStretch(1);
  column->addLayout(bar);
}

QMenu* CheckpointsPage::more_menu() {
  auto* menu = new QMenu(this);
  const auto one = [this](auto use) {
    return [this, use] {
      const Entries entries = chosen();
      if (entries.size() == 1) use(entries.front());
    };
  };
  const auto add = [this, menu](const char* object, const QString& icon, const QString& text,
                                auto&& on_click) {
    QAction* action = menu->addAction(theme().icon(icon, Token::Text), text);
    action->setObjectName(QString::fromLatin1(object));
    connect(action, &QAction::triggered, this, on_click);
    return action;
  };
  const auto add_export = [&](const char* object, const QString& text, const QString& format) {
    exports_.push_back(add(object, QStringLiteral("export"), text,
                           one([this, format](const auto& e) { actions_->export_as(e, format); })));
  };
  add_export("export_weights", tr("Export weights (safetensors) …"), QStringLiteral("safetensors"));
  add_export("export_hugging_face", tr("Export for Hugging Face …"), QStringLiteral("huggingface"));
  add_export("export_gguf", tr("Export for llama.cpp (GGUF) …"), QStringLiteral("gguf"));
  add_export("export_gguf_small", tr("Export for llama.cpp, 8 bits per weight …"),
             QStringLiteral("gguf:q8_0"));
  add_export("export_checkpoint", tr("Export the whole checkpoint …"), QStringLiteral("checkpoint"));
  steering_.push_back(add("import", QStringLiteral("import"), tr("Import a checkpoint or model …"),
                          [this] { actions_->import(); }));
  menu->addSeparator();
  const auto add_history = [&](const char* object, const QString& text, const QString& format) {
    steering_.push_back(
        add(object, QStringLiteral("export"), text, [this, format] { actions_->export_history(format); }));
  };
  add_history("export_history_csv", tr("Export the training history (CSV) …"), QStringLiteral("csv"));
  add_history("export_history_jsonl", tr("Export the training history (JSON lines) …"),
              QStringLiteral("jsonl"));
  add_history("export_history_tensorboard", tr("Export the training history for TensorBoard …"),
              QStringLiteral("tensorboard"));
  menu->addSeparator();
  steering_.push_back(add("prune", QStringLiteral("filter"), tr("Remove old checkpoints by a rule …"),
                          [this] { actions_->prune(); }));
  delete_ = add("delete", QStringLiteral("trash"), tr("Delete …"), [this] {
    if (!model_->entries().empty()) actions_->remove(chosen(), model_->entries().front().name);
  });
  return menu;
}

void CheckpointsPage::build_table(QVBoxLayout* column) {
  model_ = new CheckpointModel(this);
  sorted_ = new QSortFilterProxyModel(this);
  sorted_->setSourceModel(model_);
  sorted_->setSortRole(CheckpointModel::SortRole);
  table_card_ = new Card(tr("All checkpoints"));
  table_ = new TableView(tr("Checkpoints"));
  table_->setObjectName(QStringLiteral("checkpoint_table"));
  table_->setModel(sorted_);
  table_->set_file_name(QStringLiteral("checkpoints"));
  table_->setSortingEnabled(true);
  table_->sortByColumn(CheckpointModel::Saved, Qt::DescendingOrder);
  table_->horizontalHeader()->setSectionResizeMode(QHeaderView::ResizeToContents);
  table_->horizontalHeader()->setResizeContentsPrecision(50);
  table_->setMinimumHeight(240);
  table_->setContextMenuPolicy(Qt::CustomContextMenu);
  connect(table_, &QTableView::customContextMenuRequested, this,
          [this](const QPoint& at) { more_->menu()->popup(table_->viewport()->mapToGlobal(at)); });
  connect(table_->selectionModel(), &QItemSelectionModel::selectionChanged, this,
          &CheckpointsPage::update_actions);
  connect(table_, &QTableView::activated, this, [this] { restore_->click(); });
  auto* remove = new QShortcut(QKeySequence::Delete, table_);
  remove->setContext(Qt::WidgetShortcut);
  connect(remove, &QShortcut::activated, this, [this] { delete_->trigger(); });
  QMenu* menu = more_->menu();
  menu->addSeparator();
  menu->addAction(table_->copy_action());
  menu->addAction(table_->export_action());
  connect(menu, &QMenu::aboutToShow, table_, &TableView::update_actions);
  table_card_->body()->addWidget(table_);
  column->addWidget(table_card_, 1);
}

void CheckpointsPage::refresh(const node::Snapshot& snapshot) {
  const bool has_model = snapshot.model.parameters > 0;
  if (has_model != has_model_ || bridge().may_steer() != may_steer_) {
    has_model_ = has_model;
    update_actions();
  }
  show_undo(snapshot.undo);
}

void CheckpointsPage::shown() {
  model_->set_now(clock().wall_now());
  ageing_.start();
  ask();
}

void CheckpointsPage::hidden() {
  ageing_.stop();
}

void CheckpointsPage::open_detail(const QString& name) {
  if (name != QLatin1String("prune")) return choose(name, false);
  if (bridge().may_steer()) actions_->prune();
}

void CheckpointsPage::ask() {
  ask_again_ = asking_;
  if (asking_ || !bridge().attached()) return;
  if (incoming_.empty()) ask_evaluations();
  asking_ = true;
  node::CheckpointQuery query;
  query.limit = node::max_page;
  if (!incoming_.empty()) query.after = incoming_.back().name;
  bridge().query<node::CheckpointPage>(
      this,
      [query](node::Node& node, node::Reply<node::CheckpointPage> reply) {
        return node.query_checkpoints(query, std::move(reply));
      },
      [this](const Expected<node::CheckpointPage>& page) { take(page); });
}

// `neuroshardd eval` adds results from outside of the core, so nothing announces them: asked with the list.
void CheckpointsPage::ask_evaluations() {
  bridge().query<node::EvaluationPage>(
      this,
      [](node::Node& node, node::Reply<node::EvaluationPage> reply) {
        return node.records().query_evaluations({node::max_page}, std::move(reply));
      },
      [this](const Expected<node::EvaluationPage>& page) {
        if (page.ok()) evaluations_->show_entries(page->entries);
      });
}

void CheckpointsPage::take(const Expected<node::CheckpointPage>& page) {
  asking_ = false;
  if (!page.ok()) {
    incoming_.clear();
    table_card_->set_caption(tr("could not be read: %1").arg(QString::fromStdString(page.error().message)));
    return;
  }
  incoming_.insert(incoming_.end(), page->entries.begin(), page->entries.end());
  const bool full = incoming_.size() >= max_shown;
  if (page->more && !full && !page->entries.empty() && !ask_again_) return ask();
  if (ask_again_) {  // the list changed meanwhile
    incoming_.clear();
    return ask();
  }
  std::uint64_t bytes = 0;
  for (const node::CheckpointEntry& entry : incoming_) bytes += entry.bytes;
  const QString count = page->more ? tr("the newest %1").arg(Format::integer(incoming_.size()))
                                   : Format::integer(incoming_.size());
  table_card_->set_caption(tr("%1, together %2").arg(count, Format::bytes(bytes)));
  model_->set_now(clock().wall_now());
  model_->set_entries(std::move(incoming_));
  incoming_.clear();
  show_entries();
}

void CheckpointsPage::show_entries() {
  timeline_->set_entries(model_->entries());
  stack_->setCurrentIndex(model_->entries().empty() ? 0 : 1);
  update_actions();
}

CheckpointsPage::Entries CheckpointsPage::chosen() const {
  QModelIndexList rows = table_->selectionModel()->selectedRows();
  std::sort(rows.begin(), rows.end(), [](const auto& a, const auto& b) { return a.row() < b.row(); });
  Entries entries;
  for (const QModelIndex& row : rows) entries.push_back(model_->entry(sorted_->mapToSource(row).row()));
  return entries;
}

void CheckpointsPage::choose(const QString& name, bool add) {
  const int row = model_->row_of(name);
  if (row < 0) return;
  const QModelIndex at = sorted_->mapFromSource(model_->index(row, 0));
  const auto how =
      (add ? QItemSelectionModel::Select : QItemSelectionModel::ClearAndSelect) | QItemSelectionModel::Rows;
  table_->selectionModel()->setCurrentIndex(at, how);
  table_->scrollTo(at);
}

void CheckpointsPage::update_actions() {
  const Entries entries = chosen();
  const std::size_t count = entries.size();
  const bool all_pinned =
      count > 0 && std::all_of(entries.begin(), entries.end(), [](const auto& e) { return e.pinned; });
  may_steer_ = bridge().may_steer();
  empty_->set_action(!has_model_  ? tr("Go to Training")
                     : may_steer_ ? tr("Save a checkpoint now")
                                  : QString());
  save_->setEnabled(may_steer_);
  restore_->setEnabled(may_steer_ && count == 1 && entries.front().complete);
  verify_->setEnabled(may_steer_ && count >= 1);
  compare_->setEnabled(may_steer_ && count == 2);
  pin_->setEnabled(may_steer_ && count >= 1);
  pin_->setText(all_pinned ? tr("Unpin") : tr("Pin"));
  for (QAction* action : exports_) action->setEnabled(may_steer_ && count == 1);
  for (QAction* action : steering_) action->setEnabled(may_steer_);
  delete_->setEnabled(may_steer_ && count >= 1);
  undo_->setEnabled(may_steer_);
  QStringList names;
  for (const node::CheckpointEntry& entry : entries) names.append(QString::fromStdString(entry.name));
  timeline_->set_selected(names);
}

void CheckpointsPage::show_undo(const node::UndoView& undo) {
  if (undo.checkpoint == undo_shown_) return;
  undo_shown_ = undo.checkpoint;
  undo_->setVisible(!undo.checkpoint.empty());
  if (undo.checkpoint.empty()) return;
  BannerContent content;
  content.tone = Tone::Info;
  content.title = tr("You restored an earlier checkpoint");
  content.text = tr("You can return to step %1 until the next restore: for ten minutes, and for at least 50 "
                    "further steps.")
                     .arg(Format::integer(undo.step));
  content.actions = {{tr("Undo the restore"), [this] { actions_->undo(); }, true}};
  undo_->set_content(content);
}

}  // namespace neuroshard::ui
