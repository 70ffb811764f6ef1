#include "app/node/output/qr_text.h"

#include <fmt/format.h>
#include <qrencode.h>

#include <memory>

namespace neuroshard::app {
namespace {

constexpr int quiet = 4;  // modules, ISO/IEC 18004 §5.3.8

class QrModules {
 public:
  static Expected<QrModules> of(std::string_view text) {
    // Level L has the largest capacity. A screen needs no error correction for damage.
    QRcode* code = QRcode_encodeData(static_cast<int>(text.size()),
                                     reinterpret_cast<const unsigned char*>(text.data()), 0, QR_ECLEVEL_L);
    if (code == nullptr)
      return make_error(
          ErrorCode::Exhausted,
          fmt::format("a QR code can't hold {} characters; share the link as text", text.size()));
    return QrModules(code);
  }
  // The side of the code with its quiet zone.
  int size() const { return code_->width + 2 * quiet; }
  bool dark(int x, int y) const {
    x -= quiet;
    y -= quiet;
    if (x < 0 || y < 0 || x >= code_->width || y >= code_->width) return false;
    return (code_->data[y * code_->width + x] & 1) != 0;
  }

 private:
  explicit QrModules(QRcode* code) : code_(code, QRcode_free) {}
  std::unique_ptr<QRcode, void (*)(QRcode*)> code_;
};

}  // namespace

Expected<std::string> qr_for_terminal(std::string_view text, bool colour) {
  NS_ASSIGN_OR_RETURN(const QrModules modules, QrModules::of(text));
  std::string drawn;
  for (int y = 0; y < modules.size(); y += 2) {
    if (colour) drawn += "\x1b[97;40m";
    for (int x = 0; x < modules.size(); ++x) {
      // This draws the light modules. The row below the last one is empty.
      const bool upper = !modules.dark(x, y);
      const bool lower = y + 1 < modules.size() && !modules.dark(x, y + 1);
      drawn += upper ? (lower ? "█" : "▀") : (lower ? "▄" : " ");
    }
    drawn += colour ? "\x1b[0m\n" : "\n";
  }
  return drawn;
}

Expected<std::string> qr_as_svg(std::string_view text) {
  NS_ASSIGN_OR_RETURN(const QrModules modules, QrModules::of(text));
  const int size = modules.size();
  std::string path;
  for (int y = 0; y < size; ++y) {
    for (int x = 0; x < size; ++x) {
      if (!modules.dark(x, y)) continue;
      int end = x;
      while (modules.dark(end, y)) ++end;
      path += fmt::format("M{} {}h{}v1h-{}z", x, y, end - x, end - x);
      x = end;
    }
  }
  return fmt::format(
      "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {0} {0}\" shape-rendering=\"crispEdges\">"
      "<rect width=\"{0}\" height=\"{0}\" fill=\"#fff\"/><path d=\"{1}\" fill=\"#000\"/></svg>\n",
      size, path);
}

}  // namespace neuroshard::app
