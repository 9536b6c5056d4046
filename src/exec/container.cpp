#include "exec/container.h"

#include <algorithm>
#include <array>

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <unistd.h>

#include "exec/order_file.h"
#include "exec/shim_protocol.h"

namespace berth {

namespace {

constexpr std::string_view kTmp = "{tmp}";
constexpr std::string_view kScriptEnd = "BERTH_END_OF_SCRIPT";

/// Of the machine, not of the job: inside the image they would mislead.
bool is_of_the_machine(std::string_view name) {
  constexpr std::array<std::string_view, 11> kNames{
      "PATH",   "HOME",  "USER", "LOGNAME",         "SHELL",     "PWD",
      "OLDPWD", "SHLVL", "_",    "LD_LIBRARY_PATH", "LD_PRELOAD"};
  return std::ranges::find(kNames, name) != kNames.end() || name.starts_with("XDG_") ||
         name.starts_with("DBUS_") || name.starts_with("SSH_");
}

std::string in_quotes(std::string_view word) {
  std::string text = "'";
  for (std::size_t at = 0; at < word.size(); ++at) {
    if (word.substr(at).starts_with(kTmp)) {  // known to the shim alone
      text += "'\"$BERTH_TMPDIR\"'";
      at += kTmp.size() - 1;
    } else {
      text += word[at] == '\'' ? std::string("'\\''") : std::string(1, word[at]);
    }
  }
  return text + "'";
}

void replace_all(std::string& text, std::string_view old, std::string_view by) {
  for (auto at = text.find(old); at != std::string::npos; at = text.find(old, at + by.size()))
    text.replace(at, old.size(), by);
}

std::vector<std::string> environment_words(const LaunchOrder& order, const ContainerFacts& facts) {
  std::vector<std::string> words;
  const auto pass = [&](const std::string& what) { words.insert(words.end(), {"--env", what}); };
  for (const auto& [name, value] : order.env)
    if (!is_of_the_machine(name) && name != "CUDA_VISIBLE_DEVICES") pass(name);
  for (const char* name :
       {"SLURM_PROCID", "SLURM_LOCALID", "SLURM_GTIDS", "SLURM_TASK_PID", "SLURM_TMPDIR",
        "BERTH_TASK", "BERTH_TMPDIR", "TMPDIR", "RANK", "LOCAL_RANK", kClaimVariable})
    pass(name);
  // Only its own devices are inside, and they are counted from 0 there.
  std::string list;
  for (std::size_t i = 0; i < facts.devices.size(); ++i)
    list += fmt::format("{}{}", list.empty() ? "" : ",",
                        facts.has_cdi ? static_cast<std::int32_t>(i) : facts.devices[i]);
  pass("CUDA_VISIBLE_DEVICES=" + list);
  return words;
}

struct Filling {
  const LaunchOrder& order;
  const ContainerFacts& facts;
  std::string image;
  std::string name;

