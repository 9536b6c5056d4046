// Jobs in containers: a command template turns the program of a launch order into one that runs it in
// an image. The scheduler knows no runtime; podman, docker, apptainer and enroot are texts that a
// configuration can replace. The processes stay in the job: they descend from its shim, have its
// control groups and end with it.
#pragma once

#include <map>
#include <string>

#include "base/result.h"
#include "exec/host.h"

namespace berth {

/// {image}, {workdir}, {home}, {tmp}, {name}, {uid}, {gid}, {gpus} (numbers by commas) are replaced
/// inside words; {command}, {env} (--env NAME for each variable) and {devices} (--device for each GPU)
/// are words of their own and stand for several or none, as do {user} (podman keeps the job's user)
/// and {limits} (--memory, if the job has a limit).
struct ContainerTemplate {
  std::string run;
  std::string cleanup{};  // when all is over, however it ended; empty: nothing
};

struct ContainerOptions {
  std::string use = "podman";  // unless the image says "NAME:…"
  std::map<std::string, ContainerTemplate> templates = built_in();
  [[nodiscard]] static std::map<std::string, ContainerTemplate> built_in();
};

/// What the machine has for it.
struct ContainerFacts {
  std::string image;
  std::string home;
  std::vector<std::int32_t> devices;
  bool has_cdi = false;  // devices can be named to podman
};

/// The words of a template, split as a shell does it: quotes and backslashes, nothing else.
[[nodiscard]] Result<std::vector<std::string>> template_words(const std::string& text);
/// Makes its program run in the image. An error is for the job's user.
[[nodiscard]] Result<void> put_into_container(LaunchOrder& order, const ContainerOptions& options,
                                              const ContainerFacts& facts);
/// A description of GPUs for containers is where runtimes look for it.
[[nodiscard]] bool machine_has_cdi();

}  // namespace berth
