#include <QLabel>
#include <QRadioButton>
#include <QVBoxLayout>
#include <algorithm>

#include "ui/text/format.h"
#include "ui/wizard/setup_pages.h"

namespace neuroshard::ui {
namespace {

constexpr std::uint64_t mib = 1024 * 1024;
// Below this the standard model does not fit with its optimizer.
constexpr std::uint64_t least_memory = 1024 * mib;

QString mebibytes(std::uint64_t bytes) {
  return QString("%1MiB").arg(std::max(bytes, least_memory) / mib);
}

}  // namespace

std::vector<std::pair<QString, QString>> preset_settings(LimitsPreset preset, const MachineInfo& machine) {
  const auto threads = [](unsigned count) { return QString::number(std::max(1u, count)); };
  switch (preset) {
    case LimitsPreset::Keep: return {};
    case LimitsPreset::Light:
      return {{"cpu_threads", threads(machine.threads / 4)},
              {"memory_limit", mebibytes(machine.memory_bytes / 4)}};
    case LimitsPreset::Balanced:
      return {{"cpu_threads", threads(machine.threads / 2)},
              {"memory_limit", mebibytes(machine.memory_bytes / 2)}};
    case LimitsPreset::Max: break;
  }
  return {{"cpu_threads", "0"}, {"memory_limit", mebibytes(machine.memory_bytes / 10 * 8)}};
}

LimitsPage::LimitsPage(SetupDraft& draft, SetupServices& services) : SetupPage(draft, services) {
  const auto add = [this](const QString& name, LimitsPreset preset) {
    auto* button = new QRadioButton(this);
    button->setObjectName(name);
    connect(button, &QRadioButton::toggled, this, [this, preset](bool on) {
      if (on) draft_.limits = preset;
    });
    body()->addWidget(button);
    return button;
  };
  keep_ = add("setupLimitsKeep", LimitsPreset::Keep);
  light_ = add("setupLight", LimitsPreset::Light);
  balanced_ = add("setupBalanced", LimitsPreset::Balanced);
  max_ = add("setupMax", LimitsPreset::Max);
  add_note(
      tr("The memory limit applies to the whole program. You can change everything later in Settings, which "
         "also has a schedule and rules for battery, heat and programs."));
}

QString LimitsPage::intro() const {
  return tr("NeuroShard yields to your own work. How much may it use otherwise?");
}

QString LimitsPage::next_text() const {
  return draft_.joining ? tr("Join") : SetupPage::next_text();
}

void LimitsPage::entered() {
  const MachineInfo machine = services_.machine();
  const auto describe = [&machine](const QString& name, LimitsPreset preset) {
    const auto settings = preset_settings(preset, machine);
    const unsigned threads = settings[0].second.toUInt();
    const auto memory = settings[1].second.chopped(3).toULongLong() * mib;
    return tr("%1: %n of %2 threads, %3 of memory", nullptr,
              static_cast<int>(threads == 0 ? machine.threads : threads))
        .arg(name)
        .arg(machine.threads)
        .arg(Format::bytes(memory));
  };
  keep_->setText(tr("Keep the current limits"));
  keep_->setVisible(draft_.folder_info.has_data);
  light_->setText(describe(tr("Light"), LimitsPreset::Light));
  balanced_->setText(describe(tr("Balanced"), LimitsPreset::Balanced));
  max_->setText(describe(tr("Max"), LimitsPreset::Max));
  // A folder without data has no limits to keep.
  if (keep_->isChecked() && !draft_.folder_info.has_data) balanced_->setChecked(true);
  if (!keep_->isChecked() && !light_->isChecked() && !balanced_->isChecked() && !max_->isChecked())
    (draft_.folder_info.has_data ? keep_ : balanced_)->setChecked(true);
}

void LimitsPage::leave(std::function<void(bool)> done) {
  write(preset_settings(draft_.limits, services_.machine()), std::move(done));
}

void LimitsPage::write(std::vector<std::pair<QString, QString>> settings, std::function<void(bool)> done) {
  if (settings.empty()) return done(true);
  const auto [name, value] = settings.front();
  settings.erase(settings.begin());
  services_.run(this, {"settings", "set", name, value, "--data-dir", draft_.folder}, {},
                [this, rest = std::move(settings), done](const CommandOutcome& outcome) {
                  if (outcome.ok()) return write(rest, done);
                  show_problem(reason(outcome));
                  done(false);
                });
}

}  // namespace neuroshard::ui