  [[nodiscard]] std::string word(std::string text) const {
    replace_all(text, "{image}", image);
    replace_all(text, "{workdir}", order.workdir);
    replace_all(text, "{home}", facts.home);
    replace_all(text, "{name}", name);
    replace_all(text, "{uid}", fmt::to_string(order.uid));
    replace_all(text, "{gid}", fmt::to_string(order.gid));
    replace_all(text, "{gpus}", fmt::format("{}", fmt::join(facts.devices, ",")));
    return text;
  }
  [[nodiscard]] std::vector<std::string> words(const std::vector<std::string>& from,
                                               const std::vector<std::string>& command) const {
    std::vector<std::string> all;
    for (const std::string& one : from) {
      std::vector<std::string> several;
      if (one == "{command}") {
        several = command;
      } else if (one == "{env}") {
        several = environment_words(order, facts);
      } else if (one == "{devices}") {
        for (const std::int32_t device : facts.devices)
          if (facts.has_cdi)
            several.insert(several.end(), {"--device", fmt::format("nvidia.com/gpu={}", device)});
      } else if (one == "{user}") {  // root is root inside already
        if (order.uid != 0) several.emplace_back("--userns=keep-id");
      } else if (one == "{limits}") {
        if (order.memory_mib > 0) several.push_back(fmt::format("--memory={}m", order.memory_mib));
      } else {
        several.push_back(word(one));
      }
      all.insert(all.end(), several.begin(), several.end());
    }
    return all;
  }
};

}  // namespace

std::map<std::string, ContainerTemplate> ContainerOptions::built_in() {
  return {
      {"podman",
       {"podman run --rm --replace --name {name} --network=host --ipc=host {user} {limits} "
        "--security-opt=label=disable --workdir {workdir} --volume {workdir}:{workdir} --volume "
        "{tmp}:{tmp} {env} {devices} {image} {command}",
        "podman rm --force --ignore --time 0 {name}"}},
      {"docker",
       {"docker run --rm --name {name} --network=host --ipc=host --user {uid}:{gid} {limits} "
        "--workdir "
        "{workdir} --volume {workdir}:{workdir} --volume {tmp}:{tmp} {env} {image} {command}",
        "docker rm --force {name}"}},
      {"apptainer",
       {"apptainer exec --nv --pwd {workdir} --bind {workdir} --bind {tmp} {image} {command}"}},
      {"pyxis",
       {"enroot start --rw --mount {workdir}:{workdir} --mount {tmp}:{tmp} {image} {command}"}},
  };
}

Result<std::vector<std::string>> template_words(const std::string& text) {
  std::vector<std::string> words;
  bool is_open = false;
  char quote = 0;
  for (std::size_t at = 0; at < text.size(); ++at) {
    const char c = text[at];
    const bool is_gap = quote == 0 && (c == ' ' || c == '\t' || c == '\n');
    if (is_gap) {
      is_open = false;
      continue;
    }
    if (!is_open) words.emplace_back();
    is_open = true;
    if (quote != 0 ? c == quote : (c == '\'' || c == '"'))
      quote = quote != 0 ? '\0' : c;
    else
      words.back() += c == '\\' && quote != '\'' && at + 1 < text.size() ? text[++at] : c;
  }
  if (quote != 0) return fail(fmt::format("a {} is not closed", quote));
  const auto has = [&](std::string_view word) {
    return std::ranges::any_of(
        words, [&](const std::string& one) { return one.find(word) != std::string::npos; });
  };
  if (words.empty()) return fail("it is empty");
  if (!has("{image}") || std::ranges::find(words, "{command}") == words.end())
    return fail("it needs {image} and the word {command}");
  return words;
}

bool machine_has_cdi() {
  return ::access("/etc/cdi/nvidia.yaml", R_OK) == 0 ||
         ::access("/var/run/cdi/nvidia.yaml", R_OK) == 0;
}

Result<void> put_into_container(LaunchOrder& order, const ContainerOptions& options,
                                const ContainerFacts& facts) {
  std::string runtime = options.use;
  std::string image = facts.image;
  const auto colon = image.find(':');
  const std::string before = image.substr(0, colon);
  // "docker://x" is an image; "docker:x" names the runtime.
  if (colon != std::string::npos && image.substr(colon, 3) != "://" &&
      options.templates.contains(before)) {
    runtime = before;
    image = image.substr(colon + 1);
  }
  if (image.empty() || image.front() == '-')
    return fail(fmt::format("container: '{}' is no image", facts.image));
  const auto found = options.templates.find(runtime);
  if (found == options.templates.end())
    return fail(fmt::format("container: the scheduler knows no '{}'", runtime));
  auto words = template_words(found->second.run);
  if (!words) return fail(fmt::format("container: {}: {}", runtime, words.error().text()));
  const Filling filling{order, facts, image,
                        fmt::format("berth-{}-{}", order.job, attempt_name(order.attempt))};
  std::vector<std::string> command = order.command;
  std::string script = "#!/bin/sh\n";
  if (!order.script.empty()) {
    // The image reads it by its own first line.
    script +=
        fmt::format("cat > \"$BERTH_TMPDIR/script\" <<'{0}'\n{1}\n{0}\n", kScriptEnd, order.script);
    script += "chmod 700 \"$BERTH_TMPDIR/script\"\n";
    command.insert(command.begin(), std::string(kTmp) + "/script");
  }
  script += "exec";
  for (const std::string& word : filling.words(*words, command)) script += " " + in_quotes(word);
  if (!found->second.cleanup.empty()) {
    std::string text = found->second.cleanup;
    for (std::size_t at = 0; at < text.size();) {  // plain words: no quotes in a clean-up
      const auto end = std::min(text.find(' ', at), text.size());
      if (end > at) order.cleanup.push_back(filling.word(text.substr(at, end - at)));
      at = end + 1;
    }
  }
  order.script = script + "\n";
  order.command.clear();
  return {};
}

}  // namespace berth
