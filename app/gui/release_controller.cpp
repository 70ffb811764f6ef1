#include "app/gui/release_controller.h"

#include <QDesktopServices>
#include <QUrl>
#include <utility>

#include "app/gui/install_kind.h"
#include "ui/widgets/banner.h"

namespace neuroshard::gui {
namespace {

using ui::ReleaseFound;

std::optional<Version> parse(const QString& text) {
  auto version = Version::parse(text.toStdString());
  return version.ok() ? std::optional<Version>(std::move(*version)) : std::nullopt;
}

// Refused: bytes arrived and are not to be believed.
bool is_refusal(ErrorCode code) {
  return code == ErrorCode::Denied || code == ErrorCode::Corrupt || code == ErrorCode::Unsupported;
}

}  // namespace

ReleaseController::ReleaseController(Parts parts, ReleasePlace place, ReleaseServices services)
    : parts_(parts),
      place_(std::move(place)),
      services_(std::move(services)),
      running_(parse(place_.running)),
      background_("ns-releases") {
  if (auto parsed = release::parse_place(place_.url.toStdString(), place_.key.toStdString()); parsed.ok())
    parsed_ = std::move(*parsed);
  if (!parsed_ || !running_) return;  // nothing to switch on
  state_.place = QString::fromStdString(parsed_->url);
  parts_.view.set_place(state_.place);
  const ReleaseMemory memory = parts_.config.releases();
  state_.looked = memory.looked;
  state_.found = memory.found;
  state_.why = memory.why;
  if (parts_.preferences.look_for_releases())
    due_ = release::look_after_start(memory.next, parts_.clock.wall_now(), services_.chance);
  connect(&parts_.preferences, &ui::Preferences::changed, this, &ReleaseController::allow);
  show();
}

ReleaseController::~ReleaseController() {
  stop_.cancel();
}

// The owner has switched it on or off, or changed something else.
void ReleaseController::allow() {
  const bool on = parts_.preferences.look_for_releases();
  if (on == due_.has_value()) return;
  if (on) {
    due_ = release::first_look(state_.looked, parts_.clock.wall_now());
  } else {
    due_.reset();
    stop_.cancel();
  }
  tick();
}

void ReleaseController::tick() {
  if (!parsed_ || !running_) return;
  if (due_ && !state_.looking && parts_.clock.wall_now() >= *due_) look();
  show();
}

void ReleaseController::look() {
  const WallTime now = parts_.clock.wall_now();
  due_ = release::next_look(now, services_.chance);
  state_.looked = now;
  remember();  // before: a program that ends meanwhile does not look twice a day
  stop_ = CancelSource();
  state_.looking = background_.run(
      this,
      [place = *parsed_, seen = seen(), source = services_.source, cancel = stop_.token()] {
        return release::look(place, seen, *source, cancel);
      },
      [this](const Expected<Version>& found) { on_look(found); });
}

void ReleaseController::on_look(const Expected<Version>& found) {
  state_.looking = false;
  const bool stopped = !found.ok() && found.error().code == ErrorCode::Cancelled;
  if (!stopped) {
    state_.why = found.ok() ? QString() : QString::fromStdString(found.error().message);
    state_.found = found.ok()
                       ? (*running_ < *found ? ReleaseFound::Newer : ReleaseFound::Newest)
                       : (is_refusal(found.error().code) ? ReleaseFound::Refused : ReleaseFound::NotReached);
  }
  if (found.ok()) parts_.config.set_newest_release(QString::fromStdString(found->text()));
  remember();
  show();
}

void ReleaseController::remember() {
  parts_.config.set_releases({state_.looked, due_, state_.found, state_.why});
}

std::optional<Version> ReleaseController::seen() const {
  return parse(parts_.config.newest_release());
}

void ReleaseController::show() {
  state_.on = due_.has_value();
  state_.next = due_;
  const std::optional<Version> newest = seen();
  const bool newer = newest && *running_ < *newest;
  state_.version = newer ? QString::fromStdString(newest->text()) : QString();
  // Found by an earlier version of this program.
  if (state_.found == ReleaseFound::Newer && !newer) state_.found = ReleaseFound::Newest;
  parts_.view.set_note(ui::ReleaseWords::note(state_, parts_.clock.wall_now()));
  show_notice();
}

void ReleaseController::show_notice() {
  // While the place is not to be believed, nobody is sent there.
  const bool wanted = state_.on && state_.found != ReleaseFound::Refused &&
                      parts_.config.put_away_release() != state_.version;
  const QString version = wanted ? state_.version : QString();
  if (version == shown_version_) return;
  shown_version_ = version;
  if (version.isEmpty()) return parts_.window.clear_banner(banner);
  const auto words = ui::ReleaseWords::notice(state_, place_.running, install_kind(place_.program));
  ui::BannerContent content;
  content.title = words.title;
  content.text = words.text;
  content.actions = {
      {tr("Open the page"), [url = QUrl(state_.place)] { QDesktopServices::openUrl(url); }, false}};
  content.can_close = true;
  content.on_close = [this, version] { parts_.config.set_put_away_release(version); };
  parts_.window.show_banner(banner, content);
}

}  // namespace neuroshard::gui
