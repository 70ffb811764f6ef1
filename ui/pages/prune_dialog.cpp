#include "ui/pages/prune_dialog.h"

#include <QDialogButtonBox>
#include <QFormLayout>
#include <QLabel>
#include <QListWidget>
#include <QPushButton>
#include <QSpinBox>
#include <QVBoxLayout>

#include "ui/bridge/bridge.h"
#include "ui/text/format.h"
#include "ui/widgets/card.h"

namespace neuroshard::ui {
namespace {

QSpinBox* make_spin(const char* object, const QString& name, int least, int most, int value) {
  auto* spin = new QSpinBox;
  spin->setObjectName(QString::fromLatin1(object));
  spin->setAccessibleName(name);
  spin->setRange(least, most);
  spin->setValue(value);
  return spin;
}

}  // namespace

PruneDialog::PruneDialog(Bridge& bridge, QWidget* parent) : QDialog(parent), bridge_(bridge) {
  setObjectName(QStringLiteral("prune_dialog"));
  setAttribute(Qt::WA_DeleteOnClose);
  setWindowTitle(tr("Remove old checkpoints"));
  resize(520, 460);
  auto* column = new QVBoxLayout(this);
  column->setSpacing(2 * grid_step);
  column->addWidget(make_paragraph(tr("NeuroShard always keeps the newest checkpoint, pinned ones, and those "
                                      "that an undo needs. It also keeps:"),
                                   nullptr, this));
  auto* form = new QFormLayout;
  const node::PrunePolicy standard;
  newest_ =
      make_spin("prune_newest", tr("Newest to keep"), 1, 10'000, static_cast<int>(standard.keep_newest));
  every_ = make_spin("prune_every", tr("One for every so many steps"), 0, 1'000'000'000,
                     static_cast<int>(standard.keep_every_steps));
  every_->setSpecialValueText(tr("none"));
  every_->setSingleStep(100);
  best_ = make_spin("prune_best", tr("Best to keep"), 0, 10'000, static_cast<int>(standard.keep_best));
  form->addRow(tr("The newest"), newest_);
  form->addRow(tr("One for every so many steps"), every_);
  form->addRow(tr("Those with the lowest held-out loss"), best_);
  column->addLayout(form);
  summary_ = make_paragraph(tr("Searching …"), "strong", this);
  summary_->setObjectName(QStringLiteral("prune_summary"));
  column->addWidget(summary_);
  list_ = new QListWidget(this);
  list_->setObjectName(QStringLiteral("prune_list"));
  list_->setAccessibleName(tr("Checkpoints that would be removed"));
  column->addWidget(list_, 1);
  auto* buttons = new QDialogButtonBox(QDialogButtonBox::Cancel, this);
  remove_ = buttons->addButton(tr("Remove"), QDialogButtonBox::AcceptRole);
  remove_->setObjectName(QStringLiteral("prune_action"));
  remove_->setProperty("role", QStringLiteral("danger"));
  remove_->setEnabled(false);
  connect(buttons, &QDialogButtonBox::accepted, this, [this] {
    Q_EMIT agreed(policy(), count_);
    accept();
  });
  connect(buttons, &QDialogButtonBox::rejected, this, &QDialog::reject);
  column->addWidget(buttons);
  delay_.setSingleShot(true);
  delay_.setInterval(150);
  connect(&delay_, &QTimer::timeout, this, &PruneDialog::ask);
  for (QSpinBox* spin : {newest_, every_, best_}) {
    connect(spin, &QSpinBox::valueChanged, this, [this] {
      remove_->setEnabled(false);  // until the preview is that of this policy
      delay_.start();
    });
  }
  ask();
}

node::PrunePolicy PruneDialog::policy() const {
  return {static_cast<std::uint32_t>(newest_->value()), static_cast<std::uint32_t>(every_->value()),
          static_cast<std::uint32_t>(best_->value())};
}

void PruneDialog::ask() {
  const quint64 question = ++question_;
  bridge_.query<node::PrunePreview>(
      this,
      [policy = policy()](node::Node& node, node::Reply<node::PrunePreview> reply) {
        return node.query_prune(policy, std::move(reply));
      },
      [this, question](const Expected<node::PrunePreview>& preview) {
        if (question == question_) show_preview(preview);
      });
}

void PruneDialog::show_preview(const Expected<node::PrunePreview>& preview) {
  list_->clear();
  remove_->setEnabled(false);
  if (!preview.ok()) {
    summary_->setText(QString::fromStdString(preview.error().message));
    return;
  }
  count_ = static_cast<int>(preview->remove.size());
  for (const std::string& name : preview->remove) list_->addItem(QString::fromStdString(name));
  if (count_ == 0) {
    summary_->setText(
        tr("No checkpoint would be removed; %n stay.", nullptr, static_cast<int>(preview->kept)));
    return;
  }
  summary_->setText(tr("%1 would be removed and free %2; %3 stay.")
                        .arg(Format::integer(preview->remove.size()), Format::bytes(preview->bytes),
                             Format::integer(preview->kept)));
  // Not while a change waits to be asked about.
  remove_->setEnabled(!delay_.isActive());
}

}  // namespace neuroshard::ui
