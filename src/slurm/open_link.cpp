#include "slurm/open_link.h"

#include <utility>

#include <fmt/format.h>
#include <unistd.h>

#include "slurm/program_link.h"
#include "slurm/text_link.h"

namespace berth::slurm {

std::string find_link_program() {
  char self[4096];
  const ssize_t length = ::readlink("/proc/self/exe", self, sizeof self);
  if (length <= 0) return {};
  std::string folder(self, static_cast<std::size_t>(length));
  folder.resize(folder.rfind('/'));
  for (const char* place : {"/berth-slurm-link", "/../libexec/berth/berth-slurm-link"})
    if (::access((folder + place).c_str(), X_OK) == 0) return folder + place;
  return {};
}

Result<OpenedLink> open_link(const LinkSettings& settings) {
  const TextLinkSettings text{.directory = settings.directory, .deadline = settings.deadline};
  std::vector<std::string> program = settings.program;
  if (program.empty()) {
    if (std::string found = find_link_program(); !found.empty()) program = {std::move(found)};
  }
  std::string why = "there is no link program";
  if (settings.kind != LinkKind::Text && !program.empty()) {
    auto link = std::make_unique<ProgramLink>(
        ProgramLinkSettings{.command = program, .text = text, .deadline = settings.deadline});
    auto started = link->start();
    if (started)
      return OpenedLink{std::move(link), LinkKind::Program,
                        fmt::format("link program {} (Slurm {})", program.back(), *started)};
    why = started.error().text;
  }
  if (settings.kind == LinkKind::Program)
    return fail(fmt::format("{} (scripts/build-slurm-link makes one for a Slurm)", why));
  if (settings.kind == LinkKind::Text) why = "as asked for";
  return OpenedLink{std::make_unique<TextLink>(text), LinkKind::Text,
                    fmt::format("Slurm's text commands: {}", why)};
}

}  // namespace berth::slurm
