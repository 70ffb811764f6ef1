// Input and full screen under X11, over a connection of its own (XScreenSaver extension; EWMH 1.5,
// _NET_ACTIVE_WINDOW and _NET_WM_STATE).
#include <xcb/screensaver.h>
#include <xcb/xcb.h>

#include <QString>
#include <cstdlib>
#include <string>

#include "app/gui/session_sensors.h"

namespace neuroshard::gui {
namespace {

struct Free {
  void operator()(void* memory) const { std::free(memory); }
};
template <class T>
using Reply = std::unique_ptr<T, Free>;

constexpr std::uint32_t max_property_words = 256;

class X11Sensor final : public SessionSensor {
 public:
  ~X11Sensor() override { close(); }

  void read(node::SessionSensors* into) override {
    if (connection_ == nullptr && !open()) return;
    if (xcb_connection_has_error(connection_) != 0) return close();
    read_input(into);
    read_full_screen(into);
  }

 private:
  bool open() {
    // A Wayland session's X server sees only the windows of X programs: what it says would be half the truth.
    if (qEnvironmentVariableIsSet("WAYLAND_DISPLAY")) return false;
    int screen_number = 0;
    connection_ = xcb_connect(nullptr, &screen_number);
    if (xcb_connection_has_error(connection_) != 0) {
      close();
      return false;
    }
    xcb_screen_iterator_t screen = xcb_setup_roots_iterator(xcb_get_setup(connection_));
    for (; screen_number > 0 && screen.rem > 1; --screen_number) xcb_screen_next(&screen);
    root_ = screen.data->root;
    active_window_ = atom("_NET_ACTIVE_WINDOW");
    state_ = atom("_NET_WM_STATE");
    full_screen_ = atom("_NET_WM_STATE_FULLSCREEN");
    return true;
  }
  void close() {
    if (connection_ != nullptr) xcb_disconnect(connection_);
    connection_ = nullptr;
  }

  xcb_atom_t atom(const std::string& name) {
    const auto cookie = xcb_intern_atom(connection_, 0, static_cast<std::uint16_t>(name.size()), name.data());
    const Reply<xcb_intern_atom_reply_t> reply(xcb_intern_atom_reply(connection_, cookie, nullptr));
    return reply ? reply->atom : static_cast<xcb_atom_t>(XCB_ATOM_NONE);
  }

  Reply<xcb_get_property_reply_t> property(xcb_window_t window, xcb_atom_t name, xcb_atom_t type) {
    const auto cookie = xcb_get_property(connection_, 0, window, name, type, 0, max_property_words);
    return Reply<xcb_get_property_reply_t>(xcb_get_property_reply(connection_, cookie, nullptr));
  }

  void read_input(node::SessionSensors* into) {
    const xcb_query_extension_reply_t* extension = xcb_get_extension_data(connection_, &xcb_screensaver_id);
    if (extension == nullptr || extension->present == 0) return;
    const Reply<xcb_screensaver_query_info_reply_t> reply(xcb_screensaver_query_info_reply(
        connection_, xcb_screensaver_query_info(connection_, root_), nullptr));
    if (reply)
      into->input_idle = std::chrono::duration_cast<std::chrono::seconds>(
          std::chrono::milliseconds(reply->ms_since_user_input));
  }

  void read_full_screen(node::SessionSensors* into) {
    const auto active = property(root_, active_window_, XCB_ATOM_WINDOW);
    // Without a window manager that says which window is active, nobody knows.
    if (!active || active->type != XCB_ATOM_WINDOW || xcb_get_property_value_length(active.get()) < 4) return;
    const auto window = *static_cast<const xcb_window_t*>(xcb_get_property_value(active.get()));
    into->full_screen = false;
    if (window == XCB_WINDOW_NONE) return;
    const auto state = property(window, state_, XCB_ATOM_ATOM);
    if (!state) return;
    const auto* atoms = static_cast<const xcb_atom_t*>(xcb_get_property_value(state.get()));
    const int count = xcb_get_property_value_length(state.get()) / static_cast<int>(sizeof(xcb_atom_t));
    for (int i = 0; i < count; ++i) {
      if (atoms[i] == full_screen_) into->full_screen = true;
    }
    if (*into->full_screen) into->full_screen_program = program_of(window);
  }

  // WM_CLASS holds two texts, the second is the program's kind.
  std::string program_of(xcb_window_t window) {
    const auto reply = property(window, XCB_ATOM_WM_CLASS, XCB_ATOM_STRING);
    if (!reply) return {};
    const std::string text(static_cast<const char*>(xcb_get_property_value(reply.get())),
                           static_cast<std::size_t>(xcb_get_property_value_length(reply.get())));
    const std::size_t first_end = text.find('\0');
    if (first_end == std::string::npos) return text;
    return std::string(text.c_str() + first_end + 1);
  }

  xcb_connection_t* connection_ = nullptr;
  xcb_window_t root_ = XCB_WINDOW_NONE;
  xcb_atom_t active_window_ = XCB_ATOM_NONE, state_ = XCB_ATOM_NONE, full_screen_ = XCB_ATOM_NONE;
};

}  // namespace

std::unique_ptr<SessionSensor> make_x11_sensor() {
  return std::make_unique<X11Sensor>();
}

}  // namespace neuroshard::gui
