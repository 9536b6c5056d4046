#include <algorithm>
#include <filesystem>

#include <pwd.h>
#include <unistd.h>

#include <fmt/format.h>

#include "slurm/setup.h"
#include "slurm/setup_conf.h"
#include "slurm/setup_files.h"
#include "slurm/setup_parts.h"

namespace berth::slurm {

namespace {

constexpr const char* kNoDelay = "batch_sched_delay=0";

std::string own_conf_text(const SetupState& state, std::string_view plugins,
                          std::string_view parameters) {
  std::string text =
      "# Written by `berth slurm setup`; `berth slurm setup --undo` removes it. What the site had "
      "is merged into these\n"
      "# lines: after a change of yours to one of these keys run setup again.\n";
  text += fmt::format("JobSubmitPlugins={}\n", plugins);
  if (parameters != state.site_parameters)
    text += fmt::format("SchedulerParameters={}\n", parameters);
  return text;
}

class Planner {
 public:
  Planner(SlurmCommands& commands, const SetupWishes& wishes)
      : commands_(commands), wishes_(wishes) {}

  Result<SetupPlan> run() {
    BERTH_TRY(plan_.site, ask_site(commands_));
    plan_.state.gate = wishes_.gate;
    plan_.state.conf = wishes_.conf.empty() ? plan_.site.conf : wishes_.conf;
    plan_.state.heartbeat = wishes_.lua.heartbeat;
    plan_.state.patience_seconds = wishes_.lua.patience_seconds;
    BERTH_TRY_VOID(check_conf());
    BERTH_TRY_VOID(look_at_earlier());
    BERTH_TRY_VOID(wishes_.gate == Gate::Lua ? plan_lua() : plan_qos());
    return std::move(plan_);
  }

 private:
  Result<void> check_conf() {
    const std::string& conf = plan_.state.conf;
    if (!conf.starts_with('/'))
      return fail(fmt::format("'{}' is no full path of slurm.conf", conf));
    if (plan_.site.conf != conf)
      plan_.notes.push_back(
          fmt::format("slurmctld says that it reads {}: what is written beside {} counts only if "
                      "that is the same file",
                      plan_.site.conf, conf));
    BERTH_TRY(const auto file, read_plain(conf));
    if (!file)
      return fail(fmt::format("{}: is not on this machine (run setup where slurmctld runs)", conf));
    BERTH_TRY_VOID(check_trusted(conf, {0, plan_.site.slurm_uid, ::geteuid()}));
    if (::access(std::filesystem::path(conf).parent_path().c_str(), W_OK) != 0)
      return fail(fmt::format(
          "{}: its folder cannot be written (run setup as root or as SlurmUser)", conf));
    conf_ = *file;
    // Clients read slurm.conf and what it includes; slurmctld the rest. Nobody runs these files.
    plan_.ownership = {conf_.ownership.uid, conf_.ownership.gid, conf_.ownership.mode & 0644U};
    return {};
  }

  Result<void> look_at_earlier() {
    BERTH_TRY(earlier_, load_state(plan_.state.conf));
    if (!earlier_) return {};
    if (earlier_->phase != SetupPhase::Active)
      return fail("an earlier setup was interrupted and is not undone yet");
    if (earlier_->gate != wishes_.gate)
      return fail(
          fmt::format("it is set up with the gate '{}' (undo that first: berth slurm setup --undo)",
                      to_string(earlier_->gate)));
    plan_.state.had_script = earlier_->had_script;
    plan_.state.conf_added = earlier_->conf_added;
    plan_.state.qos = earlier_->qos;
    plan_.state.made_qos = earlier_->made_qos;
    return {};
  }

  Result<void> plan_lua() {
    BERTH_TRY_VOID(check_plugin());
    BERTH_TRY_VOID(check_heartbeat());
    const ConfReader read = [](const std::string& path) { return read_any(path); };
    BERTH_TRY(const ConfValues values,
              read_conf(plan_.state.conf, read, own_conf_path(plan_.state.conf)));
    plan_.state.site_plugins = values.value("JobSubmitPlugins").value_or("");
    plan_.state.site_parameters = values.value("SchedulerParameters").value_or("");
    for (const std::string& missing : values.missing)
      plan_.notes.push_back(fmt::format("{} is included but not there", missing));
    if (!earlier_) {
      note_if_different("JobSubmitPlugins", plan_.state.site_plugins, plan_.site.plugins);
      note_if_different("SchedulerParameters", plan_.state.site_parameters, plan_.site.parameters);
    }
    BERTH_TRY_VOID(plan_script());
    BERTH_TRY_VOID(plan_own_conf());
    plan_conf();
    plan_.commands = {{"scontrol", "reconfigure"}};
    plan_.is_done = earlier_ && plan_.files.empty();
    return {};
  }

