#include "ui/pages/data_page.h"

#include <QGridLayout>
#include <QHeaderView>
#include <QLabel>
#include <QProgressBar>
#include <QSortFilterProxyModel>
#include <QVBoxLayout>

#include "ui/bridge/bridge.h"
#include "ui/models/shard_model.h"
#include "ui/pages/page_body.h"
#include "ui/pages/tokenizer_card.h"
#include "ui/text/format.h"
#include "ui/theme/theme.h"
#include "ui/widgets/card.h"
#include "ui/widgets/card_grid.h"
#include "ui/widgets/chart_style.h"
#include "ui/widgets/donut.h"
#include "ui/widgets/empty_state.h"
#include "ui/widgets/export_button.h"
#include "ui/widgets/table_view.h"

namespace neuroshard::ui {
namespace {

constexpr int column_width = 320;

// A value beside what it is; the value can be selected with the mouse.
QLabel* fact(QGridLayout* grid, const QString& what, const char* object) {
  const int row = grid->rowCount();
  auto* name = make_label(what, "muted");
  auto* value = make_paragraph(Format::dash());
  value->setObjectName(QString::fromLatin1(object));
  value->setTextInteractionFlags(Qt::TextSelectableByMouse);
  value->setAccessibleName(what);
  grid->addWidget(name, row, 0, Qt::AlignTop);
  grid->addWidget(value, row, 1);
  grid->setColumnStretch(1, 1);
  return value;
}

QString tokens(std::uint64_t count) {
  return count == 0 ? Format::dash() : DataPage::tr("%1 tokens").arg(Format::si(static_cast<double>(count)));
}

QString or_dash(const std::string& text) {
  return text.empty() ? Format::dash() : QString::fromStdString(text);
}

}  // namespace

DataPage::DataPage(const Context& context, QWidget* parent) : Page(context, parent) {
  QVBoxLayout* page_column = make_page_column(this);
  auto* empty = new EmptyState(theme(), icon(), tr("No training text yet"),
                               tr("Choose a folder or file of text on the Training page. NeuroShard splits "
                                  "it into shards once and trains a tokenizer on it. This page shows both."));
  empty->set_action(tr("Go to Training"));
  connect(empty, &EmptyState::action_clicked, this,
          [this] { navigate(QStringLiteral("training"), QStringLiteral("start")); });
  empty_ = empty;
  content_ = new QWidget(this);
  content_->hide();
  auto* column = new QVBoxLayout(content_);
  column->setContentsMargins(0, 0, 0, 0);
  column->setSpacing(2 * grid_step);
  error_ = make_paragraph({}, "danger");
  error_->hide();
  column->addWidget(error_);
  auto* facts = new CardGrid(column_width);
  column->addWidget(facts);
  sections().add([this, facts] { facts->add(build_facts()); });
  sections().add([this, facts] {
    facts->add(build_tokenizer_facts());
    facts->add(build_disk());
  });
  sections().add([this, column] { column->addWidget(new TokenizerCard(bridge(), theme())); });
  sections().add([this, column] { build_shards(column); });
  page_column->addWidget(empty_, 1);
  page_column->addWidget(content_, 1);
  timer_.setInterval(2'000);
  connect(&timer_, &QTimer::timeout, this, &DataPage::ask);
}

QWidget* DataPage::build_facts() {
  auto* card = new Card(tr("Training text"));
  auto* grid = new QGridLayout;
  grid->setHorizontalSpacing(grid_step);
  source_ = fact(grid, tr("Source"), "data_source");
  manifest_ = fact(grid, tr("Dataset"), "data_manifest");
  training_ = fact(grid, tr("For training"), "data_training");
  held_out_ = fact(grid, tr("Held out, for evaluation"), "data_held_out");
  text_ = fact(grid, tr("Text"), "data_text");
  seen_ = fact(grid, tr("Read by this model"), "data_seen");
  epochs_ = fact(grid, tr("Passes over the text"), "data_epochs");
  cache_ = fact(grid, tr("On this disk"), "data_cache");
  card->body()->addLayout(grid);
  cache_bar_ = new QProgressBar;
  cache_bar_->setAccessibleName(tr("Use of the disk limit"));
  cache_bar_->setTextVisible(false);
  cache_bar_->setRange(0, 1000);
  card->body()->addWidget(cache_bar_);
  card->body()->addStretch(1);
  return card;
}

QWidget* DataPage::build_tokenizer_facts() {
  auto* card = new Card(tr("Tokenizer"));
  auto* grid = new QGridLayout;
  grid->setHorizontalSpacing(grid_step);
  vocabulary_ = fact(grid, tr("Vocabulary"), "tokenizer_vocabulary");
  merges_ = fact(grid, tr("Learned merges"), "tokenizer_merges");
  per_token_ = fact(grid, tr("Text per token"), "tokenizer_bytes");
  tokenizer_hash_ = fact(grid, tr("Hash"), "tokenizer_hash");
  card->body()->addLayout(grid);
  card->body()->addStretch(1);
  return card;
}

QWidget* DataPage::build_disk() {
  auto* card = new Card(tr("Disk"));
  disk_ = new Donut(theme(), tr("Use of the disk"), card);
  disk_->setObjectName(QStringLiteral("disk_use"));
  disk_note_ = make_paragraph(tr("Not measured yet."), "muted", card);
  card->body()->addWidget(disk_);
  card->body()->addWidget(disk_note_);
  card->body()->addStretch(1);
  card->add_control(new ExportButton(
      theme(), tr("Use of the disk"), QStringLiteral("disk-use"), [this] { return csv_of(disk_->parts()); },
      [this] { return picture_of(*disk_, theme()); }, card));
  return card;
}

// The text's cache is told with the data, the rest with the snapshot.
void DataPage::show_disk(const node::ResourceView& resources) {
  const bool measured = resources.directory_bytes > 0;
  disk_->setVisible(measured);
  disk_note_->setVisible(!measured);
  if (!measured) return;
  const auto part = [](const QString& name, std::uint64_t bytes) {
    return SharePart{name, static_cast<double>(bytes), Format::bytes(bytes)};
  };
  const std::uint64_t text = std::min(cache_bytes_, resources.directory_bytes);
  disk_->set_parts({part(tr("Text and shards"), text),
                    part(tr("Checkpoints and history"), resources.directory_bytes - text),
                    part(tr("Free on this disk"), resources.disk_free_bytes)});
}

void DataPage::build_shards(QVBoxLayout* column) {
  shard_card_ = new Card(tr("Shards"));
  shards_ = new ShardModel(this);
  auto* sorted = new QSortFilterProxyModel(this);
  sorted->setSourceModel(shards_);
  sorted->setSortRole(ShardModel::SortRole);
  table_ = new TableView(tr("Shards"));
  table_->setObjectName(QStringLiteral("shard_table"));
  table_->setModel(sorted);
  table_->set_file_name(QStringLiteral("shards"));
  table_->set_empty_text(tr("NeuroShard splits the text into shards when it first reads it."));
  table_->setSortingEnabled(true);
  table_->sortByColumn(ShardModel::Number, Qt::AscendingOrder);
  table_->horizontalHeader()->setSectionResizeMode(QHeaderView::ResizeToContents);
  table_->setMinimumHeight(200);
  shard_card_->body()->addWidget(table_);
  column->addWidget(shard_card_, 1);
}

void DataPage::refresh(const node::Snapshot& snapshot) {
  // The snapshot counts on between two questions.
  if (snapshot.training.last_step) seen_->setText(tokens(snapshot.training.last_step->tokens));
  show_disk(snapshot.resources);
}

void DataPage::shown() {
  timer_.start();
  ask();
}

void DataPage::hidden() {
  timer_.stop();
}

void DataPage::ask() {
  if (asking_ || !bridge().attached()) return;
  asking_ = true;
  bridge().query<node::DataView>(
      this,
      [](node::Node& node, node::Reply<node::DataView> reply) { return node.query_data(std::move(reply)); },
      [this](const Expected<node::DataView>& data) { take(data); });
}

// Not a stack: an empty page need not be as high as a full one.
void DataPage::show_content(bool some) {
  empty_->setVisible(!some);
  content_->setVisible(some);
}

void DataPage::take(const Expected<node::DataView>& data) {
  asking_ = false;
  error_->setVisible(!data.ok());
  if (!data.ok()) {
    error_->setText(QString::fromStdString(data.error().message));
    show_content(true);
    return;
  }
  show_content(!data->source.empty() || data->train_tokens > 0);
  source_->setText(or_dash(data->source));
  manifest_->setText(data->manifest.empty() ? tr("local text") : QString::fromStdString(data->manifest));
  training_->setText(tokens(data->train_tokens));
  held_out_->setText(tokens(data->held_out_tokens));
  text_->setText(data->text_bytes == 0 ? Format::dash() : Format::bytes(data->text_bytes));
  seen_->setText(tokens(data->tokens_seen));
  epochs_->setText(data->train_tokens == 0 ? Format::dash() : Format::significant(data->epochs, 3));
  cache_bytes_ = data->cache_bytes;
  if (const auto snapshot = bridge().snapshot()) show_disk(snapshot->resources);
  const bool limited = data->cache_limit_bytes > 0;
  cache_->setText(limited ? tr("%1 of %2 allowed")
                                .arg(Format::bytes(data->cache_bytes), Format::bytes(data->cache_limit_bytes))
                          : tr("%1, no limit set").arg(Format::bytes(data->cache_bytes)));
  cache_bar_->setVisible(limited);
  if (limited) {
    const double share =
        static_cast<double>(data->cache_bytes) / static_cast<double>(data->cache_limit_bytes);
    cache_bar_->setValue(static_cast<int>(std::min(1.0, share) * 1000));
  }
  vocabulary_->setText(data->vocabulary == 0 ? Format::dash() : Format::integer(data->vocabulary));
  merges_->setText(data->vocabulary == 0 ? Format::dash() : Format::integer(data->merges));
  per_token_->setText(data->bytes_per_token == 0
                          ? Format::dash()
                          : tr("%1 bytes").arg(Format::significant(data->bytes_per_token, 3)));
  tokenizer_hash_->setText(or_dash(data->tokenizer_hash).left(16));
  tokenizer_hash_->setToolTip(QString::fromStdString(data->tokenizer_hash));
  shard_card_->set_caption(
      data->shard_count > data->shards.size()
          ? tr("the first %1 of %2")
                .arg(Format::integer(data->shards.size()), Format::integer(data->shard_count))
          : Format::integer(data->shard_count));
  shards_->set_entries(data->shards);
}

}  // namespace neuroshard::ui
