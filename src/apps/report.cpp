#include <filesystem>

#include <fmt/format.h>

#include "apps/commands.h"
#include "report/read_run.h"

namespace berth {

Exit execute(const ReportOptions& options) {
  if (options.dir.empty())
    return complain(Exit::Misuse, "which folder? Name one that `--out DIR` made");
  std::error_code ignored;
  if (!std::filesystem::is_directory(options.dir, ignored)) {
    return complain(Exit::Misuse, fmt::format("{}: no such folder (name one that `--out DIR` made)",
                                              options.dir));
  }
  if (const auto done = rebuild_report(options.dir); !done)
    return complain(Exit::Misuse, done.error());
  say(fmt::format("wrote {0}/report.html and {0}/figures", options.dir));
  return Exit::Success;
}

}  // namespace berth