  /// 22.05 takes a plugin that is not there without a word.
  Result<void> check_plugin() {
    if (!wishes_.plugin_dir.empty()) plan_.site.plugin_dir = wishes_.plugin_dir;
    if (!find_lua_plugin(plan_.site.plugin_dir).empty()) return {};
    return fail(
        fmt::format("job_submit_lua.so is not in {} (install Slurm's lua plugin, name the folder "
                    "with --plugin-dir, or "
                    "use --gate qos)",
                    plan_.site.plugin_dir.empty() ? "PluginDir" : plan_.site.plugin_dir));
  }

  /// slurmctld opens it at each submit: whoever could put a pipe there could stop it.
  Result<void> check_heartbeat() {
    const std::string& path = wishes_.lua.heartbeat;
    if (path.empty()) return {};
    if (!path.starts_with('/')) return fail(fmt::format("--heartbeat: '{}' is no full path", path));
    std::error_code code;
    if (std::filesystem::exists(std::filesystem::path(path).parent_path(), code))
      BERTH_TRY_VOID(check_trusted(path, trusted_with_heartbeat()));
    const auto status = std::filesystem::status(path, code);
    if (std::filesystem::exists(status) && !std::filesystem::is_regular_file(status))
      return fail(fmt::format("--heartbeat: {} is no plain file", path));
    return {};
  }
  [[nodiscard]] std::vector<std::uint32_t> trusted_with_heartbeat() const {
    std::vector<std::uint32_t> trusted = wishes_.lua.privileged_uids;
    trusted.insert(trusted.end(), {0, plan_.site.slurm_uid, ::geteuid()});
    return trusted;
  }

  void note_if_different(std::string_view key, const std::string& file, const std::string& live) {
    if (file == live) return;
    plan_.notes.push_back(
        fmt::format("slurm.conf has {0}={1}, slurmctld runs with {0}={2}: reading it anew brings "
                    "that change as well",
                    key, file, live));
  }

  Result<void> plan_script() {
    SetupState& state = plan_.state;
    const std::string path = script_path(state.conf), site_path = site_script_path(state.conf);
    BERTH_TRY(const auto script, read_plain(path));
    BERTH_TRY(const auto site_script, read_plain(site_path));
    const bool is_ours = earlier_ && script && is_one_of(script->text, earlier_->scripts);
    if (earlier_ && script && !is_ours)
      return fail(fmt::format(
          "{}: was changed since setup wrote it (undo with --undo --force first)", path));
    if (!earlier_ && site_script)
      return fail(
          fmt::format("{}: is there already, and not from setup (move it away)", site_path));
    const bool moves = !earlier_ && script.has_value();
    state.had_script = state.had_script || moves;
    LuaGate gate = wishes_.lua;
    gate.privileged_uids.insert(gate.privileged_uids.end(), {0, plan_.site.slurm_uid});
    std::ranges::sort(gate.privileged_uids);
    gate.privileged_uids.erase(
        std::unique(gate.privileged_uids.begin(), gate.privileged_uids.end()),
        gate.privileged_uids.end());
    // A script that lay there without the plugin being used was not in force, and is not put into
    // force by us.
    const bool is_in_force = has_item(state.site_plugins, "lua");
    if (state.had_script && is_in_force) gate.site_script = site_path;
    if (moves && !is_in_force)
      plan_.notes.push_back(fmt::format(
          "{} is not used now (JobSubmitPlugins has no lua): it is kept as {} and not called", path,
          site_path));
    state.scripts = {lua_script(gate)};
    if (is_ours && script->text != state.scripts.front()) state.scripts.push_back(script->text);
    plan_.probe = probe_mark(gate);
    if (moves) plan_.files.push_back({site_path, {}, script->text, script->ownership});
    add_change(path, script, state.scripts.front());
    return {};
  }

