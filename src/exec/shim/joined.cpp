#include "exec/shim/joined.h"

#include <array>

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

namespace berth {

Result<pid_t> start_joined(const RunDir& directory, const ShimOrder& shim, TaskPlace place,
                           std::int64_t request) {
  if (shim.order.helper.empty()) return fail("no program to host it is known");
  BERTH_TRY(const auto bytes, get_file(directory.order(shim.order.attempt)));
  if (!bytes) return fail("the launch order is gone");
  BERTH_TRY(ShimOrder joined, decode_order(*bytes));
  joined.order.script.clear();
  joined.order.command = {shim.order.helper, "step-host", "--join", std::to_string(request)};
  joined.order.input = joined.order.output = joined.order.error = "/dev/null";
  joined.order.cores = shim.order.cores;
  place.program.clear();
  return start_task(joined, place);
}

std::string session_reason(const std::string& steps) {
  constexpr std::size_t kMost = 500;
  const Fd file(::open((steps + "/why").c_str(), O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC));
  struct stat what {};
  if (!file.is_open() || ::fstat(file.get(), &what) != 0 || !S_ISREG(what.st_mode)) return {};
  std::array<char, kMost> text{};
  const ssize_t got = ::read(file.get(), text.data(), text.size());
  std::string plain;
  for (ssize_t i = 0; i < got; ++i) {
    const char c = text.at(static_cast<std::size_t>(i));
    plain += c >= ' ' && c < '\x7f' ? c : '?';
  }
  return plain;
}

}  // namespace berth
