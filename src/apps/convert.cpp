#include <filesystem>

#include <fmt/format.h>

#include "apps/commands.h"
#include "apps/load_trace.h"
#include "trace/writer.h"

namespace berth {

Exit execute(const ConvertOptions& options) {
  if (options.out.empty())
    return complain(Exit::Misuse, "no -o FILE: where to? (- is standard output)");
  std::error_code ignored;
  if (std::filesystem::equivalent(options.input.trace, options.out, ignored)) {
    return complain(Exit::Misuse,
                    fmt::format("{}: would be written over itself (give another -o)", options.out));
  }
  ReadReport report;
  const auto trace = load_trace(options.input, &report);
  if (!trace) return complain(Exit::Misuse, trace.error());
  if (!options.quiet) tell_notes(*trace, report);
  if (options.out == "-") return write_stdout(trace_to_csv(*trace));
  if (const auto written = write_trace_csv(*trace, options.out); !written)
    return complain(Exit::Failure, written.error());
  if (!options.quiet)
    print_note(fmt::format("wrote {} jobs ({} format) to {}", trace->jobs.size(), trace->format,
                           options.out));
  return Exit::Success;
}

}  // namespace berth
