// Any bytes as the files that scheduler and shim leave for each other: a value or an Error, never a
// crash. The checksum would stop nearly every input at the door, so the first byte chooses whether
// the rest is the file itself or its fields, to which kind and checksum are added. What is accepted
// is written and read again to the same bytes.
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

#include "base/check.h"
#include "exec/fields.h"
#include "exec/order_file.h"
#include "model/output_pattern.h"

namespace {

/// "name value" lines as a file with a good checksum.
std::string sealed(std::string_view kind, std::string_view lines) {
  berth::FieldWriter out(kind);
  while (!lines.empty()) {
    const auto end = lines.find('\n');
    const std::string_view line = lines.substr(0, end);
    const auto space = line.find(' ');
    out.add(line.substr(0, space), space == std::string_view::npos ? "" : line.substr(space + 1));
    if (end == std::string_view::npos) break;
    lines.remove_prefix(end + 1);
  }
  return std::move(out).finish();
}

void try_order(std::string_view bytes) {
  const auto order = berth::decode_order(bytes);
  if (!order) return BERTH_CHECK(!order.error().text().empty(), "an error says something");
  const std::string again = berth::encode_order(*order);
  const auto read = berth::decode_order(again);
  BERTH_CHECK(read && berth::encode_order(*read) == again, "an order survives its file");
  BERTH_CHECK(order->order.tasks >= 1 && order->order.tasks <= berth::kMaxTasks, "tasks are sane");
  const std::string path = berth::path_of_task(order->order.output, 3);
  BERTH_CHECK(path.find('\0') == std::string::npos, "a path is one");
}

void try_exit(std::string_view bytes) {
  const auto record = berth::decode_exit(bytes);
  if (!record) return BERTH_CHECK(!record.error().text().empty(), "an error says something");
  const std::string again = berth::encode_exit(*record);
  const auto read = berth::decode_exit(again);
  BERTH_CHECK(read && berth::encode_exit(*read) == again, "a record survives its file");
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  if (size == 0) return 0;
  const std::string_view rest(reinterpret_cast<const char*>(data) + 1, size - 1);
  switch (data[0] % 4) {
    case 0: try_order(rest); break;
    case 1: try_exit(rest); break;
    case 2: try_order(sealed("order", rest)); break;
    default: try_exit(sealed("exit", rest)); break;
  }
  return 0;
}
