// What every command of Slurm's names answers alike: --help, --usage, --version, wrong options.
#pragma once

#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "client/console.h"
#include "client/options.h"

namespace berth::client::slurm {

struct HelpPage {
  std::string_view name;
  std::string_view operands;  // "[JOB_ID…]"; empty: none
  std::string_view summary;   // a line
  std::string_view more;      // behind the options: commands, fields, what is different here
  std::string_view examples;  // a line each
};

/// Like a manual page: name, usage, every option, examples.
[[nodiscard]] std::string help_text(const HelpPage& page, std::span<const OptionSpec> options);
/// The exit code, if the words asked for help, usage or the version, or were wrong.
[[nodiscard]] std::optional<int> usual_answer(const Parsed& parsed, const HelpPage& page,
                                              std::span<const OptionSpec> options,
                                              Console& console);

}  // namespace berth::client::slurm
