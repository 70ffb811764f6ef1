#include "core/control/service.h"

namespace neuroshard::control {

std::string_view to_string(LinkState state) {
  switch (state) {
    case LinkState::Connecting: return "connecting";
    case LinkState::Connected: return "connected";
    case LinkState::Lost: return "lost";
    case LinkState::Refused: return "refused";
  }
  return "unknown";
}

}  // namespace neuroshard::control
