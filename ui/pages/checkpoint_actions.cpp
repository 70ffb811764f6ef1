#include "ui/pages/checkpoint_actions.h"

#include <QFileDialog>

#include "core/node/records.h"
#include "ui/bridge/bridge.h"
#include "ui/pages/compare_dialog.h"
#include "ui/pages/confirm.h"
#include "ui/pages/prune_dialog.h"
#include "ui/pages/work_panel.h"
#include "ui/text/format.h"

namespace neuroshard::ui {
namespace {

QString step_of(const node::CheckpointEntry& entry) {
  return CheckpointActions::tr("step %1").arg(Format::integer(entry.step));
}

QString steps_of(const CheckpointActions::Entries& entries) {
  QStringList steps;
  for (const node::CheckpointEntry& entry : entries) steps.append(Format::integer(entry.step));
  if (steps.size() > 8) steps = steps.mid(0, 8) << CheckpointActions::tr("…");
  return steps.join(QStringLiteral("; "));
}

// The file dialog of a format; a format without a suffix is a folder.
struct ExportChoice {
  QString title, filter, suffix;
};

ExportChoice export_choice(const QString& format) {
  if (format == QStringLiteral("safetensors")) {
    return {CheckpointActions::tr("Export the weights"), CheckpointActions::tr("Safetensors (*.safetensors)"),
            format};
  }
  if (format.startsWith(QStringLiteral("gguf"))) {
    return {CheckpointActions::tr("Export for llama.cpp"), CheckpointActions::tr("GGUF (*.gguf)"),
            QStringLiteral("gguf")};
  }
  if (format == QStringLiteral("huggingface"))
    return {CheckpointActions::tr("Export for Hugging Face: name a new folder"), {}, {}};
  return {CheckpointActions::tr("Export the whole checkpoint"), {}, {}};
}

}  // namespace

CheckpointActions::CheckpointActions(Bridge& bridge, const Theme& theme, WorkPanel& work, QWidget* window)
    : QObject(window), bridge_(bridge), theme_(theme), work_(work), window_(window) {}

void CheckpointActions::save() {
  work_.run({tr("Saving a checkpoint"), [](node::Node& node) { return node.save_checkpoint(); },
             [](const node::CommandResult&) { return tr("The checkpoint is in the list."); }});
}

void CheckpointActions::restore(const node::CheckpointEntry& entry) {
  const auto snapshot = bridge_.snapshot();
  const QString here =
      snapshot ? tr("step %1").arg(Format::integer(snapshot->training.step)) : tr("the current state");
  confirm(
      window_,
      {tr("Restore %1?").arg(step_of(entry)),
       tr("Training continues from %1, saved %2. NeuroShard keeps %3: you can undo the restore for ten "
          "minutes, and for at least 50 further steps. No checkpoint is removed.")
           .arg(step_of(entry), Format::date_time(entry.at), here),
       tr("Restore")},
      [this, entry] {
        work_.run({tr("Restoring %1").arg(step_of(entry)),
                   [name = entry.name](node::Node& node) { return node.restore_checkpoint(name); },
                   [entry](const node::CommandResult&) {
                     return tr("Training continues from %1.").arg(step_of(entry));
                   },
                   /*can_cancel=*/false, /*is_long=*/true});
      },
      &bridge_);
}

void CheckpointActions::undo() {
  work_.run({tr("Undoing the restore"), [](node::Node& node) { return node.undo_restore(); },
             [](const node::CommandResult&) { return tr("The model is in its state before the restore."); }});
}

void CheckpointActions::verify(const Entries& entries) {
  for (const node::CheckpointEntry& entry : entries) {
    work_.run({tr("Checking %1").arg(step_of(entry)),
               [name = entry.name](node::Node& node) { return node.verify_checkpoint(name); },
               [this, entry](const node::CommandResult& result) {
                 const auto* found = std::get_if<node::VerifyResult>(&result);
                 if (found == nullptr) return QString();
                 if (found->intact) return tr("All %1 are intact.").arg(Format::bytes(found->bytes));
                 work_.say(Tone::Danger, tr("The checkpoint of %1 is damaged").arg(step_of(entry)),
                           tr("%1. Restore another checkpoint; you can delete this one.")
                               .arg(QString::fromStdString(found->problem)));
                 return QString();
               },
               /*can_cancel=*/true, /*is_long=*/true, QStringLiteral("check")});
  }
}

void CheckpointActions::compare(const node::CheckpointEntry& first, const node::CheckpointEntry& second) {
  // The older one is the first, in whatever order they were chosen.
  const bool swapped = first.step > second.step;
  const std::string a = swapped ? second.name : first.name, b = swapped ? first.name : second.name;
  work_.run(
      {tr("Comparing %1 with %2").arg(step_of(swapped ? second : first), step_of(swapped ? first : second)),
       [a, b](node::Node& node) { return node.compare_checkpoints(a, b); },
       [this](const node::CommandResult& result) {
         if (const auto* found = std::get_if<node::CheckpointComparison>(&result))
           (new CompareDialog(theme_, *found, window_))->show();
         return QString();
       },
       true});
}

void CheckpointActions::pin(const Entries& entries, bool pinned) {
  for (const node::CheckpointEntry& entry : entries) {
    if (entry.pinned == pinned) continue;
    work_.run({pinned ? tr("Pinning %1").arg(step_of(entry)) : tr("Unpinning %1").arg(step_of(entry)),
               [name = entry.name, pinned](node::Node& node) { return node.pin_checkpoint(name, pinned); }});
  }
}

void CheckpointActions::remove(const Entries& entries, const std::string& newest) {
  Entries gone;
  std::uint64_t bytes = 0;
  QStringList kept;
  for (const node::CheckpointEntry& entry : entries) {
    if (entry.name == newest)
      kept.append(tr("%1 stays: it is the newest, and training resumes from it after a restart.")
                      .arg(step_of(entry)));
    else if (entry.pinned)
      kept.append(tr("%1 stays: it is pinned. Unpin it first.").arg(step_of(entry)));
    else {
      gone.push_back(entry);
      bytes += entry.bytes;
    }
  }
  if (gone.empty()) {
    work_.say(Tone::Warning, tr("No checkpoint can be deleted"), kept.join(u' '));
    return;
  }
  QString text = tr("This frees %1. You can't undo it. Steps: %2.").arg(Format::bytes(bytes), steps_of(gone));
  if (!kept.isEmpty()) text += u' ' + kept.join(u' ');
  confirm(
      window_,
      {tr("Delete %n checkpoint(s)?", nullptr, static_cast<int>(gone.size())), text, tr("Delete"), true},
      [this, gone] {
        for (const node::CheckpointEntry& entry : gone) {
          work_.run({tr("Deleting %1").arg(step_of(entry)),
                     [name = entry.name](node::Node& node) { return node.delete_checkpoint(name); }});
        }
      },
      &bridge_);
}

void CheckpointActions::prune() {
  auto* dialog = new PruneDialog(bridge_, window_);
  connect(dialog, &PruneDialog::agreed, this, [this](const node::PrunePolicy& policy, int count) {
    work_.run({tr("Removing %n old checkpoint(s)", nullptr, count),
               [policy](node::Node& node) { return node.prune_checkpoints(policy); },
               [](const node::CommandResult&) { return tr("Done."); }});
  });
  dialog->open();
}

void CheckpointActions::export_as(const node::CheckpointEntry& entry, const QString& format) {
  const ExportChoice choice = export_choice(format);
  auto* dialog = new QFileDialog(window_, choice.title);
  dialog->setObjectName(QStringLiteral("export_dialog"));
  dialog->setAttribute(Qt::WA_DeleteOnClose);
  dialog->setAcceptMode(QFileDialog::AcceptSave);
  dialog->setFileMode(QFileDialog::AnyFile);
  if (!choice.suffix.isEmpty()) {
    dialog->setNameFilter(choice.filter);
    dialog->setDefaultSuffix(choice.suffix);
  }
  dialog->selectFile(QStringLiteral("step-%1").arg(entry.step) +
                     (choice.suffix.isEmpty() ? QString() : u'.' + choice.suffix));
  connect(dialog, &QFileDialog::fileSelected, this, [this, entry, format](const QString& path) {
    work_.run({tr("Exporting %1").arg(step_of(entry)),
               [name = entry.name, format = format.toStdString(), path = path.toStdString()](
                   node::Node& node) { return node.export_checkpoint(name, format, path); },
               [path](const node::CommandResult&) { return tr("Written to %1.").arg(path); },
               /*can_cancel=*/true, /*is_long=*/true});
  });
  dialog->open();
}

void CheckpointActions::export_history(const QString& format) {
  const bool folder = format == QStringLiteral("tensorboard");
  auto* dialog = new QFileDialog(window_, folder ? tr("Export the training history: name a new folder")
                                                 : tr("Export the training history"));
  dialog->setObjectName(QStringLiteral("export_dialog"));
  dialog->setAttribute(Qt::WA_DeleteOnClose);
  dialog->setAcceptMode(QFileDialog::AcceptSave);
  dialog->setFileMode(QFileDialog::AnyFile);
  if (!folder) {
    dialog->setNameFilter(tr("Training history (*.%1)").arg(format));
    dialog->setDefaultSuffix(format);
  }
  dialog->selectFile(folder ? QStringLiteral("history-tensorboard") : QStringLiteral("history.") + format);
  connect(dialog, &QFileDialog::fileSelected, this, [this, format](const QString& path) {
    work_.run({tr("Exporting the training history"),
               [format = format.toStdString(), path = path.toStdString()](node::Node& node) {
                 return node.records().export_history(format, path);
               },
               [path](const node::CommandResult&) { return tr("Written to %1.").arg(path); },
               /*can_cancel=*/true, /*is_long=*/true});
  });
  dialog->open();
}

void CheckpointActions::import() {
  auto* dialog =
      new QFileDialog(window_, tr("Import a checkpoint or a model of Hugging Face: choose its folder"));
  dialog->setObjectName(QStringLiteral("import_dialog"));
  dialog->setAttribute(Qt::WA_DeleteOnClose);
  dialog->setFileMode(QFileDialog::Directory);
  connect(dialog, &QFileDialog::fileSelected, this, [this](const QString& path) {
    work_.run({tr("Importing a checkpoint"),
               [path = path.toStdString()](node::Node& node) { return node.import_checkpoint(path); },
               [](const node::CommandResult& result) {
                 const auto* found = std::get_if<node::ImportResult>(&result);
                 return found == nullptr ? QString()
                                         : tr("It is in the list as %1. To train from it, restore it.")
                                               .arg(QString::fromStdString(found->name));
               },
               /*can_cancel=*/true, /*is_long=*/true});
  });
  dialog->open();
}

}  // namespace neuroshard::ui
