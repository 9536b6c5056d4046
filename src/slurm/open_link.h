// Which link is used: the link program where there is one that works, else the text commands.
#pragma once

#include <chrono>
#include <memory>
#include <string>
#include <vector>

#include "base/result.h"
#include "slurm/link.h"

namespace berth::slurm {

enum class LinkKind : std::uint8_t { Any, Text, Program };

struct LinkSettings {
  LinkKind kind = LinkKind::Any;
  std::string directory{};             // of Slurm's commands; empty: by PATH
  std::vector<std::string> program{};  // with what runs it; empty: berth-slurm-link beside berth
  std::chrono::milliseconds deadline{30'000};
};

struct OpenedLink {
  std::unique_ptr<Link> link;
  LinkKind kind = LinkKind::Text;
  std::string note{};  // for the log: what it is, and why not the program where it is not
};

/// Fails only where the program was demanded and does not work. Slurm itself may be away: that
/// shows in the first reading.
[[nodiscard]] Result<OpenedLink> open_link(const LinkSettings& settings);

/// Beside this program, or in ../libexec/berth; empty if it is in neither.
[[nodiscard]] std::string find_link_program();

}  // namespace berth::slurm
