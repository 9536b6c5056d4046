#include "slurm/site.h"

#include <charconv>
#include <filesystem>
#include <map>

#include <fmt/format.h>

#include "base/split.h"

namespace berth::slurm {

namespace {

std::string_view trimmed(std::string_view text) {
  while (text.starts_with(' ')) text.remove_prefix(1);
  while (text.ends_with(' ') || text.ends_with('\r')) text.remove_suffix(1);
  return text;
}

/// "Key    = value" lines; what is not set is "(null)" or "N/A".
std::map<std::string, std::string> config_of(std::string_view text) {
  std::map<std::string, std::string> config;
  for (const std::string_view line : split(text, '\n')) {
    const std::size_t equals = line.find('=');
    if (equals == std::string_view::npos) continue;
    const std::string_view value = trimmed(line.substr(equals + 1));
    config.emplace(trimmed(line.substr(0, equals)),
                   value == "(null)" || value == "N/A" || value == "none" ? "" : value);
  }
  return config;
}

/// "slurm(64030)"
Result<std::uint32_t> uid_in(std::string_view user) {
  const std::size_t open = user.rfind('(');
  std::uint32_t uid = 0;
  if (open != std::string_view::npos) {
    const char* begin = user.data() + open + 1;
    const auto read = std::from_chars(begin, user.data() + user.size(), uid);
    if (read.ec == std::errc{} && *read.ptr == ')') return uid;
  }
  return fail(fmt::format("`scontrol show config`: SlurmUser is '{}', which names no uid", user));
}

}  // namespace

Result<Site> ask_site(SlurmCommands& commands) {
  BERTH_TRY(const std::string version, output_of(commands, {"scontrol", "--version"}));
  const std::size_t blank = version.find(' ');
  // Berth answers to the name scontrol as well.
  if (!version.starts_with("slurm") || blank == std::string::npos)
    return fail("the scontrol that was found is not Slurm's (name its folder with --commands)");
  BERTH_TRY(const std::string text, output_of(commands, {"scontrol", "show", "config"}));
  auto config = config_of(text);
  Site site;
  site.version =
      trimmed(std::string_view(version).substr(blank + 1, version.find('\n') - blank - 1));
  site.conf = config["SLURM_CONF"];
  site.plugin_dir = config["PluginDir"];
  site.plugins = config["JobSubmitPlugins"];
  site.parameters = config["SchedulerParameters"];
  site.enforce = config["AccountingStorageEnforce"];
  site.accounting = config["AccountingStorageType"];
  BERTH_TRY(site.slurm_uid, uid_in(config["SlurmUser"]));
  return site;
}

std::string find_lua_plugin(const std::string& plugin_dir) {
  for (const std::string_view folder : split(plugin_dir, ':')) {
    const std::filesystem::path path = std::filesystem::path(folder) / "job_submit_lua.so";
    std::error_code ignored;
    if (std::filesystem::exists(path, ignored)) return path.string();
  }
  return {};
}

}  // namespace berth::slurm
