#include "ui/window/status_line.h"

#include <QHBoxLayout>
#include <QLabel>
#include <algorithm>

#include "ui/text/format.h"
#include "ui/theme/theme.h"
#include "ui/widgets/card.h"

namespace neuroshard::ui {

StatusLine::StatusLine(const Theme&, QWidget* parent) : QWidget(parent) {
  setObjectName(QStringLiteral("statusline"));
  setAttribute(Qt::WA_StyledBackground);
  auto* row = new QHBoxLayout(this);
  row->setContentsMargins(16, 4, 16, 4);
  row->setSpacing(20);
  peers_ = make_label({}, "caption", this);
  peers_->setObjectName(QStringLiteral("status_peers"));
  peers_->setToolTip(tr("Connected nodes; — while this node trains alone"));
  traffic_ = make_label({}, "caption", this);
  traffic_->setObjectName(QStringLiteral("status_traffic"));
  traffic_->setToolTip(tr("Download and upload over ten seconds; — while this node trains alone"));
  device_ = make_label({}, "caption", this);
  // Long names of processors give way.
  device_->setSizePolicy(QSizePolicy::Ignored, QSizePolicy::Preferred);
  age_ = make_label({}, "caption", this);
  row->addWidget(peers_);
  row->addWidget(traffic_);
  row->addWidget(device_, 1);
  row->addWidget(age_);
}

void StatusLine::show_peers(const node::PeersView& peers) {
  const auto rate = [](const std::optional<double>& bytes) {
    return bytes ? tr("%1/s").arg(Format::bytes(static_cast<std::uint64_t>(std::max(0.0, *bytes))))
                 : Format::dash();
  };
  peers_->setText(tr("Peers %1").arg(peers.taking_part ? Format::integer(peers.connected) : Format::dash()));
  traffic_->setText(tr("↓ %1  ↑ %2").arg(rate(peers.bytes_in_per_second), rate(peers.bytes_out_per_second)));
}

void StatusLine::refresh(const node::Snapshot* snapshot, bool attached, std::chrono::milliseconds age) {
  show_peers(snapshot != nullptr && attached ? snapshot->peers : node::PeersView{});
  QString device = Format::dash();
  if (snapshot != nullptr && !snapshot->compute.device.empty()) {
    device = QString::fromStdString(snapshot->compute.device);
    if (snapshot->compute.threads != 0)
      device +=
          QStringLiteral(" · ") + tr("%n thread(s)", nullptr, static_cast<int>(snapshot->compute.threads));
    if (!snapshot->compute.precision.empty())
      device += QStringLiteral(" · ") + QString::fromStdString(snapshot->compute.precision);
  }
  device_->setText(device);
  device_->setToolTip(device);
  if (snapshot == nullptr)
    age_->setText(tr("No data yet"));
  else if (attached && age < std::chrono::seconds(3))
    age_->setText(tr("Live"));
  else
    age_->setText(
        tr("Data %1 old").arg(Format::duration(std::chrono::duration_cast<std::chrono::seconds>(age))));
}

}  // namespace neuroshard::ui