  Result<void> plan_own_conf() {
    SetupState& state = plan_.state;
    const std::string path = own_conf_path(state.conf);
    BERTH_TRY(const auto file, read_plain(path));
    const bool is_ours = earlier_ && file && is_one_of(file->text, earlier_->own_confs);
    if (file && !is_ours)
      return fail(
          fmt::format("{}: is there already, and not as setup wrote it (move it away)", path));
    // The last plugin of the list judges what the others have made of a job.
    const std::string plugins = with_item(state.site_plugins, "lua");
    std::string parameters = state.site_parameters;
    // Without it a released job waits 3 s more. A value of the site's own stays.
    if (!wishes_.keeps_parameters) parameters = with_item(parameters, kNoDelay);
    state.own_confs = {own_conf_text(state, plugins, parameters)};
    if (is_ours && file->text != state.own_confs.front()) state.own_confs.push_back(file->text);
    add_change(path, file, state.own_confs.front());
    return {};
  }

  void plan_conf() {
    SetupState& state = plan_.state;
    if (earlier_ && without_addition(conf_.text, state.conf_added)) return;
    state.conf_added = addition_for(conf_.text, kIncludeLine);
    add_change(state.conf, conf_, conf_.text + state.conf_added);
  }

  Result<void> plan_qos() {
    if (plan_.site.accounting.empty() || !has_item(plan_.site.enforce, "limits") ||
        !has_item(plan_.site.enforce, "qos"))
      return fail(
          fmt::format("the QOS gate needs slurmdbd and AccountingStorageEnforce=limits,qos in "
                      "slurm.conf; it is '{}' (use "
                      "--gate lua)",
                      plan_.site.enforce));
    BERTH_TRY(const auto rows, qos_rows(commands_));
    const bool has_own =
        std::ranges::any_of(rows, [](const QosRow& row) { return row.name == kBerthQos; });
    if (!has_own) {
      plan_.state.made_qos = true;
      plan_.commands.push_back({"sacctmgr", "-i", "add", "qos", kBerthQos});
    }
    for (const QosRow& row : rows) {
      if (row.name == kBerthQos || is_one_of(row.name, wishes_.lua.free_qos)) continue;
      const bool is_known = std::ranges::any_of(
          plan_.state.qos, [&](const GatedQos& qos) { return qos.name == row.name; });
      if (!is_known) plan_.state.qos.push_back({row.name, row.group_jobs});
      if (row.group_jobs != "0")
        plan_.commands.push_back(
            {"sacctmgr", "-i", "modify", "qos", "where", "name=" + row.name, "set", "GrpJobs=0"});
    }
    if (plan_.state.qos.empty()) return fail("there is no QOS to shut (all of them are exempt)");
    plan_.is_done = earlier_ && plan_.commands.empty();
    return {};
  }

  static bool is_one_of(const std::string& text, const std::vector<std::string>& texts) {
    return std::ranges::find(texts, text) != texts.end();
  }
  void add_change(const std::string& path, const std::optional<PlainFile>& file,
                  const std::string& after) {
    if (file && file->text == after) return;
    plan_.files.push_back({path, file ? std::optional(file->text) : std::nullopt, after,
                           file && path == plan_.state.conf ? file->ownership : plan_.ownership});
  }

  SlurmCommands& commands_;
  const SetupWishes& wishes_;
  SetupPlan plan_;
  PlainFile conf_;
  std::optional<SetupState> earlier_;
};

}  // namespace

Result<SetupPlan> plan_setup(SlurmCommands& commands, const SetupWishes& wishes) {
  return Planner(commands, wishes).run();
}

std::string SetupPlan::text() const {
  std::string text = fmt::format("Slurm {}, {}\n", site.version, state.conf);
  if (state.gate == Gate::Lua)
    text += fmt::format("PluginDir {}: job_submit_lua.so is there\n", site.plugin_dir);
  if (is_done) return text + "nothing to change: it is set up so already\n";
  text += "\nfiles:\n";
  for (const FileChange& file : files) text += unified_diff(file.path, file.before, file.after);
  text += fmt::format("and {}: what was done, for --undo\n\ncommands:\n", state_path(state.conf));
  for (const auto& words : commands) text += fmt::format("  {}\n", fmt::join(words, " "));
  if (!probe.empty())
    text +=
        "  a job that is held from the beginning and cancelled again shows whether the script is "
        "in force\n";
  if (state.gate == Gate::Lua)
    text +=
        "\nNodes and login machines with copies of slurm.conf of their own must get slurm.conf and "
        "berth.conf.\n";
  for (const std::string& note : notes) text += fmt::format("note: {}\n", note);
  return text;
}

}  // namespace berth::slurm
