// The training data: the text, its shards, their size on disk, and the tokenizer.
#pragma once

#include <QTimer>

#include "core/base/expected.h"
#include "core/node/queries.h"
#include "ui/pages/page.h"

class QGridLayout;
class QLabel;
class QProgressBar;
class QVBoxLayout;

namespace neuroshard::ui {

class Card;
class Donut;
class ShardModel;
class TableView;

class DataPage final : public Page {
  Q_OBJECT
 public:
  explicit DataPage(const Context& context, QWidget* parent = nullptr);
  QString title() const override { return tr("Data"); }
  QString icon() const override { return QStringLiteral("data"); }
  void refresh(const node::Snapshot& snapshot) override;
  void shown() override;
  void hidden() override;

 private:
  QWidget* build_facts();
  QWidget* build_tokenizer_facts();
  QWidget* build_disk();
  void show_disk(const node::ResourceView& resources);
  void build_shards(QVBoxLayout* column);
  void ask();
  void show_content(bool some);
  void take(const Expected<node::DataView>& data);

  ShardModel* shards_;
  QWidget* empty_;
  QWidget* content_;
  QLabel* source_;
  QLabel* manifest_;
  QLabel* training_;
  QLabel* held_out_;
  QLabel* text_;
  QLabel* seen_;
  QLabel* epochs_;
  QLabel* cache_;
  QProgressBar* cache_bar_;
  QLabel* vocabulary_;
  QLabel* merges_;
  QLabel* per_token_;
  QLabel* tokenizer_hash_;
  QLabel* error_;
  Card* shard_card_;
  TableView* table_;
  Donut* disk_;
  QLabel* disk_note_;
  std::uint64_t cache_bytes_ = 0;
  QTimer timer_;
  bool asking_ = false;
};

}  // namespace neuroshard::ui
